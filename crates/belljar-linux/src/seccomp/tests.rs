//! Runs compiled filters in an interpreter of its own and in the kernel, and compares them with the policy as written.

use super::assemble::{ARCHITECTURE_X86_64, X32_BIT};
use super::policy::{Condition, Policy, Rule, Test, Verdict};
use super::{Instruction, Program};

/// What the kernel hands to a filter.
struct Call {
    number: u32,
    architecture: u32,
    arguments: [u64; 6],
}

impl Call {
    fn new(number: u32, arguments: [u64; 6]) -> Self {
        Self { number, architecture: ARCHITECTURE_X86_64, arguments }
    }

    fn word(&self, offset: u32) -> u32 {
        match offset {
            0 => self.number,
            4 => self.architecture,
            16.. => {
                let argument = self.arguments[((offset - 16) / 8) as usize];
                u32::try_from(if offset.is_multiple_of(8) { argument & 0xffff_ffff } else { argument >> 32 }).unwrap()
            }
            other => panic!("load of offset {other}"),
        }
    }
}

fn interpret(program: &[Instruction], call: &Call) -> u32 {
    let (mut position, mut accumulator) = (0usize, 0u32);
    loop {
        let Instruction { code, jump_true, jump_false, value } = program[position];
        position += 1;
        let branch = |holds: bool| usize::from(if holds { jump_true } else { jump_false });
        match code {
            0x20 => accumulator = call.word(value),
            0x54 => accumulator &= value,
            0x05 => position += value as usize,
            0x15 => position += branch(accumulator == value),
            0x35 => position += branch(accumulator >= value),
            0x45 => position += branch(accumulator & value != 0),
            0x06 => return value,
            other => panic!("instruction {other:#x}"),
        }
    }
}

fn holds(condition: &Condition, arguments: &[u64; 6]) -> bool {
    let value = u32::try_from(arguments[usize::from(condition.argument)] & 0xffff_ffff).unwrap();
    match condition.test {
        Test::Equals(expected) => value == expected,
        Test::HasAnyOf(bits) => value & bits != 0,
        Test::MaskedEquals { mask, value: expected } => value & mask == expected,
    }
}

fn expected(policy: &Policy, number: u32, arguments: &[u64; 6]) -> Verdict {
    match policy.rule(number) {
        Rule::Always(verdict) => verdict,
        Rule::ByArguments { clauses, otherwise } => {
            let clause = clauses.iter().find(|clause| clause.conditions.iter().all(|condition| holds(condition, arguments)));
            clause.map_or(otherwise, |clause| clause.verdict)
        }
    }
}

/// Arguments that satisfy each clause, that differ from it in one bit, and that are far from all.
fn probes(rule: &Rule) -> Vec<[u64; 6]> {
    let mut probes = vec![[0; 6], [u64::MAX; 6], [0xffff_ffff_0000_0000; 6], [3; 6]];
    let Rule::ByArguments { clauses, .. } = rule else { return probes };
    for clause in *clauses {
        let mut arguments = [0u64; 6];
        for condition in clause.conditions {
            arguments[usize::from(condition.argument)] = match condition.test {
                Test::Equals(value) | Test::HasAnyOf(value) | Test::MaskedEquals { value, .. } => u64::from(value),
            };
        }
        probes.push(arguments);
        probes.push(arguments.map(|argument| argument | 0xdead_0000_0000_0000));
        for condition in clause.conditions {
            for bit in 0..32 {
                let mut near = arguments;
                near[usize::from(condition.argument)] ^= 1 << bit;
                probes.push(near);
            }
        }
    }
    probes
}

#[test]
fn the_compiled_tree_answers_as_the_table_for_every_number() {
    let policy = Policy::CONTAINER;
    let program = Program::compile(&policy);
    println!("{} instructions", program.len());
    for number in (0..=470).chain([1000, X32_BIT - 1]) {
        for arguments in probes(&policy.rule(number)) {
            let verdict = interpret(&program.0, &Call::new(number, arguments));
            let wanted = expected(&policy, number, &arguments).as_return_value();
            assert_eq!(verdict, wanted, "call {number} with {arguments:x?}");
        }
    }
}

#[test]
fn the_table_says_what_we_mean() {
    let policy = Policy::CONTAINER;
    let check = |number: libc::c_long, arguments: [u64; 6], verdict| {
        assert_eq!(expected(&policy, u32::try_from(number).unwrap(), &arguments), verdict, "call {number} with {arguments:x?}");
    };
    let first = |value: u64| [value, 0, 0, 0, 0, 0];
    let permitted = Verdict::Errno(libc::EPERM);
    check(libc::SYS_clone, first(0x0120_0011), Verdict::Allow);
    check(libc::SYS_clone, first(0x1000_0011), permitted);
    check(libc::SYS_clone3, [0; 6], Verdict::Errno(libc::ENOSYS));
    check(libc::SYS_unshare, first(0x200), Verdict::Allow);
    check(libc::SYS_unshare, first(0x80), permitted);
    check(libc::SYS_io_uring_setup, [0; 6], Verdict::Errno(libc::ENOSYS));
    check(libc::SYS_ioctl, [0, 0x5412, 0, 0, 0, 0], permitted);
    check(libc::SYS_ioctl, [0, 0xffff_ffff_0000_5412, 0, 0, 0, 0], permitted);
    check(libc::SYS_ioctl, [0, 0x5413, 0, 0, 0, 0], Verdict::Allow);
    check(libc::SYS_ioctl, [0, 0x5000_940e, 0, 0, 0, 0], Verdict::Errno(libc::ENOTTY));
    check(libc::SYS_socket, [2, 0x80001, 0, 0, 0, 0], Verdict::Allow);
    check(libc::SYS_socket, [2, 1, 262, 0, 0, 0], Verdict::Errno(libc::EPROTONOSUPPORT));
    check(libc::SYS_socket, [2, 3, 1, 0, 0, 0], permitted);
    check(libc::SYS_socket, [16, 3, 0, 0, 0, 0], Verdict::Allow);
    check(libc::SYS_socket, [16, 3, 12, 0, 0, 0], Verdict::Errno(libc::EPROTONOSUPPORT));
    for family in [17, 38, 40, 15, 21] {
        check(libc::SYS_socket, [family, 3, 0, 0, 0, 0], Verdict::Errno(libc::EAFNOSUPPORT));
    }
    for refused in [libc::SYS_mount, libc::SYS_bpf, libc::SYS_keyctl, libc::SYS_perf_event_open, libc::SYS_setns, libc::SYS_init_module] {
        check(refused, [0; 6], permitted);
    }
}

#[test]
fn no_call_is_in_two_lists() {
    use super::calls::{ALLOWED, REFUSED};
    let mut all: Vec<_> = ALLOWED.iter().chain(REFUSED).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn other_entries_are_shut() {
    let program = Program::compile(&Policy::CONTAINER);
    let i386 = Call { number: 1, architecture: 0x4000_0003, arguments: [0; 6] };
    assert_eq!(interpret(&program.0, &i386), libc::SECCOMP_RET_KILL_PROCESS);
    for number in [X32_BIT, X32_BIT | 1, u32::MAX] {
        assert_eq!(interpret(&program.0, &Call::new(number, [0; 6])), Verdict::Errno(libc::ENOSYS).as_return_value());
    }
}

/// Installs it for real, in a child: the kernel refuses a program with a wild jump, and then answers as the table.
#[test]
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "the whole child is one block")]
fn the_kernel_takes_it_and_answers_the_same() {
    let program = Program::compile(&Policy::CONTAINER);
    let kernel_program = program.as_kernel_program();
    // SAFETY: the child makes system calls only and ends with `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: numbers, valid pointers, and `_exit` at the end; nothing is shared with the parent.
        unsafe {
            let error = || *libc::__errno_location();
            let mut code = 0;
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
                code = 1;
            }
            if libc::syscall(libc::SYS_seccomp, 1, 0, &raw const kernel_program) != 0 {
                code = 2;
            }
            if libc::syscall(libc::SYS_getppid) <= 0 {
                code = 3;
            }
            if libc::syscall(libc::SYS_unshare, libc::CLONE_NEWUSER) != -1 || error() != libc::EPERM {
                code = 4;
            }
            if libc::syscall(libc::SYS_io_uring_setup, 1, 0) != -1 || error() != libc::ENOSYS {
                code = 5;
            }
            if libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) != -1 || error() != libc::EAFNOSUPPORT {
                code = 6;
            }
            if libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) < 0 {
                code = 7;
            }
            if libc::syscall(libc::c_long::from(X32_BIT) | libc::SYS_getpid) != -1 || error() != libc::ENOSYS {
                code = 8;
            }
            libc::_exit(code);
        }
    }
    let mut status = 0;
    // SAFETY: `status` is a valid place to write to.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "{status:#x}");
    assert_eq!(libc::WEXITSTATUS(status), 0, "which check failed");
}

/// The i386 entry kills: `int 0x80` with number 20 is `getpid` there.
#[test]
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "the whole child is one block")]
fn the_i386_entry_kills() {
    let program = Program::compile(&Policy::CONTAINER);
    let kernel_program = program.as_kernel_program();
    // SAFETY: the child makes system calls only and ends with `_exit` or is killed.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: as above.
        unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::syscall(libc::SYS_seccomp, 1, 0, &raw const kernel_program);
            let answer: i32;
            std::arch::asm!("int 0x80", inlateout("eax") 20 => answer, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
            libc::_exit(i32::from(answer > 0));
        }
    }
    let mut status = 0;
    // SAFETY: `status` is a valid place to write to.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSYS, "{status:#x}");
}
