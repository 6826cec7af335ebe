//! Each house rule is broken once in a small workspace made for it, and must be found there; the same workspace unbroken must pass.
//! The program is run as people run it, on real git and real cargo.
#![expect(clippy::unwrap_used, reason = "a fixture that cannot be made is a failed test")]

use std::process::Command;

use tempfile::TempDir;

const ROOT_MANIFEST: &str = r#"[workspace]
resolver = "3"
members = ["crates/*"]
exclude = ["foreign"]

[workspace.package]
version = "0.1.0"
edition = "2024"
license = "Apache-2.0"

[workspace.lints.rust]
unsafe_code = "deny"
"#;

const CLEAN_MODULE: &str = "//! A module that says why it is here.\n";

/// A clean workspace in a directory of its own.
struct Fixture {
    root: TempDir,
}

impl Fixture {
    fn new() -> Self {
        let fixture = Self { root: TempDir::new().unwrap() };
        fixture.write("Cargo.toml", ROOT_MANIFEST);
        fixture.write(".gitignore", "/target\n");
        fixture.write("deny.toml", "[graph]\n\n[licenses]\nallow = [\"Apache-2.0\", \"MIT\"]\n");
        fixture.write("docs/README.md", "# Index\n\n- [A page](page.md)\n");
        fixture.write("docs/page.md", "# A page\n\n[back](README.md#index), [out](https://example.org/x)\n");
        fixture.write("SPEC.md", "| P1.1 | It holds. | `crates/belljar-types/src/lib.rs::it_holds` |\n");
        fixture.member("belljar-types", "");
        fixture.write(
            "crates/belljar-types/src/lib.rs",
            &format!("{CLEAN_MODULE}#[cfg(test)]\nmod tests {{\n    #[test]\n    fn it_holds() {{}}\n}}\n"),
        );
        let made = Command::new("git").args(["init", "-q"]).current_dir(fixture.root.path()).status().unwrap();
        assert!(made.success());
        fixture
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A member crate that is clean but for its dependencies.
    fn member(&self, name: &str, dependencies: &str) {
        let package = "version.workspace = true\nedition.workspace = true\nlicense.workspace = true";
        let manifest = format!("[package]\nname = \"{name}\"\n{package}\n\n{dependencies}\n\n[lints]\nworkspace = true\n");
        self.write(&format!("crates/{name}/Cargo.toml"), &manifest);
        self.write(&format!("crates/{name}/src/lib.rs"), CLEAN_MODULE);
    }

    /// A crate from elsewhere, with a licence.
    fn foreign(&self, name: &str, licence: &str) {
        let manifest = format!("[package]\nname = \"{name}\"\nversion = \"1.0.0\"\nedition = \"2024\"\n{licence}\n");
        self.write(&format!("foreign/{name}/Cargo.toml"), &manifest);
        self.write(&format!("foreign/{name}/src/lib.rs"), CLEAN_MODULE);
    }

    fn run(&self, task: &str) -> (Option<i32>, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args([task, "--root"]).arg(self.root.path()).output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.code(), said)
    }

    /// Exactly one finding, which begins like this.
    #[track_caller]
    fn finds(&self, beginning: &str) {
        let (code, said) = self.run("tidy");
        assert_eq!(code, Some(1), "{said}");
        assert!(said.starts_with(beginning), "expected {beginning}\n{said}");
        assert!(said.contains("tidy: 1 to put right"), "{said}");
        assert!(said.contains("    why: ") && said.contains("    fix: "), "{said}");
    }

    #[track_caller]
    fn finds_nothing(&self) {
        let (code, said) = self.run("tidy");
        assert_eq!(code, Some(0), "{said}");
    }
}

fn on(name: &str) -> String {
    format!("{name} = {{ path = \"../{name}\" }}")
}

#[test]
fn a_clean_tree_passes() {
    Fixture::new().finds_nothing();
}

#[test]
fn a_dialect_must_not_use_an_engine() {
    let fixture = Fixture::new();
    fixture.member("belljar-runtime-container", &format!("[dependencies]\n{}", on("belljar-types")));
    fixture.member("belljar-dialect-acme", &format!("[dependencies]\n{}", on("belljar-types")));
    fixture.finds_nothing();
    fixture.member("belljar-dialect-acme", &format!("[dependencies]\n{}", on("belljar-runtime-container")));
    fixture.finds("crates/belljar-dialect-acme/Cargo.toml:8: belljar-dialect-acme must not use belljar-runtime-container");
    fixture.member("belljar-dialect-acme", &format!("[dev-dependencies]\n{}", on("belljar-runtime-container")));
    fixture.finds("crates/belljar-dialect-acme/Cargo.toml:8: belljar-dialect-acme must not use belljar-runtime-container");
}

#[test]
fn dialects_must_not_use_each_other() {
    let fixture = Fixture::new();
    fixture.member("belljar-dialect-acme", "");
    fixture.member("belljar-dialect-other", &format!("[dependencies]\n{}", on("belljar-dialect-acme")));
    fixture.finds("crates/belljar-dialect-other/Cargo.toml:8: belljar-dialect-other must not use belljar-dialect-acme");
}

#[test]
fn core_uses_words_and_ports_only() {
    let fixture = Fixture::new();
    fixture.member("belljar-image", "");
    fixture.member("belljar-core", &format!("[dependencies]\n{}\n{}", on("belljar-types"), on("belljar-image")));
    fixture.finds("crates/belljar-core/Cargo.toml:9: belljar-core must not use belljar-image");
}

#[test]
fn core_must_not_use_http() {
    let fixture = Fixture::new();
    fixture.foreign("axum", "license = \"MIT\"");
    fixture.member("belljar-core", "[dependencies]\naxum = { path = \"../../foreign/axum\" }");
    fixture.finds("crates/belljar-core/Cargo.toml:8: belljar-core must not use axum");
    fixture.member("belljar-core", "");
    fixture.member("belljar-dialect-acme", "[dependencies]\naxum = { path = \"../../foreign/axum\" }");
    fixture.finds_nothing();
}

#[test]
fn testkit_is_for_tests() {
    let fixture = Fixture::new();
    fixture.member("belljar-testkit", &format!("[dependencies]\n{}", on("belljar-types")));
    fixture.member("belljar-host", &format!("[dev-dependencies]\n{}", on("belljar-testkit")));
    fixture.finds_nothing();
    fixture.member("belljar-host", &format!("[dependencies]\n{}", on("belljar-testkit")));
    fixture.finds("crates/belljar-host/Cargo.toml:8: belljar-host must not use belljar-testkit");
}

#[test]
fn a_crate_without_a_place_is_found() {
    let fixture = Fixture::new();
    fixture.member("belljar-elsewhere", "");
    fixture.finds("crates/belljar-elsewhere/Cargo.toml:2: crate belljar-elsewhere has no place in the layers");
}

#[test]
fn a_crate_inherits_the_lints() {
    let fixture = Fixture::new();
    fixture.write("crates/belljar-linux/Cargo.toml", "[package]\nname = \"belljar-linux\"\nversion = \"0.1.0\"\nlicense = \"MIT\"\n");
    fixture.write("crates/belljar-linux/src/lib.rs", CLEAN_MODULE);
    fixture.finds("crates/belljar-linux/Cargo.toml:1: does not inherit the workspace's lints");
}

#[test]
fn unsafe_stays_in_its_crate() {
    let fixture = Fixture::new();
    fixture.member("belljar-linux", "");
    fixture.write("crates/belljar-linux/src/lib.rs", &format!("{CLEAN_MODULE}pub unsafe fn f() {{}}\n"));
    fixture.write("crates/belljar-types/src/words.rs", &format!("{CLEAN_MODULE}// unsafe is a word\npub const S: &str = \"unsafe\";\n"));
    fixture.finds_nothing();
    fixture.write("crates/belljar-types/src/words.rs", &format!("{CLEAN_MODULE}pub unsafe fn f() {{}}\n"));
    fixture.finds("crates/belljar-types/src/words.rs:2: `unsafe` outside");
    fixture.write("crates/belljar-types/src/words.rs", &format!("{CLEAN_MODULE}#![allow(unsafe_code)]\n"));
    fixture.finds("crates/belljar-types/src/words.rs:2: lifts the ban");
}

#[test]
fn long_files_need_a_reason_and_very_long_ones_have_none() {
    let fixture = Fixture::new();
    let long = |lines: usize| format!("{CLEAN_MODULE}{}", "// line\n".repeat(lines - 1));
    let path = "crates/belljar-types/src/long.rs";
    fixture.write(path, &format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", long(400), "// line\n".repeat(300)));
    fixture.finds_nothing();
    fixture.write(path, &long(401));
    fixture.finds("crates/belljar-types/src/long.rs:401: 401 production lines, more than 400");
    fixture.write("xtask/oversized.txt", &format!("# reasons\n{path}: one flat table\n"));
    fixture.finds_nothing();
    fixture.write(path, &long(601));
    fixture.finds("crates/belljar-types/src/long.rs:401: 601 production lines, more than 400");
    fixture.write(path, &long(10));
    fixture.finds("xtask/oversized.txt:2: crates/belljar-types/src/long.rs is not over 400 lines");
}

#[test]
fn lib_rs_is_a_table_of_contents() {
    let fixture = Fixture::new();
    fixture.member("belljar-linux", "");
    fixture.write("crates/belljar-linux/src/lib.rs", &format!("{CLEAN_MODULE}{}", "// line\n".repeat(100)));
    fixture.finds("crates/belljar-linux/src/lib.rs:101: 101 lines in lib.rs, more than 100");
}

#[test]
fn modules_say_why_they_exist() {
    let fixture = Fixture::new();
    fixture.write("crates/belljar-types/src/mute.rs", "use std::fmt;\n");
    fixture.finds("crates/belljar-types/src/mute.rs:1: does not begin with `//!`");
    fixture.write("crates/belljar-types/src/mute.rs", "//! Mute\nuse std::fmt;\n");
    fixture.finds("crates/belljar-types/src/mute.rs:1: its `//!` is not a sentence");
    std::fs::remove_file(fixture.root.path().join("crates/belljar-types/src/mute.rs")).unwrap();
    fixture.write("crates/belljar-types/tests/mute.rs", "use std::fmt;\n");
    fixture.finds("crates/belljar-types/tests/mute.rs:1: does not begin with `//!`");
}

#[test]
fn file_names_name_a_concept() {
    let fixture = Fixture::new();
    fixture.write("crates/belljar-types/src/words/mod.rs", CLEAN_MODULE);
    fixture.finds("crates/belljar-types/src/words/mod.rs:1: a mod.rs");
    std::fs::remove_file(fixture.root.path().join("crates/belljar-types/src/words/mod.rs")).unwrap();
    fixture.write("crates/belljar-types/src/utils.rs", CLEAN_MODULE);
    fixture.finds("crates/belljar-types/src/utils.rs:1: `utils` is not the name of a concept");
}

#[test]
fn leftovers_are_found_in_code_and_prose() {
    let fixture = Fixture::new();
    let path = "crates/belljar-types/src/half.rs";
    for (left, line) in [
        (concat!("fn f() { to", "do!() }"), 2),
        (concat!("fn f() { unimple", "mented!(\"x\") }"), 2),
        (concat!("fn f() { d", "bg!(1); }"), 2),
        (concat!("// FIX", "ME later"), 2),
        (concat!("// XX", "X look"), 2),
        (concat!("#[ig", "nore]"), 2),
    ] {
        fixture.write(path, &format!("{CLEAN_MODULE}{left}\n"));
        fixture.finds(&format!("{path}:{line}: `"));
    }
    let child =
        concat!("#[ig", "nore = \"run by the test above\"]\nfn child() {}\nconst ARGUMENTS: [&str; 2] = [\"child\", \"--ig", "nored\"];");
    fixture.write(path, &format!("{CLEAN_MODULE}{child}\n// mktemp name.XXXXXX\n"));
    fixture.finds_nothing();
}

#[test]
fn registries_and_machine_paths_are_found_in_any_file() {
    let fixture = Fixture::new();
    fixture.write("scripts/setup", concat!("curl https://static.crates", ".io/x\n"));
    fixture.finds("scripts/setup:1: names the package registry");
    fixture.write("scripts/setup", concat!("cd /work/", "main/crates\n"));
    fixture.finds("scripts/setup:1: names the machine path");
    fixture.write("scripts/setup", "ls pool/sandboxes/x/work/upper\n");
    fixture.finds_nothing();
}

#[test]
fn ignored_files_are_nobodys_business() {
    let fixture = Fixture::new();
    fixture.write("target/mod.rs", "fn main() {}\n");
    fixture.finds_nothing();
}

#[test]
fn promises_have_numbers_of_their_own_and_name_tests_that_exist() {
    let fixture = Fixture::new();
    fixture.write("SPEC.md", "| P1.1 | It holds. | none |\n");
    fixture.finds("SPEC.md:1: promise P1.1 names no test");
    fixture.write("SPEC.md", "| P1.1 | It holds. | `crates/belljar-types/src/lib.rs::it_hold` |\n");
    fixture.finds("SPEC.md:1: promise P1.1 names the test");
    fixture.write("SPEC.md", "| P1.1 | It holds. | `crates/gone.rs` |\n");
    fixture.finds("SPEC.md:1: promise P1.1 names the test");
    let row = "| P1.1 | It holds. | `crates/belljar-types/src/lib.rs` |\n";
    fixture.write("SPEC.md", &row.repeat(2));
    fixture.finds("SPEC.md:2: there is a promise P1.1 already");
}

#[test]
fn pages_are_in_the_index_and_links_lead_somewhere() {
    let fixture = Fixture::new();
    fixture.write("docs/guides/lost.md", "# Lost\n");
    fixture.finds("docs/guides/lost.md:1: is not linked from docs/README.md");
    fixture.write("docs/README.md", "- [A page](page.md)\n- [Lost](guides/lost.md)\n- [Gone](gone.md)\n");
    fixture.finds("docs/README.md:3: links to docs/gone.md, which does not exist");
}

#[test]
fn licences_are_checked_for_what_is_linked_in() {
    let fixture = Fixture::new();
    fixture.member("belljar-image", "[dependencies]\nborrowed = { path = \"../../foreign/borrowed\" }");
    fixture.foreign("borrowed", "license = \"GPL-3.0-only OR MIT\"");
    fixture.finds_nothing();
    fixture.foreign("borrowed", "license = \"GPL-3.0-only\"");
    let (code, said) = fixture.run("licenses");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("borrowed 1.0.0 is under GPL-3.0-only"), "{said}");
    fixture.foreign("borrowed", "");
    let (code, said) = fixture.run("licenses");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("borrowed 1.0.0 states no licence"), "{said}");
}

#[test]
fn misuse_is_told_apart_from_findings() {
    let (code, said) = Fixture::new().run("dance");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("usage: cargo xtask"), "{said}");
}
