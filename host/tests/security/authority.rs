//! Authority: two approvals need two independent people, one admin cannot weaken an agent, and a member sees only own agents.
//!
//! Uses `ironctl` and the API of the real daemon. See `e2e::changes` and `e2e::change_effects`.

use crate::support::client::{Raw, code};
use crate::support::host_fixture::{Build, TestHost};
use crate::support::model_server::{Act, Server};
use serde_json::{Value, json};
use std::sync::{Mutex, mpsc};

/// Starts a host whose policy requires two approvals. `carol` is an admin from the start, `mara` is a member.
fn with_two_approvals() -> TestHost {
    with_policy("[default]\napprovals = 2\n")
}

fn with_policy(policy: &str) -> TestHost {
    let host = TestHost::own(Build::Plain).started_with("a");
    for (name, role) in [("carol", "admin"), ("mara", "member")] {
        host.ctl(&["person", "add", name, "--role", role]).ok();
    }
    host.restart_with("policy.toml", policy);
    host
}

fn id_of(submitted: &Value) -> String {
    submitted["id"].as_str().expect("an id").to_owned()
}

fn show_change(host: &TestHost, id: &str) -> Value {
    host.ctl(&["--json", "inbox", "show", id]).ok().json()
}

/// Approves a change with the digest of its review page.
fn approve(host: &TestHost, caller: &Raw, id: &str) -> (u16, Value) {
    let shown = json!({ "approve": show_change(host, id)["shown_digest"] }).to_string();
    caller.ask("POST", &format!("/v1/waiting/{id}/decision"), &shown)
}

fn submit_persona(host: &TestHost) -> String {
    id_of(&host.submit("a", "persona", json!({ "instructions": "new" })).ok().json())
}

#[test]
fn approver_created_by_the_other_does_not_count() {
    let host = with_two_approvals();
    let carol = Raw::of_person(&host, "carol");
    let id = submit_persona(&host);
    assert!(show_change(&host, &id)["shown"].as_str().expect("a text").contains("Approvals must be independent"));
    host.ctl(&["approve", &id]).ok();
    // After the proposal the owner creates a person, a token for an admin, and a role.
    let created = Raw::add_person(&host, "created", &["--role", "admin"]);
    let borrowed = Raw::of_person(&host, "carol");
    let mara = Raw::of_person(&host, "mara");
    host.ctl(&["person", "set", "mara", "--role", "admin", "--yes"]).ok();
    for (name, user) in [("created person", &created), ("token of carol", &borrowed), ("new admin", &mara)] {
        let answer = approve(&host, user, &id);
        assert_eq!(code(&answer), (403, "approver_not_independent"), "{name}: {answer:?}");
        assert!(answer.1["error"]["hint"].as_str().is_some_and(|hint| hint.contains("request it again")), "{answer:?}");
    }
    assert_eq!(show_change(&host, &id)["status"], "pending");
    let refusals = host.entries("change.decision_refused");
    assert!(refusals.iter().all(|entry| entry["data"]["code"] == "approver_not_independent"), "{refusals:?}");
    assert_eq!(refusals.len(), 3);
    let answer = approve(&host, &carol, &id);
    assert_eq!(answer.0, 200, "{answer:?}");
    crate::support::host_fixture::wait_for("the change to be applied", || show_change(&host, &id)["status"] == "done");
}

#[test]
fn channel_is_created_and_then_wired_by_two_approvals() {
    let host = with_two_approvals();
    let carol = Raw::of_person(&host, "carol");
    let url = "http://127.0.0.1:9/in";
    let asked = host.ctl(&["--json", "channel", "add", "webhook", "shop", "--url", url, "--agent", "a", "--yes"]);
    assert!(asked.code == 1 && asked.stderr.contains("change_pending"), "{}", asked.stderr);
    let made = asked.json();
    assert_eq!((&made["agent"], made["secret"].is_string()), (&Value::Null, true), "{made}");
    let id = asked.stderr.split(|c: char| !c.is_alphanumeric() && c != '_').find(|word| word.starts_with("chg_"));
    let id = id.expect("the change that waits").to_owned();
    assert_eq!(show_change(&host, &id)["status"], "pending");
    assert_eq!(approve(&host, &carol, &id).0, 200);
    crate::support::host_fixture::wait_for("the wiring to be applied", || show_change(&host, &id)["status"] == "done");
    let agent = host.ctl(&["--json", "agent", "show", "a"]).ok().json();
    assert_eq!(agent["wirings"][0]["channel"], "shop", "{agent}");
}

#[test]
fn unsatisfiable_policy_fails_the_check_and_is_reported() {
    let host = TestHost::own(Build::Plain).started();
    let policy = host.home.join("policy.toml");
    let checked = |text: &str| {
        std::fs::write(&policy, text).expect("written");
        host.ctl(&["config", "check"])
    };
    assert!(checked("").ok().stdout.contains(&policy.display().to_string()), "the output names the file");
    for text in ["[default]\napprovals = 5\n", "[default]\nrequester_may_approve = false\n"] {
        let refused = checked(text).refused("no change can be approved");
        assert!(refused.stderr.contains(&policy.display().to_string()), "{}", refused.stderr);
        host.down();
        let up = host.ctl(&["up", "--detach"]).ok();
        assert!(up.stderr.contains("warning: no change can be approved"), "{}", up.stderr);
        assert!(host.status()["host"]["warnings"].to_string().contains("no change can be approved"));
    }
    // A member can be the principal of a proposal, so this is only a warning.
    host.ctl(&["person", "add", "mara"]).ok();
    let warned = checked("[default]\nrequester_may_approve = false\n").ok();
    assert!(warned.stderr.contains("no request of an owner or admin can be approved"), "{}", warned.stderr);
    host.ctl(&["person", "add", "carol", "--role", "admin"]).ok();
    assert_eq!(checked("[default]\nrequester_may_approve = false\n").ok().stderr, "");
    // One owner is too few for the default model, and for no other setting.
    let warned = checked("[default]\napprovals = 2\n").ok();
    assert!(warned.stderr.contains("settings (default_model)"), "{}", warned.stderr);
}

#[test]
fn class_of_calls_without_deciders_is_refused_and_reported() {
    let host = TestHost::own(Build::Plain).started();
    let policy = host.home.join("policy.toml");
    let set = |text: &str| std::fs::write(&policy, text).expect("written");
    // The policy of a new home needs only the owner.
    host.ctl(&["config", "check"]).ok();
    let text = "[call.trade]\nroles = [\"admin\"]\n[tool.http_fetch]\napprovals = 2\n";
    set(text);
    host.ctl(&["config", "check"]).refused("no call can be approved under [call.trade]");
    let refused = host.ctl(&["--json", "config", "reload"]).refused("[call.trade]");
    assert!(refused.stderr.contains("config_refused"), "{}", refused.stderr);
    host.down();
    host.ctl(&["up", "--detach"]).ok();
    let warnings = host.status()["host"]["warnings"].to_string();
    assert!(warnings.contains("[call.trade]") && warnings.contains("[tool.http_fetch]"), "{warnings}");
    host.ctl(&["person", "add", "carol", "--role", "admin"]).ok();
    assert_eq!(host.ctl(&["config", "check"]).ok().stderr, "");
    assert_eq!(
        host.ctl(&["--json", "config", "reload"]).ok().json()["policy_changed"],
        false,
        "it was read at the start"
    );
    // A member decides only if the rule names the role.
    set("[call.send]\napprovals = 3\n");
    host.ctl(&["person", "add", "mara"]).ok();
    host.ctl(&["config", "check"]).refused("[call.send]");
    set("[call.send]\napprovals = 3\nroles = [\"owner\", \"admin\", \"member\"]\n");
    host.ctl(&["config", "check"]).ok();
    assert_eq!(host.ctl(&["--json", "config", "reload"]).ok().json()["policy_changed"], true);
}

#[test]
fn member_without_access_cannot_see_an_agent() {
    let host = with_policy("");
    let mara = Raw::of_person(&host, "mara");
    host.change("a", "persona", &json!({ "instructions": "the secret of the house" }));
    assert_eq!(mara.get("/v1/agents/a").1["persona"], "the secret of the house", "the agent is open to everyone");
    host.change("a", "permissions", &json!({ "access": "members" }));
    let answer = mara.get("/v1/agents/a");
    assert_eq!(code(&answer), (403, "agent_not_yours"), "{answer:?}");
    assert!(!answer.1.to_string().contains("secret of the house"));
    assert_eq!(mara.get("/v1/agents"), (200, json!([])));
    let own = host.ctl(&["--json", "person", "show", "mara"]).ok().json();
    let identity = own["identities"][0]["identity"].as_str().expect("an identity").to_owned();
    host.change("a", "permissions", &json!({ "grant": [{ "identity": identity, "role": "member" }] }));
    assert_eq!(mara.get("/v1/agents/a").1["persona"], "the secret of the house");
    assert_eq!(mara.get("/v1/agents").1[0]["name"], "a");
}

/// Approves a change as the owner and as `carol`, and waits until it is applied.
fn approve_by_both(host: &TestHost, carol: &Raw, id: &str) {
    host.ctl(&["approve", id]).ok();
    assert_eq!(approve(host, carol, id).0, 200);
    crate::support::host_fixture::wait_for("the change to be applied", || show_change(host, id)["status"] == "done");
}

/// Returns the only pending change.
fn pending_change(host: &TestHost) -> String {
    let list = host.ctl(&["--json", "inbox", "list", "--type", "change"]).ok().json();
    let list = list.as_array().expect("a list").clone();
    assert_eq!(list.len(), 1, "{list:?}");
    id_of(&list[0])
}

fn exists(host: &TestHost, agent: &str) -> bool {
    host.ctl(&["agent", "show", agent]).code == 0
}

#[test]
fn one_admin_cannot_weaken_an_agent_if_two_must_approve() {
    let host = with_two_approvals();
    host.ctl(&["model", "add", "other", "--kind", "scripted", "--no-test"]).ok();
    let carol = Raw::of_person(&host, "carol");
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
    host.ctl(&["agent", "set", "a", "--mode", "enforce", "--tokens-per-day", "1000"]).ok();
    for ceiling in [2000, 0] {
        let answer = carol.ask("POST", "/v1/agents/a/budget", &json!({ "tokens_per_day": ceiling }).to_string());
        assert_eq!(code(&answer), (403, "policy_asks_for_more"), "{ceiling}: {answer:?}");
    }
    assert_eq!(host.ctl(&["--json", "agent", "show", "a"]).ok().json()["model"], "scripted");
    assert_eq!(carol.get("/v1/agents/a/budget").1["tokens_per_day"], 1000);
    assert!(host.entries("agent.mode").is_empty(), "the mode was `enforce` before");
    // Each command becomes a pending change, which takes effect after both approvals.
    let refused = host.ctl(&["--json", "agent", "set", "a", "--mode", "dangerous_warn", "--tokens-per-day", "none"]);
    assert!(refused.code == 1 && refused.stderr.contains("change_pending"), "{}", refused.stderr);
    let id = pending_change(&host);
    let page = show_change(&host, &id)["shown"].as_str().expect("a text").to_owned();
    assert!(page.contains("NOT REFUSED") && page.contains("NO LIMIT"), "{page}");
    approve_by_both(&host, &carol, &id);
    let modes = host.entries("agent.mode");
    assert_eq!((&modes[0]["data"]["mode"], &modes[0]["data"]["change"]), (&json!("dangerous_warn"), &json!(id)));
    assert!(carol.get("/v1/agents/a/budget").1["tokens_per_day"].is_null());
    let refused = host.ctl(&["--json", "agent", "remove", "a", "--yes"]);
    assert!(refused.code == 1 && refused.stderr.contains("change_pending"), "{}", refused.stderr);
    assert!(exists(&host, "a"));
    let id = pending_change(&host);
    approve_by_both(&host, &carol, &id);
    assert!(!exists(&host, "a"));
}

#[test]
fn removal_fails_if_its_approver_loses_the_role() {
    let host = with_two_approvals();
    host.say("a", "hello");
    let session = host.session()["id"].clone();
    let carol = Raw::of_person(&host, "carol");
    let id = id_of(&host.submit("a", "settings", json!({ "remove": true })).ok().json());
    // A change that is approved during an emergency stop is applied after the stop.
    host.ctl(&["panic"]).ok();
    host.ctl(&["--json", "approve", &id]).ok();
    assert_eq!(approve(&host, &carol, &id).0, 200);
    assert_eq!(show_change(&host, &id)["status"], "approved");
    host.ctl(&["person", "set", "carol", "--role", "member", "--yes"]).ok();
    host.ctl(&["resume"]).ok();
    crate::support::host_fixture::wait_for("the change to fail", || show_change(&host, &id)["status"] == "failed");
    assert!(exists(&host, "a"));
    assert_eq!(host.session()["id"], session, "the conversation still exists");
    assert!(host.entries("session.removed").is_empty());
    let refused = host.entries("approval.refused");
    assert_eq!((refused.len(), &refused[0]["data"]["code"]), (1, &json!("approver_role_lost")), "{refused:?}");
}

#[test]
fn default_model_and_used_endpoints_need_an_approval() {
    let host = with_two_approvals();
    let carol = Raw::of_person(&host, "carol");
    host.ctl(&["model", "add", "other", "--kind", "scripted", "--no-test"]).ok();
    let refused = host.ctl(&["--json", "model", "default", "other"]);
    assert!(refused.code == 1 && refused.stderr.contains("change_pending"), "{}", refused.stderr);
    let id = pending_change(&host);
    let answer = approve(&host, &carol, &id);
    assert_eq!(code(&answer), (403, "not_yours_to_decide"), "this change needs owners: {answer:?}");
    host.ctl(&["person", "add", "olaf", "--role", "owner"]).ok();
    host.ctl(&["reject", &id]).ok();
    let olaf = Raw::of_person(&host, "olaf");
    host.ctl(&["--json", "model", "default", "other"]);
    approve_by_both(&host, &olaf, &pending_change(&host));
    assert_eq!(
        host.ctl(&["--json", "agent", "show", "a"]).ok().json()["model"],
        "other",
        "the agent follows the default"
    );
    // A replacement of an endpoint gives another model to its agents.
    host.ctl(&["--json", "model", "add", "other", "--kind", "scripted", "--no-test", "--replace"])
        .refused("policy_asks_for_more");
}

#[test]
fn endpoint_with_a_user_since_its_test_is_not_replaced() {
    let host = with_policy("[kind.settings]\napprovals = 2\n");
    host.ctl(&["model", "add", "x", "--kind", "scripted", "--no-test"]).ok();
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
        let added = scope.spawn(|| host.ctl(&replace));
        is_asked.recv().expect("the endpoint is tested");
        host.ctl(&["agent", "add", "b", "--model", "x"]).ok();
        go.send(()).expect("the server waits");
        added.join().expect("it ended").refused("asks for more");
    });
    let kept = Raw::of(&host).get("/v1/models/x").1;
    assert_eq!(kept["kind"], "scripted", "{kept}");
}

#[test]
fn setting_by_an_owner_is_recorded_as_a_change() {
    let host = TestHost::own(Build::Plain).started_with("a");
    host.say("a", "hello");
    let set = host.ctl(&["--json", "agent", "set", "a", "--mode", "dangerous_off", "--tokens-per-day", "5"]).ok();
    assert_eq!((&set.json()["mode"], &set.json()["tokens_per_day"]), (&json!("dangerous_off"), &json!(5)));
    host.ctl(&["agent", "set", "a", "--mode", "dangerous_off"]).ok();
    assert_eq!(host.entries("agent.mode").len(), 1, "an unchanged mode makes no entry");
    let change = host.entries("agent.mode")[0]["data"]["change"].clone();
    for what in ["change.proposed", "change.approved_by", "change.approved", "change.applied"] {
        let entries = host.entries(what);
        assert!(entries.iter().any(|entry| entry["data"]["change"] == change), "{what}: {entries:?}");
    }
    host.ctl(&["agent", "remove", "a", "--yes"]).ok();
    assert!(!exists(&host, "a"));
    let removed = &host.entries("agent.removed")[0]["data"];
    let id = removed["change"].as_str().expect("a change");
    assert_eq!(show_change(&host, id)["status"], "done", "the change of a removed agent is kept");
}
