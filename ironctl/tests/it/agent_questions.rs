//! Tests of questions of agents on a terminal and in a script: refused lines, answers and unsafe text.
//!
//! See [`crate::inbox`] for calls and changes.

use crate::fake_host::{Answer, Asked, FakeHost, recorded};
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
    FakeHost::new(move |line, asked: &Asked| match (line, line.split_once(&format!("/v1/questions/{ID}"))) {
        ("GET /v1/inbox", _) if answered.load(Ordering::SeqCst) => Answer::json(json!([])),
        ("GET /v1/inbox", _) => Answer::json(json!([question("waiting")])),
        ("GET /v1/allowances/offers", _) => Answer::json(json!([])),
        (_, Some(("GET ", ""))) => Answer::json(question("waiting")),
        (_, Some(("GET ", "/why"))) => Answer::json(why()),
        (_, Some(("POST ", "/answer"))) if asked.body["option"] == 2 => {
            answered.store(true, Ordering::SeqCst);
            recorded()
        }
        (_, Some(("POST ", "/reject"))) => Answer::json(question("cancelled")),
        _ => Answer::refusal("question_option", "it has no such option", ""),
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
    terminal.reply("answer (1 to 2; an empty line leaves it): ", "2");
    terminal.end_after(&format!("answered {ID}"), 0);
    let bodies: Vec<Value> = decisions(&host).into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, [json!({"option": 5}), json!({"option": 2})]);
}

#[test]
fn script_answers_and_cancels_by_id() {
    let host = host();
    assert!(host.output(&["answer", ID, "2"]).contains(ID));
    assert_eq!(host.ironctl(&["answer", ID, "2", "--text"]).0, 1);
    assert_eq!(host.output(&["reject", ID, "--reason", "later"]), format!("{ID} is cancelled\n"));
    assert_eq!(host.ironctl(&["approve", ID]).0, 2);
    let bodies: Vec<Value> = decisions(&host).into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, [json!({"option": 2}), json!({"text": "2"}), json!({"reason": "later"})]);
}

#[test]
fn why_shows_the_origin_and_the_end_of_a_question() {
    let host = host();
    let out = host.output(&["why", ID]);
    let call = "call_00000000000000000000000001";
    for words in ["agent helper to mara", "msg_00000000000000000000000001", "by ada: later", "was cancelled", call] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(!out.contains('\u{1b}') && !out.lines().any(|line| line.starts_with("answered")), "{out}");
    assert_eq!(host.json(&["why", ID]), why());
}
