//! Chores that keep the house rules: `cargo xtask tidy` looks at the tree, `cargo xtask licenses` at what it depends on.
//!
//! A rule that is only remembered is broken within a month. Each rule here names the line, says why it exists and what to do.

mod cargo;
mod finding;
mod rust_text;
mod tidy;
mod tree;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask <tidy|licenses> [--root DIRECTORY]

  tidy       check layering, file sizes, module docs, names, leftovers, papers and licences
  licenses   only the licences of everything that is linked in";

/// What went wrong while looking, as against what was found.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(findings) if findings.is_empty() => {
            say(&mut std::io::stdout(), "tidy: nothing to complain about");
            ExitCode::SUCCESS
        }
        Ok(findings) => {
            for finding in &findings {
                say(&mut std::io::stdout(), &finding.to_string());
            }
            say(&mut std::io::stderr(), &format!("tidy: {} to put right", findings.len()));
            ExitCode::FAILURE
        }
        Err(failure) => {
            say(&mut std::io::stderr(), &format!("xtask: {failure}"));
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<Vec<finding::Finding>, Failure> {
    let mut arguments = std::env::args().skip(1);
    let task = arguments.next().ok_or(USAGE)?;
    let root = match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => repository_root()?,
        (Some("--root"), Some(root)) => PathBuf::from(root),
        _ => return Err(USAGE.into()),
    };
    match task.as_str() {
        "tidy" => tidy::all(&root),
        "licenses" => tidy::licences(&root),
        _ => Err(USAGE.into()),
    }
}

/// Where cargo says this program's manifest is, so that it works from any directory; the current directory without cargo.
fn repository_root() -> Result<PathBuf, Failure> {
    match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(manifest) => Ok(PathBuf::from(manifest).parent().ok_or("xtask has no parent directory")?.to_owned()),
        None => Ok(std::env::current_dir()?),
    }
}

/// A closed pipe (`| head`) is no reason to fail.
fn say(to: &mut dyn Write, text: &str) {
    let _ = writeln!(to, "{text}");
}
