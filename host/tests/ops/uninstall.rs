//! Tests of `ironctl uninstall`: it lists and removes the files of one home, and nothing else.
//!
//! They use the real daemon. See `ironctl/tests/it/service.rs` for units and completions.

use crate::support::host_fixture::TestHost;
use crate::support::jail_fixture::ORDINARY_UID;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};

/// Makes a directory of the host's user beside the home.
fn beside(host: &TestHost, name: &str) -> PathBuf {
    let path = host.home.with_file_name(name);
    fs::DirBuilder::new().mode(0o700).create(&path).expect("a directory");
    if nix::unistd::geteuid().is_root() {
        chown(&path, Some(ORDINARY_UID), Some(ORDINARY_UID)).expect("root can give files away");
    }
    path
}

fn count(directory: &Path) -> usize {
    fs::read_dir(directory).map_or(0, Iterator::count)
}

#[test]
fn uninstall_removes_home_heads_and_sockets_and_nothing_else() {
    let mut host = TestHost::new();
    let (data, runtime) = (beside(&host, "data"), beside(&host, "runtime"));
    host.set_env("XDG_DATA_HOME", data.to_str());
    host.set_env("XDG_RUNTIME_DIR", runtime.to_str());
    host.set_env("XDG_CONFIG_HOME", data.to_str());
    host.set_env("HOME", data.to_str());
    host.up();
    host.agent("a");
    // Everything that a host may have made: skills, the directory of a server, the reserve of an emergency stop.
    host.ctl(&["skill", "demo", "--agent", "a", "--yes"]).ok();
    host.ctl(&["panic"]).ok();
    host.ctl(&["resume"]).ok();
    assert!(host.home.join("skills").is_dir());
    assert!(!host.say("a", "hello").is_empty(), "it answers");
    let home = host.home.display().to_string();

    let listed = host.ctl(&["--json", "uninstall", "--dry-run"]).ok().json();
    let paths: Vec<&str> =
        listed["remove"].as_array().expect("a list").iter().filter_map(|one| one["path"].as_str()).collect();
    let heads = data.join("ironclaw/heads");
    assert_eq!(paths.len(), 3, "{listed}");
    assert!(Path::new(paths[0]).starts_with(&heads) && Path::new(paths[1]).starts_with(&runtime), "{listed}");
    assert_eq!((paths[2], &listed["removed"]), (home.as_str(), &serde_json::json!(false)));

    host.ctl(&["uninstall", "--confirm", &home]).refused("a host runs on");
    assert_eq!(host.ctl(&["uninstall", "--stop"]).code, 2, "nothing confirms it");
    assert!(host.pid().is_some() && count(&heads) == 1, "nothing was removed");

    host.ctl(&["uninstall", "--stop", "--confirm", &home]).ok();
    // The user of the host may not remove an entry of the directory above.
    assert_eq!(count(&host.home), 0);
    assert_eq!((count(&heads), count(&runtime)), (0, 0));
    assert!(data.exists());
    host.ctl(&["uninstall", "--confirm", &home]).refused("is not an IronClaw home");
}

#[test]
fn home_with_files_of_others_is_not_removed() {
    let host = TestHost::new();
    fs::write(host.home.join("thesis.tex"), "x").expect("written");
    let home = host.home.display().to_string();
    host.ctl(&["uninstall", "--confirm", &home]).refused("thesis.tex");
    fs::remove_file(host.home.join("thesis.tex")).expect("removed");
    host.ctl(&["uninstall", "--confirm", &home]).ok();
    assert_eq!(count(&host.home), 0);
}
