//! Who decides about a change: only a person with the role, about what they were shown, and from a list of what is theirs.
//!
//! What a decided change does is in `changes`. Next: `changes_random`.

use super::Desk;
use crate::support::client::Raw;
use crate::support::host_fixture::Build;
use serde_json::json;

#[test]
fn only_a_decider_of_the_agent_can_decide_a_change() {
    let desk = Desk::new(Build::Plain);
    desk.world.agent("b");
    let bob = Raw::of_person(&desk.world, "bob");
    let id = desk.want("persona");
    let shown = json!({ "shown": desk.show(&id)["shown_digest"] }).to_string();
    let refused = |who: &Raw| {
        for (path, body) in [("approve", shown.as_str()), ("reject", r#"{"reason":""}"#)] {
            let (status, said) = who.ask("POST", &format!("/v1/changes/{id}/{path}"), body);
            assert_eq!((status, said["error"]["code"].as_str()), (403, Some("not_yours_to_decide")), "{path}: {said}");
        }
        assert_eq!(desk.show(&id)["status"], "pending");
    };
    refused(&bob);
    // Made an admin of another agent, through a change like any other.
    let grant = json!({ "grant": [{ "identity": "loopback:bob", "role": "admin" }] });
    desk.world.change("b", "permissions", &grant);
    refused(&bob);
    // Who has no token or an ended one, and who says something in a chat.
    let (status, _) =
        Raw::of(&desk.world).with_token("ict_0").ask("POST", &format!("/v1/changes/{id}/approve"), &shown);
    assert_eq!(status, 401);
    for said in ["yes", "approve", &format!("approve {id}"), &format!("/approve {id}")] {
        desk.world.say("a", said);
        assert_eq!(desk.show(&id)["status"], "pending", "{said}");
    }
    desk.world.change("a", "permissions", &grant);
    let (status, said) = bob.ask("POST", &format!("/v1/changes/{id}/approve"), &shown);
    assert_eq!(status, 200, "{said}");
    assert_eq!(desk.settled(&id)["status"], "applied");
    let refusals = desk.world.entries("change.decision_refused");
    assert_eq!(refusals.len(), 4, "{refusals:?}");
}

#[test]
fn what_was_not_shown_or_is_unknown_is_not_approved() {
    let desk = Desk::new(Build::Plain);
    let id = desk.want("persona");
    let other = format!("{}{}", &id[..id.len() - 1], if id.ends_with('0') { '1' } else { '0' });
    desk.world.ctl(&["approve", &other]).refused("there is no change");
    desk.world.ctl(&["approve", &id, "--shown", &"0".repeat(64)]).refused("not what was shown");
    let (status, _) = Raw::of(&desk.world).ask("POST", &format!("/v1/changes/{id}/approve"), "{}");
    assert!((400..500).contains(&status), "a yes without what it is about: {status}");
    let (status, _) = Raw::of(&desk.world).ask("POST", &format!("/v1/changes/{id}/approve"), r#"{"approved":true}"#);
    assert!((400..500).contains(&status), "{status}");
    assert_eq!(desk.show(&id)["status"], "pending");
}

#[test]
fn pending_changes_are_listed_oldest_first_to_deciders_only() {
    let desk = Desk::new(Build::Plain);
    desk.world.down();
    let policy = "[kind.wiring]\nroles = [\"owner\"]\n";
    std::fs::write(desk.world.home.join("policy.toml"), policy).expect("written");
    desk.world.up();
    desk.world.ctl(&["person", "add", "carol", "--role", "admin"]).ok();
    let carol = Raw::of_person(&desk.world, "carol");
    let asked: Vec<String> = ["persona", "tools", "wiring", "create"].map(|word| desk.want(word)).into();
    let listed = |who: &Raw, query: &str| -> Vec<String> {
        let (status, found) = who.ask("GET", &format!("/v1/changes{query}"), "");
        assert_eq!(status, 200, "{found}");
        let id = |change: &serde_json::Value| change["id"].as_str().expect("an id").to_owned();
        found["changes"].as_array().expect("changes").iter().map(id).collect()
    };
    let owner = Raw::of(&desk.world);
    assert_eq!(listed(&owner, ""), asked);
    assert_eq!(listed(&owner, "?limit=2"), asked[..2]);
    assert_eq!(listed(&carol, ""), [&asked[0], &asked[1], &asked[3]].map(String::as_str));
    // What she may not decide takes no place of what she may.
    assert_eq!(listed(&carol, "?limit=3").len(), 3);
    let newest_first: Vec<String> = asked.iter().rev().cloned().collect();
    assert_eq!(listed(&carol, "?status=pending"), newest_first);
}
