//! Tests of `service` and `uninstall` with a fake `systemctl` and a fake `ironclaw-host`.
//!
//! The fake `systemctl` records its calls, answers queries from files beside it, and lets clients find a fake host. See
//! [`crate::offline`].

use crate::fake_host::{Answer, FakeHost, Programs, code_of, ended, json_of, status};
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::{Builder, TempDir};

/// Answers a query with the file of its name, and records every other call.
const SYSTEMCTL: &str = r#"#!/bin/sh
here=$(dirname "$0")
while [ "${1#--}" != "$1" ] && [ "$1" != --now ]; do shift; done
case $1 in
is-*) cat "$here/$1" 2>/dev/null ;;
*) echo "systemctl $*" >>"$here/calls" ;;
esac
case $1 in
enable) cp "$here/run.json" "$HOME/.local/state/ironclaw/" 2>/dev/null || true ;;
esac
"#;

/// A user with a home directory, the programs, and a fake `systemctl`.
struct User {
    directory: TempDir,
    programs: Programs,
    /// Answers once `systemctl enable` was called.
    host: FakeHost,
}

impl User {
    fn new() -> Self {
        let programs = Programs::new();
        let directory = tempfile::tempdir().expect("a temporary directory");
        programs.write("systemctl", SYSTEMCTL);
        let script = programs.directory.path().join("systemctl");
        fs::set_permissions(script, Permissions::from_mode(0o755)).expect("own file");
        let states = directory.path().join(".local/state");
        fs::create_dir_all(&states).expect("made");
        let home = Builder::new().prefix("ironclaw").rand_bytes(0).tempdir_in(states).expect("a home");
        let path = home.path().to_owned();
        let host = FakeHost::silent(home, move |_, _| Answer::json(status(&path, 4242)));
        programs.write("run.json", host.run_file());
        let user = Self { directory, programs, host };
        user.answer("is-system-running", "running");
        user.answer("is-active", "inactive");
        user.answer("is-enabled", "enabled");
        user
    }

    /// Sets the answer of `systemctl` to a query.
    fn answer(&self, query: &str, word: &str) {
        self.programs.write(query, format!("{word}\n"));
    }

    fn run(&self, words: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(&self.programs.ironctl);
        command.env_clear().env("HOME", self.directory.path()).stdin(Stdio::null());
        let path = std::env::join_paths([self.programs.directory.path(), "/usr/bin".as_ref(), "/bin".as_ref()])
            .expect("a path");
        ended(command.env("PATH", path).args(words).output().expect("ironctl runs"))
    }

    /// Runs a command for a script that fails; returns its exit code and the code of the failure.
    fn failed(&self, words: &[&str]) -> (i32, String) {
        let (code, _, err) = self.run(&[words, &["--json"]].concat());
        (code, code_of(&err))
    }

    /// Returns the calls of `systemctl` so far that change something.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.programs.directory.path().join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn unit(&self) -> PathBuf {
        self.directory.path().join(".config/systemd/user/ironclaw.service")
    }

    fn home(&self) -> PathBuf {
        self.host.home.path().to_owned()
    }

    /// Sets the list of the host's program for a removal of a home.
    fn list(&self, home: &str) {
        let list = json!({ "home": home, "remove": [{ "path": home, "what": "the home" }], "keep": [] });
        self.programs.write("uninstall.out", list.to_string());
    }
}

#[test]
fn service_is_installed_shown_and_removed() {
    let user = User::new();
    let (code, out, err) = user.run(&["service", "install"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for words in ["$ systemctl --user daemon-reload\n", "$ systemctl --user enable --now ironclaw.service\n"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(out.contains("loginctl enable-linger"), "{out}");
    assert_eq!(user.calls(), ["systemctl daemon-reload", "systemctl enable --now ironclaw.service"]);
    let text = fs::read_to_string(user.unit()).expect("written");
    let host = user.programs.directory.path().join("ironclaw-host");
    let run = format!("ExecStart={} run --home {}\n", host.display(), user.home().display());
    assert!(text.contains(&run), "{text}");
    assert!(text.ends_with(&user.run(&["service", "install", "--print"]).1));

    user.answer("is-active", "active");
    let (code, out, _) = user.run(&["service", "status", "--json"]);
    let expected = json!({ "file": user.unit(), "unit": "installed", "enabled": "enabled", "active": "active" });
    assert_eq!((code, json_of(&out)), (0, expected));

    assert_eq!(user.run(&["service", "remove"]).0, 0);
    assert!(!user.unit().exists());
    let calls = user.calls();
    assert_eq!(calls[calls.len() - 2..], ["systemctl disable --now ironclaw.service", "systemctl daemon-reload"]);
    let (code, out, _) = user.run(&["service", "remove"]);
    assert_eq!(code, 0);
    assert!(out.contains("not installed"), "{out}");
}

#[test]
fn changed_unit_is_replaced_only_by_force() {
    let user = User::new();
    assert_eq!(user.run(&["service", "install"]).0, 0);
    let text = fs::read_to_string(user.unit()).expect("written");
    // Another home is another service.
    let other = user.directory.path().join("other");
    let words = ["--home", other.to_str().expect("text"), "service", "install"];
    assert_eq!(user.failed(&words), (1, "unit_changed".to_owned()));
    fs::write(user.unit(), text.replace("on-failure", "always")).expect("written");
    let calls = user.calls().len();
    for words in [["service", "install"], ["service", "remove"]] {
        assert_eq!(user.failed(&words), (1, "unit_changed".to_owned()), "{words:?}");
    }
    assert!(fs::read_to_string(user.unit()).expect("there").contains("always"), "it is unchanged");
    assert_eq!(user.calls().len(), calls, "systemctl was not called");
    user.answer("is-active", "active");
    assert_eq!(user.run(&["service", "install", "--force"]).0, 0);
    assert_eq!(fs::read_to_string(user.unit()).expect("there"), text);
    assert_eq!(user.calls().last().expect("called"), "systemctl restart ironclaw.service");
}

#[test]
fn service_whose_host_does_not_answer_is_a_failure() {
    let user = User::new();
    fs::remove_file(user.programs.directory.path().join("run.json")).expect("removed");
    user.answer("is-active", "failed");
    let (code, _, err) = user.run(&["service", "install", "--json"]);
    assert_eq!((code, code_of(&err).as_str()), (1, "host_start_failed"), "{err}");
    assert!(err.contains("systemctl --user status"), "{err}");
    assert!(user.unit().exists());
}

#[test]
fn machine_without_systemd_is_refused_and_gets_no_unit() {
    let user = User::new();
    for (word, path) in [("offline", true), ("", false)] {
        user.answer("is-system-running", word);
        if !path {
            fs::remove_file(user.programs.directory.path().join("systemctl")).expect("removed");
        }
        let (code, _, err) = user.run(&["service", "install", "--json"]);
        // A machine with systemd has a systemctl in /usr/bin, and no session here.
        assert_eq!((code, code_of(&err).as_str()), (1, "systemd_missing"), "{err}");
        assert!(err.contains("ironctl up --detach"), "{err}");
    }
    assert!(!user.unit().exists());
}

#[test]
fn only_root_installs_the_service_of_the_machine() {
    if nix::unistd::geteuid().is_root() {
        return;
    }
    assert_eq!(User::new().failed(&["service", "install", "--system"]), (1, "needs_root".to_owned()));
}

#[test]
fn system_unit_has_its_home_and_its_credential() {
    let user = User::new();
    let (code, out, _) = user.run(&["service", "install", "--system", "--print", "--credential", "/etc/k"]);
    assert_eq!(code, 0);
    assert!(out.contains(" run --home /var/lib/ironclaw\n"), "{out}");
    assert!(out.contains("LoadCredential=ironclaw-master-key:/etc/k\n"), "{out}");
    let (code, out, _) = user.run(&["--home", "/srv/i", "service", "install", "--system", "--print"]);
    assert_eq!(code, 0);
    assert!(out.contains(" run --home /srv/i\n") && !out.contains("LoadCredential"), "{out}");
    for words in [&["--credential", "/etc/k"][..], &["--system", "--credential", "key"]] {
        assert_eq!(user.run(&[&["service", "install"][..], words].concat()).0, 2, "{words:?}");
    }
}

#[test]
fn uninstall_shows_everything_and_needs_the_path_of_the_home() {
    let user = User::new();
    let home = user.home().display().to_string();
    user.list(&home);
    assert_eq!(user.run(&["service", "install"]).0, 0);
    assert_eq!(user.run(&["completions", "bash", "--install"]).0, 0);
    let script = user.directory.path().join(".local/share/bash-completion/completions/ironctl");
    let (code, out, _) = user.run(&["uninstall", "--dry-run"]);
    assert_eq!(code, 0);
    for path in [&home, &user.unit().display().to_string(), &script.display().to_string()] {
        assert!(out.contains(path.as_str()), "{path}: {out}");
    }
    for words in [&["uninstall"][..], &["uninstall", "--confirm", "/srv/other"]] {
        assert_eq!(user.run(words).0, 2, "{words:?}");
    }
    assert!(user.unit().exists() && script.exists(), "nothing was removed");
    let (code, out, err) = user.run(&["uninstall", "--confirm", &home]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(!user.unit().exists() && !script.exists());
    assert!(user.calls().contains(&"systemctl disable --now ironclaw.service".to_owned()));
    let asked = user.programs.asked();
    let removes: Vec<&str> = asked.lines().filter(|line| line.ends_with("--remove")).collect();
    assert_eq!(removes, [format!("ironclaw-host uninstall --home {home} --json --remove")]);
}

#[test]
fn uninstall_of_another_home_leaves_service_and_completions() {
    let user = User::new();
    assert_eq!(user.run(&["service", "install"]).0, 0);
    assert_eq!(user.run(&["completions", "fish", "--install"]).0, 0);
    let other = user.directory.path().join("other").display().to_string();
    user.list(&other);
    let (code, out, _) = user.run(&["--home", &other, "uninstall", "--confirm", &other, "--json"]);
    let report = json_of(&out);
    assert_eq!((code, &report["removed"]), (0, &json!(true)));
    assert_eq!(report["remove"].as_array().map(Vec::len), Some(1), "{report}");
    assert!(user.unit().exists() && user.directory.path().join(".config/fish/completions/ironctl.fish").exists());
}
