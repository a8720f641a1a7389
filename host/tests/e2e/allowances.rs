//! Tests of allowances: counted repetitions of calls that would need their person.
//!
//! They use the real programs with the scripted model, and a server on loopback that records its requests. See `requests`.

mod endings;

use super::requests::{self, host_with, inbox};
use crate::support::client::Raw;
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::site::{Site, granted_while_away};
use serde_json::{Value, json};

/// The words that make the values of the control fields typed ones.
const TYPED: &str = "POST with content-type text/plain";

fn posting_host() -> (Site, TestHost, Raw) {
    host_with(&["POST"], &["/notes", "/other"])
}

/// Asks an agent to post a text in a conversation, as a request that asks for reading alone, and waits for the answer.
fn post(raw: &Raw, thread: &str, text: &str, url: &str) {
    let text = format!("post {text} at {url}\n{TYPED}");
    let body = json!({ "text": text, "thread": thread, "allow": ["read"] });
    let id = raw.send_body("a", &body);
    wait_for("an answer", || raw.get(&format!("/v1/messages/{id}/why")).1["message"]["status"] == "delivered");
}

fn codes(entry: &Value) -> Vec<&str> {
    let reasons = entry["reasons"].as_array().expect("a list");
    reasons.iter().filter_map(|reason| reason["reason"].as_str()).collect()
}

/// Adds an allowance for posts to an address, and returns the answer of the command.
fn add(host: &TestHost, url: &str, count: &str) -> crate::support::host_fixture::Answer {
    let url = format!("url={url}");
    host.ctl(&[
        "--json",
        "allowance",
        "add",
        "a",
        "http_fetch",
        "--field",
        "method=POST",
        "--field",
        &url,
        "--field",
        "headers.content-type=text/plain",
        "--count",
        count,
        "--until",
        "7d",
        "--yes",
    ])
}

#[test]
fn repeated_posts_run_without_a_question_until_used_up() {
    let (site, host, raw) = posting_host();
    let added = add(&host, &site.url("/notes"), "2").ok().json();
    assert_eq!((added["status"].as_str(), &added["anything"]), (Some("active"), &json!(["body"])), "{added}");
    // The second one has the page of the first one in its context, and a person typed all that leaves.
    for text in ["tulips", "roses"] {
        post(&raw, "one", text, &site.url("/notes"));
    }
    assert_eq!((inbox(&raw), site.lines().len()), (Vec::new(), 2));
    assert_eq!(host.ctl(&["--json", "allowance", "list", "a"]).ok().json()[0]["status"], "used_up");
    post(&raw, "one", "lilies", &site.url("/notes"));
    assert_eq!(codes(&inbox(&raw)[0]), ["call_scope"], "it asks as before");
    assert_eq!(site.lines().len(), 2);
    let used = host.entries("allowance.used");
    assert_eq!(used.iter().map(|entry| entry["data"]["uses"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(2)]);
    assert_eq!((host.entries("allowance.added").len(), host.entries("call.started").len()), (1, 2));
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn message_of_an_agent_uses_no_allowance_of_its_person() {
    let (site, host, raw) = posting_host();
    let url = site.url("/notes");
    add(&host, &url, "2").ok();
    host.agent("b");
    host.ctl(&["group", "add", "team", "a", "b", "--tools", "http_fetch", "--yes"]).ok();
    host.ctl(&["destination", "add", "b", "a", "--agent", "a", "--yes"]).ok();
    host.chat("b", &format!("send post tulips at {url}\n{TYPED} to a"));
    wait_for("the request", || inbox(&raw).len() == 1);
    let uses = || host.ctl(&["--json", "allowance", "list"]).ok().json()[0]["used"].clone();
    assert_eq!((&inbox(&raw)[0]["agent"], uses(), site.lines().len()), (&json!("a"), json!(0), 0));
    // The same call at the request of the person.
    post(&raw, "one", "tulips", &url);
    assert_eq!((uses(), site.lines().len()), (json!(1), 1));
}

#[test]
fn another_value_person_or_a_removed_allowance_asks() {
    let (site, host, raw) = posting_host();
    let added = add(&host, &site.url("/notes"), "5").ok().json();
    post(&raw, "one", "tulips", &site.url("/other"));
    assert_eq!(inbox(&raw).len(), 1, "another value of a control field asks");
    let mara = Raw::add_person(&host, "mara", &[]);
    let path = format!("/v1/allowances/{}", added["id"]);
    assert_eq!(mara.get("/v1/allowances").1, json!([]));
    assert_eq!(mara.get(&path).1["error"]["code"], "allowance_unknown");
    assert_eq!(mara.ask("DELETE", &path, "").1["error"]["code"], "allowance_unknown");
    post(&mara, "one", "tulips", &site.url("/notes"));
    assert_eq!(inbox(&mara).len(), 1, "it serves the turns of its own person");
    host.ctl(&["allowance", "remove", &added["id"].to_string()]).ok();
    post(&raw, "two", "tulips", &site.url("/notes"));
    let own = inbox(&raw).iter().filter(|entry| entry["yours"] == true).count();
    assert_eq!((own, site.lines().len()), (2, 0));
    assert_eq!(host.entries("allowance.removed").len(), 1);
    add(&host, &site.url("/notes"), "5").ok();
    host.change("a", "enabled_tools", &json!({ "remove": ["http_fetch"] }));
    assert_eq!(raw.get("/v1/allowances").1, json!([]), "the agent lost the tool");
    assert_eq!(host.entries("allowance.used").len(), 0);
}

#[test]
fn allowance_for_a_rejected_call_is_refused_by_name() {
    let (site, host, raw) = posting_host();
    post(&raw, "one", "tulips", &site.url("/notes"));
    let id = inbox(&raw)[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(add(&host, &site.url("/notes"), "21").error()["code"], "allowance_bounds");
    host.ctl(&["reject", &id]).ok();
    let refused = add(&host, &site.url("/notes"), "5");
    assert_eq!(refused.error()["code"], "allowance_rejected");
    assert!(refused.stderr.contains(&id), "{}", refused.stderr);
    add(&host, &site.url("/other"), "5").ok();
    let draft = json!({
        "agent": "a", "tool": "http_fetch", "count": 1, "until": "7d",
        "fields": { "method": "POST", "url": site.url("/other") }
    });
    let unseen = json!({ "draft": draft, "shown": "0".repeat(64) }).to_string();
    assert_eq!(raw.ask("POST", "/v1/allowances", &unseen).1["error"]["code"], "shown_differs");
}

#[test]
fn calls_approved_on_three_days_are_offered() {
    let (site, mut host) = granted_while_away(TestHost::with_clock(), &["POST"], &["/notes"]);
    let raw = Raw::of(&host);
    let url = site.url("/notes");
    let offers = || raw.get("/v1/allowances/offers").1;
    for day in 0..3 {
        assert_eq!(offers(), json!([]), "{day}");
        host.shift_clock(day * 86_400_000);
        post(&raw, &format!("day-{day}"), "tulips", &url);
        let entry = requests::waiting(&raw);
        assert_eq!(requests::approve(&raw, &entry).0, 200);
        wait_for("the outcome", || requests::request(&raw, &entry["id"])["status"] == "done");
    }
    let found = host.ctl(&["--json", "allowance", "offers"]).ok().json();
    let draft = &found[0]["draft"];
    assert_eq!((&draft["tool"], &draft["fields"]["url"]), (&json!("http_fetch"), &json!(url)), "{found}");
    assert_eq!([&found[0]["messages"], &found[0]["days"], &found[0]["permitted"]], [3, 3, 3], "{found}");
    host.ctl(&["person", "add", "mara"]).ok();
    assert_eq!(Raw::of_person(&host, "mara").get("/v1/allowances/offers").1, json!([]));
    let (status, page) = raw.ask("POST", "/v1/allowances/review", &draft.to_string());
    assert_eq!((status, page["permitted"].as_u64()), (200, Some(3)), "{page}");
    let added = add(&host, &url, "5").ok().json();
    assert_eq!(offers(), json!([]), "an allowance covers them");
    host.ctl(&["allowance", "remove", &added["id"].to_string()]).ok();
    assert_eq!(offers().as_array().map(Vec::len), Some(1));
    post(&raw, "rejected", "tulips", &url);
    assert_eq!(requests::reject(&raw, &requests::waiting(&raw), "no").0, 200);
    assert_eq!(offers(), json!([]), "a person rejected one that the allowance would have permitted");
}

#[test]
fn allowance_farmed_by_benign_bodies() {
    let (site, host, raw) = posting_host();
    // The person approved benign calls, and the allowance was made over them.
    post(&raw, "benign", "tulips", &site.url("/notes"));
    host.ctl(&["approve", inbox(&raw)[0]["id"].as_str().expect("an id"), "--yes"]).ok();
    wait_for("the request at the site", || site.lines().len() == 1);
    add(&host, &site.url("/notes"), "5").ok();
    post(&raw, "one", "roses", &site.url("/notes"));
    assert_eq!(site.lines().len(), 2, "a benign call runs by the allowance");
    // Now the context holds the page of the site, which is text of others, and the model writes a body with an address that no person typed.
    post(&raw, "one", "notes of \"https://internal.example/keys\" as read", &site.url("/notes"));
    let entries = inbox(&raw);
    let waiting: Vec<&Value> = entries.iter().filter(|entry| codes(entry).contains(&"call_outward")).collect();
    assert_eq!(waiting.len(), 1, "{entries:?}");
    assert_eq!(codes(waiting[0]), ["call_scope", "call_outward"], "it asks with all its reasons");
    assert_eq!(site.lines().len(), 2, "nothing is sent");
    assert_eq!(host.entries("allowance.used").len(), 1);
}

#[test]
fn allowance_holds_after_panic_for_its_person() {
    let (site, host, _) = posting_host();
    let mara = Raw::add_person(&host, "mara", &[]);
    let draft = json!({
        "agent": "a", "tool": "http_fetch", "count": 1, "until": "7d",
        "fields": { "method": "POST", "url": site.url("/notes"), "headers": { "content-type": "text/plain" } }
    });
    let mut new = json!({ "draft": draft });
    let (status, page) = mara.ask("POST", "/v1/allowances/review", &draft.to_string());
    assert_eq!(status, 200, "{page}");
    new["draft"]["until"] = page["until"].clone();
    new["shown"] = page["shown_digest"].clone();
    assert_eq!(mara.ask("POST", "/v1/allowances", &new.to_string()).0, 200);
    host.ctl(&["panic"]).ok();
    host.ctl(&["resume"]).ok();
    post(&mara, "one", "tulips", &site.url("/notes"));
    assert_eq!((inbox(&mara), site.lines().len()), (Vec::new(), 1));
    assert_eq!(Raw::of(&host).get("/v1/allowances").1[0]["person"], "mara", "an owner lists those of everyone");
}
