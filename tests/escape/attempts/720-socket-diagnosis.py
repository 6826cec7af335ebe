# Lists all sockets of the machine by netlink's socket diagnosis and by /proc/net.
# Why it matters: it tells which services the host runs and who talks to whom.
# When it works: the host's listener is in the list.
# control: host-root
import struct

from attempt import blocked, escaped, fact, name_of, run
from network import netlink


def attempt():
    port, answers = int(fact("HOST_PORT")), []
    for table in ("/proc/net/tcp", "/proc/1/net/tcp", "/proc/net/tcp6"):
        try:
            if any(f":{port:04X}" in line.split()[1] for line in open(table).readlines()[1:]):
                escaped(f"the host's listener is in {table}")
        except OSError as error:
            answers.append(f"{table}: {name_of(error)}")
    try:
        answer = netlink(4, 20, 1 | 0x300, struct.pack("=BBBBI", 2, 6, 0, 0, 0xFFFFFFFF) + bytes(48))
        if struct.pack(">H", port) in answer:
            escaped("the host's listener is among the diagnosed sockets")
        answers.append("diagnosis shows only our own")
    except OSError as error:
        answers.append(f"diagnosis: {name_of(error)}")
    blocked("; ".join(answers) or "only our own sockets are listed")


run(attempt)
