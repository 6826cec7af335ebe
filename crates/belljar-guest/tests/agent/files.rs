//! Single files: read, written, moved and refused as the user who asks.

use belljar_ports::{ByteStream, Guest, GuestError};
use belljar_types::{ByteRange, FileKind, GuestPath, WriteOptions};
use bytes::Bytes;
use futures_util::StreamExt;

use crate::harness::{TestAgent, user};

fn content(pieces: Vec<Bytes>) -> ByteStream {
    futures_util::stream::iter(pieces.into_iter().map(Ok)).boxed()
}

async fn read(agent: &TestAgent, path: &GuestPath, range: ByteRange) -> Result<Vec<u8>, GuestError> {
    let mut bytes = agent.client.read_file(path, range, None).await?.bytes;
    let mut all = Vec::new();
    while let Some(piece) = bytes.next().await {
        all.extend_from_slice(&piece?);
    }
    Ok(all)
}

#[tokio::test]
async fn files_are_written_in_place_and_read_by_range() {
    let agent = TestAgent::start().await;
    let path = agent.path("dir/odd \u{202e}näme\n");
    let options = WriteOptions { make_parents: true, ..WriteOptions::default() };
    let info =
        agent.client.write_file(&path, &options, content(vec![Bytes::from(vec![7; 300_000]), Bytes::from_static(b"end")])).await.unwrap();
    assert_eq!((info.size, info.kind, info.mode), (300_003, FileKind::File, 0o644));
    assert_eq!(read(&agent, &path, ByteRange { offset: 299_999, length: Some(3) }).await.unwrap(), b"\x07en");
    let patch = WriteOptions { offset: Some(1), ..WriteOptions::default() };
    agent.client.write_file(&path, &patch, content(vec![Bytes::from_static(b"patch")])).await.unwrap();
    assert_eq!(read(&agent, &path, ByteRange { offset: 0, length: Some(7) }).await.unwrap(), b"\x07patch\x07");
    assert_eq!(agent.client.stat(&path, None).await.unwrap().size, 300_003);
    assert!(!read(&agent, &GuestPath::new("/proc/self/status").unwrap(), ByteRange::default()).await.unwrap().is_empty());
}

#[tokio::test]
async fn nothing_of_what_was_there_before_stays_in_a_file_that_is_written_anew() {
    let agent = TestAgent::start().await;
    let path = agent.path("file");
    for before in [0, 1, 2, 5000, 20 << 20] {
        for after in [&b""[..], b"n", b"new"] {
            std::fs::write(agent.host_path("file"), vec![b'o'; before]).unwrap();
            let pieces = if after.is_empty() { vec![] } else { vec![Bytes::from_static(after)] };
            let info = agent.client.write_file(&path, &WriteOptions::default(), content(pieces)).await.unwrap();
            assert_eq!(
                (info.size, std::fs::read(agent.host_path("file")).unwrap()),
                (after.len() as u64, after.to_vec()),
                "{before} before"
            );
        }
        for came in [&b""[..], b"half"] {
            std::fs::write(agent.host_path("file"), vec![b'o'; before]).unwrap();
            let lost = GuestError::Lost { operation: "read the upload", source: std::io::Error::other("gone") };
            let broken = futures_util::stream::iter([Ok(Bytes::from_static(came)), Err(lost)]).boxed();
            agent.client.write_file(&path, &WriteOptions::default(), broken).await.unwrap_err();
            while std::fs::read(agent.host_path("file")).unwrap() != came {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        }
    }
}

#[tokio::test]
async fn the_kernel_judges_by_the_acting_user() {
    let agent = TestAgent::start().await;
    std::fs::set_permissions(agent.directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(agent.host_path("secret"), "x").unwrap();
    std::fs::set_permissions(agent.host_path("secret"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let nobody = user("nobody");
    let denied = agent.client.read_file(&agent.path("secret"), ByteRange::default(), Some(&nobody)).await.err().unwrap();
    assert!(matches!(denied, GuestError::Refused { errno: 13, .. }), "{denied:?}");
    assert!(read(&agent, &agent.path("secret"), ByteRange::default()).await.is_ok(), "other callers keep their own rights");
}
