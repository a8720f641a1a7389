//! People through the command line: the caller, the removal of a person, and suggestions for mistyped names.
//!
//! They use the real daemon with two members and an owner. See `security::own_sessions` and `security::operators`.

use crate::security::own_sessions::converse;
use crate::support::client::{Raw, code};
use crate::support::host_fixture::{Build, TestHost};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Starts a host with an agent and these people.
fn with_people(people: &[(&str, &str)]) -> TestHost {
    let host = TestHost::own(Build::Plain).started_with("a");
    for (name, role) in people {
        host.ctl(&["person", "add", name, "--role", role]).ok();
    }
    host
}

/// Writes the token of a client to a file, for `--token-file`.
fn token_file(host: &TestHost, of: &Raw) -> PathBuf {
    let path = host.home.join("a.token");
    std::fs::write(&path, &of.token).expect("written");
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("own file");
    path
}

fn id_of(host: &TestHost, person: &str) -> String {
    host.ctl(&["--json", "person", "show", person]).ok().json()["id"].as_str().expect("an id").to_owned()
}

#[test]
fn whoami_shows_the_person_the_token_and_the_host() {
    let host = with_people(&[("bob", "member")]);
    host.ctl(&["person", "link", "bob", "chat:b0b", "--yes"]).ok();
    host.ctl(&["person", "link", "owner", "chat:bob", "--yes"]).ok();
    let made = ["--json", "token", "add", "--person", "bob", "--name", "laptop", "--expires", "1d"];
    let made = host.ctl(&made).ok().json();
    let bob = Raw::of(&host).with_token(made["text"].as_str().expect("a token"));
    let id = id_of(&host, "bob");
    let (status, shown) = bob.get("/v1/whoami");
    assert_eq!(status, 200, "{shown}");
    assert_eq!((&shown["id"], &shown["name"], &shown["role"]), (&json!(id), &json!("bob"), &json!("member")));
    assert_eq!(shown["identities"], json!(["chat:b0b", format!("loopback:{id}")]), "without marks about others");
    assert_eq!((&shown["token"]["name"], &shown["token"]["current"]), (&json!("laptop"), &json!(true)));
    assert!(!shown.to_string().contains("owner") && !shown.to_string().contains("ict_"), "{shown}");

    let path = token_file(&host, &bob);
    let words = ["--token-file", path.to_str().expect("a path"), "whoami"];
    let text = host.ctl(&words).ok().stdout;
    let home = host.home.display().to_string();
    for part in ["bob", "member", "chat:b0b", "(laptop)", "token expires", &home] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    let own = host.ctl(&["--json", "whoami"]).ok().json();
    assert_eq!((&own["name"], &own["token"]["name"]), (&json!("owner"), &json!("owner.token")), "{own}");
    assert_eq!(own["home"], json!(home));
    assert!(own["api"].as_str().is_some_and(|api| api.ends_with(".sock")), "{own}");
}

#[test]
fn person_is_removed_by_another_owner_and_without_sessions() {
    let host = with_people(&[("bob", "member"), ("carol", "admin")]);
    let (owner, bob) = (Raw::of(&host), Raw::of_person(&host, "bob"));
    let carol = Raw::of_person(&host, "carol");
    assert_eq!(code(&bob.ask("DELETE", "/v1/people/bob", "")), (403, "role_too_low"));
    assert_eq!(code(&carol.ask("DELETE", "/v1/people/bob", "")), (403, "role_too_low"));
    assert_eq!(code(&owner.ask("DELETE", "/v1/people/bbo", "")), (404, "person_unknown"));
    assert_eq!(code(&owner.ask("DELETE", "/v1/people/owner", "")), (400, "person_self"));
    assert_eq!(code(&owner.ask("DELETE", "/v1/people/owner?erase=true", "")), (400, "person_self"));
    let session = converse(&bob, "hello");
    let refused = host.ctl(&["person", "remove", "bob", "--yes"]).refused("bob has 1 session");
    assert!(refused.stderr.contains("ironctl session list --person bob"), "{}", refused.stderr);
    let shown = host.ctl(&["session", "list", "--person", "bob"]).ok().stdout;
    assert!(shown.contains(&session), "{shown}");
    let unconfirmed = host.ctl(&["person", "remove", "bob"]);
    assert_eq!(unconfirmed.code, 2, "{}", unconfirmed.stderr);
    assert_eq!(bob.get("/v1/whoami").0, 200, "no refused removal changed anything");
    assert_eq!(host.entries("person.refused").len(), 4);
    assert_eq!(host.entries("person.removed").len(), 0);
    host.ctl(&["session", "remove", &session, "--yes"]).ok();
    host.ctl(&["person", "remove", "bob", "--yes"]).ok();
    assert_eq!(code(&bob.get("/v1/whoami")), (401, "token_invalid"));
    host.ctl(&["person", "show", "bob"]).refused("there is no person");
}

#[test]
fn removal_ends_every_right_and_a_new_namesake_gets_none() {
    let host = with_people(&[("bob", "member"), ("mara", "member")]);
    host.ctl(&["person", "link", "bob", "chat:bob", "--yes"]).ok();
    let grant = json!({ "access": "members", "grant": [
        { "identity": "chat:bob", "role": "admin" },
        { "identity": format!("loopback:{}", id_of(&host, "mara")), "role": "member" },
    ] });
    host.change("a", "permissions", &grant);
    let (bob, mara) = (Raw::of_person(&host, "bob"), Raw::of_person(&host, "mara"));
    let (session, kept) = (converse(&bob, "my name is Bob"), converse(&mara, "hello"));
    let asked = json!({ "kind": "persona", "agent": "a", "payload": { "instructions": "new" }, "reason": "r" });
    let (status, submitted) = bob.ask("POST", "/v1/changes", &asked.to_string());
    assert_eq!(status, 200, "{submitted}");
    let former = id_of(&host, "bob");

    let removed = host.ctl(&["--json", "person", "remove", "bob", "--erase", "--yes"]).ok().json();
    assert_eq!((&removed["id"], &removed["sessions"]), (&json!(former), &json!(1)), "{removed}");
    assert_eq!((&removed["identities"], &removed["agents"]), (&json!(["chat:bob"]), &json!(["a"])), "{removed}");
    assert_eq!(removed["changes"], json!([submitted["id"]]), "{removed}");
    assert_eq!(removed["tokens"].as_array().map(Vec::len), Some(1), "{removed}");
    assert_eq!(code(&bob.get("/v1/agents")), (401, "token_invalid"));
    assert_eq!(code(&mara.get(&format!("/v1/sessions/{session}"))), (404, "session_unknown"));
    host.ctl(&["session", "show", &session]).refused("there is no session");
    host.ctl(&["session", "show", &kept]).ok();
    let change = host.ctl(&["--json", "inbox", "show", submitted["id"].as_str().expect("an id")]).ok().json();
    assert_eq!((&change["status"], &change["outcome"]), (&json!("withdrawn"), &json!("the requester was removed")));
    let agent = host.ctl(&["--json", "agent", "show", "a"]).ok().json();
    assert_eq!(agent["roles"].as_array().map(Vec::len), Some(1), "{agent}");
    for (what, field, value) in [
        ("person.removed", "role", json!("member")),
        ("token.revoked", "person", json!(former)),
        ("identity.unlinked", "person", json!(former)),
        ("change.withdrawn", "change", submitted["id"].clone()),
        ("session.removed", "session", json!(session)),
    ] {
        let entries = host.entries(what);
        assert!(entries.len() == 1 && entries[0]["data"][field] == value, "{what}: {entries:?}");
    }
    let roles = host.entries("agent.roles");
    let last = &roles.last().expect("an entry")["data"];
    assert_eq!((&last["person"], &last["before"], &last["after"]), (&json!(former), &json!("admin"), &Value::Null));

    host.ctl(&["person", "add", "bob"]).ok();
    assert_ne!(id_of(&host, "bob"), former);
    let namesake = Raw::of_person(&host, "bob");
    assert_eq!(namesake.get("/v1/sessions"), (200, json!([])));
    assert_eq!(namesake.get("/v1/usage").1["rows"], json!([]));
    assert_eq!(namesake.get("/v1/waiting?type=change&own=true&status=all").1["entries"], json!([]));
    assert_eq!(code(&namesake.say("a", "hello", None)), (403, "agent_not_yours"));
    let ledger = host.ctl(&["audit", "verify"]).ok();
    assert_eq!(ledger.code, 0);
}

#[test]
fn approval_of_a_removed_person_no_longer_counts() {
    let host = with_people(&[("carol", "admin"), ("dora", "admin")]);
    host.restart_with("policy.toml", "[default]\napprovals = 2\n");
    let (carol, dora) = (Raw::of_person(&host, "carol"), Raw::of_person(&host, "dora"));
    let id = host.submit("a", "persona", json!({ "instructions": "new" })).ok().json()["id"].clone();
    let id = id.as_str().expect("an id");
    let show = || host.ctl(&["--json", "inbox", "show", id]).ok().json();
    let approve = |caller: &Raw| {
        let shown = json!({ "approve": show()["shown_digest"] }).to_string();
        caller.ask("POST", &format!("/v1/waiting/{id}/decision"), &shown)
    };
    assert_eq!(approve(&carol).0, 200);
    assert_eq!(show()["approvals"]["by"].as_array().map(Vec::len), Some(1));
    host.ctl(&["person", "remove", "carol", "--yes"]).ok();
    assert_eq!(show()["approvals"]["by"], json!([]), "it is taken back at once");
    assert_eq!(host.entries("approval.refused")[0]["data"]["code"], "approver_role_lost");
    // The same name with a role and a token of the owner is no second person beside the owner.
    let again = Raw::add_person(&host, "carol", &["--role", "admin"]);
    host.ctl(&["approve", id]).ok();
    assert_eq!(code(&approve(&again)), (403, "approver_not_independent"));
    assert_eq!(show()["status"], "pending");
    assert_eq!(approve(&dora).0, 200);
    crate::support::host_fixture::wait_for("the change to be applied", || show()["status"] == "done");
}

#[test]
fn mistyped_channel_or_person_gets_the_nearest_name() {
    let host = with_people(&[("Mara", "member"), ("Adam", "admin")]);
    host.ctl(&["channel", "add", "webhook", "desk", "--url", "http://127.0.0.1:9/"]).ok();
    for words in [
        &["person", "show", "Marra"][..],
        &["person", "set", "Marra", "--role", "admin"],
        &["person", "link", "Marra", "chat:x"],
        &["person", "remove", "Marra", "--yes"],
        &["token", "add", "--person", "Marra"],
        &["session", "list", "--person", "Marra"],
    ] {
        host.ctl(words).refused("did you mean Mara?");
    }
    let wiring = r#"{"channel":"dsek","engage":"all"}"#;
    for words in [
        &["channel", "test", "dsek"][..],
        &["channel", "remove", "dsek", "--yes"],
        &["agent", "connect", "a", "dsek"],
        &["change", "submit", "--kind", "wiring", "--agent", "a", "--payload", wiring, "--reason", "r"],
    ] {
        host.ctl(words).refused("did you mean desk?");
    }
    // An admin lists channels and no people.
    let path = token_file(&host, &Raw::of_person(&host, "Adam"));
    let as_admin = |words: &[&str]| {
        let token = ["--token-file", path.to_str().expect("a path")];
        host.ctl(&[&token[..], words].concat()).refused("there is no").stderr
    };
    assert!(as_admin(&["channel", "test", "dsek"]).contains("did you mean desk?"));
    assert!(!as_admin(&["session", "list", "--person", "Marra"]).contains("Mara?"));
}
