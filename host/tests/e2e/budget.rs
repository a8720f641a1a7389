//! Tests of budgets: bookings before each model request, ceilings, and retries of messages that got a notice.
//!
//! They use the scripted model, whose tokens the host estimates. See `streaming`.

use crate::ops::stops::{notice, text};
use crate::support::client::{self, Client};
use crate::support::host_fixture::{Build, World, wait_for};
use crate::support::record;
use serde_json::Value;

const RULES: &str = "[[rule]]\nwhen = '^slow'\nreply = 'slowly'\nwait_ms = 600000\n";

/// Starts a host with these settings. Its script has these rules before the built-in ones.
fn world(settings: &str, rules: &str) -> World {
    let world = World::with(client::own(), Build::Plain, None);
    let script = world.home.join("script.toml");
    std::fs::write(&script, rules).expect("written");
    world.configure(&format!("{settings}\n[model]\nscript = {:?}\n", script.display().to_string()));
    world.up();
    world.agent("a");
    world
}

fn usage(world: &World, more: &[&str]) -> Value {
    world.ctl(&[&["--json", "usage"], more].concat()).ok().json()
}

/// Returns the sum of a column of `usage`.
fn sum(usage: &Value, column: &str) -> u64 {
    let rows = usage["rows"].as_array().expect("a list");
    rows.iter().map(|row| row[column].as_u64().unwrap_or_else(|| panic!("{column} in {row}"))).sum()
}

fn tokens(usage: &Value) -> u64 {
    sum(usage, "input_tokens") + sum(usage, "output_tokens")
}

/// Returns the only ceiling.
fn ceiling(usage: &Value) -> &Value {
    let ceilings = usage["ceilings"].as_array().expect("a list");
    assert_eq!(ceilings.len(), 1, "{usage}");
    &ceilings[0]
}

fn set(world: &World, tokens_per_day: &str) {
    world.ctl(&["agent", "set", "a", "--tokens-per-day", tokens_per_day]).ok();
}

/// Returns the estimated tokens of a first request with this message, taken from a refusal.
fn needed(world: &World, message: &str) -> u64 {
    set(world, "1");
    let answer = world.ctl(&["--json", "chat", "a", message, "--thread", "probe"]).ok().json();
    assert_eq!(answer["notice"], true, "{answer}");
    world.entries("budget.refused")[0]["data"]["needed"].as_u64().expect("a number")
}

#[test]
fn ceiling_stops_a_looping_agent_and_further_spending() {
    let world = world("[turn]\nmodel_calls_max = 100\ntool_calls_max = 100\n", "");
    assert!(world.say("a", "hello").contains("Hello."));
    let one = tokens(&usage(&world, &[]));
    assert!(one > 0, "tokens of the script are estimated");
    let limit = one + 6 * (one + 1024);
    set(&world, &limit.to_string());

    let looped = world.chat("a", "loop forever");
    assert_eq!(looped["notice"], true, "{looped}");
    let reply = text(&looped, "reply");
    assert!(reply.starts_with(&format!("This agent's ceiling for tokens, {limit} a day, is reached: ")), "{reply}");
    assert!(reply.contains("(midnight UTC)"), "{reply}");
    assert!(reply.contains("`ironctl agent set a --tokens-per-day NUMBER`"), "{reply}");
    assert!(reply.contains("`ironctl message retry msg_"), "{reply}");
    let (asked, spent) = (world.entries("model.asked").len(), usage(&world, &[]));
    assert!(asked > 2, "the agent looped");
    assert_eq!(sum(&spent, "requests"), asked as u64, "only sent requests are counted");
    assert!(tokens(&spent) <= limit, "{spent}");
    let refused = &world.entries("budget.refused")[0];
    assert_eq!((&refused["type"], &refused["data"]["ceiling"]), (&"RETRACT".into(), &"tokens_per_agent_day".into()));
    assert_eq!(refused["data"]["turn"], looped["turn_id"]);
    assert!(world.entries("model.refused").is_empty(), "the sandbox is not at fault");

    // A request of a new conversation is smaller, so the rest of the ceiling may suffice for it.
    let begin = |thread: &str| {
        let answer = world.ctl(&["--json", "chat", "a", "loop forever", "--thread", thread]).ok().json();
        assert_eq!(answer["notice"], true, "{answer}");
        world.entries("model.asked").len()
    };
    let mut asked = asked;
    for n in 0.. {
        let before = std::mem::replace(&mut asked, begin(&format!("begun-{n}")));
        if before == asked {
            break;
        }
    }
    let spent = usage(&world, &[]);
    assert!(tokens(&spent) <= limit, "{spent}");

    // No request is sent for another message, in another conversation, after a restart or after a crash.
    let after = |world: &World| {
        assert_eq!(begin("b"), asked);
        assert_eq!(world.chat("a", "loop forever")["notice"], true);
        assert_eq!(world.entries("model.asked").len(), asked);
        assert_eq!(usage(world, &[])["rows"], spent["rows"]);
    };
    after(&world);
    world.down();
    world.up();
    after(&world);
    world.kill_host();
    world.up();
    after(&world);
    let shown = usage(&world, &["--agent", "a"]);
    assert_eq!((&ceiling(&shown)["of"], &ceiling(&shown)["limit"]), (&"a".into(), &limit.into()));
    assert_eq!(ceiling(&shown)["left"], limit - tokens(&spent));
    assert!(world.ctl(&["usage"]).ok().stdout.contains("tokens_per_agent_day"));

    set(&world, "10000000");
    assert!(world.say("a", "hello").contains("Hello."), "a raised ceiling permits requests");
    set(&world, "none");
    assert_eq!(usage(&world, &[])["ceilings"], Value::Array(Vec::new()));
    assert_eq!(world.entries("agent.budget").len(), 3);
}

#[test]
fn concurrent_conversations_cannot_both_book_the_last_tokens() {
    let world = world("", RULES);
    let needed = needed(&world, "slow");
    set(&world, &(needed + needed / 2).to_string());
    let client = Client::of(&world);
    let sent: Vec<Value> = std::thread::scope(|scope| {
        let send = |thread| {
            let client = client.clone();
            scope.spawn(move || client.send_in("a", thread, "slow", thread).expect("recorded"))
        };
        let sending: Vec<_> = ["x", "y"].map(send).into();
        sending.into_iter().map(|sent| sent.join().expect("the thread ends")).collect()
    });
    wait_for("the refused request", || world.entries("budget.refused").len() == 2);
    wait_for("the permitted request", || world.entries("model.asked").len() == 1);
    assert_eq!(tokens(&usage(&world, &[])), needed, "a request in flight is booked");

    // The request of a cancelled turn stays booked, because its cost is unknown.
    let asked = text(&world.entries("model.asked")[0]["data"], "session");
    world.ctl(&["session", "cancel", &asked]).ok();
    for message in sent {
        notice(&client, &text(&message, "message_id"));
    }
    assert_eq!(tokens(&usage(&world, &[])), needed);
    assert!(world.entries("output.sealed").is_empty());
}

#[test]
fn request_interrupted_by_a_crash_stays_booked() {
    let world = world("", RULES);
    let client = Client::of(&world);
    let sent = client.send("a", "slow", "1").expect("recorded");
    wait_for("the request", || world.entries("model.asked").len() == 1);
    world.kill_host();
    world.up();
    wait_for("the second request", || world.entries("model.asked").len() == 2);
    let shown = usage(&world, &[]);
    assert_eq!((sum(&shown, "requests"), sum(&shown, "output_tokens")), (2, 2 * 1024), "{shown}");
    let session = text(&sent, "session_id");
    world.ctl(&["session", "cancel", &session]).ok();
    // The tokens of an erased session stay booked.
    world.ctl(&["session", "remove", &session, "--yes"]).ok();
    world.ctl(&["agent", "remove", "a", "--yes"]).ok();
    let left = usage(&world, &["--session", &session]);
    assert_eq!(sum(&left, "requests"), 2, "{left}");
    assert!(text(&left["rows"][0], "agent").starts_with("agt_"), "{left}");
    world.down();
    assert_eq!(record::count(&record::open(&world.home), "SELECT count(*) FROM usage"), 1);
}

#[test]
fn ceilings_of_the_settings_hold_per_agent_and_session() {
    let world = world("[budget]\ntokens_per_session = 1\n", "");
    let answer = world.chat("a", "hello");
    assert_eq!(answer["notice"], true, "{answer}");
    assert!(
        text(&answer, "reply").contains("This conversation's ceiling for tokens, 1, is reached: 0 used"),
        "{answer}"
    );
    let shown = usage(&world, &[]);
    assert_eq!(
        (&ceiling(&shown)["name"], &ceiling(&shown)["of"]),
        (&"tokens_per_session".into(), &answer["session_id"])
    );
    assert!(shown["rows"].as_array().is_some_and(Vec::is_empty), "no request was booked: {shown}");
    world.down();
    world.configure("[budget]\ntokens_per_day = 3000\n");
    world.up();
    world.agent("b");
    let reply = loop {
        let answer = world.chat("b", "hello");
        if answer["notice"] == true {
            break text(&answer, "reply");
        }
    };
    assert!(reply.starts_with("This host's ceiling for tokens, 3000 a day, is reached"), "{reply}");
    assert!(reply.contains("`budget.tokens_per_day` in its config.toml"), "{reply}");
    assert_eq!(world.chat("a", "hello")["notice"], true, "all agents share the ceiling");
    world.down();
    world.configure("[budget]\ntokens_per_day = 1\n");
    world.up();
    let warnings = world.status()["host"]["warnings"].to_string();
    assert!(warnings.contains("the ceiling tokens_per_day is reached: no request goes to a model until"), "{warnings}");
    world.down();
    world.configure("[budget]\ntokens_a_day = 1\n");
    world.ctl(&["config", "check"]).refused("tokens_per_day");
}

#[test]
fn invalid_ceiling_is_refused() {
    let world = world("", "");
    for (option, value) in [("--tokens-per-day", "many"), ("--tokens-per-day", "0"), ("--cost-per-day", "1,50")] {
        assert_eq!(world.ctl(&["agent", "set", "a", option, value]).code, 2, "{option} {value}");
    }
    assert_eq!(world.ctl(&["agent", "set", "a"]).code, 2, "an empty command is refused");
    world.ctl(&["agent", "set", "a", "--tokens-per-day", "9007199254740991"]).refused("over the limit");
    let set = world.ctl(&["--json", "agent", "set", "a", "--cost-per-day", "2.50", "--mode", "enforce"]).ok().json();
    assert_eq!((&set["cost_per_day_micros"], &set["mode"]), (&2_500_000.into(), &"enforce".into()), "{set}");
    let set = world.ctl(&["--json", "agent", "set", "a", "--tokens-per-day", "5"]).ok().json();
    assert_eq!((&set["cost_per_day_micros"], &set["tokens_per_day"]), (&2_500_000.into(), &5.into()), "{set}");
    world.ctl(&["usage", "--agent", "unknown"]).refused("there is no agent");
}

#[test]
fn summary_is_booked_and_refused_like_any_request() {
    let world = world("[turn]\ncontext_bytes_max = 4096\n", "");
    for n in 0..8 {
        world.say("a", &format!("echo {n} {}", "word ".repeat(150)));
    }
    let compacts = |world: &World| {
        let asked = world.entries("model.asked");
        asked.iter().filter(|entry| entry["data"]["purpose"] == "compact").count()
    };
    assert!(compacts(&world) > 0, "the conversation was summarised");
    assert_eq!(sum(&usage(&world, &[]), "requests"), world.entries("model.asked").len() as u64);
}

#[test]
fn failed_model_is_reported_and_a_retry_answers_once() {
    let rules = |fails: bool| match fails {
        true => "[[rule]]\nwhen = '^weather'\nfail = 'sk-secret is no key'\n",
        false => "[[rule]]\nwhen = '^weather'\nreply = 'It rains.'\n",
    };
    let world = world("", rules(true));
    let failed = world.chat("a", "weather");
    assert_eq!(failed["notice"], true, "{failed}");
    assert!(
        text(&failed, "reply").starts_with("The model endpoint `scripted` has no answer in its script"),
        "{failed}"
    );
    assert!(!text(&failed, "reply").contains("sk-secret"), "the notice quotes the provider");
    assert_eq!(world.entries("model.failed").len(), 1);
    world.ctl(&["--json", "chat", "a", "hello"]).ok();
    let id = text(&failed, "message_id");
    assert_eq!(world.ctl(&["--json", "message", "retry", &id]).ok().json()["notice"], true, "the retry fails too");

    world.down();
    std::fs::write(world.home.join("script.toml"), rules(false)).expect("written");
    world.up();
    let answered = world.ctl(&["--json", "message", "retry", &id]).ok().json();
    assert_eq!((&answered["notice"], &answered["message_id"]), (&false.into(), &id.as_str().into()), "{answered}");
    assert!(text(&answered, "reply").ends_with("It rains."), "{answered}");
    world.ctl(&["message", "retry", &id]).refused("is answered");
    world.ctl(&["message", "retry", "last"]).refused("is answered");
    world.ctl(&["message", "retry", "msg_00000000000000000000000000"]).refused("there is no message");
    let retried = world.entries("message.retried");
    assert_eq!(retried.len(), 2);
    assert!(retried.iter().all(|entry| entry["type"] == "META" && entry["data"]["message"] == id.as_str()));
    let all = world.ledger().iter().map(Value::to_string).collect::<String>();
    assert!(!all.contains("sk-secret"), "the ledger quotes the provider");
}

#[test]
fn late_model_is_named_and_parks_no_session() {
    let world = world("[turn]\nseconds_max = 2\n[session]\nlaunch_attempts_max = 1\n", RULES);
    for _ in 0..2 {
        let late = world.chat("a", "slow");
        assert_eq!(late["notice"], true, "{late}");
        assert!(text(&late, "reply").to_lowercase().contains("model"), "{late}");
        assert!(text(&late, "reply").contains("`ironctl message retry msg_"), "{late}");
    }
    assert!(world.entries("session.parked").is_empty());
    assert!(world.say("a", "hello").contains("Hello."), "the session continues");
}

#[test]
fn owner_retries_a_message_and_its_person_gets_the_answer() {
    let world = world("", "[[rule]]\nwhen = '^weather'\nfail = 'no key'\n");
    world.ctl(&["person", "add", "Bob", "--role", "member"]).ok();
    let bob = client::Raw::of_person(&world, "Bob");
    let sent = bob.ask("POST", "/v1/agents/a/messages", r#"{"text":"weather"}"#).1;
    let id = text(&sent, "message_id");
    wait_for("the notice", || bob.get(&format!("/v1/messages/{id}")).1["notice"] == true);
    let retried = world.ctl(&["message", "retry", &id]).ok().stdout;
    assert!(retried.contains("is queued again; its sender gets the answer"), "{retried}");
}

#[test]
fn cost_ceiling_without_prices_is_reported() {
    let world = world("", "");
    let add = ["model", "add", "far", "--kind", "openai", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"];
    world.ctl(&[&add[..], &["--no-test", "--no-key"]].concat()).ok();
    world.ctl(&["agent", "set", "a", "--model", "far"]).ok();
    let set = world.ctl(&["agent", "set", "a", "--cost-per-day", "2.50"]).ok();
    assert!(format!("{}{}", set.stdout, set.stderr).contains("far has no prices"), "{} {}", set.stdout, set.stderr);
    let warnings = world.status()["host"]["warnings"].to_string();
    assert!(warnings.contains("has no effect at model endpoint far"), "{warnings}");
    world
        .ctl(&[&add[..], &["--no-test", "--no-key", "--replace", "--price-in", "1", "--price-out", "2"]].concat())
        .ok();
    let warnings = world.status()["host"]["warnings"].to_string();
    assert!(!warnings.contains("has no effect at"), "{warnings}");
}

#[test]
fn message_that_waits_or_is_in_a_turn_is_not_retried() {
    let world = world("", RULES);
    let client = Client::of(&world);
    let sent = client.send("a", "slow", "1").expect("recorded");
    let id = text(&sent, "message_id");
    wait_for("the request", || world.entries("model.asked").len() == 1);
    world.ctl(&["message", "retry", &id]).refused("waits for one");
    world.ctl(&["session", "cancel", &text(&sent, "session_id")]).ok();
    notice(&client, &id);
    // The turn starts again once, in the same sandbox or in another one.
    let retry = |_: &u32| world.ctl(&["message", "retry", &id, "--wait", "1ms"]).stderr.contains("waits for one");
    let refused = (0..3).filter(retry).count();
    assert_eq!(refused, 2, "only the first retry is accepted");
    wait_for("the second request", || world.entries("model.asked").len() == 2);
    world.ctl(&["session", "cancel", &text(&sent, "session_id")]).ok();
    notice(&client, &id);
    assert_eq!(world.entries("message.retried").len(), 1);
}
