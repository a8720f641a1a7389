//! Failures of the disk, the record, the clock and the process of an agent. The host reports each failure, loses no accepted message,
//! and continues once the cause is gone.
//!
//! The tests use the real programs. No test is skipped if the machine lacks a tool. See `crash` and `kill`.

use crate::chaos::kill::{answered, retry};
use crate::chaos::shortages::SmallDisk;
use crate::security::escape::attack::Attacked;
use crate::support::client::{Client, Raw};
use crate::support::host_fixture::{Build, TestHost, WAIT_MAX, alive, wait_for};
use crate::support::needs::needs;
use crate::support::record;
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// The size of the small disk. A host with one session needs a few megabytes.
const DISK_BYTES: &str = "24m";

/// The limit of messages until the full disk refuses one. The log of the record may still have room for a few.
const TRIES: usize = 400;

/// A disk that the test can fill and empty: a limit of the host's file size, which every user can set, or a small disk if the test
/// may mount one.
enum Disk {
    Own(SmallDisk),
    Limit,
}

impl Disk {
    /// Moves the home of a stopped host to a small disk. Returns `None` if the test may not mount one.
    fn under(host: &mut TestHost) -> Option<Self> {
        SmallDisk::under(host, &format!("size={DISK_BYTES}")).map(Self::Own)
    }

    fn fill(&self, host: &TestHost) {
        match self {
            Self::Own(disk) => {
                let mut ballast = File::create(disk.0.join("ballast")).expect("a file");
                for piece in [1 << 16, 1] {
                    let bytes = vec![0; piece];
                    while ballast.write_all(&bytes).is_ok() {}
                }
            }
            Self::Limit => limit(host, "0"),
        }
    }

    fn empty(&self, host: &TestHost) {
        match self {
            Self::Own(disk) => fs::remove_file(disk.0.join("ballast")).expect("removed"),
            Self::Limit => limit(host, "unlimited"),
        }
    }
}

/// Sets the file size limit of the running host. A longer write then fails as on a full disk.
fn limit(host: &TestHost, bytes: &str) {
    needs("prlimit");
    let pid = host.pid().expect("it runs").to_string();
    let set = Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={bytes}:unlimited")]).status();
    assert!(set.is_ok_and(|status| status.success()));
}

/// Starts the host so that a write over the limit fails instead of raising a signal.
fn up_without_the_signal(host: &TestHost) {
    let ctl = host.command("ironctl");
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]).arg(ctl.get_program());
    command.arg("--home").arg(&host.home).args(["up", "--detach"]);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &host.home).stdin(Stdio::null());
    assert!(command.output().expect("sh runs").status.success());
}

pub(super) fn ready(host: &TestHost) -> (u16, Value) {
    let (status, answer) = Raw::of(host).get_with(&[], "/readyz");
    (status, answer["error"]["code"].clone())
}

#[test]
fn full_disk_is_reported_and_messages_are_answered_later() {
    let host = TestHost::own(Build::Plain);
    check_full_disk(&Disk::Limit, &host);
    drop(host);
    let mut host = TestHost::own(Build::Plain);
    if let Some(disk) = Disk::under(&mut host) {
        check_full_disk(&disk, &host);
        drop(host);
    }
}

fn check_full_disk(disk: &Disk, host: &TestHost) {
    up_without_the_signal(host);
    host.agent("a");
    assert!(host.say("a", "my name is Ada").contains("Ada"));
    let client = Client::of(host);
    disk.fill(host);
    // The host accepts or refuses each message, and reports a refusal to the sender.
    let mut refused = None;
    let mut taken = Vec::new();
    for number in 0..TRIES {
        let event = format!("event-{number}");
        match client.send("a", &format!("echo word-{number}"), &event) {
            Ok(answer) => taken.push((number, answer["message_id"].as_str().expect("an id").to_owned())),
            Err(error) => {
                refused = Some((number, event, error.to_string()));
                break;
            }
        }
    }
    let (number, event, said) = refused.expect("a full disk refuses a message");
    assert!(said.contains("was not written"), "{said}");
    let waited =
        client.send_and_wait("a", "echo waited", "waited", WAIT_MAX).expect_err("the disk is full").to_string();
    assert!(waited.contains("was not written"), "{waited}");
    assert_eq!(ready(host), (503, json!("state_unwritable")));
    assert_eq!(Raw::of(host).get_with(&[], "/healthz").0, 200, "the host still answers");
    disk.empty(host);
    wait_for("the host to be ready", || ready(host).0 == 200);
    // The message was not accepted, so its sender repeats it.
    let again = client.send("a", &format!("echo word-{number}"), &event).expect("there is room");
    taken.push((number, again["message_id"].as_str().expect("an id").to_owned()));
    for (number, id) in &taken {
        let view = retry("answer a message", || answered(&client, id));
        assert!(view["reply"].as_str().is_some_and(|reply| reply.contains(&format!("word-{number}"))), "{view}");
    }
    let waited = client.send_and_wait("a", "echo waited", "waited", WAIT_MAX).expect("there is room");
    assert!(waited["message"]["reply"].as_str().is_some_and(|reply| reply.contains("waited")), "{waited}");
    assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.");
    host.down();
    assert!(host.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "));
    let db = record::open(&host.home);
    let messages = record::count(&db, "SELECT count(*) FROM messages");
    assert_eq!(messages, taken.len() as i64 + 3, "the refused messages left no row");
    assert_eq!(record::count(&db, "SELECT count(*) FROM messages WHERE status = 'delivered'"), messages);
    let twice = "SELECT count(*) FROM (SELECT turn_id FROM deliveries WHERE session_id IS NOT NULL GROUP BY turn_id HAVING count(*) > 1)";
    assert_eq!(record::count(&db, twice), 0);
}

#[test]
fn record_locked_by_another_process_stops_start_and_messages() {
    let host = TestHost::own(Build::Plain).started_with("a");
    host.say("a", "my name is Ada");
    host.down();
    let holder = record::open_to_change(&host.home);
    holder.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;").expect("no other process has the record");
    host.ctl(&["up", "--detach"]).refused("is in use by another process");
    drop(holder);
    host.up();
    assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.");
    // A running host refuses a message that it cannot write, and accepts it once the lock is gone.
    let client = Client::of(&host);
    let holder = record::open_to_change(&host.home);
    holder.execute_batch("BEGIN IMMEDIATE").expect("the host writes no row at the moment");
    let said = client.send("a", "echo held", "held").expect_err("the record is locked").to_string();
    assert!(said.contains("was not written"), "{said}");
    assert_eq!(ready(&host), (503, json!("state_unwritable")));
    drop(holder);
    wait_for("the host to be ready", || ready(&host).0 == 200);
    let taken = client.send("a", "echo held", "held").expect("the lock is gone");
    retry("answer a message", || answered(&client, taken["message_id"].as_str().expect("an id")));
}

/// Inverts every bit of `length` bytes at a position.
fn flip(path: &Path, at: u64, length: usize) {
    let bytes = fs::read(path).expect("readable");
    let start = at as usize;
    let flipped: Vec<u8> = bytes[start..(start + length).min(bytes.len())].iter().map(|byte| !byte).collect();
    let mut file = OpenOptions::new().write(true).open(path).expect("our own");
    file.seek(SeekFrom::Start(at)).expect("within");
    file.write_all(&flipped).expect("written");
}

#[test]
fn damaged_record_is_refused_with_a_hint_and_not_modified() {
    let host = TestHost::own(Build::Plain).started_with("a");
    host.say("a", "my name is Ada");
    host.down();
    let path = host.home.join("state.db");
    let whole = fs::read(&path).expect("readable");
    let pages = whole.len() as u64 / 4096;
    let damages: [(&str, &dyn Fn()); 4] = [
        ("wrong master key or damaged file", &|| flip(&path, 100, 8)),
        ("is damaged", &|| flip(&path, 4096 * (pages / 2) + 1000, 1)),
        ("is damaged", &|| flip(&path, 4096 * (pages - 1), 4096)),
        ("is damaged", &|| {
            let file = OpenOptions::new().write(true).open(&path).expect("our own");
            file.set_len(4096 * (pages / 2)).expect("cut off");
        }),
    ];
    for (number, (words, damage)) in damages.iter().enumerate() {
        damage();
        let damaged = fs::read(&path).expect("readable");
        let answer = host.ctl(&["up", "--detach"]).refused(words);
        assert!(answer.stderr.contains("backup"), "{number}: the hint names the backup: {}", answer.stderr);
        assert_eq!(
            fs::read(&path).expect("readable"),
            damaged,
            "{number}: the damaged file is evidence and must not change"
        );
        assert!(!host.home.join("run.json").exists(), "{number}");
        fs::write(&path, &whole).expect("put back");
        host.up();
        assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.", "{number}");
        host.down();
        fs::write(&path, &whole).expect("put back");
    }
}

#[test]
fn damage_ends_a_running_host_and_a_backup_restores() {
    let host = TestHost::own(Build::Plain).started_with("a");
    host.say("a", "my name is Ada");
    host.down();
    let path = host.home.join("state.db");
    let whole = fs::read(&path).expect("readable");
    host.up();
    let (host_pid, client) = (host.pid().expect("it runs"), Client::of(&host));
    flip(&path, 4096, whole.len() - 4096);
    // Cached pages are not read again, so the host detects the damage late.
    let mut asked = 0;
    wait_for("the host to end", || {
        asked += 1;
        let _ = client.send("a", "what is my name?", &format!("event-{asked}"));
        !alive(host_pid)
    });
    let log = fs::read_to_string(host.home.join("logs/host.log")).expect("a log");
    assert!(log.contains("is damaged (found while the host ran)"), "{log}");
    host.ctl(&["up", "--detach"]).refused("is damaged");
    for name in ["state.db-wal", "state.db-shm"] {
        let _ = fs::remove_file(host.home.join(name));
    }
    fs::write(&path, &whole).expect("put back");
    host.up();
    assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.");
}

#[test]
fn clock_that_jumps_back_keeps_the_order_and_ends_no_turn() {
    let mut host = TestHost::own(Build::Failpoints);
    let shift = host.home.with_file_name("shift");
    fs::write(&shift, "0").expect("written");
    host.set_env("IRONCLAW_CLOCK_SHIFT_FILE", Some(&shift.display().to_string()));
    host.up();
    host.agent("a");
    host.say("a", "echo word-0");
    for (number, shifted) in [(1, "-3600000"), (2, "-3600000"), (3, "3600000"), (4, "0")] {
        fs::write(&shift, shifted).expect("written");
        assert!(host.say("a", &format!("echo word-{number}")).contains(&format!("word-{number}")));
        if number == 2 {
            host.restart();
        }
    }
    let history = Client::of(&host).history("a").iter().map(Value::to_string).collect::<String>();
    let places: Vec<usize> = (0..5).map(|n| history.find(&format!("word-{n}")).expect("it is there")).collect();
    assert!(places.is_sorted(), "{history}");
    let times: Vec<i64> = host.ledger().iter().map(|entry| entry["data"]["at"].as_i64().expect("a time")).collect();
    assert!(times.is_sorted(), "the time of the record never goes back: {times:?}");
    assert!(host.entries("session.parked").is_empty() && host.entries("token.expired").is_empty());
    assert!(host.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "));
}

#[test]
fn suspended_sandbox_is_ended_and_replaced() {
    let host = TestHost::own(Build::Plain).configured("[turn]\nseconds_max = 6\n").started_with("a");
    host.agent("b");
    host.say("a", "hello");
    let pid = host.session()["pid"].as_i64().expect("awake") as i32;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGSTOP).expect("stopped");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| host.chat("a", "echo one"));
        assert!(host.say("b", "hello").contains("Hello."), "other sessions do not wait for it");
        let answer = waiting.join().expect("answered");
        assert_eq!(answer["notice"], true, "{answer}");
        assert!(
            answer["reply"].as_str().is_some_and(|reply| reply.contains("reached its limit of 6 seconds")),
            "{answer}"
        );
    });
    wait_for("the end of the sandbox", || !alive(pid));
    assert!(host.say("a", "echo two").contains("two"));
}

#[test]
fn only_the_sandbox_with_ten_thousand_rows_is_quarantined() {
    let attacked = Attacked::new("");
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) \
                INSERT INTO messages_out (seq, content, turn) SELECT {next} + 2 * i, '{}', '{turn}' FROM n;";
    let chat = attacked.send("a", "hello", &json!([{ "sql": rows }, { "ring": 1 }, "hang"])).ok().json();
    assert_eq!(chat["notice"], true, "the person gets a notice: {chat}");
    wait_for("the quarantine", || attacked.session("a")["state"] == "quarantined");
    assert!(attacked.entries("row.refused", &attacked.id("a")).len() <= 64, "the entries are bounded");
    attacked.check_other_agent();
    attacked.host.ctl(&["session", "release", &attacked.id("a")]).ok();
    assert!(attacked.host.say("a", "hello").contains("Hello."), "the released session answers");
}

#[test]
fn sandbox_without_a_reply_is_ended_and_reported() {
    let attacked = Attacked::new("[turn]\nseconds_max = 6\n");
    let chat = attacked.send("a", "hello", &json!(["hang"])).ok().json();
    assert_eq!(chat["notice"], true, "{chat}");
    assert!(chat["reply"].as_str().is_some_and(|reply| reply.contains("reached its limit of 6 seconds")), "{chat}");
    attacked.check_other_agent();
    assert!(attacked.host.say("a", "hello").contains("Hello."));
}
