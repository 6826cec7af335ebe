# Opens /dev/kvm and asks for a virtual machine.
# Why it matters: KVM is host-kernel code with the processor's deepest features.
# When it works: a machine is made, or the version is told.
# control: host-root
import fcntl
import os

from attempt import reached, run


def attempt():
    version = fcntl.ioctl(os.open("/dev/kvm", os.O_RDWR), 0xAE00, 0)
    reached(f"KVM answers with version {version}")


run(attempt)
