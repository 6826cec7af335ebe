//! Forms in pieces of every size.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use proptest::prelude::*;

use super::*;

const TYPE: &str = "multipart/form-data; boundary=\"B-1\"";

fn of_type(kind: &str) -> HeaderMap {
    HeaderMap::from_iter([(header::CONTENT_TYPE, kind.parse().unwrap())])
}

fn in_pieces(form: &[u8], size: usize) -> FormContent {
    let pieces: Vec<_> = form.chunks(size.max(1)).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    stream::iter(pieces).boxed()
}

fn form_of(fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut form = Vec::new();
    for (name, content) in fields {
        form.extend_from_slice(format!("--B-1\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n").as_bytes());
        form.extend_from_slice(b"Content-Type: application/octet-stream\r\n\r\n");
        form.extend_from_slice(content);
        form.extend_from_slice(b"\r\n");
    }
    form.extend_from_slice(b"--B-1--\r\n");
    form
}

/// All fields of a form whose pieces are all there.
fn read(content: FormContent) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut form = Form::new(&of_type(TYPE), content).unwrap();
    let mut fields = Vec::new();
    while let Some(field) = form.next().now_or_never().unwrap()? {
        let pieces: Vec<_> = field.content.collect().now_or_never().unwrap();
        let content: Result<Vec<_>, _> = pieces.into_iter().collect();
        fields.push((field.file_name.unwrap_or_default(), content?.concat()));
    }
    Ok(fields)
}

proptest! {
    /// Content made of what delimiters are made of, cut anywhere.
    #[test]
    fn content_comes_out_as_it_went_in(
        contents in prop::collection::vec("(\r|\n|\r\n|-|--|B|B-|\r\n--B-|\r\n--|x){0,40}", 0..4),
        size in 1usize..90,
    ) {
        let fields: Vec<_> = contents.iter().map(|content| ("a", content.clone().into_bytes())).collect();
        let expected: Vec<_> = fields.iter().map(|(name, content)| ((*name).to_owned(), content.clone())).collect();
        // What holds a whole delimiter is another form.
        prop_assume!(contents.iter().all(|content| !format!("{content}\r\n").contains("\r\n--B-1")));
        prop_assert_eq!(read(in_pieces(&form_of(&fields), size)).unwrap(), expected);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), size in 1usize..90) {
        let _ = read(in_pieces(&bytes, size));
        let _ = read(in_pieces(&[b"--B-1\r\n", &bytes[..]].concat(), size));
    }
}

#[test]
fn fields_that_nobody_reads_are_passed_over_and_the_rest_is_taken() {
    let mut bytes = b"before\r\n".to_vec();
    bytes.extend(form_of(&[("one", vec![1; 10_000]), ("two", vec![2; 10_000])]));
    bytes.extend_from_slice(b"after");
    let mut form = Form::new(&of_type(TYPE), in_pieces(&bytes, 100)).unwrap();
    for name in ["one", "two"] {
        assert_eq!(form.next().now_or_never().unwrap().unwrap().unwrap().file_name.unwrap(), name);
    }
    assert!(form.next().now_or_never().unwrap().unwrap().is_none());
    assert!(form.next().now_or_never().unwrap().unwrap().is_none());
}

#[test]
fn no_more_is_asked_for_than_is_given_on_and_nothing_is_copied() {
    let asked = Arc::new(AtomicUsize::new(0));
    let head = b"--B-1\r\nContent-Disposition: form-data; name=file\r\n\r\n";
    let block = Bytes::from(vec![7; 1 << 16]);
    let (counter, same) = (Arc::clone(&asked), block.clone());
    let endless = stream::repeat_with(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(same.clone())
    });
    let mut form = Form::new(&of_type(TYPE), stream::iter([Ok(Bytes::from_static(head))]).chain(endless).boxed()).unwrap();
    let mut content = form.next().now_or_never().unwrap().unwrap().unwrap().content;
    for given in 1..100 {
        let piece = content.next().now_or_never().unwrap().unwrap().unwrap();
        assert_eq!(piece.as_ptr(), block.as_ptr());
        assert_eq!(asked.load(Ordering::Relaxed), given);
    }
}

#[test]
fn broken_forms_say_what_is_wrong() {
    let whole = form_of(&[("one", b"content".to_vec())]);
    for end in 0..whole.len() - 4 {
        assert_eq!(read(in_pieces(&whole[..end], 7)).unwrap_err(), "it ends before its last boundary", "{end}");
    }
    assert_eq!(read(in_pieces(b"--B-1x\r\n\r\n", 7)).unwrap_err(), "a boundary is followed by something else than a new line");
    assert_eq!(read(in_pieces(b"--B-1\r\nA: \xff\r\n\r\n", 7)).unwrap_err(), "what a field says about itself is not UTF-8");
    let long = [b"--B-1\r\n".to_vec(), vec![b'a'; LARGEST_HEAD * 2]].concat();
    assert_eq!(read(in_pieces(&long, 999)).unwrap_err(), "a field says more than 16384 bytes about itself");
    let long = "b".repeat(LONGEST_BOUNDARY + 1);
    for wrong in [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "text/plain; boundary=a",
        &format!("multipart/form-data; boundary={long}"),
    ] {
        assert!(Form::new(&of_type(wrong), in_pieces(b"", 1)).is_none(), "{wrong}");
    }
}
