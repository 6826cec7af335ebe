//! Pages of the internet that are there for attacks: one that leads elsewhere, one that is small on the way and huge when it is unpacked, one that says
//! what it was told, a WebSocket that gives back what it hears, and just enough of HTTP/2 to write down for whom each stream is.

use std::io::{self, Read, Write};
use std::sync::OnceLock;

use super::Log;

/// What the bomb is when it is unpacked, and what it is on the way at most.
pub(crate) const UNPACKED: u64 = 256 << 20;
pub(crate) const PACKED: u64 = 1 << 20;

/// Answers a request for one of them. `false` if it is for another page.
pub(super) fn answer(stream: &mut (impl Read + Write), lines: &[String]) -> io::Result<bool> {
    let path = lines.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    match path.trim_start_matches("/v1") {
        "/elsewhere" => stream.write_all(b"HTTP/1.1 302 Found\r\nLocation: https://evil.test/v1/taken\r\nContent-Length: 0\r\n\r\n")?,
        "/bomb" => {
            let bytes = bomb();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", bytes.len())?;
            stream.write_all(bytes)?;
        }
        "/echo" => {
            let text = lines.join("\n");
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())?;
        }
        _ => return Ok(false),
    }
    stream.flush()?;
    Ok(true)
}

fn bomb() -> &'static [u8] {
    static BOMB: OnceLock<Vec<u8>> = OnceLock::new();
    BOMB.get_or_init(|| {
        let script = format!(
            "import sys, zlib\nc = zlib.compressobj(9, zlib.DEFLATED, 31)\nfor n in range({}): sys.stdout.buffer.write(c.compress(bytes(1 << 20)))\nsys.stdout.buffer.write(c.flush())",
            UNPACKED >> 20
        );
        let made = std::process::Command::new("python3").args(["-c", &script]).output().unwrap();
        assert!(made.status.success() && u64::try_from(made.stdout.len()).unwrap() < PACKED, "a bomb can be made");
        made.stdout
    })
}

/// Whether somebody wants to say something else than HTTP from here on.
pub(super) fn is_websocket(lines: &[String]) -> bool {
    lines.iter().any(|line| line.eq_ignore_ascii_case("upgrade: websocket"))
}

/// Gives back what it is told, without the frames that only the two ends would read, and writes down when that ends.
pub(super) fn give_back(stream: &mut (impl Read + Write), log: &Log, at: &str) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")?;
    stream.flush()?;
    let mut said = [0; 1024];
    while let Ok(count @ 1..) = stream.read(&mut said) {
        stream.write_all(&said[..count])?;
        stream.flush()?;
    }
    log.lock().unwrap().push(format!("cut {at}"));
    Ok(())
}

/// Whether somebody speaks HTTP/2 from here on.
pub(super) fn is_second(lines: &[String]) -> bool {
    lines.first().is_some_and(|line| line == "PRI * HTTP/2.0")
}

/// Writes down each stream's headers, which are not squeezed by whoever tests, and answers each with 200.
pub(super) fn second(stream: &mut (impl Read + Write), log: &Log, at: &str) -> io::Result<()> {
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    stream.read_exact(&mut [0; 6])?;
    stream.write_all(&[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0])?;
    stream.flush()?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let mut payload = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
        stream.read_exact(&mut payload)?;
        match head[3] {
            HEADERS => {
                let text = String::from_utf8_lossy(&payload).replace(|c: char| c.is_control(), " ");
                log.lock().unwrap().push(format!("h2 {at} stream {} {text}", head[8]));
                stream.write_all(&[0, 0, 1, HEADERS, 5, 0, 0, 0, head[8], 0x88])?;
            }
            SETTINGS if head[4] == 0 => stream.write_all(&[0, 0, 0, SETTINGS, 1, 0, 0, 0, 0])?,
            _ => {}
        }
        stream.flush()?;
    }
}
