//! The containment check. Every person can run it, and it must fail if any single wall is missing.
//!
//! A test build can leave out a named wall, a release build cannot. The fast tier tests a few walls, which `IRONCLAW_SEED` selects;
//! `IRONCLAW_LONG=1` tests all of them. See `host/jail/src/wall.rs`.

use crate::chaos::kill::{choose_cases, run_settings};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::jail_fixture::{HostUser, host_users};
use crate::support::record::Needle;
use fastrand::Rng;
use ironclaw_jail::{CONTROL, Wall};
use serde_json::Value;
use std::collections::BTreeMap;

/// The variable with the wall that a test build leaves out of every jail.
const WITHOUT_WALL: &str = "IRONCLAW_WITHOUT_WALL";

/// Walls that the fast tier tests for each user.
const WALLS: u64 = 8;

/// Starts a host with one sleeping session.
fn with_session(user: HostUser, build: Build) -> TestHost {
    let host = TestHost::with(user, build, None).started_with("a");
    host.chat("a", "hello");
    host.ctl(&["session", "stop", host.session()["id"].as_str().expect("an id")]).ok();
    host
}

/// Returns the attempts of a list, by name.
fn by_name(attempts: &Value) -> BTreeMap<String, Value> {
    let all = attempts.as_array().unwrap_or_else(|| panic!("attempts: {attempts}"));
    all.iter().map(|one| (one["name"].as_str().expect("a name").to_owned(), one.clone())).collect()
}

/// Returns name and wall of the failed attempts of a session's jails.
fn failed_attempts(report: &Value) -> Vec<(String, String)> {
    failed_in(report, &["attempts", "stock", "reader"])
}

/// Returns name and wall of the failed attempts of these jails.
fn failed_in(report: &Value, jails: &[&str]) -> Vec<(String, String)> {
    let all = jails.iter().flat_map(|jail| by_name(&report[*jail]));
    all.filter(|(_, one)| one["contained"] == false)
        .map(|(name, one)| (name, one["wall"].as_str().unwrap_or_default().to_owned()))
        .collect()
}

/// Returns wall and attempt of each row of the table in the threat model.
fn documented() -> BTreeMap<String, String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/threat-model.md");
    let text = std::fs::read_to_string(path).expect("the threat model");
    let (_, table) = text.split_once("| wall | noticed by |").expect("the table of walls");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|line| line.split('|').map(str::trim).map(str::to_owned).collect::<Vec<String>>());
    cells.map(|cells| (cells[1].clone(), cells[2].trim_matches('`').to_owned())).collect()
}

#[test]
fn containment_check_passes_for_every_user_and_is_recorded() {
    for user in host_users() {
        let host = with_session(user, Build::Plain);
        let answer = host.ctl(&["--json", "doctor", "--prove"]);
        let report = answer.json();
        assert_eq!(failed_attempts(&report), Vec::new(), "{user:?}");
        let answer = answer.ok();
        assert_eq!(report["ok"], true, "{user:?}");
        for jail in ["attempts", "stock", "reader", "server", "commands"] {
            let attempts = report[jail].as_array().expect("a list");
            assert!(attempts.len() >= 40, "{user:?} {jail}: {}", attempts.len());
            assert_eq!(by_name(&report[jail]).len(), attempts.len(), "{user:?} {jail}: a name is repeated");
            for attempt in attempts {
                for field in ["name", "expected", "observed", "wall"] {
                    assert!(attempt[field].is_string(), "{user:?} {jail}: {attempt}");
                }
                assert_eq!(attempt["contained"], true, "{user:?} {jail}: {attempt}");
                assert!(attempt["wall"] != "" || attempt["expected"] == "allowed", "{user:?} {jail}: {attempt}");
            }
        }
        let work = by_name(&report["attempts"]).into_values().filter(|one| one["expected"] == "allowed").count();
        assert!(work >= 4, "{user:?}: a jail must allow some attempts");
        // Without egress, and with it.
        let controls = report["controls"].as_array().expect("a list");
        assert_eq!(controls.len(), 2, "{user:?}");
        for control in controls {
            assert_eq!(
                (&control["caught"], &control["wall"]),
                (&Value::Bool(true), &CONTROL.name().into()),
                "{user:?}"
            );
            assert!(control["noticed"].as_u64() > Some(20), "{user:?}: {control}");
        }
        // The check leaves no file behind and has an entry in the ledger.
        for directory in ["in", "out", "workspace"] {
            let entries = std::fs::read_dir(host.session_directory().join(directory)).expect("a directory");
            let left: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
            assert!(
                left.iter().all(|name| !name.to_string_lossy().contains("probe")),
                "{user:?} {directory}: {left:?}"
            );
        }
        let proved = host.entries("jail.proved");
        assert_eq!(proved.len(), 1, "{user:?}");
        assert!(proved[0]["data"]["attempts"].as_u64() > Some(80), "{user:?}: {}", proved[0]);
        assert!(proved[0]["data"]["by"].as_str().is_some_and(|by| by.starts_with("per_")), "{user:?}: {}", proved[0]);
        assert!(answer.stderr.is_empty(), "{user:?}: {}", answer.stderr);
    }
}

#[test]
fn containment_check_does_not_disturb_an_awake_session() {
    let host = TestHost::new().started_with("a");
    host.chat("a", "my name is Ada");
    let before = host.session();
    assert_eq!(before["state"], "awake");
    host.ctl(&["doctor", "--prove"]).ok();
    assert_eq!(host.session()["pid"], before["pid"]);
    assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.");
}

#[test]
fn containment_check_that_cannot_run_fails_and_is_recorded() {
    let host = with_session(HostUser::Ordinary, Build::Plain);
    let workspace = host.session_directory().join("workspace");
    std::fs::remove_dir_all(&workspace).expect("it is there");
    std::os::unix::fs::symlink("/tmp", &workspace).expect("a link");
    let answer = host.ctl(&["doctor", "--prove"]);
    assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
    let refused = host.entries("jail.not_proved");
    assert_eq!(refused.len(), 1);
    assert!(refused[0]["data"]["reason"].as_str().is_some_and(|why| why.contains("workspace")), "{}", refused[0]);
    assert!(host.entries("jail.proved").is_empty());
}

/// Returns the expected result of a check in a build without this wall.
fn expected(wall: Wall, user: HostUser) -> Without {
    match (wall, user) {
        // For an ordinary user the kernel makes no other namespace without this one, so no jail starts.
        (Wall::UserNamespace, HostUser::Ordinary) => Without::NoJail,
        // Only root can change its uid and its groups.
        (Wall::OwnUid | Wall::OwnGroups, HostUser::Ordinary) => Without::NoSuchWall,
        _ => Without::Failure,
    }
}

#[derive(Debug, PartialEq)]
enum Without {
    /// At least one attempt fails.
    Failure,
    /// The start of the host is refused.
    NoJail,
    /// This user has no such wall.
    NoSuchWall,
}

#[test]
fn containment_check_fails_without_any_single_wall() {
    let documented = documented();
    let named: Vec<&str> = documented.keys().map(String::as_str).collect();
    let mut all: Vec<&str> = Wall::ALL.iter().map(|wall| wall.name()).collect();
    all.sort_unstable();
    assert_eq!(named, all, "the table of walls in the threat model");
    let is_long = std::env::var_os("IRONCLAW_LONG").is_some();
    let (seed, count) = run_settings("IRONCLAW_WALLS", if is_long { Wall::ALL.len() as u64 } else { WALLS });
    let mut chance = Rng::with_seed(seed);
    std::thread::scope(|scope| {
        for user in host_users() {
            let walls = choose_cases(Wall::ALL, count, &mut chance);
            let documented = &documented;
            scope.spawn(move || omit_each(user, &walls, documented));
        }
    });
}

fn omit_each(user: HostUser, walls: &[Wall], documented: &BTreeMap<String, String>) {
    let mut host = with_session(user, Build::Failpoints);
    host.ctl(&["doctor", "--prove"]).ok();
    let mut unnoticed = Vec::new();
    let mut lacking = 0;
    for wall in walls {
        let expected = expected(*wall, user);
        host.down();
        host.set_env(WITHOUT_WALL, Some(wall.name()));
        let started = host.ctl(&["up", "--detach"]);
        host.set_env(WITHOUT_WALL, None);
        if expected == Without::NoJail {
            // The check of the machine before a start makes a jail.
            assert_eq!(started.code, 1, "{user:?} {wall:?}");
            assert!(started.stderr.contains("make new namespaces"), "{user:?} {wall:?}: {}", started.stderr);
            host.up();
            continue;
        }
        started.ok();
        let answer = host.ctl(&["--json", "doctor", "--prove"]);
        lacking += usize::from(expected == Without::Failure);
        match expected {
            Without::NoSuchWall => assert_eq!(answer.code, 0, "{user:?} {wall:?}: {}", answer.stderr),
            Without::NoJail => unreachable!("the host did not start"),
            Without::Failure => {
                let report = answer.json();
                let escaped = failed_attempts(&report);
                let own = escaped.iter().filter(|(_, held)| held == wall.name()).count();
                let documented = escaped.iter().any(|(name, _)| Some(name) == documented.get(wall.name()));
                let failed = answer.code == 1 && answer.stderr.contains("not contained: ");
                // A jail from stock notices the missing wall as one on demand does.
                let noticed = |jail| failed_in(&report, &[jail]).iter().any(|(_, held)| held == wall.name());
                let stocked = noticed("stock") == noticed("attempts");
                if own == 0 || !documented || !failed || !stocked {
                    unnoticed.push(format!("{wall:?} (code {}): {escaped:?} {}", answer.code, answer.stderr));
                }
                // The control cannot detect a wall that is missing in both jails.
                assert_eq!(report["controls"][0]["caught"], *wall != CONTROL, "{user:?} {wall:?}");
            }
        }
    }
    assert!(unnoticed.is_empty(), "{user:?}:\n{}", unnoticed.join("\n"));
    assert!(host.entries("jail.not_proved").len() >= lacking, "{user:?}");
}

#[test]
fn release_build_ignores_a_request_to_omit_a_wall() {
    let word = Needle::new("the variable", WITHOUT_WALL);
    let knows = |build| {
        let program =
            std::fs::read(crate::support::host_fixture::programs(build).join("ironclaw-host")).expect("the program");
        word.is_in(&program)
    };
    assert!(knows(Build::Failpoints), "the test build does not contain the variable");
    assert!(!knows(Build::Plain));
    let mut host = with_session(HostUser::Ordinary, Build::Plain);
    host.down();
    host.set_env(WITHOUT_WALL, Some(Wall::Seccomp.name()));
    host.up();
    host.ctl(&["doctor", "--prove"]).ok();
}

#[test]
fn test_build_that_omits_an_unknown_wall_does_not_start() {
    let mut host = with_session(HostUser::Ordinary, Build::Failpoints);
    host.down();
    host.set_env(WITHOUT_WALL, Some("drawbridge"));
    // The launcher exits before it makes a jail, and then the host exits. `up` may return before or after that.
    host.ctl(&["up", "--detach"]);
    wait_for("the end of the host", || host.pid().is_none());
}
