# Makes nodes for the host's disks and mounts them.
# Why it matters: the host's whole filesystem.
# When it works: one mounts and the host's secret is read from it.
# control: unshared-root
import os
import stat

from attempt import blocked, fact, mount, name_of, read_canary, run, scratch


def attempt():
    where, nodes, answers = scratch("disk"), scratch("nodes"), []
    sources = []
    # The planted disk first: an unconfined run then never mounts the real one.
    for disk in reversed(fact("HOST_DISKS").split(",")):
        try:
            os.mknod(f"{nodes}/{disk}", stat.S_IFBLK | 0o600, os.makedev(*map(int, disk.split(":"))))
            sources.append(f"{nodes}/{disk}")
        except OSError as error:
            answers.append(f"node {disk}: {name_of(error)}")
    for source in sources + ["/dev/vda", "/dev/sda1", "/dev/root"]:
        for kind in ("ext4", "btrfs"):
            try:
                mount(source, where, kind)
            except OSError as error:
                answers.append(f"{source} as {kind}: {name_of(error)}")
                continue
            for path in (where + "/secret", where + fact("HOST_FILE")):
                try:
                    read_canary(path)
                except OSError as error:
                    answers.append(f"{path}: {name_of(error)}")
    blocked("; ".join(answers))


run(attempt)
