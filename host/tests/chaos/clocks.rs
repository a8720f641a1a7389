//! Clock changes: a jump ends no turn, keeps no day or ceiling ahead, and drops no item.
//!
//! The programs are built with fail points, and a file shifts their clock. See `failures`.

use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost};
use crate::support::model_server::{Act, Server};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Starts a host and returns the path of the file that shifts its clock.
fn new_host(settings: &str) -> (TestHost, PathBuf) {
    let mut host = TestHost::own(Build::Failpoints);
    let shift = host.home.with_file_name("shift");
    set(&shift, 0);
    host.set_env("IRONCLAW_CLOCK_SHIFT_FILE", Some(&shift.display().to_string()));
    host.configure(settings);
    host.up();
    (host, shift)
}

fn set(shift: &PathBuf, ms: i64) {
    // A rename is atomic, so the host never reads a partial file.
    let next = shift.with_extension("next");
    fs::write(&next, ms.to_string()).expect("written");
    fs::rename(next, shift).expect("renamed");
}

#[test]
fn turn_is_answered_if_the_clock_is_set_forward() {
    let (host, shift) = new_host("");
    let server = Server::start(move |seen| {
        set(&shift, HOUR_MS);
        match seen.results().len() {
            0 => Act::Call(String::new(), vec![("list_dir".to_owned(), serde_json::json!({}))]),
            _ => Act::Say("it is done".to_owned()),
        }
    });
    host.add_model(&server.url());
    host.ctl(&["agent", "add", "a", "--model", "m"]).ok();
    let answer = host.chat("a", "do it");
    assert_eq!(answer["notice"], false, "{answer}");
    assert_eq!(answer["reply"], "it is done");
    assert!(host.entries("model.refused").is_empty());
}

#[test]
fn turn_after_a_clock_correction_has_the_right_date() {
    let (host, shift) = new_host("");
    let server = Server::start(|_| Act::Say("it is done".to_owned()));
    host.add_model(&server.url());
    host.ctl(&["agent", "add", "a", "--model", "m"]).ok();
    for ahead in [0, 400 * DAY_MS, 0] {
        set(&shift, ahead);
        assert_eq!(host.say("a", "do it"), "it is done");
    }
    let prompt = server.seen().last().expect("a request").body["messages"].to_string();
    let day = |rest: &'_ str| rest.split('.').next()?.split_once(" on ").map(|(_, day)| day.to_owned());
    let days: Vec<String> = prompt.split("it is now ").skip(1).filter_map(day).collect();
    let [today, ahead, again] = &days[..] else { panic!("{prompt}") };
    assert!(ahead != today && again == today, "{days:?}");
}

#[test]
fn clock_that_was_ahead_drops_no_item_and_resets_no_ceiling() {
    let (host, shift) = new_host("[items]\nkeep_days = 7\n[budget]\ntokens_per_day = 1000000\n");
    host.agent("a");
    assert!(host.say("a", "my name is Ada").contains("Ada"));
    let ceiling = |host: &TestHost| host.ctl(&["--json", "usage"]).ok().json()["ceilings"][0]["until"].clone();
    let today = ceiling(&host);
    set(&shift, 400 * DAY_MS);
    host.say("a", "echo ahead");
    assert!(host.entries("items.dropped").is_empty(), "a jump of the clock drops no item");
    set(&shift, 0);
    assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.");
    assert_eq!(ceiling(&host), today, "the ceiling still ends with the day");
    assert!(host.entries("items.dropped").is_empty());
    let warnings = host.status()["host"]["warnings"].to_string();
    assert!(warnings.contains("clock was ahead"), "{warnings}");
    // The warning survives a restart.
    host.restart();
    let warnings = host.status()["host"]["warnings"].to_string();
    assert!(warnings.contains("clock was ahead"), "{warnings}");
    host.say("a", "echo after");
    let history = Raw::of(&host).get("/v1/agents/a/history").1["lines"].clone();
    let times: Vec<&str> =
        history.as_array().expect("a list").iter().map(|line| line["at"].as_str().expect("a time")).collect();
    let last = times.last().expect("a line");
    assert!(*last < today.as_str().expect("a time"), "the last message has the date of today: {times:?}");
    let times: Vec<i64> = host.ledger().iter().map(|entry| entry["data"]["at"].as_i64().expect("a time")).collect();
    assert!(times.is_sorted(), "the ledger's time never goes back: {times:?}");
    let usage: Value = host.ctl(&["--json", "usage"]).ok().json();
    let rows = usage["rows"].as_array().expect("a list");
    let of_today: u64 = rows
        .iter()
        .filter(|row| today.as_str().is_some_and(|today| row["day"].as_str().is_some_and(|day| day < today)))
        .map(|row| row["requests"].as_u64().expect("a number"))
        .sum();
    assert_eq!(of_today, 3, "only one request was made while the clock was ahead: {usage}");
    assert!(host.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "));
}
