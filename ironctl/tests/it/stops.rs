//! Tests of `panic`, `resume` and `session cancel`, also without a host that answers.
//!
//! The run file of the fake host names no process of a host. See `host/tests/ops/stops.rs` for the effects.

use crate::fake_host::{Answer, FakeHost, ironctl, status};
use nix::fcntl::{Flock, FlockArg};
use serde_json::json;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

#[test]
fn panic_is_requested_and_its_result_printed() {
    let host = FakeHost::new(|_, _| {
        Answer::json(json!({"since": "2026-01-02T03:04:05Z", "by": "owner", "sessions": 3, "gone": true}))
    });
    let out = host.quiet(&["panic"]);
    assert!(out.starts_with("everything is stopped; sessions that were awake: 3\n"), "{out}");
    assert_eq!(host.asked()[0].line, "POST /v1/panic");
}

#[test]
fn panic_that_the_host_refuses_leaves_no_file() {
    let host = FakeHost::new(|_, _| Answer::refusal("role_too_low", "a member changes nothing", ""));
    // With a named token the refusal is final. With the token of the home, `panic` would kill the host.
    let token = host.home.path().join("owner.token").display().to_string();
    let (code, _, err) = host.ironctl(&["panic", "--token-file", &token]);
    assert_eq!((code, err.as_str()), (1, "error: a member changes nothing\n"));
    assert!(!host.home.path().join("panic").exists());
}

#[test]
fn panic_that_the_host_fails_kills_the_lock_holder() {
    let host = FakeHost::new(|_, _| Answer::breakdown("the host failed: database or disk is full"));
    let lock = host.home.path().join("host.lock");
    let hold = "use Fcntl ':flock'; open my $file, '>>', shift or die $!; flock $file, LOCK_EX or die $!; sleep 60";
    let mut holder = Command::new("perl").args(["-e", hold]).arg(&lock).spawn().expect("perl runs");
    let pid = holder.id();
    let is_held = || {
        let file = File::open(&lock).ok()?;
        Flock::lock(file, FlockArg::LockSharedNonblock).err()
    };
    while is_held().is_none() {
        assert!(holder.try_wait().expect("our child").is_none(), "the holder takes the lock");
    }
    let reaper = std::thread::spawn(move || holder.wait().expect("our child"));
    assert_eq!(host.json(&["panic"]), json!({"stopped": true, "host_killed": pid, "lasts": true}));
    assert_eq!(reaper.join().expect("reaped").signal(), Some(9));
    assert!(host.home.path().join("panic").exists(), "the next start will be stopped");
    assert_eq!(host.asked()[0].line, "POST /v1/panic");
}

#[test]
fn panic_without_a_host_creates_the_file_and_kills_no_process() {
    let host = FakeHost::new(|_, _| Answer::json(json!({})));
    // The run file names a process that is not a host.
    let own = json!({"pid": std::process::id(), "socket": host.home.path().join("gone.sock"), "version": "0.1.0"});
    std::fs::write(host.home.path().join("run.json"), own.to_string()).expect("written");
    let out = host.output(&["panic"]);
    assert!(out.contains("no host runs") && out.contains("the next start will be stopped"), "{out}");
    assert!(host.home.path().join("panic").exists());
    assert!(host.asked().is_empty());
}

#[test]
fn panic_without_a_home_fails() {
    let nowhere = tempfile::tempdir().expect("a temporary directory");
    let output = ironctl(&nowhere.path().join("h")).arg("panic").output().expect("ironctl runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no home"));
}

#[test]
fn resume_and_cancel_use_their_routes() {
    let host = FakeHost::new(|line, _| match line {
        "POST /v1/resume" => Answer::json(json!({"resumed": true})),
        _ => Answer::json(
            json!({"session_id": "ses_00000000000000000000000001", "turn_id": "trn_00000000000000000000000001", "messages": ["msg_00000000000000000000000001"], "running": false}),
        ),
    });
    assert_eq!(host.output(&["resume"]), "the emergency stop has ended; waiting messages are answered\n");
    let out = host.output(&["session", "cancel", "ses_00000000000000000000000001"]);
    assert_eq!(out, "cancelled the next turn of ses_00000000000000000000000001 (trn_00000000000000000000000001)\n");
    assert_eq!(host.asked()[1].line, "POST /v1/sessions/ses_00000000000000000000000001/cancel");
}

#[test]
fn status_begins_with_the_emergency_stop() {
    let host = FakeHost::new(|_, _| {
        let mut status = status(Path::new("/h"), 4242);
        status["stopped"] = json!({"since": "2026-01-02T03:04:05Z", "by": "owner"});
        Answer::json(status)
    });
    let (_, out, _) = host.ironctl(&["status"]);
    let first = "EVERYTHING IS STOPPED since 2026-01-02 03:04:05 by owner, until `ironctl resume`\n";
    assert!(out.starts_with(first), "{out}");
    assert_eq!(host.json(&["status"])["stopped"]["by"], "owner");
}
