"""The host as a target: plants a secret wherever a sandbox must not reach, and tells the attempts where to look.

Run as root on the host: `target.py <directory> [netns ...]`. Prints the facts as one line of JSON and waits; when its standard input
ends, it removes everything and prints what it noticed (forged datagrams, keystrokes) as a second line.
The attempts are given the secret's hash, never its text. Nothing but isolation protects it: it is world-readable everywhere.
"""

import ctypes
import fcntl
import hashlib
import json
import os
import secrets
import socket
import subprocess
import sys
import termios
import threading
import tty

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.shmat.restype = ctypes.c_void_p
ANYBODY = 0x3F3F3F3F
TTY_OWNER = 54321


def call(number, *arguments):
    """A raw system call; raises OSError."""
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


class Target:
    """Everything that was planted, and how to remove it."""

    def __init__(self, directory):
        self.secret = secrets.token_hex(32).encode()
        self.mark = f"escape-victim-{secrets.token_hex(6)}"
        self.undo = []
        self.noticed = {"forged": [], "keystrokes": 0, "written": False}
        self.facts = {
            "HOST_RELEASE": os.uname().release,
            "HOST_MARK": self.mark,
            "CANARY": hashlib.sha256(self.secret).hexdigest(),
        }
        self.directory = os.path.abspath(directory)

    def plant(self, network_namespaces):
        """Plants the secret in every place."""
        self.files()
        self.disk()
        self.process()
        self.keys()
        self.memory()
        self.terminal()
        self.listeners(network_namespaces)

    def files(self):
        os.makedirs(self.directory, mode=0o755, exist_ok=True)
        path = os.path.join(self.directory, self.mark)
        shm = f"/dev/shm/{self.mark}"
        for place in (path, shm):
            with open(place, "wb") as file:
                file.write(self.secret)
            os.chmod(place, 0o644)
            self.undo.append(lambda place=place: os.unlink(place))
        # Writable by all, so that only isolation keeps a sandbox, or a verb it fools, from changing it.
        self.prey = path + "-prey"
        with open(self.prey, "wb") as file:
            file.write(self.secret)
        os.chmod(self.prey, 0o666)
        self.undo.append(lambda: os.unlink(self.prey))
        self.facts |= {
            "HOST_PREY": self.prey,
            "HOST_FILE": path,
            "HOST_DIRECTORY": self.directory,
            "HOST_SHM_FILE": self.mark,
        }

    def disk(self):
        # A disk of its own beside the real one: some machines keep even root from opening the real one.
        content, image = f"{self.directory}/disk", f"{self.directory}/disk.img"
        os.makedirs(content)
        with open(f"{content}/secret", "wb") as file:
            file.write(self.secret)
        with open(image, "wb") as file:
            file.truncate(16 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-d", content, image], check=True)
        loop = subprocess.run(["losetup", "--find", "--show", image], check=True, capture_output=True, text=True).stdout.strip()
        self.undo.append(lambda: subprocess.run(["losetup", "--detach", loop], check=True))
        planted, real = os.stat(loop).st_rdev, os.stat(self.directory).st_dev
        self.facts["HOST_DISKS"] = ",".join(f"{os.major(number)}:{os.minor(number)}" for number in (real, planted))

    def process(self):
        script = 'exec 3<"$1"; while :; do sleep 1000; done'
        victim = subprocess.Popen(["/bin/sh", "-c", script, self.mark, self.facts["HOST_FILE"]], start_new_session=True, stdin=subprocess.DEVNULL)
        self.undo.append(lambda: (os.killpg(victim.pid, 9), victim.wait()))
        self.facts["HOST_PID"] = str(victim.pid)

    def keys(self):
        # A keyring of its own below the user's, open to all, so that permissions are not what protects it.
        ring = call(248, b"keyring", self.mark.encode(), None, 0, -4)
        key = call(248, b"user", self.mark.encode(), self.secret, len(self.secret), ring)
        for serial in (key, ring):
            call(250, 5, serial, ANYBODY)
        self.undo.append(lambda: call(250, 9, ring, -4))
        self.facts |= {"HOST_KEY": self.mark, "HOST_KEYRING": str(ring)}

    def memory(self):
        number = secrets.randbelow(1 << 30) + 1
        segment = call(29, number, 4096, 0o1000 | 0o644)
        address = libc.shmat(segment, None, 0)
        ctypes.memmove(address, self.secret, len(self.secret))
        self.undo.append(lambda: call(31, segment, 0, None))
        queue = call(240, self.mark.encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
        self.undo.append(lambda: (os.close(queue), call(241, self.mark.encode())))
        self.facts |= {"HOST_SHM_KEY": str(number), "HOST_QUEUE": self.mark}

    def terminal(self):
        self.master, self.slave = os.openpty()
        path = os.ttyname(self.slave)
        tty.setraw(self.slave, termios.TCSANOW)
        os.chown(path, TTY_OWNER, TTY_OWNER)
        os.chmod(path, 0o666)
        self.facts |= {"HOST_TTY": path, "HOST_TTY_OWNER": str(TTY_OWNER)}

    def listeners(self, network_namespaces):
        host, agent = self.free_port(), self.free_port()
        for port in (host, agent):
            self.listen(port)
        for namespace in network_namespaces:
            inside = threading.Thread(target=self.listen_in, args=(namespace, host))
            inside.start()
            inside.join()
        abstract = socket.socket(socket.AF_UNIX)
        abstract.bind("\0" + self.mark)
        abstract.listen()
        self.serve(abstract)
        addresses = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()
        self.facts |= {
            "HOST_PORT": str(host),
            "AGENT_PORT": str(agent),
            "HOST_ABSTRACT": self.mark,
            "HOST_ADDRESSES": ",".join(addresses) or "127.0.0.1",
        }

    @staticmethod
    def free_port():
        with socket.socket() as probe:
            probe.bind(("0.0.0.0", 0))
            return probe.getsockname()[1]

    def listen_in(self, namespace, port):
        # Only this thread changes namespace; the sockets keep it.
        with open(namespace) as file:
            call(308, file.fileno(), 0x40000000)
        self.listen(port)

    def listen(self, port):
        for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                sock = socket.socket(family, kind)
                if family == socket.AF_INET6:
                    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                sock.bind((address, port))
                if kind == socket.SOCK_STREAM:
                    sock.listen()
                self.serve(sock)

    def serve(self, sock):
        threading.Thread(target=self.answer, args=(sock,), daemon=True).start()

    def answer(self, sock):
        while True:
            try:
                if sock.type == socket.SOCK_DGRAM:
                    data, sender = sock.recvfrom(4096)
                    if data.startswith(b"forged"):
                        self.noticed["forged"].append(sender[0])
                    sock.sendto(self.secret, sender)
                else:
                    client, _ = sock.accept()
                    client.send(self.secret)
                    client.shutdown(socket.SHUT_WR)
                    threading.Timer(5, client.close).start()
            except OSError:
                continue

    def remove(self):
        """Takes everything away; looks at the terminal first."""
        waiting = ctypes.c_int()
        fcntl.ioctl(self.slave, termios.FIONREAD, waiting)
        self.noticed["keystrokes"] = waiting.value
        with open(self.prey, "rb") as file:
            self.noticed["written"] = file.read() != self.secret
        for action in reversed(self.undo):
            try:
                action()
            except OSError as error:
                print(f"target: could not remove: {error}", file=sys.stderr)


def main():
    target = Target(sys.argv[1])
    target.plant(sys.argv[2:])
    print(json.dumps({"ESCAPE_" + name: value for name, value in target.facts.items()}), flush=True)
    sys.stdin.read()
    target.remove()
    print(json.dumps(target.noticed), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
