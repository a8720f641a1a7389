//! Tests of messages between agents: who may send, what a message can cause, the answer that returns, and the bounds of a chain.
//!
//! They use the real programs with the scripted model, which takes a message of an agent as a request. See `destinations`.

mod authority;
mod bounds;
mod results;

use crate::support::client::{Client, Raw};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::record;
use serde_json::{Value, json};

/// Returns a host with the agents `a` and `b`, these settings, and these rules of the script before the built-in ones.
fn host_with(build: Build, settings: &str, rules: &str) -> TestHost {
    let host = TestHost::own(build);
    let script = host.home.join("script.toml");
    std::fs::write(&script, rules).expect("written");
    host.configure(&format!("{settings}\n[model]\nscript = {:?}\n", script.display().to_string()));
    host.up();
    host.agent("a");
    host.agent("b");
    host
}

/// Sets the group `team` of these agents with these tools.
fn group(host: &TestHost, agents: &[&str], tools: &str) {
    let tools: &[&str] = if tools.is_empty() { &[] } else { &["--tools", tools] };
    host.ctl(&[&["group", "add", "team"], agents, tools, &["--yes"]].concat()).ok();
}

/// Lets an agent send to another one under the name of that agent.
fn connect(host: &TestHost, from: &str, to: &str) {
    host.ctl(&["destination", "add", from, to, "--agent", to, "--yes"]).ok();
}

/// Returns a host on which `a` may send to `b`.
fn pair(settings: &str, rules: &str) -> TestHost {
    let host = host_with(Build::Plain, settings, rules);
    group(&host, &["a", "b"], "");
    connect(&host, "a", "b");
    host
}

/// Waits for this number of answers that a turn of the session that asked took.
fn taken(host: &TestHost, count: usize) {
    let is_taken = |entry: &Value, received: &[Value]| {
        received.iter().any(|other| other["data"]["delivery"] == entry["data"]["delivery"])
    };
    wait_for("the answers", || {
        let received = host.entries("delivery.received");
        host.entries("agent.answered").iter().filter(|entry| is_taken(entry, &received)).count() == count
    });
}

/// Returns the session of a request, by its place among all requests.
fn target(host: &TestHost, place: usize) -> String {
    host.entries("agent.sent")[place]["data"]["session"].as_str().expect("an id").to_owned()
}

/// Waits until a session has opened this number of turns.
fn turns(host: &TestHost, session: &str, count: usize) {
    wait_for("the turn", || {
        host.entries("turn.opened").iter().filter(|entry| entry["data"]["session"] == session).count() == count
    });
}

/// Waits until no session has work, and each reply to a person or to an agent is delivered.
fn idle(host: &TestHost) {
    let client = Client::of(host);
    let open =
        "SELECT count(*) FROM deliveries WHERE channel IN ('loopback','agent') AND state IN ('intent','sending')";
    wait_for("the end of all turns", || {
        let status = client.status().expect("the host answers");
        let sessions = status["sessions"].as_array().expect("a list").clone();
        sessions.iter().all(|session| session["waiting"] == 0) && record::count(&record::open(&host.home), open) == 0
    });
}

/// Returns the replies in the conversation of the owner with an agent.
fn replies(host: &TestHost, agent: &str) -> Vec<String> {
    let lines = Client::of(host).history(agent);
    lines
        .iter()
        .filter(|line| line["author"] == "agent")
        .map(|line| line["text"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn wrong_group_or_destination_is_refused_by_name() {
    let host = host_with(Build::Plain, "", "");
    assert_eq!(host.ctl_error(&["group", "add", "team", "a", "zoe", "--yes"])["code"], "agent_unknown");
    assert_eq!(host.ctl_error(&["group", "add", "team", "a", "a", "--yes"])["code"], "payload_malformed");
    assert_eq!(host.ctl_error(&["group", "add", "my team", "a", "b", "--yes"])["code"], "payload_malformed");
    assert_eq!(host.ctl_error(&["group", "add", "team", "a", "b", "--tools", "rm", "--yes"])["code"], "tool_unknown");
    assert_eq!(host.ctl_error(&["group", "remove", "team", "--yes"])["code"], "group_unknown");
    assert_eq!(host.ctl_error(&["destination", "add", "a", "x", "--agent", "x", "--yes"])["code"], "agent_unknown");
    // An agent never sends to itself.
    assert_eq!(
        host.ctl_error(&["destination", "add", "a", "me", "--agent", "a", "--yes"])["code"],
        "destination_unsuitable"
    );
    for wrong in [
        &["group", "add", "team", "a"][..],
        &["destination", "add", "a", "b"],
        &["destination", "add", "a", "b", "--agent", "b", "--channel", "desk"],
        &["destination", "add", "a", "b", "--channel", "desk"],
    ] {
        assert_eq!(host.ctl(wrong).code, 2, "{wrong:?}");
    }
    assert_eq!(host.ctl(&["--json", "group", "list"]).ok().json(), json!([]));
    assert_eq!(
        host.ctl_error(&["channel", "add", "webhook", "agent", "--url", "http://127.0.0.1:9/"])["code"],
        "channel_name"
    );
    for setting in ["hops_max = 0", "hops_max = 21", "sends_per_minute = 0"] {
        host.configure(&format!("[agents]\n{setting}\n"));
        let name = setting.split(' ').next().expect("a name");
        host.ctl(&["config", "reload"]).refused(&format!("agents.{name}"));
    }
}

#[test]
fn agent_asks_another_and_the_answer_returns_to_its_session() {
    let host = pair("", "[[rule]]\nwhen = 'rules\\.\\) the answer$'\nreply = 'b says it'\n");
    let raw = Raw::of(&host);
    assert_eq!(
        host.ctl(&["--json", "group", "list"]).ok().json(),
        json!([{ "name": "team", "agents": ["a", "b"], "tools": [] }])
    );
    let listed = host.ctl(&["--json", "destination", "list", "a"]).ok().json();
    assert_eq!(
        (&listed[0]["to_agent"], &listed[0]["state"], &listed[0]["channel"]),
        (&json!("b"), &json!("active"), &json!("agent"))
    );
    let asked = host.chat("a", "send echo the answer to b");
    taken(&host, 1);
    idle(&host);
    assert_eq!(replies(&host, "a").last().map(String::as_str), Some("b says it"));
    // The chain: the person, the request, and the answer, each in its session.
    let message = asked["message_id"].as_str().expect("an id");
    let chain = host.ctl(&["--json", "why", message]).ok().json()["chain"].clone();
    let links: Vec<(u64, &str)> = chain
        .as_array()
        .expect("a list")
        .iter()
        .map(|link| (link["hop"].as_u64().expect("a number"), link["agent"].as_str().expect("a name")))
        .collect();
    assert_eq!(links, [(0, "a"), (1, "b"), (2, "a")], "{chain}");
    assert!(chain[0]["session"] == chain[2]["session"] && chain[0]["session"] != chain[1]["session"]);
    let session = raw.get(&format!("/v1/sessions/{}", chain[1]["session"].as_str().expect("an id"))).1;
    assert_eq!((&session["channel"], &session["asked_by"]), (&json!("agent"), &json!("a")), "{session}");
    // Every message of the chain shows the whole chain.
    let last = chain[2]["message"].as_str().expect("an id");
    assert_eq!(raw.get(&format!("/v1/messages/{last}/why")).1["chain"], chain);
    let recorded = host.entries("message.recorded");
    let kinds: Vec<&Value> = recorded.iter().map(|entry| &entry["data"]["principal_kind"]).collect();
    assert_eq!(kinds, [&json!("person"), &json!("agent"), &json!("agent")]);
    host.ctl(&["audit", "verify"]).ok();
}
