//! Tests of what a reply rests on: the items of its prompts, the marks of the agent at its claims, and URLs of unknown origin.
//!
//! They use the real programs. No test of this file expects that the host asks or refuses a call because of it. See `memory`.

use crate::e2e::streaming;
use crate::support::client::{Raw, check_refused};
use crate::support::host_fixture::{Build, TestHost};
use crate::support::model_server::{Act, Seen, Server};
use crate::support::record;
use crate::support::site::{LOOPBACK, Site, granted};
use serde_json::{Value, json};

/// Says something, and returns the view of the message with what its reply rests on.
fn said(host: &TestHost, text: &str) -> Value {
    let raw = Raw::of(host);
    let id = raw.send("a", text);
    crate::e2e::requests::delivered(&raw, &id);
    let (status, view) = raw.get(&format!("/v1/messages/{id}?sources=true"));
    assert_eq!(status, 200, "{view}");
    view
}

/// Returns the kinds of the sources of a reply.
fn kinds(view: &Value) -> Vec<&str> {
    let all = view["sources"]["rests_on"].as_array().expect("a list");
    all.iter().map(|source| source["kind"].as_str().expect("a word")).collect()
}

fn results(view: &Value) -> u64 {
    view["sources"]["results"].as_u64().expect("a number")
}

#[test]
fn reply_without_a_result_has_no_grounded_claim() {
    let host = TestHost::own(Build::Plain).started_with("a");
    // The first answer of the script has a line about itself.
    host.say("a", "hello");
    let view = said(&host, "echo It is so [G], and thus [I].");
    assert_eq!((kinds(&view), results(&view)), (vec!["message", "message"], 0), "{view}");
    assert_eq!(view["sources"]["summary"], "rests on no result");
    let source = &view["sources"]["rests_on"][0];
    assert_eq!((&source["labels"], &source["counts"]), (&json!(["UserSurfaceInput"]), &json!(false)));
    assert!(source["authors"][0].as_str().is_some_and(|author| author.starts_with("person per_")), "{source}");
    // The recorded item keeps the agent's words.
    assert_eq!(view["reply"], "It is so [G], and thus [I].");
    assert_eq!(view["shown_as"], "It is so [I], and thus [I].");
    assert_eq!((&view["marks"][0]["written"], &view["marks"][0]["shown"]), (&json!("[G]"), &json!("[I]")));
    assert_eq!((view["marks"][0]["reason"].is_string(), view["marks"][1]["reason"].is_null()), (true, true));
    let session = view["session_id"].as_str().expect("an id");
    let shown = host.ctl(&["session", "show", session]).ok().stdout;
    assert!(shown.contains("It is so [I]") && shown.contains("(rests on no result)"), "{shown}");
    let shown = host.ctl(&["--json", "session", "show", session]).ok().json();
    assert_eq!(shown["replies"][1]["rests_on"][1]["kind"], "message", "{shown}");
    assert_eq!(shown["transcript"][3]["text"], "It is so [G], and thus [I].");
    let why = host.ctl(&["why", view["message_id"].as_str().expect("an id")]).ok().stdout;
    assert!(why.contains("the reply rests on no result"), "{why}");
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn notes_and_own_files_count_for_nothing() {
    let host = TestHost::own(Build::Plain).started_with("a");
    host.say("a", "keep the boat leaves at nine");
    let view = said(&host, "recall boat");
    assert_eq!((kinds(&view), results(&view)), (vec!["message", "note", "message", "note"], 0), "{view}");
    host.say("a", "write notes.txt: The boat leaves at ten.");
    let view = said(&host, "read notes.txt");
    let last = view["sources"]["rests_on"].as_array().and_then(|all| all.last()).expect("a source");
    assert_eq!(
        (&last["kind"], &last["path"], &last["tool"]),
        (&json!("own_file"), &json!("notes.txt"), &json!("read_file"))
    );
    assert_eq!(last["labels"], json!(["External"]), "{last}");
    assert_eq!(results(&view), 0, "{view}");
    // A person put this file into the workspace, and the sandbox alone reports its content.
    std::fs::write(host.session_directory().join("workspace/other.txt"), "Ten.").expect("written");
    let view = said(&host, "read other.txt");
    assert_eq!((kinds(&view).last(), results(&view)), (Some(&"report"), 0), "{view}");
    let view = said(&host, "read missing.txt");
    assert_eq!((kinds(&view).last(), results(&view)), (Some(&"failure"), 0), "{view}");
}

#[test]
fn result_of_the_host_counts_also_after_a_restart() {
    let (site, host) = granted(TestHost::own(Build::Plain), &["GET"], &[]);
    let fetched = said(&host, &format!("fetch {}", site.url("/page")));
    assert_eq!((kinds(&fetched), results(&fetched)), (vec!["message", "result"], 1), "{fetched}");
    assert_eq!(fetched["sources"]["summary"], "rests on 1 result");
    assert_eq!(fetched["sources"]["rests_on"][1]["by"], "tool http_fetch");
    // The URL is the person's.
    assert_eq!((&fetched["unknown_urls"], &fetched["shown_as"]), (&Value::Null, &Value::Null), "{fetched}");
    let later = said(&host, "echo It is so [G].");
    assert_eq!((results(&later), &later["shown_as"]), (1, &Value::Null), "{later}");
    assert_eq!(later["marks"][0]["shown"], "[G]");
    host.kill_host();
    host.up();
    let raw = Raw::of(&host);
    let again = raw.get(&format!("/v1/messages/{}?sources=true", later["message_id"].as_str().expect("an id"))).1;
    assert_eq!(again, later);
    let next = said(&host, "echo And now?");
    assert_eq!((results(&next), kinds(&next)), (1, vec!["message", "result", "message", "message"]), "{next}");
    // The view of a message has the sources on demand alone.
    let bare = raw.get(&format!("/v1/messages/{}", later["message_id"].as_str().expect("an id"))).1;
    assert_eq!(bare["sources"], Value::Null, "{bare}");
}

#[test]
fn summary_counts_for_no_result() {
    let host = TestHost::own(Build::Plain);
    let site = Site::start();
    host.configure(&format!("{LOOPBACK}[turn]\ncontext_bytes_max = 4096\n"));
    host.up();
    host.agent("a");
    host.change("a", "enabled_tools", &json!({ "add": ["http_fetch"] }));
    host.change("a", "egress", &json!({ "host": "127.0.0.1", "port": site.port, "methods": ["GET"], "paths": [] }));
    let fetched = said(&host, &format!("fetch {}", site.url("/page")));
    assert_eq!(results(&fetched), 1, "{fetched}");
    for round in 0..20 {
        if !host.entries("summary.sealed").is_empty() {
            break;
        }
        host.say("a", &format!("echo {round} {}", "lorem ipsum ".repeat(60)));
    }
    let view = said(&host, "echo It is so [G].");
    let all = view["sources"]["rests_on"].as_array().expect("a list");
    let summary = all.iter().find(|source| source["kind"] == "summary").expect("a summary");
    assert_eq!((&summary["covers"][0], results(&view)), (&json!(2), 0), "{view}");
    assert_eq!(view["shown_as"], "It is so [I].");
    // The earlier reply rests on what it did.
    let id = fetched["message_id"].as_str().expect("an id");
    assert_eq!(Raw::of(&host).get(&format!("/v1/messages/{id}?sources=true")).1["sources"], fetched["sources"]);
}

#[test]
fn url_of_unknown_origin_is_shown_as_text() {
    let wanted = [
        ("typed", "https://typed.example/a"),
        ("quoted", "https://quoted.example/a"),
        ("composed", "https://evil.example/?q=secret"),
        ("printed", "https://printed.example/a"),
        ("echoed", "https://echoed.example/a"),
    ];
    let command = "printf 'https:/%s\\n' /printed.example/a; echo https://echoed.example/a";
    let server = Server::start(move |seen: &Seen| match seen.results().is_empty() {
        true => Act::Call(String::new(), vec![("run_command".to_owned(), json!({ "command": command }))]),
        false => Act::Say(wanted.map(|(name, url)| format!("{name}: {url}.")).join("\n")),
    });
    let host = streaming::new_host("", &server, "openai", &[]);
    host.change("a", "enabled_tools", &json!({ "add": ["run_command"] }));
    let raw = Raw::of(&host);
    let text = "/allow exec\nlook at https://typed.example/a, please";
    let id = raw.send_body("a", &json!({ "text": text, "quoted": ["see https://quoted.example/a"] }));
    crate::e2e::requests::delivered(&raw, &id);
    let view = raw.get(&format!("/v1/messages/{id}?sources=true")).1;
    assert_eq!(view["calls"][0]["status"], "done", "{view}");
    assert_eq!(kinds(&view), ["message", "report"], "{view}");
    let unknown = [wanted[1].1, wanted[2].1, wanted[4].1];
    assert_eq!(view["unknown_urls"], json!(unknown), "{view}");
    let shown = view["shown_as"].as_str().expect("text");
    for (name, url) in wanted {
        assert_eq!(shown.contains(url), !unknown.contains(&url), "{name}: {shown}");
        assert!(view["reply"].as_str().is_some_and(|reply| reply.contains(url)), "the record keeps it");
    }
    assert!(shown.contains("⟨https: //evil.example/?q=secret⟩ (unknown address)."), "{shown}");
    let history = raw.get("/v1/agents/a/history").1;
    assert_eq!(history["lines"][1]["shown_as"], view["shown_as"], "{history}");
    let printed = host.ctl(&["session", "show", view["session_id"].as_str().expect("an id")]).ok().stdout;
    assert!(!printed.contains("https://evil") && printed.contains("(unknown address)"), "{printed}");
}

#[test]
fn sources_end_with_their_items_and_their_session() {
    let host = TestHost::own(Build::Plain).configured("[items]\nsession_items_max = 6\n").started_with("a");
    let rows = || record::count(&record::open(&host.home), "SELECT count(*) FROM items WHERE prompt IS NOT NULL");
    let first = said(&host, "hello");
    for round in 0..6 {
        host.say("a", &format!("echo {round}"));
    }
    let (raw, session) = (Raw::of(&host), first["session_id"].as_str().expect("an id").to_owned());
    assert!(rows() > 0 && rows() < 7);
    let replies = raw.get(&format!("/v1/sessions/{session}/replies?last=20")).1;
    let all = replies["replies"].as_array().expect("a list");
    assert!(!all.is_empty() && all.iter().any(|reply| reply["is_whole"] == false), "{replies}");
    host.ctl(&["session", "remove", &session, "--yes"]).ok();
    assert_eq!(rows(), 0, "a removed session has no row");
    check_refused(&raw.get(&format!("/v1/sessions/{session}/replies")), 404, "session_unknown");
}
