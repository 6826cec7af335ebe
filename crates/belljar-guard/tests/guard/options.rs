//! What the options promise.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::fixture::{Place, Who, err, out, words};

#[test]
fn what_is_written_belongs_to_the_caller() {
    for who in Who::BOTH {
        let place = Place::new(who);
        place.write("there", "old");
        let wrote =
            place.shell(&["--rw"], "mkdir made && echo new > made/file && echo more >> there && ln -s file made/link && rm -f nothing");
        assert!(wrote.status.success(), "{who:?}: {}", words(&wrote));
        for path in ["made", "made/file", "made/link", "there"] {
            let found = fs::symlink_metadata(place.tree().join(path)).unwrap();
            assert_eq!((found.uid(), found.gid()), (who.id(), who.id()), "{who:?} {path}");
        }
        assert_eq!((place.read("made/file"), place.read("there")), ("new\n".into(), "oldmore\n".into()));
        let inside = place.shell(&["--rw"], "stat -c %u:%g made there; id -u; id -g");
        let id = who.id();
        assert_eq!(out(&inside), format!("{id}:{id}\n{id}:{id}\n{id}\n{id}"), "{who:?}: {}", words(&inside));
    }
}

#[test]
fn places_of_its_own_can_be_written_and_are_gone_afterwards() {
    for who in Who::BOTH {
        let place = Place::new(who);
        let script = "for d in /tmp $HOME /run /var/tmp /dev/shm; do test \"$(ls -A $d | grep -v guard-)\" = '' && echo x > $d/mine && echo ok; done";
        for _ in 0..2 {
            let wrote = place.shell(&[], script);
            assert_eq!(out(&wrote), "ok\nok\nok\nok\nok", "{who:?}: {}", words(&wrote));
        }
        let fixed = place.shell(&[], "for d in / /etc /usr /usr/bin /dev; do echo x > $d/mine && echo WRITTEN; done; true");
        assert!(!words(&fixed).contains("WRITTEN"), "{who:?}: {}", words(&fixed));
    }
}

#[test]
fn variables_are_few_and_others_are_asked_for() {
    for who in Who::BOTH {
        let place = Place::new(who);
        let list = |options: &[&str]| {
            let mut command = place.guard(options);
            command.env("SSH_AUTH_SOCK", "/x").env("LC_TIME", "C").env("MODE", "fast");
            out(&command.arg("env").output().unwrap())
        };
        let plain = list(&[]);
        assert!(plain.contains("LC_TIME=C") && plain.contains("PATH=") && plain.contains("HOME="), "{who:?}: {plain}");
        assert!(!plain.contains("TOPSECRET") && !plain.contains("SSH_AUTH_SOCK") && !plain.contains("MODE="), "{who:?}: {plain}");
        let asked = list(&["--env", "MODE", "-e", "LEVEL=a=b"]);
        assert!(asked.contains("MODE=fast") && asked.contains("LEVEL=a=b"), "{who:?}: {asked}");
    }
}

#[test]
fn more_can_be_shown_but_only_to_read() {
    for who in Who::BOTH {
        let place = Place::new(who);
        let outside = place.outside();
        let script = format!("cat {0}/secret; echo x > {0}/new && echo WRITTEN", outside.display());
        let shown = place.shell(&["--rw", "--ro", outside.to_str().unwrap()], &script);
        assert!(out(&shown) == "TOPSECRET", "{who:?}: {}", words(&shown));
        let file = outside.join("secret");
        let one = place.shell(&["--ro", file.to_str().unwrap()], &format!("cat {}; ls {}", file.display(), outside.display()));
        assert_eq!(out(&one), "TOPSECRETsecret", "{who:?}: {}", words(&one));
        let link = place.outside().join("way");
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        let by_link = place.shell(&["--ro", link.to_str().unwrap()], &format!("cat {}/secret", link.display()));
        assert_eq!(out(&by_link), "TOPSECRET", "{who:?}: {}", words(&by_link));
        assert_eq!(place.shell(&["--ro", "/no/such/path"], "true").status.code(), Some(125));
    }
}

#[test]
fn a_flood_of_processes_stops_at_its_limit() {
    const FLOOD: &str = "import os,time\nn=0\nwhile n<100:\n  try:\n    if os.fork()==0: time.sleep(60); os._exit(0)\n    n+=1\n  except OSError: break\nprint(n, flush=True)\nos._exit(0)";
    for who in Who::BOTH {
        let place = Place::new(who);
        let limited = place.guard(&["--pids", "20"]).args(["python3", "-c", FLOOD]).output().unwrap();
        assert_eq!(out(&limited), "19", "{who:?}: {}", words(&limited));
        let free = place.guard(&[]).args(["python3", "-c", FLOOD]).output().unwrap();
        assert_eq!(out(&free), "100", "{who:?}: {}", words(&free));
    }
}

#[test]
fn memory_is_limited_where_it_can_be_and_refused_where_not() {
    const GREEDY: &str = "b=bytearray(256<<20)\nfor i in range(0,len(b),4096): b[i]=1\nprint('had it')";
    let place = Place::new(Who::Root);
    let limited = place.guard(&["--memory", "64M"]).args(["python3", "-c", GREEDY]).output().unwrap();
    assert_eq!(limited.status.code(), Some(137), "{}", words(&limited));
    assert!(err(&limited).contains("--memory"), "{}", words(&limited));
    let enough = place.guard(&["--memory", "512M", "--cpus", "1"]).args(["python3", "-c", GREEDY]).output().unwrap();
    assert_eq!(out(&enough), "had it", "{}", words(&enough));
    let place = Place::new(Who::User);
    for option in [["--memory", "64M"], ["--cpus", "1"]] {
        let refused = place.guard(&option).arg("true").output().unwrap();
        assert_eq!(refused.status.code(), Some(125), "{}", words(&refused));
        assert!(err(&refused).contains("control group"), "{}", words(&refused));
    }
}

#[test]
fn verbose_tells_and_json_adds_nothing() {
    for who in Who::BOTH {
        let place = Place::new(who);
        place.write(".env", "x");
        let told = place.guard(&["--verbose", "--rw"]).arg("true").output().unwrap();
        assert!(err(&told).contains(".env is hidden") && err(&told).contains("writable"), "{who:?}: {}", words(&told));
        let quiet = place.guard(&["--json"]).args(["echo", "only this"]).output().unwrap();
        assert_eq!((out(&quiet).as_str(), quiet.stderr.len()), ("only this", 0), "{who:?}: {}", words(&quiet));
    }
}

#[test]
fn a_template_needs_root_and_a_pool() {
    let place = Place::new(Who::User);
    let refused = place.guard(&["--template", "base"]).arg("true").output().unwrap();
    assert!(refused.status.code() == Some(125) && err(&refused).contains("root only"), "{}", words(&refused));
    let place = Place::new(Who::Root);
    let data = place.outside();
    let refused = place.guard(&["--template", "base", "--data-dir", data.to_str().unwrap()]).arg("true").output().unwrap();
    assert!(refused.status.code() == Some(125) && err(&refused).contains("not mounted"), "{}", words(&refused));
    fs::create_dir_all(data.join("pool/layers")).unwrap();
    let refused = place.guard(&["--template", "base", "--data-dir", data.to_str().unwrap()]).arg("true").output().unwrap();
    assert!(refused.status.code() == Some(125) && err(&refused).contains("read the template base"), "{}", words(&refused));
}

#[test]
fn a_template_is_the_root() {
    let place = Place::new(Who::Root);
    let pool = place.outside().join("pool");
    let digest = "0123456789abcdef".repeat(4);
    let layer = pool.join("layers").join(&digest).join("fs");
    for directory in ["bin", "etc", "root", "lib64"] {
        fs::create_dir_all(layer.join(directory)).unwrap();
    }
    fs::create_dir_all(pool.join("templates")).unwrap();
    fs::write(layer.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n").unwrap();
    fs::write(layer.join("etc/of-the-template"), "yes").unwrap();
    let json = format!(
        r#"{{"name":"mine","layers":["{digest}"],"defaults":{{"env":{{"FROM":"template"}},"user":null,"workdir":null}},"origin":"test","created_at":0}}"#
    );
    fs::write(pool.join("templates/mine.json"), json).unwrap();
    // The machine's own programs stand in for the template's.
    let data = place.outside();
    for name in ["bin", "lib", "lib64", "sbin"] {
        let _ = fs::remove_dir(layer.join(name));
        std::os::unix::fs::symlink(format!("usr/{name}"), layer.join(name)).unwrap();
    }
    let script = "cat /etc/of-the-template; echo $FROM $HOME; echo x > /etc/changed && echo changed; echo y > made; ls /etc | wc -l";
    let options = ["--rw", "--template", "mine", "--data-dir", data.to_str().unwrap(), "--ro", "/usr"];
    let ran = place.shell(&options, script);
    assert_eq!(out(&ran), "yestemplate /root\nchanged\n3", "{}", words(&ran));
    assert!(!layer.join("etc/changed").exists());
    assert_eq!(fs::metadata(place.tree().join("made")).unwrap().uid(), 0);
}
