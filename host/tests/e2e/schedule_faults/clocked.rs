//! A host whose clock a test sets, with schedules of an agent `a`.
//!
//! Contains no tests. The programs are those with fail points, and a file shifts their clock.

use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::jail_fixture::HostUser;
use ironclaw_calendar::{Recurrence, Series, Zone};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::path::Path;

pub(crate) const HOUR_MS: i64 = 3_600_000;

/// The host and the times of its schedules; instants are milliseconds since the Unix epoch.
pub(crate) struct Clocked {
    pub(crate) host: TestHost,
    ahead: i64,
}

impl Clocked {
    /// Starts a host with these settings and an agent `a`.
    pub(crate) fn new(settings: &str) -> Self {
        Self::with_sandbox(settings, None)
    }

    /// Starts a host whose sandbox is this program.
    pub(crate) fn with_sandbox(settings: &str, sandbox: Option<&Path>) -> Self {
        let mut host = TestHost::with(HostUser::current(), Build::Failpoints, sandbox).configured(settings);
        host.shift_clock(0);
        host.up();
        host.agent("a");
        Self { host, ahead: 0 }
    }
    pub(crate) fn now(&self) -> i64 {
        Timestamp::now().as_millisecond() + self.ahead
    }

    /// Sets the clock of the host, also of a running one.
    pub(crate) fn set_clock(&mut self, at: i64) {
        self.ahead += at - self.now();
        self.host.shift_clock(self.ahead);
    }
    pub(crate) fn restart_at(&mut self, at: i64) {
        self.host.down();
        self.set_clock(at);
        self.host.up();
    }
    pub(crate) fn add(&self, prompt: &str, more: &[&str]) -> String {
        let added =
            self.host.ctl(&[&["--json", "schedule", "add", "a", prompt, "--yes"][..], more].concat()).ok().json();
        added["id"].as_str().unwrap_or_else(|| panic!("{added}")).to_owned()
    }
    pub(crate) fn add_at(&self, prompt: &str, at: i64) -> String {
        self.add(prompt, &["--at", &rfc3339(at)])
    }

    pub(crate) fn show(&self, id: &str) -> Value {
        self.host.ctl(&["--json", "schedule", "show", id]).ok().json()
    }

    /// Returns the next time of a schedule; `None` if it has none.
    pub(crate) fn next(&self, id: &str) -> Option<i64> {
        self.show(id)["next"].as_str().map(ms)
    }
    pub(crate) fn history(&self, id: &str) -> Vec<Value> {
        let history = self.host.ctl(&["--json", "schedule", "history", id]).ok().json();
        history.as_array().unwrap_or_else(|| panic!("{history}")).clone()
    }

    /// Waits until a schedule has this number of occurrences and none is open, and returns them.
    #[track_caller]
    pub(crate) fn settled(&self, id: &str, count: usize) -> Vec<Value> {
        let mut history = Vec::new();
        wait_for("settled occurrences", || {
            history = self.history(id);
            history.len() >= count && history.iter().all(|one| one["state"] != "scheduled" && one["state"] != "started")
        });
        assert_eq!(history.len(), count, "{history:#?}");
        history
    }

    /// Makes a running host notice the time, and waits until it has done all that is due.
    ///
    /// The host notices a clock that was set when its next deadline comes or when a schedule changes. A schedule that is
    /// added and run by hand is such a change, and its end comes after the work that was due before.
    pub(crate) fn catch_up(&self) {
        let mark = self.add("echo mark", &["--at", &rfc3339(self.now() + 1_000 * 24 * HOUR_MS)]);
        self.host.ctl(&["--json", "schedule", "run", &mark]).ok();
        self.settled(&mark, 1);
        self.host.ctl(&["schedule", "remove", &mark]).ok();
    }
}

/// Returns the first instant after another at which a cron expression is due in a zone.
pub(crate) fn next_of(zone: &str, cron: &str, after: i64) -> i64 {
    let zone = Zone::parse(zone).expect("a zone");
    let series = Series { recurrence: Recurrence::cron(cron).expect("an expression"), zone, anchor: 0 };
    series.next_after(after).expect("it is due again")
}

pub(crate) fn rfc3339(at: i64) -> String {
    format!("{:.3}", Timestamp::from_millisecond(at).expect("in range"))
}

/// Reads an instant that the host wrote.
#[track_caller]
pub(crate) fn ms(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap_or_else(|error| panic!("{text}: {error}")).as_millisecond()
}
pub(crate) fn due(history: &[Value]) -> Vec<i64> {
    history.iter().map(|one| ms(one["due"].as_str().expect("a time"))).collect()
}
pub(crate) fn states(history: &[Value]) -> Value {
    history.iter().map(|one| json!([one["state"], one["reason"]])).collect()
}
