//! Uploads as forms: whole, broken, and packed to be much more than they look.

use std::io::Write;

use serde_json::json;

use crate::wire::{Answer, Guest, Wire};

const TYPE: &str = "multipart/form-data; boundary=B-1";
const END: &[u8] = b"\r\n--B-1--\r\n";

fn head(name: &str) -> String {
    format!("--B-1\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n")
}

fn upload(guest: &Guest<'_>, headers: &[(&str, &str)], form: &[u8]) -> Answer {
    let headers = [&[("X-Access-Token", guest.token.as_str()), ("Content-Type", TYPE)], headers].concat();
    guest.daemon("POST", "/files", &headers, form)
}

fn read(guest: &Guest<'_>, path: &str) -> Vec<u8> {
    guest.daemon("GET", &format!("/files?path={path}"), &[("X-Access-Token", &guest.token)], b"").body
}

#[test]
fn the_files_of_a_form_are_written_as_they_are() {
    let wire = Wire::open();
    let guest = wire.sandbox(&json!({}));
    // What a form is made of may be in its files.
    let tricky = b"\r\n--B-\r\n--B\r\n\r\n--\r".repeat(5000);
    let form = [head("/tmp/one").as_bytes(), &tricky, b"\r\n", head("/tmp/a \\\"b\\\"").as_bytes(), END].concat();
    let answer = upload(&guest, &[], &form);
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    let paths: Vec<_> = answer.json().as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect();
    assert_eq!(paths, ["/tmp/one", "/tmp/a \"b\""]);
    assert_eq!(read(&guest, "/tmp/one"), tricky);
    assert_eq!(read(&guest, "/tmp/a%20%22b%22"), b"");
}

#[test]
fn a_form_that_is_none_is_refused_in_words() {
    let wire = Wire::open();
    let guest = wire.sandbox(&json!({}));
    let cases: [(&[u8], &str); 4] = [
        (b"", "error reading form: it ends before its last boundary"),
        (b"--B-1\r\n", "error reading form: it ends before its last boundary"),
        (b"--B-1!\r\n\r\n", "error reading form: a boundary is followed by something else than a new line"),
        (b"--B-1\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nx\r\n--B-1--", "a file of the form has no name"),
    ];
    for (form, words) in cases {
        let answer = upload(&guest, &[], form);
        assert_eq!((answer.status, answer.json()["message"].as_str()), (400, Some(words)));
    }
    let headers = [("X-Access-Token", guest.token.as_str()), ("Content-Type", "multipart/form-data")];
    let answer = guest.daemon("POST", "/files?path=/tmp/x", &headers, b"--B-1--");
    assert_eq!(answer.status, 400);
    assert!(answer.json()["message"].as_str().unwrap().starts_with("unsupported content type: multipart/form-data"));
}

/// A form that weighs little and unpacks to much costs the server no more than another: it is given on as it is unpacked.
#[test]
fn a_packed_form_is_unpacked_no_faster_than_the_sandbox_takes_it() {
    const UNPACKED: usize = 384 << 20;
    const GROWTH: u64 = 64 << 20;
    let wire = Wire::open();
    let guest = wire.sandbox(&json!({}));
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(head("/tmp/zeros").as_bytes()).unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..UNPACKED / zeros.len() {
        packer.write_all(&zeros).unwrap();
    }
    packer.write_all(END).unwrap();
    let packed = packer.finish().unwrap();
    assert!(packed.len() < 1 << 20);
    let before = wire.most_memory();
    let answer = upload(&guest, &[("Content-Encoding", "gzip")], &packed);
    let grown = wire.most_memory() - before;
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    assert!(grown < GROWTH, "{} MiB more for {} MiB of zeros", grown >> 20, UNPACKED >> 20);
}
