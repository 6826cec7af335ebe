//! Streams go through untouched, in any size.

use std::io::{Read, Write};
use std::process::Stdio;

use crate::fixture::{Place, Who, out, words};

#[test]
fn a_megabyte_of_anything_comes_through_standard_input() {
    for who in Who::BOTH {
        let place = Place::new(who);
        let bytes: Vec<u8> = (0..1u32 << 20).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let mut guard = place.guard(&[]).arg("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = guard.stdin.take().unwrap();
        let copy = bytes.clone();
        let writer = std::thread::spawn(move || input.write_all(&copy).unwrap());
        let mut got = Vec::new();
        guard.stdout.take().unwrap().read_to_end(&mut got).unwrap();
        writer.join().unwrap();
        assert!(guard.wait().unwrap().success() && got == bytes, "{who:?}: {} bytes came back", got.len());
    }
}

#[test]
fn a_hundred_megabytes_of_output_lose_nothing() {
    for who in Who::BOTH {
        let place = Place::new(who);
        let mut guard =
            place.guard(&[]).args(["sh", "-c", "yes 0123456789abcde | head -c 104857600"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = guard.stdout.take().unwrap();
        let (mut total, mut buffer) = (0, vec![0; 1 << 20]);
        loop {
            let got = stdout.read(&mut buffer).unwrap();
            if got == 0 {
                break;
            }
            for (offset, byte) in buffer[..got].iter().enumerate() {
                assert_eq!(*byte, b"0123456789abcde\n"[(total + offset) % 16]);
            }
            total += got;
        }
        assert!(guard.wait().unwrap().success());
        assert_eq!(total, 100 << 20, "{who:?}");
    }
}

#[test]
fn both_outputs_stay_apart_and_a_closed_reader_ends_the_writer() {
    for who in Who::BOTH {
        let place = Place::new(who);
        let output = place.shell(&[], "echo one; echo two >&2");
        assert_eq!((out(&output).as_str(), output.stderr.as_slice()), ("one", b"two\n".as_slice()), "{who:?}");
        // Pipes of the user's own: others' it may not open again, with or without a guard.
        let script = "echo one > /dev/stdout; echo two > /dev/stderr; cat /dev/stdin";
        let line = format!("echo three | {} -- sh -c '{script}' 2>&1 | cat", place.guard_program().display());
        let by_name = place.bare("bash").args(["-c", &line]).output().unwrap();
        assert_eq!(out(&by_name), "one\ntwo\nthree", "{who:?}: {}", words(&by_name));
        let mut piped = place.bare("bash");
        let script = format!("set -o pipefail; {} -- yes | head -n 1; echo $?", place.guard_program().display());
        let output = piped.args(["-c", &script]).output().unwrap();
        assert_eq!(out(&output), "y\n141", "{who:?}: {}", words(&output));
    }
}
