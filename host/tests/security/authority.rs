//! Authority: two approvals come from two independent people, one admin alone weakens nothing, and a member sees no foreign agent.
//!
//! Uses `ironctl` and the API of the real daemon. See `e2e::changes` and `e2e::change_effects`.

use crate::support::client;
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, World};
use crate::support::model_server::{Act, Server};
use serde_json::{Value, json};
use std::sync::{Mutex, mpsc};

/// Starts a host on which two people decide every change; `carol` is an admin from the beginning, and `mara` a member.
pub(crate) fn of_two() -> World {
    under("[default]\napprovals = 2\n")
}

fn under(policy: &str) -> World {
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

fn shown(world: &World, id: &str) -> Value {
    world.ctl(&["--json", "change", "show", id]).ok().json()
}

/// Approves the page that is shown to this person.
fn approve(world: &World, who: &Raw, id: &str) -> (u16, Value) {
    let shown = json!({ "shown": shown(world, id)["shown_digest"] }).to_string();
    who.ask("POST", &format!("/v1/changes/{id}/approve"), &shown)
}

fn persona(world: &World) -> String {
    id_of(&world.submit("a", "persona", json!({ "instructions": "new" })).ok().json())
}

#[test]
fn a_puppet_of_one_owner_is_no_second_voice() {
    let world = of_two();
    let carol = Raw::of_person(&world, "carol");
    let id = persona(&world);
    assert!(shown(&world, &id)["shown"].as_str().expect("a text").contains("Approvals must be independent"));
    world.ctl(&["approve", &id]).ok();
    // A person, a token for a real admin, a role: each from the owner, after the proposal.
    world.ctl(&["person", "add", "puppet", "--role", "admin"]).ok();
    let puppet = Raw::of_person(&world, "puppet");
    let borrowed = Raw::of_person(&world, "carol");
    let mara = Raw::of_person(&world, "mara");
    world.ctl(&["person", "set", "mara", "--role", "admin"]).ok();
    for (name, who) in [("puppet", &puppet), ("borrowed", &borrowed), ("mara", &mara)] {
        let answer = approve(&world, who, &id);
        assert_eq!(code(&answer), (403, "approver_not_independent"), "{name}: {answer:?}");
        assert!(answer.1["error"]["hint"].as_str().is_some_and(|hint| hint.contains("request it again")), "{answer:?}");
    }
    assert_eq!(shown(&world, &id)["status"], "pending");
    let refusals = world.entries("change.decision_refused");
    assert!(refusals.iter().all(|entry| entry["data"]["code"] == "approver_not_independent"), "{refusals:?}");
    assert_eq!(refusals.len(), 3);
    let answer = approve(&world, &carol, &id);
    assert_eq!(answer.0, 200, "{answer:?}");
    crate::support::host_fixture::wait_for("the change to be applied", || shown(&world, &id)["status"] == "applied");
}

#[test]
fn a_channel_is_made_and_wired_where_two_have_to_say_yes() {
    let world = of_two();
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
    assert_eq!(shown(&world, &id)["status"], "pending");
    assert_eq!(approve(&world, &carol, &id).0, 200);
    crate::support::host_fixture::wait_for("the wiring to be applied", || shown(&world, &id)["status"] == "applied");
    let agent = world.ctl(&["--json", "agent", "show", "a"]).ok().json();
    assert_eq!(agent["wirings"][0]["channel"], "shop", "{agent}");
}

#[test]
fn policy_that_cannot_be_met_fails_the_check_and_is_reported() {
    let world = World::with(client::own(), Build::Plain, None);
    world.up();
    let policy = world.home.join("policy.toml");
    let checked = |text: &str| {
        std::fs::write(&policy, text).expect("written");
        world.ctl(&["config", "check"])
    };
    assert!(checked("").ok().stdout.contains(&policy.display().to_string()), "the file is named");
    for text in ["[default]\napprovals = 5\n", "[default]\nrequester_may_approve = false\n"] {
        let refused = checked(text).refused("no change can be approved");
        assert!(refused.stderr.contains(&policy.display().to_string()), "{}", refused.stderr);
        world.down();
        let up = world.ctl(&["up", "--detach"]).ok();
        assert!(up.stderr.contains("warning: no change can be approved"), "{}", up.stderr);
        assert!(world.status()["host"]["warnings"].to_string().contains("no change can be approved"));
    }
    // A member can be the principal of a proposal: a warning, and no error.
    world.ctl(&["person", "add", "mara"]).ok();
    let warned = checked("[default]\nrequester_may_approve = false\n").ok();
    assert!(warned.stderr.contains("no request of an owner or admin can be approved"), "{}", warned.stderr);
    world.ctl(&["person", "add", "carol", "--role", "admin"]).ok();
    assert_eq!(checked("[default]\nrequester_may_approve = false\n").ok().stderr, "");
    // One owner is too few for the default model alone.
    let warned = checked("[default]\napprovals = 2\n").ok();
    assert!(warned.stderr.contains("settings (default_model)"), "{}", warned.stderr);
}

#[test]
fn a_member_sees_nothing_of_an_agent_for_others() {
    let world = under("");
    let mara = Raw::of_person(&world, "mara");
    world.change("a", "persona", &json!({ "instructions": "the secret of the house" }));
    assert_eq!(mara.get("/v1/agents/a").1["persona"], "the secret of the house", "it is for everyone");
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

/// Checks that the owner and `carol` approve a change.
fn approved_by_both(world: &World, carol: &Raw, id: &str) {
    world.ctl(&["approve", id]).ok();
    assert_eq!(approve(world, carol, id).0, 200);
    crate::support::host_fixture::wait_for("the change to be applied", || shown(world, id)["status"] == "applied");
}

/// Returns the only pending change.
fn waiting(world: &World) -> String {
    let list = world.ctl(&["--json", "change", "list"]).ok().json();
    let list = list.as_array().expect("a list").clone();
    assert_eq!(list.len(), 1, "{list:?}");
    id_of(&list[0])
}

fn exists(world: &World, agent: &str) -> bool {
    world.ctl(&["agent", "show", agent]).code == 0
}

#[test]
fn one_admin_alone_weakens_no_agent_where_two_decide() {
    let world = of_two();
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
    // A change that tightens is applied at once; one that loosens waits for a decision.
    world.ctl(&["agent", "set", "a", "--mode", "enforce", "--tokens-per-day", "1000"]).ok();
    for ceiling in [2000, 0] {
        let answer = carol.ask("POST", "/v1/agents/a/budget", &json!({ "tokens_per_day": ceiling }).to_string());
        assert_eq!(code(&answer), (403, "policy_asks_for_more"), "{ceiling}: {answer:?}");
    }
    assert_eq!(world.ctl(&["--json", "agent", "show", "a"]).ok().json()["model"], "scripted");
    assert_eq!(carol.get("/v1/agents/a/budget").1["tokens_per_day"], 1000);
    assert!(world.entries("agent.mode").is_empty(), "it was enforce already");
    // The commands become pending changes and take effect once both approve.
    let refused = world.ctl(&["--json", "agent", "set", "a", "--mode", "dangerous_warn", "--tokens-per-day", "none"]);
    assert!(refused.code == 1 && refused.stderr.contains("change_pending"), "{}", refused.stderr);
    let id = waiting(&world);
    let page = shown(&world, &id)["shown"].as_str().expect("a text").to_owned();
    assert!(page.contains("NOT REFUSED") && page.contains("NO LIMIT"), "{page}");
    approved_by_both(&world, &carol, &id);
    let modes = world.entries("agent.mode");
    assert_eq!((&modes[0]["data"]["mode"], &modes[0]["data"]["change"]), (&json!("dangerous_warn"), &json!(id)));
    assert!(carol.get("/v1/agents/a/budget").1["tokens_per_day"].is_null());
    let refused = world.ctl(&["--json", "agent", "remove", "a", "--yes"]);
    assert!(refused.code == 1 && refused.stderr.contains("change_pending"), "{}", refused.stderr);
    assert!(exists(&world, "a"));
    let id = waiting(&world);
    approved_by_both(&world, &carol, &id);
    assert!(!exists(&world, "a"));
}

#[test]
fn a_removal_whose_approver_lost_the_role_erases_nothing() {
    let world = of_two();
    world.say("a", "hello");
    let session = world.session()["id"].clone();
    let carol = Raw::of_person(&world, "carol");
    let id = id_of(&world.submit("a", "settings", json!({ "remove": true })).ok().json());
    // A change that is approved during an emergency stop waits for its end.
    world.ctl(&["panic"]).ok();
    world.ctl(&["--json", "approve", &id]).ok();
    assert_eq!(approve(&world, &carol, &id).0, 200);
    assert_eq!(shown(&world, &id)["status"], "approved");
    world.ctl(&["person", "set", "carol", "--role", "member"]).ok();
    world.ctl(&["resume"]).ok();
    crate::support::host_fixture::wait_for("the change to fail", || shown(&world, &id)["status"] == "failed");
    assert!(exists(&world, "a"));
    assert_eq!(world.session()["id"], session, "its conversation is there");
    assert!(world.entries("session.removed").is_empty());
    let refused = world.entries("approval.refused");
    assert_eq!((refused.len(), &refused[0]["data"]["code"]), (1, &json!("approver_role_lost")), "{refused:?}");
}

#[test]
fn the_default_model_and_endpoints_in_use_are_settings() {
    let world = of_two();
    let carol = Raw::of_person(&world, "carol");
    world.ctl(&["model", "add", "other", "--kind", "scripted", "--no-test"]).ok();
    let refused = world.ctl(&["--json", "model", "default", "other"]);
    assert!(refused.code == 1 && refused.stderr.contains("change_pending"), "{}", refused.stderr);
    let id = waiting(&world);
    let answer = approve(&world, &carol, &id);
    assert_eq!(code(&answer), (403, "not_yours_to_decide"), "it takes owners: {answer:?}");
    world.ctl(&["person", "add", "olaf", "--role", "owner"]).ok();
    world.ctl(&["reject", &id]).ok();
    let olaf = Raw::of_person(&world, "olaf");
    world.ctl(&["--json", "model", "default", "other"]);
    approved_by_both(&world, &olaf, &waiting(&world));
    assert_eq!(world.ctl(&["--json", "agent", "show", "a"]).ok().json()["model"], "other", "it follows the default");
    // A replaced endpoint that agents use is another model for them.
    world
        .ctl(&["--json", "model", "add", "other", "--kind", "scripted", "--no-test", "--replace"])
        .refused("policy_asks_for_more");
}

#[test]
fn an_endpoint_in_use_since_its_test_is_not_replaced() {
    let world = under("[kind.settings]\napprovals = 2\n");
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
fn setting_by_one_owner_is_a_change_in_the_ledger() {
    let world = World::with(client::own(), Build::Plain, None);
    world.up();
    world.agent("a");
    world.say("a", "hello");
    let set = world.ctl(&["--json", "agent", "set", "a", "--mode", "dangerous_off", "--tokens-per-day", "5"]).ok();
    assert_eq!((&set.json()["mode"], &set.json()["tokens_per_day"]), (&json!("dangerous_off"), &json!(5)));
    world.ctl(&["agent", "set", "a", "--mode", "dangerous_off"]).ok();
    assert_eq!(world.entries("agent.mode").len(), 1, "it is so already");
    let change = world.entries("agent.mode")[0]["data"]["change"].clone();
    for what in ["change.proposed", "change.approved_by", "change.approved", "change.applied"] {
        let entries = world.entries(what);
        assert!(entries.iter().any(|entry| entry["data"]["change"] == change), "{what}: {entries:?}");
    }
    world.ctl(&["agent", "remove", "a", "--yes"]).ok();
    assert!(!exists(&world, "a"));
    let removed = &world.entries("agent.removed")[0]["data"];
    let id = removed["change"].as_str().expect("a change");
    assert_eq!(shown(&world, id)["status"], "applied", "the change that removed it is kept");
}
