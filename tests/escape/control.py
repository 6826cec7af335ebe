#!/usr/bin/env python3
"""Runs every attempt where it can succeed, to show that it works: a suite in which nothing ever escapes proves nothing by itself.

Each attempt's header says where that is:
    host-root               unconfined, as root of the host
    host-root, if <cap>     the same, where root of this host has that capability
    unshared-root           root in fresh mount, uts, ipc, net, pid and cgroup namespaces, so that the machine is not changed
    weakened: <hole>        a container with one defence left out (lib/weaken.py)
    none: <reason>          nowhere on this kernel; counted apart, with the reason
Run as root. Prints a table and, last, `N passed, N failed`; exits 1 if any failed. Arguments choose attempts by the start of their names.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"
UNSHARED = ["unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--mount-proc", "--cgroup"]
CAPABILITIES = {"cap_sys_resource": 24}


def header(path, key):
    """The value of `# key: value` in an attempt's header, or None."""
    with open(path) as file:
        found = re.search(rf"^(?:#| \*) {key}: (.*)$", file.read(), re.M)
    return found.group(1).strip() if found else None


def has_capability(name):
    with open("/proc/self/status") as file:
        effective = next(int(line.split()[1], 16) for line in file if line.startswith("CapEff"))
    return bool(effective >> CAPABILITIES[name] & 1)


def command_of(path, scratch):
    """How to run an attempt: Python as it is, C compiled."""
    if path.endswith(".py"):
        return [PYTHON, path]
    program = os.path.join(scratch, "program")
    subprocess.run(["gcc", "-O1", "-Wall", "-I", f"{HERE}/lib", "-o", program, path], check=True)
    return [program]


def run_control(path, control, facts, scratch):
    """Runs the attempt under its control; returns the last line and whether it shows an escape."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{HERE}/lib", "PYTHONDONTWRITEBYTECODE": "1", "BELLJAR_TOKEN": secrets.token_hex(32), **facts}
    command = command_of(path, scratch)
    if control.startswith("unshared-root"):
        command = [*UNSHARED, *command]
    elif control.startswith("weakened: "):
        holes = control.removeprefix("weakened: ").replace(" ", "")
        flags = ["--net"] if {"public-addresses", "ipv6-link"} & set(holes.split(",")) else []
        command = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", *flags, PYTHON, f"{HERE}/lib/weaken.py", holes, scratch, facts["ESCAPE_HOST_MARK"], "--", *command]
    elif not control.startswith("host-root"):
        return f"unknown control {control!r}", False
    if not control.startswith("weakened"):
        environment["ESCAPE_TOKEN_HASH"] = "0" * 64
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, start_new_session=True)
    last = (result.stdout.strip().splitlines() or [""])[-1]
    if result.returncode != 0:
        last = f"exit {result.returncode}: {result.stderr.strip()[-400:]}"
    return last, result.returncode == 0 and last.startswith("ESCAPED: ")


def run_race(path, facts, scratch):
    """Plays a careless host: opens the raced name from outside, as it is. Returns what came of it."""
    prey = facts["ESCAPE_HOST_PREY"]
    racer = subprocess.Popen([PYTHON, path, scratch, prey], env={"PYTHONPATH": f"{HERE}/lib"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    racer.stdout.readline()
    name = f"{scratch}/middle/{os.path.basename(prey)}" if "directory" in path else f"{scratch}/prey"
    try:
        for tries in range(1, 200_001):
            with open(name, "rb") as file:
                if hashlib.sha256(file.read()).hexdigest() == facts["ESCAPE_CANARY"]:
                    return f"ESCAPED: a careless host read its own secret at the {tries}. try", True
        return "BLOCKED: never read anything but the sandbox's file", False
    finally:
        racer.communicate("")


def main():
    chosen = sys.argv[1:]
    attempts = sorted(name for name in os.listdir(f"{HERE}/attempts") if name.endswith((".py", ".c")))
    if chosen:
        attempts = [name for name in attempts if name.startswith(tuple(chosen))]
    base = tempfile.mkdtemp(prefix="escape-control-", dir="/var/tmp")
    os.chmod(base, 0o755)
    target = subprocess.Popen([PYTHON, f"{HERE}/lib/target.py", f"{base}/host"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    facts = json.loads(target.stdout.readline())
    # On the host itself, loopback stands for gateway, neighbour and self; limits are small so that crossing them costs nothing.
    facts |= {
        "ESCAPE_GATEWAY": "127.0.0.1", "ESCAPE_NEIGHBOUR": "127.0.0.2", "ESCAPE_NEIGHBOUR_PORT": facts["ESCAPE_HOST_PORT"], "ESCAPE_SELF": "127.0.0.1",
        "ESCAPE_FORGED_SOURCE": "198.51.100.77", "ESCAPE_LINK_BROADCAST": "127.255.255.255", "ESCAPE_MEMORY_LIMIT": str(32 << 20), "ESCAPE_DISK_LIMIT": str(32 << 20),
        "ESCAPE_PROCESS_LIMIT": "40",
    }
    passed, failed, without = 0, 0, 0

    def count(name, control, line, good):
        nonlocal passed, failed
        passed, failed = passed + good, failed + (not good)
        print(f"{'ok' if good else 'FAIL':5} {name:44} {control:34} {line[:150]}", flush=True)

    try:
        for name in sorted(os.listdir(f"{HERE}/races")) if not chosen or "races" in chosen else []:
            count(f"races/{name}", "careless host", *run_race(f"{HERE}/races/{name}", facts, tempfile.mkdtemp(dir=base)))
        for name in attempts:
            path = f"{HERE}/attempts/{name}"
            control = header(path, "control") or "missing"
            condition = re.search(r", if (\w+)$", control)
            if condition and not has_capability(condition.group(1)):
                control = f"none: root of this host lacks {condition.group(1)}"
            if control.startswith("none: "):
                without += 1
                print(f"none  {name:44} {control.removeprefix('none: ')}", flush=True)
                continue
            scratch = tempfile.mkdtemp(dir=base)
            os.chmod(scratch, 0o755)
            try:
                line, good = run_control(path, control, facts, scratch)
            except (subprocess.SubprocessError, OSError) as error:
                line, good = str(error), False
            count(name, control, line, good)
    finally:
        target.stdin.close()
        noticed = target.stdout.read().strip()
        target.wait()
        shutil.rmtree(base, ignore_errors=True)
        for leftover in os.listdir("/tmp"):
            if re.fullmatch(r"(escape-\d+-\w+|handle-\d+)", leftover):
                path = f"/tmp/{leftover}"
                shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.unlink(path)
    print(f"the host noticed: {noticed}")
    print(f"{without} attempts have no control on this kernel")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
