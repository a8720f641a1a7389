//! Tests of outgoing deliveries: safe retries, no automatic retry after an unknown outcome, and no silent loss.
//!
//! The receiver checks each signature; fail points of the real programs kill the host. See `webhook`.

use crate::e2e::questions::give_tool;
use crate::support::client::{self, Client};
use crate::support::hooks::{Hook, Receiver, Response, new_host, receipt};
use crate::support::host_fixture::{Build, TestHost, alive, copy_with_owners, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
const SOON: &str = "backoff_ms = 20\n";

fn dead_letters(host: &TestHost) -> Vec<Value> {
    host.ctl(&["--json", "delivery", "list"]).ok().json().as_array().expect("a list").clone()
}

/// Returns the notices in the owner's conversation with the agent.
fn notices(host: &TestHost) -> Vec<String> {
    let history = Client::of(host).history("a");
    history.iter().filter(|line| line["author"] == "host").map(|line| line["text"].to_string()).collect()
}

fn count_stages(why: &Value, stage_name: &str) -> usize {
    why["stages"].as_array().expect("a list").iter().filter(|stage| stage["stage"] == stage_name).count()
}

#[test]
fn reply_is_retried_with_the_same_id_until_it_is_received() {
    let host = new_host(Build::Plain, SOON);
    let receiver = Receiver::new(|_, before| match before {
        0 => Response::Status(500),
        1 => Response::Later(503, "0"),
        2 => Response::Status(429),
        _ => Response::Status(202),
    });
    let hook = Hook::add(&host, "shop", &receiver, &[]);
    let message = hook.say("e1", "hello");
    let why = receipt(&host, &message, "received");
    let replies = receiver.replies();
    assert_eq!(replies.len(), 4);
    assert!(replies.iter().all(|got| got.id == replies[0].id && got.body == replies[0].body), "{replies:?}");
    assert_eq!((count_stages(&why, "delivery.sending"), count_stages(&why, "delivery.retried")), (4, 3), "{why}");
    assert_eq!(count_stages(&why, "delivery.received"), 1);
    assert!(dead_letters(&host).is_empty() && notices(&host).is_empty());
}

#[test]
fn reply_is_dead_after_its_last_attempt_and_is_reported() {
    let host = new_host(Build::Plain, "backoff_ms = 1\nattempts_max = 3\n");
    let receiver = Receiver::new(|_, _| Response::Status(500));
    let hook = Hook::add(&host, "shop", &receiver, &["--idempotent"]);
    let message = hook.say("e1", "hello");
    let why = receipt(&host, &message, "dead");
    assert_eq!(receiver.replies().len(), 3);
    assert!(why["summary"].as_str().is_some_and(|words| words.contains("could not be delivered")), "{why}");
    let letters = dead_letters(&host);
    assert_eq!((&letters[0]["attempts"], &letters[0]["receipt"]), (&3.into(), &"dead".into()), "{letters:?}");
    assert!(letters[0]["reason"].as_str().is_some_and(|why| why.contains("500")), "{letters:?}");
}

#[test]
fn refused_reply_is_dead_with_a_notice_and_can_be_resent() {
    let host = new_host(Build::Plain, SOON);
    let open = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&open);
    let receiver = Receiver::new(move |_, _| Response::Status(if asked.load(Ordering::SeqCst) { 200 } else { 410 }));
    let hook = Hook::add(&host, "shop", &receiver, &[]);
    let message = hook.say("e1", "hello");
    receipt(&host, &message, "dead");
    assert_eq!(receiver.replies().len(), 1, "status 410 is final");
    let found = notices(&host);
    assert!(found.len() == 1 && found[0].contains("did not arrive") && found[0].contains("410"), "{found:?}");
    let letters = dead_letters(&host);
    assert_eq!((letters.len(), &letters[0]["recipient"]), (1, &"ann".into()), "{letters:?}");
    let warnings = host.status()["host"]["warnings"].to_string();
    assert!(warnings.contains("1 answer did not arrive"), "{warnings}");
    // A member does not see another person's dead letter.
    let bob = client::Raw::add_person(&host, "Bob", &["--role", "member"]);
    assert_eq!(bob.get("/v1/dead").1["letters"], json!([]));
    let id = letters[0]["delivery_id"].as_str().expect("an id");
    assert_eq!(bob.ask("POST", &format!("/v1/dead/{id}/retry"), "").0, 404);
    open.store(true, Ordering::SeqCst);
    host.ctl(&["delivery", "retry", id]).ok();
    receipt(&host, &message, "received");
    let replies = receiver.replies();
    assert!(replies.len() == 2 && replies.iter().all(|got| got.id == id), "{replies:?}");
    assert!(dead_letters(&host).is_empty());
    host.ctl(&["delivery", "retry", id]).refused("no undelivered answer");
    open.store(false, Ordering::SeqCst);
    let second = hook.say("e2", "hello");
    receipt(&host, &second, "dead");
    host.ctl(&["delivery", "drop", &second]).ok();
    receipt(&host, &second, "dropped");
    assert!(dead_letters(&host).is_empty());
    assert_eq!((host.entries("delivery.again").len(), host.entries("delivery.dropped").len()), (1, 1));
    host.ctl(&["audit", "verify"]).ok();
}

/// Has the agent answer this text over a channel where its person is told too, kills the host at this fail point, and restarts it.
fn killed_while_sending(point: &str, text: &str, more: &[&str]) -> (TestHost, Receiver, String) {
    let mut host = new_host(Build::Failpoints, SOON);
    give_tool(&host);
    let receiver = Receiver::accepting();
    let mut hook = Hook::add(&host, "shop", &receiver, more);
    host.ctl(&["person", "set", "owner", "--notify", "shop"]).ok();
    host.down();
    host.up_failing_at(point);
    hook.follow_restart(&host);
    let host_pid = host.pid().expect("the host runs");
    let message = hook.say("e1", text);
    wait_for(&format!("the host to die at {point}"), || !alive(host_pid));
    host.up();
    hook.follow_restart(&host);
    (host, receiver, message)
}

#[test]
fn reply_with_unknown_outcome_is_not_retried_automatically() {
    for (point, sent) in [("delivery_taken", 0), ("delivery_sent", 1)] {
        let (host, receiver, message) = killed_while_sending(point, "hello", &[]);
        let why = receipt(&host, &message, "unknown");
        assert!(why["summary"].as_str().is_some_and(|words| words.contains("is unknown")), "{point}: {why}");
        assert_eq!(why["message"]["status"], "completed", "{point}");
        let found = notices(&host);
        assert!(found.len() == 1 && found[0].contains("may not have arrived"), "{point}: {found:?}");
        assert_eq!(dead_letters(&host)[0]["receipt"], "unknown", "{point}");
        // Another start, with other deliveries, does not send it either.
        host.restart();
        let mut hook = Hook { name: "shop".to_owned(), secret: String::new(), hook: String::new() };
        hook.follow_restart(&host);
        let desk = Hook::add(&host, "desk", &Receiver::accepting(), &[]);
        drop((hook, desk));
        receipt(&host, &message, "unknown");
        assert_eq!(receiver.replies().len(), sent, "{point}");
        assert_eq!(host.entries("delivery.unknown").len(), 1, "{point}");
        host.ctl(&["delivery", "retry", &message]).ok();
        receipt(&host, &message, "received");
        assert_eq!(receiver.replies().len(), sent + 1, "{point}");
        host.ctl(&["audit", "verify"]).ok();
    }
}

#[test]
fn idempotent_deliveries_keep_their_ids_after_a_crash() {
    for point in ["delivery_taken", "delivery_sent"] {
        let question = "ask me which? red or blue";
        let (host, receiver, message) = killed_while_sending(point, question, &["--idempotent"]);
        let why = receipt(&host, &message, "received");
        // A person is told of the question too.
        wait_for("the notification", || host.entries("notification.received").len() == 1);
        let (sent, mut bodies) = (receiver.replies(), BTreeMap::new());
        for got in &sent {
            assert_eq!(*bodies.entry(&got.id).or_insert(&got.body), &got.body, "{sent:?}");
        }
        assert_eq!(bodies.len(), 2, "a reply and a notification: {sent:?}");
        assert_eq!(sent.len() > 2, point == "delivery_sent", "only what may have arrived is sent again: {sent:?}");
        assert_eq!((count_stages(&why, "delivery.received"), count_stages(&why, "delivery.unknown")), (1, 0), "{why}");
        assert_eq!((host.entries("notification.intended").len(), notices(&host).len()), (1, 0));
        host.ctl(&["audit", "verify"]).ok();
    }
}

#[test]
fn consecutive_lost_replies_produce_one_notice() {
    let host = new_host(Build::Plain, SOON);
    let gone = Receiver::new(|_, _| Response::Status(410));
    let hook = Hook::add(&host, "shop", &gone, &[]);
    for event in ["e1", "e2", "e3"] {
        receipt(&host, &hook.say(event, "hello"), "dead");
    }
    assert_eq!((dead_letters(&host).len(), notices(&host).len()), (3, 1));
}

#[test]
fn broken_connection_is_retried_only_if_idempotent() {
    let host = new_host(Build::Plain, SOON);
    let receiver = Receiver::new(|_, before| if before == 0 { Response::Close } else { Response::Status(200) });
    let hook = Hook::add(&host, "shop", &receiver, &[]);
    receipt(&host, &hook.say("e1", "hello"), "unknown");
    receipt(&host, &hook.say("e2", "hello"), "received");
    assert_eq!(receiver.replies().len(), 2);
    let other = Receiver::new(|_, before| if before == 0 { Response::Close } else { Response::Status(200) });
    let hook = Hook::add(&host, "desk", &other, &["--idempotent"]);
    receipt(&host, &hook.say("e1", "hello"), "received");
    assert_eq!(other.replies().len(), 2);
}

#[test]
fn stuck_reply_blocks_no_other_reply_and_no_session() {
    let host = new_host(Build::Plain, "backoff_ms = 3600000\n");
    let receiver = Receiver::new(|got, _| {
        let text = got.body["text"].as_str().unwrap_or_default();
        match got.body["sender"].as_str() {
            Some("bob") => Response::Hang,
            _ if text.contains("dead") => Response::Status(410),
            _ if text.contains("later") => Response::Status(500),
            _ => Response::Status(200),
        }
    });
    let hook = Hook::add(&host, "shop", &receiver, &[]);
    host.ctl(&["person", "link", "owner", "shop:bob", "--yes"]).ok();
    let stuck = hook.send("b1", &json!({ "sender": "bob", "text": "hello" }).to_string()).1;
    let dies = hook.say("e1", "echo dead");
    receipt(&host, &dies, "dead");
    let waits = hook.say("e2", "echo later");
    wait_for("the first attempt to be recorded", || host.entries("delivery.retried").len() == 1);
    let arrives = hook.say("e3", "echo now");
    receipt(&host, &arrives, "received");
    receipt(&host, &waits, "pending");
    receipt(&host, stuck["message_id"].as_str().expect("an id"), "sent");
    assert!(host.say("a", "hello").contains("Hello"), "the loopback is not blocked");
}

#[test]
fn reply_on_a_removed_channel_is_dead_and_never_delivered() {
    let host = new_host(Build::Plain, "backoff_ms = 3600000\n");
    let receiver = Receiver::new(|_, _| Response::Status(500));
    let hook = Hook::add(&host, "shop", &receiver, &[]);
    let message = hook.say("e1", "hello");
    wait_for("the first attempt", || receiver.replies().len() == 1);
    wait_for("the attempt to be recorded", || host.entries("delivery.retried").len() == 1);
    host.ctl(&["channel", "remove", "shop", "--yes"]).ok();
    // The next attempt is due in an hour, but a missing channel ends the wait.
    let why = receipt(&host, &message, "dead");
    assert_ne!(why["message"]["status"], "delivered");
    assert!(dead_letters(&host)[0]["reason"].as_str().is_some_and(|why| why.contains("channel was removed")), "{why}");
    host.ctl(&["delivery", "retry", &message]).ok();
    receipt(&host, &message, "dead");
    // A new channel of the same name does not get the delivery.
    let other = Receiver::accepting();
    let hook = Hook::add(&host, "shop", &other, &[]);
    host.ctl(&["delivery", "retry", &message]).ok();
    receipt(&host, &message, "dead");
    assert!(other.replies().is_empty());
    drop(hook);
    assert_eq!(receiver.replies().len(), 1);
    assert!(
        host.entries("delivery.received").iter().all(|entry| entry["data"]["turn"].is_null()),
        "only notices were delivered"
    );
}

#[test]
fn backup_in_place_does_not_resend_open_replies() {
    let host = new_host(Build::Plain, SOON);
    let receiver = Receiver::new(|_, _| Response::Later(503, "3600"));
    let hook = Hook::add(&host, "shop", &receiver, &[]);
    let message = hook.say("e1", "hello");
    wait_for("the first attempt", || receiver.replies().len() == 1);
    wait_for("the retry to be scheduled", || host.entries("delivery.retried").len() == 1);
    let file = crate::security::tamper::outside(&host).join("b.backup").display().to_string();
    host.ctl(&["backup", "create", &file]).ok();
    host.down();
    host.ctl(&["backup", "restore", &file, "--replace", "--yes"]).ok();
    host.up();
    receipt(&host, &message, "unknown");
    assert_eq!((dead_letters(&host).len(), host.entries("delivery.unknown").len()), (1, 1));
    assert_eq!(receiver.replies().len(), 1, "no delivery is sent twice");
}

#[test]
fn restored_record_does_not_resend_open_replies() {
    let host = new_host(Build::Plain, SOON);
    let heads = crate::security::tamper::outside(&host);
    let config = host.home.join("config.toml");
    let settings = std::fs::read_to_string(&config).expect("read") + &format!("[ledger]\nheads = {heads:?}\n");
    host.configure(&settings);
    let busy = || Receiver::new(|_, _| Response::Later(503, "3600"));
    let (receiver, other) = (busy(), busy());
    let hook = Hook::add(&host, "shop", &receiver, &[]);
    let twice = Hook::add(&host, "desk", &other, &["--idempotent"]);
    let (message, shown_once) = (hook.say("e1", "hello"), twice.say("e2", "hello"));
    wait_for("the first attempt of both", || (receiver.replies().len(), other.replies().len()) == (1, 1));
    wait_for("both retries to be scheduled", || host.entries("delivery.retried").len() == 2);
    host.down();
    let kept = host.home.with_file_name("kept");
    copy_with_owners(&host.home, &kept);
    host.up();
    host.say("a", "echo said after the backup");
    host.down();
    std::fs::remove_dir_all(&host.home).expect("removed");
    std::fs::rename(&kept, &host.home).expect("put back");
    host.up();
    receipt(&host, &message, "unknown");
    let letters = dead_letters(&host);
    assert_eq!(letters.len(), 1, "the delivery of the idempotent channel is retried: {letters:?}");
    assert_eq!((host.entries("delivery.unknown").len(), host.entries("state.generation").len()), (1, 1));
    let why = host.ctl(&["--json", "why", &shown_once]).ok().json();
    assert_eq!(count_stages(&why, "delivery.unknown"), 0, "{why}");
    // Another start does not begin another generation.
    host.restart();
    assert_eq!((host.entries("delivery.unknown").len(), host.entries("state.generation").len()), (1, 1));
    assert_eq!(receiver.replies().len(), 1, "no delivery is sent twice");
}
