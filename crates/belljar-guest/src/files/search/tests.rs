//! The scanner against a plain one, at every place where pieces meet.

use std::io::Write;

use super::*;

fn scan(content: &[u8], needle: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let mut scan = Scan::new(GuestPath::new("x").unwrap(), file);
    let finder = Finder::new(needle);
    let mut hits = Vec::new();
    while scan.step(&finder, 3, &mut hits) {}
    hits.into_iter().map(|hit| (hit.line.unwrap(), hit.text)).collect()
}

#[test]
fn lines_are_counted_and_shown() {
    let hits = scan(b"one\ntwo needle here\n\nneedle needle\nlast", b"needle");
    assert_eq!(hits, [(2, b"two needle here".to_vec()), (4, b"needle needle".to_vec())]);
}

#[test]
fn a_hit_across_two_pieces_is_found_once_with_its_line() {
    for shift in 0..300 {
        let mut content = b"line\n".repeat(PIECE / 5 - 30);
        content.extend(vec![b'.'; shift]);
        content.extend(b"needle after\n");
        content.extend(vec![b'\n'; PIECE]);
        content.extend(b"needle");
        let hits = scan(&content, b"needle");
        let first = (PIECE / 5 - 30 + 1) as u64;
        assert_eq!(hits.iter().map(|hit| hit.0).collect::<Vec<_>>(), [first, first + 1 + PIECE as u64], "shift {shift}");
    }
}

#[test]
fn binary_files_with_endless_lines_are_searched_in_bounded_memory() {
    let mut content = vec![0u8; 3 * PIECE];
    content.extend(b"\xff\x00needle\x00");
    let hits = scan(&content, b"needle");
    assert_eq!(hits.len(), 1);
    assert!(hits[0].1.len() <= 2 * SHOWN + 20);
}
