# Writes more than its disk limit: one file, then many small ones, then holes that are filled, then preallocation.
# Why it matters: a full disk stops the host and everybody on it.
# When it works: a quarter more than the limit is on disk.
# needs: own-sandbox
# control: host-root
import os
import shutil

from attempt import blocked, escaped, fact, name_of, run


def attempt():
    limit = int(fact("DISK_LIMIT"))
    where = f"/var/tmp/escape-{os.getpid()}"
    os.makedirs(where)
    answers, written = [], 0
    chunk = os.urandom(1 << 20)

    def fill(label, step):
        nonlocal written
        try:
            while written <= limit * 5 // 4:
                written += step()
        except OSError as error:
            answers.append(f"{label} stops at {written >> 20} MiB: {name_of(error)}")

    big = open(f"{where}/big", "wb", buffering=0)
    fill("one file", lambda: big.write(chunk))
    grown = 0

    def grow():
        nonlocal grown
        ahead = os.open(f"{where}/ahead", os.O_WRONLY | os.O_CREAT)
        os.posix_fallocate(ahead, grown, 8 << 20)
        os.close(ahead)
        grown += 8 << 20
        return 8 << 20

    fill("preallocation", grow)
    count = 0

    def small():
        nonlocal count
        count += 1
        with open(f"{where}/{count}", "wb") as file:
            return file.write(chunk[:65536])

    fill("small files", small)
    shutil.rmtree(where, ignore_errors=True)
    if written > limit * 5 // 4:
        escaped(f"{written >> 20} MiB on disk, the limit is {limit >> 20} MiB")
    blocked("; ".join(answers))


run(attempt)
