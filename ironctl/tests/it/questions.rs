//! Tests of requests to a running host and of the printed answers.
//!
//! They never compare a whole table, because columns move. See [`crate::chat`].

use crate::fake_host::{Answer, FakeHost, agent, code_of, json_of, status, view};
use crate::terminal::Terminal;
use crate::waiting::{Held, ID, approval, decision, decisions, posts, waiting};
use serde_json::json;
use std::path::Path;

#[test]
fn status_shows_the_host_and_for_scripts_its_json() {
    let host = FakeHost::new(|_, _| Answer::json(status(Path::new("/h"), 4242)));
    let out = host.quiet(&["status"]);
    assert!(out.starts_with("warning: mode is dangerous_warn\n"), "{out}");
    for words in ["2026-01-02 03:04:05", "2 own namespaces, seccomp filter (1), no capabilities"] {
        assert!(out.contains(words), "{out}");
    }
    let asked = &host.asked()[0];
    assert_eq!((asked.line.as_str(), asked.token.as_str()), ("GET /v1/status", "Bearer tok_secret"));
    let got = host.json(&["status"]);
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
    assert_eq!((code, code_of(&err).as_str()), (1, "agent_unknown"));
    assert_eq!(json_of(&err)["error"]["message"], "no agent x\u{1b}[2J");
}

#[test]
fn name_stays_in_its_segment_of_the_path() {
    let host = FakeHost::new(|_, _| Answer::refusal("agent_unknown", "no", ""));
    host.ironctl(&["agent", "show", "../stop?x"]);
    assert_eq!(host.asked()[0].line, "GET /v1/agents/%2E%2E%2Fstop%3Fx");
}

#[test]
fn agent_add_sends_only_the_named_options() {
    let host = FakeHost::new(|_, _| Answer::json(agent("assistant")));
    let out = host.output(&["agent", "add", "assistant", "--tool", "read_file"]);
    assert_eq!(out, "added agent assistant (agt_00000000000000000000000001)\n");
    let sent = json!({"name": "assistant", "enabled_tools": ["read_file"]});
    assert_eq!((host.asked()[0].line.as_str(), &host.asked()[0].body), ("POST /v1/agents", &sent));
}

#[test]
fn lowered_guard_prints_a_warning() {
    let host = FakeHost::new(|_, asked| Answer::json(asked.body.clone()));
    let (code, out, err) = host.ironctl(&["agent", "set", "assistant", "--mode", "dangerous_warn"]);
    assert_eq!((code, out.as_str()), (0, "set agent assistant to mode dangerous_warn\n"));
    assert!(err.contains("the guard is lowered"), "{err}");
    let (_, _, err) = host.ironctl(&["agent", "set", "assistant", "--mode", "enforce"]);
    assert!(!err.contains("lowered"), "{err}");
    let (asked, sent) = (&host.asked()[0], json!({"mode": "dangerous_warn"}));
    assert_eq!((asked.line.as_str(), &asked.body), ("POST /v1/agents/assistant/mode", &sent));
}

#[test]
fn removal_needs_a_confirmation() {
    let host = FakeHost::new(|_, _| Answer::json(agent("assistant")));
    for words in [&["agent", "remove", "assistant"], &["session", "remove", "ses_00000000000000000000000001"]] {
        let (code, _, err) = host.ironctl(words);
        assert!(code == 2 && err.contains("hint: confirm it with --yes"), "{words:?}: {err}");
    }
    assert!(!host.asked().iter().any(|asked| asked.line.starts_with("DELETE")));
    host.output(&["agent", "remove", "assistant", "--yes"]);
    let last = host.asked().pop().expect("a request").line;
    assert_eq!(last, "DELETE /v1/agents/agt_00000000000000000000000001");
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
    let out = host.output(&["why"]);
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
    let words = ["agent", "set", "assistant", "--mode", "dangerous_off"];
    for (typed, code, decided) in [("quit", 1, decision(ID, json!({"reject": ""}))), ("approve", 0, approval(ID, page))]
    {
        let held = Held::new([waiting(ID, "pending", page)]);
        let host = FakeHost::new(move |line, asked| match line {
            "POST /v1/changes" => Answer::json(json!({"id": ID, "status": "pending", "yours": true})),
            _ => held.answer(asked).expect("a request about the change"),
        });
        let mut terminal = Terminal::running(&host, &words, Some(100));
        terminal.wait_for("NO LONGER CHECKS");
        terminal.reply("approve, reject, quit? ", typed);
        assert_eq!(terminal.end(), code);
        assert_eq!(posts(&host)[0].0, "POST /v1/changes");
        assert_eq!(decisions(&host), [decided]);
    }
}
