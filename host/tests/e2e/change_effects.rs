//! Tests of the effects of approved changes on an agent: its senders, its turns, its prompt, and the policy for commands.
//!
//! The tests write to the record of a stopped host only states that no change can produce: a pattern that every check refuses, and a
//! server without its secret. See `security::operators` and `webhook`.

use crate::e2e::streaming;
use crate::support::client::{Raw, code};
use crate::support::hooks::{Hook, host_with_shop, new_host, receipt};
use crate::support::host_fixture::{Build, TestHost};
use crate::support::model_server::{Act, Server};
use crate::support::record;
use serde_json::{Value, json};

/// Changes the record of a stopped host.
fn set(host: &TestHost, sql: &str) {
    host.down();
    let changed = record::open_to_change(&host.home).execute(sql, []).expect("written");
    assert_eq!(changed, 1, "{sql}");
    host.up();
}
fn member(host: &TestHost, name: &str) -> Raw {
    host.ctl(&["person", "add", name, "--role", "member"]).ok();
    Raw::of_person(host, name)
}

/// Returns a wiring of `shop` in which only matching messages open a turn.
fn wiring_with(pattern: &str) -> Value {
    json!({ "channel": "shop", "engage": "pattern", "pattern": pattern })
}

#[test]
fn non_member_is_refused_on_every_channel() {
    let (host, _receiver, hook) = host_with_shop("");
    let mia = member(&host, "Mia");
    host.ctl(&["person", "link", "Mia", "shop:mia", "--yes"]).ok();
    let of_mia = || json!({ "sender": "mia", "text": "hello" }).to_string();
    assert_eq!(hook.send("e0", &of_mia()).0, 200, "every member may use the agent");

    host.change("a", "permissions", &json!({ "access": "members" }));
    let recorded = host.entries("message.recorded").len();
    let answer = mia.say("a", "hello", None);
    assert_eq!(code(&answer).1, "agent_not_yours", "{answer:?}");
    assert_eq!(code(&hook.send("e1", &of_mia())), (403, "agent_not_yours"));
    assert_eq!(host.entries("message.recorded").len(), recorded, "a refused message is not recorded");
    assert_eq!(code(&mia.get("/v1/agents/a")), (403, "agent_not_yours"), "a non-member cannot read the persona");
    assert_eq!(host.chat("a", "hello")["status"], "delivered", "an owner talks to every agent");
    let shown = host.ctl(&["agent", "show", "a"]).ok().stdout;
    assert!(shown.contains("members") && shown.contains("shop: all"), "{shown}");

    host.change("a", "permissions", &json!({ "grant": [{ "identity": "shop:mia", "role": "member" }] }));
    assert_eq!(mia.say("a", "hello", None).0, 202);
    assert_eq!(hook.send("e2", &of_mia()).0, 200);
    let (_, shown) = mia.get("/v1/agents/a");
    assert_eq!(shown["access"], "members", "{shown}");
    assert!(shown.get("wirings").is_none(), "a member does not see the wirings: {shown}");
}

#[test]
fn message_outside_the_pattern_is_recorded_without_a_turn() {
    let (host, _receiver, mut hook) = host_with_shop("");
    host.change("a", "wiring", &wiring_with("^hello$"));
    let beside = hook.say("e1", "is anybody there, hello?");
    let asks = hook.say("e2", "hello");
    receipt(&host, &asks, "received");
    let opened = host.entries("turn.opened");
    assert_eq!(opened.len(), 1, "{opened:?}");
    assert_eq!(opened[0]["data"]["message"], asks.as_str());
    let recorded = host.entries("message.recorded");
    let asked =
        |id: &str| recorded.iter().find(|entry| entry["data"]["message"] == id).map(|entry| &entry["data"]["asks"]);
    assert_eq!((asked(&beside), asked(&asks)), (Some(&json!(false)), Some(&json!(true))));
    let again = hook.send("e1", &Hook::words("is anybody there, hello?"));
    assert_eq!((again.0, again.1["message_id"].as_str()), (200, Some(beside.as_str())), "the event id is known");

    // An invalid pattern matches no message.
    set(&host, "UPDATE wirings SET pattern = '('");
    hook.follow_restart(&host);
    hook.say("e3", "hello");
    host.change("a", "wiring", &wiring_with("last"));
    let last = hook.say("e4", "at last");
    receipt(&host, &last, "received");
    assert_eq!(host.entries("turn.opened").len(), 2, "the message between them opened no turn");
}

#[test]
fn waiting_context_messages_are_bounded() {
    let (host, _receiver, hook) = host_with_shop("");
    host.change("a", "wiring", &wiring_with("^hello$"));
    for number in 0..40 {
        hook.say(&format!("e{number}"), "by the way");
    }
    host.down();
    let count = "SELECT count(*) FROM messages WHERE trigger = 0 AND status = 'queued' AND kind = 'webhook'";
    let queued: i64 = record::open(&host.home).query_row(count, [], |row| row.get(0)).expect("read");
    assert_eq!(queued, 32);
}

#[test]
fn persona_reaches_the_model_only_after_its_approval() {
    let server = Server::start(|_| Act::Say("Noted.".to_owned()));
    let host = streaming::new_host("", &server, "openai", &[]);
    let instructions = || {
        let (role, text) = server.seen().last().expect("the model got a request").conversation().swap_remove(0);
        assert_eq!(role, "system");
        text
    };
    host.say("a", "hello");
    let before = instructions();
    let wanted = json!({ "instructions": "Speak of tulips alone." });
    let id = host.submit("a", "persona", &wanted).ok().json()["id"].as_str().expect("an id").to_owned();
    host.say("a", "hello again");
    assert_eq!(instructions(), before, "a pending change has no effect");
    host.ctl(&["approve", &id]).ok();
    host.say("a", "and now");
    assert_eq!(instructions(), format!("{before}\n\nSpeak of tulips alone."));
    host.change("a", "persona", &json!({ "instructions": "" }));
    host.say("a", "as before");
    assert_eq!(instructions(), before, "the persona is removed");
}

#[test]
fn command_cannot_bypass_a_stricter_policy() {
    let (host, receiver, _) = host_with_shop("");
    host.down();
    let policy = "[kind.create_agent]\napprovals = 2\n[kind.wiring]\nrequester_may_approve = false\n";
    std::fs::write(host.home.join("policy.toml"), policy).expect("written");
    host.up();
    let agents = host.ctl(&["agent", "add", "b"]).refused("policy of this host asks for more");
    assert!(agents.stderr.contains("--kind create_agent"), "{}", agents.stderr);
    let add = ["--json", "channel", "add", "webhook", "desk", "--url", &receiver.url, "--agent", "a", "--yes"];
    let share = ["--json", "agent", "connect", "a", "shop", "--sharing", "shared", "--yes"];
    for arguments in [&share[..], &add, &["--json", "agent", "disconnect", "a", "shop"]] {
        let proposed = host.ctl(arguments);
        assert!(proposed.code == 1 && proposed.stderr.contains("change_pending"), "{}", proposed.stderr);
    }
    let agents = host.ctl(&["--json", "agent", "list"]).ok().json();
    assert_eq!(agents.as_array().map(Vec::len), Some(1), "{agents}");
    assert_eq!(agents[0]["wirings"][0]["channel"], "shop", "{agents}");
}

#[test]
fn mcp_list_names_secrets_and_is_for_admins_only() {
    let host = new_host(Build::Plain, "");
    host.ctl(&["mcp", "list"]).ok();
    let described = json!({
        "name": "files",
        "url": "https://mcp.example/",
        "headers": [{ "name": "authorization", "scheme": "Bearer", "secret": "token" }],
    });
    let tool = json!({ "name": "read", "inputSchema": { "type": "object" } });
    let listing = json!({ "era": "session", "instructions": null, "tools": [tool] });
    let columns = "name, described, made_at, seen, seen_at, confirmed, confirmed_at";
    set(
        &host,
        &format!(
            "INSERT INTO mcp_servers ({columns}) VALUES ('files', '{described}', 0, '{listing}', 0, '{listing}', 0)"
        ),
    );
    host.change("a", "mcp_access", &json!({ "server": "files", "tools": ["read"] }));
    let listed = host.ctl(&["mcp", "list"]).ok().stdout + &host.ctl(&["mcp", "show", "files"]).ok().stdout;
    for word in ["files", "https://mcp.example/", "authorization", "secret:token", "confirmed", "read"] {
        assert!(listed.contains(word), "{word}: {listed}");
    }
    let answer = member(&host, "Bob").get("/v1/mcp");
    assert_eq!(answer.0, 403, "{answer:?}");
    assert!(host.ctl(&["agent", "show", "a"]).ok().stdout.contains("files: read"));
}
