//! Tests of incoming webhooks: a sender without the secret gets no information, and an acknowledged message is in the record.
//!
//! They use the real daemon and its port. See `deliveries` for outgoing messages.

use crate::support::client::{self, check_refused};
use crate::support::hooks::{Hook, Receiver, Response, add_shop, host_with_shop, new_host, now, receipt};
use crate::support::host_fixture::{Build, TestHost, alive, wait_for};
use crate::support::needs::needs;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

fn messages(host: &TestHost) -> usize {
    host.entries("message.recorded").len()
}

#[test]
fn unsigned_event_is_refused_and_reveals_no_channel() {
    let (host, receiver, hook) = host_with_shop("");
    let other = Hook::add(&host, "desk", &receiver, &[]);
    let (body, at) = (Hook::words("hello"), now());
    let signature = hook.sign("e1", at, &body);
    let at = at.to_string();
    let headers = |id, at, signature| [("webhook-id", id), ("webhook-timestamp", at), ("webhook-signature", signature)];
    let right: [(&str, &str); 3] = headers("e1", &at, &signature);
    let github = [("x-github-delivery", "e1"), ("x-hub-signature-256", "sha256=00")];
    let svix = [("svix-id", "e1"), ("svix-timestamp", at.as_str()), ("svix-signature", "v1,AAAA")];
    // Twice each, and two more: the limit on refusals with a reason is 20.
    let unsigned: [(Vec<(&str, &str)>, String); 9] = [
        (vec![], body.clone()),
        (github.to_vec(), body.clone()),
        (svix.to_vec(), body.clone()),
        ([right.as_slice(), &[("webhook-id", "e2")]].concat(), body.clone()),
        (headers("e2", &at, &signature).to_vec(), body.clone()),
        (headers("e1", "1", &signature).to_vec(), body.clone()),
        (headers("e1", &at, "v1,AAAA").to_vec(), body.clone()),
        (right.to_vec(), Hook::words("hello!")),
        (right[1..].to_vec(), body.clone()),
    ];
    let unknown = Hook { name: "unknown".to_owned(), ..hook.clone() };
    for (headers, body) in &unsigned {
        let answer = hook.post(headers, body);
        check_refused(&answer, 401, "signature_invalid");
        assert_eq!(unknown.post(headers, body).1, answer.1, "the answer depends on the request alone: {headers:?}");
    }
    let (wrong, others) = (unknown.post(&right, &body), other.post(&right, &body));
    check_refused(&wrong, 401, "signature_invalid");
    assert_eq!(wrong.1, others.1);
    assert_eq!(messages(&host), 0);
    assert!(host.entries("webhook.refused").len() <= 2, "the entries are bounded");
    assert_eq!(hook.post(&right, &body).0, 200, "an unused event id is still valid");
}

#[test]
fn signed_event_with_wrong_time_shape_or_sender_is_refused() {
    let (host, _receiver, hook) = host_with_shop("");
    let body = Hook::words("hello");
    let at_time = |at: i64| {
        let signature = hook.sign("e", at, &body);
        hook.post(
            &[("webhook-id", "e"), ("webhook-timestamp", &at.to_string()), ("webhook-signature", &signature)],
            &body,
        )
    };
    check_refused(&at_time(now() - 400), 401, "timestamp_outside");
    check_refused(&at_time(now() + 400), 401, "timestamp_outside");
    check_refused(&hook.send("e", &json!({ "sender": "eve", "text": "hello" }).to_string()), 403, "sender_unknown");
    check_refused(&hook.send("e", &json!({ "sender": "ann ", "text": "hello" }).to_string()), 403, "sender_unknown");
    check_refused(&hook.send("e", "{}"), 400, "request_malformed");
    check_refused(&hook.send("e", r#"{"sender":"ann","sender":"ann","text":"x"}"#), 400, "request_malformed");
    check_refused(&hook.send("e", &Hook::words(" ")), 400, "message_empty");
    check_refused(&hook.send("e", &Hook::words(&"x".repeat(300 * 1024))), 413, "message_too_long");
    check_refused(&hook.send("a b", &body), 400, "event_id");
    // The host does not read the rest of a body over the limit.
    let mut stream = hook.connect();
    let path = hook.path();
    write!(stream, "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n\r\n").expect("sent");
    let mut start = [0; 12];
    stream.read_exact(&mut start).expect("answered");
    assert_eq!(&start, b"HTTP/1.1 413");
    for (method, path, status) in
        [("GET", hook.path().as_str(), 405), ("POST", "/hooks/", 404), ("POST", "/v1/status", 404)]
    {
        let (found, _, _) = client::exchange(hook.connect(), method, path, &[("host", "x")], "");
        assert_eq!(found, status, "{method} {path}");
    }
    host.ctl(&["agent", "disconnect", "a", "shop"]).ok();
    check_refused(&hook.send("e", &body), 503, "channel_unheard");
    assert_eq!(messages(&host), 0);
    assert_eq!(host.status()["sessions"], json!([]));
    host.ctl(&["agent", "connect", "a", "shop", "--yes"]).ok();
    hook.say("e", "hello");
}

#[test]
fn repeated_event_is_one_message_and_a_reused_id_is_refused() {
    let (host, receiver, mut hook) = host_with_shop("");
    let message = hook.say("e1", "hello");
    assert_eq!(hook.say("e1", "hello"), message, "a retry with a new signature is the same message");
    check_refused(&hook.send("e1", &Hook::words("hello!")), 409, "event_reused");
    let other = json!({ "sender": "ann", "text": "hello", "thread": "t" }).to_string();
    check_refused(&hook.send("e1", &other), 409, "event_reused");
    receipt(&host, &message, "received");
    host.restart();
    hook.follow_restart(&host);
    assert_eq!(hook.say("e1", "hello"), message, "the id is known after a restart");
    let second = hook.say("e2", "hello");
    assert_ne!(second, message);
    receipt(&host, &second, "received");
    assert_eq!((messages(&host), receiver.replies().len()), (2, 2));
}

#[test]
fn flood_is_throttled_and_locks_no_one_out() {
    let (host, _receiver, hook) = host_with_shop("requests_per_minute = 5\n");
    let other = Receiver::accepting();
    let desk = Hook::add(&host, "desk", &other, &[]);
    let mut slowed = 0;
    for _ in 0..200 {
        let (status, answer) = hook.post(&[("webhook-id", "e")], "{}");
        slowed += u32::from(status == 429);
        assert!(status == 401 || status == 429, "{answer}");
    }
    assert!(slowed > 50, "{slowed}");
    let message = hook.say("e1", "hello");
    let statuses: Vec<u16> = (0..20).map(|n| hook.send(&format!("f{n}"), &Hook::words("hello")).0).collect();
    assert!(statuses.contains(&429) && statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
    desk.say("e1", "hello");
    receipt(&host, &message, "received");
    // Incomplete requests occupy connections, but another client still gets one.
    let half: Vec<TcpStream> = (0..80)
        .map(|_| {
            let mut stream = hook.connect();
            stream.write_all(b"POST /hooks/shop HTTP/1.1\r\nhost: x\r\ncontent-le").expect("sent");
            stream
        })
        .collect();
    desk.say("e2", "hello");
    drop(half);
    let noted = host.entries("webhook.refused");
    assert!(noted.len() <= 6, "{noted:?}");
}

#[test]
fn message_is_acknowledged_only_after_it_is_stored() {
    let mut host = new_host(Build::Failpoints, "");
    let (receiver, mut hook) = add_shop(&host);
    host.down();
    host.up_failing_at("record");
    hook.follow_restart(&host);
    let host_pid = host.pid().expect("the host runs");
    let (body, at) = (Hook::words("hello"), now());
    let mut stream = hook.connect();
    let (signature, path) = (hook.sign("e1", at, &body), hook.path());
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: x\r\nwebhook-id: e1\r\nwebhook-timestamp: {at}\r\nwebhook-signature: {signature}\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .expect("sent");
    let mut answer = String::new();
    // The connection may end with an error. Only the received bytes count.
    let _ = stream.read_to_string(&mut answer);
    assert_eq!(answer, "", "the message was acknowledged before it was stored");
    wait_for("the host to die", || !alive(host_pid));
    host.up();
    hook.follow_restart(&host);
    let message = hook.say("e1", "hello");
    receipt(&host, &message, "received");
    let recorded: Vec<Value> =
        host.entries("message.recorded").iter().map(|entry| entry["data"]["message"].clone()).collect();
    assert_eq!(recorded, [Value::from(message)], "the message is recorded once");
    assert_eq!(receiver.replies().len(), 1);
}

#[test]
fn linked_sender_gets_signed_replies_and_threads_are_separate() {
    let (host, receiver, hook) = host_with_shop("");
    let tested = host.ctl(&["--json", "channel", "test", "shop"]).ok().json();
    assert_eq!(tested["received"], true, "{tested}");
    assert_eq!(receiver.got()[0].body["type"], "test");
    let say = |id: &str, thread: &str, text: &str| {
        let body =
            json!({ "sender": "ann", "thread": thread, "text": text, "files": [{ "name": "x.txt", "text": "y" }] });
        let (status, answer) = hook.send(id, &body.to_string());
        assert_eq!(status, 200, "{answer}");
        let message = answer["message_id"].as_str().expect("an id").to_owned();
        receipt(&host, &message, "received");
        message
    };
    say("e1", "one", "my name is Ada");
    let message = say("e2", "one", "what is my name?");
    say("e3", "two", "what is my name?");
    let replies = receiver.replies();
    let text = |place: usize| replies[place].body["text"].as_str().expect("text").to_owned();
    assert!(text(1).contains("Your name is Ada.") && text(2).contains("not told me"), "{replies:?}");
    let body = &replies[1].body;
    assert_eq!(body["delivery"], replies[1].id.as_str());
    assert_eq!((&body["type"], &body["sender"], &body["thread"]), (&"reply".into(), &"ann".into(), &"one".into()));
    assert_eq!(body["message_ids"], json!([message]));
    let why = host.ctl(&["--json", "why", &message]).ok().json();
    assert_eq!(why["message"]["status"], "delivered");
    let stages: Vec<&str> =
        why["stages"].as_array().expect("a list").iter().filter_map(|stage| stage["stage"].as_str()).collect();
    let sending = stages.iter().position(|stage| *stage == "delivery.sending").expect("taken up");
    assert!(stages[sending + 1..].contains(&"delivery.received"), "{stages:?}");
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn channel_is_for_operators_and_its_secret_is_shown_once() {
    let host = new_host(Build::Plain, "");
    let receiver = Receiver::accepting();
    let add =
        |name: &str, url: &str| host.ctl(&["channel", "add", "webhook", name, "--url", url, "--agent", "a", "--yes"]);
    for name in ["loopback", "host", "Shop", "a b", "a:b"] {
        add(name, &receiver.url).refused("name");
    }
    add("shop", "http://example.org/").refused("plain http");
    host.ctl(&["channel", "add", "webhook", "shop", "--url", &receiver.url, "--agent", "none"])
        .refused("there is no agent");
    let hook = Hook::add(&host, "shop", &receiver, &["--idempotent"]);
    add("shop", &receiver.url).refused("already");
    let listed = host.ctl(&["--json", "channel", "list"]).ok().json();
    assert_eq!((&listed[0]["idempotent"], &listed[0]["agent"]), (&true.into(), &"a".into()), "{listed}");
    let bob = client::Raw::add_person(&host, "Bob", &["--role", "member"]);
    assert_eq!(bob.get("/v1/channels").0, 403);
    assert_eq!(bob.get("/v1/dead"), (200, json!({ "letters": [], "more": false })));
    // An admin cannot add a channel whose name has linked people: the holder of its secret could write as them.
    let eve = client::Raw::add_person(&host, "Eve", &["--role", "admin"]);
    host.ctl(&["channel", "remove", "shop", "--yes"]).ok();
    let new = json!({ "kind": "webhook", "name": "shop", "url": receiver.url }).to_string();
    check_refused(&eve.ask("POST", "/v1/channels", &new), 409, "channel_in_use");
    check_refused(&hook.send("e", &Hook::words("hello")), 401, "signature_invalid");
    let mut brought = host.command("ironctl");
    brought.arg("--home").arg(&host.home).args([
        "--json",
        "channel",
        "add",
        "webhook",
        "shop",
        "--agent",
        "a",
        "--yes",
        "--secret-stdin",
    ]);
    let child = brought.args(["--url", &receiver.url]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("ironctl starts");
    child.stdin.take().expect("piped").write_all(hook.secret.as_bytes()).expect("sent");
    let said = child.wait_with_output().expect("the command ends");
    let said = String::from_utf8(said.stdout).expect("text");
    assert!(said.contains("\"shop\"") && !said.contains("whsec_"), "{said}");
    hook.say("e", "hello");
    host.down();
    for (path, bytes) in crate::support::record::files(&host.home) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(&hook.secret[6..]), "{}", path.display());
    }
    for what in ["channel.added", "channel.connected", "channel.removed"] {
        assert!(!host.entries(what).is_empty(), "{what}");
    }
}

#[test]
fn event_id_of_an_erased_session_is_still_known() {
    let (host, _receiver, hook) = host_with_shop("");
    let message = hook.say("e1", "hello");
    let why = receipt(&host, &message, "received");
    let session = why["message"]["session_id"].as_str().expect("a session");
    host.ctl(&["session", "remove", session, "--yes"]).ok();
    let again = hook.send("e1", &Hook::words("hello"));
    assert_eq!((again.0, again.1["message_id"].as_str()), (200, Some(message.as_str())), "{again:?}");
    assert_eq!(messages(&host), 1);
}

#[test]
fn repeated_event_is_acknowledged_even_without_an_agent() {
    let host = new_host(Build::Plain, "requests_per_minute = 2\n");
    let hook = Hook::add(&host, "shop", &Receiver::accepting(), &[]);
    let first = hook.say("e1", "hello");
    let again = || hook.send("e1", &Hook::words("hello"));
    for _ in 0..5 {
        assert_eq!(again().1["message_id"].as_str(), Some(first.as_str()));
    }
    hook.say("e2", "hello");
    host.ctl(&["agent", "disconnect", "a", "shop"]).ok();
    assert_eq!(again().1["message_id"].as_str(), Some(first.as_str()));
}

#[test]
fn clock_that_was_ahead_blocks_no_event_and_no_delivery() {
    let mut host = new_host(Build::Failpoints, "backoff_ms = 20\n");
    let receiver = Receiver::new(|_, before| Response::Status(if before == 0 { 500 } else { 200 }));
    let mut hook = Hook::add(&host, "shop", &receiver, &[]);
    host.down();
    host.shift_clock(3_600_000);
    host.up();
    host.say("a", "hello");
    host.shift_clock(0);
    hook.follow_restart(&host);
    let message = hook.say("e1", "hello");
    receipt(&host, &message, "received");
    assert_eq!(receiver.replies().len(), 2, "the second attempt is not delayed");
}

/// Returns the refused requests of a channel, as `RULE COUNT`.
fn refused(host: &TestHost, channel: &str) -> Vec<String> {
    let listed = host.ctl(&["--json", "channel", "list"]).ok().json();
    let found =
        listed.as_array().expect("a list").iter().find(|found| found["name"] == channel).expect("listed").clone();
    let refused = found["refused"].as_array().cloned().unwrap_or_default();
    let rule = |one: &Value| one["rule"].as_str().or(one["code"].as_str()).expect("a rule").to_owned();
    let mut refused: Vec<_> = refused.iter().map(|one| format!("{} {}", rule(one), one["count"])).collect();
    refused.sort();
    refused
}

#[test]
fn each_rule_that_refuses_is_named_to_the_operator() {
    let (host, receiver, hook) = host_with_shop("");
    let (body, at) = (Hook::words("hello"), now());
    let (time, late) = (at.to_string(), (at - 400).to_string());
    let as_text = Hook { secret: hook.secret.trim_start_matches("whsec_").to_owned(), ..hook.clone() };
    let as_text = as_text.sign("e", at, &body);
    let late_signature = hook.sign("e", at - 400, &body);
    let standard =
        |time, signature| vec![("webhook-id", "e"), ("webhook-timestamp", time), ("webhook-signature", signature)];
    for (headers, code, words) in [
        (vec![], "signature_invalid", "no signature"),
        (vec![("x-hub-signature-256", "sha256=00")], "signature_invalid", "GitHub"),
        (vec![("stripe-signature", "t=1,v1=00")], "signature_invalid", "Stripe"),
        (vec![("acme-id", "e"), ("acme-signature", "v1,AAAA")], "signature_invalid", "acme-signature"),
        (vec![("svix-id", "e"), ("svix-signature", "v1,AAAA")], "signature_invalid", "svix-timestamp"),
        (standard(&time, "v1,AAAA"), "signature_invalid", "base64"),
        (standard(&time, &as_text), "signature_invalid", "text of the secret"),
        (standard(&late, &late_signature), "timestamp_outside", "400 seconds"),
    ] {
        let answer = hook.post(&headers, &body);
        check_refused(&answer, 401, code);
        let text = answer.1.to_string();
        assert!(text.contains(words) && !text.contains(&hook.secret[6..]), "{headers:?}: {text}");
    }
    let rules = [
        "headers_incomplete 1",
        "other_product 3",
        "secret_as_text 1",
        "signature_malformed 1",
        "signature_missing 1",
        "timestamp_outside 1",
    ];
    assert_eq!(refused(&host, "shop"), rules);
    let report = host.ctl_bounded(&["--json", "doctor"]).json();
    let check = report["checks"].as_array().expect("a list").iter().find(|check| check["name"] == "requests to shop");
    let check = check.unwrap_or_else(|| panic!("{report}"));
    assert!(check["found"].as_str().is_some_and(|found| found.contains("other_product")), "{check}");
    let first = &host.entries("webhook.refused")[0]["data"];
    assert_eq!((&first["channel"], &first["rule"]), (&"shop".into(), &"signature_missing".into()));
    drop(receiver);
}

#[test]
fn request_with_the_names_of_svix_is_the_same_message() {
    let (host, receiver, hook) = host_with_shop("");
    let (body, at) = (Hook::words("hello"), now());
    let (signature, time) = (format!("v1,AAAA {}", hook.sign("e1", at, &body)), at.to_string());
    let svix = [("svix-id", "e1"), ("svix-timestamp", time.as_str()), ("svix-signature", signature.as_str())];
    let (status, answer) = hook.post(&svix, &body);
    assert_eq!(status, 200, "{answer}");
    let message = answer["message_id"].as_str().expect("an id").to_owned();
    assert_eq!(hook.say("e1", "hello"), message, "under the other names it is the same event");
    receipt(&host, &message, "received");
    assert_eq!(receiver.replies().len(), 1);
}

/// Runs the example of `docs/operate/webhooks.md` with the secret and the port of this host.
#[test]
fn example_of_the_webhook_page_runs_as_written() {
    needs("curl");
    needs("openssl");
    let manual = include_str!("../../../docs/operate/webhooks.md");
    let example = manual.split("```sh\n").find(|block| block.contains("openssl")).expect("the example");
    let example = example.split("```").next().expect("the end of the example");
    let host = new_host(Build::Plain, "");
    let receiver = Receiver::new(|_, _| Response::Status(204));
    let hook = Hook::add(&host, "shop", &receiver, &[]);
    // Links the sender of the example with the command on the page.
    host.ctl(&["person", "unlink", "owner", "shop:ann"]).ok();
    host.ctl(&["person", "add", "Alice", "--role", "member"]).ok();
    let link =
        manual.lines().find_map(|line| line.strip_prefix("ironctl person link ")).expect("a line with the command");
    host.ctl(&[&["person", "link", "--yes"], link.split(' ').collect::<Vec<_>>().as_slice()].concat()).ok();
    let script = example.replace("http://127.0.0.1:8788/hooks/shop", &hook.hook);
    assert_ne!(script, example, "the example has the URL that this test replaces");
    let script = format!("SECRET='{}'\n{script}", hook.secret);
    let run = Command::new("sh").args(["-eu", "-c", &script]).output().expect("sh runs");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    let answer: Value = serde_json::from_str(said.trim()).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(answer["message_id"].is_string(), "{answer}");
    // The message belongs to Alice, so the owner cannot follow it.
    wait_for("the reply", || receiver.replies().len() == 1);
    wait_for("the receipt", || host.entries("delivery.received").len() == 1);
}
