//! Code in a language, run to its end without remembering anything. The language's own program is run as it is in the template; there is none of ours.

use axum::Json;
use belljar_http::JsonBody;
use belljar_types::{GuestPath, ProcessId, ProcessSpec, WriteOptions};
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::inside::Inside;
use super::process::{LARGEST_BODY, answer, check, not_started};
use super::run::{deadline, finish};
use super::sandboxes::Answer;
use crate::dto::{CodeRun, Executed};
use crate::errors::ApiError;

/// Code that is given to JavaScript's programs does not count as one of its arguments.
const WITHOUT_ITSELF: &str = "process.argv.splice(1, 1);\n";
const TYPESCRIPT: [&str; 7] = ["npx", "ts-node", "-T", "--ignore-diagnostics", "5107", "-O", r#"{"module":"CommonJS"}"#];

/// `POST /process/code-run`.
pub(super) async fn run(inside: Inside, JsonBody(request): JsonBody<CodeRun, LARGEST_BODY>) -> Answer<Json<Executed>> {
    let arguments = request.argv.unwrap_or_default();
    let language = request.language.as_deref().filter(|language| !language.is_empty()).unwrap_or("python");
    let (program, input, file): (Vec<String>, Option<Bytes>, Option<GuestPath>) = match language {
        "python" => (owned(&["python3", "-u", "-"]), Some(Bytes::from(request.code)), None),
        "javascript" => (owned(&["node", "-"]), Some(Bytes::from(format!("{WITHOUT_ITSELF}{}", request.code))), None),
        "typescript" => {
            let path = format!("/tmp/{}.ts", ProcessId::random());
            let file = GuestPath::new(path.as_str())?;
            let content = Bytes::from(format!("{WITHOUT_ITSELF}{}", request.code));
            let options = WriteOptions { user: inside.user.clone(), create_new: true, mode: Some(0o600), ..WriteOptions::default() };
            let written = inside.session.write_file(&file, &options, stream::iter([Ok(content)]).boxed()).await;
            inside.done(written).await?;
            (owned(&TYPESCRIPT).into_iter().chain([path]).collect(), None, Some(file))
        }
        other => {
            let other = belljar_types::escape_untrusted(other.as_bytes());
            return Err(ApiError::bad_request(format!("unsupported language: {other}; expected python, javascript or typescript")));
        }
    };
    let spec = inside.process(program.iter().chain(&arguments), request.envs.unwrap_or_default());
    let spec = ProcessSpec { stdin: input.is_some(), deadline: deadline(request.timeout), ..spec };
    check(&spec)?;
    let told = match inside.session.start_attached(&spec).await {
        Ok((info, output)) => answer(&inside, finish(&inside.session, &info, output, input).await).await,
        Err(error) => not_started(&inside, error).await,
    };
    if let Some(file) = file {
        // Nobody looks at it again; a sandbox that is gone has none.
        let _ = inside.session.remove(&file, inside.user()).await;
    }
    told
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
