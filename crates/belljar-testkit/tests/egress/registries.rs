//! Registries of packages that are files, served as they are; `tests/lab/registries.py` makes them.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// Below which they are.
const DOMAIN: &str = ".registry.test";

/// All files by host and path.
fn files() -> &'static HashMap<String, Vec<u8>> {
    static FILES: OnceLock<HashMap<String, Vec<u8>>> = OnceLock::new();
    FILES.get_or_init(|| {
        let place = tempfile::tempdir().unwrap();
        let maker = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lab/registries.py");
        assert!(Command::new("python3").arg(maker).arg(place.path()).status().unwrap().success(), "registries can be made");
        let mut files = HashMap::new();
        take(place.path(), "", &mut files);
        files
    })
}

fn take(directory: &Path, name: &str, files: &mut HashMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            take(&entry.path(), &name, files);
        } else {
            files.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
}

pub(crate) fn is_one(name: &str) -> bool {
    name.ends_with(DOMAIN)
}

/// Answers a request to one of them. `false` if it is for somebody else.
pub(crate) fn answer(stream: &mut impl Write, lines: &[String]) -> io::Result<bool> {
    let host = lines.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("host: ").map(str::to_owned));
    let Some(host) = host.map(|host| host.split(':').next().unwrap_or_default().to_owned()).filter(|host| is_one(host)) else {
        return Ok(false);
    };
    let target = lines.first().and_then(|line| line.split(' ').nth(1)).unwrap_or("/");
    let path = target.split('?').next().unwrap_or_default().replace("/./", "/");
    let path = path.trim_end_matches('/');
    let found =
        ["", "/index.html", "/index.json"].iter().find_map(|end| files().get(&format!("/{host}{path}{end}")).map(|body| (end, body)));
    let (status, kind, body) = match found {
        Some((&"/index.html", body)) => ("200 OK", "text/html", body.as_slice()),
        Some((&"/index.json", body)) => ("200 OK", "application/json", body.as_slice()),
        Some((_, body)) => ("200 OK", "application/octet-stream", body.as_slice()),
        None => ("404 Not Found", "text/plain", b"nothing here\n".as_slice()),
    };
    write!(stream, "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len())?;
    stream.write_all(body)?;
    stream.flush()?;
    Ok(true)
}
