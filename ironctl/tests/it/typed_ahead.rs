//! Tests of lines that a person types while the agent works: each is sent or stays at the prompt.
//!
//! See [`crate::inline`] for lines that were typed before a page, [`crate::paste`] for pasted ones.

use crate::chat::conversation;
use crate::fake_host::{Answer, FakeHost, notice};
use crate::terminal::Terminal;
use std::sync::mpsc::{Sender, channel};

/// The end of a message.
#[derive(Clone, Copy)]
enum End {
    Answer,
    Notice,
}

/// Starts a host with a conversation; the test ends each message.
fn host() -> (FakeHost, Sender<End>) {
    let (ends, end) = channel();
    let host = FakeHost::new(move |line, _| match line {
        line if line.contains("/events") => match end.recv().expect("the test ends it") {
            End::Answer => conversation(line, "hi"),
            End::Notice => Answer::events(&[("message", notice("This was cancelled."))]),
        },
        _ => conversation(line, "hi"),
    });
    (host, ends)
}

/// Sends a message, and types these lines while the agent works.
fn work(host: &FakeHost, typed: &str) -> Terminal {
    let mut terminal = Terminal::running(host, &["chat", "assistant"], Some(100));
    terminal.say("one");
    // The prompt reads no longer.
    terminal.wait_for("\u{1b}[?2004l");
    terminal.wait_for("\u{1b}[?2004h");
    terminal.type_in(typed);
    // The terminal shows the last one.
    terminal.wait_for(typed.trim_end().rsplit('\n').next().expect("a line"));
    terminal
}

/// Returns the texts of the messages so far.
fn said(host: &FakeHost) -> Vec<String> {
    let of_message = host.posted().into_iter().filter(|asked| asked.line.ends_with("/messages"));
    of_message.map(|asked| asked.body["text"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn lines_typed_during_an_answer_are_sent_in_their_order() {
    let (host, ends) = host();
    let mut terminal = work(&host, "two\nthree\n\nfour\nfi");
    (0..5).for_each(|_| ends.send(End::Answer).expect("a host"));
    // The last one had no end yet.
    terminal.wait_for("you> four");
    terminal.wait_for("you> fi");
    assert_eq!(said(&host), ["one", "two", "three", "four"]);
    terminal.type_in("ve\r");
    terminal.wait_for("assistant> hi");
    let seen = terminal.leave();
    assert_eq!(said(&host), ["one", "two", "three", "four", "five"]);
    assert_eq!(seen.matches("assistant> hi").count(), 5, "{seen}");
}

#[test]
fn lines_before_a_failed_answer_wait_at_the_prompt() {
    let (host, ends) = host();
    let mut terminal = work(&host, "two\nthree\n");
    ends.send(End::Notice).expect("a host");
    terminal.wait_for("you> two");
    assert_eq!(said(&host), ["one"]);
    ends.send(End::Answer).expect("a host");
    terminal.type_in("\r");
    terminal.wait_for("assistant> hi");
    terminal.drop_kept(&["three"]);
    terminal.leave();
    assert_eq!(said(&host), ["one", "two"]);
}

#[test]
fn lines_that_are_not_sent_are_named_at_the_end() {
    let (host, ends) = host();
    let mut terminal = work(&host, "/quit\ntwo\nthr");
    ends.send(End::Answer).expect("a host");
    terminal.wait_for("not sent: two\r\n");
    terminal.end_after("not sent: thr\r\n", 0);
    assert_eq!(said(&host), ["one"]);
}

#[test]
fn lines_of_one_read_are_each_a_message() {
    let host = FakeHost::new(|line, _| conversation(line, "hi"));
    let mut terminal = Terminal::running(&host, &["chat", "assistant"], Some(100));
    terminal.type_in("one\rtwo\rthree\rfo");
    terminal.wait_for("you> three");
    terminal.wait_for("you> fo");
    terminal.type_in("ur\r");
    let seen = terminal.leave();
    assert_eq!(said(&host), ["one", "two", "three", "four"]);
    assert_eq!(seen.matches("assistant> hi").count(), 4, "{seen}");
}
