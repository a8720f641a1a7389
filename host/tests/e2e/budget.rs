//! Tests of budgets: bookings before each model request, ceilings, and retries of messages that got a notice.
//!
//! They use the scripted model with prices: the host then estimates its tokens. See `streaming`.

use super::requests::delivered;
use crate::ops::stops::{notice, text};
use crate::support::client::{self, Client, Raw};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::model_server::{Act, Server};
use crate::support::record;
use serde_json::{Value, json};

const RULES: &str = "[[rule]]\nwhen = '^slow'\nreply = 'slowly'\nwait_ms = 600000\n";

/// Starts a host with these settings. Its script has these rules before the built-in ones.
fn new_host(settings: &str, rules: &str) -> TestHost {
    let host = TestHost::own(Build::Plain);
    let script = host.home.join("script.toml");
    std::fs::write(&script, rules).expect("written");
    host.configure(&format!("{settings}\n[model]\nscript = {:?}\n", script.display().to_string()));
    host.up();
    host.ctl(&["model", "add", "s", "--kind", "scripted", "--price-in", "1", "--price-out", "1", "--no-test"]).ok();
    agent(&host, "a");
    host
}

/// Adds an agent that uses the scripted model with prices.
fn agent(host: &TestHost, name: &str) {
    host.ctl(&["agent", "add", name, "--model", "s"]).ok();
}

fn usage(host: &TestHost, more: &[&str]) -> Value {
    host.ctl(&[&["--json", "usage"], more].concat()).ok().json()
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

fn set(host: &TestHost, tokens_per_day: &str) {
    host.ctl(&["agent", "set", "a", "--tokens-per-day", tokens_per_day]).ok();
}

/// Returns the estimated tokens of a first request with this message, taken from a refusal.
fn needed(host: &TestHost, message: &str) -> u64 {
    set(host, "1");
    let answer = host.ctl(&["--json", "chat", "a", message, "--thread", "probe"]).ok().json();
    assert_eq!(answer["notice"], true, "{answer}");
    host.entries("budget.refused")[0]["data"]["needed"].as_u64().expect("a number")
}

#[test]
fn words_of_the_script_use_up_no_ceiling() {
    let host = new_host("[budget]\ntokens_per_day = 1\n", "");
    host.agent("b");
    for _ in 0..2 {
        assert!(host.say("b", "hello").contains("Hello."), "the built-in script answers below every ceiling");
    }
    let shown = usage(&host, &[]);
    assert_eq!((sum(&shown, "requests"), tokens(&shown), sum(&shown, "cost_micros")), (2, 0, 0), "{shown}");
    assert_eq!(ceiling(&shown)["left"], 1, "{shown}");
    assert_eq!(host.chat("a", "hello")["notice"], true, "a script with prices counts");
}

#[test]
fn ceiling_stops_a_looping_agent_and_further_spending() {
    let host = new_host("[turn]\nmodel_calls_max = 100\ntool_calls_max = 100\n", "");
    assert!(host.say("a", "hello").contains("Hello."));
    let one = tokens(&usage(&host, &[]));
    assert!(one > 0, "tokens of the script are estimated");
    let limit = one + 6 * (one + 1024);
    set(&host, &limit.to_string());

    let looped = host.chat("a", "loop forever");
    assert_eq!(looped["notice"], true, "{looped}");
    let reply = text(&looped, "reply");
    assert!(reply.starts_with(&format!("This agent's ceiling for tokens, {limit} a day, is reached: ")), "{reply}");
    assert!(reply.contains("(midnight UTC)"), "{reply}");
    assert!(reply.contains("`ironctl agent set a --tokens-per-day NUMBER`"), "{reply}");
    assert!(reply.contains("`ironctl message retry msg_"), "{reply}");
    let (asked, spent) = (host.entries("model.asked").len(), usage(&host, &[]));
    assert!(asked > 2, "the agent looped");
    assert_eq!(sum(&spent, "requests"), asked as u64, "only sent requests are counted");
    assert!(tokens(&spent) <= limit, "{spent}");
    let refused = &host.entries("budget.refused")[0];
    assert_eq!((&refused["type"], &refused["data"]["ceiling"]), (&"RETRACT".into(), &"tokens_per_agent_day".into()));
    assert_eq!(refused["data"]["turn"], looped["turn_id"]);
    assert!(host.entries("model.refused").is_empty(), "the sandbox is not at fault");

    // A request of a new conversation is smaller, so the rest of the ceiling may suffice for it.
    let begin = |thread: &str| {
        let answer = host.ctl(&["--json", "chat", "a", "loop forever", "--thread", thread]).ok().json();
        assert_eq!(answer["notice"], true, "{answer}");
        host.entries("model.asked").len()
    };
    let mut asked = asked;
    for n in 0.. {
        let before = std::mem::replace(&mut asked, begin(&format!("begun-{n}")));
        if before == asked {
            break;
        }
    }
    let spent = usage(&host, &[]);
    assert!(tokens(&spent) <= limit, "{spent}");

    // No request is sent for another message, in another conversation, after a restart or after a crash.
    let after = |host: &TestHost| {
        assert_eq!(begin("b"), asked);
        assert_eq!(host.chat("a", "loop forever")["notice"], true);
        assert_eq!(host.entries("model.asked").len(), asked);
        assert_eq!(usage(host, &[])["rows"], spent["rows"]);
    };
    after(&host);
    host.restart();
    after(&host);
    host.kill_host();
    host.up();
    after(&host);
    let shown = usage(&host, &["--agent", "a"]);
    assert_eq!((&ceiling(&shown)["of"], &ceiling(&shown)["limit"]), (&"a".into(), &limit.into()));
    assert_eq!(ceiling(&shown)["left"], limit - tokens(&spent));
    assert!(host.ctl(&["usage"]).ok().stdout.contains("tokens_per_agent_day"));

    set(&host, "10000000");
    assert!(host.say("a", "hello").contains("Hello."), "a raised ceiling permits requests");
    set(&host, "none");
    assert_eq!(usage(&host, &[])["ceilings"], Value::Array(Vec::new()));
    assert_eq!(host.entries("agent.budget").len(), 3);
}

#[test]
fn concurrent_conversations_cannot_both_book_the_last_tokens() {
    let host = new_host("", RULES);
    let needed = needed(&host, "slow");
    set(&host, &(needed + needed / 2).to_string());
    let client = Client::of(&host);
    let sent: Vec<Value> = std::thread::scope(|scope| {
        let send = |thread| {
            let client = client.clone();
            scope.spawn(move || client.send_in("a", thread, "slow", thread).expect("recorded"))
        };
        let sending: Vec<_> = ["x", "y"].map(send).into();
        sending.into_iter().map(|sent| sent.join().expect("the thread ends")).collect()
    });
    wait_for("the refused request", || host.entries("budget.refused").len() == 2);
    wait_for("the permitted request", || host.entries("model.asked").len() == 1);
    assert_eq!(tokens(&usage(&host, &[])), needed, "a request in flight is booked");

    // The request of a cancelled turn stays booked, because its cost is unknown.
    let asked = text(&host.entries("model.asked")[0]["data"], "session");
    host.ctl(&["session", "cancel", &asked]).ok();
    for message in sent {
        notice(&client, &text(&message, "message_id"));
    }
    assert_eq!(tokens(&usage(&host, &[])), needed);
    assert!(host.entries("output.sealed").is_empty());
}

#[test]
fn request_interrupted_by_a_crash_stays_booked() {
    let host = new_host("", RULES);
    let client = Client::of(&host);
    let sent = client.send("a", "slow", "1").expect("recorded");
    wait_for("the request", || host.entries("model.asked").len() == 1);
    host.kill_host();
    host.up();
    wait_for("the second request", || host.entries("model.asked").len() == 2);
    let shown = usage(&host, &[]);
    assert_eq!((sum(&shown, "requests"), sum(&shown, "output_tokens")), (2, 2 * 1024), "{shown}");
    let session = text(&sent, "session_id");
    host.ctl(&["session", "cancel", &session]).ok();
    // The tokens of an erased session stay booked.
    host.ctl(&["session", "remove", &session, "--yes"]).ok();
    host.ctl(&["agent", "remove", "a", "--yes"]).ok();
    let left = usage(&host, &["--session", &session]);
    assert_eq!(sum(&left, "requests"), 2, "{left}");
    assert!(text(&left["rows"][0], "agent").starts_with("agt_"), "{left}");
    host.down();
    assert_eq!(record::count(&record::open(&host.home), "SELECT count(*) FROM usage"), 1);
}

#[test]
fn ceilings_of_the_settings_hold_per_agent_and_session() {
    let host = new_host("[budget]\ntokens_per_session = 1\n", "");
    let answer = host.chat("a", "hello");
    assert_eq!(answer["notice"], true, "{answer}");
    assert!(
        text(&answer, "reply").contains("This conversation's ceiling for tokens, 1, is reached: 0 used"),
        "{answer}"
    );
    let shown = usage(&host, &[]);
    assert_eq!(
        (&ceiling(&shown)["name"], &ceiling(&shown)["of"]),
        (&"tokens_per_session".into(), &answer["session_id"])
    );
    assert!(shown["rows"].as_array().is_some_and(Vec::is_empty), "no request was booked: {shown}");
    host.restart_with("config.toml", "[budget]\ntokens_per_day = 3000\n");
    agent(&host, "b");
    let reply = loop {
        let answer = host.chat("b", "hello");
        if answer["notice"] == true {
            break text(&answer, "reply");
        }
    };
    assert!(reply.starts_with("This host's ceiling for tokens, 3000 a day, is reached"), "{reply}");
    assert!(reply.contains("`budget.tokens_per_day` in its config.toml"), "{reply}");
    assert_eq!(host.chat("a", "hello")["notice"], true, "all agents share the ceiling");
    host.restart_with("config.toml", "[budget]\ntokens_per_day = 1\n");
    let warnings = host.status()["host"]["warnings"].to_string();
    assert!(warnings.contains("the ceiling tokens_per_day is reached: no request goes to a model until"), "{warnings}");
    host.down();
    host.configure("[budget]\ntokens_a_day = 1\n");
    host.ctl(&["config", "check"]).refused("tokens_per_day");
}

#[test]
fn invalid_ceiling_is_refused() {
    let host = new_host("", "");
    for (option, value) in [("--tokens-per-day", "many"), ("--tokens-per-day", "0"), ("--cost-per-day", "1,50")] {
        assert_eq!(host.ctl(&["agent", "set", "a", option, value]).code, 2, "{option} {value}");
    }
    assert_eq!(host.ctl(&["agent", "set", "a"]).code, 2, "an empty command is refused");
    host.ctl(&["agent", "set", "a", "--tokens-per-day", "9007199254740991"]).refused("of at most");
    let set = host.ctl(&["--json", "agent", "set", "a", "--cost-per-day", "2.50", "--mode", "enforce"]).ok().json();
    assert_eq!((&set["cost_per_day_micros"], &set["mode"]), (&2_500_000.into(), &"enforce".into()), "{set}");
    let set = host.ctl(&["--json", "agent", "set", "a", "--tokens-per-day", "5"]).ok().json();
    assert_eq!((&set["cost_per_day_micros"], &set["tokens_per_day"]), (&2_500_000.into(), &5.into()), "{set}");
    host.ctl(&["usage", "--agent", "unknown"]).refused("there is no agent");
}

#[test]
fn summary_is_booked_and_refused_like_any_request() {
    let host = new_host("[turn]\ncontext_bytes_max = 4096\n", "");
    for n in 0..8 {
        host.say("a", &format!("echo {n} {}", "word ".repeat(150)));
    }
    let compacts = |host: &TestHost| {
        let asked = host.entries("model.asked");
        asked.iter().filter(|entry| entry["data"]["purpose"] == "compact").count()
    };
    assert!(compacts(&host) > 0, "the conversation was summarised");
    assert_eq!(sum(&usage(&host, &[]), "requests"), host.entries("model.asked").len() as u64);
}

#[test]
fn failed_model_is_reported_and_a_retry_answers_once() {
    let rules = |fails: bool| match fails {
        true => "[[rule]]\nwhen = '^weather'\nfail = 'sk-secret is no key'\n",
        false => "[[rule]]\nwhen = '^weather'\nreply = 'It rains.'\n",
    };
    let host = new_host("", rules(true));
    let failed = host.chat("a", "weather");
    assert_eq!(failed["notice"], true, "{failed}");
    assert!(text(&failed, "reply").starts_with("The model endpoint `s` has no answer in its script"), "{failed}");
    assert!(!text(&failed, "reply").contains("sk-secret"), "the notice quotes the provider");
    assert_eq!(host.entries("model.failed").len(), 1);
    host.ctl(&["--json", "chat", "a", "hello"]).ok();
    let id = text(&failed, "message_id");
    assert_eq!(host.ctl(&["--json", "message", "retry", &id]).ok().json()["notice"], true, "the retry fails too");

    host.down();
    std::fs::write(host.home.join("script.toml"), rules(false)).expect("written");
    host.up();
    let answered = host.ctl(&["--json", "message", "retry", &id]).ok().json();
    assert_eq!((&answered["notice"], &answered["message_id"]), (&false.into(), &id.as_str().into()), "{answered}");
    assert!(text(&answered, "reply").ends_with("It rains."), "{answered}");
    host.ctl(&["message", "retry", &id]).refused("is answered");
    host.ctl(&["message", "retry", "last"]).refused("is answered");
    host.ctl(&["message", "retry", "msg_00000000000000000000000000"]).refused("there is no message");
    let retried = host.entries("message.retried");
    assert_eq!(retried.len(), 2);
    assert!(retried.iter().all(|entry| entry["type"] == "META" && entry["data"]["message"] == id.as_str()));
    let all = host.ledger().iter().map(Value::to_string).collect::<String>();
    assert!(!all.contains("sk-secret"), "the ledger quotes the provider");
}

#[test]
fn late_model_is_named_and_parks_no_session() {
    let host = new_host("[turn]\nseconds_max = 6\n[session]\nlaunch_attempts_max = 1\n", RULES);
    for _ in 0..2 {
        let late = host.chat("a", "slow");
        assert_eq!(late["notice"], true, "{late}");
        assert!(text(&late, "reply").to_lowercase().contains("model"), "{late}");
        assert!(text(&late, "reply").contains("`ironctl message retry msg_"), "{late}");
    }
    assert!(host.entries("session.parked").is_empty());
    assert!(host.say("a", "hello").contains("Hello."), "the session continues");
}

#[test]
fn owner_retries_a_message_and_its_person_gets_the_answer() {
    let host = new_host("", "[[rule]]\nwhen = '^weather'\nfail = 'no key'\n");
    let bob = client::Raw::add_person(&host, "Bob", &["--role", "member"]);
    let sent = bob.ask("POST", "/v1/agents/a/messages", r#"{"text":"weather"}"#).1;
    let id = text(&sent, "message_id");
    wait_for("the notice", || bob.get(&format!("/v1/messages/{id}")).1["notice"] == true);
    let retried = host.ctl(&["message", "retry", &id]).ok().stdout;
    assert!(retried.contains("is queued again; its sender gets the answer"), "{retried}");
}

#[test]
fn cost_ceiling_without_prices_is_reported() {
    let host = new_host("", "");
    let add = ["model", "add", "far", "--kind", "openai", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"];
    host.ctl(&[&add[..], &["--no-test", "--no-key"]].concat()).ok();
    host.ctl(&["agent", "set", "a", "--model", "far"]).ok();
    let set = host.ctl(&["agent", "set", "a", "--cost-per-day", "2.50"]).ok();
    assert!(format!("{}{}", set.stdout, set.stderr).contains("far has no prices"), "{} {}", set.stdout, set.stderr);
    let warnings = host.status()["host"]["warnings"].to_string();
    assert!(warnings.contains("has no effect at model endpoint far"), "{warnings}");
    host.ctl(&[&add[..], &["--no-test", "--no-key", "--replace", "--price-in", "1", "--price-out", "2"]].concat()).ok();
    let warnings = host.status()["host"]["warnings"].to_string();
    assert!(!warnings.contains("has no effect at"), "{warnings}");
}

#[test]
fn message_that_waits_or_is_in_a_turn_is_not_retried() {
    let host = new_host("", RULES);
    let client = Client::of(&host);
    let sent = client.send("a", "slow", "1").expect("recorded");
    let id = text(&sent, "message_id");
    wait_for("the request", || host.entries("model.asked").len() == 1);
    host.ctl(&["message", "retry", &id]).refused("waits for one");
    host.ctl(&["session", "cancel", &text(&sent, "session_id")]).ok();
    notice(&client, &id);
    // The turn starts again once, in the same sandbox or in another one.
    let retry = |_: &u32| host.ctl(&["message", "retry", &id, "--wait", "1ms"]).stderr.contains("waits for one");
    let refused = (0..3).filter(retry).count();
    assert_eq!(refused, 2, "only the first retry is accepted");
    wait_for("the second request", || host.entries("model.asked").len() == 2);
    host.ctl(&["session", "cancel", &text(&sent, "session_id")]).ok();
    notice(&client, &id);
    assert_eq!(host.entries("message.retried").len(), 1);
}

#[test]
fn answer_recorded_before_a_kill_is_paid_once() {
    let model = Server::start(|seen| match (seen.asked().as_str(), seen.results().is_empty()) {
        ("write a file", true) => {
            let arguments = json!({ "path": "log.txt", "content": "once" });
            Act::Call(String::new(), vec![("append_file".to_owned(), arguments)])
        }
        (asked, _) => Act::Say(format!("answer to {asked}")),
    });
    let mut host = TestHost::with_clock().started_with("a");
    host.add_model(&model.url());
    host.ctl(&["agent", "set", "a", "--model", "m", "--yes"]).ok();
    host.down();
    let mut minutes = 0;
    // The number of kills after the record of the answer, of requests to the model, and of all answers that were used again.
    for (text, kills, requests, reused) in [("hello", 1, 1, 1), ("hello again", 2, 1, 3), ("write a file", 1, 2, 4)] {
        let (before, mut message) = (model.seen().len(), None);
        host.set_env("IRONCLAW_FAILPOINT", Some("output_sealed"));
        for _ in 0..kills {
            // A start with a waiting message may die before it is ready.
            host.ctl(&["up", "--detach"]);
            message = message.or_else(|| Some(Raw::of(&host).send("a", text)));
            wait_for("the host to die", || host.pid().is_none());
            // The prompt of the next attempt says another time.
            minutes += 1;
            host.shift_clock(minutes * 61_000);
        }
        host.set_env("IRONCLAW_FAILPOINT", None);
        host.up();
        let (raw, message) = (Raw::of(&host), message.expect("sent"));
        delivered(&raw, &message);
        let view = raw.get(&format!("/v1/messages/{message}")).1;
        assert_eq!(view["reply"], format!("answer to {text}"), "{view}");
        assert_eq!(model.seen().len() - before, requests, "{text}");
        assert_eq!(host.entries("output.reused").len(), reused, "{text}");
        host.down();
    }
    host.up();
    assert_eq!(sum(&usage(&host, &[]), "requests"), model.seen().len() as u64);
    assert_eq!(host.say("a", "what was before"), "answer to what was before", "the conversation continues");
    let said = model.seen().last().expect("a request").conversation();
    let answers = said.iter().filter(|(role, text)| role == "assistant" && text == "answer to hello");
    assert_eq!(answers.count(), 1, "{said:?}");
    host.ctl(&["audit", "verify"]).ok();
}
