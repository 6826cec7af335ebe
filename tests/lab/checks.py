"""How the programs beside this one check: the first difference ends them with status 1, and at the end they tell how much was checked."""

import sys

steps = 0


def check(what, got, expected=True):
    global steps
    steps += 1
    if got != expected:
        print(f"not as expected: {what}: {got!r} instead of {expected!r}", file=sys.stderr)
        sys.exit(1)


def raises(what, kinds, act):
    try:
        act()
    except kinds as error:
        check(what, True)
        return error
    check(what, "nothing was raised", str(kinds))


def checked():
    """How many checks there were."""
    return steps
