#!/usr/bin/python3
"""A rogue in the agent's place. What it does is told by ROGUE in the boot configuration; a liar proves itself and then lies as each request's path or tag asks."""

import hashlib
import hmac
import os
import socket
import struct
import sys
import threading
import time

PORT = 10240
CLIENT_HELLO, AGENT_HELLO, CLIENT_PROOF, WELCOME, REQUEST, RESPONSE, FAILURE, DATA, OUTPUT, NOTICE, ITEMS, ACK, END, HEARTBEAT = range(1, 15)
HELLO, START, PROCESSES = 1, 2, 3


def read_cbor(data, at=0):
    """One value and where the next one begins; only the kinds that the protocol has."""
    major, small = data[at] >> 5, data[at] & 31
    at += 1
    if major == 7:
        return {20: False, 21: True, 22: None}[small], at
    size = {24: 1, 25: 2, 26: 4, 27: 8}.get(small, 0)
    value = int.from_bytes(data[at:at + size], "big") if size else small
    at += size
    if major == 0:
        return value, at
    if major in (2, 3):
        return (data[at:at + value] if major == 2 else data[at:at + value].decode()), at + value
    items = []
    for _ in range(value * (2 if major == 5 else 1)):
        item, at = read_cbor(data, at)
        items.append(item)
    return (dict(zip(items[::2], items[1::2])) if major == 5 else items), at


def head(major, value):
    for small, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if value < 24:
            return bytes([major << 5 | value])
        if value < 1 << 8 * size:
            return bytes([major << 5 | small]) + value.to_bytes(size, "big")


def cbor(value):
    if value is None or isinstance(value, bool):
        return {None: b"\xf6", False: b"\xf4", True: b"\xf5"}[value]
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    return head(4, len(value)) + b"".join(map(cbor, value))


def frame(kind, call, body=b""):
    return struct.pack("<IBBH", len(body), kind, 0, call) + body


def read_frame(stream):
    length, kind, _, call = struct.unpack("<IBBH", exactly(stream, 8))
    return kind, call, exactly(stream, length)


def exactly(stream, count):
    data = b""
    while len(data) < count:
        piece = stream.recv(count - len(data))
        if not piece:
            raise ConnectionError("the host hung up")
        data += piece
    return data


def shake_hands(stream, boot):
    sandbox, execution, token = boot[0], boot[1], boot[2]
    _, _, hello = read_frame(stream)
    client_nonce, nonce = read_cbor(hello)[0][1], os.urandom(32)
    parts = [b"belljar agent", struct.pack("<H", 1), client_nonce, nonce, sandbox.encode(), execution.encode()]
    proof = hmac.new(token, b"".join(struct.pack("<Q", len(part)) + part for part in parts), hashlib.sha256).digest()
    stream.sendall(frame(AGENT_HELLO, 0, cbor([[1, 1], nonce, proof])))
    read_frame(stream)
    stream.sendall(frame(WELCOME, 0, cbor(["1"])))


FILE = [b"/x", 0, 1, 0o644, 0, 0, None, None, 0, None]


def process(name, argv=()):
    return [name, 1, list(argv), None, "user", False, 0, None, 0, 0, 0]


def output(call, offset, data):
    return frame(OUTPUT, call, struct.pack("<BQ", 0, offset) + data)


def for_ever(stream, *pieces):
    while True:
        for piece in pieces:
            stream.sendall(piece)


# What answers a request that is asked to be lied to: bytes, sent once.
ONCE = {
    b"oversized": lambda call, body: struct.pack("<IBBH", 0xFFFFFFFF, RESPONSE, 0, call) + b"x" * 65536,
    b"unknown-kind": lambda call, body: struct.pack("<IBBH", 0, 99, 0, call),
    b"unknown-flags": lambda call, body: struct.pack("<IBBH", 0, RESPONSE, 1, call),
    b"another-call": lambda call, body: frame(RESPONSE, call + 1 & 0xFFFF, cbor(FILE)),
    b"out-of-turn": lambda call, body: frame(DATA, call, b"x"),
    b"rubbish": lambda call, body: frame(RESPONSE, call, b"\xff" * 64),
    b"absurd-count": lambda call, body: frame(RESPONSE, call, b"\x9b" + b"\xff" * 8),
    b"absurd-length": lambda call, body: frame(RESPONSE, call, b"\x8a\x5b\x7f" + b"\xff" * 7),
    b"deep": lambda call, body: frame(RESPONSE, call, b"\x81" * 200_000),
    b"wrong-offset": lambda call, body: frame(RESPONSE, call, cbor(process(body[0]))) + output(call, 7, b"x"),
    b"another-process": lambda call, body: frame(RESPONSE, call, cbor(process("somebody-else"))),
    b"hang-up": lambda call, body: b"",
}


def endless_output(stream, call, body):
    stream.sendall(frame(RESPONSE, call, cbor(process(body[0]))))
    offset, piece = 0, b"o" * 100_000
    while True:
        stream.sendall(output(call, offset, piece))
        offset += len(piece)


def many_arguments(stream, call, _):
    """Little on the way, much where it arrives."""
    for number in range(4000):
        stream.sendall(frame(ITEMS, call, cbor([process(f"p{number}")]).replace(b"\x01\x80", b"\x01" + head(4, 200_000) + b"\x40" * 200_000, 1)))
    stream.sendall(frame(END, call))


# And those that never end.
ENDLESS = {
    b"endless-list": lambda stream, call, _: (stream.sendall(frame(RESPONSE, call, cbor([]))), for_ever(stream, frame(ITEMS, call, cbor([FILE] * 500)))),
    b"empty-list": lambda stream, call, _: (stream.sendall(frame(RESPONSE, call, cbor([]))), for_ever(stream, frame(ITEMS, call, cbor([])))),
    b"endless-events": lambda stream, call, _: (stream.sendall(frame(RESPONSE, call, cbor([]))), for_ever(stream, frame(ITEMS, call, cbor([[0, b"n" * 1000]] * 200)))),
    b"endless-content": lambda stream, call, _: (stream.sendall(frame(RESPONSE, call, cbor(FILE))), for_ever(stream, frame(DATA, call, b"c" * 200_000))),
    b"endless-output": endless_output,
    b"endless-heartbeats": lambda stream, call, _: for_ever(stream, frame(HEARTBEAT, call) * 1000),
    b"dripping": lambda stream, call, _: (stream.sendall(struct.pack("<IBBH", 1000, RESPONSE, 0, call)), drip(stream)),
    b"silence": lambda stream, call, _: time.sleep(100_000),
}


def lie(stream, boot):
    shake_hands(stream, boot)
    while True:
        kind, call, request = read_frame(stream)
        if kind != REQUEST:
            continue
        verb, body = struct.unpack("<H", request[:2])[0], request[2:]
        if verb == HELLO:
            stream.sendall(frame(RESPONSE, call, cbor([boot[0], boot[1], "1"])))
        elif verb == PROCESSES:
            many_arguments(stream, call, body)
        else:
            word = next((word for word in {**ONCE, **ENDLESS} if b"lie-" + word in body), b"rubbish")
            if word in ENDLESS:
                ENDLESS[word](stream, call, read_cbor(body)[0])
            stream.sendall(ONCE[word](call, read_cbor(body)[0]))
            if word == b"hang-up":
                return


def drip(stream):
    while True:
        stream.sendall(b"x")
        time.sleep(0.2)


def mute(stream, _):
    time.sleep(100_000)


def babble(stream, _):
    for_ever(stream, b"\xff" * 65536)


def drip_hello(stream, _):
    stream.sendall(struct.pack("<IBBH", 1000, AGENT_HELLO, 0, 0))
    drip(stream)


def impostor(stream, boot):
    """Knows how to shake hands, but not the token."""
    shake_hands(stream, [boot[0], boot[1], b"\0" * 32])


def serve(handle, boot):
    def one(stream):
        try:
            handle(stream, boot)
        except OSError:
            pass
        finally:
            stream.close()

    # Where the agent would listen: at the host's door, or on the network.
    listener = socket.socket(fileno=os.dup(0)) if "stdin" in sys.argv else socket.create_server(("0.0.0.0", PORT))
    while True:
        stream, _ = listener.accept()
        threading.Thread(target=one, args=(stream,), daemon=True).start()


def storm():
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)


def eat():
    eaten = []
    while True:
        eaten.append(b"x" * (8 << 20) + bytes(len(eaten)))


def chatter():
    while True:
        for stream in (1, 2):
            try:
                os.write(stream, b"\x1b[31mlook at me\n" * 1000)
            except OSError:
                pass


def leave():
    os.write(2, b"\x1b[31mI am off\n")
    os._exit(7)


if __name__ == "__main__":
    boot = read_cbor(open("/.belljar/boot", "rb").read())[0]
    role = boot[4].get("ROGUE", "leave")
    listeners = {"mute": mute, "babble": babble, "drip": drip_hello, "impostor": impostor, "liar": lie}
    if role in listeners:
        serve(listeners[role], boot)
    {"leave": leave, "sleep": lambda: time.sleep(100_000), "storm": storm, "eat": eat, "chatter": chatter}[role]()
