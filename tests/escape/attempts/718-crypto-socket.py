# Opens the kernel's crypto sockets.
# Why it matters: rarely needed kernel code with a history; it autoloads modules.
# When it works: the socket is given and an algorithm bound.
# control: none: this kernel is built without CONFIG_CRYPTO_USER_API
import socket

from attempt import reached, run


def attempt():
    sock = socket.socket(38, socket.SOCK_SEQPACKET, 0)
    sock.bind(("hash", "sha256"))
    reached("the kernel hashes for us")


run(attempt)
