//! What the agent makes of a request's body: every body that a client can send, decoded and checked as the agent does it.
#![no_main]

use belljar_guest_protocol::wire::{Attach, ListDirectory, ReadFile, Renew, Search, SetXattr, SignalProcess, Start, Watch, WriteFile};
use belljar_guest_protocol::{Verb, decode, sudo::SudoRequest};
use belljar_types::{ProcessSpec, SearchQuery};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [low, high, body @ ..] = bytes else { return };
    match Verb::from_number(u16::from_le_bytes([*low, *high])) {
        Some(Verb::Start) => drop(decode::<Start>(body).map(ProcessSpec::try_from)),
        Some(Verb::Search) => drop(decode::<Search>(body).map(SearchQuery::try_from)),
        Some(Verb::WriteFile) => drop(decode::<WriteFile>(body).map(|write| write.options())),
        Some(Verb::Attach) => drop(decode::<Attach>(body)),
        Some(Verb::ReadFile) => drop(decode::<ReadFile>(body)),
        Some(Verb::List) => drop(decode::<ListDirectory>(body)),
        Some(Verb::SetXattr) => drop(decode::<SetXattr>(body)),
        Some(Verb::Signal) => drop(decode::<SignalProcess>(body)),
        Some(Verb::Watch) => drop(decode::<Watch>(body)),
        Some(Verb::Renew) => drop(decode::<Renew>(body)),
        _ => drop(decode::<SudoRequest>(body)),
    }
});
