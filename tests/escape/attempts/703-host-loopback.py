# Connects to a listener on the host's loopback.
# Why it matters: services there trust whoever reaches them.
# When it works: the listener answers.
# control: host-root
from attempt import blocked, fact, run
from network import ask_all, summary


def attempt():
    answers = ask_all(("127.0.0.1", "127.0.0.53", "0.0.0.0", "::1", "::ffff:127.0.0.1"), (int(fact("HOST_PORT")),))
    blocked(summary(answers))


run(attempt)
