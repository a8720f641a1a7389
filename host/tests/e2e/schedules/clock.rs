//! Tests of the times: on time, late under each policy, a clock that goes back, a host that is killed in between.

use super::{add, history, newest, show};
use crate::support::host_fixture::{TestHost, alive, wait_for};

const HOUR_MS: i64 = 3_600_000;

fn new_host() -> TestHost {
    TestHost::with_clock().started_with("a")
}
fn restart_at(host: &mut TestHost, ms: i64) {
    host.down();
    host.shift_clock(ms);
    host.up();
}

fn states(host: &TestHost, id: &str) -> Vec<String> {
    history(host, id).iter().map(|found| found["state"].as_str().expect("a state").to_owned()).collect()
}

#[test]
fn stopped_host_treats_passed_times_by_each_policy() {
    let mut host = new_host();
    let of = |policy: &str| add(&host, "hello", &["--every", "1h", "--catch-up", policy]);
    let (skip, once, all) = (of("skip"), of("once"), of("all"));
    restart_at(&mut host, HOUR_MS);
    for id in [&skip, &once, &all] {
        assert!(newest(&host, id, "done")["receipt"].is_string());
    }
    restart_at(&mut host, 4 * HOUR_MS + HOUR_MS / 2);
    wait_for("the three policies", || {
        states(&host, &skip) == ["done", "skipped", "skipped", "skipped"]
            && states(&host, &once) == ["done", "skipped", "skipped", "done"]
            && states(&host, &all) == ["done", "done", "done", "done"]
    });
    assert!(history(&host, &skip)[1..].iter().all(|found| found["reason"] == "missed"));
    // The clock goes back: nothing runs again.
    let (next, runs) = (show(&host, &all)["next"].clone(), host.entries("schedule.run").len());
    restart_at(&mut host, 0);
    assert_eq!(show(&host, &all)["next"], next);
    add(&host, "hello", &["--every", "1h"]);
    assert_eq!(host.entries("schedule.run").len(), runs);
}

#[test]
fn host_that_is_killed_after_a_run_began_never_doubles_it() {
    let mut host = new_host();
    let id = add(&host, "hello", &["--every", "1h"]);
    host.down();
    host.shift_clock(HOUR_MS);
    host.set_env("IRONCLAW_FAILPOINT", Some("schedule_run"));
    // The time has come, so the host dies during or after its start.
    drop(host.ctl(&["up", "--detach"]));
    wait_for("the host to die", || host.pid().is_none_or(|pid| !alive(pid)));
    host.set_env("IRONCLAW_FAILPOINT", None);
    host.up();
    newest(&host, &id, "done");
    assert_eq!((history(&host, &id).len(), host.entries("schedule.run").len()), (1, 1));
}

#[test]
fn single_time_runs_once_and_ends_the_schedule() {
    let mut host = new_host();
    let at = jiff::Timestamp::now() + jiff::Span::new().hours(1);
    let id = add(&host, "hello", &["--at", &at.to_string()[..19], "--zone", "UTC"]);
    restart_at(&mut host, HOUR_MS + 1000);
    newest(&host, &id, "done");
    assert_eq!(show(&host, &id)["state"], "ended");
}

#[test]
fn changed_times_count_from_now_and_run_no_passed_time() {
    let mut host = new_host();
    let id = add(&host, "hello", &["--every", "1h", "--catch-up", "all"]);
    host.ctl(&["schedule", "pause", &id]).ok();
    restart_at(&mut host, 5 * HOUR_MS);
    host.ctl(&["schedule", "set", &id, "--every", "2h", "--yes"]).ok();
    host.ctl(&["schedule", "resume", &id]).ok();
    assert!(history(&host, &id).is_empty());
}
