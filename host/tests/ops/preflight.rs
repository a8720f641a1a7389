//! Tests of preflight on this machine, and on machines with a fault.
//!
//! The faults are real (a filter, a user namespace) or values in a copy of `/proc/sys`. See `host/src/daemon/preflight/diagnosis.rs`.

use crate::support::host_fixture::{Build, TestHost};
use crate::support::jail_fixture::{HostUser, JailFixture, answer, directory, host_users};
use crate::support::needs::needs;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns the failed checks of a preflight as (name, found, remedy).
fn faults(report: &Value) -> Vec<(String, String, String)> {
    let text = |check: &Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
    let failed = report["checks"].as_array().expect("checks").iter().filter(|check| check["ok"] == false);
    failed.map(|check| (text(check, "name"), text(check, "found"), text(check, "remedy"))).collect()
}

fn preflight(user: HostUser, settings: &Path, filter: &str) -> Value {
    let fixture = JailFixture::new(user);
    answer(fixture.command(&format!("preflight:{}", settings.display()), Some(filter)))
}

#[test]
fn preflight_accepts_this_machine() {
    for user in host_users() {
        let report = preflight(user, Path::new("/proc/sys"), "none");
        assert_eq!((faults(&report), &report["ok"]), (Vec::new(), &Value::Bool(true)), "{user:?}");
    }
}

#[test]
fn preflight_as_root_tests_the_configured_ids() {
    if !host_users().contains(&HostUser::Root) {
        return; // an ordinary user cannot map other ids
    }
    let host = TestHost::with(HostUser::Root, Build::Plain, None).configured("[jail]\nuid_base = 70000\n");
    let program = host.programs.join("ironclaw-host");
    let program = program.to_str().expect("a plain path");
    let home = host.home.to_str().expect("a plain path");
    let without = with_few_ids(&[program, "preflight", "--json"]);
    assert_eq!(faults(&without).first().map(|(name, ..)| name.as_str()), Some("host ids"), "{without}");
    let with = with_few_ids(&[program, "preflight", "--json", "--home", home]);
    assert_eq!(faults(&with), Vec::new());
}

/// Returns the output of a preflight in a user namespace that has only root and the ids 70000 to 70009.
fn with_few_ids(words: &[&str]) -> Value {
    needs("unshare");
    let mut command = Command::new("unshare");
    // The shell has no id until the ids are mapped. The program that it executes then runs as root of the namespace.
    command.args(["--user", "sh", "-c", "echo && read -r mapped && exec \"$@\"", "sh"]).args(words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("unshare runs");
    let mut output = BufReader::new(child.stdout.take().expect("a piped stream"));
    output.read_line(&mut String::new()).expect("the shell is in its namespace");
    for map in ["uid_map", "gid_map"] {
        let path = format!("/proc/{}/{map}", child.id());
        std::fs::write(path, "0 0 1\n70000 70000 10\n").expect("root can map every id");
    }
    child.stdin.take().expect("a piped stream").write_all(b"\n").expect("the shell waits");
    let mut text = String::new();
    output.read_to_string(&mut text).expect("the preflight prints");
    child.wait().expect("the child ends");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn preflight_distinguishes_container_filter_and_kernel() {
    for user in host_users() {
        for (filter, check, words) in [
            ("namespaces:1", "namespaces", "a seccomp filter around this process forbids the call"),
            ("namespaces:38", "namespaces", "says that the call does not exist"),
            ("mounts:1", "root of a jail", "a seccomp filter around this process forbids the call"),
            ("mounts:38", "root of a jail", "says that the call does not exist"),
        ] {
            let report = preflight(user, Path::new("/proc/sys"), filter);
            assert_eq!(report["ok"], false, "{user:?} {filter}");
            let (name, found, remedy) = faults(&report).remove(0);
            assert_eq!(name, check, "{user:?} {filter}");
            assert!(found.contains(words), "{user:?} {filter}: {found}");
            assert!(remedy.contains("--security-opt seccomp=unconfined"), "{user:?} {filter}: {remedy}");
        }
    }
}

#[test]
fn preflight_names_the_setting_that_forbids_user_namespaces() {
    for (setting, value, check, remedy) in [
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "AppArmor", "apparmor_parser -r"),
        ("kernel/unprivileged_userns_clone", "0", "unprivileged user namespaces", "kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "limit of user namespaces", "user.max_user_namespaces=15000"),
    ] {
        let settings = directory();
        std::fs::set_permissions(settings.path(), PermissionsExt::from_mode(0o755)).expect("permissions");
        let file = settings.path().join(setting);
        std::fs::create_dir_all(file.parent().expect("it has a directory")).expect("a directory");
        std::fs::write(&file, format!("{value}\n")).expect("a file");
        let report = preflight(HostUser::Ordinary, settings.path(), "none");
        assert_eq!(report["ok"], false, "{setting}");
        let (name, _, advice) = faults(&report).remove(0);
        assert_eq!(name, check);
        assert!(advice.contains(remedy), "{setting}: {advice}");
    }
}

#[test]
fn preflight_in_a_limited_user_namespace_names_the_limit() {
    needs("unshare");
    let fixture = JailFixture::new(*host_users().last().expect("a user"));
    let driver = fixture.command("preflight:/proc/sys", Some("none"));
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c"]);
    command.arg("echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"").arg("sh");
    command.arg(driver.get_program()).args(driver.get_args());
    let report = answer(command);
    let names: Vec<String> = faults(&report).into_iter().map(|(name, _, _)| name).collect();
    assert_eq!(names.first().map(String::as_str), Some("limit of user namespaces"));
    if !nix::unistd::geteuid().is_root() {
        // In the namespace of an ordinary user the launch ends before it: no root there can leave its groups.
        assert!(names.iter().any(|name| name == "host ids"), "{names:?}");
        return;
    }
    let (_, found, remedy) = faults(&report).into_iter().find(|(name, _, _)| name == "namespaces").expect("it fails");
    assert!(found.contains("the number of user namespaces is limited"), "{found}");
    assert!(remedy.contains("user.max_user_namespaces=15000"), "{remedy}");
}

#[test]
fn preflight_as_namespace_root_reports_missing_ids() {
    needs("unshare");
    let fixture = JailFixture::new(*host_users().last().expect("a user"));
    let driver = fixture.command("preflight:/proc/sys", Some("none"));
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user"]).arg(driver.get_program()).args(driver.get_args());
    let report = answer(command);
    let (name, found, remedy) = faults(&report).remove(0);
    assert_eq!(name, "host ids", "{found}");
    assert!(remedy.contains("as an ordinary user"), "{remedy}");
}
