//! Answers of MCP servers whose text a person calls theirs.

use super::*;
use crate::e2e::mcp::{ready, show};
use crate::support::listed_mcp::{Listed, ListedServers};

/// The manifests of the tools of the server `notes`.
const NOTES: &str = r#"
[[tool]]
name = "list"
class = "read"
reach = "outside"
effect = "lists notes"

[[tool]]
name = "find"
class = "read"
reach = "outside"
effect = "finds notes"
arguments.query = { rule = "free" }

[[tool]]
name = "add"
class = "write"
reach = "outside"
effect = "adds a note"
arguments.text = { rule = "content" }
"#;

const PATH: &str = "/notes/*/text";

/// The words after which the agent lists the notes.
const ALL: &str = "notes /all";

fn served(notes: &Notes) -> ListedServers {
    let servers = ListedServers::start();
    let url = servers.list("notes", Listed::tools(&[("list", &[]), ("find", &["query"]), ("add", &["text"])]));
    ready(&notes.host, "notes", &["--url", &url], Some(NOTES));
    for tool in ["list", "find", "add"] {
        servers.answer_alone(tool, json!({ "notes": [{ "text": "the tulips came up" }] }));
    }
    servers
}

fn set(notes: &Notes, tool: &str, parts: &[&str]) -> Answer {
    notes.host.ctl(&[&["--json", "mcp", "set", "notes", tool, "--yes"][..], parts].concat())
}

fn add_note(notes: &Notes, words: &str) {
    let said = notes.host.ctl(&["--json", "chat", "a", "--thread", "add", "--allow", "+write", words]).json();
    assert_eq!(said["calls"][0]["status"], "done", "{said}");
}

#[test]
fn only_text_at_a_path_of_a_reading_tool_is_own() {
    let notes = Notes::open();
    let servers = served(&notes);
    assert_eq!(set(&notes, "add", &["--mine", PATH]).error()["code"], "mcp_manifest", "it writes");
    assert_eq!(set(&notes, "list", &["--mine", "notes"]).error()["code"], "mcp_manifest", "no pointer");
    assert!(!notes.is_unasked(ALL), "no person declared it");
    set(&notes, "list", &["--mine", PATH]).ok();
    assert!(notes.is_unasked(ALL));
    for answer in [
        json!({ "notes": [{ "text": "the tulips came up", "from": "eve" }] }),
        json!({ "notes": [{ "text": "the tulips came up" }], "tell eve": true }),
        json!({ "notes": "tell eve" }),
        json!("tell eve"),
    ] {
        servers.answer_alone("list", answer.clone());
        assert!(!notes.is_unasked(ALL), "{answer}");
    }
    servers.answer("list", json!({ "notes": [{ "text": "the tulips came up" }] }));
    assert!(!notes.is_unasked(ALL), "its text form has other words");
    assert!(!notes.is_unasked("find /tulips"), "another tool");
    set(&notes, "list", &["--mine", ""]).ok();
    servers.answer_alone("list", json!("the tulips came up"));
    assert!(notes.is_unasked(ALL), "the whole answer");
    notes.host.restart();
    assert!(notes.is_unasked(ALL), "after a restart");
    let bob = Raw::add_person(&notes.host, "Bob", &[]);
    notes.host.ctl(&["person", "role", "Bob", "member", "--agent", "a"]);
    let id = bob.send("a", &format!("/allow +send -- POST to {} after {ALL}", notes.site.port));
    let calls = || bob.get(&format!("/v1/messages/{id}")).1["calls"].clone();
    wait_for("the call of Bob", || calls()[1]["status"].is_string());
    assert_eq!((&calls()[1]["status"], &calls()[1]["code"]), (&json!("asked"), &json!("call_origin")));
    set(&notes, "list", &["--not-mine"]).ok();
    assert!(!notes.is_unasked(ALL), "the person took it back");
    notes.host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn server_to_which_an_agent_wrote_has_no_own_text() {
    let notes = Notes::open();
    let _servers = served(&notes);
    for tool in ["list", "find"] {
        set(&notes, tool, &["--mine", PATH]).ok();
    }
    assert!(notes.is_unasked("find /tulips"));
    assert!(notes.is_unasked(ALL), "a search wrote nothing");
    let mine = || {
        let shown = show(&notes.host, "notes");
        let list = shown["tools"].as_array().and_then(|tools| tools.iter().find(|tool| tool["name"] == "list"));
        list.expect("a tool")["mine"].clone()
    };
    let found = || notes.host.ctl(&["--json", "doctor", "--audit"]).stdout.contains("answers_own");
    assert_eq!((mine(), found()), (json!({ "person": "owner" }), true));
    add_note(&notes, "note buy bulbs");
    assert!(!notes.is_unasked(ALL));
    assert!(mine()["lost"].as_str().is_some_and(|why| why.contains("add.text")), "{}", mine());
    assert!(!found(), "it has no effect");
    assert!(!notes.is_unasked("find /tulips"));
    notes.host.restart();
    set(&notes, "list", &["--not-mine"]).ok();
    set(&notes, "list", &["--mine", PATH]).ok();
    assert!(!notes.is_unasked(ALL), "what it wrote is still there");
}

#[test]
fn page_warns_and_a_proposal_never_has_it() {
    let notes = Notes::open();
    let _servers = served(&notes);
    let shown = show(&notes.host, "notes");
    assert!(!shown["proposed"].as_str().expect("manifests").contains("mine"), "{shown}");
    let manifest =
        NOTES.replace("effect = \"lists notes\"\n", "effect = \"lists notes\"\nmine = [\"/notes/*/text\"]\n");
    let payload = json!({ "server": "notes", "digest": shown["digest"], "manifest": manifest }).to_string();
    let what = ["change", "submit", "--kind", "mcp_confirm", "--payload", &payload, "--reason", "it is time"];
    let change = notes.host.ctl(&[&["--json"], &what[..]].concat()).ok().json();
    let id = change["id"].as_str().expect("an id");
    let entry = notes.host.ctl(&["--json", "inbox", "show", id]).ok().json();
    let page = entry["shown"].as_str().unwrap_or_default();
    assert!(page.contains("YOUR OWN text") && page.contains("STEER") && page.contains("looser [1]"), "{page}");
    assert!(!notes.is_unasked(ALL), "no person approved it yet");
    notes.host.ctl(&["approve", id]).ok();
    assert!(notes.is_unasked(ALL));
    let shown = show(&notes.host, "notes");
    let list = shown["tools"].as_array().and_then(|tools| tools.iter().find(|tool| tool["name"] == "list"));
    assert!(list.is_some_and(|tool| tool["loosened"].to_string().contains("OWN text")), "{shown}");
    let last = notes.host.entries("mcp.confirmed").pop().expect("an entry");
    assert_eq!(last["data"]["mine"], "list", "{last}");
}
