//! Tests of `ironctl doctor --audit`: each finding appears in a home that has its cause, and is gone once its commands were run.
//!
//! They use the real programs, with a clock that the test shifts.

use super::skills::SkillFixture;
use crate::e2e::mcp;
use crate::support::client::Raw;
use crate::support::hooks::{Hook, Receiver};
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::mcp_server::HttpServer;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const DAY_MS: i64 = 86_400_000;

/// Returns the findings above the level `ok`. The exit code says if one is high.
fn open_findings(host: &TestHost) -> Vec<Value> {
    let answer = host.ctl(&["--json", "doctor", "--audit"]);
    let report = answer.json();
    let all = report["findings"].as_array().expect("a list");
    let has_high = all.iter().any(|finding| finding["level"] == "high");
    assert_eq!((answer.code == 1, &report["ok"]), (has_high, &json!(!has_high)), "{}", answer.stderr);
    all.iter().filter(|finding| finding["level"] != "ok").cloned().collect()
}

fn kind(finding: &Value) -> String {
    finding["finding"].as_str().expect("a word").to_owned()
}

fn kinds(findings: &[Value]) -> BTreeSet<String> {
    findings.iter().map(kind).collect()
}

/// An operator who types the commands of findings.
struct Operator<'a> {
    host: &'a TestHost,
    directory: &'a Path,
    /// The settings of each table of `policy.toml`.
    policy: BTreeMap<String, BTreeSet<String>>,
}

impl Operator<'_> {
    /// Runs the commands of a finding, after the edit of a file.
    fn mend(&mut self, finding: &Value) {
        if let (Some(file), Some(lines)) = (finding["edit"]["file"].as_str(), finding["edit"]["lines"].as_str()) {
            self.edit(file, lines);
        }
        for words in finding["commands"].as_array().expect("a list") {
            let words: Vec<String> = serde_json::from_value(words.clone()).expect("words");
            self.run(&words.iter().map(|word| self.replaced(word)).collect::<Vec<_>>());
        }
    }

    /// Replaces the words that are for the operator.
    fn replaced(&self, word: &str) -> String {
        let path = |name: &str| self.directory.join(name).display().to_string();
        match word {
            "FILE" => path("backup"),
            "NAME" => "Zoe".to_owned(),
            "CHANNEL" => "desk".to_owned(),
            "CHANNEL:ID" => "desk:olga".to_owned(),
            word if word.ends_with(".new") => path(word),
            word => word.to_owned(),
        }
    }

    fn run(&self, words: &[String]) {
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        let made = self.directory.join("backup");
        if words.starts_with(&["backup", "create"]) && made.exists() {
            words.push("--force");
        }
        match words[..] {
            ["secret", "rotate", ..] => drop(self.host.ctl_given("another value", &words).ok()),
            _ => {
                // A person at a terminal answers a question instead.
                let with_yes = [&words[..], &["--yes"]].concat();
                let answer = self.host.ctl(&with_yes);
                if answer.code == 2 { drop(self.host.ctl(&words).ok()) } else { drop(answer.ok()) }
            }
        }
    }

    fn edit(&mut self, file: &str, lines: &str) {
        let (table, setting) = lines.split_once('\n').expect("a table and a setting");
        if file == "policy.toml" {
            let name = setting.split(' ').next().expect("a name").to_owned();
            let settings = self.policy.entry(table.to_owned()).or_default();
            settings.retain(|held| !held.starts_with(&name));
            settings.insert(setting.to_owned());
            let text: String = self
                .policy
                .iter()
                .map(|(table, settings)| {
                    format!("{table}\n{}\n", settings.iter().cloned().collect::<Vec<_>>().join("\n"))
                })
                .collect();
            std::fs::write(self.host.home.join(file), text).expect("written");
            return;
        }
        let path = self.host.home.join(file);
        let text = std::fs::read_to_string(&path).expect("the settings");
        let heads = self.directory.join("heads");
        std::fs::create_dir_all(&heads).expect("a directory");
        let lines = lines.replace("/ANOTHER/DISK", heads.to_str().expect("UTF-8"));
        std::fs::write(path, format!("{text}\n{lines}\n")).expect("written");
    }
}

/// Gives the agent a right of each kind, and the host people and secrets.
fn fill(fixture: &SkillFixture, writable: &Path) {
    let host = &fixture.host;
    let yes = |words: &[&str]| drop(host.ctl(&[words, &["--yes"]].concat()).ok());
    for skill in ["weather", "tides", "stars"] {
        fixture.publish(skill, "1.0.0", "", "Read it.");
        fixture.add(skill).ok();
    }
    yes(&["agent", "set", "a", "--add-tool", "run_command", "--add-tool", "http_fetch"]);
    yes(&["agent", "grant-dir", "a", writable.to_str().expect("UTF-8"), "--write"]);
    let own = writable.with_file_name("notes");
    yes(&["agent", "grant-dir", "a", own.to_str().expect("UTF-8"), "--mine"]);
    host.ctl_given("a key", &["secret", "set", "key"]).ok();
    host.ctl_given("another", &["secret", "set", "spare"]).ok();
    yes(&["egress", "grant", "a", "idle.example", "--path", "/notes", "--secret", "key"]);
    yes(&["agent", "set", "a", "--mode", "dangerous_warn"]);
    host.ctl(&["person", "add", "Bob", "--role", "admin"]).ok();
    host.add_linked_person("Ana", "desk:ana");
    let out = fixture.directory.path().join("old.token");
    host.ctl(&["token", "add", "--person", "Ana", "--expires", "900d", "--out", out.to_str().expect("UTF-8")]).ok();
    host.ctl(&["backup", "create", fixture.directory.path().join("first").to_str().expect("UTF-8")]).ok();
}

/// Gives the agent the rights that are young when the audit looks.
fn fill_later(fixture: &SkillFixture) {
    let host = &fixture.host;
    let yes = |words: &[&str]| drop(host.ctl(&[words, &["--yes"]].concat()).ok());
    for (name, more) in [
        ("tunnel.example", &["--commands", "tunnel"][..]),
        ("git.example", &["--commands", "git", "--push", "--path", "/o/r"]),
        ("post.example", &["--method", "POST", "--path", "/notes"]),
        ("wide.example", &["--path", "/docs/{page}/{part}"]),
        ("npm.example", &["--commands", "npm"]),
    ] {
        yes(&[&["egress", "grant", "a", name], more].concat());
    }
    yes(&["agent", "connect", "a", "desk", "--from", "all", "--unknown", "public", "--sharing", "shared"]);
    yes(&["destination", "add", "a", "ana", "--channel", "desk", "--to", "ana"]);
    let call = ["--field", "method=POST", "--field", "url=https://post.example/notes"];
    yes(&[&["allowance", "add", "a", "http_fetch"], &call[..], &["--count", "3", "--until", "7d"]].concat());
    host.ctl(&["token", "add", "--person", "Ana", "--name", "laptop"]).ok();
    yes(&["schedule", "add", "a", "hello", "--every", "1w", "--may", "exec"]);
    fixture.publish("weather", "1.1.0", "", "Read it again.");
    host.ctl(&["skill", "revoke", "stars@1.0.0"]).ok();
}

/// The kinds of findings that this test mends.
const ALL: [&str; 33] = [
    "allowance_open",
    "approves_own",
    "backup_missing",
    "backup_old",
    "backup_unverified",
    "ceiling_missing",
    "commands_enabled",
    "commands_reach_host",
    "deciders_without_place",
    "destination_held",
    "directory_own",
    "directory_writable",
    "heads_not_kept",
    "host_unused",
    "host_wide",
    "host_writable",
    "members_decide",
    "mode_lowered",
    "owner_alone",
    "person_without_place",
    "push_granted",
    "schedule_unasked",
    "secret_old",
    "secret_unused",
    "server_unused",
    "skill_outdated",
    "skill_untrusted",
    "skill_unused",
    "strangers_heard",
    "token_unused",
    "token_without_expiry",
    "tools_unused",
    "tunnel_open",
];

#[test]
fn each_finding_is_gone_once_its_commands_were_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let writable: PathBuf = directory.path().join("papers");
    std::fs::create_dir(&writable).expect("a directory");
    std::fs::create_dir(writable.with_file_name("notes")).expect("a directory");
    std::fs::set_permissions(&writable, PermissionsExt::from_mode(0o777)).expect("permissions");
    let allowed = directory.path().canonicalize().expect("a path").display().to_string();
    let host = TestHost::with_clock()
        .configured(&format!("[webhook]\nlisten = \"127.0.0.1:0\"\n[mounts]\nallow = [{allowed:?}]\n"));
    let mut fixture = SkillFixture::on(host);
    let fresh = kinds(&open_findings(&fixture.host));
    let expected = ["backup_missing", "ceiling_missing", "deciders_without_place", "heads_not_kept", "owner_alone"];
    assert_eq!(fresh, expected.map(str::to_owned).into(), "of a new home with one agent");

    let receiver = Receiver::accepting();
    let _hook = Hook::add(&fixture.host, "desk", &receiver, &[]);
    let server = HttpServer::start(&[]);
    mcp::ready(&fixture.host, "tests", &["--url", &server.url], None);
    fill(&fixture, &writable);
    let policy = "[call.exec]\nroles = [\"owner\", \"member\"]\n";
    std::fs::write(fixture.host.home.join("policy.toml"), policy).expect("written");
    fixture.host.ctl(&["config", "reload"]).ok();
    let young = kinds(&open_findings(&fixture.host));
    let unused = |kind: &String| kind.ends_with("_unused") && kind != "secret_unused";
    assert_eq!(young.into_iter().find(unused), None, "a young right is not unused");

    fixture.host.shift_clock(200 * DAY_MS);
    fill_later(&fixture);
    let mut mended: BTreeSet<String> = ["backup_missing".to_owned()].into();
    let mut operator = Operator {
        host: &fixture.host,
        directory: directory.path(),
        policy: [("[call.exec]".to_owned(), ["roles = [\"owner\", \"member\"]".to_owned()].into())].into(),
    };
    let mut before = open_findings(&fixture.host);
    // First those that the commands of others end too. The policy last: it can ask for another person than the one who types.
    let rank = |finding: &&Value| match kind(finding).as_str() {
        "allowance_open" | "tools_unused" => 0,
        _ if finding["edit"]["file"] == "policy.toml" => 2,
        _ => 1,
    };
    let next = |findings: &[Value]| findings.iter().min_by_key(rank).cloned();
    while let Some(finding) = next(&before) {
        operator.mend(&finding);
        let after = open_findings(&fixture.host);
        assert!(!after.contains(&finding), "its commands change nothing: {finding}");
        mended.insert(kind(&finding));
        before = after;
        if kind(&finding) == "tools_unused" {
            // A right that is young is not unused; it still has a finding of its own.
            fixture.host.ctl(&["agent", "set", "a", "--add-tool", "run_command", "--yes"]).ok();
            before = open_findings(&fixture.host);
        }
        assert!(mended.len() <= ALL.len() + 2, "{mended:?}");
    }
    let missed: Vec<&str> = ALL.into_iter().filter(|kind| !mended.contains(*kind)).collect();
    assert_eq!(missed, Vec::<&str>::new(), "findings that did not appear; {mended:?} did");
    assert_eq!(fixture.host.entries("backup.verified").len(), 1);
}

#[test]
fn only_an_owner_reads_the_audit_and_uses_count() {
    let mut host = TestHost::with_clock().started_with("a");
    let raw = Raw::add_person(&host, "Adam", &["--role", "admin"]);
    assert_eq!(raw.get("/v1/config/audit").0, 403);
    host.ctl(&["agent", "set", "a", "--add-tool", "run_command", "--yes"]).ok();
    host.shift_clock(31 * DAY_MS);
    let unused = || {
        let all = kinds(&open_findings(&host));
        all.into_iter().filter(|kind| kind.ends_with("_unused")).collect::<Vec<_>>()
    };
    assert_eq!(unused(), ["token_unused", "tools_unused"]);
    assert_eq!(raw.get("/v1/whoami").0, 200);
    host.say("a", "run true");
    wait_for("the note about the token", || unused().is_empty());
}
