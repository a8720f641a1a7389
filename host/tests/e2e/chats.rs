//! Tests of channels with several people: the rules of a wiring, the senders that it accepts, and the sessions that people share.
//!
//! They use the real programs, signed webhooks, and a receiver on loopback. See `webhook` for the protocol.

mod authority;
mod own_senders;
mod senders;
mod widening;

use crate::support::client::{Raw, check_refused};
use crate::support::hooks::{Hook, Receiver, host_with_shop};
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::record;
use serde_json::{Value, json};

/// Sends a message of this sender, with further fields of the event.
fn send(hook: &Hook, id: &str, sender: &str, text: &str, more: &Value) -> (u16, Value) {
    let mut body = json!({ "sender": sender, "text": text, "quoted": [] });
    let fields = more.as_object().expect("an object").clone();
    body.as_object_mut().expect("an object").extend(fields);
    hook.send(id, &body.to_string())
}

/// Sends a message that is accepted, and returns its id; empty if it was dropped.
#[track_caller]
fn say(hook: &Hook, id: &str, sender: &str, text: &str, more: &Value) -> String {
    let (status, answer) = send(hook, id, sender, text, more);
    assert_eq!(status, 200, "{answer}");
    answer["message_id"].as_str().unwrap_or_default().to_owned()
}

/// Connects agent `a` to `shop` with these options.
fn connect(host: &TestHost, options: &[&str]) -> Value {
    host.ctl(&[&["--json", "agent", "connect", "a", "shop", "--yes"], options].concat()).ok().json()
}

/// Waits until the receiver has this number of replies, and returns the bodies.
fn replies(receiver: &Receiver, count: usize) -> Vec<Value> {
    let all = || -> Vec<Value> {
        let got = receiver.replies().into_iter().map(|got| got.body);
        got.filter(|body| body["type"] == "reply" || body["type"] == "notice").collect()
    };
    wait_for(&format!("{count} replies"), || all().len() >= count);
    let all = all();
    assert_eq!(all.len(), count, "{all:?}");
    all
}

/// Returns the recorded messages and whether each asks for an answer.
fn asks(host: &TestHost) -> Vec<bool> {
    host.entries("message.recorded").iter().map(|entry| entry["data"]["asks"] == true).collect()
}

#[test]
fn malformed_rules_and_gone_channels_are_refused_by_name() {
    let (host, _receiver, hook) = host_with_shop("");
    for bad in ["(", "[z-a]", "(?=x)"] {
        assert_eq!(host.ctl_error(&["agent", "connect", "a", "shop", "--engage", bad])["code"], "pattern_malformed");
    }
    assert_eq!(host.ctl(&["agent", "connect", "a", "shop", "--from", "everyone"]).code, 2);
    let raw = Raw::of(&host);
    for rules in [
        json!({ "engage": "sometimes" }),
        json!({ "engage": "none" }),
        json!({ "engage": "pattern" }),
        json!({ "pattern": "x" }),
        json!({ "unknown": "friendly" }),
    ] {
        let mut body = rules.clone();
        body["agent"] = json!("a");
        let answer = raw.ask("POST", "/v1/channels/shop/agents", &body.to_string());
        check_refused(&answer, 400, "payload_malformed");
    }
    let wiring = &host.ctl(&["--json", "channel", "list"]).ok().json()[0]["wiring"];
    let rules = ["engage", "from", "unknown", "ignored", "sharing"].map(|field| wiring[field].as_str());
    assert_eq!(rules, ["all", "known", "strict", "accumulate", "thread"].map(Some), "a refusal changes nothing");
    check_refused(&send(&hook, "e1", "ann", "hello", &json!({ "group": "" })), 400, "group_malformed");
    check_refused(&send(&hook, "e1", "ann", "hello", &json!({ "group": 7 })), 400, "request_malformed");
    check_refused(&send(&hook, "e1", "ann", "hello", &json!({ "mentions": ["\u{7}"] })), 400, "mentions_malformed");
    check_refused(&send(&hook, "e1", "eve", "hello", &json!({ "group": "g" })), 403, "sender_unknown");
    assert!(asks(&host).is_empty());
    host.ctl(&["channel", "remove", "shop", "--yes"]).ok();
    let gone = host.ctl_error(&["agent", "connect", "a", "shop"]);
    assert_eq!(gone["code"], "channel_unknown");
    let says = |field: &str, word: &str| gone[field].as_str().is_some_and(|text| text.contains(word));
    assert!(says("message", "shop") && says("hint", "channel list"), "{gone}");
}

#[test]
fn pattern_mention_and_sticky_choose_the_messages() {
    let (host, receiver, hook) = host_with_shop("");
    let none = json!({});
    connect(&host, &["--engage", "^!bot", "--ignored", "drop"]);
    assert_eq!(say(&hook, "e1", "ann", "hello", &none), "", "a dropped message is acknowledged and not recorded");
    assert!(!say(&hook, "e2", "ann", "!bot hello", &none).is_empty());
    replies(&receiver, 1);
    assert!(host.entries("webhook.refused").iter().any(|entry| entry["data"]["code"] == "message_ignored"));
    connect(&host, &["--engage", "mention", "--ignored", "drop"]);
    for mentions in [json!([]), json!(["A"]), json!(["ab", "@a"])] {
        assert_eq!(say(&hook, "e3", "ann", "a: !bot hello", &json!({ "mentions": mentions })), "", "{mentions}");
    }
    say(&hook, "e4", "ann", "hello", &json!({ "mentions": ["b", "a"] }));
    replies(&receiver, 2);
    connect(&host, &["--engage", "mention-sticky", "--ignored", "drop"]);
    let at = |thread: &str, mentions: Value| json!({ "group": "g", "thread": thread, "mentions": mentions });
    assert_eq!(say(&hook, "e5", "ann", "hello", &at("t", json!([]))), "");
    say(&hook, "e6", "ann", "hello", &at("t", json!(["a"])));
    replies(&receiver, 3);
    say(&hook, "e7", "ann", "hello again", &at("t", json!([])));
    let got = replies(&receiver, 4);
    assert_eq!([&got[3]["group"], &got[3]["thread"], &got[3]["sender"]], ["g", "t", "ann"]);
    assert_eq!(say(&hook, "e8", "ann", "hello", &at("u", json!([]))), "", "another thread");
    say(&hook, "e9", "ann", "hello", &at("", json!(["a"])));
    replies(&receiver, 5);
    assert_eq!(say(&hook, "e10", "ann", "hello", &at("", json!([]))), "", "a group without a thread does not stick");
    // Kept messages open no turn.
    connect(&host, &["--engage", "mention"]);
    assert!(!say(&hook, "e11", "ann", "hello", &none).is_empty());
    assert_eq!(asks(&host).iter().filter(|asks| !**asks).count(), 1);
    replies(&receiver, 5);
}

#[test]
fn bug_22_bad_pattern_engages_nothing() {
    let (host, receiver, mut hook) = host_with_shop("");
    connect(&host, &["--engage", "^!bot"]);
    host.down();
    let sql = "UPDATE wirings SET pattern = '(' WHERE channel = 'shop'";
    assert_eq!(record::open_to_change(&host.home).execute(sql, []).expect("changed"), 1);
    record::restore_owner(&host);
    host.up();
    hook.follow_restart(&host);
    for (id, text) in [("e1", "!bot hello"), ("e2", "(")] {
        say(&hook, id, "ann", text, &json!({}));
    }
    assert_eq!(asks(&host), [false; 2]);
    assert!(host.entries("turn.opened").is_empty() && receiver.replies().is_empty());
}
