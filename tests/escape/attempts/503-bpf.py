# Loads the smallest BPF program and makes a map.
# Why it matters: the verifier is a machine for kernel holes; a loaded program can read the kernel.
# When it works: the kernel takes the program or the map.
# control: host-root
import ctypes
import struct

from attempt import first_success, reached, run, syscall

BPF, MAP_CREATE, PROG_LOAD, SOCKET_FILTER = 321, 0, 5, 1


def attempt():
    # r0 = 0; exit
    program = ctypes.create_string_buffer(bytes.fromhex("b700000000000000" "9500000000000000"))
    licence = ctypes.create_string_buffer(b"GPL")

    def load():
        request = struct.pack("=IIQQIIQII", SOCKET_FILTER, 2, ctypes.addressof(program), ctypes.addressof(licence), 0, 0, 0, 0, 0)
        return syscall(BPF, PROG_LOAD, ctypes.create_string_buffer(request, 120), 120)

    def create():
        return syscall(BPF, MAP_CREATE, ctypes.create_string_buffer(struct.pack("=IIIII", 2, 4, 4, 1, 0), 72), 72)

    label, _ = first_success((("program", load), ("map", create)))
    reached(f"the kernel took our BPF {label}")


run(attempt)
