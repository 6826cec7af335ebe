"""A container with known holes, so that an attempt can be seen to work: `weaken.py <hole>[,<hole>] <scratch> -- <command>`.

It is started as pid 1 of a fresh pid, mount, uts and ipc namespace (and a network one where the hole is there) and plays the host: it keeps
the secret open as descriptor 3 and has the host's mark in its command line. Its child gets a root of its own with one defence left out, and
runs the attempt there. Nothing it does outlives its namespaces, except what `huge_pages` gives back at the end.
"""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import hashlib

from attempt import mount, syscall

MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x10000000, 0x40000000, 0x4000000, 0x8000000
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PUBLIC = ("8.8.8.8", "1.1.1.1", "9.9.9.9", "169.254.169.254", "100.100.100.200")


def sh(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def build_root(root):
    """A root with the host's programs, read-only, and nothing else of it."""
    for name in ("usr", "etc", "proc", "dev", "tmp", "escape", "root", ".belljar"):
        os.makedirs(f"{root}/{name}", exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        if not os.path.lexists(f"{root}/{name}"):
            os.symlink(f"usr/{name}", f"{root}/{name}")
    for source, target in (("/usr", "usr"), ("/etc", "etc"), (HERE, "escape"), ("/dev", "dev")):
        mount(source, f"{root}/{target}", "none", MS_BIND | (MS_REC if target == "dev" else 0))
    mount("proc", f"{root}/proc", "proc")


def serve(ports, families=(socket.AF_INET,)):
    """Answers everybody on these ports."""
    for family in families:
        for port in ports:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                sock = socket.socket(family, kind)
                if family == socket.AF_INET6:
                    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                sock.bind(("", port))
                if kind == socket.SOCK_STREAM:
                    sock.listen()
                threading.Thread(target=answer, args=(sock,), daemon=True).start()


def answer(sock):
    while True:
        if sock.type == socket.SOCK_DGRAM:
            data, sender = sock.recvfrom(512)
            sock.sendto(data, sender)
        else:
            client, _ = sock.accept()
            client.recv(512)
            client.send(b"hello")
            client.close()


def public_addresses():
    """A network in which the whole Internet is this process."""
    sh("ip", "link", "set", "lo", "up")
    for address in PUBLIC:
        sh("ip", "addr", "add", f"{address}/32", "dev", "lo")
    serve((53, 80, 443))


def ipv6_link():
    """A link with somebody at its other end. This process stays there; the child is moved to a namespace of its own."""
    sh("ip", "link", "add", "there0", "type", "veth", "peer", "name", "here0")
    for setting in ("all", "default", "there0"):
        with open(f"/proc/sys/net/ipv6/conf/{setting}/accept_dad", "w") as file:
            file.write("0")
    sh("ip", "addr", "add", "10.99.0.2/24", "dev", "there0")
    sh("ip", "link", "set", "there0", "up")
    serve((int(os.environ["ESCAPE_HOST_PORT"]),), (socket.AF_INET, socket.AF_INET6))


def move_to_link(ready, moved):
    """In the child: a network namespace of its own, given the near end by the parent."""
    syscall(272, CLONE_NEWNET)
    with open("/proc/sys/net/ipv6/conf/default/accept_dad", "w") as file:
        file.write("0")
    os.write(ready, b"x")
    os.read(moved, 1)
    with open("/proc/sys/net/ipv6/conf/here0/accept_dad", "w") as file:
        file.write("0")
    sh("ip", "addr", "add", "10.99.0.1/24", "brd", "10.99.0.255", "dev", "here0")
    sh("ip", "link", "set", "here0", "up")
    os.environ["ESCAPE_LINK_BROADCAST"] = "10.99.0.255"


def prepare(holes, scratch, token):
    """In the child, before the root is changed: opens the holes. Returns the root to change to, if any."""
    os.environ["ESCAPE_TOKEN_HASH"] = hashlib.sha256(token).hexdigest()
    os.environ["ESCAPE_HOST_PID"] = "1"
    if "btrfs" in holes:
        image, where = f"{scratch}/btrfs.img", f"{scratch}/btrfs"
        with open(image, "wb") as file:
            file.truncate(128 << 20)
        sh("mkfs.btrfs", "-q", image)
        os.makedirs(where)
        sh("mount", "-o", "loop", image, where)
        os.environ["ESCAPE_BTRFS"] = where
    if "sudo" in holes:
        os.makedirs(f"{scratch}/bin")
        with open(f"{scratch}/bin/sudo", "w") as file:
            file.write('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do [ "$1" = -u ] && shift; shift; done\nexec "$@"\n')
        os.chmod(f"{scratch}/bin/sudo", 0o755)
        os.environ["PATH"] = f"{scratch}/bin:" + os.environ["PATH"]
    if holes & {"unprivileged", "fresh-user-namespace", "public-addresses", "ipv6-link", "btrfs", "sudo", "huge-pages"}:
        return None
    root = f"{scratch}/root"
    os.makedirs(root)
    if "same-filesystem" not in holes:
        mount("none", root, "tmpfs")
    build_root(root)
    if "overlay" in holes:
        os.makedirs(f"{root}/merged")
        host = os.environ["ESCAPE_HOST_DIRECTORY"]
        mount("none", f"{root}/merged", "overlay", 0, f"lowerdir={host}:{root}/root")
    if "fresh-tmp" in holes:
        mount("none", f"{root}/tmp", "tmpfs")
    if "shared-agent" in holes:
        mount("none", f"{root}/.belljar", "tmpfs")
        shutil.copy("/bin/true", f"{root}/.belljar/guest")
        with open(f"{root}/.belljar/boot", "wb") as file:
            file.write(b"boot" + token)
    return root


def enter(root, holes):
    """In the child: changes to the new root, in the way the hole asks for."""
    if "leaked-fd" in holes:
        os.set_inheritable(os.dup2(os.open("/", os.O_RDONLY), 9), True)
    if "outside-cwd" in holes:
        os.chdir("/")
        os.chroot(root)
        return
    if "same-filesystem" in holes:
        os.chdir(root)
        os.chroot(".")
        return
    os.chdir(root)
    syscall(155, b".", b".")
    syscall(166, b".", 2)
    os.chdir("/")


def guest(holes, scratch, token, command):
    """The child's life: holes, root, attempt."""
    if "same-filesystem" not in holes:
        syscall(272, CLONE_NEWNS)
        mount("none", "/", "none", MS_REC | MS_PRIVATE)
    root = prepare(holes, scratch, token)
    os.close(3)
    if root:
        enter(root, holes)
        command = [part.replace(HERE, "/escape") for part in command]
        os.environ["PYTHONPATH"] = "/escape/lib"
    if "unprivileged" in holes:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    if "fresh-user-namespace" in holes:
        syscall(272, CLONE_NEWUSER)
    os.execvp(command[0], command)


def main():
    holes, scratch, command = set(sys.argv[1].split(",")), sys.argv[2], sys.argv[sys.argv.index("--") + 1 :]
    token = bytes.fromhex(os.environ.pop("BELLJAR_TOKEN"))
    secret = os.open(os.environ["ESCAPE_HOST_FILE"], os.O_RDONLY)
    if secret != 3:
        os.dup2(secret, 3)
        os.close(secret)
    mount("none", "/", "none", MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc")
    ready, moved = os.pipe(), os.pipe()
    before = None
    if "public-addresses" in holes:
        public_addresses()
    if "ipv6-link" in holes:
        ipv6_link()
    if "huge-pages" in holes:
        with open("/proc/sys/vm/nr_hugepages") as file:
            before = file.read()
        with open("/proc/sys/vm/nr_hugepages", "w") as file:
            file.write(str(int(before) + 2))
    child = os.fork()
    if child == 0:
        if "ipv6-link" in holes:
            move_to_link(ready[1], moved[0])
        for end in (*ready, *moved):
            os.close(end)
        guest(holes, scratch, token, command)
    if "ipv6-link" in holes:
        os.read(ready[0], 1)
        sh("ip", "link", "set", "here0", "netns", str(child))
        os.write(moved[1], b"x")
    visitor = None
    if "entering-program" in holes:
        outside = f"{scratch}/outside"
        os.makedirs(outside)
        mount("none", outside, "tmpfs")
        shutil.copy("/bin/sleep", outside)
        visitor = threading.Thread(target=lambda: [subprocess.run([f"{outside}/sleep", "0.2"]) for _ in range(20)], daemon=True)
        visitor.start()
    while True:
        pid, status = os.wait() if visitor is None else os.waitpid(child, 0)
        if pid == child:
            break
    if before is not None:
        with open("/proc/sys/vm/nr_hugepages", "w") as file:
            file.write(before)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    main()
