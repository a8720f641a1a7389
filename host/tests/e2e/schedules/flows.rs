//! Tests of the ways out of a run: the text of read-only directories goes to one address of the creator, and no other text does.
//!
//! The calls go through the real sandbox, and the messages to a receiver on loopback. See `contexts` for what a run sees.

use super::{add, history, newest, refused_calls, show};
use crate::support::client::Raw;
use crate::support::hooks::{Hook, Receiver};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::site::{LOOPBACK, Site};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Rules by which the agent reads, or fetches and reads, and then sends.
const RULES: &str = r#"
[[rule]]
when = '^job (?P<path>\S+) (?P<to>\S+)$'
calls = [{ tool = "read_file", arguments = { path = "$path" } }]
then = [[{ tool = "send_message", arguments = { to = "$to", text = "{result}" } }]]
reply = "{result}"
reply_error = "{error}"

[[rule]]
when = '^file (?P<path>\S+) as (?P<text>.+) to (?P<to>\S+)$'
calls = [{ tool = "read_file", arguments = { path = "$path" } }]
then = [
  [{ tool = "write_file", arguments = { path = "report.md", content = "{result}" } }],
  [{ tool = "send_file", arguments = { path = "$text", to = "$to" } }],
]
reply = "{result}"
reply_error = "{error}"

[[rule]]
when = '^page (?P<url>\S+) (?P<path>\S+) (?P<to>\S+)$'
calls = [{ tool = "http_fetch", arguments = { url = "$url" } }]
then = [
  [{ tool = "read_file", arguments = { path = "$path" } }],
  [{ tool = "send_message", arguments = { to = "$to", text = "{result}" } }],
]
reply = "{result}"
reply_error = "{error}"

[[rule]]
when = '^ask (?P<to>\S+) (?P<path>\S+)$'
calls = [{ tool = "read_file", arguments = { path = "$path" } }]
then = [[{ tool = "http_fetch", arguments = { method = "POST", url = "$to", headers = { content-type = "text/plain" }, body = "{result}" } }]]
reply = "{result}"
reply_error = "{error}"

[[rule]]
when = '^POST to (?P<to>\S+) after (?P<path>\S+)$'
calls = [{ tool = "read_file", arguments = { path = "$path" } }]
then = [[{ tool = "http_fetch", arguments = { method = "POST", url = "$to" } }]]
reply = "{result}"
reply_error = "{error}"

[[rule]]
when = ''
reply = "done"
"#;

const FLOW: [&str; 6] = ["--every", "1w", "--send-to", "me", "--from", "/notes"];

/// A host whose agent reads `/notes`, writes `/drop`, and may send to the owner and to Bob.
struct Job {
    host: TestHost,
    receiver: Receiver,
    site: Site,
    beside: tempfile::TempDir,
}

impl Job {
    fn open() -> Self {
        let beside = tempfile::tempdir().expect("a temporary directory");
        let host = TestHost::own(Build::Plain);
        let script = host.home.join("script.toml").display().to_string();
        fs::write(&script, RULES).expect("written");
        let allowed = beside.path().canonicalize().expect("an existing path").display().to_string();
        let host = host.configured(&format!(
            "[webhook]\nlisten = \"127.0.0.1:0\"\n{LOOPBACK}[mounts]\nallow = [{allowed:?}]\n[model]\nscript = {script:?}\n"
        ));
        let host = host.started_with("a");
        let job = Self { host, receiver: Receiver::accepting(), site: Site::start(), beside };
        drop(Hook::add(&job.host, "shop", &job.receiver, &[]));
        job.host.add_linked_person("Bob", "shop:bob");
        for (name, address) in [("me", "ann"), ("bob", "bob")] {
            let to = ["destination", "add", "a", name, "--channel", "shop", "--to", address, "--yes"];
            job.host.ctl(&to).ok();
        }
        let (port, methods, paths) = (job.site.port, ["GET", "POST"], ["/page", "/in"]);
        let grant = json!({ "host": "127.0.0.1", "port": port, "methods": methods, "paths": paths });
        job.host.change("a", "enabled_tools", &json!({ "add": ["http_fetch"] }));
        job.host.change("a", "egress", &grant);
        job.directory("notes", "a.md", "the tulips came up");
        job.directory("drop", "x", "tell eve");
        job.grant("a", &[("notes", true), ("drop", false)]);
        job
    }

    fn directory(&self, name: &str, file: &str, text: &str) -> PathBuf {
        let path = self.beside.path().join(name);
        fs::create_dir_all(&path).expect("a directory");
        for opened in [self.beside.path(), &path] {
            fs::set_permissions(opened, PermissionsExt::from_mode(0o777)).expect("permissions");
        }
        fs::write(path.join(file), text).expect("written");
        path
    }

    /// Grants an agent exactly these directories, each with its name as its place, read-only or not.
    fn grant(&self, agent: &str, mounts: &[(&str, bool)]) {
        let source = |name: &str| self.beside.path().canonicalize().expect("an existing path").join(name);
        let mount = |name: &str, read_only| {
            let target = format!("/{}", Path::new(name).file_name().expect("a name").to_string_lossy());
            json!({ "source": source(name), "target": target, "read_only": read_only })
        };
        let granted = mounts.iter().map(|&(name, read_only)| mount(name, read_only)).collect();
        self.host.change(agent, "mounts", &granted);
    }

    fn sent(&self) -> Vec<Value> {
        let all = self.receiver.replies().into_iter().map(|got| got.body);
        all.filter(|body| body["type"] == "message").collect()
    }

    fn incidents(&self) -> usize {
        let all = self.host.entries("notification.unplaced");
        all.iter().filter(|entry| entry["data"]["about"] == "schedule_incident").count()
    }

    /// Returns the code of a refused `schedule add`.
    fn refused(&self, more: &[&str]) -> Value {
        let arguments = [&["schedule", "add", "a", "job /notes/a.md me", "--every", "1w", "--yes"][..], more].concat();
        self.host.ctl_error(&arguments)["code"].clone()
    }
}

#[test]
fn flow_that_its_creator_cannot_have_is_refused() {
    let job = Job::open();
    for (more, code) in [
        (&["--send-to", "eve", "--from", "/notes"][..], "schedule_flow"),
        (&["--send-to", "bob", "--from", "/notes"], "schedule_flow"),
        (&["--send-to", "me", "--from", "/drop"], "schedule_flow"),
        (&["--send-to", "me", "--from", "/workspace"], "schedule_flow"),
        (&["--send-to", "me", "--from", "/notes", "--from", "/etc"], "schedule_flow"),
        (&["--name", "two words"], "schedule_name"),
        (&["--name", "sch_x"], "schedule_name"),
        (&["--name", ""], "payload_malformed"),
    ] {
        assert_eq!(job.refused(more), code, "{more:?}");
    }
    for more in [&["--from", "/notes"][..], &["--send-to", "me", "--continue"]] {
        let arguments = [&["schedule", "add", "a", "hello", "--every", "1w", "--yes"][..], more].concat();
        assert_eq!(job.host.ctl(&arguments).code, 2, "{more:?}");
    }
    let flow = json!([{ "to": "me", "from": [{ "directory": "/notes" }] }]);
    let continued = json!({ "prompt": "hello", "every": "1w", "flows": flow, "context": "continue" });
    let refused = job.host.submit("a", "schedule", &continued);
    assert_eq!(refused.error()["code"], "schedule_flow");
    // A part of the directory is writable by another agent.
    job.host.agent("b");
    job.directory("notes/inbox", "y", "tell eve");
    job.grant("b", &[("notes/inbox", false)]);
    assert_eq!(job.refused(&FLOW[2..]), "schedule_flow");
}

#[test]
fn monday_job_runs_five_times_without_a_question() {
    let job = Job::open();
    let host = &job.host;
    host.say("a", "hello");
    let id = add(host, "job /notes/a.md me", &[&FLOW[..], &["--name", "monday"]].concat());
    let shown = show(host, "monday");
    assert_eq!((&shown["id"], &shown["name"]), (&json!(id), &json!("monday")));
    let flow = &shown["flows"][0];
    let fields = ["tool", "to", "recipient", "lost"].map(|field| flow[field].clone());
    assert_eq!(fields, [json!("send_message"), json!("me"), json!("shop:ann"), Value::Null], "{flow}");
    for count in 1..=5 {
        host.ctl(&["schedule", "run", "monday"]).ok();
        let done = newest(host, &id, "done");
        assert_eq!((refused_calls(host, &done).len(), &done["reason"]), (0, &Value::Null), "{done}");
        let sent = job.sent();
        assert_eq!((sent.len(), &sent[count - 1]["text"]), (count, &json!("the tulips came up")));
        assert_eq!(sent[count - 1]["sender"], "ann");
    }
    for (to, status) in [("me", "permitted"), ("bob", "refused")] {
        let arguments = json!({ "to": to, "text": "x" }).to_string();
        let words = ["--json", "explain", "a", "send_message", &arguments, "--schedule", "monday"];
        let explained = host.ctl(&words).ok().json();
        let situations = explained["situations"].as_array().expect("a list");
        let run = situations.iter().find(|situation| situation["request"] == "schedule").expect("a run");
        assert_eq!(run["status"], status, "{to}: {run}");
    }
    assert_eq!((job.incidents(), host.entries("request.asked").len()), (0, 0));
    assert!(host.entries("call.would_have_blocked").is_empty());
    // All runs have one session beside the chat of the person.
    let sessions = host.ctl(&["--json", "session", "list"]).ok().json();
    assert_eq!(sessions.as_array().map(Vec::len), Some(2), "{sessions}");
    let threads = host.ctl(&["--json", "schedule", "history", "monday"]).ok().json();
    assert_eq!(threads.as_array().map(Vec::len), Some(5));
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn run_sends_a_file_that_it_wrote_and_no_other_one() {
    let job = Job::open();
    let host = &job.host;
    assert_eq!(job.refused(&["--send-file-to", "me", "--from", "/notes"]), "schedule_flow", "it has no such tool");
    host.change("a", "enabled_tools", &json!({ "add": ["send_file"] }));
    let tool = json!([{ "to": "me", "from": [{ "directory": "/notes" }], "tool": "http_fetch" }]);
    let refused = host.submit("a", "schedule", json!({ "prompt": "hello", "every": "1w", "flows": tool }));
    assert_eq!(refused.error()["code"], "schedule_flow");
    assert_eq!(job.refused(&["--send-file-to", "me", "--from", "/notes"]), "schedule_flow", "it may write no file");
    let file = ["--every", "1w", "--send-file-to", "me", "--from", "/notes", "--may", "write_file"];
    let id = add(host, "file /notes/a.md as report.md to me", &file);
    assert_eq!(show(host, &id)["flows"][0]["tool"], "send_file");
    host.ctl(&["schedule", "run", &id]).ok();
    let done = newest(host, &id, "done");
    assert_eq!(refused_calls(host, &done).len(), 0, "{done}");
    let sent = job.sent();
    assert_eq!((sent.len(), &sent[0]["files"][0]["name"]), (1, &json!("report.md")), "{sent:?}");
    // The same run with a file that a person put there.
    for session in fs::read_dir(host.home.join("sessions")).expect("sessions").flatten() {
        let path = session.path().join("workspace/other.md");
        fs::write(&path, "tell eve").expect("written");
        let owner = fs::metadata(session.path().join("workspace")).expect("a workspace");
        std::os::unix::fs::chown(&path, Some(owner.uid()), Some(owner.gid())).expect("root or the owner");
    }
    host.ctl(&["schedule", "set", &id, "--prompt", "file /notes/a.md as other.md to me", "--yes"]).ok();
    host.ctl(&["schedule", "run", &id]).ok();
    let ended = ended(host, &id);
    assert_eq!(refused_calls(host, &ended), ["call_origin"], "{ended}");
    assert_eq!(job.sent().len(), 1);
}

/// Waits for the end of the newest run, and returns it.
fn ended(host: &TestHost, id: &str) -> Value {
    let mut found = Value::Null;
    wait_for("the end of a run", || {
        found = history(host, id).pop().unwrap_or_default();
        found["state"] != "started" && found["state"] != "scheduled"
    });
    found
}

#[test]
fn text_of_any_other_source_does_not_leave_a_run() {
    let job = Job::open();
    let host = &job.host;
    symlink("../drop/x", job.beside.path().join("notes/link")).expect("a link");
    let (page, post) = (job.site.url("/page"), job.site.url("/in"));
    for (prompt, code) in [
        ("job /notes/a.md bob".to_owned(), "call_schedule"),
        ("job /drop/x me".to_owned(), "call_origin"),
        (format!("page {page} /notes/a.md me"), "call_origin"),
        (format!("ask {post} /notes/a.md"), "call_schedule"),
    ] {
        let id = add(host, &prompt, &FLOW);
        host.ctl(&["schedule", "run", &id]).ok();
        let ended = ended(host, &id);
        assert_eq!(
            (&ended["state"], refused_calls(host, &ended)),
            (&json!("failed"), vec![code.to_owned()]),
            "{prompt}: {ended}"
        );
    }
    // A link is not followed, so there is nothing to send.
    let linked = add(host, "job /notes/link me", &FLOW);
    host.ctl(&["schedule", "run", &linked]).ok();
    assert_eq!(newest(host, &linked, "done")["reason"], "call_failed");
    // The same list without a flow, and a flow without the directory.
    for more in [&["--may", "send"][..], &["--send-to", "me"]] {
        let id = add(host, "job /notes/a.md me", &[&["--every", "1w"], more].concat());
        host.ctl(&["schedule", "run", &id]).ok();
        assert_eq!(refused_calls(host, &newest(host, &id, "failed")), ["call_origin"], "{more:?}");
    }
    assert!(job.sent().is_empty());
    assert_eq!(job.site.sent("the tulips came up"), 0);
}

#[test]
fn prompt_is_compared_with_its_list_and_its_words_are_typed() {
    let job = Job::open();
    let host = &job.host;
    let raw = Raw::of(host);
    let page = |prompt: &str, more: Value| {
        let mut payload = json!({ "prompt": prompt, "every": "1w" });
        payload.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let asked = host.submit("a", "schedule", &payload).ok().json();
        let change = host.ctl(&["--json", "inbox", "show", asked["id"].as_str().expect("an id")]).ok().json();
        change["shown"].as_str().unwrap_or_else(|| panic!("{change}")).to_owned()
    };
    let bare = page("Read /notes and send them to Bob with git_push.", json!({}));
    assert!(bare.contains("--send-to") && bare.contains("\"git_push\""), "{bare}");
    let warned = |prompt: &str| page(prompt, json!({})).contains("seems to ask for calls");
    for (prompt, warns) in [
        ("List the papers in /notes, and send the list to me.", true),
        ("Send me a summary of /notes", true),
        ("Tell me what changed in /notes", false),
        ("Remind me to water the tulips", false),
        ("Run the tests and tell me what fails", false),
    ] {
        assert_eq!(warned(prompt), warns, "{prompt}");
    }
    host.ctl(&["agent", "set", "a", "--add-tool", "run_command", "--yes"]).ok();
    assert!(warned("Run the tests and tell me what fails"), "the agent runs commands");
    let flow = json!({ "flows": [{ "to": "me", "from": [{ "directory": "/notes" }] }] });
    let sends = page("Read /notes and send them to me.", flow);
    assert!(sends.contains("\"shop:ann\"") && !sends.contains("--send-to"), "{sends}");

    let prompt = format!("POST to {} after /notes/a.md", job.site.url("/in"));
    let id = add(host, &prompt, &["--every", "1w", "--may", "http_fetch"]);
    host.ctl(&["schedule", "run", &id]).ok();
    let failed = newest(host, &id, "failed");
    assert_eq!(refused_calls(host, &failed), ["call_origin"]);
    let message = failed["message"].as_str().expect("a message");
    let calls = raw.get(&format!("/v1/messages/{message}")).1["calls"].clone();
    let call = calls[1]["id"].as_str().unwrap_or_else(|| panic!("{calls}"));
    let why = raw.get(&format!("/v1/calls/{call}/why")).1;
    let outward = why["stages"].as_array().and_then(|all| all.iter().find(|stage| stage["stage"] == "outward"));
    assert_eq!(outward.map(|stage| &stage["answer"]), Some(&json!("pass")), "its person typed both values: {why}");
}

#[test]
fn flow_that_changed_pauses_its_schedule() {
    let job = Job::open();
    let host = &job.host;
    host.agent("b");
    let id = add(host, "job /notes/a.md me", &FLOW);
    let move_to = |address: &str| {
        host.ctl(&["destination", "add", "a", "me", "--channel", "shop", "--to", address, "--yes"]).ok();
    };
    host.ctl(&["person", "link", "owner", "shop:cy", "--yes"]).ok();
    let before = || job.grant("a", &[("notes", true), ("drop", false)]);
    type Act<'a> = Box<dyn Fn() + 'a>;
    let changes: [(&str, Act<'_>, Act<'_>); 5] = [
        ("flow_directory", Box::new(|| job.grant("a", &[("drop", false)])), Box::new(before)),
        ("flow_writable", Box::new(|| job.grant("a", &[("notes", false)])), Box::new(before)),
        ("flow_writable", Box::new(|| job.grant("b", &[("notes", false)])), Box::new(|| job.grant("b", &[]))),
        ("flow_address", Box::new(|| move_to("cy")), Box::new(|| move_to("ann"))),
        (
            "flow_destination",
            Box::new(|| drop(host.ctl(&["destination", "remove", "a", "me", "--yes"]).ok())),
            Box::new(|| move_to("ann")),
        ),
    ];
    let raw = Raw::of(host);
    let remedies =
        ["agent grant-dir a", "agent grant-dir a", "agent revoke-dir b", "--send-to me", "destination list a"];
    for (count, ((reason, change, restore), remedy)) in (1..).zip(changes.iter().zip(remedies)) {
        change();
        assert_eq!(show(host, &id)["flows"][0]["lost"], *reason);
        assert_eq!(host.ctl(&["schedule", "run", &id]).code, 1, "{reason}");
        assert_eq!(newest(host, &id, "skipped")["reason"], *reason);
        let paused = show(host, &id);
        assert_eq!((&paused["state"], &paused["reason"]), (&json!("paused"), &json!(reason)));
        assert_eq!(job.incidents(), count, "{reason}");
        // It does not look healthy, and no command says that it is.
        assert_eq!(host.ctl(&["schedule", "resume", &id]).code, 1, "{reason}");
        assert_eq!(show(host, &id)["state"], "paused", "{reason}");
        assert!(host.ctl(&["status"]).ok().stdout.contains(reason), "{reason}");
        let audit = raw.get("/v1/config/audit").1["findings"].clone();
        let found = audit.as_array().and_then(|all| all.iter().find(|one| one["finding"] == "schedule_paused"));
        let found = found.unwrap_or_else(|| panic!("{reason}: {audit}"));
        assert_eq!((&found["reason"], &found["remedy"]), (&json!(reason), &paused["remedy"]));
        assert!(paused["remedy"].as_str().is_some_and(|words| words.contains(remedy)), "{reason}: {paused}");
        let next = raw.get(&format!("/v1/schedules/{id}/next")).1;
        assert_eq!((&next["refused"], &next["remedy"]), (&json!(reason), &paused["remedy"]));
        restore();
        host.ctl(&["schedule", "resume", &id]).ok();
    }
    host.ctl(&["schedule", "run", &id]).ok();
    newest(host, &id, "done");
    assert_eq!((job.sent().len(), history(host, &id).len()), (1, 6));
}
