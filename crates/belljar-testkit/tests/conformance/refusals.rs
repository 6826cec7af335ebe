//! Bad input: a clear error that names what was wrong, and nothing changed.

use belljar_ports::{GuestError, RuntimeError};
use belljar_testkit::{Lab, path, run};
use belljar_types::{GuestPath, Invalid, IsolationClass, LayerDigest, ListOptions, ProcessSpec, PtySize, WriteOptions};

/// The whole chain of causes, as a front would show it.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

pub(crate) async fn bad_requests_name_what_is_wrong_and_change_nothing(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let guest = &*sandbox.guest;
    let start = |change: fn(&mut ProcessSpec)| async move {
        let mut spec = ProcessSpec::new(["/bin/true"]);
        change(&mut spec);
        told(&guest.start(&spec).await.unwrap_err())
    };
    let cases: Vec<(String, &str)> = vec![
        (start(|spec| spec.argv.clear()).await, "argv"),
        (start(|spec| spec.argv = vec![b"no-such-program".to_vec()]).await, "no-such-program"),
        (start(|spec| spec.argv = vec![b"/etc/passwd".to_vec()]).await, "/etc/passwd"),
        (start(|spec| spec.argv.push(b"nul\0byte".to_vec())).await, "NUL"),
        (start(|spec| spec.cwd = Some(path("/no/such/directory"))).await, "/no/such/directory"),
        (start(|spec| spec.user = Some("nobody-here".parse().unwrap())).await, "nobody-here"),
        (start(|spec| spec.pty = Some(PtySize { columns: 0, rows: 10 })).await, "pty"),
        (start(|spec| spec.spool.capacity = 1).await, "spool.capacity"),
        (start(|spec| drop(spec.env.insert("A=B".into(), String::new()))).await, "env"),
        (told(&guest.list(&path("/etc/passwd"), &ListOptions::default()).await.unwrap_err()), "/etc/passwd"),
        (told(&guest.stat(&path("/no/such/file"), None).await.unwrap_err()), "/no/such/file"),
        (told(&guest.resize(&"unknown".parse().unwrap(), PtySize { columns: 1, rows: 1 }).await.unwrap_err()), "unknown"),
        (
            told(&guest.write_file(&path("/etc"), &WriteOptions::default(), Box::pin(futures_util::stream::empty())).await.unwrap_err()),
            "/etc",
        ),
    ];
    for (message, expected) in cases {
        assert!(message.contains(expected), "{message:?} does not name {expected:?}");
    }
    let known = guest.processes().await.unwrap();
    assert!(known.is_empty(), "nothing was started: {known:?}");
    assert!(GuestPath::new("a\0b").is_err());
    let gone = guest.attach(&"never".parse().unwrap(), belljar_types::Offsets::default()).await;
    assert!(matches!(gone.map(drop), Err(GuestError::NoProcess { .. })));
    assert_eq!(run(guest, &["echo", "alive"]).await.text(), "alive");
    sandbox.destroy().await;
}

pub(crate) async fn bad_specs_leave_nothing(class: IsolationClass) {
    let lab = Lab::get().await;
    let runtime = lab.runtime(class);
    let mut tiny = lab.spec();
    tiny.limits.memory_bytes = 1;
    let refused = runtime.create(&tiny).await.unwrap_err();
    assert!(told(&refused).contains("limits.memory_bytes"), "{}", told(&refused));
    let mut hollow = lab.spec();
    hollow.layers.clear();
    let refused = runtime.create(&hollow).await.unwrap_err();
    assert!(told(&refused).contains("layers"), "{}", told(&refused));
    let missing: LayerDigest = "f".repeat(64).parse().unwrap();
    let mut absent = lab.spec();
    absent.layers.push(missing.clone());
    let refused = runtime.create(&absent).await.unwrap_err();
    assert!(told(&refused).contains(missing.as_str()), "{}", told(&refused));
    let mut shouting = lab.spec();
    shouting.hostname = Some("not a host name!".into());
    let refused = runtime.create(&shouting).await.unwrap_err();
    assert!(told(&refused).contains("hostname"), "{}", told(&refused));
    assert!(matches!(refused, RuntimeError::Invalid(Invalid { .. })));
    for spec in [&tiny, &hollow, &absent, &shouting] {
        assert!(runtime.inventory().await.unwrap().iter().all(|found| found.id != spec.id));
        for remains in ["sandboxes", "pool/sandboxes"] {
            assert!(!lab.data_dir.join(remains).join(spec.id.as_str()).exists(), "{remains}");
        }
    }
}

pub(crate) async fn an_id_in_use_is_refused(class: IsolationClass) {
    let lab = Lab::get().await;
    let spec = lab.spec();
    let sandbox = lab.create(class, &spec).await.unwrap();
    let again = sandbox.runtime.create(&spec).await.unwrap_err();
    assert!(matches!(again, RuntimeError::Exists { .. }), "{again:?}");
    assert_eq!(run(&*sandbox.guest, &["echo", "alive"]).await.text(), "alive", "the first one is untouched");
    sandbox.destroy().await;
}
