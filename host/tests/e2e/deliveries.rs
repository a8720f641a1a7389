//! Tests of outgoing deliveries: safe retries, no automatic retry after an unknown outcome, and no silent loss.
//!
//! The receiver checks each signature; fail points of the real programs kill the host. See `webhook`.

use crate::support::client::{self, Client};
use crate::support::hooks::{Hook, Receiver, Response, receipt, world};
use crate::support::host_fixture::{Build, World, alive, copy_as_is, wait_for};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A short backoff.
const SOON: &str = "backoff_ms = 20\n";

fn dead_letters(world: &World) -> Vec<Value> {
    world.ctl(&["--json", "delivery", "list"]).ok().json().as_array().expect("a list").clone()
}

/// Returns the notices in the owner's conversation with the agent.
fn notices(world: &World) -> Vec<String> {
    let history = Client::of(world).history("a");
    history.iter().filter(|line| line["author"] == "host").map(|line| line["text"].to_string()).collect()
}

fn count_stages(why: &Value, stage_name: &str) -> usize {
    why["stages"].as_array().expect("a list").iter().filter(|stage| stage["stage"] == stage_name).count()
}

#[test]
fn reply_is_retried_with_the_same_id_until_it_is_received() {
    let world = world(Build::Plain, SOON);
    let receiver = Receiver::new(|_, before| match before {
        0 => Response::Status(500),
        1 => Response::Later(503, "0"),
        2 => Response::Status(429),
        _ => Response::Status(202),
    });
    let hook = Hook::add(&world, "shop", &receiver, &[]);
    let message = hook.say("e1", "hello");
    let why = receipt(&world, &message, "received");
    let replies = receiver.replies();
    assert_eq!(replies.len(), 4);
    assert!(replies.iter().all(|got| got.id == replies[0].id && got.body == replies[0].body), "{replies:?}");
    assert_eq!((count_stages(&why, "delivery.sending"), count_stages(&why, "delivery.retried")), (4, 3), "{why}");
    assert_eq!(count_stages(&why, "delivery.received"), 1);
    assert!(dead_letters(&world).is_empty() && notices(&world).is_empty());
}

#[test]
fn reply_is_dead_after_its_last_attempt_and_is_reported() {
    let world = world(Build::Plain, "backoff_ms = 1\nattempts_max = 3\n");
    let receiver = Receiver::new(|_, _| Response::Status(500));
    let hook = Hook::add(&world, "shop", &receiver, &["--idempotent"]);
    let message = hook.say("e1", "hello");
    let why = receipt(&world, &message, "dead");
    assert_eq!(receiver.replies().len(), 3);
    assert!(why["summary"].as_str().is_some_and(|words| words.contains("could not be delivered")), "{why}");
    let letters = dead_letters(&world);
    assert_eq!((&letters[0]["attempts"], &letters[0]["receipt"]), (&3.into(), &"dead".into()), "{letters:?}");
    assert!(letters[0]["reason"].as_str().is_some_and(|why| why.contains("500")), "{letters:?}");
}

#[test]
fn refused_reply_is_dead_with_a_notice_and_can_be_resent() {
    let world = world(Build::Plain, SOON);
    let open = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&open);
    let receiver = Receiver::new(move |_, _| Response::Status(if asked.load(Ordering::SeqCst) { 200 } else { 410 }));
    let hook = Hook::add(&world, "shop", &receiver, &[]);
    let message = hook.say("e1", "hello");
    receipt(&world, &message, "dead");
    assert_eq!(receiver.replies().len(), 1, "status 410 is final");
    let found = notices(&world);
    assert!(found.len() == 1 && found[0].contains("did not arrive") && found[0].contains("410"), "{found:?}");
    let letters = dead_letters(&world);
    assert_eq!((letters.len(), &letters[0]["recipient"]), (1, &"ann".into()), "{letters:?}");
    let warnings = world.status()["host"]["warnings"].to_string();
    assert!(warnings.contains("1 answer did not arrive"), "{warnings}");
    // A member does not see another person's dead letter.
    world.ctl(&["person", "add", "Bob", "--role", "member"]).ok();
    let bob = client::Raw::of_person(&world, "Bob");
    assert_eq!(bob.get("/v1/dead").1, json!([]));
    let id = letters[0]["delivery_id"].as_str().expect("an id");
    assert_eq!(bob.ask("POST", &format!("/v1/dead/{id}/retry"), "").0, 404);
    open.store(true, Ordering::SeqCst);
    world.ctl(&["delivery", "retry", id]).ok();
    receipt(&world, &message, "received");
    let replies = receiver.replies();
    assert!(replies.len() == 2 && replies.iter().all(|got| got.id == id), "{replies:?}");
    assert!(dead_letters(&world).is_empty());
    world.ctl(&["delivery", "retry", id]).refused("no undelivered answer");
    open.store(false, Ordering::SeqCst);
    let second = hook.say("e2", "hello");
    receipt(&world, &second, "dead");
    world.ctl(&["delivery", "drop", &second]).ok();
    receipt(&world, &second, "dropped");
    assert!(dead_letters(&world).is_empty());
    assert_eq!((world.entries("delivery.again").len(), world.entries("delivery.dropped").len()), (1, 1));
    world.ctl(&["audit", "verify"]).ok();
}

/// Sends a reply, kills the host at this fail point, and restarts it.
fn killed_while_sending(point: &str, more: &[&str]) -> (World, Receiver, String) {
    let mut world = world(Build::Failpoints, SOON);
    let receiver = Receiver::accepting();
    let mut hook = Hook::add(&world, "shop", &receiver, more);
    world.down();
    world.set_env("IRONCLAW_FAILPOINT", Some(point));
    world.up();
    world.set_env("IRONCLAW_FAILPOINT", None);
    hook.follow_restart(&world);
    let host = world.pid().expect("the host runs");
    let message = hook.say("e1", "hello");
    wait_for(&format!("the host to die at {point}"), || !alive(host));
    world.up();
    hook.follow_restart(&world);
    (world, receiver, message)
}

#[test]
fn reply_with_unknown_outcome_is_not_retried_automatically() {
    for (point, sent) in [("parcel_taken", 0), ("parcel_sent", 1)] {
        let (world, receiver, message) = killed_while_sending(point, &[]);
        let why = receipt(&world, &message, "unknown");
        assert!(why["summary"].as_str().is_some_and(|words| words.contains("is unknown")), "{point}: {why}");
        assert_eq!(why["message"]["status"], "completed", "{point}");
        let found = notices(&world);
        assert!(found.len() == 1 && found[0].contains("may not have arrived"), "{point}: {found:?}");
        assert_eq!(dead_letters(&world)[0]["receipt"], "unknown", "{point}");
        // Another start, with other deliveries, does not send it either.
        world.down();
        world.up();
        let mut hook = Hook { name: "shop".to_owned(), secret: String::new(), hook: String::new() };
        hook.follow_restart(&world);
        let desk = Hook::add(&world, "desk", &Receiver::accepting(), &[]);
        drop((hook, desk));
        receipt(&world, &message, "unknown");
        assert_eq!(receiver.replies().len(), sent, "{point}");
        assert_eq!(world.entries("delivery.unknown").len(), 1, "{point}");
        world.ctl(&["delivery", "retry", &message]).ok();
        receipt(&world, &message, "received");
        assert_eq!(receiver.replies().len(), sent + 1, "{point}");
        world.ctl(&["audit", "verify"]).ok();
    }
}

#[test]
fn idempotent_reply_is_retried_with_its_id_after_a_crash() {
    let (world, receiver, message) = killed_while_sending("parcel_sent", &["--idempotent"]);
    let why = receipt(&world, &message, "received");
    let replies = receiver.replies();
    assert!(replies.len() == 2 && replies[0].id == replies[1].id && replies[0].body == replies[1].body, "{replies:?}");
    assert_eq!((count_stages(&why, "delivery.sending"), count_stages(&why, "delivery.unknown")), (2, 0), "{why}");
    assert!(notices(&world).is_empty());
}

#[test]
fn consecutive_lost_replies_produce_one_notice() {
    let world = world(Build::Plain, SOON);
    let gone = Receiver::new(|_, _| Response::Status(410));
    let hook = Hook::add(&world, "shop", &gone, &[]);
    for event in ["e1", "e2", "e3"] {
        receipt(&world, &hook.say(event, "hello"), "dead");
    }
    assert_eq!((dead_letters(&world).len(), notices(&world).len()), (3, 1));
}

#[test]
fn broken_connection_is_retried_only_if_idempotent() {
    let world = world(Build::Plain, SOON);
    let receiver = Receiver::new(|_, before| if before == 0 { Response::Close } else { Response::Status(200) });
    let hook = Hook::add(&world, "shop", &receiver, &[]);
    receipt(&world, &hook.say("e1", "hello"), "unknown");
    receipt(&world, &hook.say("e2", "hello"), "received");
    assert_eq!(receiver.replies().len(), 2);
    let other = Receiver::new(|_, before| if before == 0 { Response::Close } else { Response::Status(200) });
    let hook = Hook::add(&world, "desk", &other, &["--idempotent"]);
    receipt(&world, &hook.say("e1", "hello"), "received");
    assert_eq!(other.replies().len(), 2);
}

#[test]
fn stuck_reply_blocks_no_other_reply_and_no_session() {
    let world = world(Build::Plain, "backoff_ms = 3600000\n");
    let receiver = Receiver::new(|got, _| {
        let text = got.body["text"].as_str().unwrap_or_default();
        match got.body["sender"].as_str() {
            Some("bob") => Response::Hang,
            _ if text.contains("dead") => Response::Status(410),
            _ if text.contains("later") => Response::Status(500),
            _ => Response::Status(200),
        }
    });
    let hook = Hook::add(&world, "shop", &receiver, &[]);
    world.ctl(&["person", "link", "owner", "shop:bob"]).ok();
    let stuck = hook.send("b1", &json!({ "sender": "bob", "text": "hello" }).to_string()).1;
    let dies = hook.say("e1", "echo dead");
    receipt(&world, &dies, "dead");
    let waits = hook.say("e2", "echo later");
    wait_for("the first attempt to be recorded", || world.entries("delivery.retried").len() == 1);
    let arrives = hook.say("e3", "echo now");
    receipt(&world, &arrives, "received");
    receipt(&world, &waits, "pending");
    receipt(&world, stuck["message_id"].as_str().expect("an id"), "sent");
    assert!(world.say("a", "hello").contains("Hello"), "the loopback is not blocked");
}

#[test]
fn reply_on_a_removed_channel_is_dead_and_never_delivered() {
    let world = world(Build::Plain, "backoff_ms = 3600000\n");
    let receiver = Receiver::new(|_, _| Response::Status(500));
    let hook = Hook::add(&world, "shop", &receiver, &[]);
    let message = hook.say("e1", "hello");
    wait_for("the first attempt", || receiver.replies().len() == 1);
    wait_for("the attempt to be recorded", || world.entries("delivery.retried").len() == 1);
    world.ctl(&["channel", "remove", "shop", "--yes"]).ok();
    // The next attempt is due in an hour, but a missing channel ends the wait.
    let why = receipt(&world, &message, "dead");
    assert_ne!(why["message"]["status"], "delivered");
    assert!(dead_letters(&world)[0]["reason"].as_str().is_some_and(|why| why.contains("channel was removed")), "{why}");
    world.ctl(&["delivery", "retry", &message]).ok();
    receipt(&world, &message, "dead");
    // A new channel of the same name does not get the delivery.
    let other = Receiver::accepting();
    let hook = Hook::add(&world, "shop", &other, &[]);
    world.ctl(&["delivery", "retry", &message]).ok();
    receipt(&world, &message, "dead");
    assert!(other.replies().is_empty());
    drop(hook);
    assert_eq!(receiver.replies().len(), 1);
    assert!(
        world.entries("delivery.received").iter().all(|entry| entry["data"]["turn"].is_null()),
        "only notices were delivered"
    );
}

#[test]
fn restored_record_does_not_resend_open_replies() {
    let world = world(Build::Plain, SOON);
    let heads = crate::security::tamper::outside(&world);
    let config = world.home.join("config.toml");
    let settings = std::fs::read_to_string(&config).expect("read") + &format!("[ledger]\nheads = {heads:?}\n");
    world.configure(&settings);
    let busy = || Receiver::new(|_, _| Response::Later(503, "3600"));
    let (receiver, other) = (busy(), busy());
    let hook = Hook::add(&world, "shop", &receiver, &[]);
    let twice = Hook::add(&world, "desk", &other, &["--idempotent"]);
    let (message, shown_once) = (hook.say("e1", "hello"), twice.say("e2", "hello"));
    wait_for("the first attempt of both", || (receiver.replies().len(), other.replies().len()) == (1, 1));
    wait_for("both retries to be scheduled", || world.entries("delivery.retried").len() == 2);
    world.down();
    let kept = world.home.with_file_name("kept");
    copy_as_is(&world.home, &kept);
    world.up();
    world.say("a", "echo said after the backup");
    world.down();
    std::fs::remove_dir_all(&world.home).expect("removed");
    std::fs::rename(&kept, &world.home).expect("put back");
    world.up();
    receipt(&world, &message, "unknown");
    let letters = dead_letters(&world);
    assert_eq!(letters.len(), 1, "the delivery of the idempotent channel is retried: {letters:?}");
    assert_eq!((world.entries("delivery.unknown").len(), world.entries("state.generation").len()), (1, 1));
    let why = world.ctl(&["--json", "why", &shown_once]).ok().json();
    assert_eq!(count_stages(&why, "delivery.unknown"), 0, "{why}");
    // Another start does not begin another generation.
    world.down();
    world.up();
    assert_eq!((world.entries("delivery.unknown").len(), world.entries("state.generation").len()), (1, 1));
    assert_eq!(receiver.replies().len(), 1, "no delivery is sent twice");
}
