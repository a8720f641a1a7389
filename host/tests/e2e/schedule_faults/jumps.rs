//! Clocks that jump, and zones that get other rules: no schedule becomes silent, runs again, or runs at the old time.

use super::clocked::{Clocked, HOUR_MS, due, next_of, rfc3339, states};
use crate::support::host_fixture::wait_for;
use serde_json::{Value, json};
use std::path::Path;

const DAY_MS: i64 = 24 * HOUR_MS;
const BERLIN: &str = "Europe/Berlin";

fn counted(history: &[Value]) -> u64 {
    history.iter().map(|one| one["count"].as_u64().expect("a number")).sum()
}

fn warnings(clocked: &Clocked) -> String {
    clocked.host.status()["host"]["warnings"].to_string()
}

/// Waits until the running host has noticed its clock, by the next time of a schedule.
#[track_caller]
fn wait_for_next(clocked: &Clocked, id: &str, is_it: impl Fn(i64) -> bool) {
    wait_for("the next time", || {
        clocked.host.ctl(&["--json", "schedule", "list"]).ok().json().as_array().is_some_and(|all| {
            let next =
                all.iter().find(|one| one["id"] == id).and_then(|one| one["next"].as_str().map(super::clocked::ms));
            next.is_some_and(&is_it)
        })
    });
}

#[test]
fn clock_far_ahead_at_a_start_leaves_no_schedule_silent() {
    let mut clocked = Clocked::new("");
    let begun = clocked.now();
    let skip = clocked.add("echo water", &["--every", "1h", "--catch-up", "skip"]);
    let all = clocked.add("echo water", &["--every", "1h", "--catch-up", "all"]);
    let once = clocked.add("echo water", &["--cron", "0 8 * * *", "--catch-up", "once", "--zone", BERLIN]);
    let single = clocked.add_at("echo water", begun + 2 * HOUR_MS);
    let ids = [&skip, &all, &once, &single];
    let next = ids.map(|id| clocked.next(id));
    clocked.restart_at(begun + 400 * DAY_MS + HOUR_MS / 2);
    wait_for("missed times", || counted(&clocked.history(&skip)) >= 9_599);
    wait_for("the end of the single time", || clocked.show(&single)["state"] == "ended");
    assert_eq!(clocked.host.entries("schedule.run").len(), 0, "no late time runs by a clock that may be wrong");
    assert!(warnings(&clocked).contains("late times of schedules"), "{}", warnings(&clocked));
    // It is right again, while the host runs.
    clocked.set_clock(begun + 5_000);
    wait_for_next(&clocked, &skip, |next| next < begun + 2 * HOUR_MS);
    wait_for("the single time", || clocked.show(&single)["state"] == "active");
    for (id, next) in ids.into_iter().zip(next) {
        assert_eq!((clocked.next(id), clocked.history(id)), (next, Vec::new()), "as if nothing had happened");
    }
    let warnings = warnings(&clocked);
    assert!(warnings.contains("schedules, days") && !warnings.contains("late times"), "{warnings}");
    // Each time comes once.
    clocked.set_clock(next[0].max(next[1]).expect("a time") + 1_000);
    for (id, next) in [(&skip, next[0]), (&all, next[1])] {
        let history = clocked.settled(id, 1);
        assert_eq!((states(&history), due(&history)), (json!([["done", null]]), Vec::from_iter(next)));
    }
    clocked.restart_at(begun + 2 * HOUR_MS + 2_000);
    assert_eq!(states(&clocked.settled(&single, 1)), json!([["done", null]]));
    assert_eq!(clocked.settled(&skip, 2).len(), 2);
}

#[test]
fn times_of_a_schedule_added_after_a_jump_back_are_told() {
    let mut clocked = Clocked::new("");
    let begun = clocked.now();
    let early = clocked.add("echo water", &["--every", "1h", "--catch-up", "skip"]);
    clocked.set_clock(begun + DAY_MS + HOUR_MS / 2);
    wait_for("missed times", || counted(&clocked.history(&early)) == 24);
    clocked.set_clock(begun + 10_000);
    wait_for_next(&clocked, &early, |next| next < begun + 2 * HOUR_MS);
    let late = clocked.add("echo water", &["--every", "1h", "--catch-up", "skip"]);
    // A time up to here was dealt with for the first schedule alone.
    clocked.restart_at(begun + 12 * HOUR_MS + HOUR_MS / 2);
    wait_for("missed times", || counted(&clocked.history(&late)) == 12);
}

#[test]
fn clock_a_day_ahead_keeps_no_time_from_running() {
    let mut clocked = Clocked::new("");
    let begun = clocked.now();
    let skip = clocked.add("echo water", &["--every", "1h"]);
    let next = clocked.next(&skip).expect("a time");
    // It jumps while the host runs, and back.
    clocked.set_clock(begun + DAY_MS + HOUR_MS / 2);
    wait_for("missed times", || counted(&clocked.history(&skip)) == 24);
    clocked.set_clock(begun + 10_000);
    let is_noticed = |entry: &Value| entry["data"]["schedule"] == skip.as_str();
    wait_for("the correction", || clocked.host.entries("schedule.retimed").iter().any(is_noticed));
    assert_eq!(clocked.next(&skip), Some(next));
    clocked.set_clock(next + 1_000);
    wait_for("the run", || clocked.history(&skip)[0]["state"] == "done");
    wait_for_next(&clocked, &skip, |found| found == next + HOUR_MS);
    // A time that ran never runs again.
    clocked.set_clock(next - 60_000);
    clocked.catch_up();
    assert_eq!(clocked.next(&skip), Some(next + HOUR_MS));
    let runs = clocked.host.entries("schedule.run");
    assert_eq!(runs.iter().filter(|entry| entry["data"]["schedule"] == json!(skip)).count(), 1, "{runs:?}");
}

#[test]
fn long_stop_counts_each_time_in_the_history() {
    let mut clocked = Clocked::new("");
    let id = clocked.add("echo water", &["--every", "1m"]);
    let first = clocked.next(&id).expect("a time");
    clocked.restart_at(first + 400 * DAY_MS + 1_000);
    wait_for("the missed times", || clocked.history(&id).len() >= 100);
    let expected = 400 * 24 * 60 + 1;
    let history = clocked.history(&id);
    assert!((expected..expected + 3).contains(&counted(&history)), "{}", counted(&history));
}

#[test]
fn change_that_waits_outlasts_a_clock_far_ahead() {
    let mut clocked = Clocked::new("");
    let begun = clocked.now();
    let change = clocked.host.submit("a", "persona", json!({ "instructions": "You water plants." })).ok().json();
    let id = change["id"].as_str().unwrap_or_else(|| panic!("{change}")).to_owned();
    clocked.restart_at(begun + 400 * DAY_MS);
    clocked.catch_up();
    clocked.restart_at(begun + 60_000);
    clocked.host.ctl(&["approve", &id]).ok();
}

/// Writes a zone without changes of its offset as the zone of Berlin, in the format of TZif.
fn write_zone(directory: &Path, hours: i32) {
    let counts: Vec<u8> = [0_u32, 0, 0, 0, 1, 4].iter().flat_map(|count| count.to_be_bytes()).collect();
    let header = [b"TZif2".as_slice(), &[0; 15], &counts].concat();
    let body = [(hours * 3600).to_be_bytes().as_slice(), &[0, 0], format!("+{hours:02}\0").as_bytes()].concat();
    let footer = format!("\n<+{hours:02}>-{hours}\n");
    let file = directory.join(BERLIN);
    std::fs::create_dir_all(file.parent().expect("a directory")).expect("made");
    std::fs::write(file, [&header[..], &body, &header, &body, footer.as_bytes()].concat()).expect("written");
}

#[test]
fn schedule_follows_other_rules_of_its_zone() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut clocked = Clocked::new("");
    clocked.host.down();
    write_zone(directory.path(), 1);
    clocked.host.set_env("TZDIR", directory.path().to_str());
    clocked.host.up();
    let id = clocked.add("echo water", &["--cron", "0 8 * * *", "--zone", BERLIN]);
    // The test has its own rules: 8:00 is 7:00 in UTC.
    let seven = next_of("UTC", "0 7 * * *", clocked.now());
    assert_eq!(clocked.next(&id), Some(seven));
    // It is noon before that day, and by the new rules 8:00 is 23:00 in UTC.
    let noon = seven - 19 * HOUR_MS;
    clocked.host.down();
    write_zone(directory.path(), 9);
    clocked.set_clock(noon.max(clocked.now()));
    clocked.host.up();
    let expected = next_of("UTC", "0 23 * * *", clocked.now());
    assert_eq!(clocked.next(&id), Some(expected));
    let dry = clocked.host.ctl(&["--json", "schedule", "run", &id, "--dry-run"]).ok().json();
    assert_eq!(dry["next"][0]["due"], clocked.show(&id)["next"], "{dry}");
    clocked.restart_at(expected + 1_000);
    assert_eq!(due(&clocked.settled(&id, 1)), [expected], "the old time is none");
    assert_eq!(clocked.next(&id), Some(expected + DAY_MS));
}

#[test]
fn period_with_a_first_time_counts_from_it() {
    let mut clocked = Clocked::new("");
    let first = (clocked.now() / 1_000 + 7_200) * 1_000;
    let every = clocked.add("echo water", &["--every", "1d", "--first", &rfc3339(first)]);
    let cron = clocked.add("echo water", &["--cron", "0 8 * * *", "--zone", "UTC", "--first", &rfc3339(first)]);
    for id in [&every, &cron] {
        assert_eq!(clocked.next(id), Some(first));
    }
    clocked.host.ctl(&["--json", "schedule", "set", &every, "--prompt", "echo weed", "--yes"]).ok();
    clocked.restart_at(first + 1_000);
    let eight = next_of("UTC", "0 8 * * *", first);
    for (id, then) in [(&every, first + DAY_MS), (&cron, eight)] {
        assert_eq!(due(&clocked.settled(id, 1)), [first]);
        assert_eq!(clocked.next(id), Some(then));
        clocked.host.ctl(&["--json", "schedule", "set", id, "--prompt", "echo reeds", "--yes"]).ok();
        assert_eq!(clocked.next(id), Some(then), "the first time does not come again");
    }
    let past = ["--every", "1d", "--first", "2020-01-01T08:00:00Z"];
    let refused = clocked.host.ctl_error(&[&["schedule", "add", "a", "echo", "--yes"][..], &past].concat());
    assert_eq!(refused["code"], "schedule_malformed", "{refused}");
}
