# Exchanges a directory in the middle of a path with a link to a directory of the host.
# Why it matters: checking the last component is not enough; every component can move.
# When it works: the host reads, writes, lists or removes in its own directory.
# Run as: <directory> <path on the host>; the host uses <directory>/middle/<name of that path>.
import os
import shutil
import sys

import swap

directory, outside = sys.argv[1:3]
again = True
while again:
    for name in ("middle", "other"):
        path = f"{directory}/{name}"
        os.unlink(path) if os.path.islink(path) else shutil.rmtree(path, ignore_errors=True)
    os.mkdir(f"{directory}/middle")
    with open(f"{directory}/middle/{os.path.basename(outside)}", "w") as file:
        file.write("mine")
    os.symlink(os.path.dirname(outside), f"{directory}/other")
    again = not swap.until_told(f"{directory}/middle", f"{directory}/other")
