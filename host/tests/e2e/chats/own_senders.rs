//! Tests of senders that a person calls theirs: their text is not text of others in the turns of this person, and gives no right.

use super::authority::{host_with, model, own_lines, reasons, sent};
use super::{asks, connect, say, send};
use crate::support::client::{Raw, check_refused};
use crate::support::hooks::{Hook, Receiver, add_shop};
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::record;
use serde_json::{Value, json};

const ALLOWED: &str = "/allow send\ngo on";

fn own(host: &TestHost) -> Value {
    host.ctl(&["--json", "channel", "list"]).ok().json()[0]["own"].clone()
}

fn declare(host: &TestHost) {
    host.ctl(&["channel", "own", "shop:ci", "--yes"]).ok();
}

#[test]
fn sender_that_is_not_one_persons_is_refused() {
    let (server, receiver) = (model(), Receiver::accepting());
    let (host, hook) = host_with(&server, &receiver);
    let refused = |words: &[&str]| host.ctl_error(&[&["channel"], words].concat())["code"].clone();
    assert_eq!(refused(&["own", "shop:bob", "--yes"]), "identity_in_use");
    assert_eq!(refused(&["own", "gone:ci", "--yes"]), "channel_unknown");
    assert_eq!(refused(&["own", "loopback:ci", "--yes"]), "channel_unknown");
    assert_eq!(refused(&["own", "shop:\u{7}", "--yes"]), "identity_malformed");
    assert_eq!(refused(&["disown", "shop:ci"]), "sender_not_own");
    for words in [&["own", "shop"][..], &["own", "shop:"], &["disown", "shop"]] {
        assert_eq!(host.ctl(&[&["channel"], words].concat()).code, 2, "a whole channel is no sender");
    }
    assert_ne!(host.ctl(&["channel", "own", "shop:ci"]).code, 0, "the page was not read");
    let raw = Raw::of(&host);
    check_refused(&raw.ask("POST", "/v1/channels/shop/own_senders/ci", "{}"), 403, "page_unseen");
    let other = json!({ "shown": "0".repeat(64) }).to_string();
    check_refused(&raw.ask("POST", "/v1/channels/shop/own_senders/ci", &other), 409, "shown_differs");
    let token = host.ctl(&["token", "add", "--person", "Bob"]).ok().stdout.trim().to_owned();
    let member = Raw::of(&host).with_token(&token);
    check_refused(&member.ask("POST", "/v1/channels/shop/own_senders/ci/review", ""), 403, "role_too_low");
    assert!(own(&host).is_null() && host.entries("sender.declared").is_empty());
    check_refused(&send(&hook, "e1", "ci", "the build is red", &json!({ "group": "g" })), 403, "sender_unknown");
}

#[test]
fn own_sender_asks_no_more_and_gives_no_right() {
    let (server, receiver) = (model(), Receiver::accepting());
    let (host, mut hook) = host_with(&server, &receiver);
    connect(&host, &["--sharing", "shared", "--ignored", "accumulate"]);
    declare(&host);
    declare(&host);
    assert_eq!([&own(&host)[0]["identity"], &own(&host)[0]["person"]], ["shop:ci", "owner"]);
    for other in ["ci2", "Ci", "c", "ci "] {
        check_refused(&send(&hook, "e1", other, "hello", &json!({ "group": "g1" })), 403, "sender_unknown");
    }
    let forged = Hook { secret: format!("whsec_{}=", "A".repeat(43)), ..hook.clone() };
    check_refused(&send(&forged, "e1", "ci", "hello", &json!({ "group": "g1" })), 401, "signature_invalid");
    // The person's own call goes out, and a restart changes nothing.
    let red = "/allow send\nthe build is red";
    for (count, group) in ["g1", "g2"].into_iter().enumerate() {
        say(&hook, &format!("c{group}"), "ci", red, &json!({ "group": group }));
        say(&hook, &format!("a{group}"), "ann", ALLOWED, &json!({ "group": group }));
        wait_for("the message", || sent(&receiver) == count + 1);
        host.restart();
        hook.follow_restart(&host);
    }
    let quoted = server.seen().iter().any(|seen| !own_lines(seen).iter().any(|line| line.contains("red")));
    assert!(quoted, "its words are never those of the person");
    let refused_for = |id: &str, sender: &str, text: &str, group: &str| -> Vec<&str> {
        let why = reasons(&host, &say(&hook, id, sender, text, &json!({ "group": group })));
        ["call_origin", "call_scope"].into_iter().filter(|reason| why.contains(reason)).collect()
    };
    assert_eq!(refused_for("n1", "ann", "go on", "g1"), ["call_scope"], "it gives no scope");
    say(&hook, "n2", "bob", ALLOWED, &json!({ "group": "g2" }));
    wait_for("the judgement", || host.entries("call.asked").len() == 2);
    let asked = host.entries("call.asked").pop().expect("an entry");
    assert!(asked["data"]["reasons"].to_string().contains("call_origin"), "it is the owner's alone: {asked}");
    say(&hook, "q1", "ci", "look", &json!({ "group": "g3", "quoted": ["tell eve"] }));
    assert_eq!(refused_for("n3", "ann", ALLOWED, "g3"), ["call_origin"], "it quotes another author");
    connect(&host, &["--sharing", "shared", "--unknown", "public"]);
    say(&hook, "e4", "eve", "hello", &json!({ "group": "g4" }));
    say(&hook, "c4", "ci", red, &json!({ "group": "g4" }));
    assert_eq!(refused_for("n4", "ann", ALLOWED, "g4"), ["call_origin"], "another guest wrote too");
    // In a turn of its own it is a guest, whose text is text of others.
    connect(&host, &["--sharing", "shared", "--unknown", "public", "--from", "all"]);
    let asked = say(&hook, "t1", "ci", "hello", &json!({ "group": "g5" }));
    assert_eq!(labels(&host, &asked), r#"["External"]"#);
    connect(&host, &["--sharing", "shared", "--from", "all"]);
    say(&hook, "t2", "ci", "hello", &json!({ "group": "g5" }));
    assert_eq!(asks(&host).last(), Some(&false), "no answer where other strangers are refused");
    host.ctl(&["channel", "disown", "shop:ci"]).ok();
    assert_eq!(refused_for("n5", "ann", ALLOWED, "g1"), ["call_origin"], "the end holds for earlier messages");
    declare(&host);
    assert_eq!(refused_for("n6", "ann", ALLOWED, "g1"), ["call_origin"], "another declaration revives no message");
    host.ctl(&["channel", "disown", "shop:ci"]).ok();
    assert_eq!((host.entries("sender.declared").len(), host.entries("sender.disowned").len()), (3, 2));
    assert_eq!(sent(&receiver), 2);
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn declaration_ends_with_its_channel_and_at_a_link() {
    let (server, receiver) = (model(), Receiver::accepting());
    let (host, _) = host_with(&server, &receiver);
    declare(&host);
    host.add_linked_person("Builder", "shop:ci");
    assert!(own(&host).is_null(), "the account is a person's now");
    host.ctl(&["person", "unlink", "Builder", "shop:ci"]).ok();
    assert!(own(&host).is_null(), "an earlier yes does not come back");
    declare(&host);
    host.agent("b");
    host.ctl(&["agent", "connect", "b", "shop", "--yes"]).ok();
    assert!(own(&host).is_null(), "another agent hears the channel");
    host.ctl(&["agent", "disconnect", "b", "shop"]).ok();
    assert_eq!(host.ctl_error(&["channel", "own", "shop:ci", "--yes"])["code"], "wiring_unknown");
    connect(&host, &[]);
    let admin = Raw::add_person(&host, "Carol", &["--role", "admin"]);
    let page = admin.ask("POST", "/v1/channels/shop/own_senders/ci/review", "").1;
    let shown = json!({ "shown": page["shown_digest"] }).to_string();
    assert_eq!(admin.ask("POST", "/v1/channels/shop/own_senders/ci", &shown).0, 200);
    host.ctl(&["person", "set", "Carol", "--role", "member"]).ok();
    assert!(own(&host).is_null(), "the person has no role for it any longer");
    declare(&host);
    host.ctl(&["channel", "remove", "shop", "--yes"]).ok();
    let (_receiver, hook) = add_shop(&host);
    assert!(own(&host).is_null(), "another channel of this name");
    check_refused(&send(&hook, "e1", "ci", "hello", &json!({ "group": "g" })), 403, "sender_unknown");
}

/// Returns the recorded labels of a message.
fn labels(host: &TestHost, message: &str) -> String {
    let sql = "SELECT labels FROM items WHERE id = ?1";
    record::open(&host.home).query_row(sql, [message.replace("msg_", "itm_")], |row| row.get(0)).expect("an item")
}
