//! Tests of the tools of agents: they manage their own schedules, and a new one waits for a person.
//!
//! The calls go through the real sandbox. See `super` for the runs.

use super::{add, new_host, show};
use crate::support::client::Raw;
use crate::support::host_fixture::TestHost;
use crate::support::model_server::{Act, Seen, Server};
use crate::support::site::{LOOPBACK, Site};
use serde_json::{Value, json};

fn give_tools(host: &TestHost, agent: &str) {
    host.change(agent, "enabled_tools", &json!({ "add": ["schedule_task", "schedule_manage"] }));
}
fn waiting(host: &TestHost) -> Vec<Value> {
    host.ctl(&["--json", "inbox", "list", "--type", "change"]).ok().json().as_array().expect("a list").clone()
}

/// Returns the identifiers of the schedules that an agent lists.
fn listed(host: &TestHost, agent: &str) -> Vec<String> {
    let said = host.say(agent, "my schedules");
    // The first answer of a conversation begins with a remark about the script.
    let list = said.find('{').map_or("", |at| &said[at..]);
    let all: Value = serde_json::from_str(list).unwrap_or_else(|error| panic!("{error}: {said}"));
    let id = |one: &Value| one["id"].as_str().expect("an id").to_owned();
    all["schedules"].as_array().expect("a list").iter().map(id).collect()
}

#[test]
fn agent_manages_only_the_schedules_that_it_asked_for() {
    let host = new_host();
    host.agent("b");
    give_tools(&host, "a");
    give_tools(&host, "b");
    assert!(host.say("a", "schedule daily: water").contains("pending as chg_"));
    let change = waiting(&host)[0]["id"].as_str().expect("an id").to_owned();
    // The host completes each request with its time. An equal one still joins the one that waits.
    assert!(host.say("a", "schedule daily: water").contains(&format!("already pending as {change}")));
    assert!(host.say("a", "schedule daily: weed").contains("pending as chg_"));
    assert_eq!(waiting(&host).len(), 2);
    host.ctl(&["approve", &change]).ok();
    let all = host.ctl(&["--json", "schedule", "list"]).ok().json();
    let own = all[0]["id"].as_str().unwrap_or_else(|| panic!("{all}")).to_owned();
    let of_person = add(&host, "hello", &["--every", "1d"]);
    assert_eq!((listed(&host, "a"), listed(&host, "b")), (vec![own.clone()], vec![]));

    for verb in ["pause", "resume", "remove"] {
        let said = host.say("b", &format!("{verb} schedule {own}"));
        assert!(said.contains("schedule_unknown"), "{verb}: {said}");
    }
    let said = host.say("a", &format!("pause schedule {of_person}"));
    assert!(said.contains("schedule_unknown"), "it is a person's: {said}");
    assert_eq!((&show(&host, &own)["state"], &show(&host, &of_person)["state"]), (&json!("active"), &json!("active")));

    host.ctl(&["schedule", "pause", &own]).ok();
    let said = host.say("a", &format!("resume schedule {own}"));
    assert!(said.contains("schedule_state"), "a person paused it: {said}");
    assert_eq!(show(&host, &own)["reason"], "person");
    host.ctl(&["schedule", "resume", &own]).ok();
    host.say("a", &format!("pause schedule {own}"));
    assert_eq!((&show(&host, &own)["state"], &show(&host, &own)["reason"]), (&json!("paused"), &json!("agent")));
    host.say("a", &format!("resume schedule {own}"));
    assert_eq!(show(&host, &own)["state"], "active");
    host.say("a", &format!("remove schedule {own}"));
    assert_eq!((&show(&host, &own)["state"], &show(&host, &own)["prompt"]), (&json!("removed"), &json!("")));
    assert!(listed(&host, "a").is_empty());
    let said = host.say("a", &format!("resume schedule {own}"));
    assert!(said.contains("schedule_unknown"), "{said}");
    let agent = host.ctl(&["--json", "agent", "show", "a"]).ok().json()["id"].clone();
    for (event, count) in [("schedule.paused", 2), ("schedule.resumed", 2), ("schedule.removed", 1)] {
        let entries = host.entries(event);
        assert_eq!(entries.len(), count, "{event}: {entries:?}");
        assert_eq!(entries.last().expect("an entry")["data"]["by"], agent, "{event}");
    }
}

/// Returns a model that fetches a page if it is asked to, and asks for a schedule whose runs may use these.
fn model(page: String) -> Server {
    Server::start(move |seen: &Seen| {
        let (asked, results) = (seen.asked(), seen.results());
        let schedule = |may: &[&str]| {
            let task =
                json!({ "prompt": "water", "run_at": "2090-01-01T08:00:00Z", "recurrence": "daily", "may": may });
            Act::Call(String::new(), vec![("schedule_task".to_owned(), task)])
        };
        match (results.len(), asked.contains("fetch")) {
            (0, true) => {
                let fetch = json!({ "method": "GET", "url": page });
                Act::Call(String::new(), vec![("http_fetch".to_owned(), fetch)])
            }
            (1, true) => schedule(&[]),
            (0, false) => schedule(&["exec"]),
            _ => Act::Say(results.last().cloned().unwrap_or_default()),
        }
    })
}

/// Says something to agent `c` as this person, and returns the answer.
fn say(raw: &Raw, text: &str) -> String {
    let (status, recorded) = raw.say("c", text, None);
    assert_eq!(status, 202, "{recorded}");
    let path = format!("/v1/messages/{}?wait_ms=30000", recorded["message_id"].as_str().expect("an id"));
    raw.get(&path).1["reply"].as_str().expect("an answer").to_owned()
}

#[test]
fn schedule_of_an_agent_needs_the_rights_of_its_person() {
    let site = Site::start();
    let server = model(site.url("/notes"));
    let host = new_host();
    host.configure(LOOPBACK);
    host.ctl(&["config", "reload"]).ok();
    host.add_model(&server.url());
    host.ctl(&["agent", "add", "c", "--model", "m"]).ok();
    host.change("c", "enabled_tools", &json!({ "add": ["schedule_task", "http_fetch"] }));
    let grant = json!({ "host": "127.0.0.1", "port": site.port, "methods": ["GET"], "paths": ["/notes"] });
    host.change("c", "egress", &grant);
    host.ctl(&["person", "add", "Bob", "--role", "member"]).ok();
    let (bob, owner) = (Raw::of_person(&host, "Bob"), Raw::of(&host));
    let said = say(&bob, "water my plants");
    assert!(said.contains("schedule_role"), "a member may not use exec: {said}");
    let refused = host.entries("change.refused").pop().expect("an entry");
    assert_eq!((&refused["data"]["code"], &refused["data"]["kind"]), (&json!("schedule_role"), &json!("schedule")));
    assert!(waiting(&host).is_empty());

    // The owner has the right, and still decides on the page.
    let said = say(&owner, "fetch the page and water");
    assert_eq!(site.lines(), ["GET /notes HTTP/1.1"]);
    let found = waiting(&host);
    assert_eq!(found.len(), 1, "{said}");
    let change = host.ctl(&["--json", "inbox", "show", found[0]["id"].as_str().expect("an id")]).ok().json();
    assert!(change["shown"].as_str().expect("a page").contains("External"), "the page has the labels: {change}");
    assert_eq!(
        (&change["status"], &change["details"]["change"]["after"]["written_by"]),
        (&json!("pending"), &json!("model")),
        "{change}"
    );
    assert_eq!(host.ctl(&["--json", "schedule", "list"]).ok().json(), json!([]));
    host.ctl(&["reject", found[0]["id"].as_str().expect("an id"), "--reason", "no"]).ok();
    assert_eq!(host.ctl(&["--json", "schedule", "list"]).ok().json(), json!([]), "nothing was scheduled");
}
