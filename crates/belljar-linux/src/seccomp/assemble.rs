//! From a policy to instructions: checks of the entry, then a binary search whose leaves answer.

use super::Instruction;
use super::policy::{Clause, Condition, Policy, Rule, Test, Verdict};

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP_IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const JUMP_IF_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

const OFFSET_NUMBER: u32 = 0;
const OFFSET_ARCHITECTURE: u32 = 4;
const OFFSET_ARGUMENTS: u32 = 16;
pub(super) const ARCHITECTURE_X86_64: u32 = 0xc000_003e;
pub(super) const X32_BIT: u32 = 0x4000_0000;

pub(super) fn assemble(policy: &Policy) -> Vec<Instruction> {
    let mut program = vec![
        plain(LOAD_WORD, OFFSET_ARCHITECTURE),
        jump(JUMP_IF_EQUAL, ARCHITECTURE_X86_64, 1, 0),
        answer(Verdict::KillProcess),
        plain(LOAD_WORD, OFFSET_NUMBER),
        jump(JUMP_IF_AT_LEAST, X32_BIT, 0, 1),
        answer(Verdict::Errno(libc::ENOSYS)),
    ];
    program.extend(search(&ranges(policy)));
    program
}

/// Neighbouring numbers with the same rule are one range, named by its first number.
fn ranges(policy: &Policy) -> Vec<(u32, Rule)> {
    let mut ranges: Vec<(u32, Rule)> = Vec::new();
    for number in 0..=policy.highest() + 1 {
        let rule = policy.rule(number);
        if ranges.last().is_none_or(|(_, last)| *last != rule) {
            ranges.push((number, rule));
        }
    }
    ranges
}

fn search(ranges: &[(u32, Rule)]) -> Vec<Instruction> {
    if let [(_, rule)] = ranges {
        return leaf(rule);
    }
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let Some((start, _)) = high.first() else { return leaf(&Rule::Always(Verdict::Errno(libc::ENOSYS))) };
    let low = search(low);
    let high = search(high);
    let mut code = match u8::try_from(low.len()) {
        Ok(distance) => vec![jump(JUMP_IF_AT_LEAST, *start, distance, 0)],
        // A conditional jump reaches 255 instructions; a plain one any distance.
        Err(_) => vec![jump(JUMP_IF_AT_LEAST, *start, 0, 1), plain(JUMP, u32::try_from(low.len()).unwrap_or(u32::MAX))],
    };
    code.extend(low);
    code.extend(high);
    code
}

fn leaf(rule: &Rule) -> Vec<Instruction> {
    match rule {
        Rule::Always(verdict) => vec![answer(*verdict)],
        Rule::ByArguments { clauses, otherwise } => {
            let mut code: Vec<Instruction> = clauses.iter().flat_map(clause_code).collect();
            code.push(answer(*otherwise));
            code
        }
    }
}

/// Falls through to what follows unless all conditions hold. Built from its end, so that every distance is known.
fn clause_code(clause: &Clause) -> Vec<Instruction> {
    let mut code = vec![answer(clause.verdict)];
    for condition in clause.conditions.iter().rev() {
        let past_the_end = u8::try_from(code.len()).unwrap_or(u8::MAX);
        let mut test = condition_code(condition, past_the_end);
        test.append(&mut code);
        code = test;
    }
    code
}

fn condition_code(condition: &Condition, skip: u8) -> Vec<Instruction> {
    let load = plain(LOAD_WORD, OFFSET_ARGUMENTS + 8 * u32::from(condition.argument));
    match condition.test {
        Test::Equals(value) => vec![load, jump(JUMP_IF_EQUAL, value, 0, skip)],
        Test::HasAnyOf(bits) => vec![load, jump(JUMP_IF_ANY_BIT, bits, 0, skip)],
        Test::MaskedEquals { mask, value } => vec![load, plain(AND, mask), jump(JUMP_IF_EQUAL, value, 0, skip)],
    }
}

fn plain(code: u16, value: u32) -> Instruction {
    Instruction { code, jump_true: 0, jump_false: 0, value }
}

fn jump(code: u16, value: u32, jump_true: u8, jump_false: u8) -> Instruction {
    Instruction { code, jump_true, jump_false, value }
}

fn answer(verdict: Verdict) -> Instruction {
    plain(RETURN, verdict.as_return_value())
}
