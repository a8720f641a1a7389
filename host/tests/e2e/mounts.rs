//! Tests of the granted directories and the packages of an agent, through the real daemon: in tools, in commands, and over `/usr`.
//!
//! The tests propose and approve grants, and write a missing layer into the record of a stopped host. See `commands`.

use crate::support::host_fixture::{Build, TestHost};
use crate::support::jail_fixture::{HostUser, host_users};
use crate::support::record;
use ironclaw_contract::canonical::Digest;
use rusqlite::params;
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Starts a host whose agent may run commands, and creates a directory for grants.
fn new_host(user: HostUser) -> (TestHost, tempfile::TempDir) {
    let host = TestHost::with(user, Build::Plain, None);
    let beside = tempfile::tempdir().expect("a temporary directory");
    open_to_all(beside.path());
    let allowed = beside.path().canonicalize().expect("an existing path").display().to_string();
    host.configure(&format!("[mounts]\nallow = [{allowed:?}]\n[session]\nbackoff_ms = 1\n"));
    host.up();
    let tools = ["run_command", "read_file", "write_file", "list_dir"];
    let tools: Vec<&str> = tools.iter().flat_map(|tool| ["--tool", tool]).collect();
    host.ctl(&[&["agent", "add", "a"][..], &tools].concat()).ok();
    (host, beside)
}

/// Makes the path readable for every user, because the jail may run as any uid.
fn open_to_all(path: &Path) {
    fs::set_permissions(path, PermissionsExt::from_mode(0o777)).expect("permissions");
}

fn directory(path: PathBuf, file: &str) -> PathBuf {
    fs::create_dir_all(&path).expect("a directory");
    open_to_all(&path);
    fs::write(path.join(file), format!("this is {file}")).expect("a file");
    path
}

/// Grants exactly these mounts: source, target, and whether the mount is read-only.
fn grant(host: &TestHost, mounts: &[(&Path, &str, bool)]) {
    let mount = |(source, target, read_only): &(&Path, &str, bool)| {
        let source = source.canonicalize().expect("an existing path");
        json!({ "source": source, "target": target, "read_only": read_only })
    };
    host.change("a", "mounts", &mounts.iter().map(mount).collect());
}

#[test]
fn agent_sees_granted_mounts_and_no_other_directories() {
    for user in host_users() {
        let (host, beside) = new_host(user);
        let data = directory(beside.path().join("data"), "one");
        let shared = directory(beside.path().join("shared"), "two");
        grant(&host, &[(&data, "/data", true), (&shared, "/shared", false)]);
        directory(beside.path().join("secret"), "three");
        symlink("../secret/three", beside.path().join("data/link")).expect("a link");
        assert!(host.say("a", "read /data/one").contains("this is one"), "{user:?}");
        for (asked, why) in [
            ("read /data/link", "links are not followed"),
            ("read /data/../secret/three", "`..` is not allowed"),
            ("read /etc/passwd", "outside of /workspace and /data and /shared"),
            ("write /data/new: x", "Read-only file system"),
            ("run cat /data/link 2>&1", "No such file"),
            ("run touch /data/new 2>&1", "Read-only file system"),
            ("run ls /secret 2>&1", "No such file"),
        ] {
            let said = host.say("a", asked);
            assert!(said.contains(why), "{user:?} {asked}: {said}");
        }
        let said = host.say("a", "run cat /data/one; echo mine > /shared/mine");
        assert!(said.contains("this is one") && said.contains("[exit code 0]"), "{user:?}: {said}");
        let mine = beside.path().join("shared/mine");
        assert_eq!(fs::read_to_string(&mine).expect("written"), "mine\n", "{user:?}");
        assert!(host.say("a", "write /shared/other: yours").contains("/shared/other"), "{user:?}");
        assert_eq!(fs::read_to_string(beside.path().join("shared/other")).expect("written"), "yours", "{user:?}");
        assert!(!beside.path().join("data/new").exists(), "{user:?}");
        host.ctl(&["doctor", "--prove"]).ok();
    }
}

#[test]
fn replaced_or_missing_mount_source_fails_the_launch() {
    let (host, beside) = new_host(HostUser::Ordinary);
    let data = directory(beside.path().join("way/data"), "one");
    grant(&host, &[(&data, "/data", true)]);
    assert!(host.say("a", "read /data/one").contains("this is one"));
    host.ctl(&["session", "stop", host.session()["id"].as_str().expect("an id")]).ok();
    fs::rename(beside.path().join("way"), beside.path().join("aside")).expect("renamed");
    let refused = |words: &str| {
        let answer = host.ctl(&["doctor", "--prove"]);
        assert!(answer.code == 1 && answer.stderr.contains(words), "{words}: {}{}", answer.stdout, answer.stderr);
    };
    refused("way/data for /data: No such file");
    symlink("aside", beside.path().join("way")).expect("a link");
    refused("way/data for /data, because ");
    refused("way is a symbolic link");
}

#[test]
fn missing_approved_layer_fails_the_launch() {
    for user in host_users() {
        let (host, _beside) = new_host(user);
        let digest = Digest::of(b"the layer of this test");
        let sql = "INSERT INTO agent_packages SELECT id, '{}', ?1, 0 FROM agents WHERE name = 'a'";
        host.down();
        record::open_to_change(&host.home).execute(sql, params![digest.to_string()]).expect("changed");
        record::restore_owner(&host);
        host.up();
        // A failed launch is reported. The jail does not start without its approved layer.
        let answer = host.ctl(&["--json", "chat", "a", "run true"]);
        assert!(!answer.stdout.contains("[exit code 0]"), "{user:?}: {}", answer.stdout);
        assert!(answer.stderr.contains("not those that were approved"), "{user:?}: {}", answer.stderr);
    }
}

#[test]
fn mount_no_longer_allowed_is_left_out_and_reported() {
    let (host, beside) = new_host(HostUser::Ordinary);
    grant(&host, &[(&directory(beside.path().join("data"), "one"), "/data", true)]);
    host.restart_with("config.toml", "[mounts]\nallow = []\n[session]\nbackoff_ms = 1\n");
    let answer = host.ctl(&["--json", "chat", "a", "read /data/one"]);
    assert!(answer.stderr.contains("may no longer be mounted at /data"), "{}", answer.stderr);
}
