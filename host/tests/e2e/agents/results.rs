//! Tests of the answers that return: each is taken into one turn of the session that asked, once, whatever happens in between.

use super::{connect, group, host_with, idle, pair, replies, taken, target, turns};
use crate::support::client::{Client, Raw};
use crate::support::hooks::{Hook, Receiver};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use serde_json::Value;

/// The number of messages between agents that are answers.
fn answers(host: &TestHost) -> usize {
    host.entries("agent.answered").len() + host.entries("agent.refused").len()
}

fn received(host: &TestHost) -> usize {
    let answered = host.entries("agent.answered");
    let is_of_agent =
        |entry: &&Value| answered.iter().any(|other| other["data"]["delivery"] == entry["data"]["delivery"]);
    host.entries("delivery.received").iter().filter(is_of_agent).count()
}

#[test]
fn a1_answer_is_kept_while_the_agent_that_asked_is_in_a_turn() {
    let rules = "[[rule]]\nwhen = '^slow$'\nreply = 'slow is done'\nwait_ms = 2000\n";
    let host = pair("", rules);
    let client = Client::of(&host);
    client.send("a", "send echo the result to b", "e1").expect("accepted");
    wait_for("the request", || host.entries("agent.sent").len() == 1);
    client.send("a", "slow", "e2").expect("accepted");
    taken(&host, 1);
    idle(&host);
    assert_eq!((answers(&host), received(&host)), (1, 1));
    assert!(replies(&host, "a").iter().any(|reply| reply == "slow is done"));
}

#[test]
fn a2_answer_waits_for_as_long_as_the_session_is_parked() {
    let host = pair("", "[[rule]]\nwhen = '^slow$'\nreply = 'done'\nwait_ms = 600000\n");
    host.chat("a", "send slow to b");
    wait_for("the request", || host.entries("agent.sent").len() == 1);
    let target = target(&host, 0);
    turns(&host, &target, 1);
    host.ctl(&["panic"]).ok();
    assert_eq!(received(&host), 0);
    host.restart();
    assert_eq!(received(&host), 0, "no attempt gives it up during the emergency stop");
    host.ctl(&["resume"]).ok();
    turns(&host, &target, 2);
    host.ctl(&["session", "cancel", &target]).ok();
    taken(&host, 1);
    idle(&host);
    assert_eq!((answers(&host), received(&host)), (1, 1));
}

#[test]
fn a3_a6_answer_arrives_once_after_a_kill_at_each_step() {
    let mut host = host_with(Build::Failpoints, "", "");
    group(&host, &["a", "b"], "");
    connect(&host, "a", "b");
    for (n, point) in ["call_started", "accept", "intent", "turn_open", "project"].into_iter().enumerate() {
        host.down();
        host.up_failing_at(point);
        let sent = Client::of(&host).send("a", "send echo the result to b", &format!("e{n}"));
        drop(sent);
        wait_for("the kill", || host.pid().is_none());
        host.up();
        idle(&host);
        let sent = host.entries("agent.sent").len();
        taken(&host, sent);
        idle(&host);
        assert_eq!((answers(&host), received(&host)), (sent, sent), "{point}");
    }
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn a4_answer_is_not_pruned_before_it_is_taken() {
    let rules = "[[rule]]\nwhen = '^slow$'\nreply = 'done'\nwait_ms = 1500\n";
    let host = pair("[items]\nkeep_days = 1\n", rules);
    host.chat("a", "send slow to b");
    wait_for("the request", || host.entries("agent.sent").len() == 1);
    host.ctl(&["panic"]).ok();
    let mut host = host;
    host.down();
    host.shift_clock(3 * 24 * 3600 * 1000);
    host.up();
    host.ctl(&["resume"]).ok();
    idle(&host);
    assert_eq!(answers(&host), 1);
    taken(&host, 1);
}

#[test]
fn a5_queued_answer_is_not_reported_as_delivered() {
    let host = pair("", "[[rule]]\nwhen = '^slow$'\nreply = 'done'\nwait_ms = 600000\n");
    let client = Client::of(&host);
    let answer = host.say("a", "send slow to b");
    assert!(answer.contains("has your message") && !answer.contains("delivered"), "{answer}");
    let asking = client.send("a", "slow", "e2").expect("accepted");
    let asking = asking["session_id"].as_str().expect("an id");
    turns(&host, asking, 2);
    let target = target(&host, 0);
    turns(&host, &target, 1);
    host.ctl(&["session", "cancel", &target]).ok();
    wait_for("the answer", || host.entries("agent.answered").len() == 1);
    let request = host.entries("agent.sent")[0]["data"]["message"].as_str().expect("an id").to_owned();
    let status = Raw::of(&host).get(&format!("/v1/messages/{request}")).1["status"].clone();
    assert_eq!((received(&host), status.as_str()), (0, Some("completed")), "it is answered and not delivered");
    host.ctl(&["session", "cancel", asking]).ok();
    taken(&host, 1);
    assert_eq!(Raw::of(&host).get(&format!("/v1/messages/{request}")).1["status"], "delivered");
}

#[test]
fn a7_answer_comes_once_after_a_message_to_the_person() {
    let receiver = Receiver::accepting();
    let host = crate::support::hooks::new_host(Build::Plain, "");
    Hook::add(&host, "shop", &receiver, &[]);
    host.agent("b");
    host.ctl(&["destination", "add", "b", "ana", "--channel", "shop", "--to", "ann", "--yes"]).ok();
    host.ctl(&["agent", "set", "b", "--mode", "dangerous_warn", "--yes"]).ok();
    group(&host, &["a", "b"], "send_message");
    connect(&host, "a", "b");
    host.chat("a", "send send hello to ana to b");
    taken(&host, 1);
    idle(&host);
    assert_eq!(receiver.replies().iter().filter(|got| got.body["type"] == "message").count(), 1);
    assert_eq!((answers(&host), received(&host)), (1, 1));
}

#[test]
fn a8_empty_reply_to_an_answer_is_no_failed_delivery() {
    let host = pair("", "[[rule]]\nwhen = '^nothing$'\nempty = true\n");
    host.chat("a", "send echo nothing to b");
    taken(&host, 1);
    idle(&host);
    assert_eq!((answers(&host), received(&host)), (1, 1));
    assert_eq!(host.entries("agent.sent").len(), 1);
}

#[test]
fn a9_agent_that_asked_learns_that_there_is_no_answer() {
    let rules =
        "[[rule]]\nwhen = '^slow$'\nreply = 'done'\nwait_ms = 600000\n[[rule]]\nwhen = '^break$'\nfail = 'broken'\n";
    let host = pair("", rules);
    // A failed model.
    host.chat("a", "send break to b");
    taken(&host, 1);
    // A removed session.
    host.chat("a", "send slow to b");
    wait_for("the request", || host.entries("agent.sent").len() == 2);
    let target = target(&host, 1);
    host.ctl(&["session", "remove", &target, "--yes"]).ok();
    wait_for("the word of the host", || host.entries("agent.refused").len() == 1);
    assert_eq!(host.entries("agent.refused")[0]["data"]["reason"], "session_removed");
}

#[test]
fn a9_answer_to_a_removed_session_is_a_dead_letter() {
    let host = pair("", "[[rule]]\nwhen = '^slow$'\nreply = 'done'\nwait_ms = 600000\n");
    let client = Client::of(&host);
    let asking = client.send_in("a", "gone", "send slow to b", "e1").expect("accepted");
    wait_for("the request", || host.entries("agent.sent").len() == 1);
    client.send_in("a", "gone", "send slow to b", "e2").expect("accepted");
    wait_for("the second request", || host.entries("agent.sent").len() == 2);
    let session = asking["session_id"].as_str().expect("an id").to_owned();
    let (target, second) = (target(&host, 0), target(&host, 1));
    assert_eq!(second, target);
    turns(&host, &target, 1);
    idle_of(&host, &session);
    host.ctl(&["session", "remove", &session, "--yes"]).ok();
    // The first request is in a turn. Its answer reaches no session, and its person has a notice.
    host.ctl(&["session", "cancel", &target]).ok();
    wait_for("the dead letter", || host.entries("delivery.dead").len() == 1);
    let told = Client::of(&host).history("b");
    assert!(told.iter().any(|line| line["text"].to_string().contains("answer to another agent")), "{told:?}");
    // The second one still waits. The host withdraws it without a turn: its chain begins with a removed message.
    idle_of(&host, &target);
    turns(&host, &target, 1);
    assert_eq!(host.entries("delivery.dead").len(), 1);
}

fn idle_of(host: &TestHost, session: &str) {
    wait_for("the end of the turn", || {
        let status = host.status();
        let sessions = status["sessions"].as_array().expect("a list").clone();
        sessions.iter().filter(|found| found["id"] == session).all(|found| found["waiting"] == 0)
    });
}

#[test]
fn answer_goes_to_the_address_of_the_message_that_asked() {
    let receiver = Receiver::accepting();
    let host = crate::support::hooks::new_host(Build::Plain, "");
    let hook = Hook::add(&host, "shop", &receiver, &[]);
    host.agent("b");
    host.ctl(&["agent", "connect", "a", "shop", "--sharing", "agent", "--yes"]).ok();
    host.add_linked_person("Bob", "shop:bob");
    group(&host, &["a", "b"], "");
    connect(&host, "a", "b");
    let say = |id: &str, sender: &str, text: &str| {
        let body = serde_json::json!({ "sender": sender, "text": text, "quoted": [] }).to_string();
        assert_eq!(hook.send(id, &body).0, 200);
    };
    say("e1", "ann", "send echo for ann to b");
    wait_for("the request", || host.entries("agent.sent").len() == 1);
    say("e2", "bob", "echo for bob");
    taken(&host, 1);
    let to = |sender: &str| {
        let replies = receiver.replies();
        replies.iter().filter(|got| got.body["sender"] == sender && got.body["type"] == "reply").count()
    };
    // Ann gets the reply to her message and the one to its answer.
    wait_for("the replies", || to("ann") + to("bob") == 3);
    assert_eq!((to("ann"), to("bob")), (2, 1));
}

#[test]
fn chain_survives_a_turn_that_is_tried_again() {
    let rules = "[[rule]]\nwhen = '^slow$'\nreply = 'done'\nwait_ms = 1500\n";
    let host = host_with(Build::Plain, "", rules);
    host.agent("c");
    group(&host, &["a", "b", "c"], "send_message,write_file");
    connect(&host, "a", "b");
    connect(&host, "b", "c");
    host.chat("a", "send send slow to c to b");
    wait_for("both requests", || host.entries("agent.sent").len() == 2);
    // The turn of b may still be open: its sandbox dies, and the message is tried again or is answered already.
    let of_b = host.entries("agent.sent")[0]["data"]["session"].clone();
    let sessions = host.status()["sessions"].as_array().expect("a list").clone();
    if let Some(pid) = sessions.iter().find(|session| session["id"] == of_b).and_then(|session| session["pid"].as_i64())
    {
        crate::support::host_fixture::kill(i32::try_from(pid).expect("a process"));
    }
    idle(&host);
    wait_for("the answers", || answers(&host) >= 3 && answers(&host) == received(&host));
    assert!(host.entries("delivery.dead").is_empty());
}
