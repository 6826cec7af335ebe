"""What a client leaves behind when it is killed or interrupted: nothing. Its sandbox's lease was renewed while it lived, and runs out when it does not.

  lease.py          tries it
  lease.py HOLD     is the client that is killed
  lease.py RUN      is the client that is interrupted
"""

import concurrent.futures
import os
import signal
import subprocess
import sys
import time

from belljar import Belljar
from lab.checks import check, checked

LEASE = 5


def hold():
    with Belljar() as client, client.create(lease=LEASE) as sandbox:
        print(sandbox.id, flush=True)
        signal.pause()


def run():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Belljar() as client, client.create() as sandbox:
        print(sandbox.id, flush=True)
        sandbox.run("sleep 1000")


def changed(sandbox, what, before):
    """Waits until it is another; the leases here are seconds long."""
    for _ in range(600):
        if what(sandbox.refresh()) != before:
            return True
        time.sleep(0.1)
    return False


def killed(client):
    holder = subprocess.Popen([sys.executable, __file__, "HOLD"], stdout=subprocess.PIPE, text=True)
    with client.open(holder.stdout.readline().strip()) as sandbox:
        # Each renewal puts its end off. For longer than the lease, it is there because somebody renews it.
        for _ in range(4):
            check("it is renewed", changed(sandbox, lambda info: info.expires_at, sandbox.info.expires_at))
        check("it runs", sandbox.info.is_running)
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        check("it ends", changed(sandbox, lambda info: info.has_ended, False))
        check("because nobody renewed it", sandbox.info.end.cause, "lease-expired")


def interrupted(client):
    runner = subprocess.Popen([sys.executable, __file__, "RUN"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    sandbox = client.open(runner.stdout.readline().strip())
    check("its command runs", changed(sandbox, lambda _: len(sandbox.processes()), 0))
    runner.send_signal(signal.SIGINT)
    check("it is interrupted", "KeyboardInterrupt" in runner.communicate()[1])
    check("and has ended its sandbox", (sandbox.refresh().has_ended, sandbox.info.end.cause), (True, "requested"))


def dropped(client):
    left = client.create(lease=LEASE)
    found = client.open(left.id)
    del left
    check("what nobody holds any more ends too", changed(found, lambda info: info.has_ended, False))
    check("for the same reason", found.info.end.cause, "lease-expired")


def held(client):
    process = client.create(lease=LEASE).start("sleep 1000")
    found = client.open(process.sandbox_id)
    for _ in range(4):
        check("a process holds its sandbox", changed(found, lambda info: info.expires_at, found.info.expires_at))
    check("which runs", (found.info.is_running, process.refresh().state), (True, "running"))
    found.kill()


def main():
    with Belljar() as client, concurrent.futures.ThreadPoolExecutor() as pool:
        for done in [pool.submit(one, client) for one in (killed, interrupted, dropped, held)]:
            done.result()
    print(f"belljar (Python), leases: {checked()} checks passed")


{"HOLD": hold, "RUN": run}.get(" ".join(sys.argv[1:]), main)()
