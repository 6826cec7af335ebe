# Connects to the gateway from the agent's own port number, which rules let through for answers.
# Why it matters: a rule that looks at ports and not at connections opens the host to whoever takes that port.
# When it works: the host's listener answers.
# control: host-root
import socket

from attempt import blocked, fact, run
from network import ask_all, summary

REUSE = ((socket.SOL_SOCKET, socket.SO_REUSEADDR, 1), (socket.SOL_SOCKET, socket.SO_REUSEPORT, 1))


def attempt():
    source, ports = ("", int(fact("AGENT_PORT"))), (int(fact("HOST_PORT")),)
    answers = []
    for targets in ((fact("GATEWAY"),), fact("HOST_ADDRESSES").split(",")):
        answers += ask_all([target for target in targets if ":" not in target], ports, source, REUSE)
    blocked(summary(answers))


run(attempt)
