//! The tools: what each is called, what it takes, and where it is done. Few and plain, because a model chooses among them on every turn.

mod code;
mod commands;
mod files;
mod looking;
mod passage;
mod states;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rmcp::handler::server::tool::schema_for_input;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::error::ToolError;
use crate::lodgings::Lodgings;

type Outcome = Result<CallToolResult, ToolError>;

/// What a tool does to the sandbox. Nothing that any of them does reaches beyond it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Looks,
    Adds,
    Overwrites,
}

/// All tools, in the order in which they are likely to be wanted.
pub(crate) fn all() -> Vec<Tool> {
    vec![
        tool::<commands::RunCommand>("run_command", Effect::Overwrites),
        tool::<code::RunCode>("run_code", Effect::Overwrites),
        tool::<files::ReadFile>("read_file", Effect::Looks),
        tool::<files::WriteFile>("write_file", Effect::Overwrites),
        tool::<files::EditFile>("edit_file", Effect::Overwrites),
        tool::<files::ListDirectory>("list_directory", Effect::Looks),
        tool::<states::Checkpoint>("checkpoint", Effect::Adds),
        tool::<states::RestoreCheckpoint>("restore_checkpoint", Effect::Overwrites),
        tool::<states::ForkSandbox>("fork_sandbox", Effect::Adds),
        tool::<states::EndSandbox>("end_sandbox", Effect::Overwrites),
        tool::<looking::SharePort>("share_port", Effect::Adds),
        tool::<looking::SandboxInfo>("sandbox_info", Effect::Looks),
    ]
}

/// The work of a call; `None` if there is no such tool.
pub(crate) fn call<'a>(lodgings: &'a Lodgings, name: &str, arguments: JsonObject) -> Option<BoxFuture<'a, Outcome>> {
    Some(match name {
        "run_command" => with(name, arguments, |asked| commands::run(lodgings, asked)),
        "run_code" => with(name, arguments, |asked| code::run(lodgings, asked)),
        "read_file" => with(name, arguments, |asked| files::read(lodgings, asked)),
        "write_file" => with(name, arguments, |asked| files::write(lodgings, asked)),
        "edit_file" => with(name, arguments, |asked| files::edit(lodgings, asked)),
        "list_directory" => with(name, arguments, |asked| files::list(lodgings, asked)),
        "checkpoint" => with(name, arguments, |asked| states::checkpoint(lodgings, asked)),
        "restore_checkpoint" => with(name, arguments, |asked| states::restore(lodgings, asked)),
        "fork_sandbox" => with(name, arguments, |asked| states::fork(lodgings, asked)),
        "end_sandbox" => with(name, arguments, |asked| states::end(lodgings, asked)),
        "share_port" => with(name, arguments, |asked| looking::share(lodgings, asked)),
        "sandbox_info" => with(name, arguments, |asked| looking::info(lodgings, asked)),
        _ => return None,
    })
}

/// A tool as it is offered; what it does is said once, above its arguments.
fn tool<T: JsonSchema + 'static>(name: &'static str, effect: Effect) -> Tool {
    let schema = rmcp::handler::server::tool::schema_for_type::<T>();
    let description = schema.get("description").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    let annotations = ToolAnnotations::new()
        .read_only(effect == Effect::Looks)
        .destructive(effect == Effect::Overwrites)
        .idempotent(effect == Effect::Looks)
        .open_world(false);
    Tool::new(name, description, schema_for_input::<T>().unwrap_or_default()).with_annotations(annotations)
}

/// Reads the arguments, and does the work with them.
fn with<'a, T, F>(tool: &str, arguments: JsonObject, work: impl FnOnce(T) -> F) -> BoxFuture<'a, Outcome>
where
    T: DeserializeOwned,
    F: Future<Output = Outcome> + Send + 'a,
{
    match serde_json::from_value(serde_json::Value::Object(arguments)) {
        Ok(asked) => work(asked).boxed(),
        Err(source) => std::future::ready(Err(ToolError::Arguments { tool: tool.to_owned(), source })).boxed(),
    }
}

/// An answer of words.
fn words(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

#[cfg(test)]
mod tests;
