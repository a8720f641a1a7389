//! Members see their own sessions, usage and requests, and cannot learn of those of others.
//!
//! Two members and an owner use the real daemon. See `operators` for tokens and roles.

use crate::support::client::{Raw, check_refused};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use serde_json::{Value, json};

/// A host with an agent, an owner and two members.
struct People {
    host: TestHost,
    bob: Raw,
    mara: Raw,
}

impl People {
    fn new(settings: &str) -> Self {
        let host = TestHost::own(Build::Plain).configured(settings).started_with("a");
        let bob = Raw::add_person(&host, "bob", &[]);
        let mara = Raw::add_person(&host, "mara", &[]);
        Self { host, bob, mara }
    }
}

/// Sends a message, waits for the answer, and returns the session.
pub(crate) fn converse(caller: &Raw, text: &str) -> String {
    let (status, recorded) = caller.say("a", text, None);
    assert_eq!(status, 202, "{recorded}");
    let message = recorded["message_id"].as_str().expect("an id").to_owned();
    wait_for("the answer", || caller.get(&format!("/v1/messages/{message}?wait_ms=1000")).1["status"] == "delivered");
    recorded["session_id"].as_str().expect("an id").to_owned()
}

fn ids(list: &Value, field: &str) -> Vec<String> {
    let id = |entry: &Value| entry[field].as_str().expect("an id").to_owned();
    list.as_array().unwrap_or_else(|| panic!("no list: {list}")).iter().map(id).collect()
}

#[test]
fn foreign_session_is_refused_as_one_that_does_not_exist() {
    let people = People::new("");
    let (own, foreign) = (converse(&people.bob, "hello"), converse(&people.mara, "my name is Mara"));
    let last = if foreign.ends_with('0') { '1' } else { '0' };
    let absent = format!("{}{last}", &foreign[..foreign.len() - 1]);
    let mut refused = 0;
    for (method, path) in [
        ("GET", "/v1/sessions/SESSION"),
        ("GET", "/v1/sessions/SESSION/transcript"),
        ("GET", "/v1/sessions/SESSION/transcript?last=5"),
        ("POST", "/v1/sessions/SESSION/cancel"),
        ("GET", "/v1/usage?session=SESSION"),
    ] {
        let answer = |session: &str| {
            let (status, body) = people.bob.ask(method, &path.replace("SESSION", session), "");
            (status, body.to_string().replace(session, "SESSION"))
        };
        let (status, body) = answer(&foreign);
        assert!(status == 404 && body.contains("session_unknown"), "{method} {path}: {status} {body}");
        assert_eq!((status, body), answer(&absent), "{method} {path}");
        refused += 2;
        assert!(answer(&own).0 != 404, "{method} {path}");
    }
    // A member cannot ask for the sessions of another person, who may exist or not.
    for person in ["mara", "owner", "Zoe"] {
        check_refused(&people.bob.get(&format!("/v1/sessions?person={person}")), 403, "role_too_low");
    }
    assert!(people.host.entries("transcript.read").is_empty());
    people.host.down();
    let recorded: u64 = people
        .host
        .entries("api.refused")
        .iter()
        .filter(|line| line["data"]["code"] == "session_unknown")
        .map(|line| line["data"]["count"].as_u64().expect("a count"))
        .sum();
    assert_eq!(recorded, refused, "each refusal is in the ledger");
}

#[test]
fn member_lists_and_reads_own_sessions_only() {
    let people = People::new("");
    let (own, foreign) = (converse(&people.bob, "my name is Bob"), converse(&people.mara, "hello"));
    let owned = converse(&Raw::of(&people.host), "hello");
    let listed = people.bob.get("/v1/sessions").1;
    assert_eq!(ids(&listed, "id"), [own.as_str()]);
    let session = &listed[0];
    assert_eq!((&session["person_name"], &session["thread"]), (&json!("bob"), &json!("")), "{session}");
    assert_eq!((&session["title"], &session["channel"]), (&json!("my name is Bob"), &json!("loopback")), "{session}");
    assert_eq!(people.bob.get("/v1/agents/a/threads").1["threads"][0]["title"], "my name is Bob");
    assert_eq!(people.bob.get("/v1/agents/a").1.get("abilities"), None, "a member decides nothing on the agent");
    assert!(session["last_used_ms"].as_i64().is_some_and(|at| at > 1_700_000_000_000), "{session}");
    assert_eq!((&session["pid"], &session["jail"], &session["reader"]), (&Value::Null, &Value::Null, &Value::Null));
    assert_eq!(people.bob.get("/v1/sessions?person=bob").1, listed);
    assert_eq!(people.bob.get(&format!("/v1/sessions/{own}")).1["id"], json!(own));
    let text = people.bob.get(&format!("/v1/sessions/{own}/transcript")).1.to_string();
    assert!(text.contains("my name is Bob"), "{text}");

    let owner = Raw::of(&people.host);
    assert_eq!(ids(&owner.get("/v1/sessions").1, "id"), [own.clone(), foreign.clone(), owned.clone()]);
    let of_mara = owner.get("/v1/sessions?person=mara").1;
    assert_eq!(ids(&of_mara, "id"), [foreign.as_str()]);
    assert_eq!(of_mara[0].get("title"), None, "the words of others are in their transcript alone");
    assert_eq!(owner.get(&format!("/v1/sessions/{foreign}")).1.get("title"), None);
    assert_eq!(ids(&owner.get("/v1/sessions?person=owner").1, "id"), [owned]);
    people.host.ctl(&["session", "list", "--person", "Zoe"]).refused("there is no person");
    assert_eq!(owner.get(&format!("/v1/sessions/{foreign}/transcript")).0, 200);
    assert_eq!(people.host.entries("transcript.read").len(), 1, "an owner's look at another session is recorded");

    // With an identity, its sessions are lost.
    people.host.ctl(&["person", "link", "bob", "loopback:bob-work", "--yes"]).ok();
    assert_eq!(people.bob.say("a", "hello", Some("loopback:bob-work")).0, 202);
    assert_eq!(people.bob.get("/v1/sessions").1.as_array().map(Vec::len), Some(2));
    people.host.ctl(&["person", "unlink", "bob", "loopback:bob-work"]).ok();
    assert_eq!(ids(&people.bob.get("/v1/sessions").1, "id"), [own]);
    assert_eq!(owner.get("/v1/sessions?person=bob").1.as_array().map(Vec::len), Some(2));
}

#[test]
fn member_sees_own_usage_and_no_ceiling_of_others() {
    let people = People::new("[budget]\ntokens_per_day = 1000000\ntokens_per_session = 500000\n");
    let (own, foreign) = (converse(&people.bob, "hello"), converse(&people.mara, "hello"));
    let usage = people.bob.get("/v1/usage").1;
    assert_eq!(ids(&usage["rows"], "session_id"), [own.as_str()]);
    assert_eq!(ids(&usage["ceilings"], "of"), [own.as_str()], "{usage}");
    assert_eq!(people.bob.get(&format!("/v1/usage?session={own}")).1["rows"], usage["rows"]);
    assert_eq!(people.bob.get("/v1/usage?agent=a").1, usage);
    let all = Raw::of(&people.host).get("/v1/usage").1;
    assert_eq!(all["rows"].as_array().map(Vec::len), Some(2), "{all}");
    assert_eq!(all["ceilings"].as_array().map(Vec::len), Some(3), "{all}");
    // The usage of a removed session still belongs to its person, and to no other.
    people.host.ctl(&["session", "remove", &own, "--yes"]).ok();
    assert_eq!(people.bob.get(&format!("/v1/usage?session={own}")).1["rows"], usage["rows"]);
    assert_eq!(ids(&people.mara.get("/v1/usage").1["rows"], "session_id"), [foreign]);
    assert_eq!(people.mara.get(&format!("/v1/usage?session={own}")).0, 404);
}
