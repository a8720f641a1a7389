//! Tests of what a run sees, of the names of schedules, and of what people are told of their replies.
//!
//! The scripted model looks for earlier words in its prompt. See `flows` for what may leave a run.

use super::{add, new_host, newest, show};
use crate::support::client::Raw;
use crate::support::hooks::{Receiver, add_place};
use crate::support::host_fixture::{TestHost, wait_for};
use serde_json::{Value, json};

/// Runs a schedule, and returns its reply, which then counts as read.
fn reply(host: &TestHost, raw: &Raw, id: &str) -> Value {
    host.ctl(&["schedule", "run", id]).ok();
    newest(host, id, "done");
    let (status, unread) = raw.ask("POST", "/v1/agents/a/unread", "");
    assert_eq!((status, unread["replies"].as_array().map(Vec::len)), (200, Some(1)), "{unread}");
    unread["replies"][0].clone()
}

#[test]
fn run_sees_nothing_of_the_chat_or_of_an_earlier_run() {
    let (host, ask) = (new_host(), "what is my name?");
    let raw = Raw::of(&host);
    host.say("a", "my name is Ada");
    for (more, name, answer) in [
        (&["--every", "1w"][..], "my-name-is-eve", "You have not told me"),
        (&["--every", "1w", "--continue"], "my-name-is-eve-2", "Your name is Eve."),
    ] {
        let id = add(&host, "my name is Eve", more);
        assert_eq!(show(&host, &id)["name"], name);
        let first = reply(&host, &raw, name);
        assert_eq!(first["schedule"], name, "{first}");
        host.ctl(&["schedule", "set", name, "--prompt", ask, "--yes"]).ok();
        let second = reply(&host, &raw, name);
        assert!(second["text"].as_str().is_some_and(|text| text.contains(answer)), "{name}: {second}");
    }
    // Another schedule of the same session sees no run of the first, and the chat sees none at all.
    let other = add(&host, ask, &["--every", "1w", "--name", "other"]);
    assert!(reply(&host, &raw, &other)["text"].as_str().is_some_and(|text| text.contains("You have not told me")));
    assert!(host.say("a", ask).contains("Your name is Ada."));
    host.restart();
    let raw = Raw::of(&host);
    assert!(reply(&host, &raw, "other")["text"].as_str().is_some_and(|text| text.contains("You have not told me")));
    assert!(reply(&host, &raw, "my-name-is-eve-2")["text"].as_str().is_some_and(|text| text.contains("Eve")));
    let threads = raw.get("/v1/agents/a/threads").1;
    assert_eq!(threads["threads"].as_array().map(Vec::len), Some(1), "a person writes in none of them: {threads}");
}

#[test]
fn every_command_takes_the_name_in_place_of_the_id() {
    let host = new_host();
    host.agent("b");
    let id = add(&host, "hello there", &["--every", "1w", "--name", "greet"]);
    let taken = ["schedule", "add", "a", "hello", "--every", "1w", "--name", "greet", "--yes"];
    assert_eq!(host.ctl_error(&taken)["code"], "schedule_name");
    for verb in ["show", "run", "history", "pause", "resume"] {
        host.ctl(&["schedule", verb, "greet"]).ok();
    }
    newest(&host, "greet", "done");
    host.ctl(&["schedule", "set", "greet", "--name", "salute", "--yes"]).ok();
    assert_eq!(host.ctl_error(&["schedule", "show", "greet"])["code"], "schedule_unknown");
    assert_eq!(show(&host, "salute")["id"], json!(id));
    // Another agent may have a schedule of the same name, and then only the id tells them apart.
    host.ctl(&["schedule", "add", "b", "hello", "--every", "1w", "--name", "salute", "--yes"]).ok();
    assert_eq!(host.ctl_error(&["schedule", "show", "salute"])["code"], "schedule_ambiguous");
    host.ctl(&["schedule", "remove", &id]).ok();
    assert_eq!(show(&host, "salute")["agent"], "b");
    // The name of a removed schedule is free again.
    add(&host, "hello", &["--every", "1w", "--name", "greet"]);
}

#[test]
fn unread_reply_of_a_run_reaches_the_place_once() {
    let host = new_host();
    let place = Receiver::accepting();
    add_place(&host, &place, &[]);
    let id = add(&host, "hello", &["--every", "1h"]);
    let told = || place.notifications().iter().filter(|text| text.contains(&id) && text.contains("answered")).count();
    let run = || {
        host.ctl(&["schedule", "run", &id]).ok();
        newest(&host, &id, "done");
    };
    run();
    wait_for("the notification", || told() == 1);
    run();
    let status = host.ctl(&["status"]).ok().stdout;
    assert!(status.contains("2 unread replies of a: ironctl chat a\n"), "{status}");
    let raw = Raw::of(&host);
    assert_eq!(raw.ask("POST", "/v1/agents/a/unread", "").1["replies"].as_array().map(Vec::len), Some(2));
    assert_eq!(host.entries("notification.intended").len(), 1, "the second reply added nothing to it");
    run();
    wait_for("another notification", || told() == 2);
}
