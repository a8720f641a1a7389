//! Tests of summaries, notes, transcripts and their bounds, over full contexts, sleep and restarts.
//!
//! They use the real programs with the scripted model. See `security::erase` for erased content.

use crate::chaos::kill::{answered, retry};
use crate::support::client::Client;
use crate::support::host_fixture::{Build, TestHost, wait_for};
use serde_json::Value;

/// A context for only a few messages.
const SMALL_CONTEXT: &str = "[turn]\ncontext_bytes_max = 4096\n";

fn labels(item: &Value) -> Vec<&str> {
    item["labels"].as_array().expect("labels").iter().map(|label| label.as_str().expect("a word")).collect()
}

/// Returns the exported conversation of the only session.
pub(super) fn exported(host: &TestHost) -> Vec<Value> {
    let session = host.session()["id"].as_str().expect("an id").to_owned();
    let text = host.ctl(&["session", "export", &session]).ok().stdout;
    text.lines().skip(1).map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}
fn talk_until_summarised(host: &TestHost) {
    for round in 0..20 {
        if !host.entries("summary.sealed").is_empty() {
            return;
        }
        host.say("a", &format!("echo {round} {}", "lorem ipsum ".repeat(60)));
    }
    panic!("no summary after twenty long messages");
}

#[test]
fn summary_is_not_taken_for_user_text() {
    let host = TestHost::new().configured(SMALL_CONTEXT).started_with("a");
    host.say("a", "my name is Ada");
    assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.");
    talk_until_summarised(&host);

    for restarted in [false, true] {
        if restarted {
            host.kill_host();
            host.up();
        }
        let said = host.say("a", "what does the summary say?");
        assert!(said.contains("the person: my name is Ada"), "{said}");
        // The next context has the same text in a summary, without the request and the message.
        let said = host.say("a", "what is my name?");
        assert!(said.starts_with("You have not told me your name"), "after a restart: {restarted}: {said}");
    }
    let items = exported(&host);
    let summary = items.iter().find(|item| item["kind"] == "summary").expect("a summary");
    assert_eq!(labels(summary), ["LlmDerived"], "{summary}");
    assert_eq!(summary["spans"][0]["author"], "model", "{summary}");
    assert_eq!(summary["covers"][0], 2, "{summary}");
    assert!(items.iter().any(|item| item["text"] == "my name is Ada"), "the summarised items stay in the record");
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn summary_inherits_the_external_label() {
    let host = TestHost::new().configured(SMALL_CONTEXT).started_with("a");
    host.say("a", "write notes.txt: buy milk");
    host.say("a", "read notes.txt");
    talk_until_summarised(&host);
    let items = exported(&host);
    let summary = items.iter().find(|item| item["kind"] == "summary").expect("a summary");
    assert_eq!(labels(summary), ["External", "LlmDerived"], "{summary}");
    // A later output has the label too, although its context does not contain the file.
    host.say("a", "keep the summary in mind");
    let notes = host.ctl(&["--json", "memory", "list", "a"]).ok().json();
    assert_eq!(labels(&notes[0]), ["External", "LlmDerived"], "{notes}");
}

#[test]
fn note_keeps_its_author_and_labels_over_a_restart() {
    let host = TestHost::new().started_with("a");
    host.agent("b");
    assert!(host.say("a", "keep the boat leaves at nine").contains("kept as mem_"));
    host.say("a", "write notes.txt: x");
    host.say("a", "read notes.txt");
    host.say("a", "keep the ferry is blue");
    host.ctl(&["memory", "add", "a", "The ferry is owned by Bo."]).ok();
    let before = host.ctl(&["--json", "memory", "list", "a"]).ok().json();
    let seen: Vec<_> =
        before.as_array().expect("notes").iter().map(|note| (note["author"].as_str(), labels(note))).collect();
    assert!(seen[0].0.is_some_and(|author| author.starts_with("person per_")), "{before}");
    assert_eq!(seen[0].1, ["UserSurfaceInput"], "{before}");
    assert_eq!(seen[1], (Some("model"), vec!["External", "LlmDerived"]), "this note follows a read file: {before}");
    assert_eq!(seen[2], (Some("model"), vec!["LlmDerived"]), "{before}");

    host.kill_host();
    host.up();
    assert_eq!(host.ctl(&["--json", "memory", "list", "a"]).ok().json(), before);
    let said = host.say("a", "recall FERRY blue");
    let found: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    let texts: Vec<_> = found["notes"].as_array().expect("notes").iter().map(|note| note["text"].clone()).collect();
    assert_eq!(
        texts,
        ["the ferry is blue", "The ferry is owned by Bo."],
        "the note with the most matches is first: {said}"
    );
    assert_eq!(labels(&found["notes"][0]), ["External", "LlmDerived"], "{said}");
    // The result of `recall` is external content, and a note passes its label on to an output.
    let items = exported(&host);
    let result = items.iter().rfind(|item| item["tool"] == "recall").expect("a result");
    assert_eq!(labels(result), ["External", "LlmDerived"], "{result}");
    assert_eq!(
        host.ctl(&["--json", "memory", "search", "a", "nine"]).ok().json()[0]["text"],
        "the boat leaves at nine"
    );
}

#[test]
fn agent_finds_no_note_of_another_agent_or_a_removed_one() {
    let host = TestHost::new().started_with("a");
    host.agent("b");
    host.say("a", "keep the vault is green");
    assert!(host.say("b", "recall vault").contains("no note has any of these words"));
    // The operators of the full-text query language have no effect.
    for query in ["\" OR text:*", "vault* NEAR(", "-text : ^ {", "' ; DROP TABLE memories"] {
        let said = host.say("b", &format!("recall {query}"));
        assert!(said.contains("no note has any of these words"), "{query}: {said}");
    }
    let note = host.ctl(&["--json", "memory", "list", "a"]).ok().json()[0]["id"].as_str().expect("an id").to_owned();
    host.ctl(&["memory", "remove", "b", &note]).refused("has no note");
    host.ctl(&["memory", "remove", "a", &note]).ok();
    assert!(host.say("a", "recall vault").contains("no note has any of these words"));
    assert_eq!(host.entries("memory.forgotten").len(), 1);
    host.ctl(&["memory", "add", "a", " "]).refused("1 to 4096 bytes");
    host.ctl(&["memory", "list", "unknown"]).refused("no agent");
    host.agent("c");
    host.say("c", "keep the cellar is dry");
    host.ctl(&["agent", "remove", "c", "--yes"]).ok();
    let left =
        crate::support::record::count(&crate::support::record::open(&host.home), "SELECT count(*) FROM memories");
    assert_eq!(left, 0, "the notes of a removed agent are erased");
}

#[test]
fn note_goes_with_its_last_conversation_unless_personal() {
    let host = TestHost::new().started_with("a");
    host.say("a", "keep the boat leaves at nine");
    host.say("a", "keep the inn is full");
    host.say("a", "keep the key is under the mat");
    host.ctl(&["chat", "a", "--thread", "two", "keep the inn is full"]).ok();
    host.ctl(&["memory", "add", "a", "the key is under the mat"]).ok();
    let status = host.status();
    let sessions = status["sessions"].as_array().expect("a list");
    let first = sessions.iter().find(|session| !session["origin"].as_str().unwrap_or_default().ends_with("two"));
    let first = first.expect("the first session")["id"].as_str().expect("an id").to_owned();
    host.ctl(&["session", "remove", &first, "--yes"]).ok();
    let left = host.ctl(&["--json", "memory", "list", "a"]).ok().json();
    let left: Vec<_> = left.as_array().expect("notes").iter().map(|note| note["text"].clone()).collect();
    assert_eq!(left, ["the key is under the mat", "the inn is full"]);
}

#[test]
fn conversation_continues_after_its_named_items_are_dropped() {
    let host = TestHost::new();
    // The bound is smaller than one request, so each turn drops items that the awake sandbox still names.
    host.configure("[items]\nsession_items_max = 4\n");
    host.up();
    host.agent("a");
    for round in 0..6 {
        let said = host.say("a", &format!("write n.txt: {round}"));
        assert!(said.ends_with("I wrote n.txt."), "{said}");
    }
}

#[test]
fn recorded_effect_is_not_repeated_after_a_crash() {
    let mut host =
        TestHost::with(crate::support::jail_fixture::HostUser::Ordinary, Build::Failpoints, None).started_with("a");
    host.down();
    host.set_env("IRONCLAW_FAILPOINT", Some("call_reported"));
    host.up();
    let died = host.ctl(&["chat", "a", "append log.txt: once"]);
    assert_ne!(died.code, 0, "the host dies between the result and the answer");
    wait_for("the host to be gone", || host.pid().is_none());
    host.set_env("IRONCLAW_FAILPOINT", None);
    host.up();
    wait_for("the answer", || !host.entries("delivery.received").is_empty());
    assert_eq!(host.say("a", "read log.txt"), "log.txt:\nonce");
}

#[test]
fn messages_of_a_crashed_turn_are_answered_separately() {
    let mut host = TestHost::own(Build::Failpoints).started_with("a");
    let asker = Client::of(&host);
    host.ctl(&["panic"]).ok();
    let ids = ["echo one", "echo two"].map(|text| {
        let taken = asker.send("a", text, text).expect("a recorded message");
        taken["message_id"].as_str().expect("an id").to_owned()
    });
    host.down();
    host.set_env("IRONCLAW_FAILPOINT", Some("output_sealed"));
    host.up();
    // The host dies during the turn of both messages, possibly before it answers this request.
    host.ctl(&["resume"]);
    wait_for("the host to be gone", || host.pid().is_none());
    host.set_env("IRONCLAW_FAILPOINT", None);
    host.up();
    let replies = ids.map(|id| retry("answer a message", || answered(&asker, &id))["reply"].clone());
    assert!(replies[0].as_str().is_some_and(|reply| reply.ends_with("one")), "{replies:?}");
    assert!(replies[1].as_str().is_some_and(|reply| reply.ends_with("two")), "{replies:?}");
}

#[test]
fn conversation_stays_within_its_bound_and_continues() {
    let host = TestHost::new().configured("[items]\nsession_items_max = 12\n").started_with("a");
    for round in 0..10 {
        assert!(host.say("a", &format!("echo {round}")).ends_with(&round.to_string()));
    }
    let items = exported(&host);
    assert!(items.len() <= 12, "{} items", items.len());
    assert_eq!(items.last().expect("the answer")["text"], "9");
    assert!(!host.entries("items.dropped").is_empty());
    host.kill_host();
    host.up();
    assert_eq!(host.say("a", "echo still here"), "still here");
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn reply_stays_until_it_is_read_if_nothing_else_may_stay() {
    let host = TestHost::new().configured("[items]\nsession_items_max = 0\n").started_with("a");
    for word in ["one", "two"] {
        assert!(host.say("a", &format!("echo {word}")).ends_with(word));
    }
}

#[test]
fn tighter_bounds_apply_from_the_next_start_on() {
    let host = TestHost::new().started_with("a");
    for round in 0..5 {
        host.say("a", &format!("echo {round}"));
    }
    assert!(exported(&host).len() >= 10);
    host.restart_with("config.toml", "[items]\nsession_items_max = 4\n");
    // The start itself enforces the bounds, without a new message.
    wait_for("the oldest to be dropped", || exported(&host).len() <= 4);
    assert_eq!(host.entries("items.dropped").len(), 1);
}

#[test]
fn transcript_names_authors_and_outcomes() {
    let host = TestHost::new().started_with("a");
    host.say("a", "write notes.txt: \u{1b}[31mred");
    let session = host.session()["id"].as_str().expect("an id").to_owned();
    let shown = host.ctl(&["--json", "session", "show", &session]).ok().json();
    assert_eq!(shown["id"], session.as_str(), "{shown}");
    let kinds: Vec<_> = shown["transcript"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| item["kind"].as_str().unwrap_or("?"))
        .collect();
    assert_eq!(kinds, ["message", "output", "result", "output"], "{shown}");
    let [message, call, result, answer] = [0, 1, 2, 3].map(|at| &shown["transcript"][at]);
    assert!(
        message["spans"][0]["author"].as_str().is_some_and(|author| author.starts_with("person per_")),
        "{message}"
    );
    assert_eq!(labels(message), ["UserSurfaceInput"]);
    assert_eq!(
        (&call["calls"][0]["tool"], &call["calls"][0]["state"]),
        (&"write_file".into(), &"done".into()),
        "{call}"
    );
    assert_eq!(call["receipt"], Value::Null, "text beside calls is not an answer: {call}");
    assert_eq!((labels(result), &result["ok"]), (vec!["External"], &Value::Bool(true)), "{result}");
    assert_eq!(answer["receipt"], "received", "{answer}");

    let plain = host.ctl(&["session", "show", &session]).ok().stdout;
    assert!(!plain.contains('\u{1b}') && plain.contains("\\u{1b}[31mred"), "{plain}");
    let file = host.home.join("talk.md").display().to_string();
    host.ctl(&["session", "export", &session, "--out", &file, "--format", "markdown"]).ok();
    let written = std::fs::read_to_string(&file).expect("written");
    assert!(written.contains("> → write_file") && !written.contains('\u{1b}'), "{written}");
    host.ctl(&["session", "export", &session, "--out", &file]).refused("never overwrites a file");
    host.ctl(&["session", "export", "ses_unknown"]).refused("no session");
}
