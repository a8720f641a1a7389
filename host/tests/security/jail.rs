//! Jails through a real launcher, as root with mapped ids and as an ordinary user.
//!
//! No test is skipped. On a machine that cannot make a jail the tests fail, and `ironclaw-host preflight` names the cause. See
//! `host/examples/jail_driver.rs`, which runs the scenarios.

use crate::support::host_fixture::kill;
use crate::support::jail_fixture::{HostUser, JailFixture, MAPPED, host_users};
use crate::support::needs::needs;
use ironclaw_jail::launcher::STOCK;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The longest wait for an event that takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a scenario as each user that can start a host on this machine.
fn play_each(scenario: &str, check: impl Fn(HostUser, Value)) {
    for user in host_users() {
        check(user, JailFixture::new(user).play(scenario));
    }
}

#[test]
fn unenforceable_spec_is_refused_with_its_cause() {
    play_each("refusals", |user, result| {
        let error = |case: &str| result[case]["error"].as_str().unwrap_or("it was launched").to_owned();
        for (case, words) in [
            ("missing", "/nowhere for /in: No such file"),
            ("link", "/a-link for /workspace, which is a symbolic link"),
            ("file", "/no-program for /in: Not a directory"),
            ("target", "mount target \"/in/../x\" is not"),
            ("twice", "mount target /in is used twice"),
            ("no_program", "open the program"),
            ("not_executable", "/no-program: Permission denied"),
            ("no_gate", "ended with code 0 before it reached its gate"),
            ("control", "a jail that lacks a wall on purpose takes no directory"),
            ("root", "is root's, and no jail may have it"),
        ] {
            assert!(error(case).contains(words), "{user:?} {case}: {}", error(case));
            assert!(error(case).contains("the jail of ses_test"), "{user:?} {case}: {}", error(case));
        }
        assert!(result["not_executable"]["remedy"].as_str().is_some_and(|remedy| remedy.contains("executable")));
    });
}

#[test]
fn program_that_misses_its_gate_is_killed_in_time() {
    play_each("late", |user, result| {
        let error = result["late"]["error"].as_str().unwrap_or_default();
        assert!(error.contains("did not reach its gate within 2000 ms"), "{user:?}: {result}");
        let [noop, late] = ["noop_ms", "late_ms"].map(|name| result[name].as_u64().expect("a number"));
        assert!(late < 20_000, "{user:?}: {result}");
        assert!(noop < 2_000, "{user:?}: the late launch delayed the other one: {result}");
    });
}

#[test]
fn kernel_report_matches_the_spec_even_if_a_program_hides() {
    play_each("report", |user, result| {
        assert_eq!(result["faults"], Value::Null, "{user:?}");
        let report = &result["report"];
        assert_eq!(report["own_namespaces"].as_array().map(Vec::len), Some(7));
        assert_eq!(report["interfaces"], serde_json::json!(["lo down"]));
        assert_eq!(report["root"], serde_json::json!(["in", "out", "workspace"]));
        assert_eq!(report["mounts"], serde_json::json!(["/ ro", "/in ro", "/out rw", "/workspace rw"]));
        let uid = if user == HostUser::Root { MAPPED } else { report["uid"].as_u64().unwrap_or(0) as u32 };
        assert_eq!((report["uid"].as_u64(), uid != 0), (Some(u64::from(uid)), true));
    });
}

#[test]
fn jailed_program_sees_its_link_and_no_part_of_the_host() {
    play_each("look", |user, seen| {
        assert_eq!(seen["descriptors"], serde_json::json!([0, 1, 2, 3]), "{user:?}");
        assert_eq!(seen["variables"], 0, "{user:?}");
        assert_eq!((&seen["pid"], &seen["parent"]), (&2.into(), &1.into()), "{user:?}");
        assert_eq!((&seen["here"], &seen["hostname"]), (&"/".into(), &"ironclaw".into()), "{user:?}");
        assert!(
            seen["escape"].as_array().is_some_and(|places| places.iter().all(|found| *found == -1)),
            "{user:?}: {seen}"
        );
        assert_eq!(seen["thread"], 42, "{user:?}: a program may have threads");
    });
}

#[test]
fn role_in_the_launcher_is_jailed_without_its_environment() {
    play_each("reader", |user, result| {
        assert_eq!(result["faults"], Value::Null, "{user:?}");
        assert_eq!(result["heard"], "HELLO 0", "{user:?}");
        assert_eq!(result["exit"]["code"], 7, "{user:?}");
    });
}

#[test]
fn signal_of_a_dead_program_is_reported() {
    play_each("abort", |user, result| assert_eq!(result["exit"]["signal"], libc::SIGABRT, "{user:?}"));
}

#[test]
fn killed_jail_leaves_no_process() {
    play_each("kill", |user, result| {
        assert_eq!(result["exit"]["signal"], libc::SIGKILL, "{user:?}");
        assert_eq!(result["left"], false, "{user:?}");
    });
}

#[test]
fn launch_without_a_waiting_caller_is_killed() {
    play_each("abandoned", |user, result| {
        assert_eq!((&result["late"], &result["left"]), (&true.into(), &false.into()), "{user:?}");
    });
}

#[test]
fn concurrent_launches_do_not_disturb_each_other() {
    play_each("many", |user, result| assert_eq!(result["jails"], 16, "{user:?}"));
}

/// A host that keeps running, and its output.
type Staying = (Child, BufReader<std::process::ChildStdout>);

/// Starts a host that keeps running with a full stock. Returns the process ids of its launcher and of process 1 and the program in its
/// jail, and of the jails in stock.
fn start_staying(stage: &JailFixture, scenario: &str) -> (Staying, [u64; 3], Vec<u64>) {
    let mut host = stage.command(scenario, None).stdout(Stdio::piped()).spawn().expect("the driver runs");
    let mut lines = BufReader::new(host.stdout.take().expect("it is piped"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("the driver prints the process ids");
    let result: Value = serde_json::from_str(&line).expect("the driver prints JSON");
    let pids = ["launcher", "init", "program"].map(|name| result[name].as_u64().expect("a process id"));
    let stock: Vec<u64> = serde_json::from_value(result["stock"].clone()).expect("process ids");
    assert_eq!(stock.len(), STOCK, "{result}");
    ((host, lines), pids, stock)
}

/// Returns whether a process has ended. A zombie counts as ended, because its new parent may be slow to reap it.
fn has_ended(pid: u64) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" Z") || rest.starts_with(" X")),
        Err(_) => true,
    }
}

fn wait_until_ended(pids: &[u64]) {
    let begun = Instant::now();
    while !pids.iter().all(|pid| has_ended(*pid)) {
        assert!(begun.elapsed() < PATIENCE, "not all of these processes ended: {pids:?}");
        std::thread::yield_now();
    }
}

#[test]
fn launcher_death_ends_every_jail_and_is_detected() {
    for user in host_users() {
        let stage = JailFixture::new(user);
        let ((mut host, mut lines), [launcher, init, program], stock) = start_staying(&stage, "stay");
        kill(i32::try_from(launcher).expect("a process id"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("the driver prints what it heard");
        let result: Value = serde_json::from_str(&line).expect("the driver prints JSON");
        assert_eq!(result["exit"]["signal"], libc::SIGKILL, "{user:?}");
        let again = result["again"]["error"].as_str().unwrap_or_default();
        assert_eq!(again, format!("the launcher (process {launcher}) is gone"), "{user:?}");
        wait_until_ended(&[init, program]);
        wait_until_ended(&stock);
        host.wait().expect("the driver ends");
    }
}

#[test]
fn host_death_ends_its_launcher_and_every_jail() {
    for user in host_users() {
        let stage = JailFixture::new(user);
        let ((mut host, _lines), [launcher, init, program], stock) = start_staying(&stage, "stay");
        host.kill().expect("it runs");
        host.wait().expect("it is ours");
        wait_until_ended(&[launcher, init, program]);
        wait_until_ended(&stock);
    }
}

#[test]
fn daemon_of_a_jailed_program_does_not_outlive_the_host() {
    for user in host_users() {
        let stage = JailFixture::new(user);
        let ((mut host, _lines), [launcher, init, program], _) = start_staying(&stage, "daemon");
        // The daemon is an orphan, so it is a child of process 1.
        let children = || std::fs::read_to_string(format!("/proc/{init}/task/{init}/children")).unwrap_or_default();
        let begun = Instant::now();
        let daemon = loop {
            let found: Vec<u64> = children().split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
            match found.iter().find(|pid| **pid != program) {
                Some(daemon) if found.len() == 2 => break *daemon,
                _ => assert!(begun.elapsed() < PATIENCE, "{user:?}: {found:?}"),
            }
            std::thread::yield_now();
        };
        assert!(!has_ended(daemon), "{user:?}");
        host.kill().expect("it runs");
        host.wait().expect("it is ours");
        wait_until_ended(&[launcher, init, program, daemon]);
    }
}

#[test]
fn replaced_mount_source_or_reserved_target_is_refused() {
    play_each("granted", |user, result| {
        let error = |case: &str| result[case]["error"].as_str().unwrap_or("it was launched").to_owned();
        // The only fault of this program is its missing gate, so its mounts are accepted.
        assert_eq!(result["before"], Value::Null, "{user:?}: {result}");
        for (case, words) in [
            ("swapped", "/way/to/here for /data, because "),
            ("swapped", "/way/to is a symbolic link"),
            ("gone", "/gone for /data: No such file"),
            ("reserved", "mount target /usr is reserved for the jail itself"),
            ("library", "mount target /libexec is reserved for the jail itself"),
            ("own", "mount target /workspace is reserved for the jail itself"),
            ("no_layer", "/gone over /usr: No such file"),
            ("linked_layer", "/linked over /usr: Not a directory"),
            ("relative_layer", "layer layer is not absolute"),
        ] {
            assert!(error(case).contains(words), "{user:?} {case}: {}", error(case));
        }
    });
}

#[test]
fn jail_with_host_programs_and_a_layer_contains_attempts() {
    for scenario in ["programs", "programs-in-a-layer"] {
        play_each(scenario, |user, result| {
            let attempts = result["attempts"].as_array().unwrap_or_else(|| panic!("{user:?} {scenario}: {result}"));
            let breached: Vec<_> = attempts.iter().filter(|attempt| attempt["contained"] != true).collect();
            assert_eq!(breached, Vec::<&Value>::new(), "{user:?} {scenario}");
            for tried in [
                "execute a program of the host",
                "copy a program of the host and execute it",
                "write a file into /data",
                "write, read and delete a file in /shared",
                "write a file into /usr",
            ] {
                assert!(attempts.iter().any(|attempt| attempt["name"] == tried), "{user:?} {scenario}: {tried}");
            }
        });
    }
}

#[test]
fn jail_of_an_mcp_server_contains_every_attempt() {
    play_each("server", |user, result| {
        let attempts = result["server"].as_array().unwrap_or_else(|| panic!("{user:?}: {result}"));
        let breached: Vec<_> = attempts.iter().filter(|attempt| attempt["contained"] != true).collect();
        assert_eq!(breached, Vec::<&Value>::new(), "{user:?}");
        for tried in ["write, read and delete a file in /state", "write a file into /data", "open a TCP socket"] {
            assert!(attempts.iter().any(|attempt| attempt["name"] == tried), "{user:?}: {tried}");
        }
        assert_eq!(result["controls"][0]["caught"], true, "{user:?}: {result}");
    });
}

#[test]
fn jail_with_a_listener_reaches_the_listener_alone() {
    play_each("listener", |user, result| {
        let attempts = result["commands"].as_array().unwrap_or_else(|| panic!("{user:?}: {result}"));
        let breached: Vec<_> = attempts.iter().filter(|attempt| attempt["contained"] != true).collect();
        assert_eq!(breached, Vec::<&Value>::new(), "{user:?}");
        for tried in [
            "reach the gateway of the jail",
            "reach another port of the jail",
            "open a UDP socket",
            "ask a name server",
        ] {
            assert!(attempts.iter().any(|attempt| attempt["name"] == tried), "{user:?}: {tried}");
        }
        let controls = result["controls"].as_array().expect("a list");
        assert!(controls.len() == 2 && controls.iter().all(|control| control["caught"] == true), "{user:?}: {result}");
    });
}

#[test]
fn program_in_the_jail_of_a_server_talks_over_its_link() {
    needs("node");
    needs("python3");
    play_each("server-programs", |user, result| {
        for (program, heard, errors) in
            [("cat", "hello\n", ""), ("python", "HELLO\n", "ready\n"), ("node", "HELLO\n", "ready\n")]
        {
            let found = &result[program];
            assert_eq!(found["faults"], Value::Null, "{user:?} {program}: {result}");
            assert_eq!((&found["heard"], &found["errors"]), (&heard.into(), &errors.into()), "{user:?} {program}");
            assert_eq!(found["exit"]["code"], 0, "{user:?} {program}: {result}");
        }
        let missing = &result["missing"];
        assert_eq!(missing["heard"], "", "{user:?}: a failure is never on the link");
        assert!(missing["errors"].as_str().is_some_and(|text| text.contains("no-such-program")), "{user:?}: {missing}");
    });
}
