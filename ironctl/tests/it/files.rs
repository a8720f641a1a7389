//! Tests of `ironctl file` against a fake host. See `chat` for the files of a message.

use crate::fake_host::{Answer, FakeHost, agent, json_of};
use crate::terminal::Terminal;
use serde_json::json;
use std::fs;

const SESSION: &str = "ses_00000000000000000000000001";

/// Starts a host with one conversation and two files.
fn host() -> FakeHost {
    FakeHost::new(|line, _| match line {
        "GET /v1/agents/assistant/session" | "GET /v1/agents/assistant/session?thread=work" => {
            Answer::json(json!({ "session_id": SESSION }))
        }
        "GET /v1/sessions/ses_00000000000000000000000001/files?levels=1&path=" => Answer::json(json!({
            "files": [
                { "path": "a\n\u{1b}[2J", "shown": "\"a⟦U+000A⟧⟦U+001B⟧[2J\"", "kind": "file", "bytes": 7,
                  "modified_at": "2026-01-02T03:04:05Z" },
                { "shown": "b\u{202e}\nc", "kind": "link", "modified_at": "2026-01-02T03:04:05Z" }
            ],
            "more": true
        })),
        "GET /v1/sessions/ses_00000000000000000000000001/files/content?path=d%2Fnotes%2Etxt" => {
            Answer::json(json!("x"))
        }
        other => Answer::refusal("unexpected", other, ""),
    })
}

#[test]
fn list_is_safe_for_a_terminal_and_an_array_for_scripts() {
    let host = host();
    let (code, out, err) = host.ironctl(&["file", "list", "assistant"]);
    assert_eq!((code, err.as_str()), (0, "there are more than these 2 entries: list a directory of them\n"));
    assert!(out.contains("⟦U+000A⟧") && out.contains("b\\u{202e}\\nc"), "{out}");
    assert_eq!(out.lines().count(), 3, "one line for each entry: {out}");
    let out = host.output(&["--json", "file", "list", SESSION]);
    assert_eq!(json_of(&out)[0]["path"], "a\n\u{1b}[2J");
    assert!(out.is_ascii() || !out.contains('\u{202e}'), "{out}");
}

#[test]
fn workspace_of_the_conversation_is_listed_at_the_prompt() {
    let host = FakeHost::new(|line, _| match line {
        "GET /v1/agents/helper" => Answer::json(agent("helper")),
        line if line.contains("/history?") => Answer::json(json!([])),
        "GET /v1/agents/agt_00000000000000000000000001/session?as=bob&thread=work" => {
            Answer::json(json!({ "session_id": SESSION }))
        }
        line if line.starts_with("GET /v1/agents/agt_00000000000000000000000001/session?as=bob&thread=") => {
            Answer::refusal("session_unknown", "you have no such conversation", "")
        }
        line if line.ends_with("/files?levels=1&path=") => Answer::json(json!({
            "files": [{ "path": "a.txt", "shown": "a.txt", "kind": "file", "bytes": 7, "modified_at": "2026-01-02T03:04:05Z" }],
            "more": false
        })),
        other => Answer::refusal("unexpected", other, ""),
    });
    let mut terminal = Terminal::running(&host, &["chat", "helper", "--thread", "work", "--as", "bob"], Some(100));
    for (typed, seen) in [
        ("/files", "a.txt"),
        ("/files my reports", "files?levels=1&path=my%20reports"),
        ("/new empty", "new conversation"),
        ("/files", "no files"),
        ("/files reports", "you have no such conversation"),
    ] {
        terminal.say(typed);
        terminal.wait_for(seen);
    }
    terminal.leave();
    assert!(host.posted().is_empty(), "{:?}", host.asked());
}

#[test]
fn file_is_got_into_a_new_file_or_to_stdout() {
    let host = host();
    let own = tempfile::tempdir().expect("a directory");
    let to = own.path().join("got").display().to_string();
    let get = ["file", "get", "assistant", "d/notes.txt", "--thread", "work", "-o"];
    assert_eq!(host.quiet(&[&get[..], &["-"]].concat()), "\"x\"");
    host.output(&[&get[..], &[to.as_str()]].concat());
    assert_eq!(fs::read_to_string(&to).expect("written"), "\"x\"");
    let (code, _, err) = host.ironctl(&[&get[..], &[to.as_str()]].concat());
    assert!(code == 1 && err.contains("the file exists") && err.contains("--force"), "{err}");
    host.output(&[&get[..], &[to.as_str(), "--force"]].concat());
}

#[test]
fn missing_file_asks_no_host() {
    let host = host();
    let (code, _, err) = host.ironctl(&["file", "put", "assistant", "/no/such/file"]);
    assert!(code == 1 && err.contains("cannot send /no/such/file"), "{err}");
    assert!(host.asked().is_empty(), "{:?}", host.asked());
}
