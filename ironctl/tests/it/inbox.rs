//! Tests of decisions: the page matches its digest, and only a whole word decides.
//!
//! The tests type only after the question, because earlier input is dropped. See [`crate::questions`].

use crate::fake_host::{Answer, Asked, FakeHost, status};
use crate::terminal::Terminal;
use ironclaw_contract::canonical::Digest;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

/// The change of these tests.
pub const ID: &str = "chg_00000000000000000000000001";

pub const TEXT: &str = "EFFECT\n  Replace the persona of agent \"helper\": 1 line removed, 1 line added.\n";

pub fn digest(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string()
}

/// Returns a change with this page.
pub fn change(id: &str, status: &str, shown: &str, shown_digest: &str) -> Value {
    let decided = (status != "pending").then_some("per_00000000000000000000000001");
    json!({
        "id": id, "kind": "persona", "agent": {"id": "agt_00000000000000000000000001", "name": "helper"}, "status": status,
        "before": {"instructions": "a"}, "after": {"instructions": "b"},
        "requested_by": {"kind": "agent", "id": "agt_00000000000000000000000001", "name": "helper", "on_behalf_of": "per_00000000000000000000000001"},
        "origin": {"session": "ses_00000000000000000000000001", "turn": "trn_00000000000000000000000001", "message": "msg_00000000000000000000000001", "call": "call_00000000000000000000000001"},
        "reason": "you asked", "shown_digest": shown_digest, "decided_by": decided, "decided_at": null,
        "applied_at": null, "outcome": (status == "applied").then_some("persona of agent helper replaced"),
        "shown": shown, "approvals": {"by": [], "needed": 1},
        "created_at": "2026-01-02T03:04:05.000Z", "expires_at": "2026-01-09T03:04:05.000Z"
    })
}

/// Returns a waiting change as an element of a list.
pub fn summary(id: &str) -> Value {
    let mut summary = change(id, "pending", TEXT, "");
    let fields = summary.as_object_mut().expect("an object");
    fields.retain(|name, _| {
        ["id", "kind", "agent", "status", "requested_by", "created_at", "expires_at", "approvals"]
            .contains(&name.as_str())
    });
    summary
}

/// Returns a waiting change as an element of the inbox.
pub fn entry(id: &str) -> Value {
    json!({
        "id": id, "type": "change", "agent": "helper", "status": "pending", "effect": "persona", "arguments": null, "origins": [],
        "reasons": [], "shown_digest": "00".repeat(32), "created_at": "2026-01-02T03:04:05.000Z",
        "expires_at": "2026-01-09T03:04:05.000Z", "told": [], "yours": true
    })
}

/// Starts a host where the change waits for a decision.
fn host_with_one() -> FakeHost {
    let decided = AtomicBool::new(false);
    FakeHost::new(move |line, _: &Asked| {
        let is_decided = decided.load(Ordering::SeqCst);
        let (verb, of_change) = line.split_once(&format!(" /v1/changes/{ID}")).unwrap_or((line, ""));
        match (verb, of_change) {
            ("GET /v1/inbox", _) => Answer::json(if is_decided { json!([]) } else { json!([entry(ID)]) }),
            ("GET /v1/allowances/offers", _) => Answer::json(json!([])),
            ("GET", _) => change_is(if is_decided { "applied" } else { "pending" }),
            ("POST", "/approve" | "/reject") => {
                decided.store(true, Ordering::SeqCst);
                change_is(if of_change == "/approve" { "approved" } else { "rejected" })
            }
            _ => Answer::missing("change_unknown", "there is no such change"),
        }
    })
}

/// Starts a host that shows this text with this digest.
pub fn host_that_shows(text: &'static str, digest: String) -> FakeHost {
    FakeHost::new(move |line, _| match line {
        "GET /v1/inbox" => Answer::json(json!([entry(ID)])),
        line if line.starts_with("GET /v1/changes/") => Answer::json(change(ID, "pending", text, &digest)),
        "GET /v1/allowances/offers" => Answer::json(json!([])),
        _ => Answer::json(change(ID, "applied", text, &digest)),
    })
}

/// Runs `ironctl inbox` on a wide terminal.
fn at_the_inbox(host: &FakeHost) -> Terminal {
    Terminal::running(host, &["inbox"], Some(100))
}

/// Answers with the change in this status.
pub fn change_is(status: &str) -> Answer {
    Answer::json(change(ID, status, TEXT, &digest(TEXT)))
}

pub fn decisions(host: &FakeHost) -> Vec<(String, Value)> {
    let posts = host.posted().into_iter();
    posts.map(|asked| (asked.line, asked.body)).collect()
}

#[test]
fn text_with_another_digest_is_neither_shown_nor_approved() {
    let host = host_that_shows(TEXT, digest("another text"));
    for words in [&["approve", ID][..], &["change", "show", ID], &["approve", ID, "--json"]] {
        let (code, out, err) = host.ironctl(words);
        assert_eq!((code, out.as_str()), (1, ""), "{words:?}");
        assert!(err.contains("does not match its digest"), "{err}");
    }
    at_the_inbox(&host).end_after("match its digest", 1);
    assert_eq!(decisions(&host), []);
}

#[test]
fn text_with_control_characters_is_never_shown_or_approved() {
    for text in ["a\u{1b}[2Jb\n", "a\rb\n", "a\tb\n", "a\u{9b}b\n", "a\u{202e}b\n"] {
        let host = host_that_shows(text, digest(text));
        let (code, out, err) = host.ironctl(&["approve", ID]);
        assert_eq!((code, out.as_str()), (1, ""), "{text:?}");
        assert!(err.contains("contains terminal control characters"), "{err}");
        assert_eq!(decisions(&host), []);
    }
}

#[test]
fn inbox_needs_a_terminal_and_names_the_script_commands() {
    let host = host_with_one();
    let (code, out, err) = host.ironctl(&["inbox"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("inbox --json") && err.contains("approve ID"), "{err}");
    assert!(host.asked().is_empty());
}

#[test]
fn refusals_have_the_words_of_the_host() {
    let host = FakeHost::new(|line, _| match line {
        line if line.ends_with("/approve") => {
            Answer::refusal("change_decided", &format!("{ID} is rejected already"), "")
        }
        line if line.starts_with(&format!("GET /v1/changes/{ID}")) => change_is("pending"),
        _ => Answer::missing("change_unknown", "there is no change chg_00000000000000000000000009"),
    });
    let (code, out, err) = host.ironctl(&["approve", ID]);
    assert_eq!((code, err.as_str()), (1, format!("error: {ID} is rejected already\n").as_str()));
    assert!(out.starts_with(TEXT), "{out}");
    let (code, _, err) = host.ironctl(&["approve", "chg_00000000000000000000000009"]);
    assert_eq!((code, err.as_str()), (1, "error: there is no change chg_00000000000000000000000009\n"));
    let refused = host.failed(&["reject", "chg_00000000000000000000000009"]);
    assert_eq!(refused, (1, "change_unknown".to_owned()));
}

#[test]
fn approve_sends_the_digest_that_it_printed_or_was_given() {
    let host = host_with_one();
    let out = host.output(&["approve", ID]);
    assert!(out.starts_with(TEXT), "{out}");
    assert!(out.ends_with(&format!("{ID} is applied: persona of agent helper replaced\n")), "{out}");
    let printed = host.json(&["approve", ID, "--shown", &digest("seen before")]);
    assert_eq!(printed["status"], "applied");
    let approved = |shown: &str| (format!("POST /v1/changes/{ID}/approve"), json!({"shown": digest(shown)}));
    assert_eq!(decisions(&host), [approved(TEXT), approved("seen before")]);
}

#[test]
fn change_that_could_not_be_applied_is_a_failure() {
    let host = FakeHost::new(|_, _| change_is("failed"));
    let (code, out, err) = host.ironctl(&["approve", ID, "--shown", &digest(TEXT)]);
    assert_eq!(code, 1, "{out}");
    assert!(err.contains(&format!("{ID} was approved but could not be applied")), "{err}");
}

#[test]
fn change_is_submitted_unchanged_and_a_repeated_one_is_named() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "{\"instructions\": \"be kind\"}").expect("written");
    let from_file = format!("@{}", file.path().display());
    for (again, payload, body, line) in [
        (false, from_file.as_str(), json!({"instructions": "be kind"}), format!("{ID} is pending\n")),
        (true, "{}", json!({}), format!("the same change already waits: {ID}\n")),
    ] {
        let host = FakeHost::new(move |_, _| Answer::json(json!({"id": ID, "status": "pending", "again": again})));
        let words =
            ["change", "submit", "--kind", "persona", "--agent", "helper", "--payload", payload, "--reason", "r"];
        assert_eq!(host.output(&words), line);
        let fields = format!(r#""id":"{ID}","status":"pending","again":{again},"yours":false,"waits_for":"""#);
        assert_eq!(host.output(&[&words[..], &["--json"]].concat()), format!("{{{fields}}}\n"), "{payload}");
        let asked = &host.asked()[0];
        let wanted = json!({"kind": "persona", "agent": "helper", "payload": body, "reason": "r"});
        assert_eq!((asked.line.as_str(), &asked.body), ("POST /v1/changes", &wanted), "{payload}");
    }
}

#[test]
fn list_names_the_requester_and_status_the_inbox() {
    let host = FakeHost::new(|line, _| match line {
        "GET /v1/status" => {
            let mut status = status(Path::new("/h"), 4242);
            status["changes_waiting"] = json!(1);
            Answer::json(status)
        }
        _ => Answer::json(json!({"changes": [summary(ID)], "more": true})),
    });
    let (code, out, err) = host.ironctl(&["change", "list", "--status", "all", "--agent", "helper"]);
    assert_eq!(code, 0);
    assert!(out.contains(ID) && out.contains("agent helper") && out.contains("0 of 1"), "{out}");
    assert!(err.contains("there are more"), "{err}");
    assert_eq!(host.asked()[0].line, "GET /v1/changes?agent=helper&limit=200&status=all");
    let (_, out, _) = host.ironctl(&["status"]);
    assert!(out.contains("1 change waits: ironctl inbox\n"), "{out}");
}

#[test]
fn only_a_whole_word_decides() {
    let host = host_with_one();
    let mut terminal = at_the_inbox(&host);
    let with_id = format!("approve {ID}");
    for word in ["", "y", "yes", "a", "Approve", "APPROVE", "approve ", " approve", &with_id, "r", "no"] {
        terminal.reply("skip, quit? ", word);
        terminal.wait_for("nothing was decided");
    }
    assert_eq!(decisions(&host), []);
    terminal.reply("skip, quit? ", "approve");
    terminal.wait_for("chg_00000000000000000000000001 is applied: persona of agent helper replaced");
    terminal.end_after("nothing waits", 0);
    assert_eq!(decisions(&host), [(format!("POST /v1/changes/{ID}/approve"), json!({"shown": digest(TEXT)}))]);
}

/// The changes of a host where three wait.
const IDS: [&str; 3] = [ID, "chg_00000000000000000000000002", "chg_00000000000000000000000003"];

/// Starts a host where three changes wait, the oldest first. The second has this text and digest.
pub fn host_with_three(text: &'static str, shown_digest: String) -> FakeHost {
    FakeHost::new(move |line, _| {
        if line == "GET /v1/inbox" {
            return Answer::json(json!(IDS.map(entry)));
        }
        if matches!(line, "GET /v1/allowances/offers" | "GET /v1/unread") {
            return Answer::json(json!([]));
        }
        let id = IDS.into_iter().find(|id| line.contains(id)).expect("one of them");
        let status = if line.starts_with("POST") { "rejected" } else { "pending" };
        if id == IDS[1] {
            return Answer::json(change(id, status, text, &shown_digest));
        }
        let page = format!("THE TEXT OF {id}\n");
        Answer::json(change(id, status, &page, &digest(&page)))
    })
}

#[test]
fn narrow_terminal_is_refused() {
    let host = host_with_one();
    Terminal::running(&host, &["inbox"], Some(40)).end_after("least 80 columns wide", 1);
}

#[test]
fn page_wider_than_the_terminal_does_not_count_as_forged() {
    let wide = "THE TEXT OF chg_1 is one line of more than a hundred characters, which this terminal would break into two of them\n";
    let host = host_that_shows(wide, digest(wide));
    let mut terminal = at_the_inbox(&host);
    terminal.wait_for("the terminal has 100 columns, and a line of this page has 113");
    terminal.wait_for("make the terminal at least 80 columns wide");
    assert_eq!(terminal.ironctl.wait().expect("ironctl ends").code(), Some(1));
    let seen = terminal.seen();
    assert!(!seen.contains("undecided") && !seen.contains("audit verify") && !seen.contains("THE TEXT"), "{seen:?}");
    assert_eq!(decisions(&host), []);
}

#[test]
fn longest_waiting_change_is_asked_about_first() {
    let host = host_with_three(TEXT, digest(TEXT));
    let mut terminal = at_the_inbox(&host);
    for text in [
        "THE TEXT OF chg_00000000000000000000000001",
        "Replace the persona of agent \"helper\"",
        "THE TEXT OF chg_00000000000000000000000003",
    ] {
        terminal.wait_for(text);
        terminal.reply("skip, quit? ", "skip");
    }
    terminal.end_after("3 changes wait (already shown)", 0);
}

#[test]
fn untrusted_text_does_not_block_the_other_decisions() {
    for (text, shown_digest) in [(TEXT, digest("another text")), ("a\u{1b}[2Jb\n", digest("a\u{1b}[2Jb\n"))] {
        let host = host_with_three(text, shown_digest);
        let mut terminal = at_the_inbox(&host);
        terminal.wait_for("THE TEXT OF chg_00000000000000000000000001");
        terminal.reply("skip, quit? ", "skip");
        terminal.wait_for("error: chg_00000000000000000000000002 is undecided: ");
        terminal.wait_for("THE TEXT OF chg_00000000000000000000000003");
        terminal.reply("skip, quit? ", "reject");
        terminal.reply("reason (may be empty): ", "");
        terminal.wait_for("chg_00000000000000000000000003 is rejected");
        terminal.end_after("error: 1 page was not shown and is undecided", 1);
        let rejected = "POST /v1/changes/chg_00000000000000000000000003/reject".to_owned();
        assert_eq!(decisions(&host), [(rejected, json!({"reason": ""}))], "{text:?}");
    }
}

#[test]
fn word_typed_before_the_question_decides_nothing() {
    let (typed, is_typed) = channel::<()>();
    let is_typed = Mutex::new(is_typed);
    let host = FakeHost::new(move |line, _| match line {
        "GET /v1/inbox" => Answer::json(json!([entry(ID)])),
        line if line.starts_with("GET") => {
            is_typed.lock().expect("the only one").recv().expect("the test continues");
            change_is("pending")
        }
        _ => change_is("applied"),
    });
    let mut terminal = at_the_inbox(&host);
    terminal.reply("1 to decide", "approve");
    terminal.wait_for("approve");
    typed.send(()).expect("the host waits");
    terminal.reply("skip, quit? ", "quit");
    assert_eq!(terminal.end(), 0);
    assert_eq!(decisions(&host), []);
}

#[test]
fn reason_of_several_lines_is_printed_on_one() {
    let mut rejected = change(ID, "rejected", TEXT, &digest(TEXT));
    rejected["outcome"] = json!("no\n\nEFFECT\n  nothing");
    let host = FakeHost::new(move |_, _| Answer::json(rejected.clone()));
    assert_eq!(host.output(&["reject", ID]), format!("{ID} is rejected: no EFFECT nothing\n"));
}

#[test]
fn rejection_sends_its_reason() {
    let host = host_with_one();
    let mut terminal = at_the_inbox(&host);
    terminal.wait_for("Replace the persona of agent \"helper\"");
    terminal.reply("skip, quit? ", "reject");
    terminal.reply("reason (may be empty): ", "not now");
    terminal.wait_for("chg_00000000000000000000000001 is rejected");
    terminal.end_after("nothing waits", 0);
    assert_eq!(decisions(&host), [(format!("POST /v1/changes/{ID}/reject"), json!({"reason": "not now"}))]);
}

#[test]
fn skipped_changes_stay_undecided() {
    let host = host_with_one();
    for (keys, last) in [("skip\n", "1 change waits (already shown)"), ("quit\n", ""), ("\u{4}", "")] {
        let mut terminal = at_the_inbox(&host);
        terminal.wait_for("skip, quit? ");
        terminal.type_in(keys);
        terminal.end_after(last, 0);
    }
    assert_eq!(decisions(&host), []);
}

#[test]
fn approve_on_a_terminal_shows_the_page_and_asks() {
    let host = host_with_one();
    let mut terminal = Terminal::running(&host, &["approve", ID], Some(100));
    terminal.wait_for("Replace the persona of agent \"helper\"");
    terminal.reply("approve, reject, quit? ", "quit");
    assert_eq!(terminal.end(), 1);
    assert_eq!(decisions(&host), []);
    let mut terminal = Terminal::running(&host, &["approve", ID], Some(100));
    terminal.reply("approve, reject, quit? ", "approve");
    terminal.end_after("chg_00000000000000000000000001 is applied", 0);
    assert_eq!(decisions(&host).len(), 1);
    let host = host_with_one();
    Terminal::running(&host, &["approve", ID, "--yes"], Some(100))
        .end_after("chg_00000000000000000000000001 is applied", 0);
    assert_eq!(decisions(&host).len(), 1);
}
