"""Names of a laboratory: every name below `test` leads to this machine, for programs that are started with them and for nobody else.

  python3 -m lab.names COMMAND...    runs a command with such names (from the directory tests)

A name server answers on an address of its own in 127.0.0.0/8; the programs see an /etc/resolv.conf that names it, in a mount namespace of their own.
It hands on what it is asked about other names to the machine's own name server.
"""

import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

A, IN = 1, 1
OURS = b"test"


def answer(question):
    """127.0.0.1 for whoever asks for an IPv4 address, and nothing else of such names; None for names that are not ours."""
    end, labels = 12, []
    while question[end]:
        labels.append(question[end + 1 : end + 1 + question[end]])
        end += question[end] + 1
    end += 5
    if not labels or labels[-1].lower() != OURS:
        return None
    kind, wanted = struct.unpack(">HH", question[end - 4 : end])
    found = (kind, wanted) == (A, IN)
    head = question[:2] + struct.pack(">HHHHH", 0x8580, 1, int(found), 0, 0)
    record = b"\xc0\x0c" + struct.pack(">HHIH", A, IN, 60, 4) + bytes([127, 0, 0, 1]) if found else b""
    return head + question[12:end] + record


class Names:
    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.address = f"127.53.{random.randrange(256)}.{random.randrange(1, 255)}"
        self.socket.bind((self.address, 53))
        self.directory = tempfile.TemporaryDirectory()
        self.settings = Path(self.directory.name) / "resolv.conf"
        self.settings.write_text(f"nameserver {self.address}\n")
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            question, asker = self.socket.recvfrom(512)
            try:
                found = answer(question)
            except (IndexError, struct.error):
                continue
            if found:
                self.socket.sendto(found, asker)
            else:
                threading.Thread(target=self.hand_on, args=(question, asker), daemon=True).start()

    def hand_on(self, question, asker):
        for line in Path("/etc/resolv.conf").read_text().splitlines():
            if line.startswith("nameserver "):
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
                    other.settimeout(5)
                    other.sendto(question, (line.split()[1], 53))
                    try:
                        return self.socket.sendto(other.recv(4096), asker)
                    except OSError:
                        pass

    def command(self, command):
        """The command, to be run where these names hold."""
        inside = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", inside, str(self.settings), *map(str, command)]


if __name__ == "__main__":
    sys.exit(subprocess.run(Names().command(sys.argv[1:])).returncode)
