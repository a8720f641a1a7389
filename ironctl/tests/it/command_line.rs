//! Tests of the command line without a host.
//!
//! See [`crate::questions`].

use crate::fake_host::{ended, ironctl};
use serde_json::Value;
use std::fs;

fn run(words: &[&str]) -> (i32, String, String) {
    let home = tempfile::tempdir().expect("a temporary directory");
    ended(ironctl(home.path()).args(words).output().expect("ironctl runs"))
}

#[test]
fn wrong_command_line_exits_with_2() {
    for words in [&["nonsense"][..], &["chat"], &["agent", "create"], &["chat", "a", "b", "--wait", "x"]] {
        let (code, out, err) = run(words);
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}");
        assert!(err.contains("error:"), "{words:?}: {err}");
    }
}

#[test]
fn wrong_command_line_is_json_for_scripts() {
    let (code, _, err) = run(&["nonsense", "--json"]);
    let failure: Value = serde_json::from_str(&err).expect("one JSON document");
    assert_eq!(code, 2);
    assert_eq!(failure["error"]["code"], "usage");
}

#[test]
fn version_and_help_go_to_stdout() {
    let (code, out, _) = run(&["--version"]);
    assert_eq!((code, out), (0, format!("ironctl {}\n", env!("CARGO_PKG_VERSION"))));
    let (code, out, _) = run(&["agent", "create", "--help"]);
    assert_eq!(code, 0);
    assert!(out.contains("Example:\n  ironctl agent add assistant"), "{out}");
}

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, out, err) = run(&["completions", shell]);
        assert_eq!((code, err.as_str()), (0, ""));
        assert!(out.contains("quickstart"), "{shell}");
    }
}

#[test]
fn completions_are_installed_into_a_missing_directory() {
    let user = tempfile::tempdir().expect("a temporary directory");
    let install = |shell: &str| {
        let mut command = ironctl(user.path());
        command.env("HOME", user.path()).env_remove("XDG_DATA_HOME").env_remove("XDG_CONFIG_HOME");
        ended(command.args(["completions", shell, "--install"]).output().expect("ironctl runs"))
    };
    for (shell, file) in [
        ("bash", ".local/share/bash-completion/completions/ironctl"),
        ("fish", ".config/fish/completions/ironctl.fish"),
        ("zsh", ".local/share/zsh/site-functions/_ironctl"),
    ] {
        let (code, out, err) = install(shell);
        assert_eq!((code, err.as_str()), (0, ""), "{shell}");
        assert!(out.contains(file), "{shell}: {out}");
        let script = fs::read_to_string(user.path().join(file)).expect("written");
        assert_eq!(script, run(&["completions", shell]).1, "{shell}");
        assert_eq!(install(shell).0, 0, "{shell}: it is replaced");
    }
    let (code, _, err) = install("elvish");
    assert_eq!(code, 1);
    assert!(err.contains("no known directory"), "{err}");
}

#[test]
fn missing_host_exits_with_3_and_the_remedy() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for words in [&["status"][..], &["agent", "list"], &["chat", "a", "hello"], &["why"]] {
        let output = ironctl(home.path()).args(words).arg("--json").output().expect("runs");
        let (code, out, err) = ended(output);
        assert_eq!((code, out.as_str()), (3, ""), "{words:?}");
        let failure: Value = serde_json::from_str(&err).expect("one JSON document");
        assert_eq!(failure["error"]["code"], "host_unreachable");
        let message = format!("no host answers at {}", home.path().display());
        assert_eq!(failure["error"]["message"], message);
        assert_eq!(failure["error"]["hint"], "start it with `ironctl up --detach`");
    }
}

#[test]
fn stale_run_file_counts_as_no_host() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let socket = home.path().join("api.sock");
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("bound, then left behind"));
    let run = serde_json::json!({"pid": 1, "socket": socket, "version": "0.1.0"});
    fs::write(home.path().join("run.json"), run.to_string()).expect("written");
    fs::write(home.path().join("owner.token"), "t").expect("written");
    let (code, _, err) = ended(ironctl(home.path()).arg("status").output().expect("runs"));
    assert_eq!(code, 3);
    assert!(err.starts_with("error: no host answers at "), "{err}");
    assert!(err.contains("\nhint: start it with"), "{err}");
}

#[test]
fn down_without_a_host_succeeds() {
    let (code, out, _) = run(&["down"]);
    assert_eq!(code, 0);
    assert!(out.starts_with("not running"), "{out}");
}
