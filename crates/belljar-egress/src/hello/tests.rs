//! Messages as clients send them, and as they are bent to look like another.

use proptest::prelude::*;

use super::*;

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &u16::try_from(content.len()).unwrap().to_be_bytes(), content].concat()
}

fn server_name(name: &[u8]) -> Vec<u8> {
    let length = u16::try_from(name.len()).unwrap();
    extension(SERVER_NAME, &[&(length + 3).to_be_bytes()[..], &[HOST_NAME], &length.to_be_bytes(), name].concat())
}

fn message(extensions: &[u8]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    body.extend(u16::try_from(extensions.len()).unwrap().to_be_bytes());
    body.extend(extensions);
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[CLIENT_HELLO, length[1], length[2], length[3]][..], &body].concat()
}

fn records(message: &[u8], size: usize) -> Vec<u8> {
    message
        .chunks(size)
        .flat_map(|part| [&[HANDSHAKE, 3, 1][..], &u16::try_from(part.len()).unwrap().to_be_bytes(), part].concat())
        .collect()
}

fn named(name: &str) -> Option<HostName> {
    HostName::from_wire(name.as_bytes())
}

#[test]
fn a_name_is_found_however_the_message_is_split() {
    let whole = message(&[extension(10, &[0, 2, 0, 29]), server_name(b"Allowed.test")].concat());
    for size in [1, 2, 5, 40, 1000] {
        let bytes = records(&whole, size);
        assert_eq!(parse(&bytes).unwrap().unwrap().name, named("allowed.test"), "records of {size}");
        for cut in 0..bytes.len() {
            assert_eq!(parse(&bytes[..cut]), Ok(None), "cut at {cut} of records of {size}");
        }
    }
}

#[test]
fn what_is_not_one_plain_name_is_none_or_refused() {
    let read = |extensions: &[u8]| parse(&records(&message(extensions), 1000));
    assert_eq!(read(&[]).unwrap().unwrap().name, None);
    assert_eq!(read(&[server_name(b"a.test"), server_name(b"b.test")].concat()), Err(NoHello::Malformed));
    assert_eq!(read(&server_name(b"a.test\0.b.test")), Err(NoHello::Malformed));
    assert_eq!(read(&server_name(b"127.0.0.1")), Err(NoHello::Malformed));
    assert!(read(&[server_name(b"a.test"), extension(ENCRYPTED_HELLO, &[0])].concat()).unwrap().unwrap().encrypted);
    assert_eq!(parse(b"GET / HTTP/1.1\r\n"), Err(NoHello::NotTls));
    assert_eq!(parse(&[HANDSHAKE, 3, 1, 0, 4, 2, 0, 0, 0]), Err(NoHello::Malformed), "another message");
    assert_eq!(parse(&[HANDSHAKE, 3, 1, 0, 0]), Err(NoHello::Malformed), "an empty record");
    assert_eq!(parse(&[HANDSHAKE, 3, 1, 0x40, 0, CLIENT_HELLO, 1, 0x10, 0]), Err(NoHello::TooLong));
}

#[tokio::test]
async fn it_is_read_byte_by_byte_and_every_byte_is_kept() {
    let bytes = records(&message(&server_name(b"a.test")), 20);
    let (mut client, mut server) = tokio::io::duplex(1);
    let sent = bytes.clone();
    tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut client, &sent).await });
    let (hello, read) = read_hello(&mut server).await.unwrap();
    assert_eq!((hello.name, read), (named("a.test"), bytes));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300), kept in 0usize..80) {
        drop(parse(&bytes));
        let mut bent = records(&message(&server_name(b"a.test")), 30);
        bent.truncate(kept);
        bent.extend(bytes);
        drop(parse(&bent));
    }
}
