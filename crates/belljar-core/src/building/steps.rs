//! What each step does inside its sandbox. Everything that a client chose is an argument of a fixed script, never a part of it.

use std::time::Duration;

use belljar_ports::{ByteStream, GuestError};
use belljar_types::{
    BuildFailure, BuildPlace, BuildStep, FilesHash, GuestPath, LogLevel, OutputEvent, Overflow, ProcessSpec, Sandbox, SpoolPolicy,
    StreamKind, Termination, UserName, WriteOptions, escape_untrusted,
};
use futures_util::StreamExt;

use super::log::Lines;
use super::work::{Site, failed};
use crate::starting::SHELL;
use crate::{Session, chain};

/// How long one command may take.
const COMMAND_WITHIN: Duration = Duration::from_secs(3600);
/// The most that a command may be long.
const COMMAND_MAX: usize = 64 << 10;
const ARCHIVE: &str = "/tmp/.belljar-copy";

/// Unpacks an archive and puts one thing of it where it belongs: a directory is merged into what is there, anything else replaces it.
/// Arguments: archive, source, destination, owner, mode, directory (or empty), user whose home it is then.
const COPY: &str = r#"
set -e
archive=$1 source=$2 target=$3 owner=$4 mode=$5 workdir=$6
if [ -z "$workdir" ]; then
    while IFS=: read -r name _ _ _ _ home _; do
        if [ "$name" = "$7" ]; then workdir=$home; fi
    done < /etc/passwd
fi
case $target in
    /*) ;;
    *) target=${workdir:-/}/$target ;;
esac
unpacked=$archive.d/content
mkdir -p "$unpacked"
case $(od -An -tx1 -N2 "$archive" | tr -d ' \n') in
    1f8b) tar -x -z -f "$archive" -C "$unpacked" ;;
    *) tar -x -f "$archive" -C "$unpacked" ;;
esac
rm -f "$archive"
entry=$unpacked/$source
if [ ! -e "$entry" ] && [ ! -L "$entry" ]; then
    echo "the files that were sent have no $source" >&2
    exit 1
fi
chown -R -h "$owner" "$entry"
if [ -n "$mode" ] && [ ! -L "$entry" ]; then chmod -R "$mode" "$entry"; fi
if [ -d "$entry" ] && [ ! -L "$entry" ]; then
    if [ ! -d "$target" ]; then
        mkdir -p "$target"
        chown "$owner" "$target"
    fi
    keep=
    if tar --version 2>/dev/null | grep -q GNU; then keep='--keep-directory-symlink --no-overwrite-dir'; fi
    (cd "$entry" && tar -c -f - .) | tar -x $keep -f - -C "$target"
else
    case $target in
        */) mkdir -p "$target" ;;
        *) mkdir -p "$(dirname "$target")" ;;
    esac
    mv -f "$entry" "$target"
fi
rm -rf "$archive.d"
"#;

/// Makes a directory; what did not exist of the way to it is the user's. Arguments: directory, user.
const WORKDIR: &str = r#"
set -e
if [ -d "$1" ]; then exit 0; fi
first=$1
above=$(dirname "$1")
while [ ! -d "$above" ]; do
    first=$above
    above=$(dirname "$above")
done
mkdir -p "$1"
chown -R "$2" "$first"
"#;

/// Adds a user if there is none of that name.
const USER: &str = r#"
if id -u "$1" > /dev/null 2>&1; then exit 0; fi
if command -v useradd > /dev/null; then exec useradd --create-home --shell /bin/bash "$1"; fi
exec adduser -D "$1"
"#;

/// A step in one line, as people write it.
pub(super) fn words(step: &BuildStep) -> String {
    let what = match step {
        BuildStep::Run { command, user: None } => command.clone(),
        BuildStep::Run { command, user: Some(user) } => format!("({user}) {command}"),
        BuildStep::Copy { source, destination, .. } => format!("{source} {destination}"),
        BuildStep::Env { set } => set.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" "),
        BuildStep::Workdir { path } => path.clone(),
        BuildStep::User { name } => name.to_string(),
    };
    format!("{} {}", step.kind(), escape_untrusted(what.as_bytes()))
}

/// Why no sandbox would do this step.
pub(super) fn refuse(step: &BuildStep) -> Option<String> {
    let texts: Vec<&str> = match step {
        BuildStep::Run { command, .. } => vec![command],
        BuildStep::Copy { source, destination, owner, mode, .. } => {
            vec![source, destination, owner.as_deref().unwrap_or_default(), mode.as_deref().unwrap_or_default()]
        }
        BuildStep::Workdir { path } => vec![path],
        BuildStep::Env { .. } | BuildStep::User { .. } => return None,
    };
    let bad = |text: &&str| text.len() > COMMAND_MAX || text.contains('\0');
    texts.iter().any(bad).then(|| format!("{} takes at most {COMMAND_MAX} bytes, without NUL", step.kind()))
}

/// Whether a step can change files. Those that everybody has need no sandbox.
pub(super) fn writes(step: &BuildStep) -> bool {
    match step {
        BuildStep::Run { .. } | BuildStep::Copy { .. } => true,
        BuildStep::Env { .. } => false,
        BuildStep::Workdir { path } => path != "/",
        BuildStep::User { name } => !matches!(name.as_str(), "root" | UserName::DEFAULT),
    }
}

/// A path from the root, without `.` and `..`.
pub(super) fn absolute(from: Option<&str>, path: &str) -> String {
    let joined = if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", from.unwrap_or("/")) };
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The part of a pattern before its first wildcard.
fn before_wildcards(source: &str) -> String {
    let plain = source.split('/').take_while(|part| !part.contains(['*', '?', '[', '{']));
    let path = plain.filter(|part| !matches!(*part, "" | ".")).collect::<Vec<_>>().join("/");
    if path.is_empty() { ".".to_owned() } else { path }
}

pub(super) async fn perform(site: &Site<'_>, place: BuildPlace, sandbox: &Sandbox, step: &BuildStep) -> Result<(), BuildFailure> {
    let opened = site.service.open(site.caller, &sandbox.id).await;
    let session = opened.map_err(|error| failed(place, chain(&error)))?;
    match step {
        BuildStep::Run { command, user } => {
            let what = format!("failed to run command '{}'", escape_untrusted(command.as_bytes()));
            let spec = ProcessSpec { user: user.clone(), ..ProcessSpec::new(["/bin/sh", "-c", SHELL, "run", command]) };
            run(site, place, &session, spec, &what).await?;
        }
        BuildStep::Copy { files, source, destination, owner, mode } => {
            send(site, place, &session, files).await?;
            let present = format!("{0}:{0}", site.user());
            let owner = owner.as_ref().filter(|owner| !owner.is_empty());
            let owner = owner.map_or(present, |owner| if owner.contains(':') { owner.clone() } else { format!("{owner}:{owner}") });
            let (source, mode) = (before_wildcards(source), mode.as_deref().unwrap_or_default());
            let workdir = site.defaults.workdir.as_deref().unwrap_or_default();
            let argv = ["/bin/sh", "-c", COPY, "copy", ARCHIVE, &source, destination, &owner, mode, workdir, site.user()];
            run(site, place, &session, as_root(&argv), "failed to copy files").await?;
        }
        BuildStep::Workdir { path } => {
            let path = absolute(site.defaults.workdir.as_deref(), path);
            run(site, place, &session, as_root(&["/bin/sh", "-c", WORKDIR, "workdir", &path, site.user()]), "failed to make the directory")
                .await?;
        }
        BuildStep::User { name } => {
            run(site, place, &session, as_root(&["/bin/sh", "-c", USER, "user", name.as_str()]), "failed to add the user").await?;
        }
        BuildStep::Env { .. } => {}
    }
    // Whatever the sandbox's own kernel still holds back; an image without the command has to do without.
    if let Ok((_, output)) = session.start_attached(&as_root(&["sync"])).await {
        output.for_each(|_| std::future::ready(())).await;
    }
    Ok(())
}

fn as_root(argv: &[&str]) -> ProcessSpec {
    ProcessSpec { user: "root".parse().ok(), cwd: GuestPath::new("/").ok(), ..ProcessSpec::new(argv) }
}

/// Runs a process to its end and says what it says.
async fn run(site: &Site<'_>, place: BuildPlace, session: &Session, spec: ProcessSpec, what: &str) -> Result<(), BuildFailure> {
    let spool = SpoolPolicy { overflow: Overflow::Slow, ..SpoolPolicy::default() };
    let spec = ProcessSpec { deadline: Some(COMMAND_WITHIN), spool, ..spec };
    let mut output = match session.start_attached(&spec).await {
        Ok((_, output)) => output,
        Err(error) => return Err(not_started(place, what, spec.user.as_ref(), &error)),
    };
    let (mut stdout, mut stderr) = (Lines::default(), Lines::default());
    while let Some(event) = output.next().await {
        match event {
            Ok(OutputEvent::Data { stream: StreamKind::Stdout, bytes, .. }) => {
                stdout.take(&bytes, |line| site.say(LogLevel::Info, place, line));
            }
            Ok(OutputEvent::Data { stream: StreamKind::Stderr, bytes, .. }) => {
                stderr.take(&bytes, |line| site.say(LogLevel::Warn, place, line));
            }
            Ok(OutputEvent::Gap { .. }) => {}
            Ok(OutputEvent::Exit(exit)) => {
                stdout.flush(|line| site.say(LogLevel::Info, place, line));
                stderr.flush(|line| site.say(LogLevel::Warn, place, line));
                return match exit.termination {
                    Termination::Exited(0) => Ok(()),
                    Termination::Exited(code) => Err(failed(place, format!("{what}: exit status {code}"))),
                    Termination::Signaled(signal) => Err(failed(place, format!("{what}: signal {signal}"))),
                };
            }
            Err(error) => return Err(failed(place, format!("{what}: {}", chain(&session.explain(error).await)))),
        }
    }
    Err(failed(place, format!("{what}: the sandbox ended")))
}

fn not_started(place: BuildPlace, what: &str, user: Option<&UserName>, error: &GuestError) -> BuildFailure {
    let unknown = matches!(error, GuestError::Refused { errno: 0, message, .. } if message.starts_with("the sandbox has no user "));
    let user = user.filter(|_| unknown).map(ToString::to_string);
    let message = match &user {
        Some(user) => format!("{what}: the sandbox has no user {user}"),
        None => format!("{what}: {}", chain(error)),
    };
    BuildFailure { unknown_user: user, ..failed(place, message) }
}

/// Sends an archive into the sandbox, where it is unpacked.
async fn send(site: &Site<'_>, place: BuildPlace, session: &Session, files: &FilesHash) -> Result<(), BuildFailure> {
    let found = site.service.shared.templates.files(&site.build.project, files).await.map_err(|error| failed(place, chain(&error)))?;
    let content = found.ok_or_else(|| failed(place, format!("failed to copy files: no files {files} were sent; send them first")))?;
    let lost = |source| GuestError::Lost { operation: "read the files that were sent", source };
    let content: ByteStream = Box::pin(content.map(move |piece| piece.map_err(lost)));
    let path = GuestPath::new(ARCHIVE).map_err(|invalid| failed(place, invalid.to_string()))?;
    let options = WriteOptions { user: "root".parse().ok(), ..WriteOptions::default() };
    session
        .write_file(&path, &options, content)
        .await
        .map_err(|error| failed(place, format!("failed to copy files: {}", chain(&error))))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_from_the_present_directory() {
        let cases = [(None, "app", "/app"), (Some("/srv"), "app/./x", "/srv/app/x"), (Some("/srv"), "/x/../y", "/y"), (None, "../..", "/")];
        for (from, path, expected) in cases {
            assert_eq!(absolute(from, path), expected, "{path}");
        }
    }

    #[test]
    fn what_is_copied_is_what_stands_before_the_wildcard() {
        for (source, expected) in [("folder/*", "folder"), ("*", "."), (".", "."), ("a/b.txt", "a/b.txt"), ("./a/**/x", "a"), ("a/", "a")] {
            assert_eq!(before_wildcards(source), expected, "{source}");
        }
    }
}
