# Looks at the capabilities that root inside holds or could get, and raises all that the bounding set allows.
# Why it matters: each of these opens kernel code or powers that no work inside needs.
# When it works: one of them can be had.
# control: host-root
import ctypes
import struct

from attempt import blocked, reached, run, syscall

NEVER = {
    "dac_read_search": 2, "linux_immutable": 9, "net_admin": 12, "net_raw": 13, "ipc_lock": 14, "sys_module": 16, "sys_rawio": 17,
    "sys_ptrace": 19, "sys_pacct": 20, "sys_admin": 21, "sys_boot": 22, "sys_nice": 23, "sys_resource": 24, "sys_time": 25,
    "sys_tty_config": 26, "audit_control": 30, "mac_override": 32, "mac_admin": 33, "syslog": 34, "wake_alarm": 35,
    "block_suspend": 36, "audit_read": 37, "perfmon": 38, "bpf": 39, "checkpoint_restore": 40,
}


def attempt():
    sets = {line.split()[0].rstrip(":"): int(line.split()[1], 16) for line in open("/proc/self/status") if line.startswith("Cap")}
    wanted = sets["CapPrm"] | sets["CapInh"] | sets["CapBnd"] if "CapBnd" in sets else sets["CapPrm"]
    header = ctypes.create_string_buffer(struct.pack("=Ii", 0x20080522, 0))
    for value in (wanted, sets["CapPrm"]):
        words = struct.pack("=6I", value & 0xFFFFFFFF, value & 0xFFFFFFFF, 0, value >> 32, value >> 32, 0)
        try:
            syscall(126, header, ctypes.create_string_buffer(words))
            break
        except OSError:
            continue
    held = int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")), 16)
    never = [name for name, bit in NEVER.items() if held >> bit & 1]
    if never:
        reached(f"holds {', '.join(never)}")
    blocked(f"holds {held:#x}, bounded by {sets.get('CapBnd', 0):#x}")


run(attempt)
