# Connects to the gateway, the host's end of our link: a listener put there for us, and the usual ports.
# Why it matters: it is the nearest address of the host.
# When it works: anything answers.
# control: host-root
from attempt import blocked, fact, run
from network import ask_all, summary


def attempt():
    gateway = fact("GATEWAY")
    answers = ask_all((gateway,), (int(fact("HOST_PORT")),))
    answers += ask_all((gateway,), (22, 80, 443, 2375, 6443, 10250), datagrams=False)
    blocked(summary(answers))


run(attempt)
