//! Ten thousand events, and every kind of change at random places: each must show. The untouched log must not.

use belljar_audit::AuditLog;
use belljar_ports::Audit;

use crate::bed::{Die, full, project, segments, write};

/// Where the lines of a segment end: after them there is only room.
fn used(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

type Change = fn(&mut Vec<u8>, &mut Die);

#[expect(clippy::ptr_arg, reason = "all changes have one form")]
fn flip(bytes: &mut Vec<u8>, die: &mut Die) {
    let at = die.below(used(bytes));
    bytes[at] ^= 1 << die.below(8);
}

fn take_a_byte(bytes: &mut Vec<u8>, die: &mut Die) {
    bytes.remove(die.below(used(bytes)));
}

fn put_a_byte(bytes: &mut Vec<u8>, die: &mut Die) {
    let at = die.below(used(bytes));
    bytes.insert(at, b'x');
}

fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes[..used(bytes)].split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

fn take_a_line(bytes: &mut Vec<u8>, die: &mut Die) {
    let mut all = lines(bytes);
    all.remove(die.below(all.len()));
    *bytes = all.concat();
}

fn take_the_last_lines(bytes: &mut Vec<u8>, die: &mut Die) {
    let mut all = lines(bytes);
    let keep = die.below(all.len());
    all.truncate(keep);
    *bytes = all.concat();
}

fn swap_lines(bytes: &mut Vec<u8>, die: &mut Die) {
    let mut all = lines(bytes);
    let one = die.below(all.len());
    let other = (one + 1 + die.below(all.len() - 1)) % all.len();
    all.swap(one, other);
    *bytes = all.concat();
}

fn repeat_a_line(bytes: &mut Vec<u8>, die: &mut Die) {
    let mut all = lines(bytes);
    let at = die.below(all.len());
    all.insert(at, all[at].clone());
    *bytes = all.concat();
}

const CHANGES: [(&str, Change); 7] = [
    ("flip", flip),
    ("take a byte", take_a_byte),
    ("put a byte", put_a_byte),
    ("take a line", take_a_line),
    ("take the last lines", take_the_last_lines),
    ("swap lines", swap_lines),
    ("repeat a line", repeat_a_line),
];

#[tokio::test]
async fn every_change_of_ten_thousand_events_shows() {
    let directory = tempfile::tempdir().unwrap();
    let log = AuditLog::open(directory.path()).unwrap();
    write(&log, 10_000).await;
    let verdict = log.verify(&project()).await.unwrap();
    assert_eq!((verdict.events, &verdict.faults[..]), (10_000, &[][..]), "an untouched log is whole");
    let mut die = Die::seeded();
    let files = segments(directory.path());
    for round in 0..if full() { 100 } else { 6 } {
        for (name, change) in CHANGES {
            let path = &files[die.below(files.len())];
            let original = std::fs::read(path).unwrap();
            let mut changed = original.clone();
            change(&mut changed, &mut die);
            std::fs::write(path, &changed).unwrap();
            let verdict = log.verify(&project()).await.unwrap();
            assert!(!verdict.faults.is_empty(), "round {round}: {name} in {} did not show", path.display());
            std::fs::write(path, &original).unwrap();
        }
    }
    let whole = log.verify(&project()).await.unwrap();
    assert!(whole.faults.is_empty(), "put back, it is whole again: {:?}", whole.faults);
}

/// Where chance cannot miss any: each byte of a short log in turn, turned and taken out.
#[tokio::test]
async fn every_single_byte_counts() {
    let directory = tempfile::tempdir().unwrap();
    let log = AuditLog::open(directory.path()).unwrap();
    write(&log, if full() { 20 } else { 4 }).await;
    let path = segments(directory.path()).remove(0);
    // Without the room at its end, which would only be written over and over.
    let mut original = std::fs::read(&path).unwrap();
    original.truncate(used(&original));
    let mut die = Die::seeded();
    for at in 0..original.len() {
        let mut flipped = original.clone();
        flipped[at] ^= 1 << die.below(8);
        let mut shorter = original.clone();
        shorter.remove(at);
        for (what, changed) in [("flipped", flipped), ("taken out", shorter)] {
            std::fs::write(&path, &changed).unwrap();
            assert!(!log.verify(&project()).await.unwrap().faults.is_empty(), "byte {at}, {what}, did not show");
        }
    }
    std::fs::write(&path, &original).unwrap();
    assert!(log.verify(&project()).await.unwrap().faults.is_empty(), "put back, it is whole again");
}

#[tokio::test]
async fn a_changed_or_older_head_and_a_lost_segment_show() {
    let directory = tempfile::tempdir().unwrap();
    let log = AuditLog::open(directory.path()).unwrap();
    write(&log, 30).await;
    let head = directory.path().join("first/head");
    let original = std::fs::read(&head).unwrap();
    let text = String::from_utf8(original.clone()).unwrap();
    for (from, to) in [("\"seq\":30", "\"seq\":29"), ("\"project\":\"first\"", "\"project\":\"other\"")] {
        std::fs::write(&head, text.replacen(from, to, 1)).unwrap();
        let faults = log.verify(&project()).await.unwrap().faults;
        assert!(faults.iter().any(|fault| fault.contains("signature")), "{from}: {faults:?}");
    }
    std::fs::remove_file(&head).unwrap();
    assert_eq!(log.verify(&project()).await.unwrap().faults, ["its head is gone"]);
    std::fs::write(&head, &original).unwrap();
    assert!(log.verify(&project()).await.unwrap().faults.is_empty());
    std::fs::remove_file(&segments(directory.path())[0]).unwrap();
    let faults = log.verify(&project()).await.unwrap().faults;
    assert_eq!(faults, ["it ends at event 0, and 30 were signed: the end was cut off"]);
}
