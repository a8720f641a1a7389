//! Authority: two approvals need two independent people, one admin cannot weaken an agent, and a member sees only own agents.
//!
//! Uses `ironctl` and the API of the real daemon. See `e2e::changes` and `e2e::change_effects`.

use crate::support::client;
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, World};
use crate::support::model_server::{Act, Server};
use serde_json::{Value, json};
use std::sync::{Mutex, mpsc};

/// Starts a host whose policy requires two approvals. `carol` is an admin from the start, `mara` is a member.
fn with_two_approvals() -> World {
    with_policy("[default]\napprovals = 2\n")
}

fn with_policy(policy: &str) -> World {
    let world = World::with(client::own(), Build::Plain, None);
    world.up();
    world.agent("a");
    for (name, role) in [("carol", "admin"), ("mara", "member")] {
        world.ctl(&["person", "add", name, "--role", role]).ok();
    }
    world.down();
    std::fs::write(world.home.join("policy.toml"), policy).expect("written");
    world.up();
    world
}

fn code(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["error"]["code"].as_str().unwrap_or_default())
}

fn id_of(submitted: &Value) -> String {
    submitted["id"].as_str().expect("an id").to_owned()
}

fn show_change(world: &World, id: &str) -> Value {
    world.ctl(&["--json", "change", "show", id]).ok().json()
}

/// Approves a change with the digest of its review page.
fn approve(world: &World, who: &Raw, id: &str) -> (u16, Value) {
    let shown = json!({ "shown": show_change(world, id)["shown_digest"] }).to_string();
    who.ask("POST", &format!("/v1/changes/{id}/approve"), &shown)
}

fn submit_persona(world: &World) -> String {
    id_of(&world.submit("a", "persona", json!({ "instructions": "new" })).ok().json())
}

#[test]
fn approver_created_by_the_other_does_not_count() {
    let world = with_two_approvals();
    let carol = Raw::of_person(&world, "carol");
    let id = submit_persona(&world);
    assert!(show_change(&world, &id)["shown"].as_str().expect("a text").contains("Approvals must be independent"));
    world.ctl(&["approve", &id]).ok();
    // After the proposal the owner creates a person, a token for an admin, and a role.
    world.ctl(&["person", "add", "created", "--role", "admin"]).ok();
    let created = Raw::of_person(&world, "created");
    let borrowed = Raw::of_person(&world, "carol");
    let mara = Raw::of_person(&world, "mara");
    world.ctl(&["person", "set", "mara", "--role", "admin"]).ok();
    for (name, who) in [("created person", &created), ("token of carol", &borrowed), ("new admin", &mara)] {
        let answer = approve(&world, who, &id);
        assert_eq!(code(&answer), (403, "approver_not_independent"), "{name}: {answer:?}");
        assert!(answer.1["error"]["hint"].as_str().is_some_and(|hint| hint.contains("request it again")), "{answer:?}");
    }
    assert_eq!(show_change(&world, &id)["status"], "pending");
    let refusals = world.entries("change.decision_refused");
    assert!(refusals.iter().all(|entry| entry["data"]["code"] == "approver_not_independent"), "{refusals:?}");
    assert_eq!(refusals.len(), 3);
    let answer = approve(&world, &carol, &id);
    assert_eq!(answer.0, 200, "{answer:?}");
    crate::support::host_fixture::wait_for("the change to be applied", || {
        show_change(&world, &id)["status"] == "applied"
    });
}

#[test]
fn channel_is_created_and_then_wired_by_two_approvals() {
    let world = with_two_approvals();
    let carol = Raw::of_person(&world, "carol");
    let url = "http://127.0.0.1:9/in";
    let refused = world
        .ctl(&["--json", "channel", "add", "webhook", "shop", "--url", url, "--agent", "a"])
        .refused("policy_asks_for_more");
    assert!(
        refused.stderr.contains("without --agent") && refused.stderr.contains("--kind wiring"),
        "{}",
        refused.stderr
    );
    let made = world.ctl(&["--json", "channel", "add", "webhook", "shop", "--url", url]).ok().json();
    assert_eq!((&made["agent"], made["secret"].is_string()), (&Value::Null, true), "{made}");
    let id = id_of(&world.submit("a", "wiring", json!({ "channel": "shop", "engage": "all" })).ok().json());
    world.ctl(&["approve", &id]).ok();
    assert_eq!(show_change(&world, &id)["status"], "pending");
    assert_eq!(approve(&world, &carol, &id).0, 200);
    crate::support::host_fixture::wait_for("the wiring to be applied", || {
        show_change(&world, &id)["status"] == "applied"
    });
    let agent = world.ctl(&["--json", "agent", "show", "a"]).ok().json();
    assert_eq!(agent["wirings"][0]["channel"], "shop", "{agent}");
}

#[test]
fn unsatisfiable_policy_fails_the_check_and_is_reported() {
    let world = World::with(client::own(), Build::Plain, None);
    world.up();
    let policy = world.home.join("policy.toml");
    let checked = |text: &str| {
        std::fs::write(&policy, text).expect("written");
        world.ctl(&["config", "check"])
    };
    assert!(checked("").ok().stdout.contains(&policy.display().to_string()), "the output names the file");
    for text in ["[default]\napprovals = 5\n", "[default]\nrequester_may_approve = false\n"] {
        let refused = checked(text).refused("no change can be approved");
        assert!(refused.stderr.contains(&policy.display().to_string()), "{}", refused.stderr);
        world.down();
        let up = world.ctl(&["up", "--detach"]).ok();
        assert!(up.stderr.contains("warning: no change can be approved"), "{}", up.stderr);
        assert!(world.status()["host"]["warnings"].to_string().contains("no change can be approved"));
    }
    // A member can be the principal of a proposal, so this is only a warning.
    world.ctl(&["person", "add", "mara"]).ok();
    let warned = checked("[default]\nrequester_may_approve = false\n").ok();
    assert!(warned.stderr.contains("no request of an owner or admin can be approved"), "{}", warned.stderr);
    world.ctl(&["person", "add", "carol", "--role", "admin"]).ok();
    assert_eq!(checked("[default]\nrequester_may_approve = false\n").ok().stderr, "");
    // One owner is too few for the default model, and for no other setting.
    let warned = checked("[default]\napprovals = 2\n").ok();
    assert!(warned.stderr.contains("settings (default_model)"), "{}", warned.stderr);
}

#[test]
fn member_without_access_cannot_see_an_agent() {
    let world = with_policy("");
    let mara = Raw::of_person(&world, "mara");
    world.change("a", "persona", &json!({ "instructions": "the secret of the house" }));
    assert_eq!(mara.get("/v1/agents/a").1["persona"], "the secret of the house", "the agent is open to everyone");
    world.change("a", "permissions", &json!({ "access": "members" }));
    let answer = mara.get("/v1/agents/a");
    assert_eq!(code(&answer), (403, "agent_not_yours"), "{answer:?}");
    assert!(!answer.1.to_string().contains("secret of the house"));
    assert_eq!(mara.get("/v1/agents"), (200, json!([])));
    let own = world.ctl(&["--json", "person", "show", "mara"]).ok().json();
    let identity = own["identities"][0]["identity"].as_str().expect("an identity").to_owned();
    world.change("a", "permissions", &json!({ "grant": [{ "identity": identity, "role": "member" }] }));
    assert_eq!(mara.get("/v1/agents/a").1["persona"], "the secret of the house");
    assert_eq!(mara.get("/v1/agents").1[0]["name"], "a");
}

/// Approves a change as the owner and as `carol`, and waits until it is applied.
fn approve_by_both(world: &World, carol: &Raw, id: &str) {
    world.ctl(&["approve", id]).ok();
    assert_eq!(approve(world, carol, id).0, 200);
    crate::support::host_fixture::wait_for("the change to be applied", || {
        show_change(world, id)["status"] == "applied"
    });
}

/// Returns the only pending change.
fn pending_change(world: &World) -> String {
    let list = world.ctl(&["--json", "change", "list"]).ok().json();
    let list = list.as_array().expect("a list").clone();
    assert_eq!(list.len(), 1, "{list:?}");
    id_of(&list[0])
}

fn exists(world: &World, agent: &str) -> bool {
    world.ctl(&["agent", "show", agent]).code == 0
}

#[test]
fn one_admin_cannot_weaken_an_agent_if_two_must_approve() {
    let world = with_two_approvals();
    world.ctl(&["model", "add", "other", "--kind", "scripted", "--no-test"]).ok();
    let carol = Raw::of_person(&world, "carol");
    for (method, path, body) in [
        ("POST", "/v1/agents/a/mode", r#"{"mode":"dangerous_off"}"#),
        ("POST", "/v1/agents/a/model", r#"{"model":"other"}"#),
        ("DELETE", "/v1/agents/a", ""),
    ] {
        let answer = carol.ask(method, path, body);
        assert_eq!(code(&answer), (403, "policy_asks_for_more"), "{path}: {answer:?}");
        assert!(answer.1["error"]["hint"].as_str().is_some_and(|hint| hint.contains("--kind settings")), "{answer:?}");
    }
    // A stricter setting is applied at once. A looser one waits for a decision.
    world.ctl(&["agent", "set", "a", "--mode", "enforce", "--tokens-per-day", "1000"]).ok();
    for ceiling in [2000, 0] {
        let answer = carol.ask("POST", "/v1/agents/a/budget", &json!({ "tokens_per_day": ceiling }).to_string());
        assert_eq!(code(&answer), (403, "policy_asks_for_more"), "{ceiling}: {answer:?}");
    }
    assert_eq!(world.ctl(&["--json", "agent", "show", "a"]).ok().json()["model"], "scripted");
    assert_eq!(carol.get("/v1/agents/a/budget").1["tokens_per_day"], 1000);
    assert!(world.entries("agent.mode").is_empty(), "the mode was `enforce` before");
    // Each command becomes a pending change, which takes effect after both approvals.
    let refused = world.ctl(&["--json", "agent", "set", "a", "--mode", "dangerous_warn", "--tokens-per-day", "none"]);
    assert!(refused.code == 1 && refused.stderr.contains("change_pending"), "{}", refused.stderr);
    let id = pending_change(&world);
    let page = show_change(&world, &id)["shown"].as_str().expect("a text").to_owned();
    assert!(page.contains("NOT REFUSED") && page.contains("NO LIMIT"), "{page}");
    approve_by_both(&world, &carol, &id);
    let modes = world.entries("agent.mode");
    assert_eq!((&modes[0]["data"]["mode"], &modes[0]["data"]["change"]), (&json!("dangerous_warn"), &json!(id)));
    assert!(carol.get("/v1/agents/a/budget").1["tokens_per_day"].is_null());
    let refused = world.ctl(&["--json", "agent", "remove", "a", "--yes"]);
    assert!(refused.code == 1 && refused.stderr.contains("change_pending"), "{}", refused.stderr);
    assert!(exists(&world, "a"));
    let id = pending_change(&world);
    approve_by_both(&world, &carol, &id);
    assert!(!exists(&world, "a"));
}

#[test]
fn removal_fails_if_its_approver_loses_the_role() {
    let world = with_two_approvals();
    world.say("a", "hello");
    let session = world.session()["id"].clone();
    let carol = Raw::of_person(&world, "carol");
    let id = id_of(&world.submit("a", "settings", json!({ "remove": true })).ok().json());
    // A change that is approved during an emergency stop is applied after the stop.
    world.ctl(&["panic"]).ok();
    world.ctl(&["--json", "approve", &id]).ok();
    assert_eq!(approve(&world, &carol, &id).0, 200);
    assert_eq!(show_change(&world, &id)["status"], "approved");
    world.ctl(&["person", "set", "carol", "--role", "member"]).ok();
    world.ctl(&["resume"]).ok();
    crate::support::host_fixture::wait_for("the change to fail", || show_change(&world, &id)["status"] == "failed");
    assert!(exists(&world, "a"));
    assert_eq!(world.session()["id"], session, "the conversation still exists");
    assert!(world.entries("session.removed").is_empty());
    let refused = world.entries("approval.refused");
    assert_eq!((refused.len(), &refused[0]["data"]["code"]), (1, &json!("approver_role_lost")), "{refused:?}");
}

#[test]
fn default_model_and_used_endpoints_need_an_approval() {
    let world = with_two_approvals();
    let carol = Raw::of_person(&world, "carol");
    world.ctl(&["model", "add", "other", "--kind", "scripted", "--no-test"]).ok();
    let refused = world.ctl(&["--json", "model", "default", "other"]);
    assert!(refused.code == 1 && refused.stderr.contains("change_pending"), "{}", refused.stderr);
    let id = pending_change(&world);
    let answer = approve(&world, &carol, &id);
    assert_eq!(code(&answer), (403, "not_yours_to_decide"), "this change needs owners: {answer:?}");
    world.ctl(&["person", "add", "olaf", "--role", "owner"]).ok();
    world.ctl(&["reject", &id]).ok();
    let olaf = Raw::of_person(&world, "olaf");
    world.ctl(&["--json", "model", "default", "other"]);
    approve_by_both(&world, &olaf, &pending_change(&world));
    assert_eq!(
        world.ctl(&["--json", "agent", "show", "a"]).ok().json()["model"],
        "other",
        "the agent follows the default"
    );
    // A replacement of an endpoint gives another model to its agents.
    world
        .ctl(&["--json", "model", "add", "other", "--kind", "scripted", "--no-test", "--replace"])
        .refused("policy_asks_for_more");
}

#[test]
fn endpoint_with_a_user_since_its_test_is_not_replaced() {
    let world = with_policy("[kind.settings]\napprovals = 2\n");
    world.ctl(&["model", "add", "x", "--kind", "scripted", "--no-test"]).ok();
    let (asked, is_asked) = mpsc::channel();
    let (go, is_gone) = mpsc::channel::<()>();
    let is_gone = Mutex::new(is_gone);
    let server = Server::start(move |_| {
        asked.send(()).expect("the test waits");
        is_gone.lock().expect("one request").recv().expect("the test continues");
        Act::Say("yes".to_owned())
    });
    let url = format!("{}/v1", server.url());
    let replace = ["model", "add", "x", "--kind", "openai", "--base-url", &url, "--model", "m", "--replace"];
    std::thread::scope(|scope| {
        let added = scope.spawn(|| world.ctl(&replace));
        is_asked.recv().expect("the endpoint is tested");
        world.ctl(&["agent", "add", "b", "--model", "x"]).ok();
        go.send(()).expect("the server waits");
        added.join().expect("it ended").refused("asks for more");
    });
    let kept = Raw::of(&world).get("/v1/models/x").1;
    assert_eq!(kept["kind"], "scripted", "{kept}");
}

#[test]
fn setting_by_an_owner_is_recorded_as_a_change() {
    let world = World::with(client::own(), Build::Plain, None);
    world.up();
    world.agent("a");
    world.say("a", "hello");
    let set = world.ctl(&["--json", "agent", "set", "a", "--mode", "dangerous_off", "--tokens-per-day", "5"]).ok();
    assert_eq!((&set.json()["mode"], &set.json()["tokens_per_day"]), (&json!("dangerous_off"), &json!(5)));
    world.ctl(&["agent", "set", "a", "--mode", "dangerous_off"]).ok();
    assert_eq!(world.entries("agent.mode").len(), 1, "an unchanged mode makes no entry");
    let change = world.entries("agent.mode")[0]["data"]["change"].clone();
    for what in ["change.proposed", "change.approved_by", "change.approved", "change.applied"] {
        let entries = world.entries(what);
        assert!(entries.iter().any(|entry| entry["data"]["change"] == change), "{what}: {entries:?}");
    }
    world.ctl(&["agent", "remove", "a", "--yes"]).ok();
    assert!(!exists(&world, "a"));
    let removed = &world.entries("agent.removed")[0]["data"];
    let id = removed["change"].as_str().expect("a change");
    assert_eq!(show_change(&world, id)["status"], "applied", "the change of a removed agent is kept");
}
