//! Tests of homes on file systems that cannot hold one: `init`, `up`, `run`, `doctor` and `backup restore` refuse them by name.
//!
//! The table of types is beside the code, `host/src/daemon/file_system.rs`.

use crate::support::fuse::Fuse;
use crate::support::host_fixture::TestHost;
use crate::support::jail_fixture::directory;
use serde_json::Value;
use std::path::Path;
use std::process::Output;

/// Runs a program of the fixture with `--home HOME`.
fn run(host: &TestHost, program: &str, words: &[&str], home: &Path) -> Output {
    let mut command = host.command(program);
    command.args(words).arg("--home").arg(home).arg("--json");
    command.output().expect("the program runs")
}

#[test]
fn home_on_a_fuse_mount_is_refused_by_name() {
    let place = directory();
    let fuse = Fuse::mount(place.path(), "sshfs");
    let host = TestHost::new();
    let home = fuse.point.join("home");
    for (program, words) in [
        ("ironclaw-host", &["init"][..]),
        ("ironclaw-host", &["run"]),
        ("ironctl", &["init"]),
        ("ironctl", &["up", "--detach"]),
        ("ironctl", &["quickstart", "--no-chat"]),
    ] {
        let ended = run(&host, program, words, &home);
        let text = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(1), "{program} {words:?}: {text}");
        let error: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {error}: {text}"));
        let is_checked_before = words[0] == "up" || words[0] == "quickstart";
        let code = if is_checked_before { "preflight_failed" } else { "file_system_unfit" };
        assert_eq!(error["error"]["code"], code, "{program} {words:?}");
        for word in ["fuse.sshfs", &fuse.point.display().to_string()] {
            assert!(error["error"]["message"].as_str().is_some_and(|words| words.contains(word)), "{error}");
        }
        assert!(error["error"]["hint"].as_str().is_some_and(|hint| hint.contains("--home")), "{error}");
    }
    let report = run(&host, "ironctl", &["doctor"], &home);
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("a list");
    let check = checks.iter().find(|check| check["name"] == "file system of the home").expect("checked");
    assert_eq!(check["ok"], false, "{check}");
}
