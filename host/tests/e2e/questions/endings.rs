//! Tests of the ends of questions without an answer, of reminders, and of restarts between the steps of an answer.
//!
//! See `super` for the answers.

use super::{ask, give_tool, host_of, id_of, refused, status};
use crate::e2e::requests::{answered, waiting};
use crate::e2e::streaming;
use crate::support::client::Raw;
use crate::support::hooks::add_shop;
use crate::support::host_fixture::{Build, TestHost, alive, wait_for};
use crate::support::model_server::{Act, Seen, Server};
use crate::support::{record, terminal};
use serde_json::{Value, json};

/// Returns the exported conversation of the only session.
fn exported(host: &TestHost) -> String {
    let session = host.session()["id"].as_str().expect("an id").to_owned();
    host.ctl(&["session", "export", &session]).ok().stdout
}

#[test]
fn cancelled_question_tells_the_agent() {
    let host = host_of(Build::Plain);
    let raw = Raw::of(&host);
    let first = ask(&raw, "ask me which? red or blue");
    let cancelled = host.ctl(&["--json", "reject", id_of(&first), "--reason", "later"]).ok().json();
    assert_eq!(cancelled["status"], "rejected", "{cancelled}");
    refused(&raw, id_of(&first), &json!({ "option": 1 }), (409, "question_ended"));
    assert_eq!(raw.get("/v1/waiting").1["entries"], json!([]));
    assert!(exported(&host).contains(&format!("Your question {} was rejected", id_of(&first))));
    // A cancellation opens no turn.
    assert_eq!(host.entries("turn.opened").len(), 1);
    let entry = &host.entries("question.cancelled")[0];
    assert_eq!(entry["data"]["question"], first["id"]);
    let why = host.ctl(&["--json", "why", id_of(&first)]).ok().json();
    assert_eq!((&why["decided_by"]["name"], &why["outcome"]), (&json!("owner"), &json!("later")), "{why}");
    assert!(why["details"]["question"]["answer"].is_null() && why["ended_at"].is_string(), "{why}");
    // The person writes again, so an equal call is another question.
    assert_ne!(ask(&raw, "ask me which? red or blue")["id"], first["id"]);
}

#[test]
fn cancelled_turn_cancels_its_question() {
    let server = Server::start(|seen: &Seen| match seen.results().is_empty() {
        true => Act::Call(String::new(), vec![("ask_user_question".to_owned(), json!({ "question": "which?" }))]),
        false => Act::Hang,
    });
    let host = streaming::new_host("", &server, "openai", &[]);
    give_tool(&host);
    let raw = Raw::of(&host);
    assert_eq!(raw.say("a", "hello", None).0, 202);
    wait_for("the question", || raw.get("/v1/waiting").1["entries"][0]["status"] == "pending");
    let id = id_of(&waiting(&raw)).to_owned();
    host.ctl(&["session", "cancel", host.session()["id"].as_str().expect("an id")]).ok();
    assert_eq!(status(&raw, &id), "withdrawn");
    refused(&raw, &id, &json!({ "text": "red" }), (409, "question_ended"));
}

#[test]
fn removed_person_ends_their_question_in_a_shared_conversation() {
    let server = Server::start(|seen: &Seen| match (seen.results().is_empty(), seen.asked().contains("ask")) {
        (true, true) => {
            Act::Call(String::new(), vec![("ask_user_question".to_owned(), json!({ "question": "which?" }))])
        }
        _ => Act::Say("Good.".to_owned()),
    });
    let host = streaming::new_host("[webhook]\nlisten = \"127.0.0.1:0\"\n", &server, "openai", &[]);
    give_tool(&host);
    let (_receiver, hook) = add_shop(&host);
    host.ctl(&["person", "add", "mara"]).ok();
    host.ctl(&["person", "unlink", "owner", "shop:ann"]).ok();
    host.ctl(&["person", "link", "mara", "shop:ann", "--yes"]).ok();
    hook.say("e1", "ask me");
    wait_for("the reply", || host.entries("delivery.received").len() == 1);
    // A conversation counts for the person who began it, and no command gives it to another one.
    host.down();
    let give = "UPDATE sessions SET person_id = (SELECT id FROM people WHERE name = 'owner')";
    record::open_to_change(&host.home).execute_batch(give).expect("changed");
    host.up();
    let raw = Raw::of(&host);
    let found = raw.get("/v1/waiting?type=question").1["entries"].clone();
    let (id, session) = (id_of(&found[0]).to_owned(), host.session()["id"].clone());
    assert_eq!((&found[0]["status"], &found[0]["origin"]["session"]), (&json!("pending"), &session), "{found}");
    host.ctl(&["person", "remove", "mara", "--yes"]).ok();
    assert_eq!((status(&raw, &id).as_str(), &host.session()["id"]), ("withdrawn", &session));
    let entries = host.entries("question.cancelled");
    assert_eq!((entries.len(), &entries[0]["data"]["question"]), (1, &json!(id)), "{entries:?}");
    let why = host.ctl(&["--json", "why", &id]).ok().json();
    assert_eq!((&why["outcome"], &why["decided_by"]), (&json!("the requester was removed"), &Value::Null), "{why}");
    assert_eq!(raw.get("/v1/waiting?type=question").1["entries"], json!([]));
    refused(&raw, &id, &json!({ "text": "red" }), (403, "not_yours_to_decide"));
    // The notice waits for the next turn of the agent.
    let notice = format!("Your question {id} can no longer be answered:");
    assert!(exported(&host).contains(&notice));
}

#[test]
fn prompt_of_a_conversation_offers_an_answer() {
    let host = host_of(Build::Plain);
    let mut chat = host.command("ironctl");
    chat.arg("--home").arg(&host.home).args(["chat", "a"]).env("TERM", "xterm");
    let lines = ["ask me which? red or blue", "ask me what? green or white", "/quit"];
    let (mut said, mut answers) = (lines.into_iter(), ["7", "2", ""].into_iter());
    let prompts = ["you> \r\x1b[5C\x1b[?2026l", "answer (1 to 2; an empty line leaves it): "];
    let seen = terminal::run(chat, &prompts, |prompt| {
        let typed = if prompt == prompts[0] { said.next() } else { answers.next() };
        typed.expect("a line to type").to_owned()
    });
    let shown = seen.lines.join("\n");
    assert_eq!((seen.code, said.len(), answers.len()), (0, 0, 0), "{shown}");
    assert!(shown.contains("It asks in its own words:") && shown.contains("You chose: blue"), "{shown}");
    let raw = Raw::of(&host);
    // The refused line changed nothing, and an empty line leaves the second question.
    assert_eq!((host.entries("question.answered").len(), host.entries("question.answer_refused").len()), (1, 1));
    let left = waiting(&raw);
    assert_eq!((&left["question"], &left["status"]), (&json!("what?"), &json!("pending")), "{left}");
}

#[test]
fn killed_host_asks_once_and_answers_once() {
    let mut host = host_of(Build::Failpoints);
    host.down();
    host.up_failing_at("accept");
    let pid = host.pid().expect("the host runs");
    let (_, recorded) = Raw::of(&host).say("a", "ask me which? red or blue", None);
    let message = recorded["message_id"].as_str().expect("an id").to_owned();
    wait_for("the host to die at accept", || !alive(pid));
    host.up();
    answered(&host, &message);
    let id = id_of(&waiting(&Raw::of(&host))).to_owned();
    assert_eq!(host.entries("question.asked").len(), 1, "the second try is the same question");
    host.down();
    host.up_failing_at("question_answered");
    let pid = host.pid().expect("the host runs");
    let path = format!("/v1/waiting/{id}/decision");
    let asked = Raw::of(&host).begin("POST", &path, &json!({ "answer": { "option": 2 } }).to_string());
    wait_for("the host to die at question_answered", || !alive(pid));
    drop(asked);
    host.up();
    let raw = Raw::of(&host);
    refused(&raw, &id, &json!({ "option": 2 }), (409, "question_ended"));
    let entries = host.entries("question.answered");
    let [entry] = &entries[..] else { panic!("one answer: {entries:?}") };
    answered(&host, entry["data"]["message"].as_str().expect("an id"));
    let said = raw.get("/v1/agents/a/history").1["lines"].to_string();
    assert_eq!(said.matches("You chose: blue").count(), 1, "{said}");
    host.ctl(&["audit", "verify"]).ok();
}
