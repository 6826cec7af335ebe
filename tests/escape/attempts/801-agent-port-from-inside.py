# Connects to the agent's port from inside and greets it.
# Why it matters: the agent acts as root inside; only the host may speak to it.
# When it works: it answers, or keeps listening to us.
# control: host-root
import socket

from attempt import blocked, escaped, fact, name_of, run


def attempt():
    answers = []
    for address in ("127.0.0.1", fact("SELF")):
        with socket.socket() as sock:
            try:
                sock.settimeout(10)
                sock.connect((address, int(fact("AGENT_PORT"))))
                sock.send(b"hello\n")
                said = sock.recv(4096)
            except TimeoutError:
                escaped(f"the agent at {address} keeps our connection open and waits for more")
            except OSError as error:
                answers.append(f"{address}: {name_of(error)}")
                continue
            if said:
                escaped(f"the agent at {address} answered {said[:40]!r}")
            answers.append(f"{address}: closed without a word")
    blocked("; ".join(answers))


run(attempt)
