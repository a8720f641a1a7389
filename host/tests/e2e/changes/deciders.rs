//! Tests of the decisions on changes: the role of the person, the digest of the shown page, and the list of pending changes.
//!
//! `changes` tests the effects of decisions. See `chaos::changes_random`.

use super::ChangeFixture;
use crate::support::client::{Raw, check_refused};
use crate::support::host_fixture::Build;
use serde_json::json;

#[test]
fn only_a_decider_of_the_agent_can_decide_a_change() {
    let fixture = ChangeFixture::new(Build::Plain);
    fixture.host.agent("b");
    let bob = Raw::of_person(&fixture.host, "bob");
    let id = fixture.propose("persona");
    let shown = json!({ "approve": fixture.show(&id)["shown_digest"] }).to_string();
    let decision = format!("/v1/waiting/{id}/decision");
    let refused = |caller: &Raw| {
        for body in [shown.as_str(), r#"{"reject":""}"#] {
            check_refused(&caller.ask("POST", &decision, body), 404, "change_unknown");
        }
        check_refused(&caller.get(&format!("/v1/waiting/{id}")), 404, "change_unknown");
        assert_eq!(fixture.show(&id)["status"], "pending");
    };
    refused(&bob);
    // A change makes one person an admin of another agent.
    let grant = json!({ "grant": [{ "identity": "loopback:bob", "role": "admin" }] });
    fixture.host.change("b", "permissions", &grant);
    refused(&bob);
    // A request with an unknown token, and a message in a chat.
    assert_eq!(Raw::of(&fixture.host).with_token("ict_0").ask("POST", &decision, &shown).0, 401);
    for said in ["yes", "approve", &format!("approve {id}"), &format!("/approve {id}")] {
        fixture.host.say("a", said);
        assert_eq!(fixture.show(&id)["status"], "pending", "{said}");
    }
    fixture.host.change("a", "permissions", &grant);
    let (status, said) = bob.ask("POST", &decision, &shown);
    assert_eq!(status, 200, "{said}");
    assert_eq!(fixture.settled(&id)["status"], "done");
    // A new agent is no matter of an admin of one agent.
    let made = fixture.propose("create");
    check_refused(&bob.ask("POST", &format!("/v1/waiting/{made}/decision"), r#"{"reject":""}"#), 404, "change_unknown");
    let refusals = fixture.host.entries("change.decision_refused");
    assert_eq!(refusals.len(), 5, "{refusals:?}");
}

#[test]
fn pending_changes_are_listed_oldest_first_to_deciders_only() {
    let fixture = ChangeFixture::new(Build::Plain);
    fixture.host.down();
    let policy = "[kind.wiring]\nroles = [\"owner\"]\n";
    std::fs::write(fixture.host.home.join("policy.toml"), policy).expect("written");
    fixture.host.up();
    let carol = Raw::add_person(&fixture.host, "carol", &["--role", "admin"]);
    let asked: Vec<String> = ["persona", "tools", "wiring", "create"].map(|word| fixture.propose(word)).into();
    let listed = |caller: &Raw, query: &str| -> Vec<String> {
        let (status, found) = caller.ask("GET", &format!("/v1/waiting{query}"), "");
        assert_eq!(status, 200, "{found}");
        let id = |change: &serde_json::Value| change["id"].as_str().expect("an id").to_owned();
        found["entries"].as_array().expect("entries").iter().map(id).collect()
    };
    let owner = Raw::of(&fixture.host);
    assert_eq!(listed(&owner, ""), asked);
    assert_eq!(listed(&owner, "?limit=2"), asked[..2]);
    assert_eq!(listed(&carol, ""), [&asked[0], &asked[1], &asked[3]].map(String::as_str));
    // Changes that she may not decide do not count toward the bound of her list.
    assert_eq!(listed(&carol, "?limit=3").len(), 3);
    assert_eq!(listed(&carol, "?status=pending"), [&asked[0], &asked[1], &asked[3], &asked[2]].map(String::as_str));
}
