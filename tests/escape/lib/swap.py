"""Exchanges two names as fast as the kernel can, until told to stop: the moving half of every race on a path."""

import ctypes
import os
import select
import sys

_libc = ctypes.CDLL(None, use_errno=True)
RENAME_EXCHANGE = 2


def until_told(first, second):
    """Says `racing` and exchanges the two names until standard input ends."""
    one, two = os.fsencode(first), os.fsencode(second)
    print("racing", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        for _ in range(200):
            if _libc.renameat2(-100, one, -100, two, RENAME_EXCHANGE) != 0:
                # A verb of the host removed or replaced one of them; both are made again by the caller.
                return False
    return True
