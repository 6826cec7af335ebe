# Listens on the agent's port beside the agent, to be given the host's connections.
# Why it matters: user code would then answer the host in the agent's name.
# When it works: bind and listen return while the agent holds the port. Where it holds none, no connection of the host's comes by network.
# control: host-root
import socket

from attempt import blocked, escaped, fact, first_success, name_of, run


def attempt():
    try:
        socket.create_connection((fact("SELF"), int(fact("AGENT_PORT"))), 5).close()
    except ConnectionRefusedError as error:
        blocked(f"nobody holds it: {name_of(error)}")

    def listen(address, options):
        sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        for option in options:
            sock.setsockopt(socket.SOL_SOCKET, option, 1)
        sock.bind((address, int(fact("AGENT_PORT"))))
        sock.listen()
        return sock

    label, _ = first_success(
        (f"{address} {name}", lambda address=address, options=options: listen(address, options))
        for address in ("0.0.0.0", fact("SELF"), "::ffff:" + fact("SELF"))
        for name, options in (("plain", ()), ("SO_REUSEADDR", (socket.SO_REUSEADDR,)), ("SO_REUSEPORT", (socket.SO_REUSEADDR, socket.SO_REUSEPORT)))
    )
    escaped(f"listens on the agent's port: {label}")


run(attempt)
