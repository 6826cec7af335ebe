# Raises a hard resource limit above what it was given.
# Why it matters: it needs CAP_SYS_RESOURCE in the host's user namespace, which also passes disk quotas and process counts.
# When it works: a hard limit goes up.
# control: host-root, if cap_sys_resource
import resource

from attempt import first_success, in_child, reached, run


def attempt():
    def raise_limit(kind):
        _, hard = resource.getrlimit(kind)
        # From a lowered limit, so that an unlimited one can show it too.
        start = 64 if hard == resource.RLIM_INFINITY or hard > 64 else hard
        resource.setrlimit(kind, (start, start))
        try:
            resource.setrlimit(kind, (start, start + 1))
        except ValueError:
            raise OSError(1, "not allowed to raise maximum limit")

    label, _ = first_success((name, lambda kind=kind: in_child(lambda: raise_limit(kind))) for name, kind in (("open files", resource.RLIMIT_NOFILE), ("locked memory", resource.RLIMIT_MEMLOCK), ("core size", resource.RLIMIT_CORE)))
    reached(f"raised the hard limit of {label}")


run(attempt)
