//! Every file of a home, damaged in every way: a start ends at once, and its message has a code and the name of the file.
//!
//! The fast tier tests a few cases, which `IRONCLAW_SEED` selects; `IRONCLAW_LONG=1` tests all. See `panic_homes` and `failures`.
#![allow(clippy::print_stdout)] // names the failed file

use crate::support::broken_files::{KINDS, Kind, put};
use crate::support::host_fixture::{Build, TestHost};
use crate::support::jail_fixture::HostUser;
use crate::support::needs::needs;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

/// The number of concurrent starts.
const AT_ONCE: usize = 2;

/// Every file and directory of a home. `lost_record` tests starts without a valid record. Here such a start must only end.
const FILES: [&str; 20] = [
    "state.db",
    "master.key",
    "owner.token",
    "config.toml",
    "policy.toml",
    "run.json",
    "host.lock",
    "keys.json",
    "panic",
    "panic.reserve",
    "owner.token.next",
    "master.key.next",
    "state.db.next",
    "logs",
    "logs/host.log",
    "logs/host.stderr",
    "sessions",
    "agents",
    "ledger",
    "run",
];

/// Makes a used home with most of its files and no running host. Its user is not root, because root ignores file modes.
fn used_home() -> TestHost {
    let host = TestHost::with(HostUser::Ordinary, Build::Plain, None).started_with("a");
    host.say("a", "hello");
    host.ctl(&["audit", "rotate"]).ok();
    host.down();
    host
}

fn check_start(template: &TestHost, file: &str, kind: Kind) {
    let what = format!("{file} {kind:?}");
    let host = template.copy();
    put(&host.home.join(file), kind);
    let up = host.ctl_bounded(&["--json", "up", "--detach"]);
    println!("{what}: {} {}", up.code, up.stderr.trim());
    assert!([0, 1].contains(&up.code), "{what}: {}{}", up.stdout, up.stderr);
    assert!(!up.stderr.contains("panicked at"), "{what}: {}", up.stderr);
    if up.code == 1 && file != "state.db" {
        let failure: Value = serde_json::from_str(up.stderr.trim()).unwrap_or_else(|_| panic!("{what}: {}", up.stderr));
        let name = Path::new(file).file_name().and_then(|name| name.to_str()).expect("a name");
        let (message, hint) = (failure["error"]["message"].as_str(), failure["error"]["hint"].as_str());
        assert!(
            message.is_some_and(|message| message.contains(name)),
            "{what}: the message does not name the file: {failure}"
        );
        let has_remedy = |hint: &str| !hint.is_empty() && !hint.starts_with("look at ");
        assert!(hint.is_some_and(has_remedy), "{what}: the hint has no remedy: {failure}");
    }
    let status = host.ctl_bounded(&["--json", "status"]);
    assert!([0, 1, 3].contains(&status.code), "{what}: {}{}", status.stdout, status.stderr);
    assert!(up.code == 1 || status.code != 3, "{what}: the started host does not answer: {}", status.stderr);
    host.kill_hosts();
    put(&host.home.join(file), Kind::Usable);
}

#[test]
fn start_with_a_broken_file_in_the_home_ends_at_once() {
    let is_long = std::env::var_os("IRONCLAW_LONG").is_some();
    let seed: usize = std::env::var("IRONCLAW_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(4);
    println!("IRONCLAW_SEED={seed}");
    let all = FILES.iter().enumerate().flat_map(|(number, file)| {
        let kinds = KINDS.iter().enumerate();
        kinds
            .filter(move |(kind, _)| is_long || (number.wrapping_mul(5).wrapping_add(seed)) % KINDS.len() == *kind)
            .map(|(_, kind)| (*file, *kind))
    });
    let waiting = Mutex::new(all.collect::<Vec<_>>());
    let template = used_home();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
                    let Some((file, kind)) = next else { return };
                    check_start(&template, file, kind);
                }
            });
        }
    });
}

#[test]
fn init_replaces_a_missing_or_invalid_token_file() {
    let host = TestHost::with(HostUser::Ordinary, Build::Plain, None).started();
    for kind in [Kind::Missing, Kind::Empty, Kind::Garbage, Kind::Pipe, Kind::Unreadable] {
        put(&host.home.join("owner.token"), kind);
        let error = host.ctl_bounded(&["--json", "status"]).error();
        assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("ironctl init")), "{kind:?}: {error}");
        let made = host.ctl(&["--json", "init"]).ok().json();
        assert_eq!(made["token_replaced"], true, "{kind:?}: {made}");
        host.ctl(&["status"]).ok();
        assert_eq!(
            host.ctl(&["--json", "init"]).ok().json()["made"],
            false,
            "{kind:?}: a second `init` changes nothing"
        );
    }
    // The token has a valid form but is revoked. `up` refuses at once, and its hint names `ironctl init`.
    host.down();
    let token = std::fs::read_to_string(host.home.join("owner.token")).expect("a token");
    put(&host.home.join("owner.token"), Kind::Empty);
    host.ctl(&["init"]).ok();
    std::fs::write(host.home.join("owner.token"), token).expect("written");
    let up = host.ctl_bounded(&["--json", "up", "--detach"]);
    let error = up.error();
    assert_eq!(error["code"], "token_revoked", "{error}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("ironctl init")), "{error}");
    host.ctl(&["init"]).ok();
    host.ctl(&["status"]).ok();
}

#[test]
fn empty_settings_have_the_warning_of_missing_ones() {
    let host = TestHost::new();
    for kind in [Kind::Empty, Kind::Missing] {
        for file in ["policy.toml", "config.toml"] {
            put(&host.home.join(file), kind);
        }
        host.up();
        let warnings = host.status()["host"]["warnings"].to_string();
        for file in ["policy.toml", "config.toml"] {
            assert!(warnings.contains(&format!("{file} is missing or empty")), "{kind:?}: {warnings}");
        }
        host.down();
    }
}

#[test]
fn token_that_is_made_again_creates_no_home() {
    let host = TestHost::new();
    put(&host.home.join("owner.token"), Kind::Missing);
    let up = host.ctl(&["up", "--detach"]).ok();
    let said = format!("{}{}", up.stdout, up.stderr);
    assert!(said.contains("owner.token was missing") && !said.contains("created a home"), "{said}");
}

/// A script that starts a host in a home on a full file system, and prints `unchanged` if the start wrote no file.
const FULL_START: &str = r#"
mount -t tmpfs -o size=8m,mode=700 tmpfs "$2"
cp -a "$1" "$2/h"
head -c 32m /dev/zero > "$2/ballast" 2>/dev/null || true
look() { find "$2/h" -type f -exec cksum {} + | sort; }
before=$(look "$@")
code=0; "$3" run --json --home "$2/h" 2>"$4" || code=$?
[ "$before" = "$(look "$@")" ] && echo "unchanged $code"
"#;

#[test]
fn start_without_space_writes_nothing_and_says_the_need() {
    needs("unshare");
    needs("mount");
    let host = TestHost::own(Build::Plain);
    let (disk, said) = (host.home.with_file_name("disk"), host.home.with_file_name("said"));
    std::fs::create_dir(&disk).expect("a directory");
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-ec", FULL_START, "sh"]).args([&host.home, &disk]);
    let output = command.arg(host.programs.join("ironclaw-host")).arg(&said).output().expect("unshare runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "unchanged 1\n", "{output:?}");
    let failure: Value =
        serde_json::from_slice(&std::fs::read(&said).expect("the host printed a message")).expect("JSON");
    let message = failure["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("no room to start at") && message.contains("a start needs 1048576 bytes"), "{failure}");
    assert!(failure["error"]["hint"].as_str().is_some_and(|hint| hint.contains("free space")), "{failure}");
}
