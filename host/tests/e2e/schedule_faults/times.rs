//! Times: a restart, a change of settings or a clock neither loses an occurrence nor runs one twice or early.

use super::clocked::{Clocked, HOUR_MS, due, next_of, states};
use serde_json::json;

const BERLIN: [&str; 2] = ["--zone", "Europe/Berlin"];

#[test]
fn restart_at_the_second_of_a_run_runs_it_once() {
    let mut clocked = Clocked::new("");
    let at = clocked.now() + HOUR_MS;
    let id = clocked.add_at("echo water", at);
    clocked.restart_at(at);
    let history = clocked.settled(&id, 1);
    assert_eq!((states(&history), due(&history)), (json!([["done", null]]), vec![at]));
    clocked.restart_at(at);
    clocked.catch_up();
    assert_eq!(clocked.history(&id), history, "it is not due again");
    assert_eq!((clocked.show(&id)["state"].as_str(), clocked.next(&id)), (Some("ended"), None));
}

#[test]
fn run_that_passed_while_the_host_was_down_has_a_row() {
    let mut clocked = Clocked::new("");
    let id = clocked.add("echo water", &[&["--cron", "0 8 * * *", "--catch-up", "skip"][..], &BERLIN].concat());
    let eight = next_of("Europe/Berlin", "0 8 * * *", clocked.now());
    clocked.restart_at(eight + 5 * HOUR_MS);
    let history = clocked.settled(&id, 1);
    assert_eq!((states(&history), due(&history)), (json!([["skipped", "missed"]]), vec![eight]));
    assert_eq!(history[0]["message"], json!(null));
    let entries = clocked.host.entries("schedule.skipped");
    assert_eq!((entries.len(), &entries[0]["data"]["reason"]), (1, &json!("missed")), "{entries:?}");
}

#[test]
fn next_time_after_restarts_is_the_next_day() {
    let mut clocked = Clocked::new("");
    let id = clocked.add("echo water", &[&["--cron", "0 8 * * *", "--catch-up", "once"][..], &BERLIN].concat());
    let first = next_of("Europe/Berlin", "0 8 * * *", clocked.now());
    let second = next_of("Europe/Berlin", "0 8 * * *", first);
    for after in [first + HOUR_MS, first + 2 * HOUR_MS, second - HOUR_MS] {
        clocked.restart_at(after);
        clocked.settled(&id, 1);
        assert_eq!(clocked.next(&id), Some(second));
    }
    clocked.restart_at(second + HOUR_MS);
    assert_eq!(due(&clocked.settled(&id, 2)), [first, second]);
}

#[test]
fn restart_runs_no_time_that_has_come_only_in_utc() {
    let mut clocked = Clocked::new("");
    let more = ["--cron", "0 8 * * *", "--catch-up", "all", "--zone", "America/New_York"];
    let id = clocked.add("echo water", &more);
    let eight = next_of("America/New_York", "0 8 * * *", clocked.now());
    // It is after 8:00 in UTC and in Europe, and before it in New York.
    clocked.restart_at(eight - HOUR_MS);
    clocked.catch_up();
    assert_eq!((clocked.history(&id).len(), clocked.next(&id)), (0, Some(eight)));
    clocked.restart_at(eight + 1000);
    assert_eq!(states(&clocked.settled(&id, 1)), json!([["done", null]]));
}

#[test]
fn change_of_settings_runs_no_earlier_time() {
    let mut clocked = Clocked::new("");
    let id = clocked.add("echo water", &[&["--cron", "0 9 * * *", "--catch-up", "all"][..], &BERLIN].concat());
    let night = next_of("Europe/Berlin", "24 1 * * *", next_of("Europe/Berlin", "0 0 * * *", clocked.now()));
    // Nothing of the day before is open: the host runs over it, and skips nothing.
    let history = {
        clocked.restart_at(night);
        clocked.catch_up();
        clocked.history(&id)
    };
    clocked.host.ctl(&["--json", "schedule", "set", &id, "--cron", "0 1 * * *", "--yes"]).ok();
    clocked.host.ctl(&["--json", "schedule", "set", &id, "--cron", "30 9 * * *", "--yes"]).ok();
    clocked.host.ctl(&["config", "reload"]).ok();
    clocked.host.change("a", "persona", &json!({ "instructions": "You water plants." }));
    clocked.catch_up();
    assert_eq!(clocked.history(&id), history, "a change runs nothing");
    assert_eq!(clocked.next(&id), Some(next_of("Europe/Berlin", "30 9 * * *", night)));
}

#[test]
fn later_run_does_not_change_the_row_of_an_earlier_one() {
    let mut clocked = Clocked::new("");
    let id = clocked.add("echo water", &["--every", "1h"]);
    let at = clocked.next(&id).expect("a time");
    clocked.restart_at(at + 1000);
    let first = clocked.settled(&id, 1);
    clocked.restart_at(at + HOUR_MS + 1000);
    let both = clocked.settled(&id, 2);
    assert_eq!(both[0], first[0]);
    assert!(both[0]["message"] != both[1]["message"] && due(&both).is_sorted(), "{both:?}");
}

#[test]
fn clock_that_is_set_back_runs_nothing_again() {
    let mut clocked = Clocked::new("");
    let id = clocked.add("echo water", &["--every", "1h", "--catch-up", "all"]);
    let at = clocked.next(&id).expect("a time");
    clocked.restart_at(at + 1000);
    let first = clocked.settled(&id, 1);
    let next = clocked.next(&id);
    for back in [HOUR_MS / 2, 2 * HOUR_MS] {
        clocked.restart_at(at + 1000 - back);
        clocked.catch_up();
        assert_eq!((clocked.history(&id), clocked.next(&id)), (first.clone(), next));
    }
}
