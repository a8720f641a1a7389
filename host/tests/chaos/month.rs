//! A month of use in fast motion: three agents, ten schedules, two people, an MCP server, a webhook, restarts, kills, a backup and its
//! restore. At its end each list is read on a terminal, and each state that a person is told is compared with the ledger.
//!
//! The clock of the host is shifted by six hours at a time. Each run prints its seed, and `IRONCLAW_SEED` repeats the run.
//! `IRONCLAW_MONTH_DAYS` sets its length. See `soak` and `away_random`.
#![allow(clippy::print_stdout)] // the printed seed repeats a failed run

mod lists;
pub(crate) mod told;

use crate::chaos::kill::run_settings;
use crate::e2e::mcp;
use crate::e2e::schedule_faults::clocked::{Clocked, HOUR_MS, rfc3339};
use crate::support::client::Raw;
use crate::support::hooks::{Hook, Receiver, add_place};
use crate::support::host_fixture::{TestHost, wait_for};
use fastrand::Rng;
use serde_json::json;
use std::path::{Path, PathBuf};

/// The number of days without `IRONCLAW_MONTH_DAYS`.
const DAYS: u64 = 3;

/// The clock moves by this step.
const STEP_MS: i64 = 6 * HOUR_MS;

/// The channels are on ports of loopback, and a channel sends again soon.
const SETTINGS: &str =
    "[webhook]\nlisten = \"127.0.0.1:0\"\nbackoff_ms = 100\nattempts_max = 3\n[session]\nidle_seconds = 1\n";

/// A mail of the bundled MCP server, for which a person is asked.
const MAIL: &str = r#"use demo__send_mail {"to":"mara@example.org","subject":"plants","text":"tulips"}"#;

/// The schedules of the owner: agent, prompt and options.
const SCHEDULES: [(&str, &str, &[&str]); 9] = [
    ("a", "echo the morning report", &["--cron", "0 8 * * *", "--zone", "Europe/Berlin", "--catch-up", "once"]),
    ("a", "write day.txt: tulips", &["--every", "1d", "--may", "write", "--catch-up", "once"]),
    ("a", "use demo__count", &["--cron", "30 6 * * mon-fri", "--may", "demo__count", "--catch-up", "once"]),
    // The list does not have the tool, so each run is refused a part of its work.
    ("a", MAIL, &["--every", "1d", "--catch-up", "once"]),
    ("a", "echo it is noon", &["--every", "12h", "--catch-up", "all"]),
    ("coder", "run date", &["--cron", "0 22 * * fri", "--may", "exec", "--catch-up", "once"]),
    ("coder", "write log.txt: done", &["--every", "7d", "--may", "write", "--catch-up", "once"]),
    ("notes", "keep water the tulips", &["--every", "3d", "--may", "write", "--catch-up", "once"]),
    ("notes", "recall tulips", &["--cron", "15 9 * * mon", "--catch-up", "once"]),
];

/// A host that is used for a month.
struct Month {
    clocked: Clocked,
    receiver: Receiver,
    place: Receiver,
    hook: Hook,
    /// The token of the member.
    member: String,
    rng: Rng,
    /// The number of messages so far.
    sent: u64,
    /// The schedules of the owner, and the one of the member.
    schedules: Vec<String>,
    backup: Option<PathBuf>,
}

impl Month {
    fn begin(seed: u64) -> Self {
        let clocked = Clocked::new(SETTINGS);
        let host = &clocked.host;
        for agent in ["coder", "notes"] {
            host.agent(agent);
        }
        host.ctl(&["agent", "set", "coder", "--add-tool", "run_command", "--yes"]).ok();
        mcp::ready(host, "demo", &[], None);
        let (receiver, place) = (Receiver::accepting(), Receiver::accepting());
        let hook = Hook::add(host, "shop", &receiver, &[]);
        add_place(host, &place, &[]);
        let member = Raw::add_person(host, "ann", &[]).token;
        let mut month = Self {
            clocked,
            receiver,
            place,
            hook,
            member,
            rng: Rng::with_seed(seed),
            sent: 0,
            schedules: Vec::new(),
            backup: None,
        };
        month.add_schedules();
        month
    }

    fn host(&self) -> &TestHost {
        &self.clocked.host
    }

    fn add_schedules(&mut self) {
        let add = |agent: &str, prompt: &str, more: &[&str]| {
            let begin = ["--json", "schedule", "add", agent, prompt, "--yes"];
            let added = self.host().ctl(&[&begin[..], more].concat()).ok().json();
            added["id"].as_str().unwrap_or_else(|| panic!("{added}")).to_owned()
        };
        let at = rfc3339(self.clocked.now() + 30 * HOUR_MS);
        let mut schedules: Vec<String> =
            SCHEDULES.iter().map(|(agent, prompt, more)| add(agent, prompt, more)).collect();
        schedules.push(add("a", "echo the one time", &["--at", &at]));
        self.schedules = schedules;
    }

    /// Sends messages of both people and over the channel, and decides on a part of what waits.
    fn live_a_day(&mut self, day: u64) {
        let owner = Raw::of(self.host());
        let member = owner.clone().with_token(&self.member);
        for person in [&owner, &member] {
            let agent = if self.rng.bool() { "a" } else { "notes" };
            let text = match self.rng.u64(..4) {
                0 => format!("write file-{}.txt: tulips", self.sent),
                1 => format!("keep tulips of day {day}"),
                2 => "run date".to_owned(),
                _ => format!("echo word-{}", self.sent),
            };
            self.say(person, agent, &text, &format!("day-{day}"));
        }
        self.say_from_shop(&format!("event-{day}"));
        self.say(&owner, "a", MAIL, &format!("mail-{day}"));
        self.decide(&owner);
    }

    /// Sends a message over the channel, signed at the time of the host's clock.
    fn say_from_shop(&self, event: &str) {
        let (body, at) = (Hook::words("echo from the shop"), self.clocked.now() / 1_000);
        let (time, signature) = (at.to_string(), self.hook.sign(event, at, &body));
        let headers = [("webhook-id", event), ("webhook-timestamp", &time), ("webhook-signature", &signature)];
        let (status, answer) = self.hook.post(&headers, &body);
        assert_eq!(status, 200, "{answer}");
    }

    fn say(&mut self, person: &Raw, agent: &str, text: &str, thread: &str) {
        self.sent += 1;
        let id = person.send_body(agent, &json!({ "text": text, "thread": thread }));
        wait_for("an answer", || person.get(&format!("/v1/messages/{id}?wait_ms=1000")).1["status"] == "delivered");
    }

    /// Approves a third of what waits, rejects a third, and lets the rest wait for its end.
    fn decide(&mut self, owner: &Raw) {
        let (_, inbox) = owner.get("/v1/waiting");
        for entry in inbox["entries"].as_array().expect("a list") {
            let id = entry["id"].as_str().expect("an id");
            let answer = match self.rng.u64(..3) {
                0 => self.host().ctl(&["approve", id]),
                1 => self.host().ctl(&["reject", id, "--reason", "not today"]),
                _ => continue,
            };
            assert!(answer.code <= 1, "{}", answer.stderr);
        }
    }

    /// Moves the clock by a day. The host is restarted, killed, backed up or restored on some days.
    fn pass_a_day(&mut self, day: u64, days: u64) {
        for step in 0..24 * HOUR_MS / STEP_MS {
            let at = self.clocked.now() + STEP_MS;
            match (day % 7, step) {
                (3, 1) => self.clocked.restart_at(at),
                (5, 2) => {
                    self.host().kill_host();
                    self.clocked.set_clock(at);
                    self.host().up();
                }
                _ => self.clocked.set_clock(at),
            }
            self.clocked.catch_up();
        }
        if day == days / 3 {
            self.back_up();
        }
        if day == 2 * days / 3 {
            self.restore();
        }
        let host = &self.clocked.host;
        self.hook.follow_restart(host);
    }

    fn back_up(&mut self) {
        let file = self.host().home.with_file_name("month.backup");
        self.host().ctl(&["backup", "create", file.to_str().expect("a path")]).ok();
        self.backup = Some(file);
    }

    /// Goes back to the backup, as a person does who lost the disk.
    fn restore(&mut self) {
        let file = self.backup.take().expect("a backup");
        self.host().down();
        self.host().ctl(&["backup", "restore", file.to_str().expect("a path"), "--replace", "--yes"]).ok();
        self.host().up();
        for id in &self.schedules {
            // The one of a single time may have ended.
            let _ = self.host().ctl(&["schedule", "resume", id]);
        }
    }

    /// Waits until no message waits for an answer and no reply for its delivery.
    fn rest(&self) {
        wait_for("the end of all turns", || {
            let status = self.host().status();
            let sessions = status["sessions"].as_array().expect("a list");
            sessions.iter().all(|session| session["queued"].as_u64().unwrap_or(0) == 0)
        });
    }
}

/// The size of the host's process and of its home.
#[derive(Debug)]
struct Size {
    resident_kib: u64,
    sessions: usize,
    files: usize,
}

impl Size {
    fn measure(host: &TestHost) -> Self {
        let pid = host.pid().expect("the host runs");
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        let resident_kib = line.trim().trim_end_matches(" kB").parse().expect("a number");
        let sessions = host.status()["sessions"].as_array().expect("a list").len();
        Self { resident_kib, sessions, files: files_below(&host.home) }
    }
}

fn files_below(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => files_below(&entry.path()),
            _ => 1,
        })
        .sum()
}

/// Checks that the second half of the month needs no more than the first one, apart from what a person can read again.
fn check_growth(sizes: &[Size]) {
    let (half, end) = (&sizes[sizes.len() / 2], sizes.last().expect("a day passed"));
    assert!(end.resident_kib * 10 <= half.resident_kib * 13, "memory grows: {half:?}, {end:?}");
    assert!(end.files <= 2 * half.files + 20, "files stay: {half:?}, {end:?}");
    assert!(end.sessions <= 2 * half.sessions + 4, "sessions stay: {half:?}, {end:?}");
}

#[test]
#[ignore = "a campaign: .ci/long month"]
fn month_of_use_is_told_as_it_was() {
    let (seed, days) = run_settings("IRONCLAW_MONTH_DAYS", DAYS);
    let mut month = Month::begin(seed);
    let mut sizes = Vec::new();
    for day in 0..days {
        month.live_a_day(day);
        month.pass_a_day(day, days);
        month.rest();
        sizes.push(Size::measure(month.host()));
    }
    println!("{sizes:#?}");
    check_growth(&sizes);
    assert!(told::check(&month) > 0);
    lists::read(month.host());
    let audit = month.host().ctl(&["audit", "verify"]);
    assert!(audit.code == 0 || audit.stdout.contains("heads"), "{}{}", audit.stdout, audit.stderr);
    assert!(!month.place.notifications().is_empty() && !month.receiver.replies().is_empty());
}
