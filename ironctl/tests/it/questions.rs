//! Tests of requests to a running host and of the printed answers.
//!
//! They never compare a whole table, because columns move. See [`crate::chat`].

use crate::fake_host::{Answer, FakeHost, status, view};
use crate::terminal::Terminal;
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn status_shows_warnings_the_host_and_the_jail() {
    let host = FakeHost::new(|_, _| Answer::json(status(Path::new("/h"), 4242)));
    let (code, out, err) = host.ironctl(&["status"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("warning: mode is dangerous_warn\n"), "{out}");
    assert!(out.contains("2026-01-02 03:04:05"), "{out}");
    assert!(out.contains("2 own namespaces, seccomp filter (1), no capabilities"), "{out}");
    let asked = &host.asked()[0];
    assert_eq!(asked.line, "GET /v1/status");
    assert_eq!(asked.token, "Bearer tok_secret");
}

#[test]
fn status_for_scripts_is_the_json_of_the_host() {
    let host = FakeHost::new(|_, _| Answer::json(status(Path::new("/h"), 4242)));
    let (code, out, _) = host.ironctl(&["status", "--json"]);
    assert_eq!(code, 0);
    let got: Value = serde_json::from_str(&out).expect("one JSON document");
    assert_eq!(got["host"], status(Path::new("/h"), 4242)["host"]);
    assert_eq!(got["sessions"][0]["jail"]["mounts"], json!(["/in ro"]));
}

#[test]
fn refusal_has_the_words_of_the_host_made_safe() {
    let host = FakeHost::new(|_, _| Answer::refusal("agent_unknown", "no agent x\u{1b}[2J", "see it"));
    let (code, out, err) = host.ironctl(&["agent", "show", "x"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert_eq!(err, "error: no agent x\\u{1b}[2J\nhint: see it\n");
    let (code, _, err) = host.ironctl(&["agent", "show", "x", "--json"]);
    let failure: Value = serde_json::from_str(&err).expect("one JSON document");
    assert_eq!(code, 1);
    assert_eq!(failure["error"]["code"], "agent_unknown");
    assert_eq!(failure["error"]["message"], "no agent x\u{1b}[2J");
}

#[test]
fn name_stays_in_its_segment_of_the_path() {
    let host = FakeHost::new(|_, _| Answer::refusal("agent_unknown", "no", ""));
    host.ironctl(&["agent", "show", "../stop?x"]);
    assert_eq!(host.asked()[0].line, "GET /v1/agents/%2E%2E%2Fstop%3Fx");
}

fn agent() -> Value {
    json!({
        "id": "agt_00000000000000000000000001", "name": "assistant", "model": "scripted", "persona": "Kind.",
        "enabled_tools": ["read_file"], "created_at": "2026-01-02T03:04:05Z", "sessions": 2
    })
}

#[test]
fn agent_add_sends_only_the_named_options() {
    let host = FakeHost::new(|_, _| Answer::json(agent()));
    let (code, out, _) = host.ironctl(&["agent", "add", "assistant", "--tool", "read_file"]);
    assert_eq!(code, 0);
    assert_eq!(out, "added agent assistant (agt_00000000000000000000000001)\n");
    let asked = &host.asked()[0];
    assert_eq!(asked.line, "POST /v1/agents");
    assert_eq!(asked.body, json!({"name": "assistant", "enabled_tools": ["read_file"]}));
}

#[test]
fn lowered_guard_prints_a_warning() {
    let host = FakeHost::new(|_, asked| Answer::json(asked.body.clone()));
    let (code, out, err) = host.ironctl(&["agent", "set", "assistant", "--mode", "dangerous_warn"]);
    assert_eq!((code, out.as_str()), (0, "set agent assistant to mode dangerous_warn\n"));
    assert!(err.contains("the guard is lowered"), "{err}");
    let (_, _, err) = host.ironctl(&["agent", "set", "assistant", "--mode", "enforce"]);
    assert!(!err.contains("lowered"), "{err}");
    let asked = &host.asked()[0];
    assert_eq!(asked.line, "POST /v1/agents/assistant/mode");
    assert_eq!(asked.body, json!({"mode": "dangerous_warn"}));
}

#[test]
fn removal_needs_a_confirmation() {
    let host = FakeHost::new(|_, _| Answer::json(agent()));
    for words in [&["agent", "remove", "assistant"], &["session", "remove", "ses_00000000000000000000000001"]] {
        let (code, _, err) = host.ironctl(words);
        assert_eq!(code, 2);
        assert!(err.contains("hint: confirm it with --yes"), "{err}");
    }
    assert!(!host.asked().iter().any(|asked| asked.line.starts_with("DELETE")));
    let (code, ..) = host.ironctl(&["agent", "remove", "assistant", "--yes"]);
    assert_eq!(code, 0);
    assert_eq!(
        host.asked().last().map(|asked| asked.line.clone()),
        Some("DELETE /v1/agents/agt_00000000000000000000000001".into())
    );
}

#[test]
fn why_prints_every_stage_and_the_summary() {
    let host = FakeHost::new(|_, _| {
        Answer::json(json!({
            "message": view(None, Some("parked")),
            "stages": [
                {"seq": 3, "at": "2026-01-02T03:04:05.678Z", "stage": "message.recorded", "outcome": "done"},
                {"seq": 4, "at": "2026-01-02T03:04:06.000Z", "stage": "launch", "outcome": "refused",
                 "reason": "no user namespaces\u{202e}"}
            ],
            "summary": "It waits because the session is parked."
        }))
    });
    let (code, out, _) = host.ironctl(&["why"]);
    assert_eq!(code, 0);
    assert_eq!(host.asked()[0].line, "GET /v1/messages/last/why");
    assert!(out.contains("03:04:05.678"), "{out}");
    assert!(out.contains("no user namespaces\\u{202e}"), "{out}");
    assert!(out.ends_with("It waits because the session is parked.\n"), "{out}");
}

#[test]
fn answer_of_an_unexpected_shape_names_the_versions() {
    let host = FakeHost::new(|_, _| Answer::json(json!({"version": 2})));
    let (code, _, err) = host.ironctl(&["status"]);
    assert_eq!(code, 1);
    assert!(err.contains("may be of different versions"), "{err}");
}

#[test]
fn lowered_guard_is_reviewed_on_a_terminal() {
    let page = "EFFECT\n  Turn OFF the protection.\n\nWARNINGS\n  !! This host NO LONGER CHECKS text.\n";
    let digest = ironclaw_contract::canonical::Digest::of(page.as_bytes()).to_string();
    let host = FakeHost::new(move |line, _| match line {
        "POST /v1/changes" => {
            Answer::json(json!({"id": "chg_00000000000000000000000001", "status": "pending", "yours": true}))
        }
        _ => Answer::json(json!({
            "id": "chg_00000000000000000000000001", "kind": "settings", "agent": {"id": "agt_00000000000000000000000001", "name": "assistant"},
            "status": if line.ends_with("/approve") { "applied" } else if line.ends_with("/reject") { "rejected" } else { "pending" },
            "before": {"mode": "enforce"}, "after": {"mode": "dangerous_off"},
            "requested_by": {"kind": "person", "id": "per_00000000000000000000000001", "name": "owner"}, "origin": null, "reason": "",
            "shown_digest": digest, "decided_by": null, "decided_at": null, "applied_at": null, "outcome": "done",
            "shown": page, "approvals": {"by": [], "needed": 1},
            "created_at": "2026-01-02T03:04:05.000Z", "expires_at": "2026-01-09T03:04:05.000Z"
        })),
    });
    let posts = || -> Vec<String> {
        let asked = host.asked().into_iter().map(|asked| asked.line);
        asked.filter(|line| line.starts_with("POST")).collect()
    };
    let words = ["agent", "set", "assistant", "--mode", "dangerous_off"];
    let mut terminal = Terminal::running(&host, &words, Some(100));
    terminal.wait_for("NO LONGER CHECKS");
    terminal.wait_for("approve, reject, quit? ");
    terminal.type_in("quit\n");
    assert_eq!(terminal.end(), 1);
    assert_eq!(posts(), ["POST /v1/changes", "POST /v1/changes/chg_00000000000000000000000001/reject"]);
    let mut terminal = Terminal::running(&host, &words, Some(100));
    terminal.wait_for("approve, reject, quit? ");
    terminal.type_in("approve\n");
    terminal.wait_for("chg_00000000000000000000000001 is applied");
    assert_eq!(terminal.end(), 0);
    assert_eq!(posts().last().map(String::as_str), Some("POST /v1/changes/chg_00000000000000000000000001/approve"));
}
