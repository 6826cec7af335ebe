//! Secrets in the tree are hidden, and what runs by itself cannot be changed, unless that is lifted by name.

use std::fs;
use std::os::unix::fs::symlink;

use crate::fixture::{Place, Who, err, out, words};

const SECRETS: [&str; 7] = [".env", ".env.production", ".ssh/id_ed25519", ".aws/credentials", ".npmrc", ".netrc", "packages/app/.env"];

fn with_secrets(who: Who) -> Place {
    let place = Place::new(who);
    for secret in SECRETS {
        place.write(secret, "TOPSECRET");
    }
    place.write(".env.example", "KEY=");
    place.write("config/real-secrets", "TOPSECRET");
    symlink("config/real-secrets", place.tree().join(".pypirc")).unwrap();
    place
}

#[test]
fn secrets_cannot_be_read_in_either_mode() {
    for who in Who::BOTH {
        for options in [&[][..], &["--rw"]] {
            let place = with_secrets(who);
            for attack in [
                "cat .env .env.production .ssh/id_ed25519 .aws/credentials .npmrc .netrc packages/app/.env",
                "cat .pypirc config/real-secrets",
                "grep -r TOPSECRET .",
                "mv packages elsewhere; cat elsewhere/app/.env",
                "rm -f .env; mv .env shown; cat shown .env",
                "ln .env linked; cat linked",
                "chmod 644 .env; cat .env",
                "cp -a .ssh copy; cat copy/id_ed25519",
            ] {
                let guarded = place.shell(options, attack);
                assert!(!words(&guarded).contains("TOPSECRET"), "{who:?} {options:?} {attack}: {}", words(&guarded));
            }
            assert_eq!(out(&place.shell(options, "cat .env.example")), "KEY=");
            assert_eq!(place.read(".env"), "TOPSECRET");
        }
        assert!(words(&with_secrets(who).bare_shell("grep -r TOPSECRET .")).contains("TOPSECRET"));
    }
}

fn with_start_up_files(who: Who) -> Place {
    let place = Place::new(who);
    for file in [
        ".git/config",
        ".git/hooks/pre-commit",
        ".bashrc",
        ".envrc",
        ".vscode/tasks.json",
        ".claude/settings.json",
        ".mcp.json",
        ".gitmodules",
    ] {
        place.write(file, "ORIGINAL");
    }
    place.write("sub/.git/config", "ORIGINAL");
    place.write(".git/HEAD", "ref");
    place
}

#[test]
fn what_runs_by_itself_cannot_be_changed() {
    let attacks = [
        (".git/hooks/pre-commit", "echo EVIL > .git/hooks/pre-commit"),
        (".git/hooks/pre-commit", "mv .git old; mkdir -p .git/hooks; echo EVIL > .git/hooks/pre-commit"),
        (".git/hooks/pre-commit", "mv .git/hooks old; mkdir .git/hooks; echo EVIL > .git/hooks/pre-commit"),
        (".git/hooks/pre-commit", "rm -rf .git/hooks; mkdir .git/hooks; echo EVIL > .git/hooks/pre-commit"),
        (".git/config", "echo EVIL > .git/config"),
        (".git/config", "echo EVIL > new; mv -f new .git/config"),
        (".git/config", "rm -f .git/config; echo EVIL > .git/config"),
        (".bashrc", "echo EVIL >> .bashrc"),
        (".envrc", "rm -f .envrc; ln -s evil .envrc; echo EVIL > evil"),
        (".vscode/tasks.json", "echo EVIL > .vscode/tasks.json"),
        (".claude/settings.json", "mv .claude away; mkdir .claude; echo EVIL > .claude/settings.json"),
        (".mcp.json", "truncate -s 0 .mcp.json; echo EVIL > .mcp.json"),
        (".gitmodules", "chmod 666 .gitmodules; echo EVIL > .gitmodules"),
        ("sub/.git/config", "mv sub away; mkdir -p sub/.git; echo EVIL > sub/.git/config"),
    ];
    for who in Who::BOTH {
        for (file, attack) in attacks {
            let place = with_start_up_files(who);
            let guarded = place.shell(&["--rw"], &format!("{attack}; cat {file}"));
            assert_eq!(place.read(file), "ORIGINAL", "{who:?} {attack}: {}", words(&guarded));
            place.bare_shell(attack);
            assert!(place.read(file).contains("EVIL"), "{who:?} {attack}: does not work without a guard either");
        }
    }
}

#[test]
fn ordinary_work_in_a_repository_goes_on() {
    for who in Who::BOTH {
        let place = Place::new(who);
        assert!(place.bare_shell("git init -q . && git config user.email a@b && git config user.name a").status.success());
        let work = "echo x > file && mkdir -p src && echo y > src/lib && git add . && git commit -qm first && git mv file moved && git commit -qm second && git log --oneline | wc -l";
        let done = place.shell(&["--rw"], work);
        assert_eq!(out(&done), "2", "{who:?}: {}", words(&done));
        assert!(done.stderr.is_empty(), "{who:?}: {}", words(&done));
        assert!(place.bare_shell("git fsck && git status --porcelain").status.success());
    }
}

#[test]
fn protected_names_that_the_command_made_are_set_aside() {
    for who in Who::BOTH {
        let place = Place::new(who);
        let made = place
            .shell(&["--rw"], "echo EVIL > .envrc; mkdir .vscode; echo EVIL > .vscode/tasks.json; git init -q .; echo fine > file; exit 7");
        assert_eq!(made.status.code(), Some(7), "{who:?}: {}", words(&made));
        for name in [".envrc", ".vscode", ".git"] {
            assert!(!place.tree().join(name).exists(), "{who:?} {name}: {}", words(&made));
            assert!(place.tree().join(format!("{name}.belljar-held")).exists(), "{who:?} {name}");
            assert!(err(&made).contains(&format!("--allow {name}")), "{who:?} {name}: {}", words(&made));
        }
        assert_eq!(place.read("file"), "fine\n");
        // What is allowed stays, and a run that makes nothing says nothing.
        let allowed = place.shell(&["--rw", "--allow", ".envrc"], "echo mine > .envrc");
        assert!(allowed.stderr.is_empty() && place.read(".envrc") == "mine\n", "{who:?}: {}", words(&allowed));
    }
}

#[test]
fn a_protection_is_lifted_by_name_only() {
    for who in Who::BOTH {
        let place = with_secrets(who);
        place.write(".bashrc", "ORIGINAL");
        let lifted = place.shell(
            &["--rw", "--allow", ".env", "--allow", "./packages/app/.env", "--allow", ".bashrc"],
            "cat .env packages/app/.env; echo NEW > .bashrc; cat .npmrc",
        );
        assert_eq!(out(&lifted), "TOPSECRETTOPSECRET", "{who:?}: {}", words(&lifted));
        assert_eq!(place.read(".bashrc"), "NEW\n");
        assert!(err(&lifted).contains("Permission denied"), "{who:?}: {}", words(&lifted));
        for nonsense in ["/etc", "..", "../outside", "."] {
            assert_eq!(place.shell(&["--allow", nonsense], "true").status.code(), Some(125), "{who:?} {nonsense}");
        }
    }
}

#[test]
fn no_trace_is_left_in_the_tree() {
    for who in Who::BOTH {
        let place = with_start_up_files(who);
        fs::remove_dir_all(place.tree().join("sub")).unwrap();
        let list = || place.bare_shell("find . | sort | xargs ls -ld --time-style=full-iso").stdout;
        let before = list();
        assert!(place.shell(&["--rw"], "true").status.success());
        assert!(place.shell(&[], "true").status.success());
        assert_eq!(String::from_utf8_lossy(&list()), String::from_utf8_lossy(&before), "{who:?}");
    }
}
