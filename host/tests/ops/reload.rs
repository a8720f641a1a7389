//! Tests of `ironctl config reload` and SIGHUP: live settings take effect, others are named, a wrong file changes nothing.
//!
//! They use the real daemon. See `e2e::mounts` for granted directories.

use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Starts a host with an agent, and creates a directory with a file that every user can read.
fn new_host() -> (TestHost, tempfile::TempDir) {
    with_agent(TestHost::new())
}

fn with_agent(host: TestHost) -> (TestHost, tempfile::TempDir) {
    let host = host.started();
    host.ctl(&["agent", "add", "a", "--tool", "read_file"]).ok();
    let data = tempfile::tempdir().expect("a temporary directory");
    fs::set_permissions(data.path(), PermissionsExt::from_mode(0o755)).expect("permissions");
    fs::write(data.path().join("one"), "this is one").expect("written");
    (host, data)
}

fn allow(directory: &Path) -> String {
    let directory = directory.canonicalize().expect("an existing path").display().to_string();
    format!("[mounts]\nallow = [{directory:?}]\n")
}

fn mounts(directory: &Path) -> Value {
    json!([{ "source": directory.canonicalize().expect("an existing path"), "target": "/data" }])
}

fn reload(host: &TestHost) -> Value {
    host.ctl(&["--json", "config", "reload"]).ok().json()
}

#[test]
fn allowed_directory_is_added_and_removed_by_reloads() {
    let (host, data) = new_host();
    host.submit("a", "mounts", mounts(data.path())).refused("mounts_off");
    host.configure(&allow(data.path()));
    host.submit("a", "mounts", mounts(data.path())).refused("mounts_off");
    let reloaded = reload(&host);
    assert_eq!(reloaded["applied"], json!(["mounts.allow"]), "{reloaded}");
    assert_eq!((&reloaded["restart"], &reloaded["policy_changed"]), (&json!([]), &json!(false)), "{reloaded}");
    host.change("a", "mounts", &mounts(data.path()));
    assert!(host.say("a", "read /data/one").contains("this is one"));

    assert_eq!(reload(&host)["applied"], json!([]), "nothing changed");
    host.configure("[session]\nlaunch_attempts_max = 1\nbackoff_ms = 1\n");
    let reloaded = reload(&host);
    let applied = json!(["session.launch_attempts_max", "session.backoff_ms", "mounts.allow"]);
    assert_eq!(reloaded["applied"], applied, "{reloaded}");
    wait_for("the session to end its process", || host.session()["state"] == "asleep");
    host.ctl(&["chat", "a", "read /data/one"]).refused("parked");

    let entries = host.entries("config.reloaded");
    assert_eq!(entries.len(), 3, "{entries:?}");
    for entry in &entries {
        assert!(["by", "config", "policy"].iter().all(|field| entry["data"][field].is_string()), "{entry}");
    }
    assert_eq!(entries[2]["data"]["applied"], applied);
}

#[test]
fn grant_can_extend_the_allowed_directories() {
    let (host, data) = with_agent(TestHost::own(Build::Plain));
    let own = "# my settings\n[mounts]\n# none yet\nallow = []\n\n[log] # quiet\n";
    host.configure(own);
    let directory = data.path().canonicalize().expect("an existing path").display().to_string();
    let grant =
        |more: &[&str]| host.ctl(&[&["agent", "grant-dir", "a", &directory, "--as", "/mine", "--yes"], more].concat());
    let refused = grant(&[]).refused("no directory of this host may be mounted");
    assert!(refused.stderr.contains("--allow"), "{}", refused.stderr);
    // Each step has its page, and what no agent could get is not allowed.
    host.ctl(&["agent", "grant-dir", "a", &host.home.display().to_string(), "--allow", "--yes"])
        .refused("the host itself");
    let owner = Raw::of(&host);
    for (body, code) in [
        (json!({ "directory": directory }), "page_unseen"),
        (json!({ "directory": directory, "shown": "00".repeat(32) }), "shown_differs"),
        (json!({ "directory": "/etc" }), "mount_system"),
    ] {
        assert_eq!(owner.ask("POST", "/v1/config/mounts", &body.to_string()).1["error"]["code"], code, "{body}");
    }
    let file = || fs::read_to_string(host.home.join("config.toml")).expect("there");
    assert_eq!(file(), own, "nothing changed");
    let granted = grant(&["--allow"]).ok();
    assert!(granted.stdout.contains("No agent gets a directory by this."), "{}", granted.stdout);
    assert_eq!(file(), own.replace("allow = []", &format!("allow = [{directory:?}]")));
    assert!(host.say("a", "read /mine/one").contains("this is one"));
    let entries = host.entries("config.reloaded");
    assert_eq!((entries.len(), &entries[0]["data"]["applied"]), (1, &json!(["mounts.allow"])), "{entries:?}");
    // Nothing is left to allow.
    grant(&["--allow"]).ok();
    assert_eq!(host.entries("config.reloaded").len(), 1);
}

#[test]
fn directory_made_after_a_reload_may_be_granted() {
    let (host, data) = new_host();
    let later = data.path().canonicalize().expect("an existing path").join("later");
    host.configure(&format!("[mounts]\nallow = [{:?}]\n", later.display().to_string()));
    reload(&host);
    let granted = |at: &Path| host.ctl(&["agent", "grant-dir", "a", &at.display().to_string(), "--yes"]);
    granted(&later).refused("it does not exist");
    fs::create_dir_all(later.join("sub")).expect("made");
    fs::write(later.join("sub/two"), "this is two").expect("written");
    granted(&later.join("sub")).ok();
    assert!(host.say("a", "read /sub/two").contains("this is two"));
}

#[test]
fn wrong_file_changes_nothing_and_is_named_with_its_line() {
    let (host, data) = new_host();
    host.configure(&allow(data.path()));
    reload(&host);
    let policy = host.home.join("policy.toml");
    let good = fs::read_to_string(&policy).expect("there");
    for (config, policy_text, words) in [
        ("[quota]\nworkspace_files = 0\n", good.as_str(), "config.toml: line 2: quota.workspace_files"),
        ("[qouta]\n", good.as_str(), "did you mean `quota`?"),
        ("[log]\nlevel = \"loud\"\n", good.as_str(), "line 2"),
        ("", "[default]\napprovals = 0\n", "policy.toml: line 2: default.approvals"),
        ("", "[default]\napprovals = 5\n", "5 people"),
        ("", "[call.send]\nexpires_hours = 48\n", "policy.toml: line 2: call.send.expires_hours must be 1 to 24"),
        ("", "\n[call.delete]\napprovals = 1\n", "line 2: call.delete: there is no class"),
        ("", "[tool.rm]\napprovals = 1\n", "line 1: tool.rm: there is no tool"),
        ("", "[call.exec]\napprovals = 4\n", "no call can be approved under [call.exec]"),
    ] {
        host.configure(config);
        fs::write(&policy, policy_text).expect("written");
        let refused = host.ctl(&["--json", "config", "reload"]).refused(words);
        assert!(refused.stderr.contains("config_refused"), "{}", refused.stderr);
    }
    fs::write(&policy, good).expect("written");
    assert_eq!(host.entries("config.reloaded").len(), 1);
    host.change("a", "mounts", &mounts(data.path()));
    assert!(host.say("a", "read /data/one").contains("this is one"), "the directory is still allowed");
}

#[test]
fn setting_that_needs_a_restart_is_named_until_then() {
    let (host, _data) = new_host();
    host.configure("[session]\nawake_max = 10\n[log]\nlevel = \"debug\"\n");
    let reloaded = reload(&host);
    assert_eq!((&reloaded["applied"], &reloaded["restart"]), (&json!(["log.level"]), &json!(["session.awake_max"])));
    let again = reload(&host);
    assert_eq!((&again["applied"], &again["restart"]), (&json!([]), &json!(["session.awake_max"])));
    let shown = host.ctl(&["config", "reload"]).ok().stdout;
    assert!(shown.contains("needs a restart: session.awake_max"), "{shown}");
    host.restart();
    assert_eq!(reload(&host)["restart"], json!([]));
}

#[test]
fn reloaded_quota_and_ceiling_count_at_once() {
    let (host, _data) = new_host();
    // With a price, the words of the script count as tokens.
    host.ctl(&["model", "add", "s", "--kind", "scripted", "--price-in", "1", "--price-out", "1", "--no-test"]).ok();
    host.ctl(&["agent", "add", "b", "--model", "s"]).ok();
    let is_notice = |text: &str| host.chat("b", text)["notice"].clone();
    assert_eq!(is_notice("write one.txt: x"), false);
    for (config, setting) in [
        ("[quota]\nworkspace_files = 1\n", "quota.workspace_files"),
        ("[budget]\ntokens_per_day = 1\n", "budget.tokens_per_day"),
    ] {
        host.configure(config);
        assert_eq!(reload(&host)["applied"], json!([setting]));
        // A workspace is measured at the end of a turn.
        assert!((0..2).any(|_| is_notice("write two.txt: x") == true), "{setting}");
        host.configure("");
        assert_eq!(reload(&host)["applied"], json!([setting]));
        assert_eq!(is_notice("write two.txt: x"), false, "{setting}");
    }
}

#[test]
fn reloaded_policy_counts_for_the_next_change() {
    let (host, _data) = new_host();
    host.ctl(&["person", "add", "Bob", "--role", "admin"]).ok();
    fs::write(host.home.join("policy.toml"), "[kind.persona]\napprovals = 2\n").expect("written");
    assert_eq!(reload(&host)["policy_changed"], true);
    let id = host.submit("a", "persona", json!({ "instructions": "Be brief." })).ok().json()["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let voted = host.ctl(&["--json", "approve", &id]).ok().json();
    assert_eq!(voted["status"], "pending", "{voted}");
    // The one approval is enough again after the next reload only if it is given again.
    fs::write(host.home.join("policy.toml"), "").expect("written");
    let reloaded = reload(&host);
    assert_eq!(reloaded["policy_changed"], true, "{reloaded}");
    let voted = host.ctl(&["--json", "approve", &id]).ok().json();
    assert_eq!(voted["status"], "done", "{voted}");
}

#[test]
fn sighup_reloads_the_settings() {
    let (host, data) = new_host();
    host.configure(&allow(data.path()));
    let pid = Pid::from_raw(host.pid().expect("it runs"));
    kill(pid, Signal::SIGHUP).expect("it is ours");
    wait_for("the reload", || !host.entries("config.reloaded").is_empty());
    let entry = host.entries("config.reloaded").remove(0);
    assert!(entry["data"].get("by").is_none(), "{entry}");
    host.change("a", "mounts", &mounts(data.path()));
    host.configure("[log]\nlevel = \"loud\"\n");
    kill(pid, Signal::SIGHUP).expect("it is ours");
    let log = || fs::read_to_string(host.home.join("logs/host.log")).expect("the log");
    wait_for("the refusal in the log", || log().contains("were not reloaded"));
    assert_eq!(host.pid(), Some(pid.as_raw()), "it still runs");
}

#[test]
fn only_an_owner_reloads() {
    let (host, _data) = new_host();
    host.ctl(&["person", "add", "Bob", "--role", "admin"]).ok();
    let token = host.ctl(&["--json", "token", "add", "--person", "Bob"]).ok().json();
    let mut host = host;
    host.set_env("IRONCLAW_TOKEN", token["text"].as_str());
    host.ctl(&["--json", "config", "reload"]).refused("role_too_low");
}
