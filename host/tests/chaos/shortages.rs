//! Shortages of inodes or descriptors: sessions wait, people get a notice, and no session is parked.
//!
//! The tests use the real programs. The test of inodes mounts a file system and therefore needs root. See `failures`.

use super::failures::ready;
use crate::chaos::kill::{answered, retry};
use crate::support::client::{Client, Raw};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::needs::{needs, needs_root};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// More launches than a session may fail by `session.launch_attempts_max`.
const TRIES: usize = 8;

/// A small file system for a home. A drop unmounts it.
pub(crate) struct SmallDisk(pub(crate) PathBuf);

impl SmallDisk {
    /// Moves the home of a stopped host to a tmpfs with these options. Returns `None` if the test may not mount one.
    pub(crate) fn under(host: &mut TestHost, options: &str) -> Option<Self> {
        let disk = Self::at(host.home.with_file_name("disk"), options)?;
        host.move_home(disk.0.join("h"));
        Some(disk)
    }

    /// Mounts a tmpfs with these options on a new directory. Returns `None` if the test may not.
    pub(crate) fn at(at: PathBuf, options: &str) -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            return None;
        }
        needs("mount");
        fs::create_dir(&at).expect("a directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("{options},mode=755"), "tmpfs"]).arg(&at);
        mount.status().is_ok_and(|status| status.success()).then_some(Self(at))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A process with an open file keeps the file system until it ends.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Returns how often a session waited for a resource, according to the log.
fn wait_count(host: &TestHost) -> usize {
    let log = fs::read_to_string(host.home.join("logs/host.log")).expect("a log");
    log.lines().filter(|line| line.contains("the session waits: ")).count()
}

/// Checks that no session was parked and no failure was counted.
fn check_no_session_failed(host: &TestHost) {
    assert!(host.entries("session.parked").is_empty());
    let sessions = Raw::of(host).get("/v1/sessions").1;
    for session in sessions.as_array().expect("a list") {
        assert_eq!(session["failures"], 0, "{session}");
        assert_ne!(session["state"], "parked", "{session}");
    }
}

#[test]
fn inode_shortage_parks_no_session_and_notifies_people() {
    needs_root();
    let mut host = TestHost::own(Build::Plain).configured("[session]\nbackoff_ms = 1\n");
    let disk = SmallDisk::under(&mut host, "size=64m,nr_inodes=2000").expect("root can mount a file system");
    host.up();
    host.agent("a");
    assert!(host.say("a", "my name is Ada").contains("Ada"));
    host.ctl(&["session", "stop", host.session()["id"].as_str().expect("an id")]).ok();
    let many = disk.0.join("many");
    fs::create_dir(&many).expect("a directory");
    for number in 0.. {
        if File::create(many.join(number.to_string())).is_err() {
            break;
        }
    }
    let client = Client::of(&host);
    let asleep = client.send("a", "what is my name?", "one").expect("a message needs no inode");
    let fresh = client.send_in("a", "fresh", "echo word", "two").expect("a message needs no inode");
    wait_for("both sessions to wait often", || wait_count(&host) >= 2 * TRIES);
    assert_eq!(ready(&host), (503, json!("inodes_used_up")));
    let warnings = host.status()["host"]["warnings"].to_string();
    assert!(warnings.contains("inodes") && warnings.contains("sessions/"), "the warning says what to free: {warnings}");
    let id = asleep["message_id"].as_str().expect("an id");
    let view = client.message(id, Duration::ZERO).expect("the host answers");
    assert_eq!(view["status"], "queued");
    assert!(view["reason"].as_str().is_some_and(|reason| reason.contains("inodes")), "{view}");
    let why = host.ctl(&["--json", "why", id]).ok().json();
    assert!(why["summary"].as_str().is_some_and(|summary| summary.contains("inodes")), "{why}");
    let chat = host.ctl(&["chat", "a", "echo three", "--wait", "4s"]);
    assert_eq!(chat.code, 1, "{}", chat.stderr);
    assert!(chat.stderr.contains("waits: ") && chat.stderr.contains("inodes"), "{}", chat.stderr);
    fs::remove_dir_all(&many).expect("removed");
    for taken in [&asleep, &fresh] {
        retry("answer a message", || answered(&client, taken["message_id"].as_str().expect("an id")));
    }
    wait_for("the host to be ready", || ready(&host).0 == 200);
    check_no_session_failed(&host);
    host.down();
}
fn limit_descriptors(pid: i64, count: &str) {
    needs("prlimit");
    let set = Command::new("prlimit").args(["--pid", &pid.to_string(), &format!("--nofile={count}:")]).status();
    assert!(set.is_ok_and(|status| status.success()));
}

#[test]
fn descriptor_shortage_parks_no_session_and_work_continues() {
    let host = TestHost::own(Build::Plain);
    // One failure that counts would park the session.
    host.configure("[session]\nbackoff_ms = 1\nlaunch_attempts_max = 1\n");
    host.up();
    host.agent("a");
    let client = Client::of(&host);
    let launcher = host.status()["host"]["launcher_pid"].as_i64().expect("a number");
    let host_pid = i64::from(host.pid().expect("it runs"));
    // First the launcher cannot receive the link, then it cannot make the jail, then the host cannot open a file.
    for (pid, count) in [(launcher, "4"), (launcher, "6"), (launcher, "8"), (host_pid, "3")] {
        let event = format!("{pid}-{count}");
        // An emergency stop empties the stock of jails. A jail from stock would need no further descriptor of the launcher.
        host.ctl(&["panic"]).ok();
        host.ctl(&["resume"]).ok();
        limit_descriptors(launcher, "4");
        let before = wait_count(&host);
        let taken = client.send_in("a", &format!("thread-{count}"), "echo word", &event).expect("it is accepted");
        limit_descriptors(pid, count);
        if pid == host_pid {
            limit_descriptors(launcher, "1024");
        }
        // The pause between two tries doubles, so tries under the first limit count too.
        let enough = (before + TRIES).max(wait_count(&host) + 3);
        wait_for("the session to wait often", || wait_count(&host) >= enough);
        limit_descriptors(pid, "1024");
        limit_descriptors(launcher, "1024");
        let id = taken["message_id"].as_str().expect("an id");
        let view = retry("answer a message", || answered(&client, id));
        assert_eq!(view["notice"], false, "{view}");
        host.ctl(&["session", "stop", view["session_id"].as_str().expect("an id")]).ok();
    }
    check_no_session_failed(&host);
    assert_eq!(ready(&host), (200, Value::Null));
}

#[test]
fn launcher_with_jails_over_its_limit_still_serves_the_host() {
    let host = TestHost::own(Build::Plain).configured("[session]\nbackoff_ms = 1\n").started_with("a");
    let client = Client::of(&host);
    let say = |thread: &str, event: &str| client.send_in("a", thread, "echo word", event).expect("it is accepted");
    let id = |taken: &Value| taken["message_id"].as_str().expect("an id").to_owned();
    let wait = |taken: &Value| retry("answer a message", || answered(&client, &id(taken)));
    let awake = wait(&say("awake", "one"));
    let launcher = host.status()["host"]["launcher_pid"].as_i64().expect("a number");
    // The launcher watches more descriptors than this for the two jails of the session alone: the kernel refuses such a poll.
    limit_descriptors(launcher, "4");
    let asleep = say("asleep", "two");
    wait_for("the session to wait often", || wait_count(&host) >= TRIES);
    assert_eq!(wait(&say("awake", "three"))["notice"], false);
    host.ctl(&["session", "stop", awake["session_id"].as_str().expect("an id")]).ok();
    limit_descriptors(launcher, "1024");
    assert_eq!(wait(&asleep)["notice"], false);
    check_no_session_failed(&host);
}
