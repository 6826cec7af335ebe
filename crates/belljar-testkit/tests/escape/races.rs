//! Races on the host's file verbs: a program inside exchanges a plain name with a link to a file of the host, while the host reads, writes,
//! lists and removes that name. Whatever the verbs do, the host's own file is neither read nor changed.

use belljar_ports::{ByteStream, Guest, GuestError};
use belljar_testkit::{path, scaled, sha256};
use belljar_types::{ByteRange, GuestPath, IsolationClass, Limits, ListOptions, OutputEvent, PrivilegePolicy, ProcessSpec, WriteOptions};
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use crate::scene::{INSIDE, Scene, Stage};
use crate::target::programs;

/// Every race on one class, as user and as root.
pub(crate) async fn all(class: IsolationClass) {
    let scene = Scene::set(class).await;
    let stage = scene.stage(Limits::default(), PrivilegePolicy::RootAllowed).await;
    let mut races: Vec<String> =
        std::fs::read_dir(programs().join("races")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    races.retain(|name| name.ends_with(".py"));
    races.sort();
    assert!(!races.is_empty());
    for race in &races {
        for user in ["user", "root"] {
            let answered = run(&scene, &stage, race, user).await;
            println!("{class} races/{race:28} {user:5} {answered} verbs did something, none to the host");
        }
    }
    stage.sandbox.destroy().await;
    scene.strike().await;
}

async fn run(scene: &Scene, stage: &Stage, race: &str, user: &str) -> u64 {
    let guest = &*stage.sandbox.guest;
    let directory = format!("/tmp/race-{user}-{race}");
    stage.run(user, &["mkdir", &directory]).await.unwrap().text();
    let prey = scene.target.fact("HOST_PREY");
    let mut racer = ProcessSpec::new(["python3", &format!("{INSIDE}/races/{race}"), &directory, prey]);
    racer.user = Some(user.parse().unwrap());
    racer.env.insert("PYTHONPATH".into(), format!("{INSIDE}/lib"));
    racer.stdin = true;
    let (_, mut output) = guest.start_attached(&racer).await.unwrap();
    let first = output.next().await.unwrap().unwrap();
    assert!(matches!(&first, OutputEvent::Data { bytes, .. } if bytes.starts_with(b"racing")), "{first:?}");
    let name = prey.rsplit_once('/').unwrap().1;
    let raced = if race.contains("directory") { format!("{directory}/middle/{name}") } else { format!("{directory}/prey") };
    let answered = verbs(guest, &path(&raced), scene.target.fact("CANARY")).await;
    guest.close_stdin(&racer.id).await.unwrap();
    guest.signal(&racer.id, belljar_types::Signal::KILL).await.ok();
    assert!(answered > 0, "no verb ever found the name: the race was not run");
    answered
}

/// Uses every verb on the raced name, over and over. Returns how many did something.
async fn verbs(guest: &dyn Guest, raced: &GuestPath, secret: &str) -> u64 {
    let mut answered = 0;
    for round in 0..scaled(60, 1000) {
        for user in ["user", "root"] {
            let user = user.parse().unwrap();
            match read(guest, raced, &user).await {
                Ok(content) => {
                    assert_ne!(sha256(&content), secret, "a verb read the host's own file");
                    answered += 1;
                }
                Err(error) => expect_refusal(&error),
            }
            let options = WriteOptions { user: Some(user.clone()), ..WriteOptions::default() };
            let content: ByteStream = Box::pin(stream::iter([Ok(Bytes::from_static(b"written through a race"))]));
            answered += count(guest.write_file(raced, &options, content).await);
            answered += count(guest.stat(raced, Some(&user)).await);
            answered += count(guest.set_mode(raced, 0o600, Some(&user)).await);
            let parent = path(raced.as_bytes().rsplitn(2, |byte| *byte == b'/').nth(1).unwrap());
            answered += count(guest.list(&parent, &ListOptions { user: Some(user.clone()), ..ListOptions::default() }).await);
            if round % 8 == 7 {
                answered += count(guest.remove(raced, Some(&user)).await);
            }
        }
    }
    answered
}

async fn read(guest: &dyn Guest, raced: &GuestPath, user: &belljar_types::UserName) -> Result<Vec<u8>, GuestError> {
    let mut content = guest.read_file(raced, ByteRange::default(), Some(user)).await?;
    let mut all = Vec::new();
    while let Some(piece) = content.bytes.next().await {
        all.extend_from_slice(&piece?);
    }
    Ok(all)
}

fn count<T>(result: Result<T, GuestError>) -> u64 {
    match result {
        Ok(_) => 1,
        Err(error) => {
            expect_refusal(&error);
            0
        }
    }
}

/// A verb may lose the race; it may not break.
#[track_caller]
fn expect_refusal(error: &GuestError) {
    assert!(matches!(error, GuestError::Refused { .. }), "{error:?}");
}
