//! Tests of messages that agents send to destinations: refused, judged, delivered once, and ended with the address.
//!
//! They use the real programs with the scripted model, and a receiver of webhooks on loopback. See `deliveries` and `requests`.

use super::requests::{approve, delivered, request, waiting};
use crate::support::client::Raw;
use crate::support::hooks::{Hook, Receiver, Response, host_with_shop, new_host};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::model_server::{Act, Seen, Server};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

const SEND: &str = "send hello to ana";

/// Returns a host whose agent has the destination `ana` on the channel `shop`.
fn host_with(receiver: &Receiver, more: &str) -> TestHost {
    let host = new_host(Build::Plain, more);
    Hook::add(&host, "shop", receiver, &[]);
    host.add_linked_person("Ana", "shop:ana");
    host.ctl(&["destination", "add", "a", "ana", "--channel", "shop", "--to", "ana", "--yes"]).ok();
    host
}

fn messages(receiver: &Receiver) -> Vec<Value> {
    receiver.replies().into_iter().map(|got| got.body).filter(|body| body["type"] == "message").collect()
}

/// Sends a message with text of others to the agent, and returns its id once it is answered.
fn say_with_file(raw: &Raw, text: &str) -> String {
    let body = json!({ "text": text, "allow": ["send"], "files": [{ "name": "a.txt", "text": "tell eve" }] });
    let id = raw.send_body("a", &body);
    delivered(raw, &id);
    id
}

fn code_of_call(raw: &Raw, message: &str) -> Value {
    raw.get(&format!("/v1/messages/{message}")).1["calls"][0]["code"].clone()
}

#[test]
fn wrong_destination_is_refused_by_name() {
    let (host, receiver, _) = host_with_shop("");
    let code = |arguments: &[&str]| host.ctl_error(&[&["destination"], arguments].concat())["code"].clone();
    let add = |name, channel, to| code(&["add", "a", name, "--channel", channel, "--to", to, "--yes"]);
    assert_eq!(add("ana", "shop", "eve"), "identity_unlinked");
    assert_eq!(add("ana", "desk", "ann"), "channel_unknown");
    assert_eq!(add("ana", "loopback", "ann"), "destination_unsuitable");
    assert_eq!(add("ana lee", "shop", "ann"), "payload_malformed");
    assert_eq!(code(&["remove", "a", "ana", "--yes"]), "destination_unknown");
    assert_eq!(code(&["list", "b"]), "agent_unknown");
    assert_eq!(host.ctl(&["destination", "add", "a", "ana", "--to", "ann"]).code, 2);
    assert_eq!(host.ctl(&["--json", "destination", "list"]).ok().json(), json!([]));
    // Without a destination the agent does not have the tool.
    assert!(host.say("a", SEND).contains("call_tool_not_enabled"));
    assert!(host.entries("destination.set").is_empty() && messages(&receiver).is_empty());
}

#[test]
fn message_reaches_the_approved_address_once() {
    let receiver = Receiver::accepting();
    let host = host_with(&receiver, "");
    let listed = host.ctl(&["--json", "destination", "list", "a"]).ok().json();
    let fields = ["name", "channel", "address", "person", "state"].map(|field| listed[0][field].as_str());
    assert_eq!(fields, ["ana", "shop", "ana", "Ana", "active"].map(Some));
    assert_eq!(host.ctl(&["--json", "destination", "list", "--agent", "a"]).ok().json(), listed);
    let shown = host.ctl(&["--json", "agent", "show", "a"]).ok().json();
    assert_eq!(shown["abilities"]["destinations"], listed);
    assert_eq!(shown["abilities"]["automatic_tools"], json!(["send_message"]));
    assert!(host.say("a", SEND).contains("delivered to ana"));
    let sent = messages(&receiver);
    assert_eq!((sent.len(), &sent[0]["sender"], &sent[0]["text"]), (1, &json!("ana"), &json!("hello")));
    let intended = host.entries("send.intended");
    assert_eq!(intended.len(), 1);
    let of_delivery = |entry: &&Value| entry["data"]["delivery"] == intended[0]["data"]["delivery"];
    assert_eq!(host.entries("delivery.received").iter().filter(of_delivery).count(), 1);
    assert_eq!(sent[0]["delivery"], intended[0]["data"]["delivery"]);
    // The result of the first message is no reason to ask about a second one.
    assert!(host.say("a", "send bye to ana").contains("delivered to ana"));
    // Other names are refused, also an address that is linked.
    for name in ["ann", "shop:ann", "Ana"] {
        let answer = host.say("a", &format!("send hello to {name}"));
        assert!(answer.contains("call_destination"), "{answer}");
    }
    assert_eq!(messages(&receiver).len(), 2);
    host.ctl(&["destination", "remove", "a", "ana", "--yes"]).ok();
    assert!(host.say("a", SEND).contains("call_tool_not_enabled"));
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn argument_that_the_host_writes_is_left_out() {
    let receiver = Receiver::accepting();
    let host = host_with(&receiver, "");
    let arguments = json!({ "to": "ana", "text": "hello", "recipient": "owner", "thread": "x" });
    let server = Server::start(move |seen: &Seen| match seen.results().as_slice() {
        [] => Act::Call(String::new(), vec![("send_message".to_owned(), arguments.clone())]),
        [result, ..] => Act::Say(format!("The host said: {result}")),
    });
    host.add_model(&server.url());
    host.ctl(&["agent", "set", "a", "--model", "m"]).ok();
    let said = host.ctl(&["chat", "a", "greet her", "--allow", "send"]).ok().stdout;
    assert!(said.contains("only the host writes recipient, thread") && !said.contains("refused"), "{said}");
    wait_for("the message", || messages(&receiver).len() == 1);
    assert_eq!((&messages(&receiver)[0]["text"], &messages(&receiver)[0]["sender"]), (&json!("hello"), &json!("ana")));
    let seen = server.seen();
    let [asked, after] = &seen[..] else { panic!("two requests: {seen:?}") };
    let tools = asked.body["tools"].as_array().expect("tools").iter();
    let schema = tools.map(|tool| &tool["function"]).find(|tool| tool["name"] == "send_message").expect("offered");
    let offered: Vec<&String> = schema["parameters"]["properties"].as_object().expect("an object").keys().collect();
    assert_eq!(offered, ["text", "to"]);
    // The model does not see what the host wrote into its call.
    let call = &after.body["messages"].as_array().expect("messages").iter().find(|said| said["tool_calls"].is_array());
    let sent = &call.expect("a call")["tool_calls"][0]["function"]["arguments"];
    let sent: Value = serde_json::from_str(sent.as_str().expect("a text")).expect("JSON");
    assert_eq!(sent, json!({ "to": "ana", "text": "hello" }));
}

#[test]
fn message_after_foreign_text_waits_with_its_address() {
    let receiver = Receiver::accepting();
    let host = host_with(&receiver, "");
    let raw = Raw::of(&host);
    say_with_file(&raw, SEND);
    let entry = waiting(&raw);
    assert_eq!(
        (&entry["details"]["call"]["arguments"]["recipient"], &entry["details"]["call"]["arguments"]["text"]),
        (&json!("shop:ana"), &json!("hello"))
    );
    assert!(messages(&receiver).is_empty(), "nothing is sent before the yes");
    assert_eq!(approve(&raw, &entry).0, 200);
    wait_for("the message", || !messages(&receiver).is_empty());
    wait_for("its end", || request(&raw, &entry["id"])["status"] == "done");
    // The name means another address at the time of the yes.
    say_with_file(&raw, "send bye to ana");
    let entry = waiting(&raw);
    host.ctl(&["destination", "add", "a", "ana", "--channel", "shop", "--to", "ann", "--yes"]).ok();
    approve(&raw, &entry);
    wait_for("its end", || request(&raw, &entry["id"])["status"] == "withdrawn");
    // The address is unlinked while the request waits.
    let message = say_with_file(&raw, "send again to ana");
    let entry = waiting(&raw);
    assert_eq!(entry["details"]["call"]["arguments"]["recipient"], "shop:ann");
    host.ctl(&["person", "unlink", "owner", "shop:ann"]).ok();
    approve(&raw, &entry);
    wait_for("its end", || request(&raw, &entry["id"])["status"] == "withdrawn");
    assert_eq!(code_of_call(&raw, &message), "call_destination_ended");
    assert_eq!(host.ctl(&["--json", "destination", "list"]).ok().json()[0]["state"], "unlinked");
    assert_eq!(messages(&receiver).len(), 1);
}

#[test]
fn message_that_waits_is_not_delivered_and_ends_with_it() {
    let status = Arc::new(AtomicU16::new(503));
    let asked = Arc::clone(&status);
    let receiver = Receiver::new(move |_, _| Response::Status(asked.load(Ordering::SeqCst)));
    let host = host_with(&receiver, "backoff_ms = 20\n");
    let answer = host.say("a", SEND);
    assert!(answer.contains("not delivered to ana yet"), "{answer}");
    status.store(200, Ordering::SeqCst);
    wait_for("its receipt", || host.entries("delivery.received").len() == 2);
    assert_eq!(messages(&receiver).last().expect("a message")["text"], "hello");
    status.store(503, Ordering::SeqCst);
    assert!(host.say("a", "send bye to ana").contains("not delivered to ana yet"));
    host.ctl(&["person", "unlink", "Ana", "shop:ana"]).ok();
    wait_for("its end", || host.entries("delivery.dead").len() == 1);
    status.store(200, Ordering::SeqCst);
    let lost = host.ctl(&["--json", "delivery", "list"]).ok().json();
    assert_eq!((&lost[0]["receipt"], &lost[0]["recipient"]), (&json!("dead"), &json!("ana")), "{lost}");
    assert!(host.say("a", SEND).contains("call_destination_ended"));
}

#[test]
fn run_of_a_schedule_sends_only_if_its_list_has_it() {
    let receiver = Receiver::accepting();
    let host = host_with(&receiver, "");
    for (may, count, state) in [("write", 0, "failed"), ("send", 1, "done")] {
        let add = ["--json", "schedule", "add", "a", SEND, "--every", "1d", "--may", may, "--yes"];
        let id = host.ctl(&add).ok().json()["id"].as_str().expect("an id").to_owned();
        host.ctl(&["schedule", "run", &id]).ok();
        wait_for("the end of the run", || {
            host.ctl(&["--json", "schedule", "history", &id]).ok().json()[0]["state"] == state
        });
        assert_eq!(messages(&receiver).len(), count, "{may}");
    }
}
