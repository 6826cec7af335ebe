# Sends the agent frames of every shape without having shown a token: lengths, versions, random bytes.
# Why it matters: a parser reached before authentication is attack surface for user code.
# When it works: any frame gets an answer.
# control: host-root
import os
import random
import socket
import struct

from attempt import blocked, escaped, fact, name_of, run


def attempt():
    chosen = random.Random(1)
    shapes = [b"", b"\0", b"\xff" * 64, struct.pack(">I", 0), struct.pack(">I", 0xFFFFFFFF), struct.pack("<I", 16) + bytes(16), b"GET / HTTP/1.0\r\n\r\n"]
    shapes += [bytes(chosen.randrange(256) for _ in range(chosen.randrange(1, 200))) for _ in range(40)]
    answers = {}
    for shape in shapes:
        for address in ("127.0.0.1", fact("SELF")):
            try:
                with socket.create_connection((address, int(fact("AGENT_PORT"))), 5) as sock:
                    if shape:
                        sock.sendall(shape)
                    sock.shutdown(socket.SHUT_WR)
                    said = sock.recv(4096)
                    if said:
                        escaped(f"a frame of {len(shape)} bytes got the answer {said[:40]!r}")
                    outcome = "closed"
            except OSError as error:
                outcome = name_of(error) if error.errno else "no answer"
            answers[outcome] = answers.get(outcome, 0) + 1
    blocked(f"{sum(answers.values())} connections: {answers}")


run(attempt)
