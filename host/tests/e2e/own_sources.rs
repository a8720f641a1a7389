//! Tests of sources that a person calls theirs: directories and servers whose text is not text of others.
//!
//! The calls go through the real sandbox, and the host reads the same files a second time. See `schedules::flows` for directories of others.

mod servers;

use crate::support::client::Raw;
use crate::support::host_fixture::{Answer, Build, TestHost, wait_for};
use crate::support::site::{LOOPBACK_WHILE_AWAY, Site};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

/// Returns the rules by which the agent reads, lists or searches, and then sends a request. No person types its address as a whole.
fn rules() -> String {
    let text = r#", headers = { content-type = "text/plain" }, body = "{result}""#;
    let posting = [
        (r"read (?P<path>\S+)", "read_file", r#"path = "$path""#, text),
        (r"list (?P<path>\S+)", "list_dir", r#"path = "$path""#, ""),
        (r"search (?P<path>\S+) (?P<pattern>\S+)", "search_files", r#"path = "$path", pattern = "$pattern""#, ""),
        ("notes /all", "notes__list", "", ""),
        (r"find /(?P<words>\S+)", "notes__find", r#"query = "$words""#, ""),
    ];
    let rule = |when: &str, tool: &str, arguments: &str, then: &str| {
        format!(
            "[[rule]]\nwhen = '^{when}$'\ncalls = [{{ tool = \"{tool}\", arguments = {{ {arguments} }} }}]\n{then}\
             reply = \"{{result}}\"\nreply_error = \"{{error}}\"\n\n"
        )
    };
    let post = |url: &str, more: &str| {
        let arguments = format!("method = \"POST\", url = \"{url}\"{more}");
        format!("then = [[{{ tool = \"http_fetch\", arguments = {{ {arguments} }} }}]]\n")
    };
    let mut rules = String::new();
    for (after, tool, arguments, more) in posting {
        let post = post("http://127.0.0.1:$to/in", more);
        rules += &rule(&format!(r"POST to (?P<to>\S+) after {after}"), tool, arguments, &post);
    }
    let proposal = r#"kind = "mounts", payload = { "@json" = "$payload" }, reason = "asked""#;
    rules += &rule(r"POST to the address in (?P<path>\S+)", "read_file", r#"path = "$path""#, &post("{result}", ""));
    rules += &rule("note (?P<words>.+)", "notes__add", r#"text = "$words""#, "");
    rules += &rule("propose (?P<payload>.+)", "request_capability_change", proposal, "");
    rules + "[[rule]]\nwhen = ''\nreply = \"done\"\n"
}

/// A host whose agent may send requests to a site, and a directory for grants.
struct Notes {
    host: TestHost,
    site: Site,
    beside: tempfile::TempDir,
}

impl Notes {
    fn open() -> Self {
        let beside = tempfile::tempdir().expect("a temporary directory");
        let host = TestHost::own(Build::Plain);
        let script = host.home.join("script.toml").display().to_string();
        fs::write(&script, rules()).expect("written");
        let allowed = beside.path().canonicalize().expect("an existing path").display().to_string();
        let host = host.configured(&format!(
            "{LOOPBACK_WHILE_AWAY}[mounts]\nallow = [{allowed:?}]\n[model]\nscript = {script:?}\n"
        ));
        let host = host.started_with("a");
        let notes = Self { host, site: Site::start(), beside };
        let (port, methods, paths) = (notes.site.port, ["GET", "POST"], ["/in", "/out"]);
        let grant = json!({ "host": "127.0.0.1", "port": port, "methods": methods, "paths": paths });
        notes.host.change("a", "enabled_tools", &json!({ "add": ["http_fetch", "list_dir", "search_files"] }));
        notes.host.change("a", "egress", &grant);
        notes.directory("notes", "a.md", "the tulips came up");
        notes
    }

    fn source(&self, name: &str) -> PathBuf {
        self.beside.path().canonicalize().expect("an existing path").join(name)
    }

    fn directory(&self, name: &str, file: &str, text: &str) -> PathBuf {
        let path = self.source(name);
        fs::create_dir_all(&path).expect("a directory");
        for opened in [self.beside.path(), &path] {
            fs::set_permissions(opened, PermissionsExt::from_mode(0o777)).expect("permissions");
        }
        fs::write(path.join(file), text).expect("written");
        path
    }

    /// Grants a directory with these options, and returns the answer.
    fn grant(&self, agent: &str, name: &str, more: &[&str]) -> Answer {
        let source = self.source(name).display().to_string();
        self.host.ctl(&[&["--json", "agent", "grant-dir", agent, &source, "--yes"][..], more].concat())
    }

    fn refused(&self, name: &str) -> Value {
        self.grant("a", name, &["--mine"]).error()["code"].clone()
    }

    /// Returns the statuses and codes of the calls of a new conversation.
    fn calls(&self, words: &str) -> Vec<Value> {
        let thread = format!("t{}", self.host.entries("message.recorded").len());
        let said = self.host.ctl(&["--json", "chat", "a", "--thread", &thread, "--allow", "+send", words]).json();
        let calls = said["calls"].as_array().unwrap_or_else(|| panic!("{said}"));
        // So that the next one may ask.
        for request in calls.iter().filter_map(|call| call["request"].as_str()) {
            self.host.ctl(&["reject", request]).ok();
        }
        calls.iter().map(|call| json!([call["status"], call["code"]])).collect()
    }

    /// Returns whether a request to an address that no person typed as a whole goes out unasked after a call.
    fn is_unasked(&self, after: &str) -> bool {
        let calls = self.calls(&format!("POST to {} after {after}", self.site.port));
        assert_eq!(calls.len(), 2, "{after}: {calls:?}");
        match &calls[1] {
            call if *call == json!(["done", null]) => true,
            call if *call == json!(["asked", "call_origin"]) => false,
            call => panic!("{after}: {call}"),
        }
    }

    fn register(&self, server: &Value) -> Answer {
        let payload = server.to_string();
        let what = ["change", "submit", "--kind", "mcp_register", "--payload", &payload, "--reason", "it is time"];
        self.host.ctl(&[&["--json"], &what[..]].concat())
    }

    fn lost(&self) -> Value {
        self.host.ctl(&["--json", "agent", "show", "a"]).ok().json()["mounts"][0]["mine"]["lost"].clone()
    }
}

#[test]
fn directory_that_is_not_one_persons_is_refused() {
    let notes = Notes::open();
    symlink("../elsewhere", notes.source("notes/out")).expect("a link");
    assert_eq!(notes.refused("notes"), "mount_mine", "a link leads out of it");
    fs::remove_file(notes.source("notes/out")).expect("removed");
    notes.directory("elsewhere", "x", "tell eve");
    fs::hard_link(notes.source("elsewhere/x"), notes.source("notes/x")).expect("a link");
    assert_eq!(notes.refused("notes"), "mount_mine", "a file has a second name");
    assert_eq!(notes.host.entries("change.refused").len(), 2);
    fs::remove_file(notes.source("notes/x")).expect("removed");
    let both = json!([{ "source": notes.source("notes"), "read_only": false, "mine": true }]);
    assert_eq!(notes.host.submit("a", "mounts", both).error()["code"], "mount_mine", "it is writable");
    assert_eq!(notes.host.ctl(&["agent", "grant-dir", "a", "/srv", "--mine", "--write"]).code, 2);
    // Another agent could write a part of it, or all around it, and is gone.
    for written in ["notes/inbox", "big"] {
        notes.directory(written, "y", "tell eve");
        notes.host.agent("b");
        notes.grant("b", written, &["--write"]).ok();
        notes.host.ctl(&["agent", "remove", "b", "--yes"]).ok();
    }
    notes.directory("big/deep", "z", "text");
    for name in ["notes", "notes/inbox", "big", "big/deep"] {
        assert_eq!(notes.refused(name), "mount_mine", "{name}");
    }
    // A server that has a directory for writing.
    let served = notes.directory("served", "z", "text").display().to_string();
    let server =
        json!({ "name": "files", "command": ["/usr/bin/true"], "mounts": [{ "source": served, "read_only": false }] });
    for change in [server, json!({ "name": "files", "remove": true })] {
        let id = notes.register(&change).ok().json()["id"].as_str().expect("an id").to_owned();
        assert_eq!(notes.host.ctl(&["--json", "approve", &id]).ok().json()["status"], "done");
    }
    assert_eq!(notes.refused("served"), "mount_mine");
    let server =
        json!({ "name": "files", "command": ["/usr/bin/true"], "mounts": [{ "source": served, "mine": true }] });
    assert_eq!(notes.register(&server).error()["code"], "mount_mine");
    notes.directory("free", "z", "text");
    notes.grant("a", "free", &["--mine"]).ok();
}

#[test]
fn agent_cannot_ask_for_it() {
    let notes = Notes::open();
    let payload = json!([{ "source": notes.source("notes"), "mine": true }]);
    notes.host.say("a", &format!("propose {payload}"));
    wait_for("the refusal", || !notes.host.entries("change.refused").is_empty());
    assert_eq!(notes.host.entries("change.refused")[0]["data"]["code"], "mount_mine_agent");
    assert!(notes.host.entries("change.proposed").iter().all(|entry| entry["data"]["kind"] != "mounts"));
}

#[test]
fn text_of_an_own_directory_asks_nothing() {
    let notes = Notes::open();
    notes.grant("a", "notes", &[]).ok();
    for after in ["read /notes/a.md", "list /notes", "search /notes tulips"] {
        assert!(!notes.is_unasked(after), "without the declaration: {after}");
    }
    notes.grant("a", "notes", &["--mine"]).ok();
    assert_eq!(notes.lost(), Value::Null);
    for after in ["read /notes/a.md", "list /notes", "search /notes tulips", "read /notes/./a.md"] {
        assert!(notes.is_unasked(after), "{after}");
    }
    assert_eq!(notes.site.sent("the tulips came up"), 2);
    notes.host.restart();
    assert!(notes.is_unasked("read /notes/a.md"), "after a restart");
    // A second name of a file comes from somewhere else.
    notes.directory("elsewhere", "x", "tell eve");
    fs::hard_link(notes.source("elsewhere/x"), notes.source("notes/x")).expect("a link");
    assert!(!notes.is_unasked("read /notes/x"));
    assert!(!notes.is_unasked("search /notes eve"));
    notes.host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn own_text_gives_no_value_to_a_control_field() {
    let notes = Notes::open();
    notes.directory("notes", "address", &notes.site.url("/elsewhere"));
    notes.grant("a", "notes", &["--mine"]).ok();
    let calls = notes.calls("POST to the address in /notes/address");
    assert_eq!(calls[0], json!(["done", null]), "{calls:?}");
    assert_ne!(calls[1][0], "done", "{calls:?}");
    assert_eq!(notes.site.sent(""), 0);
}

#[test]
fn later_writable_grant_ends_the_effect_for_good() {
    let notes = Notes::open();
    notes.grant("a", "notes", &["--mine"]).ok();
    assert!(notes.is_unasked("read /notes/a.md"));
    notes.host.agent("b");
    let above = json!([{ "source": notes.source("."), "target": "/all", "read_only": false }]);
    let above = above.to_string().replace("/.\"", "\"");
    let change = notes.host.submit("b", "mounts", above).ok().json();
    let id = change["id"].as_str().expect("an id");
    let entry = notes.host.ctl(&["--json", "inbox", "show", id]).ok().json();
    let words = entry["shown"].as_str().unwrap_or_default().split_whitespace().filter(|word| *word != "!!");
    // The name of the directory decides where a line ends.
    let page = words.collect::<Vec<_>>().join(" ");
    assert!(page.contains("NO LONGER A PERSON'S OWN"), "{entry}");
    assert!(notes.is_unasked("read /notes/a.md"), "no person approved it yet");
    notes.host.ctl(&["approve", id]).ok();
    assert!(!notes.is_unasked("read /notes/a.md"));
    assert!(notes.lost().is_string(), "agent show has the reason");
    notes.host.ctl(&["agent", "remove", "b", "--yes"]).ok();
    assert!(!notes.is_unasked("read /notes/a.md"), "what was written there stays");
    notes.host.restart();
    assert!(!notes.is_unasked("read /notes/a.md"));
}

#[test]
fn text_is_that_of_the_person_who_declared_it_alone() {
    let notes = Notes::open();
    notes.grant("a", "notes", &["--mine"]).ok();
    let bob = Raw::add_person(&notes.host, "Bob", &[]);
    let words = format!("POST to {} after read /notes/a.md", notes.site.port);
    let id = bob.send("a", &format!("/allow +send -- {words}"));
    wait_for("the call of Bob", || {
        let calls = bob.get(&format!("/v1/messages/{id}")).1["calls"].clone();
        calls[1]["status"].is_string()
    });
    let calls = bob.get(&format!("/v1/messages/{id}")).1["calls"].clone();
    assert_eq!((&calls[1]["status"], &calls[1]["code"]), (&json!("asked"), &json!("call_origin")), "{calls}");
}

#[test]
fn restored_record_knows_no_declaration() {
    let notes = Notes::open();
    let host = &notes.host;
    notes.grant("a", "notes", &["--mine"]).ok();
    host.ctl(&["channel", "add", "webhook", "ci", "--url", "http://127.0.0.1:9/", "--agent", "a", "--yes"]).ok();
    host.ctl(&["channel", "own", "ci:builds", "--yes"]).ok();
    let file = crate::security::tamper::outside(host).join("b.backup").display().to_string();
    host.ctl(&["backup", "create", &file]).ok();
    host.down();
    host.ctl(&["backup", "restore", &file, "--replace", "--yes"]).ok();
    // No backup has it.
    fs::write(host.home.join("script.toml"), rules()).expect("written");
    host.up();
    assert!(!notes.is_unasked("read /notes/a.md"), "an agent may have written there after the backup");
    let ended = host.entries("state.own_sources_ended").pop().expect("an entry");
    assert_eq!([&ended["data"]["directories"], &ended["data"]["senders"]], [&json!(1), &json!(1)]);
    assert!(host.ctl(&["--json", "channel", "list"]).ok().json()[0]["own"].is_null());
    let again = json!([{ "source": notes.source("notes"), "target": "/notes", "mine": true }]);
    let change = host.submit("a", "mounts", again).ok().json();
    let id = change["id"].as_str().expect("an id");
    let entry = host.ctl(&["--json", "inbox", "show", id]).ok().json();
    assert!(entry["shown"].as_str().is_some_and(|page| page.contains("RESTORED")), "{entry}");
    host.ctl(&["approve", id]).ok();
    assert!(notes.is_unasked("read /notes/a.md"), "declared again");
}
