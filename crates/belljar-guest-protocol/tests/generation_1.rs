//! The bytes of generation 1. They never change: agents that speak them are in sandboxes that outlive the host's update.
//!
//! A new field goes to the end of its body and is absent here; a new verb goes to a new generation and a new file.

use std::time::Duration;

use belljar_guest_protocol::wire::{Ack, Attach, ExitBody, Notice, OutputHeader, Start, WriteFile};
use belljar_guest_protocol::{BootConfig, ClientHello, Failure, FrameKind, Generations, Nonce, Verb, decode, encode, encode_frame};
use belljar_types::{GuestPath, ProcessSpec, PtySize, Secret, StreamKind, WriteOptions, hex};

#[test]
fn frames_and_verbs() {
    assert_eq!(hex(&encode_frame(FrameKind::Request, 0x0102, b"ab")), "0200000005000201".to_owned() + "6162");
    let verbs: Vec<String> = Verb::ALL.iter().filter(|verb| verb.since() == 1).map(|verb| format!("{}:{verb:?}", verb.number())).collect();
    assert_eq!(
        verbs.join(" "),
        "1:Hello 2:Start 3:Processes 4:Attach 5:Wait 6:WriteStdin 7:CloseStdin 8:Signal 9:Resize 10:ReadFile 11:WriteFile 12:Stat 13:List \
         14:MakeDirectory 15:Rename 16:Remove 17:SetMode 18:SetOwner 19:GetXattr 20:SetXattr 21:Watch 22:Search 23:Ports 24:Connect 25:Metrics \
         26:Renew"
    );
}

#[test]
fn bodies() {
    let mut spec = ProcessSpec::new(["sh", "-c"]);
    spec.id = "p1".parse().unwrap();
    spec.env.insert("A".into(), "b".into());
    spec.user = Some("user".parse().unwrap());
    spec.pty = Some(PtySize { columns: 80, rows: 24 });
    spec.deadline = Some(Duration::from_secs(1));
    let hello = ClientHello { generations: Generations { oldest: 1, newest: 2 }, nonce: Nonce::from([1; 32]) };
    let exit = Notice::Exit(ExitBody { code: Some(3), signal: None, cause: Some(1) });
    let snapshot = [
        hex(&encode(&hello)),
        hex(&encode(&Start::new(&spec, true))),
        hex(&encode(&Attach { id: "p1".into(), stdout: 5, stderr: 0 })),
        hex(&encode(&Ack { stdout: 1, stderr: 2 })),
        hex(&encode(&Notice::Gap { stream: 1, from: 2, to: 300 })),
        hex(&encode(&exit)),
        hex(&OutputHeader { stream: StreamKind::Stderr, offset: 258 }.to_bytes()),
        hex(&encode(&WriteFile::new(&GuestPath::new("/f").unwrap(), &WriteOptions::default()))),
        hex(&encode(&Failure::refused(2, "no"))),
    ];
    assert_eq!(snapshot.join("\n"), include_str!("generation_1.hex").trim());
}

#[test]
fn a_longer_body_of_a_later_version_is_still_understood() {
    // An acknowledgement with a third field.
    assert_eq!(decode::<Ack>(&[0x83, 1, 2, 0x61, b'x']).unwrap(), Ack { stdout: 1, stderr: 2 });
}

#[test]
fn the_boot_configuration() {
    let config = BootConfig {
        sandbox: "s2345678901234567890".parse().unwrap(),
        execution: "e2345678901234567890".parse().unwrap(),
        token: Secret::new([2; 32]),
        gateway: [100, 64, 0, 1].into(),
        env: [("A".into(), "b".into())].into(),
        default_user: None,
        workdir: None,
        privilege: belljar_types::PrivilegePolicy::RootAllowed,
        hostname: Some("h".into()),
    };
    assert_eq!(hex(&config.encode()), include_str!("generation_1.boot.hex").trim());
}
