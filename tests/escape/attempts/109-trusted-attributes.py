# Sets the attributes by which an overlay is steered: trusted.overlay.redirect, opaque, metacopy.
# Why it matters: with them a directory of ours could be made to stand for another one of the host's.
# When it works: the kernel takes an attribute in the trusted namespace.
# control: host-root
import os

from attempt import first_success, reached, run, scratch


def attempt():
    where = scratch("xattr")
    label, _ = first_success(
        (name, lambda name=name, value=value: os.setxattr(where, name, value))
        for name, value in (
            ("trusted.overlay.redirect", b"/../../../../etc"),
            ("trusted.overlay.opaque", b"y"),
            ("trusted.overlay.metacopy", b""),
            ("trusted.belljar", b"1"),
        )
    )
    reached(f"set {label} on {where}")


run(attempt)
