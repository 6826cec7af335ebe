//! What the agent's programs for people in a shell say to them.

/// Says something.
#[expect(clippy::print_stdout, reason = "this is for programs that people in a shell start")]
pub(crate) fn say(words: &str) {
    println!("{words}");
}

/// Says why a program did not do what it was asked to.
#[expect(clippy::print_stderr, reason = "this is for programs that people in a shell start")]
pub(crate) fn complain(program: &str, error: &dyn std::error::Error) {
    eprintln!("{program}: {error}");
    if let Some(source) = error.source() {
        eprintln!("{program}:   because: {source}");
    }
}
