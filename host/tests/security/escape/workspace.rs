//! Attempts on the host through files of the sandbox: the host follows and runs no file, and no file prevents a removal.
//!
//! A new attempt is one entry of the table. See `queue` for the only file that the host reads.

use super::attack::{Attacked, exists};
use super::attempt::{Attempt, attempt, run_attempts};
use crate::support::host_fixture::wait_for;
use crate::support::processes::Process;
use serde_json::json;

pub(crate) fn attempts() -> Vec<Attempt> {
    let denied = "Operation not permitted";
    vec![
        attempt("symbolic_link_in_the_workspace_cannot_be_made", |_| {
            vec![json!({ "symlink": { "to": "/etc/passwd", "path": "/workspace/link" } })]
        })
        .fails(denied),
        attempt("hard_link_in_the_workspace_cannot_be_made", |_| {
            vec![json!({ "hardlink": { "to": "/out/outbound.db", "path": "/workspace/queue" } })]
        })
        .fails("os error"),
        attempt("pipe_in_the_workspace_cannot_be_made", |_| vec![json!({ "fifo": "/workspace/pipe" })]).fails("EPERM"),
        attempt("device_node_in_the_workspace_cannot_be_made", |_| {
            vec![
                json!({ "put": { "path": "/workspace/file", "text": "x" } }),
                json!({ "whiteout": { "from": "/workspace/file", "to": "/workspace/moved" } }),
            ]
        })
        .fails("EPERM")
        .check(|attacked, _, _| {
            let file = attacked.directory(&attacked.id("a")).join("workspace/file");
            assert!(std::fs::symlink_metadata(file).expect("it is there").is_file());
        }),
        attempt("setuid_file_in_the_workspace_cannot_be_made", |_| {
            vec![
                json!({ "put": { "path": "/workspace/tool", "text": "#!/bin/sh\nid\n" } }),
                json!({ "mode": { "path": "/workspace/tool", "mode": 0o6755 } }),
            ]
        })
        .fails(denied)
        .check(|attacked, _, _| {
            use std::os::unix::fs::PermissionsExt;
            let tool = attacked.directory(&attacked.id("a")).join("workspace/tool");
            let mode = std::fs::metadata(tool).expect("it is there").permissions().mode();
            assert_eq!(mode & 0o6000, 0, "{mode:o}");
        }),
        attempt("queue_cannot_be_moved_into_the_workspace", |_| {
            vec![json!({ "rename": { "from": "/out/outbound.db", "to": "/workspace/queue" } })]
        })
        .fails("os error"),
        attempt("file_in_the_jail_root_cannot_be_made", |_| vec![json!({ "put": { "path": "/file", "text": "x" } })])
            .fails("os error"),
        attempt("host_files_cannot_be_read_by_their_path", |_| {
            ["/etc/passwd", "/proc/1/environ", "/workspace/../../etc/shadow", "/proc/self/root/etc/passwd", "/dev/mem"]
                .map(|path| json!({ "copy": { "from": path, "to": "/workspace/stolen" } }))
                .to_vec()
        })
        .fails("os error"),
    ]
}

#[test]
fn files_of_a_workspace_cannot_reach_outside_of_it() {
    run_attempts("", attempts());
}

/// Removes a session, and checks that its sandbox ends and no file of it is left.
#[track_caller]
fn check_removal(attacked: &Attacked, id: &str) {
    let sandbox = attacked.session("a")["pid"].as_i64().and_then(|pid| Process::of(i32::try_from(pid).ok()?));
    attacked.host.ctl(&["session", "remove", id, "--yes"]).ok();
    if let Some(sandbox) = sandbox {
        wait_for("the end of its sandbox", || !sandbox.is_alive());
    }
    assert!(!exists(&attacked.directory(id)), "no file of it is left");
    attacked.check_other_agent();
    assert!(attacked.host.say("a", "hello").contains("Hello."), "the next session of the agent answers");
    assert!(attacked.host.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "));
}

#[test]
fn workspace_of_many_deep_directories_is_removed() {
    let attacked = Attacked::new("");
    let script = json!([
        { "files": { "directory": "/workspace/many", "count": 20_000 } },
        { "deep": { "directory": "/workspace/deep", "depth": 3_000 } },
        { "size": { "path": "/workspace/hole", "length": 200 << 20 } },
        { "directory": "/workspace/shut" },
        { "put": { "path": "/workspace/shut/file", "text": "x" } },
        { "mode": { "path": "/workspace/shut", "mode": 0 } },
    ]);
    let played = attacked.play("a", "hello", &script);
    assert_eq!(played.errors, Vec::<serde_json::Value>::new());
    check_removal(&attacked, &attacked.id("a"));
}

#[test]
fn session_that_locks_its_directories_can_be_removed() {
    let attacked = Attacked::new("[turn]\nseconds_max = 4\n[session]\nlaunch_attempts_max = 2\nbackoff_ms = 5\n");
    attacked.say("a", "hello");
    let id = attacked.id("a");
    let shut = json!([
        { "mode": { "path": "/workspace", "mode": 0 } },
        { "mode": { "path": "/out", "mode": 0 } },
        "exit",
    ]);
    // The person gets an answer or a reason.
    let answer = attacked.send("a", "hello", &json!([{ "once": shut }]));
    assert!(answer.code == 0 || answer.stderr.contains("session release"), "{}{}", answer.stdout, answer.stderr);
    attacked.check_other_agent();
    check_removal(&attacked, &id);
}

#[test]
fn sandbox_that_ignores_a_stop_is_ended() {
    for stays in ["hang", "linger"] {
        let attacked = Attacked::new("");
        attacked.say("a", "hello");
        let id = attacked.id("a");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| attacked.send("a", "hello", &json!([{ "once": [stays] }])));
            wait_for("the turn", || attacked.session("a")["waiting"] == 1 && attacked.session("a")["state"] == "awake");
            let pid = attacked.session("a")["pid"].as_i64().expect("awake");
            let sandbox = Process::of(i32::try_from(pid).expect("a pid")).expect("it runs");
            attacked.host.ctl(&["session", "stop", &id]).ok();
            assert!(!sandbox.is_alive(), "{stays}: a sleeping session has no process");
            // Another sandbox answers the message at the next wake.
            attacked.say("a", "hello");
            let answer = waiting.join().expect("no panic").ok().json();
            assert_eq!(answer["notice"], false, "{stays}: {answer}");
        });
        attacked.check_other_agent();
        assert!(attacked.host.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "));
    }
}
