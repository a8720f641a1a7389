//! A person's walk through an approval while away, a schedule, a reminder, a group and a push, typed on a terminal of 80×24. Each state
//! that the person is told is compared with the ledger.
//!
//! See `chaos::month` for the lists, and `first_day` for the walk of the manual.

use crate::chaos::month::told;
use crate::e2e::git_push::Forge;
use crate::e2e::mcp;
use crate::e2e::schedule_faults::clocked::{Clocked, HOUR_MS, rfc3339};
use crate::support::client::Raw;
use crate::support::hooks::{Hook, Receiver, add_place};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::terminal::{self, Seen};
use serde_json::{Value, json};

const COLUMNS: usize = 80;

const SETTINGS: &str = "[webhook]\nlisten = \"127.0.0.1:0\"\n";

/// A mail of the bundled MCP server, for which a person is asked.
const MAIL: &str = r#"use demo__send_mail {"to":"mara@example.org","subject":"plants","text":"tulips"}"#;

/// Runs `ironctl` on a terminal. The person reads each page to its end, and types this answer at a question.
#[track_caller]
fn type_in(host: &TestHost, arguments: &[&str], answer: &str) -> Seen {
    let mut command = host.command("ironctl");
    command.arg("--home").arg(&host.home).args(arguments).env("TERM", "xterm");
    let seen = terminal::run(command, &["quit? ", " -- "], |prompt| match prompt {
        " -- " => String::new(),
        _ => answer.to_owned(),
    });
    assert_eq!(seen.code, 0, "{arguments:?}: {:#?}", seen.lines);
    if arguments.iter().any(|word| ["list", "history", "inbox"].contains(word)) {
        let wide: Vec<&String> = seen.lines.iter().filter(|line| line.chars().count() > COLUMNS).collect();
        assert!(wide.is_empty(), "{arguments:?}: {wide:#?}");
    }
    seen
}

/// Returns whether a line of the terminal has all these words.
fn shows(seen: &Seen, words: &[&str]) -> bool {
    seen.lines.iter().any(|line| words.iter().all(|word| line.contains(word)))
}

/// Returns the id in the newest entry of an event.
#[track_caller]
fn newest(host: &TestHost, event: &str, field: &str) -> String {
    let entry = host.entries(event).pop().unwrap_or_else(|| panic!("no entry {event}"));
    entry["data"][field].as_str().unwrap_or_else(|| panic!("no {field}: {entry}")).to_owned()
}

#[test]
fn person_is_told_of_calls_and_schedules_as_recorded() {
    let mut clocked = Clocked::new(SETTINGS);
    mcp::ready(&clocked.host, "demo", &[], None);
    let place = Receiver::accepting();
    add_place(&clocked.host, &place, &[]);
    approve_while_away(&clocked.host, &place);
    follow_a_schedule(&mut clocked);
    be_reminded(&mut clocked, &place);
}

/// A request waits while its person is away, who is told at the place, and decides later.
fn approve_while_away(host: &TestHost, place: &Receiver) {
    Raw::of(host).send("a", MAIL);
    wait_for("a notification", || place.notifications().iter().any(|text| text.contains("req_")));
    let id = newest(host, "call.asked", "request");
    assert!(place.notifications().iter().any(|text| text.contains(&id)), "{:?}", place.notifications());
    assert_eq!(told::check_requests(host), 1);
    let decided = type_in(host, &["inbox"], "approve");
    assert!(shows(&decided, &[&id]), "{:#?}", decided.lines);
    wait_for("the call", || !host.entries("call.ran").is_empty());
    let why = type_in(host, &["why", &id], "");
    assert!(shows(&why, &["done"]), "{:#?}", why.lines);
    assert_eq!(told::check_requests(host), 1);
    assert!(shows(&type_in(host, &["inbox"], ""), &["nothing waits"]));
}

/// A schedule is approved on its page and runs at its time.
fn follow_a_schedule(clocked: &mut Clocked) {
    type_in(
        &clocked.host,
        &["schedule", "add", "a", "echo the report", "--every", "1d", "--catch-up", "once"],
        "approve",
    );
    let id = newest(&clocked.host, "schedule.added", "schedule");
    clocked.set_clock(clocked.now() + 25 * HOUR_MS);
    clocked.catch_up();
    clocked.settled(&id, 1);
    let history = type_in(&clocked.host, &["schedule", "history", &id], "");
    assert!(shows(&history, &["done"]), "{:#?}", history.lines);
    assert_eq!(told::check_history(&clocked.host, &id), 1);
    assert!(shows(&type_in(&clocked.host, &["schedule", "list"], ""), &["active"]));
}

/// The reply of a reminder reaches the place of a person who reads nothing else.
fn be_reminded(clocked: &mut Clocked, place: &Receiver) {
    let told = place.notifications().len();
    let at = clocked.now() + 2 * HOUR_MS;
    type_in(
        &clocked.host,
        &["schedule", "add", "a", "echo water the tulips", "--at", &rfc3339(at), "--catch-up", "once"],
        "approve",
    );
    let id = newest(&clocked.host, "schedule.added", "schedule");
    clocked.set_clock(at + 1_000);
    clocked.catch_up();
    clocked.settled(&id, 1);
    wait_for("a notification", || place.notifications().len() > told);
    assert_eq!(told::check_history(&clocked.host, &id), 1);
}

#[test]
fn people_of_a_group_are_told_as_recorded() {
    let host = TestHost::own(Build::Plain).configured(SETTINGS).started_with("a");
    let receiver = Receiver::accepting();
    let hook = Hook::add(&host, "shop", &receiver, &[]);
    let connect = ["agent", "connect", "a", "shop", "--from", "all", "--unknown", "request", "--yes"];
    host.ctl(&connect).ok();
    let words = |sender: &str| json!({ "sender": sender, "text": "echo hello", "group": "g" }).to_string();
    hook.send("e1", &words("ann"));
    hook.send("e2", &words("eve"));
    wait_for("an answer", || !receiver.replies().is_empty());
    let recorded = host.entries("message.recorded");
    assert_eq!((recorded.len(), receiver.replies().len()), (1, 1), "the stranger waits for a person: {recorded:?}");
    let waits = host.entries("sender.waits");
    assert_eq!((waits.len(), waits[0]["data"]["channel"].as_str()), (1, Some("shop")), "{waits:?}");
    let channels = type_in(&host, &["channel", "list"], "");
    assert!(shows(&channels, &["eve"]), "{:#?}", channels.lines);
}

#[test]
fn push_is_told_as_recorded() {
    let forge = Forge::on(TestHost::own(Build::Plain), &[]);
    forge.commit("mine");
    let request = forge.ask();
    let id = request["id"].as_str().expect("an id");
    assert_eq!(told::check_requests(&forge.host), 1);
    type_in(&forge.host, &["approve", id], "approve");
    wait_for("the push", || forge.subjects()[0] == "mine");
    wait_for("its end", || forge.host.ctl(&["--json", "why", id]).ok().json()["status"] == "done");
    let why: Value = forge.host.ctl(&["--json", "why", id]).ok().json();
    assert!(shows(&type_in(&forge.host, &["why", id], ""), &["done"]), "{why}");
    assert_eq!((told::check_requests(&forge.host), forge.host.entries("call.push").len()), (1, 1));
}
