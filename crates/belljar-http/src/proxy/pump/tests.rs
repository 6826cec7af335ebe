//! Over byte streams in memory: programs that do not listen, or not yet, and clients that leave.

use async_trait::async_trait;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::*;

const KIB: usize = 1 << 10;
/// Far longer than anything here takes: the clock goes on by itself when nothing else does.
const FOR_EVER: Duration = Duration::from_secs(3600);

struct From(ReadHalf<DuplexStream>);
struct To(WriteHalf<DuplexStream>);

fn lost(source: std::io::Error) -> GuestError {
    GuestError::Lost { operation: "test", source }
}

#[async_trait]
impl GuestReader for From {
    async fn read(&mut self) -> Result<Option<Bytes>, GuestError> {
        let mut bytes = BytesMut::with_capacity(4 * KIB);
        let count = self.0.read_buf(&mut bytes).await.map_err(lost)?;
        Ok((count > 0).then(|| bytes.freeze()))
    }
}

#[async_trait]
impl GuestWriter for To {
    async fn write(&mut self, bytes: Bytes) -> Result<(), GuestError> {
        self.0.write_all(&bytes).await.map_err(lost)
    }

    async fn finish(&mut self) -> Result<(), GuestError> {
        self.0.shutdown().await.map_err(lost)
    }
}

/// A client, a program, and what tells when the sandbox is not in use any more.
fn joined() -> (ClientEnd, DuplexStream, oneshot::Receiver<()>) {
    let (near, program) = tokio::io::duplex(16 * KIB);
    let (from, to) = tokio::io::split(near);
    let (in_use, free) = oneshot::channel();
    (pump(GuestConnection::new(From(from), To(to)), in_use), program, free)
}

#[tokio::test(start_paused = true)]
async fn a_program_that_never_reads_keeps_nothing_once_its_client_has_gone() {
    let (mut client, mut program, mut free) = joined();
    let fill = async { while client.write_all(&[1; KIB]).await.is_ok() {} };
    assert!(timeout(Duration::from_secs(1), fill).await.is_err(), "the client waits for the program");
    program.write_all(b"still here").await.unwrap();
    let mut said = [0; 10];
    timeout(FOR_EVER, client.read_exact(&mut said)).await.expect("the program is heard although it does not listen").unwrap();
    assert!(timeout(FOR_EVER, &mut free).await.is_err(), "a client that is there may wait as long as it likes");
    drop(client);
    let freed = timeout(FOR_EVER, free).await.expect("the connection ends with its client");
    assert!(freed.is_err(), "what was held was dropped");
    let mut rest = Vec::new();
    program.read_to_end(&mut rest).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_program_may_say_much_before_it_listens_again() {
    let (client, mut program, free) = joined();
    const SENT: usize = 256 * KIB;
    const SAID: usize = 4096 * KIB;
    let program = tokio::spawn(async move {
        let mut piece = vec![0; 64 * KIB];
        for _ in 0..SENT / piece.len() {
            program.read_exact(&mut piece).await.unwrap();
            program.write_all(&vec![7; SAID]).await.unwrap();
        }
        assert_eq!(program.read(&mut piece).await.unwrap(), 0, "the client's end arrives");
    });
    let (mut from, mut to) = tokio::io::split(client);
    let send = async {
        to.write_all(&vec![1; SENT]).await.unwrap();
        to.shutdown().await.unwrap();
    };
    let mut heard = Vec::new();
    let hear = from.read_to_end(&mut heard);
    let (_, heard_well) = timeout(FOR_EVER, async { tokio::join!(send, hear) }).await.expect("neither waits for the other for ever");
    assert_eq!(heard_well.unwrap(), SAID * SENT / (64 * KIB));
    program.await.unwrap();
    assert!(timeout(FOR_EVER, free).await.expect("all is said").is_err());
}

#[tokio::test(start_paused = true)]
async fn the_last_words_of_a_client_arrive() {
    let (mut client, mut program, free) = joined();
    client.write_all(&[1; 40 * KIB]).await.unwrap();
    drop(client);
    let mut heard = Vec::new();
    timeout(FOR_EVER, program.read_to_end(&mut heard)).await.unwrap().unwrap();
    assert_eq!(heard.len(), 40 * KIB);
    assert!(timeout(FOR_EVER, free).await.expect("a silent program is not waited for").is_err());
}
