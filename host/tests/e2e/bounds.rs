//! Tests of refusals by a bound: who they stop, what they say, and how their count begins anew. Also of lists that are cut.
//!
//! They use the real programs. See `gateway::requests::bounds` for tables of values.

use super::requests::{approve, host_with, inbox, post, post_while_reading, reject, waiting};
use crate::support::client::Raw;
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::record;
use crate::support::site::{LOOPBACK, Site};
use serde_json::{Value, json};

/// Returns the judgement of the last call of the host.
fn why_last_call(raw: &Raw, host: &TestHost) -> Value {
    let refused = host.entries("call.refused");
    let call = refused.last().expect("a refusal")["data"]["call"].as_str().expect("an id").to_owned();
    raw.get(&format!("/v1/calls/{call}/why")).1
}

fn reset(raw: &Raw, agent: &str, body: &Value) -> (u16, Value) {
    raw.ask("POST", &format!("/v1/agents/{agent}/requests/reset"), &body.to_string())
}

#[test]
fn member_closes_no_agent_for_others() {
    let (site, host, owner) = host_with(&["POST"], &["/notes"]);
    let mara = Raw::add_person(&host, "mara", &["--role", "member"]);
    let otto = Raw::add_person(&host, "otto", &["--role", "member"]);
    for n in 0..7 {
        post_while_reading(&mara, &format!("tulip{n}"), &site.url("/notes"));
    }
    assert_eq!(inbox(&mara).len(), 5);
    let why = why_last_call(&mara, &host);
    assert_eq!(why["code"], "call_asked_too_often", "{why}");
    let bound = &why["bound"];
    assert_eq!((&bound["max"], &bound["count"]), (&json!(5), &json!(5)), "{why}");
    assert_eq!(bound["setting"], "approval.requests_waiting_max", "{why}");
    assert_eq!(bound["ends_at"], inbox(&mara)[0]["expires_at"], "{why}");
    // The words for the person and for the model are those of the bound.
    for words in [&why["summary"], &why["result"]] {
        let words = words.as_str().expect("words");
        assert!(words.contains("5 of at most 5") && words.contains("ironctl inbox --reset a"), "{words}");
    }

    let bounds = host.status()["bounds"].clone();
    assert_eq!((&bounds[0]["count"], &bounds[0]["max"]), (&json!(5), &json!(5)), "{bounds}");
    assert_eq!(bounds[0]["setting"], "approval.requests_waiting_max", "{bounds}");

    // The agent still asks the owner, whose own call comes first in the inbox.
    post_while_reading(&owner, "tulips", &site.url("/notes"));
    let all = inbox(&owner);
    assert_eq!(all.len(), 6, "{all:?}");
    assert_eq!(all.iter().filter(|entry| entry["yours"] == true).count(), 1);
    assert!(all[0]["yours"] == true && all.iter().all(|entry| entry["may_reject"] == true), "{all:?}");
    assert_eq!(approve(&owner, &all[1]).1["error"]["code"], "not_yours_to_decide");
    assert_eq!(reject(&owner, &all[1], "not now").1["status"], "rejected");
    post_while_reading(&mara, "asters", &site.url("/notes"));
    assert_eq!(inbox(&mara).len(), 5, "the rejected one made room");

    let (status, refused) = reset(&otto, "a", &json!({ "person": "mara" }));
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("role_too_low")), "{refused}");
    assert_eq!(reset(&otto, "a", &json!({})).1["requests"], 0, "a member resets their own");
    let done = host.ctl(&["--json", "inbox", "--reset", "a", "--person", "mara"]).ok().json();
    assert_eq!((&done["person"], &done["requests"]), (&json!("mara"), &json!(6)), "{done}");
    assert_eq!(host.entries("request.counts_reset").last().expect("an entry")["data"]["count"], 6);
    post_while_reading(&mara, "lilies", &site.url("/notes"));
    assert_eq!((inbox(&mara).len(), site.lines().len()), (6, 0));
}

#[test]
fn approved_requests_count_against_no_bound() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    let settings = "[approval]\nwait_seconds = 0\nrequests_unapproved_per_day = 2\nrejected_in_a_row_max = 2\n";
    host.configure(&format!("{LOOPBACK}{settings}"));
    host.ctl(&["config", "reload"]).ok();
    for (n, text) in ["tulips", "roses", "lilies"].into_iter().enumerate() {
        post_while_reading(&raw, text, &site.url("/notes"));
        assert_eq!(approve(&raw, &waiting(&raw)).0, 200);
        wait_for("the request at the site", || site.lines().len() == n + 1);
    }
    for n in 0..2 {
        post_while_reading(&raw, &format!("rose{n}"), &site.url("/notes"));
        assert_eq!(reject(&raw, &waiting(&raw), "").0, 200);
    }
    post_while_reading(&raw, "asters", &site.url("/notes"));
    let why = why_last_call(&raw, &host);
    assert_eq!(why["bound"]["setting"], "approval.rejected_in_a_row_max", "{why}");
    // The rejections count against this agent alone.
    host.agent("b");
    let other = Site::start();
    grant_to(&host, "b", &other);
    raw.send("b", &format!("post tulips at {}", other.url("/notes")));
    wait_for("the request of the other agent", || inbox(&raw).len() == 1);
    assert_eq!(inbox(&raw)[0]["agent"], "b");
}

/// Gives an agent the tool and the grant of a site.
fn grant_to(host: &TestHost, agent: &str, site: &Site) {
    host.change(agent, "enabled_tools", &json!({ "add": ["http_fetch"] }));
    let grant = json!({ "host": "127.0.0.1", "port": site.port, "methods": ["POST"], "paths": ["/notes"] });
    host.change(agent, "egress", &grant);
}

#[test]
fn list_that_is_cut_says_so_and_begins_with_the_soonest() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    post(&raw, "tulips", &site.url("/notes"));
    let soonest = waiting(&raw)["id"].clone();
    host.down();
    let db = record::open_to_change(&host.home);
    // Copies that wait longer than the request.
    let names: Vec<String> = {
        let mut names =
            db.prepare("SELECT name FROM pragma_table_info('waiting') WHERE name <> 'ordinal'").expect("SQL");
        let names = names.query_map([], |row| row.get(0)).expect("read");
        names.collect::<Result<_, _>>().expect("names")
    };
    let copied: Vec<&str> = names
        .iter()
        .map(|name| match name.as_str() {
            "id" => "'req_' || printf('%026d', n)",
            "root" => "'msg_' || printf('%026d', n)",
            "expires_at" => "expires_at + n",
            name => name,
        })
        .collect();
    let (names, copied) = (names.join(", "), copied.join(", "));
    db.execute_batch(&format!(
        "INSERT INTO waiting ({names}) WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 300) \
         SELECT {copied} FROM waiting, numbers WHERE kind = 'req'"
    ))
    .expect("copied");
    drop(db);
    host.up();
    let raw = Raw::of(&host);
    for (path, list) in
        [("/v1/waiting?type=call", "entries"), ("/v1/waiting", "entries"), ("/v1/waiting?type=call&agent=a", "entries")]
    {
        let (status, found) = raw.get(path);
        let listed = found[list].as_array().expect("a list");
        assert_eq!((status, listed.len(), &found["more"]), (200, 200, &json!(true)), "{path}");
        assert_eq!(listed[0]["id"], soonest, "{path}");
    }
    let done = raw.get("/v1/waiting?type=call&status=done").1;
    assert_eq!(done, json!({ "entries": [], "more": false }));
}
