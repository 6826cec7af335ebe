//! What the agent makes of a request before it touches anything: every verb's body, decoded and checked as the agent does it, and what it would
//! answer to a body that makes no sense.
#![no_main]

use belljar_guest_protocol::wire::{
    Ack, Attach, Connect, GetXattr, ListDirectory, PathOnly, ProcessOnly, ReadFile, Rename, Renew, Resize, Search, SetMode, SetOwner,
    SetXattr, SignalProcess, Start, Wait, Watch, WriteFile, WriteStdin,
};
use belljar_guest_protocol::{Failure, Verb, decode, encode, sudo::SudoRequest};
use belljar_types::{ExecutionId, GuestPath, Invalid, ProcessSpec, SandboxId, SearchQuery, Signal, UserName};

type Checked = Result<(), Failure>;

fn body<'b, T: minicbor::Decode<'b, ()>>(bytes: &'b [u8]) -> Result<T, Failure> {
    decode(bytes).map_err(|error| Failure::refused(0, error.to_string()))
}

fn path(bytes: &[u8]) -> Result<(), Invalid> {
    GuestPath::new(bytes.to_vec()).map(drop)
}

fn user(name: Option<&String>) -> Result<(), Invalid> {
    name.map(|name| name.parse::<UserName>()).transpose().map(drop)
}

fn check(verb: Verb, bytes: &[u8]) -> Checked {
    match verb {
        Verb::Hello | Verb::Processes | Verb::Ports | Verb::Metrics => {}
        Verb::Start => {
            let start: Start = body(bytes)?;
            let spec = ProcessSpec::try_from(start)?;
            let again = ProcessSpec::try_from(body::<Start>(&encode(&Start::new(&spec, true)))?)?;
            assert_eq!(again, spec, "a spec that was taken survives the way");
        }
        Verb::Attach => drop(body::<Attach>(bytes)?),
        Verb::Wait => drop(body::<Wait>(bytes)?),
        Verb::WriteStdin => drop(body::<WriteStdin>(bytes)?),
        Verb::CloseStdin => drop(body::<ProcessOnly>(bytes)?),
        Verb::Signal => drop(Signal::new(i32::from(body::<SignalProcess>(bytes)?.signal))?),
        Verb::Resize => drop(body::<Resize>(bytes)?),
        Verb::ReadFile => {
            let read: ReadFile = body(bytes)?;
            path(&read.path)?;
            user(read.user.as_ref())?;
        }
        Verb::WriteFile => {
            let write: WriteFile = body(bytes)?;
            write.options()?;
            path(&write.path)?;
        }
        Verb::Stat | Verb::MakeDirectory | Verb::Remove => {
            let only: PathOnly = body(bytes)?;
            path(&only.path)?;
            user(only.user.as_ref())?;
        }
        Verb::List => {
            let list: ListDirectory = body(bytes)?;
            path(&list.path)?;
            user(list.user.as_ref())?;
        }
        Verb::Rename => {
            let rename: Rename = body(bytes)?;
            path(&rename.from)?;
            path(&rename.to)?;
        }
        Verb::SetMode => path(&body::<SetMode>(bytes)?.path)?,
        Verb::SetOwner => path(&body::<SetOwner>(bytes)?.path)?,
        Verb::GetXattr => path(&body::<GetXattr>(bytes)?.path)?,
        Verb::SetXattr => path(&body::<SetXattr>(bytes)?.path)?,
        Verb::Watch => path(&body::<Watch>(bytes)?.path)?,
        Verb::Search => {
            let query = SearchQuery::try_from(body::<Search>(bytes)?)?;
            let again = SearchQuery::try_from(body::<Search>(&encode(&Search::from(&query)))?)?;
            assert_eq!(again, query, "a query that was taken survives the way");
        }
        Verb::Connect => drop(body::<Connect>(bytes)?),
        Verb::Renew => {
            let renew: Renew = body(bytes)?;
            renew.sandbox.parse::<SandboxId>()?;
            renew.execution.parse::<ExecutionId>()?;
        }
    }
    Ok(())
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [number, body @ ..] = bytes else { return };
    let Some(verb) = Verb::from_number(u16::from(*number)) else {
        drop(decode::<SudoRequest>(body));
        drop(decode::<Ack>(body));
        return;
    };
    if let Err(failure) = check(verb, body) {
        assert_eq!(decode::<Failure>(&encode(&failure)).expect("a refusal can be told"), failure);
    }
});
