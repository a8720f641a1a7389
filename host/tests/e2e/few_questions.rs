//! Tests of the jobs of an ordinary day, with the number of questions that each takes.
//!
//! The calls go through the real daemon and sandbox. The model of the test makes the calls of its job, whatever it reads. See `one_yes` and
//! `own_sources` for the rules behind the numbers.

use super::git_push::Forge;
use super::mcp::ready;
use super::requests::{approve, delivered, inbox, reject, request, waiting};
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::listed_mcp::{Listed, ListedServers};
use crate::support::model_server::{Act, Server};
use crate::support::site::{LOOPBACK_WHILE_AWAY, Site};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The calls of one output.
pub(crate) type Output = Vec<(String, Value)>;

/// The rules of a server of mails: the receiver is a control field.
const MAIL_RULES: &str = r#"
[[tool]]
name = "send"
class = "send"
reach = "outside"
effect = "sends a mail to {to}"
arguments.to = { rule = "floor", type = "email", outward = true }
arguments.body = { rule = "free", outward = true }
"#;

/// The address on a page of the web alone.
const STRANGER: &str = "eve@example.org";

/// A model that makes the outputs of a job in their order, and then answers. Its server has one page.
struct Worker {
    outputs: Arc<Mutex<VecDeque<Output>>>,
    server: Server,
}

impl Worker {
    /// Starts it with this page at `/contact`, as the model of agent `a`.
    fn hired(host: &TestHost, page: &str) -> Self {
        let outputs = Arc::<Mutex<VecDeque<Output>>>::default();
        let left = Arc::clone(&outputs);
        let server = Server::with_pages(vec![("/contact", json!(page))], move |_| {
            match left.lock().expect("a list").pop_front() {
                Some(calls) => Act::Call(String::new(), calls),
                None => Act::Say("done".to_owned()),
            }
        });
        host.add_model(&server.url());
        host.ctl(&["agent", "set", "a", "--model", "m", "--yes"]).ok();
        Self { outputs, server }
    }

    /// Sets the outputs of the next job.
    fn set(&self, outputs: Vec<Output>) {
        *self.outputs.lock().expect("a list") = outputs.into();
    }
}

pub(crate) fn call(tool: &str, arguments: Value) -> (String, Value) {
    (tool.to_owned(), arguments)
}

pub(crate) fn post(url: &str, body: &str) -> (String, Value) {
    let headers = json!({ "content-type": "text/plain" });
    call("http_fetch", json!({ "method": "POST", "url": url, "headers": headers, "body": body }))
}

/// Returns the number of questions so far.
pub(crate) fn asked(host: &TestHost) -> usize {
    host.entries("call.asked").len()
}

/// A day of an agent with a site and a server of mails, whose person is away: a question has no answer, and its call does not run.
pub(crate) struct Day {
    pub(crate) host: TestHost,
    pub(crate) raw: Raw,
    pub(crate) site: Site,
    worker: Worker,
    directories: tempfile::TempDir,
    _servers: ListedServers,
}

impl Day {
    pub(crate) fn begin() -> Self {
        let directories = tempfile::tempdir().expect("a temporary directory");
        let allowed = directories.path().canonicalize().expect("an existing path").display().to_string();
        let settings = format!("{LOOPBACK_WHILE_AWAY}[mounts]\nallow = [{allowed:?}]\n");
        let host = TestHost::own(Build::Plain).configured(&settings).started_with("a");
        let (site, servers) = (Site::start(), ListedServers::start());
        host.change("a", "enabled_tools", &json!({ "add": ["http_fetch", "list_dir"] }));
        let grant =
            json!({ "host": "127.0.0.1", "port": site.port, "methods": ["GET", "POST"], "paths": ["/in", "/page"] });
        host.change("a", "egress", &grant);
        let url = servers.list("mail", Listed::tools(&[("send", &["to", "body"])]));
        ready(&host, "mail", &["--url", &url], Some(MAIL_RULES));
        let worker = Worker::hired(&host, &format!("Write to {STRANGER}."));
        let day = Self { raw: Raw::of(&host), host, site, worker, directories, _servers: servers };
        day.file("notes", "garden.md", "the tulips came up");
        day
    }

    /// Writes a file into a directory that can be granted, and returns the path of the directory.
    pub(crate) fn file(&self, directory: &str, file: &str, text: &str) -> PathBuf {
        let path = self.directories.path().canonicalize().expect("an existing path").join(directory);
        fs::create_dir_all(&path).expect("a directory");
        for opened in [self.directories.path(), &path] {
            fs::set_permissions(opened, PermissionsExt::from_mode(0o755)).expect("permissions");
        }
        fs::write(path.join(file), text).expect("written");
        path
    }

    /// Grants the directory `notes` for reading.
    pub(crate) fn grant_notes(&self, more: &[&str]) {
        let source = self.file("notes", "garden.md", "the tulips came up").display().to_string();
        self.host.ctl(&[&["agent", "grant-dir", "a", &source, "--yes"][..], more].concat()).ok();
    }

    /// Does a job in a conversation of its own. Returns the view of each call.
    pub(crate) fn calls(&self, typed: &str, outputs: Vec<Output>) -> Vec<Value> {
        let thread = format!("t{}", self.host.entries("message.recorded").len());
        self.calls_in(&thread, typed, outputs)
    }

    /// Does a job in this conversation.
    pub(crate) fn calls_in(&self, thread: &str, typed: &str, outputs: Vec<Output>) -> Vec<Value> {
        let calls: usize = outputs.iter().map(Vec::len).sum();
        self.worker.set(outputs);
        let message = self.raw.send_body("a", &json!({ "text": typed, "thread": thread }));
        delivered(&self.raw, &message);
        let made = self.raw.get(&format!("/v1/messages/{message}")).1["calls"].clone();
        let made = made.as_array().unwrap_or_else(|| panic!("no calls: {typed}")).clone();
        assert_eq!(made.len(), calls, "{made:?}");
        made
    }

    /// Does a job, and rejects its questions. Returns the reasons of each, with the arguments that they concern.
    fn questions(&self, typed: &str, outputs: Vec<Output>) -> Vec<Value> {
        let before = asked(&self.host);
        let made = self.calls(typed, outputs);
        let entries = inbox(&self.raw);
        assert!(made.iter().all(|call| call["status"] == "done" || call["status"] == "asked"), "{made:?}");
        assert_eq!(asked(&self.host) - before, entries.len(), "{entries:?}");
        entries.iter().map(|entry| self.rejected(entry)).collect()
    }

    pub(crate) fn rejected(&self, entry: &Value) -> Value {
        assert_eq!(reject(&self.raw, entry, "not now").0, 200);
        reasons(&request(&self.raw, &entry["id"]))
    }

    /// Returns the number of mails that were sent.
    pub(crate) fn mails(&self) -> usize {
        self.host.entries("call.started").iter().filter(|entry| entry["data"]["tool"] == "mail__send").count()
    }
}

/// Returns the reasons of a request, each with its arguments.
fn reasons(entry: &Value) -> Value {
    let reasons = entry["reasons"].as_array().expect("reasons").iter();
    reasons.map(|reason| json!([reason["reason"], reason["arguments"]])).collect()
}

#[test]
fn summary_of_own_notes_is_posted_unasked() {
    let day = Day::begin();
    let to = day.site.url("/in");
    let questions = |typed: &str| {
        let list = call("list_dir", json!({ "path": "/notes" }));
        let read = call("read_file", json!({ "path": "/notes/garden.md" }));
        day.questions(typed, vec![vec![list], vec![read], vec![post(&to, "The tulips came up.")]])
    };
    let untyped = "Read my notes in /notes and post the summary to my site";
    let typed = format!("Read my notes in /notes and post the summary to {to}");
    let none = Vec::<Value>::new();
    // Without the declaration the notes are text of others, which could have chosen an address that the person did not type.
    day.grant_notes(&[]);
    let leaving = ["body", "headers", "method", "url"];
    assert_eq!(questions(untyped), [json!([["call_origin", []], ["call_outward", leaving]])]);
    assert_eq!(day.site.lines().len(), 0);
    assert_eq!(questions(&typed), none, "the person typed the address");
    day.grant_notes(&["--mine"]);
    assert_eq!(questions(&typed), none);
    assert_eq!(questions(untyped), none, "the grant of the site has the address");
    assert_eq!(day.site.sent("The tulips came up."), 3);
    // Words that do not ask to send, and the declaration that does.
    let silent = format!("Read my notes in /notes; the summary is for {to}");
    assert_eq!(questions(&silent), [json!([["call_scope", []]])]);
    assert_eq!(questions(&format!("/allow send -- {silent}")), none);
    assert_eq!(questions(&format!("/allow +send -- {silent}")), none);
    assert_eq!(day.site.sent("The tulips came up."), 5);
}

#[test]
fn page_is_filed_and_a_text_is_posted_unasked() {
    let day = Day::begin();
    let (page, to) = (day.site.url("/page"), day.site.url("/in"));
    let typed = format!("Fetch {page}, write it into page.md, and post the result to {to}");
    let outputs = vec![
        vec![call("http_fetch", json!({ "url": page }))],
        vec![call("write_file", json!({ "path": "page.md", "content": "The page says tulip." }))],
        vec![post(&to, "The page is filed. It says tulip.")],
    ];
    assert_eq!(day.questions(&typed, outputs), Vec::<Value>::new());
    assert_eq!(day.site.lines(), ["GET /page HTTP/1.1", "POST /in HTTP/1.1"]);
}

#[test]
fn coding_job_asks_about_its_push_alone() {
    let forge = Forge::on(TestHost::own(Build::Plain), &[]);
    let (raw, worker) = (Raw::of(&forge.host), Worker::hired(&forge.host, ""));
    let before = asked(&forge.host);
    let commit = "cd w && git add leaf.txt && git -c user.name=Ada -c user.email=ada@example.org commit -qam leaf";
    worker.set(vec![
        vec![
            call("write_file", json!({ "path": "w/leaf.txt", "content": "green" })),
            call("write_file", json!({ "path": "w/tulip.txt", "content": "yellow" })),
        ],
        vec![call("run_command", json!({ "command": "grep -q green w/leaf.txt" }))],
        vec![call("run_command", json!({ "command": commit }))],
        vec![call("git_push", json!({ "directory": "w", "url": forge.url(), "branch": "main" }))],
    ]);
    let message = raw.send("a", &format!("Add a leaf, test it, and push the branch main to {}", forge.url()));
    delivered(&raw, &message);
    let entry = waiting(&raw);
    assert_eq!((asked(&forge.host) - before, &entry["subject"]), (1, &json!("git_push")), "{entry}");
    // The push asks whatever the message says. The output of the commands is text of others.
    let codes = json!([["call_scope", []], ["call_origin", []], ["call_outward", ["commit", "commits"]]]);
    assert_eq!(reasons(&entry), codes, "{entry}");
    let made = raw.get(&format!("/v1/messages/{message}")).1["calls"].clone();
    let statuses: Vec<&Value> = made.as_array().expect("calls").iter().map(|call| &call["status"]).collect();
    assert_eq!(statuses, ["done", "done", "done", "done", "asked"], "{made}");
    assert_eq!(approve(&raw, &entry).0, 200);
    wait_for("the push", || forge.subjects() == ["leaf", "first"]);
    assert_eq!(asked(&forge.host) - before, 1);
}

/// Returns the calls of five mails with one text, and their receivers as a person types them.
pub(crate) fn five_mails() -> (Output, String) {
    let people = ["ann", "bob", "cleo", "dan", "eli"].map(|person| format!("{person}@example.org"));
    let mail = |to: &String| call("mail__send", json!({ "to": to, "body": "Lunch at noon." }));
    (people.iter().map(mail).collect(), people.join(", "))
}

#[test]
fn five_mails_to_typed_addresses_take_one_decision() {
    let day = Day::begin();
    let (mails, people) = five_mails();
    let before = asked(&day.host);
    day.calls(&format!("Mail {people} that lunch is at noon"), vec![mails]);
    let entries = inbox(&day.raw);
    // Each address is typed, and the message asks to send. But which of the five a mail means is not clear: five requests, one decision.
    assert!(entries.iter().all(|entry| reasons(entry) == json!([["call_input", ["to"]]])), "{entries:?}");
    assert_eq!(asked(&day.host) - before, 5);
    let path = format!("/v1/waiting/{}", entries[0]["id"].as_str().expect("an id"));
    let page = day.raw.get(&format!("{path}/together")).1;
    assert_eq!(page["calls"].as_array().map(Vec::len), Some(5), "{page}");
    let yes = json!({ "approve_together": page["shown_digest"] });
    assert_eq!(day.raw.ask("POST", &format!("{path}/decision"), &yes.to_string()).0, 200);
    wait_for("the mails", || day.mails() == 5);
    assert_eq!((inbox(&day.raw), day.host.entries("request.shown_together").len()), (Vec::new(), 1));
}

#[test]
fn mail_to_an_address_of_a_page_asks_once() {
    let day = Day::begin();
    let page = format!("{}/contact", day.worker.server.url());
    let port: u16 = day.worker.server.url().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let grant = json!({ "host": "127.0.0.1", "port": port, "methods": ["GET"], "paths": ["/contact"] });
    day.host.change("a", "egress", &grant);
    let outputs = vec![
        vec![call("http_fetch", json!({ "url": page }))],
        vec![call("mail__send", json!({ "to": STRANGER, "body": "Lunch at noon." }))],
    ];
    let made = day.calls(&format!("Fetch {page} and mail the contact that lunch is at noon"), outputs);
    assert_eq!((&made[0]["status"], &made[1]["status"]), (&json!("done"), &json!("asked")), "{made:?}");
    assert_eq!(asked(&day.host), 1);
    let entry = waiting(&day.raw);
    // The body is a reason of its own: no person typed it, and the page is text of others.
    assert_eq!(reasons(&entry), json!([["call_input", ["to"]], ["call_outward", ["body"]]]), "{entry}");
    let shown = entry["shown"].as_str().expect("a page");
    let marked = format!("  to: \"{STRANGER}\" ⟦the model wrote it⟧");
    assert!(shown.lines().any(|line| line == marked), "{shown}");
    assert!(!shown.contains("the person typed it"), "{shown}");
    assert_eq!(approve(&day.raw, &entry).0, 200);
    wait_for("the mail", || day.mails() == 1);
    assert_eq!(asked(&day.host), 1);
}
