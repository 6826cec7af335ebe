//! The commands that the pages name are there, and those that are there are on the page of the command line. A reader who types what a page says must not be told that there is no such command.

use std::path::{Path, PathBuf};

use clap::CommandFactory;

/// Words that look like a call: what a server says, and what is signed in the audit log.
const NO_CALLS: [&str; 2] = ["another belljar process", "belljar audit checkpoint 1"];

/// Every page of `docs/`, and the first one.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut pages, mut waiting) = (vec![root.join("README.md")], vec![root.join("docs")]);
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// The lines of fenced blocks and what stands between single backticks, with the number of the line. In Python, `belljar` is a package and no program.
fn code(page: &str) -> Vec<(usize, &str)> {
    let (mut found, mut fence) = (Vec::new(), None);
    for (number, line) in (1..).zip(page.lines()) {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_none() { Some(language) } else { None };
        } else if fence.is_some() {
            found.extend(fence.filter(|language| *language != "python").map(|_| (number, line)));
        } else {
            found.extend(line.split('`').skip(1).step_by(2).map(|code| (number, code)));
        }
    }
    found
}

/// The words after each `belljar` that is called as a program: `belljar ls`, `bin/belljar ls`, `$(belljar env)`.
fn calls(code: &str) -> Vec<Vec<&str>> {
    let begins_a_call = |before: &str| before.ends_with("bin/") || before.is_empty() || before.ends_with([' ', '(', '"', '|', ';', '&']);
    let is_word =
        |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase()) && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    let call = |(at, name): (usize, &str)| {
        let after = code[at + name.len()..].strip_prefix(' ').filter(|_| begins_a_call(&code[..at]))?;
        // The units of other programs are named after this one: `systemctl restart belljar && …`.
        let words = after.split(' ').map(|word| word.trim_end_matches([')', '"', ';', ',', '.'])).take_while(is_word);
        Some(words.take(2).collect())
    };
    code.match_indices("belljar").filter_map(call).collect()
}

/// What is wrong with a call, if anything is.
fn mistake(whole: &clap::Command, words: &[&str]) -> Option<String> {
    let [first, rest @ ..] = words else { return None };
    if *first == "help" {
        return None;
    }
    let Some(command) = whole.find_subcommand(first) else { return Some(format!("there is no belljar {first}")) };
    let second = rest.first().filter(|_| command.has_subcommands())?;
    command.find_subcommand(second).is_none().then(|| format!("there is no belljar {first} {second}"))
}

#[test]
fn every_command_that_a_page_names_is_there() {
    let whole = crate::Arguments::command();
    let (mut mistakes, mut seen) = (Vec::new(), 0);
    for page in pages() {
        let text = NO_CALLS.iter().fold(std::fs::read_to_string(&page).unwrap(), |text, words| text.replace(words, ""));
        for (line, code) in code(&text) {
            for words in calls(code) {
                seen += 1;
                mistakes.extend(mistake(&whole, &words).map(|mistake| format!("{}:{line}: {mistake}", page.display())));
            }
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    assert!(seen > 200, "only {seen} commands were found");
}

#[test]
fn a_command_that_is_not_there_is_found() {
    let whole = crate::Arguments::command();
    let page = "Text names belljar nothing.\n```python\nfrom belljar import Belljar\n```\n```sh\nS=$(bin/belljar create) && belljar nothing\n```\n`belljar template add` and `belljar template rm x`, `belljar --help`";
    let found: Vec<_> = code(page).into_iter().flat_map(|(line, code)| calls(code).into_iter().map(move |words| (line, words))).collect();
    let mistakes: Vec<_> = found.iter().filter_map(|(line, words)| Some((*line, mistake(&whole, words)?))).collect();
    assert_eq!(mistakes, [(6, "there is no belljar nothing".to_owned()), (8, "there is no belljar template add".to_owned())]);
}

#[test]
fn the_page_of_the_command_line_names_every_command() {
    let page = include_str!("../../../docs/guides/cli.md");
    let named: Vec<_> = code(page).into_iter().flat_map(|(_, code)| calls(code)).filter_map(|words| words.first().copied()).collect();
    let whole = crate::Arguments::command();
    let there = whole.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
    let missing: Vec<_> = there.filter(|name| !named.contains(name)).collect();
    assert!(missing.is_empty(), "docs/guides/cli.md does not name {missing:?}");
}
