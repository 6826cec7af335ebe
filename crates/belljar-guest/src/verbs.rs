//! What each verb does, grouped as the protocol's bodies are.

mod file;
mod output;
mod process;
mod stream;
mod system;
mod tunnel;
mod wish;

use belljar_guest_protocol::Verb;

use crate::call::{Call, CallError};

/// Answers a verb.
pub(crate) async fn answer(call: &mut Call<'_>, verb: Verb) -> Result<(), CallError> {
    match verb {
        Verb::Hello => system::hello(call).await,
        Verb::Start => process::start(call).await,
        Verb::Processes => process::list(call).await,
        Verb::Attach => process::attach(call).await,
        Verb::Wait => process::wait(call).await,
        Verb::WriteStdin => process::write_stdin(call).await,
        Verb::CloseStdin => process::close_stdin(call).await,
        Verb::Signal => process::signal(call).await,
        Verb::Resize => process::resize(call).await,
        Verb::ReadFile => stream::read(call).await,
        Verb::WriteFile => stream::write(call).await,
        Verb::List => stream::list(call).await,
        Verb::Search => stream::search(call).await,
        Verb::Watch => stream::watch(call).await,
        Verb::Stat => file::stat(call).await,
        Verb::MakeDirectory => file::make_directory(call).await,
        Verb::Rename => file::rename(call).await,
        Verb::Remove => file::remove(call).await,
        Verb::SetMode => file::set_mode(call).await,
        Verb::SetOwner => file::set_owner(call).await,
        Verb::GetXattr => file::get_xattr(call).await,
        Verb::SetXattr => file::set_xattr(call).await,
        Verb::Ports => system::ports(call).await,
        Verb::Connect => tunnel::connect(call).await,
        Verb::Metrics => system::metrics(call).await,
        Verb::Renew => system::renew(call).await,
        Verb::Wishes => wish::listen(call).await,
        Verb::AnswerWish => wish::answer(call).await,
    }
}
