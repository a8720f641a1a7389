//! Tests of the command line without a host, or with one that is not asked.
//!
//! See [`crate::questions`].

use crate::fake_host::{Answer, FakeHost, code_of, ended, ironctl, json_of};
use crate::waiting::ID;
use serde_json::json;
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
    let (code, _, err) = run(&["nonsense", "--json"]);
    assert_eq!((code, code_of(&err).as_str()), (2, "usage"));
}

#[test]
fn wrong_command_line_sends_no_request() {
    let host = FakeHost::new(|_, _| Answer::json(json!({})));
    for words in [
        &["chat", "assistant"][..],
        &["approve", ID, "--shown", "abc"],
        &["change", "submit", "--kind", "exec", "--payload", "{}", "--reason", "r"],
        &["change", "submit", "--kind", "persona", "--payload", "text", "--reason", "r"],
        &["change", "submit", "--kind", "persona", "--payload", "{\"a\":1,\"a\":2}", "--reason", "r"],
        &["change", "submit", "--kind", "persona", "--payload", "{}"],
        &["file", "list", "ses_00000000000000000000000001", "--thread", "work"],
        &["file", "list", "assistant", "--levels", "9"],
        &["file", "get", "assistant", ".."],
        &["mcp", "add", "files"],
        &["mcp", "add", "files", "--url", "ftp://mcp.example/"],
        &["mcp", "add", "files", "--", "npx server --stdio"],
        &["mcp", "add", "files", "--url", "https://x/", "--mount", "/srv"],
        &["mcp", "add", "files", "--header", "a=secret:b", "--", "server"],
        &["mcp", "add", "files", "--url", "https://x/", "--", "server"],
        &["mcp", "confirm", "files", "--digest", "12"],
        &["mcp", "confirm", "files"],
        &["mcp", "grant", "clerk", "files", "--tools", "a,,b"],
    ] {
        assert_eq!(host.ironctl(words).0, 2, "{words:?}");
    }
    assert!(host.asked().is_empty(), "{:?}", host.asked());
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
        assert_eq!(run(&["completions", shell]), (0, script.clone(), String::new()), "{shell}");
        assert!(script.contains("quickstart"), "{shell}");
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
        let message = format!("no host answers at {}", home.path().display());
        let hint = "start it with `ironctl up --detach`";
        let failure = json!({ "code": "host_unreachable", "message": message, "hint": hint });
        assert_eq!(json_of(&err)["error"], failure, "{words:?}");
    }
}

#[test]
fn stale_run_file_counts_as_no_host() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let socket = home.path().join("api.sock");
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("bound, then left behind"));
    let run = json!({"pid": 1, "socket": socket, "version": "0.1.0"});
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
