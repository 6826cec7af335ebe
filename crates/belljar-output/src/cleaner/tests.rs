//! What comes out, for what goes in; and that it does not depend on how it was cut into pieces.

use belljar_types::Secret;
use proptest::prelude::*;

use super::*;

fn hygiene(escapes: Escapes) -> Hygiene {
    let secret = Secret::new("hunter2-and-more".to_owned());
    Hygiene { escapes, mask: Mask::new([&secret]), room: 1 << 20 }
}

fn clean(hygiene: &Hygiene, pieces: &[&[u8]]) -> Cleaned {
    let mut cleaner = Cleaner::new(hygiene);
    pieces.iter().for_each(|piece| cleaner.push(piece));
    cleaner.finish()
}

#[track_caller]
fn check(escapes: Escapes, input: &[u8], expected: &str) {
    assert_eq!(clean(&hygiene(escapes), &[input]).text, expected, "{escapes:?}");
}

#[test]
fn a_terminal_is_told_nothing() {
    for (input, expected) in [
        (&b"plain\n\ttext"[..], "plain\n\ttext"),
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07after", "after"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1bP1;2|data\x1b\\after", "after"),
        (b"\x1b(Bx\x1bcy", "xy"),
        ("\u{9b}2Jc1".as_bytes(), "c1"),
        (b"a\x08\x00b\x7f", "ab"),
        (b"one\r\ntwo\r\n", "one\ntwo\n"),
        (b"10%\r20%\r", "10%\n20%\n"),
        ("r\u{202e}txt\u{200b}".as_bytes(), "rtxt"),
        (b"\x1b]0;never ends\nvisible", "\nvisible"),
        (b"\x1b[31\nvisible", "\nvisible"),
    ] {
        check(Escapes::Strip, input, expected);
    }
    check(Escapes::Show, b"\x1b[31mred\n", "\\u{1b}[31mred\n");
    check(Escapes::Keep, b"\x1b[31mred", "\u{1b}[31mred");
    let endless = [b"\x1b]".as_slice(), &[b'x'; 5000], b"tail"].concat();
    assert!(clean(&hygiene(Escapes::Strip), &[&endless]).text.ends_with("xtail"), "a string without end does not hide what follows");
}

#[test]
fn secrets_are_masked_in_every_form_and_across_borders() {
    for (input, expected) in [
        (&b"key=hunter2-and-more."[..], "key=***."),
        (b"hun\x1b[0mter2-and\x1b[1m-more", "***"),
        (b"68756e746572322d616e642d6d6f7265", "***"),
        (b"aHVudGVyMi1hbmQtbW9yZQ==", "***ZQ=="),
        (b"hunter2", "hunter2"),
    ] {
        check(Escapes::Strip, input, expected);
    }
    let input = b"x hunter2-and-more y hunter2-and-more";
    for cut in 0..input.len() {
        let cleaned = clean(&hygiene(Escapes::Keep), &[&input[..cut], &input[cut..]]);
        assert_eq!((cleaned.text.as_str(), cleaned.masked), ("x *** y ***", 2), "cut at {cut}");
    }
}

#[test]
fn what_is_not_utf_8_is_replaced_and_counted_and_characters_stay_whole() {
    let cleaned = clean(&hygiene(Escapes::Strip), &[b"a\xff", "é日".as_bytes(), b"\xe6"]);
    assert_eq!((cleaned.text.as_str(), cleaned.invalid), ("a\u{fffd}é日\u{fffd}", 2));
    let text = "日本語".as_bytes();
    for cut in 0..text.len() {
        assert_eq!(clean(&hygiene(Escapes::Strip), &[&text[..cut], &text[cut..]]).text, "日本語");
    }
}

#[test]
fn the_first_and_the_last_are_kept_and_the_middle_is_counted() {
    let bounds = Hygiene { room: 10, ..hygiene(Escapes::Strip) };
    let cleaned = clean(&bounds, &[b"0123456789abcdef"]);
    assert_eq!((cleaned.text.as_str(), cleaned.omitted, cleaned.bytes), ("01234bcdef", Some((5, 11)), 16));
    assert_eq!(clean(&bounds, &[b"0123456789"]).omitted, None);
    assert_eq!(clean(&Hygiene { room: 0, ..bounds }, &[b"abc"]).omitted, Some((0, 3)));
}

proptest! {
    #[test]
    fn pieces_make_no_difference(input in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0x1b), Just(b'['), Just(b'h'), Just(b'\r')], 0..200), cuts in proptest::collection::vec(0_usize..200, 0..6)) {
        for escapes in [Escapes::Keep, Escapes::Strip, Escapes::Show] {
            let whole = clean(&hygiene(escapes), &[&input]);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&input[from..cut]);
                from = cut;
            }
            pieces.push(&input[from..]);
            prop_assert_eq!(clean(&hygiene(escapes), &pieces), whole);
        }
    }

    #[test]
    fn nothing_that_is_obeyed_comes_through(input in proptest::collection::vec(any::<u8>(), 0..300)) {
        let text = clean(&hygiene(Escapes::Strip), &[&input]).text;
        prop_assert!(text.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()), "{:?}", text);
    }
}
