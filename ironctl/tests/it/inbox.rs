//! Tests of decisions: the page matches its digest, and only a whole word decides.
//!
//! The tests type only after the question, because earlier input is dropped. See [`crate::waiting`] for their host.

use crate::fake_host::{Answer, FakeHost, status};
use crate::terminal::Terminal;
use crate::waiting::{
    Held, ID, PAGE, TEXT, approval, change, decision, decisions, digest, host_that_shows, host_with, id, request,
    set_outcome, waiting,
};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::channel;

/// The end of the question of the inbox about a page without details.
const QUESTION: &str = "approve, reject, skip, quit? ";

/// Runs `ironctl inbox` on a wide terminal.
fn at_the_inbox(host: &FakeHost) -> Terminal {
    Terminal::running(host, &["inbox"], Some(100))
}

#[test]
fn text_with_another_digest_is_neither_shown_nor_approved() {
    let host = host_that_shows(TEXT, digest("another text"));
    for words in [&["approve", ID][..], &["inbox", "show", ID], &["approve", ID, "--json"]] {
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
    let host = host_with([change("pending")]);
    let (code, out, err) = host.ironctl(&["inbox"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("inbox --json") && err.contains("approve ID"), "{err}");
    assert_eq!(host.ironctl(&["inbox", "--reset", "a", "list"]).0, 2);
    assert!(host.asked().is_empty());
}

#[test]
fn refusals_have_the_words_of_the_host() {
    for (status, has_page) in [("pending", true), ("rejected", false)] {
        let held = Held::new([change(status)]);
        let host = FakeHost::new(move |line, asked| match line.starts_with("POST") && line.contains(ID) {
            true => Answer::refusal("change_decided", &format!("{ID} is rejected already"), ""),
            false => held.answer(asked).expect("a request about what waits"),
        });
        let (code, out, err) = host.ironctl(&["approve", ID]);
        assert_eq!((code, err.as_str()), (1, format!("error: {ID} is rejected already\n").as_str()));
        let is_right = if has_page { out.starts_with(TEXT) } else { out.is_empty() };
        assert!(is_right, "a decided change has no page to decide by: {out}");
        assert_eq!(host.ironctl(&["reject", ID]).1, "");
        for words in [["approve", &id("chg", 9)], ["reject", &id("req", 9)], ["why", &id("qst", 9)]] {
            assert_eq!(host.failed(&words), (1, "unknown".to_owned()), "{words:?}");
        }
    }
}

#[test]
fn approve_sends_the_digest_that_it_printed_or_was_given() {
    for (id, page, outcome) in [(ID, TEXT, "persona of agent helper replaced"), (&id("req", 1), PAGE, "200")] {
        // The common fields are enough.
        let mut pending = waiting(id, "pending", page);
        pending["details"] = Value::Null;
        let host = host_with([pending]);
        assert_eq!(host.output(&["approve", id]), format!("{page}\n{id} is done: {outcome}\n"));
        let polled = host.asked().last().expect("a poll").line.clone();
        assert!(polled.starts_with(&format!("GET /v1/waiting/{id}?wait_ms=9")), "{polled}");
        for flag in ["--digest", "--shown"] {
            let got = host.json(&["approve", id, flag, &digest("seen before")]);
            assert_eq!((&got["id"], &got["status"]), (&json!(id), &json!("done")), "{flag}");
        }
        let seen = approval(id, "seen before");
        assert_eq!(decisions(&host), [approval(id, page), seen.clone(), seen]);
    }
}

#[test]
fn approval_without_its_effect_is_a_failure() {
    let of_call = ["call_failed", "call_unknown", "call_not_made", "call_not_made"];
    let ends = ["failed", "unknown", "expired", "withdrawn"].into_iter().zip(of_call);
    let of_calls = ends.map(|(status, code)| (id("req", 1), status, "gone", Some(code)));
    let of_changes = [
        ("failed", "change_outdated: its agent is gone", Some("change_outdated")),
        ("failed", "apt: it has no such package", Some("change_failed")),
        ("failed", "gone", Some("change_failed")),
        ("withdrawn", "", None),
    ];
    let of_changes = of_changes.map(|(status, outcome, code)| (ID.to_owned(), status, outcome, code));
    for (id, status, outcome, code) in of_calls.chain(of_changes) {
        let mut ended = waiting(&id, status, TEXT);
        set_outcome(&mut ended, outcome);
        let host = FakeHost::new(move |_, _| Answer::json(ended.clone()));
        let words = ["approve", &id, "--digest", &digest(TEXT)];
        match code {
            Some(code) => assert_eq!(host.failed(&words), (1, code.to_owned()), "{status} {outcome}"),
            None => assert!(host.output(&words).contains("is withdrawn")),
        }
    }
}

#[test]
fn host_that_stops_is_not_asked_again_for_the_outcome() {
    let host = FakeHost::new(|_, _| Answer::json(request(1, "running")));
    let req = id("req", 1);
    assert_eq!(host.output(&["approve", &req, "--digest", &digest(PAGE)]), format!("{req} is running\n"));
    assert_eq!(host.asked().len(), 2);
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
            status["waiting"] = json!([{"type": "change", "count": 1}]);
            Answer::json(status)
        }
        _ => {
            let mut others = request(1, "pending");
            others["yours"] = json!(false);
            Answer::json(json!({"entries": [others, change("done")], "more": true}))
        }
    });
    let words = ["inbox", "list", "helper", "--status", "all", "--type", "call", "--own"];
    let (code, out, err) = host.ironctl(&words);
    assert_eq!(code, 0);
    for words in [ID, "agent clerk for ana", "0 of 1", "person ana", "1 of 1"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(err.contains("there are more") && err.contains(&format!("`ironctl reject {}`", id("req", 1))), "{err}");
    assert_eq!(host.asked()[0].line, "GET /v1/waiting?agent=helper&limit=200&own=true&status=all&type=call");
    let (_, out, _) = host.ironctl(&["status"]);
    assert!(out.contains("1 change waits: ironctl inbox\n"), "{out}");
}

#[test]
fn one_is_shown_and_explained_in_the_words_of_the_host() {
    let (mut asked, req) = (request(1, "pending"), id("req", 1));
    asked["summary"] = json!(format!("{req} waits for you: `ironctl inbox`"));
    asked["details"] = Value::Null;
    let question = waiting(&id("qst", 1), "done", "QUESTION\n");
    let all = [asked, change("done"), question];
    let host = host_with(all.clone());
    assert_eq!(
        host.output(&["inbox", "show", &req]),
        format!("{PAGE}\napprovals: 0 of 1\n{req} waits for you: `ironctl inbox`\n")
    );
    for (one, words) in all.iter().zip([
        &["call http_fetch of agent assistant, requested by agent clerk for ana", "call_outward", "principal"][..],
        &["change create_agent of agent helper, requested by person ana", "decided by ana at", "is done: persona"],
        &["question ask_user_question", "the turn of the answer: ironctl why msg_", "each stage of the call"],
    ]) {
        let id = one["id"].as_str().expect("an id");
        let out = host.output(&["why", id]);
        let summary = one["summary"].as_str().expect("a sentence");
        for words in [words, &[summary]].concat() {
            assert!(out.contains(words), "{words}: {out}");
        }
        assert_eq!(&host.json(&["why", id]), one);
        assert_eq!(&host.json(&["inbox", "show", id]), one);
    }
}

#[test]
fn only_a_whole_word_decides() {
    let host = host_with([change("pending")]);
    let mut terminal = at_the_inbox(&host);
    let with_id = format!("approve {ID}");
    for word in ["", "y", "yes", "a", "Approve", "APPROVE", "approve ", " approve", &with_id, "r", "no"] {
        terminal.reply(QUESTION, word);
        terminal.wait_for("nothing was decided");
    }
    assert_eq!(decisions(&host), []);
    terminal.reply(QUESTION, "approve");
    terminal.wait_for("chg_00000000000000000000000001 is done: persona of agent helper replaced");
    terminal.end_after("nothing waits", 0);
    assert_eq!(decisions(&host), [approval(ID, TEXT)]);
}

/// Starts a host where three changes wait, the oldest first. The second has this text and digest.
pub fn host_with_three(text: &str, shown_digest: String) -> FakeHost {
    let mut all = [1, 2, 3].map(|number| {
        let id = id("chg", number);
        waiting(&id, "pending", &format!("THE TEXT OF {id}\n"))
    });
    (all[1]["shown"], all[1]["shown_digest"]) = (json!(text), json!(shown_digest));
    host_with(all)
}

#[test]
fn narrow_terminal_is_refused() {
    let host = host_with([change("pending")]);
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
        terminal.reply(QUESTION, "skip");
    }
    terminal.end_after("3 changes wait (already shown)", 0);
}

#[test]
fn untrusted_text_does_not_block_the_other_decisions() {
    for (text, shown_digest) in [(TEXT, digest("another text")), ("a\u{1b}[2Jb\n", digest("a\u{1b}[2Jb\n"))] {
        let host = host_with_three(text, shown_digest);
        let mut terminal = at_the_inbox(&host);
        terminal.wait_for("THE TEXT OF chg_00000000000000000000000001");
        terminal.reply(QUESTION, "skip");
        terminal.wait_for("error: chg_00000000000000000000000002 is undecided: ");
        terminal.wait_for("THE TEXT OF chg_00000000000000000000000003");
        terminal.reply(QUESTION, "reject");
        terminal.reply("reason (may be empty): ", "");
        terminal.wait_for("chg_00000000000000000000000003 is rejected");
        terminal.end_after("error: 1 page was not shown and is undecided", 1);
        assert_eq!(decisions(&host), [decision(&id("chg", 3), json!({"reject": ""}))], "{text:?}");
    }
}

#[test]
fn word_typed_before_the_question_decides_nothing() {
    let (typed, is_typed) = channel::<()>();
    let (is_typed, held) = (Mutex::new(is_typed), Held::new([change("pending")]));
    let host = FakeHost::new(move |line, asked| {
        if line.starts_with("GET /v1/waiting/") {
            is_typed.lock().expect("the only one").recv().expect("the test continues");
        }
        held.answer(asked).expect("a request about what waits")
    });
    let mut terminal = at_the_inbox(&host);
    terminal.reply("1 to decide", "approve");
    terminal.wait_for("approve");
    typed.send(()).expect("the host waits");
    terminal.reply(QUESTION, "quit");
    assert_eq!(terminal.end(), 0);
    assert_eq!(decisions(&host), []);
}

#[test]
fn summary_of_several_lines_is_printed_on_one() {
    for (outcome, printed) in [("no\n\nEFFECT\n  nothing", "is rejected: no EFFECT nothing"), ("", "is rejected:")] {
        let mut rejected = change("rejected");
        set_outcome(&mut rejected, outcome);
        let host = FakeHost::new(move |_, _| Answer::json(rejected.clone()));
        assert_eq!(host.output(&["reject", ID]), format!("{ID} {printed}\n"));
    }
}

#[test]
fn rejection_sends_its_reason() {
    let host = host_with([change("pending")]);
    let mut terminal = at_the_inbox(&host);
    terminal.wait_for("Replace the persona of agent \"helper\"");
    terminal.reply(QUESTION, "reject");
    terminal.reply("reason (may be empty): ", "not now");
    terminal.wait_for("chg_00000000000000000000000001 is rejected: not now");
    terminal.end_after("nothing waits", 0);
    let mut expected = vec![decision(ID, json!({"reject": "not now"}))];
    for id in [&id("req", 1), &id("qst", 1), ID] {
        let host = host_with([waiting(id, "pending", TEXT)]);
        assert_eq!(host.output(&["reject", id, "--reason", "later"]), format!("{id} is rejected: later\n"));
        expected.push(decision(id, json!({"reject": "later"})));
        assert_eq!(decisions(&host), expected[expected.len() - 1..]);
    }
}

#[test]
fn skipped_changes_stay_undecided() {
    let host = host_with([change("pending")]);
    for (keys, last) in [("skip\n", "1 change waits (already shown)"), ("quit\n", ""), ("\u{4}", "")] {
        let mut terminal = at_the_inbox(&host);
        terminal.wait_for(QUESTION);
        terminal.type_in(keys);
        terminal.end_after(last, 0);
    }
    assert_eq!(decisions(&host), []);
}

#[test]
fn approve_on_a_terminal_shows_the_page_and_asks() {
    for (typed, code) in [("quit", 1), ("approve", 0)] {
        let host = host_with([change("pending")]);
        let mut terminal = Terminal::running(&host, &["approve", ID], Some(100));
        terminal.wait_for("Replace the persona of agent \"helper\"");
        terminal.reply("approve, reject, quit? ", typed);
        assert_eq!(terminal.end(), code);
        assert_eq!(decisions(&host).len(), usize::from(typed == "approve"));
    }
    let host = host_with([change("pending")]);
    Terminal::running(&host, &["approve", ID, "--yes"], Some(100))
        .end_after("chg_00000000000000000000000001 is done", 0);
    assert_eq!(decisions(&host).len(), 1);
}

/// Returns a question whose page quotes lines that look like those of the host.
fn question(status: &str) -> Value {
    let page = "QUESTION\n  Agent \"helper\" asks:\n    | Which one?\n    | QUESTION\n  1  red\n  2  blue\n\nIDENTIFIERS\n  q: 1\n";
    waiting(&id("qst", 1), status, page)
}

#[test]
fn refused_answer_is_asked_again_below_the_page() {
    let (qst, held) = (id("qst", 1), Held::new([question("pending")]));
    let host = FakeHost::new(move |_, asked| match asked.body["answer"]["option"].as_u64() {
        Some(5) => Answer::refusal("question_option", "it has no such option", ""),
        _ => held.answer(asked).expect("a request about what waits"),
    });
    let mut terminal = at_the_inbox(&host);
    terminal.wait_for("    | QUESTION\r\n");
    let ask = "answer (1 to 2; an empty line leaves it): ";
    terminal.reply(ask, "5");
    terminal.wait_for("it has no such option");
    terminal.reply(ask, "2");
    terminal.wait_for(&format!("{qst} is done\r\nironctl why msg_"));
    assert!(!terminal.seen().contains("q: 1"), "ids are details");
    terminal.end_after("nothing waits", 0);
    let answer = |option: u32| decision(&qst, json!({"answer": {"option": option}}));
    assert_eq!(decisions(&host), [answer(5), answer(2)]);
}

#[test]
fn script_answers_by_id_and_approves_no_question() {
    let (host, qst) = (host_with([question("pending")]), id("qst", 1));
    assert_eq!(host.ironctl(&["approve", &qst]).0, 2);
    assert!(host.output(&["answer", &qst, "2"]).starts_with(&format!("{qst} is done\nironctl why msg_")));
    let answered = host.json(&["answer", &qst, "2", "--text"]);
    assert!(answered["details"]["question"]["answer"].is_string(), "{answered}");
    let answers = [json!({"answer": {"option": 2}}), json!({"answer": {"text": "2"}})];
    assert_eq!(decisions(&host), answers.map(|answer| decision(&qst, answer)));
}
