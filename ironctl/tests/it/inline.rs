//! Tests of the question about a call in a conversation.
//!
//! The test is the host: it sends each event of the message. See [`crate::requests`] for the inbox and the commands.

use crate::chat::conversation;
use crate::fake_host::{Answer, FakeHost, notice, view};
use crate::terminal::Terminal;
use crate::waiting::{BOTH, Held, PAGE, approval, call_together, decision, decisions, digest, id, posts, request};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The end of the question about the first request.
const QUESTION: &str = "1 yes, 1 no, details, later? ";

const MARK: &str = "⟦approval request ";

type Event = (&'static str, Value);

fn stage(name: &str) -> Event {
    numbered(3, name)
}

/// Returns an event of a stage with this number in the ledger.
fn numbered(seq: u32, name: &str) -> Event {
    (
        "stage",
        json!({"seq": seq, "at": "t", "stage": name, "outcome": "done", "reason": "tool http_fetch, call call_1"}),
    )
}

fn draft(attempt: u32, text: &str) -> Event {
    ("draft", json!({"attempt": attempt, "from": 0, "text": text}))
}

/// Starts a host with one message; the test sends its events. The inbox has these entries.
fn host_in_a_turn(inbox: Vec<Value>) -> (FakeHost, Sender<Event>) {
    let (events, later) = channel();
    (host_with_streams(vec![later], inbox), events)
}

/// Starts a host with one message and these streams of its events.
fn host_with_streams(streams: Vec<Receiver<Event>>, inbox: Vec<Value>) -> FakeHost {
    let is_together = inbox.iter().any(|entry| entry["details"]["call"]["together"].is_array());
    let call = |number| if is_together { call_together(number, "pending") } else { request(number, "pending") };
    let (streams, calls) = (Mutex::new(streams.into_iter()), Held::new([1, 2].map(call)));
    FakeHost::new(move |line, asked| match line {
        line if line.starts_with("GET /v1/messages/msg_00000000000000000000000001/events") => {
            Answer::later_events(streams.lock().expect("the only one").next().expect("a stream"))
        }
        line if line.starts_with("GET /v1/waiting?") => Answer::json(json!(inbox)),
        line if line.ends_with("/cancel") => Answer::json(
            json!({"session_id": id("ses", 1), "turn_id": id("trn", 1), "messages": [id("msg", 1)], "running": true}),
        ),
        other => calls.answer(asked).unwrap_or_else(|| conversation(other, "Posted.")),
    })
}

/// Opens a conversation, sends a message, and shows the beginning of the answer.
fn say_hello(host: &FakeHost, events: &Sender<Event>) -> Terminal {
    let mut terminal = Terminal::running(host, &["chat", "assistant"], Some(100));
    terminal.say("hello");
    for event in [stage("model.asked"), draft(1, "I shall post it."), stage("output.sealed")] {
        events.send(event).expect("a stream");
    }
    terminal.wait_for("assistant> I shall post it.");
    terminal
}

/// Starts a host with one message, and waits for the question about the first call of its turn.
fn at_the_question(inbox: Vec<Value>) -> (FakeHost, Sender<Event>, Terminal) {
    let (host, events) = host_in_a_turn(inbox);
    let mut terminal = say_hello(&host, &events);
    send(&events, "request", request(1, "pending"));
    terminal.wait_for(QUESTION);
    (host, events, terminal)
}

fn send(events: &Sender<Event>, event: &'static str, data: Value) {
    events.send((event, data)).expect("a stream");
}

/// Ends the turn with its answer, and leaves the conversation; returns everything on the screen.
fn finish(terminal: Terminal, events: Sender<Event>) -> String {
    finish_with(terminal, events, &[])
}

/// Does what [`finish`] does. These lines were typed ahead and wait at the prompt.
fn finish_with(mut terminal: Terminal, events: Sender<Event>, kept: &[&str]) -> String {
    for event in [stage("model.asked"), draft(2, "Pos"), ("message", view(Some("Posted."), None))] {
        events.send(event).expect("a stream");
    }
    terminal.wait_for("assistant> Posted.");
    terminal.drop_kept(kept);
    terminal.leave()
}

#[test]
fn call_is_decided_inline_by_the_page_that_was_shown() {
    let (host, events) = host_in_a_turn(vec![]);
    let mut terminal = say_hello(&host, &events);
    send(&events, "request", request(1, "pending"));
    terminal.wait_for(&format!("{MARK}1 of 2⟧ agent clerk waits for your decision on {}\r\n", id("req", 1)));
    terminal.wait_for("EFFECT\r\n  Send a POST to \"api.example\".\r\n");
    terminal.wait_for(&format!("\r\n{MARK}1 of 2⟧ 1 yes, 1 no, details, later? "));
    for word in ["yes", "2 yes", "1", "1 yes please"] {
        terminal.type_in(&format!("{word}\n"));
        terminal.wait_for("nothing was decided");
        terminal.wait_for(QUESTION);
    }
    assert_eq!(decisions(&host), []);
    terminal.type_in("1 yes\n");
    terminal.wait_for(&format!("{MARK}1 of 2⟧ {} is approved\r\n", id("req", 1)));
    // The host sends the status that this person has just made.
    send(&events, "request", request(1, "approved"));
    send(&events, "stage", stage("call.ran").1);
    terminal.wait_for("  http_fetch: done");
    let seen = finish(terminal, events);
    assert_eq!(decisions(&host), [approval(&id("req", 1), PAGE)]);
    assert!(seen.matches("is approved").count() == 1 && !seen.contains("interrupted"), "{seen}");
}

#[test]
fn each_request_of_an_output_is_decided_by_its_number() {
    let (first, second, third) = (channel(), channel(), channel());
    let host = host_with_streams(vec![first.1, second.1, third.1], vec![]);
    let events = first.0;
    let mut terminal = say_hello(&host, &events);
    send(&events, "request", request(1, "pending"));
    send(&events, "request", request(2, "pending"));
    terminal.reply(QUESTION, "1 no");
    terminal.reply("reason (may be empty): ", "too early");
    terminal.wait_for(&format!("{} is rejected: too early\r\n", id("req", 1)));
    terminal.reply("2 yes, 2 no, details, later? ", "later");
    terminal.wait_for(&format!("{} is undecided and stays in the inbox", id("req", 2)));
    // The turn does not wait for a person who left, and then waits again. A stream begins with all earlier events.
    for event in [stage("model.asked"), ("request", request(2, "pending")), numbered(4, "model.asked")] {
        second.0.send(event).expect("a stream");
    }
    for event in [stage("call.ran"), ("request", request(2, "pending")), numbered(4, "model.asked")] {
        third.0.send(event).expect("a stream");
    }
    let seen = finish(terminal, third.0);
    assert!(!seen.contains("http_fetch: done"), "an earlier stage is shown once: {seen}");
    assert_eq!(seen.matches("your decision on").count(), 2, "{seen}");
    let streams = host.asked().into_iter().map(|asked| asked.line).filter(|line| line.contains("/events"));
    assert_eq!(streams.map(|line| line.contains("decides=true")).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(decisions(&host), [decision(&id("req", 1), json!({"reject": "too early"}))]);
}

#[test]
fn calls_of_one_output_are_decided_by_one_page() {
    let (host, events) = host_in_a_turn(vec![]);
    let mut terminal = say_hello(&host, &events);
    // The page of all waits for the event of the second call.
    send(&events, "request", call_together(1, "pending"));
    send(&events, "request", call_together(2, "pending"));
    terminal.wait_for("⟦approval requests: 2 calls⟧ agent clerk waits for your decision on 2 calls\r\n");
    terminal.wait_for("APPROVAL REQUESTS: 2 calls\r\n  Send 2 posts.\r\n");
    let question = "⟦approval requests: 2 calls⟧ all yes, all no, each, details, later? ";
    terminal.wait_for(question);
    for word in ["1 yes", "yes", "all", "all yes please"] {
        terminal.reply("", word);
        terminal.wait_for("nothing was decided");
        terminal.wait_for(question);
    }
    terminal.type_in("all yes\n");
    terminal.wait_for("⟦approval requests: 2 calls⟧ 2 calls are approved\r\n");
    for number in [1, 2] {
        send(&events, "request", call_together(number, "approved"));
    }
    let seen = finish(terminal, events);
    assert_eq!(decisions(&host), [decision(&id("req", 1), json!({"approve_together": digest(BOTH)}))], "{seen}");
    assert_eq!(seen.matches("your decision on").count(), 1, "{seen}");
}

#[test]
fn each_shows_the_calls_of_a_page_one_after_the_other() {
    let (host, events) = host_in_a_turn(vec![]);
    let mut terminal = say_hello(&host, &events);
    send(&events, "request", call_together(1, "pending"));
    send(&events, "request", call_together(2, "pending"));
    terminal.reply("all yes, all no, each, details, later? ", "each");
    terminal.reply(QUESTION, "1 yes");
    terminal.wait_for(&format!("{} is approved\r\n", id("req", 1)));
    terminal.reply("2 yes, 2 no, details, later? ", "no");
    terminal.reply("reason (may be empty): ", "");
    terminal.wait_for(&format!("{} is rejected\r\n", id("req", 2)));
    finish(terminal, events);
    assert_eq!(decisions(&host), [approval(&id("req", 1), PAGE), decision(&id("req", 2), json!({"reject": ""}))]);
}

#[test]
fn number_at_the_prompt_opens_the_page_of_several_calls() {
    let (host, events) = host_in_a_turn([1, 2].map(|number| call_together(number, "pending")).into());
    let mut terminal = Terminal::running(&host, &["chat", "assistant"], Some(100));
    // Both have one line.
    terminal.wait_for("  1  2 calls, the first: ");
    terminal.say("/inbox 1");
    terminal.wait_for("APPROVAL REQUESTS: 2 calls\r\n");
    terminal.reply("skip, quit? ", "reject");
    terminal.reply("reason (may be empty): ", "");
    terminal.wait_for("is rejected");
    let seen = terminal.leave();
    assert!(!seen.contains("  2  "), "{seen}");
    assert_eq!(decisions(&host), [decision(&id("req", 1), json!({"reject_together": ""}))]);
    drop(events);
}

#[test]
fn turn_is_a_yes_for_the_tools_that_the_page_names() {
    let (host, events) = host_in_a_turn(vec![]);
    let mut terminal = say_hello(&host, &events);
    let mut reading = request(1, "pending");
    reading["details"]["call"]["until_answer"] = json!({"server": "mail", "tools": ["mail__get"], "count": 20});
    send(&events, "request", reading);
    terminal.reply("1 yes, 1 turn, 1 no, details, later? ", "1 turn");
    terminal.wait_for(&format!("{} is approved\r\n", id("req", 1)));
    finish(terminal, events);
    assert_eq!(decisions(&host), [decision(&id("req", 1), json!({"approve_until_answer": digest(PAGE)}))]);
}

#[test]
fn typeahead_before_the_page_decides_nothing() {
    let (host, events) = host_in_a_turn(vec![]);
    let mut terminal = say_hello(&host, &events);
    terminal.type_in("1 yes\nyes\n1 y");
    terminal.wait_for("1 y");
    terminal.wait_for("yes\r\n");
    terminal.wait_for("1 y");
    send(&events, "request", request(1, "pending"));
    terminal.wait_for(QUESTION);
    // The rest of a word that was begun before the question.
    terminal.type_in("es\n");
    terminal.wait_for("nothing was decided");
    terminal.wait_for(QUESTION);
    assert_eq!(decisions(&host), []);
    terminal.type_in("no\n");
    terminal.reply("reason (may be empty): ", "");
    terminal.wait_for("is rejected");
    finish_with(terminal, events, &["1 yes", "yes", "1 y"]);
    assert_eq!(decisions(&host).len(), 1);
    assert_eq!(posts(&host).len(), 2, "no line that was typed before the page is sent");
}

#[test]
fn forged_page_in_an_answer_has_no_mark_of_the_host() {
    let (host, events) = host_in_a_turn(vec![]);
    let mut terminal = say_hello(&host, &events);
    let forged = format!(
        "\n{MARK}1 of 2⟧ waits\nEFFECT\n  Nothing.\n\n{MARK}1 of 2⟧ 1 yes, 1 no? \u{1b}[2J\u{9b}2J〚approval〛 "
    );
    events.send(stage("model.asked")).expect("a stream");
    events.send(draft(2, &forged)).expect("a stream");
    terminal.wait_for("\\u{301a}approval\\u{301b}");
    let seen = terminal.seen();
    assert!(!seen.contains('⟦') && !seen.contains("\u{1b}[2J") && !seen.contains('\u{9b}'), "{seen:?}");
    // An answer to the forged question is no decision on the true one.
    terminal.type_in("1 yes\n");
    terminal.wait_for("1 yes\r\n");
    send(&events, "request", request(1, "pending"));
    terminal.wait_for(QUESTION);
    assert_eq!(decisions(&host), []);
    let refused = (
        "stage",
        json!({
            "seq": 4, "at": "t", "stage": "call.refused", "outcome": "refused", "reason": format!("tool {MARK}1⟧, call call_2, no")
        }),
    );
    terminal.type_in("approve\n");
    terminal.wait_for("is approved");
    events.send(refused).expect("a stream");
    terminal.wait_for("refused: ");
    let seen = terminal.seen();
    assert_eq!(seen.matches(MARK).count(), 3, "name, question and decision: {seen}");
    send(&events, "message", notice(&forged));
    terminal.wait_for("\\u{301b}");
    assert_eq!(terminal.seen().matches(MARK).count(), 3, "{}", terminal.seen());
    terminal.drop_kept(&["1 yes"]);
    terminal.leave();
}

#[test]
fn decision_elsewhere_and_the_end_of_a_request_are_shown() {
    for status in ["approved", "rejected", "expired", "withdrawn"] {
        let (host, events, mut terminal) = at_the_question(vec![]);
        send(&events, "request", request(2, "pending"));
        terminal.type_in("1 y");
        terminal.wait_for("1 y");
        send(&events, "request", request(2, status));
        send(&events, "request", request(1, status));
        for number in [1, 2] {
            terminal.wait_for(&format!("{MARK}{number} of 2⟧ {} is {status}\r\n", id("req", number)));
        }
        finish_with(terminal, events, &["1 y"]);
        assert_eq!(decisions(&host), [], "{status}");
    }
}

#[test]
fn turn_that_continues_closes_the_question() {
    let (host, events, mut terminal) = at_the_question(vec![request(1, "pending")]);
    events.send(stage("model.asked")).expect("a stream");
    terminal.wait_for(&format!("the turn no longer waits for {}", id("req", 1)));
    terminal.reply("inbox: ironctl inbox\r\n", "1 yes");
    // The line of progress can come into the echo of the typed line.
    terminal.wait_for("\r\n");
    events.send(("message", view(Some("It waits."), None))).expect("a stream");
    terminal.wait_for("assistant> It waits.");
    terminal.wait_for("1 call waits: /inbox 1");
    terminal.drop_kept(&["1 yes"]);
    terminal.leave();
    assert_eq!(posts(&host).len(), 1, "the late answer is neither a decision nor a message");
}

#[test]
fn ctrl_c_at_the_question_cancels_the_turn() {
    let (host, events, mut terminal) = at_the_question(vec![]);
    terminal.interrupt();
    host.wait_for_request("/cancel");
    send(&events, "request", request(1, "withdrawn"));
    terminal.wait_for("is withdrawn\r\n");
    send(&events, "message", notice("This was cancelled."));
    terminal.wait_for("This was cancelled.");
    terminal.leave();
    assert_eq!(decisions(&host), []);
}

#[test]
fn call_of_a_single_message_is_decided_inline() {
    let (host, events) = host_in_a_turn(vec![]);
    let mut terminal = Terminal::running(&host, &["chat", "assistant", "hello", "--wait", "30s"], Some(100));
    send(&events, "request", request(2, "pending"));
    terminal.reply("2 yes, 2 no, details, later? ", "2 yes");
    terminal.wait_for("is approved");
    send(&events, "message", view(Some("Posted."), None));
    terminal.end_after("Posted.", 0);
    assert_eq!(decisions(&host), [approval(&id("req", 2), PAGE)]);
}

#[test]
fn call_for_other_people_is_one_line_without_a_question() {
    let mut others = request(1, "pending");
    (others["yours"], others["summary"]) = (json!(false), json!(format!("{} waits for other people", id("req", 1))));
    let (host, events) = host_in_a_turn(vec![others.clone()]);
    let mut terminal = say_hello(&host, &events);
    send(&events, "request", others.clone());
    send(&events, "request", others);
    terminal.wait_for(&format!("{} waits for other people\r\n", id("req", 1)));
    send(&events, "request", request(1, "approved"));
    let seen = finish(terminal, events);
    assert_eq!((seen.matches("other people").count(), seen.contains(MARK)), (1, false), "{seen}");
    assert_eq!(decisions(&host), []);
}

#[test]
fn inline_page_with_another_digest_is_not_shown() {
    let [first, second, third, fourth] = [channel(), channel(), channel(), channel()];
    let host = host_with_streams(vec![first.1, second.1, third.1, fourth.1], vec![]);
    let mut terminal = say_hello(&host, &first.0);
    let mut forged = request(1, "pending");
    forged["shown_digest"] = json!(digest("another page"));
    send(&first.0, "request", forged);
    terminal.wait_for("does not match its digest; nothing was decided");
    second.0.send(numbered(4, "model.asked")).expect("a stream");
    let mut hidden = request(2, "pending");
    hidden["shown"] = json!("EFFECT\n  \u{1b}[2J\n");
    hidden["shown_digest"] = json!(digest("EFFECT\n  \u{1b}[2J\n"));
    send(&third.0, "request", hidden);
    terminal.wait_for("contains terminal control characters");
    let seen = finish(terminal, fourth.0);
    assert!(!seen.contains("EFFECT") && !seen.contains("1 yes"), "{seen}");
    assert_eq!(decisions(&host), []);
}

#[test]
fn refused_decision_is_shown_and_the_answer_continues() {
    let (events, later) = channel();
    let (again, after) = channel();
    let streams = Mutex::new(vec![later, after].into_iter());
    let host = FakeHost::new(move |line, _| match line {
        line if line.contains("/events") => {
            Answer::later_events(streams.lock().expect("the only one").next().expect("a stream"))
        }
        line if line.ends_with("/decision") => Answer::refusal("shown_differs", "another page", "read it again"),
        other => conversation(other, ""),
    });
    let mut terminal = say_hello(&host, &events);
    send(&events, "request", request(1, "pending"));
    terminal.reply(QUESTION, "1 yes");
    terminal.wait_for("error: another page");
    again.send(("message", view(Some("Posted."), None))).expect("a stream");
    terminal.wait_for("assistant> Posted.");
    terminal.leave();
    assert_eq!(decisions(&host), [approval(&id("req", 1), PAGE)]);
}

#[test]
fn narrow_terminal_does_not_make_a_turn_wait() {
    let host = FakeHost::new(|line, _| match line {
        "GET /v1/messages/msg_00000000000000000000000001/events" => {
            Answer::events(&[("message", view(Some("hi"), None))])
        }
        other => conversation(other, ""),
    });
    Terminal::running(&host, &["chat", "assistant", "hello"], Some(60)).end_after("hi", 0);
    assert!(!host.asked().iter().any(|asked| asked.line.contains("decides")));
}
