"""Starts the program: `python3 -m belljar_kernels`.

It says `ready` on its standard output once the first kernel runs and the port is open, or `taken` if another one has the port, which is as good for whoever started it.
"""

import asyncio
import errno
import os
import signal
import sys

from .contexts import Contexts
from .server import Server

PORT = 49999


def say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


async def main() -> int:
    # Kernels are children in sessions of their own; an interrupt is for them only.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    home = os.environ.get("BELLJAR_KERNELS_HOME", "/home/user")
    contexts = Contexts(home)
    server = Server(contexts)
    port = int(os.environ.get("BELLJAR_KERNELS_PORT", PORT))
    try:
        listener = await asyncio.start_server(server.attend, "127.0.0.1", port, limit=server.LONGEST_REQUEST)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            say("taken")
            return 0
        raise
    async with listener:
        # Whoever connects meanwhile waits for the same kernel.
        await contexts.warm(os.environ.get("BELLJAR_KERNELS_WARM", "python,javascript").split(","))
        say("ready")
        await listener.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
