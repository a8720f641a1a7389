//! Tests of pasted and piped text: it asks for nothing, and typed text around it does.
//!
//! A terminal marks pasted text (mode 2004). See [`crate::chat`] for other messages.

use crate::chat::{conversation, host_that_answers, open_chat};
use crate::fake_host::{FakeHost, code_of};
use crate::terminal::Terminal;
use serde_json::{Value, json};
use std::sync::mpsc;

/// Returns a text with the marks of a terminal around it.
fn pasted(text: &str) -> String {
    format!("\u{1b}[200~{text}\u{1b}[201~")
}

/// Returns the bodies of the messages so far.
fn messages(host: &FakeHost) -> Vec<Value> {
    let posted = |line: &str| line.starts_with("POST") && line.ends_with("/messages");
    host.asked().into_iter().filter(|asked| posted(&asked.line)).map(|asked| asked.body).collect()
}

/// Types a line at the next prompt and waits for the answer.
fn say(terminal: &mut Terminal, line: &str) {
    terminal.say(line);
    terminal.wait_for("assistant> hi");
}

#[test]
fn pasted_text_is_quoted_and_typed_text_around_it_asks() {
    let host = host_that_answers("hi");
    let mut terminal = open_chat(&host);
    let mut wanted = Vec::new();
    for (before, text, after, quoted) in [
        ("", "/allow send", "", "/allow send"),
        ("", "send it to Ana", "", "send it to Ana"),
        ("", "/allow send\r\npost it", "", "/allow send\npost it"),
        ("/allow send -- post ", "the news", " at once", "the news"),
        ("sum up ", "/allow exec\rrun it", " and send it to Ana", "/allow exec\nrun it"),
    ] {
        say(&mut terminal, &format!("{before}{}{after}", pasted(text)));
        wanted.push(json!({ "text": format!("{before}[quoted 1]{after}"), "quoted": [quoted] }));
        assert_eq!(messages(&host), wanted);
    }
    terminal.leave();
}

#[test]
fn pasted_command_is_no_command_and_declares_nothing() {
    let host = host_that_answers("hi");
    let mut terminal = open_chat(&host);
    terminal.say(&pasted("/quit"));
    terminal.wait_for("pasted text asks for nothing");
    terminal.wait_for("assistant> hi");
    assert_eq!(messages(&host), [json!({ "text": "[quoted 1]", "quoted": ["/quit"] })]);
    // With typed words beside the pasted ones, once is enough.
    say(&mut terminal, &format!("sum up {}", pasted("the news")));
    assert_eq!(terminal.seen().matches("asks for nothing").count(), 1);
    // A slash that was typed before a pasted command names no command.
    terminal.say(&format!("/{}", pasted("allow send -- post it")));
    terminal.wait_for("nothing was sent");
    // A pasted argument is a part of a typed command.
    terminal.say(&format!("/new {}", pasted("work")));
    terminal.wait_for("--thread work");
    assert_eq!(messages(&host).len(), 2);
    assert!(!terminal.leave().contains("not sent: "));
}

#[test]
fn earlier_pasted_line_stays_quoted_and_typed_one_stays_typed() {
    let host = host_that_answers("hi");
    let mut terminal = open_chat(&host);
    say(&mut terminal, "send it to Ana");
    say(&mut terminal, &pasted("send it to Bob"));
    // The arrow up brings back the last line, then the one before.
    say(&mut terminal, "\u{1b}[A");
    say(&mut terminal, "\u{1b}[A\u{1b}[A");
    // The text of an earlier typed line, pasted.
    say(&mut terminal, &pasted("send it to Ana"));
    let (typed, quoted) =
        (json!({ "text": "send it to Ana" }), |text: &str| json!({ "text": "[quoted 1]", "quoted": [text] }));
    let wanted = [typed.clone(), quoted("send it to Bob"), quoted("send it to Bob"), typed, quoted("send it to Ana")];
    assert_eq!(messages(&host), wanted);
    terminal.leave();
}

#[test]
fn text_that_was_pasted_during_an_answer_is_quoted() {
    let (done, answered) = mpsc::channel::<()>();
    let host = FakeHost::new(move |line, _| {
        if line.ends_with("/events") {
            answered.recv().expect("the test lets it answer");
        }
        conversation(line, "hi")
    });
    let mut terminal = open_chat(&host);
    terminal.say("hello");
    // The mark is on again after the prompt turned it off.
    terminal.wait_for("\u{1b}[?2004l");
    terminal.wait_for("\u{1b}[?2004h");
    terminal.type_in(&pasted("/allow send"));
    done.send(()).expect("the host waits");
    terminal.wait_for("assistant> hi");
    terminal.wait_for("you> /allow send");
    terminal.type_in("\r");
    done.send(()).expect("the host waits");
    terminal.wait_for("assistant> hi");
    assert_eq!(messages(&host)[1], json!({ "text": "[quoted 1]", "quoted": ["/allow send"] }));
    terminal.leave();
}

#[test]
fn piped_text_asks_for_no_more_and_declares_nothing() {
    let host = host_that_answers("hi");
    let piped = |words: &[&str], text: &str| host.piped(&[&["--json", "chat", "assistant"][..], words].concat(), text);
    assert_eq!(piped(&[], "send it to Ana\n").0, 0);
    assert_eq!(messages(&host), [json!({ "text": "send it to Ana", "allow": ["+read", "+write"], "untyped": true })]);
    for text in ["/allow send\npost it", " \n/allow exec -- run it", "/allow"] {
        let (code, _, err) = piped(&[], text);
        assert_eq!((code, code_of(&err).as_str()), (1, "scope_malformed"), "{text}");
    }
    assert_eq!(messages(&host).len(), 1, "nothing was sent");
    assert_eq!(piped(&["--allow", "send"], "post it").0, 0);
    assert_eq!(messages(&host)[1], json!({ "text": "post it", "allow": ["send"], "untyped": true }));
}
