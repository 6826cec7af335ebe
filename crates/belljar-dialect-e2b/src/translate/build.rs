//! Builds in E2B's words and in the core's.

use belljar_core::{BuildBase, BuildPlan, BuildView, PartialLimits, PlannedStep};
use belljar_http::moment;
use belljar_types::{
    BuildFailure, BuildLog, BuildPlace, BuildState, BuildStep, LogLevel, Network, ReadyCheck, StartUp, TemplateName, UserName,
};

use super::template_name;
use crate::dto::{BuildStart, BuildStatus, LogEntry, Reason, StepDto};
use crate::errors::ApiError;

/// How long E2B waits for what a template starts.
const READY_WITHIN_SECONDS: u64 = 300;
/// Images of E2B's own that are templates here.
const OWN_IMAGES: [(&str, &str); 2] = [("e2bdev/base", "base"), ("e2bdev/code-interpreter", "code-interpreter-v1")];

/// A name and its tags, as the names of templates: the tag `default` is the plain name.
pub(crate) fn names(name: &str, tags: &[String]) -> Result<Vec<TemplateName>, ApiError> {
    let (plain, own) = name.split_once(':').map_or((name, None), |(plain, tag)| (plain, Some(tag)));
    let tags: Vec<&str> = own.into_iter().chain(tags.iter().map(String::as_str)).collect();
    let tags = if tags.is_empty() { vec!["default"] } else { tags };
    let mut names = Vec::new();
    for tag in tags {
        let name = tagged(plain, tag)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// A template's name with a tag.
pub(crate) fn tagged(name: &str, tag: &str) -> Result<TemplateName, ApiError> {
    let refused =
        || ApiError::bad_request(format!("invalid tag or name: '{}'", belljar_types::escape_untrusted(format!("{name}:{tag}").as_bytes())));
    if tag.is_empty() || tag.contains([':', '/']) || name.is_empty() {
        return Err(refused());
    }
    template_name(&format!("{name}:{tag}")).map_err(|_| refused())
}

/// A template's tag, as E2B calls it.
pub(crate) fn tag_of(name: &TemplateName) -> &str {
    name.tag().unwrap_or("default")
}

pub(crate) fn plan(start: BuildStart) -> Result<BuildPlan, ApiError> {
    if start.from_image_registry.is_some() {
        return Err(ApiError::unsupported("a registry's credentials in a build (the operator sets them)"));
    }
    let (base, user) = match (start.from_image, start.from_template) {
        (Some(image), None) => base_of_image(image)?,
        (None, Some(template)) => (BuildBase::Template(template_name(&template)?), None),
        _ => return Err(ApiError::bad_request("a build needs either fromImage or fromTemplate")),
    };
    let steps = start.steps.into_iter().enumerate().map(|(at, step)| planned(at + 1, step)).collect::<Result<_, _>>()?;
    let said = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let (command, ready) = (said(start.start_cmd), said(start.ready_cmd).map(ready_check));
    let start_up = (command.is_some() || ready.is_some()).then_some(StartUp {
        command,
        ready,
        within_seconds: Some(READY_WITHIN_SECONDS),
        warm: true,
    });
    Ok(BuildPlan {
        base,
        user,
        steps,
        start: start_up,
        force: start.force,
        limits: PartialLimits::default(),
        isolation: None,
        network: Network::Open,
    })
}

/// On an image E2B begins as `user`, whoever the image's own user is.
fn base_of_image(image: String) -> Result<(BuildBase, Option<UserName>), ApiError> {
    let plain = image.rsplit_once(':').map_or(image.as_str(), |(plain, tag)| if tag.contains('/') { image.as_str() } else { plain });
    match OWN_IMAGES.iter().find(|(own, _)| *own == plain) {
        Some((_, template)) => Ok((BuildBase::Template(template_name(template)?), None)),
        None => Ok((BuildBase::Image(image), UserName::DEFAULT.parse().ok())),
    }
}

fn planned(number: usize, step: StepDto) -> Result<PlannedStep, ApiError> {
    let refused = |why: &str| ApiError::bad_request(format!("step {number}: {why}"));
    let mut args = step.args.into_iter();
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let user = |text: Option<String>| given(text).map(|name| name.parse::<UserName>()).transpose();
    let step_of = match step.kind.to_ascii_uppercase().as_str() {
        "RUN" => {
            let command = args.next().ok_or_else(|| refused("RUN requires command argument"))?;
            BuildStep::Run { command, user: user(args.next())? }
        }
        "COPY" => {
            let (Some(source), Some(destination)) = (args.next(), args.next()) else {
                return Err(refused("COPY requires a local path and a container path argument"));
            };
            let files = given(step.files_hash).ok_or_else(|| refused("COPY requires files hash to be set"))?.parse()?;
            BuildStep::Copy { files, source, destination, owner: given(args.next()), mode: given(args.next()) }
        }
        "ENV" => {
            let args: Vec<String> = args.collect();
            if args.is_empty() || !args.len().is_multiple_of(2) {
                return Err(refused("ENV requires both a key and value arguments"));
            }
            let pairs = args.chunks_exact(2).filter_map(|pair| Some((pair.first()?.clone(), pair.last()?.clone())));
            BuildStep::Env { set: pairs.collect() }
        }
        "WORKDIR" => BuildStep::Workdir { path: given(args.next()).ok_or_else(|| refused("WORKDIR requires a path argument"))? },
        "USER" => BuildStep::User { name: user(args.next())?.ok_or_else(|| refused("USER requires a username argument"))? },
        _ => return Err(refused("the types of steps are RUN, COPY, ENV, WORKDIR and USER")),
    };
    Ok(PlannedStep { step: step_of, force: step.force.unwrap_or(false) })
}

/// The SDK's check of a port is one; whatever else it is, a shell runs it.
fn ready_check(command: String) -> ReadyCheck {
    let port = command.strip_prefix(r#"[ -n "$(ss -Htuln sport = :"#).and_then(|rest| rest.strip_suffix(r#")" ]"#));
    match port.and_then(|port| port.parse().ok()).filter(|port| *port != 0) {
        Some(port) => ReadyCheck::Port(port),
        None => ReadyCheck::Command(command),
    }
}

pub(crate) fn status(view: &BuildView, template_id: &str, least: LogLevel) -> BuildStatus {
    let record = &view.record;
    let shown = view.log.iter().filter(|line| line.level >= least);
    BuildStatus {
        template_id: template_id.to_owned(),
        build_id: record.id.to_string(),
        status: match record.state {
            BuildState::Waiting => "waiting",
            BuildState::Building => "building",
            BuildState::Ready => "ready",
            BuildState::Failed => "error",
        },
        logs: shown.clone().map(|line| line.text.clone()).collect(),
        log_entries: shown.map(log_entry).collect(),
        reason: record.failure.as_ref().map(|failure| Reason {
            message: message(failure),
            step: place(failure.place),
            log_entries: Vec::new(),
        }),
    }
}

pub(crate) fn log_entry(line: &BuildLog) -> LogEntry {
    LogEntry { timestamp: moment(line.at), message: line.text.clone(), level: level_name(line.level), step: place(line.place) }
}

fn level_name(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    }
}

pub(crate) fn level(name: Option<&str>) -> LogLevel {
    match name {
        Some("info") => LogLevel::Info,
        Some("warn") => LogLevel::Warn,
        Some("error") => LogLevel::Error,
        _ => LogLevel::Debug,
    }
}

fn place(place: BuildPlace) -> String {
    match place {
        BuildPlace::Base => "base".to_owned(),
        BuildPlace::Step(number) => number.to_string(),
        BuildPlace::Finish => "finalize".to_owned(),
    }
}

/// Clients compare this text.
fn message(failure: &BuildFailure) -> String {
    match &failure.unknown_user {
        Some(user) => {
            let what = failure.message.split_once(": the sandbox has no user").map_or(failure.message.as_str(), |(what, _)| what);
            format!("{what}: command failed: unauthenticated: invalid username: '{user}'")
        }
        None => failure.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned_of(json: &str) -> Result<BuildPlan, ApiError> {
        plan(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn steps_are_translated_and_bad_ones_named() {
        let steps = r#"[{"type":"RUN","args":["ls"]},{"type":"RUN","args":["id","root"],"force":true},{"type":"ENV","args":["A","b","C","d"]},
            {"type":"WORKDIR","args":["/app"]},{"type":"USER","args":["root"]},
            {"type":"COPY","args":["a","b","",""],"filesHash":"0123456789abcdef"}]"#;
        let plan = planned_of(&format!(r#"{{"fromTemplate":"base","steps":{steps}}}"#)).unwrap();
        assert_eq!(plan.base, BuildBase::Template("base".parse().unwrap()));
        let kinds: Vec<&str> = plan.steps.iter().map(|planned| planned.step.kind()).collect();
        assert_eq!(kinds, ["RUN", "RUN", "ENV", "WORKDIR", "USER", "COPY"]);
        assert_eq!(plan.steps.iter().map(|planned| planned.force).collect::<Vec<_>>(), [false, true, false, false, false, false]);
        for bad in [
            r#"{"steps":[]}"#,
            r#"{"fromTemplate":"base","fromImage":"x","steps":[]}"#,
            r#"{"fromTemplate":"base","steps":[{"type":"RUN","args":[]}]}"#,
            r#"{"fromTemplate":"base","steps":[{"type":"COPY","args":["a","b"]}]}"#,
            r#"{"fromTemplate":"base","steps":[{"type":"ENV","args":["A"]}]}"#,
            r#"{"fromTemplate":"base","steps":[{"type":"SHELL","args":["A"]}]}"#,
        ] {
            assert!(planned_of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn e2bs_own_image_is_the_base_template_and_others_begin_as_user() {
        for image in ["e2bdev/base", "e2bdev/base:latest"] {
            assert_eq!(planned_of(&format!(r#"{{"fromImage":"{image}"}}"#)).unwrap().base, BuildBase::Template("base".parse().unwrap()));
        }
        let plan = planned_of(r#"{"fromImage":"127.0.0.1:5000/ubuntu:22.04"}"#).unwrap();
        assert_eq!(plan.base, BuildBase::Image("127.0.0.1:5000/ubuntu:22.04".to_owned()));
        assert_eq!(plan.user.unwrap().as_str(), "user");
    }

    #[test]
    fn a_check_of_a_port_is_one() {
        let ready = |command: &str| ready_check(command.to_owned());
        assert_eq!(ready(r#"[ -n "$(ss -Htuln sport = :8000)" ]"#), ReadyCheck::Port(8000));
        assert_eq!(ready("sleep 5"), ReadyCheck::Command("sleep 5".to_owned()));
    }

    #[test]
    fn names_and_tags_make_names() {
        let of = |name: &str, tags: &[&str]| {
            let tags: Vec<String> = tags.iter().map(ToString::to_string).collect();
            names(name, &tags).map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(of("x", &[]).unwrap(), ["x"]);
        assert_eq!(of("x:v1", &["v2", "v1"]).unwrap(), ["x:v1", "x:v2"]);
        assert_eq!(of("x", &["default"]).unwrap(), ["x"]);
        for (name, tags) in [("", &[][..]), ("x:", &[]), ("x", &[":bad"]), ("x", &["x:"]), (":v1", &[])] {
            assert!(of(name, tags).is_err(), "{name} {tags:?}");
        }
    }

    #[test]
    fn a_user_that_is_not_there_is_told_as_e2b_tells_it() {
        let failure = BuildFailure {
            place: BuildPlace::Step(1),
            message: "failed to run command 'whoami': the sandbox has no user root123".to_owned(),
            unknown_user: Some("root123".to_owned()),
        };
        assert_eq!(message(&failure), "failed to run command 'whoami': command failed: unauthenticated: invalid username: 'root123'");
    }
}
