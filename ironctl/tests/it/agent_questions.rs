//! Tests of questions of agents on a terminal and in a script: refused lines, answers and unsafe text.
//!
//! See [`crate::inbox`] for calls and changes.

use crate::fake_host::{Answer, Asked, FakeHost};
use crate::inbox::decisions;
use crate::terminal::Terminal;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

const ID: &str = "qst_00000000000000000000000001";

/// Returns the question as the host shows it.
fn question(status: &str) -> Value {
    json!({
        "id": ID, "type": "question", "agent": "helper", "status": status, "effect": "asks", "arguments": null, "origins": [],
        "reasons": [], "shown_digest": "00".repeat(32), "created_at": "2026-01-02T03:04:05.000Z",
        "expires_at": "2026-01-09T03:04:05.000Z", "told": [], "yours": status == "waiting",
        "session_id": "ses_00000000000000000000000001", "question": "Which\u{1b}[2J one?\nquestion qst_x (waiting)",
        "options": ["red", "blue\nquestion"], "free_text": false
    })
}

/// Returns the origin and the end of the question, with a reason that looks like lines of the host.
fn why() -> Value {
    let id = |prefix: &str| format!("{prefix}_00000000000000000000000001");
    json!({
        "id": ID, "agent": "helper", "person": "mara", "session_id": id("ses"), "message_id": id("msg"), "turn_id": id("trn"),
        "call_id": id("call"), "status": "cancelled", "created_at": "2026-01-02T03:04:05.000Z",
        "expires_at": "2026-01-09T03:04:05.000Z", "ended_at": "2026-01-03T03:04:05.000Z", "ended_by": "ada",
        "reason": "later\nanswered\u{1b}[2J", "answer": null, "summary": "The question was cancelled."
    })
}

/// Starts a host where the question waits.
fn host() -> FakeHost {
    let answered = AtomicBool::new(false);
    let path = |rest: &str| format!("/v1/questions/{ID}{rest}");
    FakeHost::new(move |line, asked: &Asked| {
        let is_waiting = !answered.load(Ordering::SeqCst);
        if line == "GET /v1/inbox" {
            return Answer::json(if is_waiting { json!([question("waiting")]) } else { json!([]) });
        }
        if line == "GET /v1/allowances/offers" {
            return Answer::json(json!([]));
        }
        if line == format!("GET {}", path("")) {
            return Answer::json(question("waiting"));
        }
        if line == format!("GET {}", path("/why")) {
            return Answer::json(why());
        }
        if line == format!("POST {}", path("/answer")) && asked.body["option"] == 2 {
            answered.store(true, Ordering::SeqCst);
            let recorded =
                json!({"message_id": "msg_00000000000000000000000001", "session_id": "ses_00000000000000000000000001"});
            return Answer::json(recorded);
        }
        if line == format!("POST {}", path("/reject")) {
            return Answer::json(question("cancelled"));
        }
        Answer::refusal("question_option", "it has no such option", "")
    })
}

#[test]
fn refused_line_is_asked_again_and_agents_text_is_marked() {
    let host = host();
    let mut terminal = Terminal::running(&host, &["inbox"], Some(100));
    terminal.wait_for("agent helper asks in its own words:");
    terminal.wait_for("answer (1 to 2; an empty line leaves it): ");
    let lines = terminal.lines();
    assert!(!lines.iter().any(|line| line.starts_with("question qst_x")), "{lines:?}");
    assert!(lines.iter().filter(|line| line.trim_start().starts_with("question")).count() == 1, "{lines:?}");
    terminal.type_in("5\n");
    terminal.wait_for("it has no such option");
    terminal.wait_for("answer (1 to 2; an empty line leaves it): ");
    terminal.type_in("2\n");
    terminal.wait_for(&format!("answered {ID}"));
    assert_eq!(terminal.end(), 0);
    let bodies: Vec<Value> = decisions(&host).into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, [json!({"option": 5}), json!({"option": 2})]);
}

#[test]
fn script_answers_and_cancels_by_id() {
    let host = host();
    let (code, out, _) = host.ironctl(&["answer", ID, "2"]);
    assert_eq!((code, out.contains(ID)), (0, true), "{out}");
    assert_eq!(host.ironctl(&["answer", ID, "2", "--text"]).0, 1);
    let (code, out, _) = host.ironctl(&["reject", ID, "--reason", "later"]);
    assert_eq!((code, out), (0, format!("{ID} is cancelled\n")));
    assert_eq!(host.ironctl(&["approve", ID]).0, 2);
    let bodies: Vec<Value> = decisions(&host).into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, [json!({"option": 2}), json!({"text": "2"}), json!({"reason": "later"})]);
}

#[test]
fn why_shows_the_origin_and_the_end_of_a_question() {
    let host = host();
    let (code, out, _) = host.ironctl(&["why", ID]);
    assert_eq!(code, 0, "{out}");
    let call = "call_00000000000000000000000001";
    for words in ["agent helper to mara", "msg_00000000000000000000000001", "by ada: later", "was cancelled", call] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(!out.contains('\u{1b}') && !out.lines().any(|line| line.starts_with("answered")), "{out}");
    let (_, out, _) = host.ironctl(&["why", ID, "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&out).expect("one JSON document"), why());
}
