//! Tests of senders: whole identities, strangers who are refused, who wait, or who are guests.
//!
//! A guest gets a reply and no tools, and learns nothing about an agent that is for its members only.

use super::{asks, connect, replies, say, send};
use crate::e2e::streaming;
use crate::support::client::check_refused;
use crate::support::hooks::{add_shop, host_with_shop};
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::model_server::{Act, Seen, Server};
use serde_json::{Value, json};

fn sessions(host: &TestHost) -> Vec<Value> {
    host.ctl(&["--json", "session", "list"]).ok().json().as_array().expect("a list").clone()
}

#[test]
fn bug_8_two_homes_stay_two_people() {
    let (host, receiver, hook) = host_with_shop("");
    let (corp, evil) = ("@alice:corp.example", "@alice:evil.example");
    host.add_linked_person("Alice", &format!("shop:{corp}"));
    let none = json!({});
    for stranger in [evil, "@alice", "@alice:corp", "@Alice:corp.example", "Alice"] {
        check_refused(&send(&hook, "e1", stranger, "hello", &none), 403, "sender_unknown");
    }
    // A name that the sender shows is no field of an event.
    check_refused(&send(&hook, "e1", evil, "hello", &json!({ "name": "Alice" })), 400, "request_malformed");
    say(&hook, "e1", corp, "hello", &none);
    host.add_linked_person("Mallory", &format!("shop:{evil}"));
    say(&hook, "e2", evil, "hello", &none);
    replies(&receiver, 2);
    let recorded = host.entries("message.recorded");
    assert_ne!(recorded[0]["data"]["person"], recorded[1]["data"]["person"]);
    assert_ne!(recorded[0]["data"]["session"], recorded[1]["data"]["session"]);
}

#[test]
fn guest_gets_a_reply_without_tools_and_learns_nothing() {
    let server = Server::start(|seen: &Seen| match (seen.asked().as_str(), seen.results().is_empty()) {
        ("call", true) => Act::Call(String::new(), vec![("list_dir".to_owned(), json!({}))]),
        _ => Act::Say("welcome".to_owned()),
    });
    let host = streaming::new_host("[webhook]\nlisten = \"127.0.0.1:0\"\n", &server, "openai", &[]);
    let (receiver, hook) = add_shop(&host);
    let none = json!({});
    connect(&host, &["--from", "all", "--unknown", "public", "--sharing", "shared"]);
    say(&hook, "e1", "eve", "/allow send exec\nhello", &json!({ "group": "g" }));
    let got = replies(&receiver, 1);
    assert_eq!([&got[0]["text"], &got[0]["sender"], &got[0]["group"]], ["welcome", "eve", "g"]);
    let seen = server.seen();
    assert!(seen[0].body["tools"].as_array().is_none_or(Vec::is_empty), "{}", seen[0].body);
    assert!(!seen[0].system().contains("/workspace"), "{}", seen[0].system());
    say(&hook, "e2", "ann", "hello", &json!({ "group": "g" }));
    replies(&receiver, 2);
    assert!(server.seen()[1].body["tools"].as_array().is_some_and(|tools| !tools.is_empty()));
    let listed = sessions(&host);
    assert_eq!(listed.len(), 2, "a guest has a session of their own: {listed:?}");
    assert!(listed.iter().all(|session| session["person"].is_null()), "{listed:?}");
    // A model that calls a tool anyway is refused.
    say(&hook, "e3", "eve", "call", &json!({ "group": "g" }));
    replies(&receiver, 3);
    assert_eq!(host.entries("call.refused").len(), 1);
    assert!(host.entries("call.refused")[0].to_string().contains("call_principal"));
    assert!(host.entries("request.created").is_empty());
    // The agent is for its members only: a guest gets the same answer as on a channel without an agent.
    host.change("a", "permissions", &json!({ "access": "members" }));
    let closed = send(&hook, "e4", "eve", "hello", &none);
    host.ctl(&["agent", "disconnect", "a", "shop"]).ok();
    let unheard = send(&hook, "e5", "ann", "hello", &none);
    check_refused(&unheard, 503, "channel_unheard");
    assert_eq!(closed, unheard);
    assert_eq!(asks(&host).len(), 3);
}

#[test]
fn guest_gets_the_tools_that_the_policy_of_the_agent_gives() {
    let server = Server::start(|seen: &Seen| match (seen.asked().as_str(), seen.results().is_empty()) {
        ("call", true) => Act::Call(String::new(), vec![("list_dir".to_owned(), json!({}))]),
        ("write", true) => {
            Act::Call(String::new(), vec![("write_file".to_owned(), json!({ "path": "a.txt", "content": "x" }))])
        }
        _ => Act::Say("welcome".to_owned()),
    });
    let host = streaming::new_host("[webhook]\nlisten = \"127.0.0.1:0\"\n", &server, "openai", &[]);
    let (receiver, hook) = add_shop(&host);
    connect(&host, &["--from", "all", "--unknown", "public", "--sharing", "shared"]);
    std::fs::write(host.home.join("policy.toml"), "[receiver]\nguest = [\"read\"]\n").expect("written");
    host.ctl(&["config", "reload"]).ok();
    host.ctl(&["agent", "set", "a", "--may", "guest=read", "--unasked", "guest=read", "--yes"]).ok();
    for (count, words) in ["call", "write"].into_iter().enumerate() {
        say(&hook, words, "eve", words, &json!({ "group": "g" }));
        replies(&receiver, count + 1);
    }
    let offered = server.seen()[0].body["tools"].to_string();
    assert!(offered.contains("list_dir") && !offered.contains("write_file"), "{offered}");
    assert_eq!(host.entries("call.ran").len() + host.entries("call.reported").len(), 1, "{:?}", host.ledger());
    assert_eq!(host.entries("call.refused").pop().expect("a refusal")["data"]["reason"], "call_principal");
}

#[test]
fn stranger_waits_for_a_person_and_the_list_is_bounded() {
    let (host, receiver, hook) = host_with_shop("");
    host.ctl(&["person", "set", "owner", "--notify", "shop"]).ok();
    let none = json!({});
    let waiting = || host.ctl(&["--json", "channel", "list"]).ok().json()[0]["waiting"].clone();
    check_refused(&send(&hook, "e1", "eve", "hello", &none), 403, "sender_unknown");
    assert!(waiting().is_null());
    connect(&host, &["--unknown", "request"]);
    for _ in 0..2 {
        check_refused(&send(&hook, "e1", "eve", "my text", &none), 403, "sender_waits");
    }
    assert_eq!((waiting().as_array().map(Vec::len), &waiting()[0]["identity"]), (Some(1), &json!("shop:eve")));
    assert_eq!(host.entries("sender.waits").len(), 1);
    wait_for("a notification", || !receiver.notifications().is_empty());
    let told = receiver.notifications().concat();
    assert!(told.contains("shop") && !told.contains("eve") && !told.contains("my text"), "{told}");
    for n in 1..16 {
        check_refused(&send(&hook, "e1", &format!("stranger {n}"), "hello", &none), 403, "sender_waits");
    }
    check_refused(&send(&hook, "e1", "one more", "hello", &none), 403, "senders_too_many");
    assert_eq!(waiting().as_array().map(Vec::len), Some(16));
    host.add_linked_person("Eve", "shop:eve");
    assert_eq!(waiting().as_array().map(Vec::len), Some(15));
    // A dismissal ends the wait, and the next message begins another one.
    let dismiss = |sender: &str| host.ctl(&["--json", "channel", "dismiss", &format!("shop:{sender}")]);
    dismiss("stranger 2").ok();
    assert_eq!((waiting().as_array().map(Vec::len), host.entries("sender.dismissed").len()), (Some(14), 1));
    for (identity, code) in [("shop:stranger 2", "sender_not_waiting"), ("gone:eve", "channel_unknown")] {
        assert_eq!(host.ctl_error(&["channel", "dismiss", identity])["code"], code);
    }
    assert_eq!(host.ctl(&["channel", "dismiss", "shop"]).code, 2);
    check_refused(&send(&hook, "e1", "stranger 2", "hello", &none), 403, "sender_waits");
    assert_eq!(waiting().as_array().map(Vec::len), Some(15));
    say(&hook, "e1", "eve", "hello", &none);
    replies(&receiver, 1);
    assert!(asks(&host).len() == 1 && host.ctl(&["channel", "list"]).ok().stdout.contains("stranger 1"));
}
