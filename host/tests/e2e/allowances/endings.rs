//! Tests of the ends of allowances: each has an entry in the ledger, and the next call asks.
//!
//! They use the real programs with the scripted model, and a server on loopback that records its requests.

use super::{codes, inbox, post, posting_host};
use crate::support::client::Raw;
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::record;
use crate::support::site::{Site, granted_while_away};
use serde_json::{Value, json};

/// Adds an allowance of the person of this client for posts to an address, and returns its number.
fn add(raw: &Raw, url: &str, count: u32) -> u64 {
    let fields = json!({ "method": "POST", "url": url, "headers": { "content-type": "text/plain" } });
    let mut draft = json!({ "agent": "a", "tool": "http_fetch", "count": count, "until": "7d", "fields": fields });
    let (status, page) = raw.ask("POST", "/v1/allowances/review", &draft.to_string());
    assert_eq!(status, 200, "{page}");
    draft["until"] = page["until"].clone();
    let new = json!({ "draft": draft, "shown": page["shown_digest"] });
    let (status, added) = raw.ask("POST", "/v1/allowances", &new.to_string());
    assert_eq!(status, 200, "{added}");
    added["id"].as_u64().expect("a number")
}

/// Returns the reason of the only entry about the end of an allowance.
fn why(host: &TestHost, allowance: u64) -> String {
    let mut entries = host.entries("allowance.removed");
    entries.retain(|entry| entry["data"]["allowance"] == allowance);
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert!(entries[0]["data"]["person"].is_string() && entries[0]["data"]["agent"].is_string(), "{}", entries[0]);
    entries[0]["data"]["reason"].as_str().expect("a reason").to_owned()
}

/// Checks that a post of this person asks, with the reason that the allowance lifted, and reaches no site.
fn check_asks(raw: &Raw, site: &Site, thread: &str) {
    let before = site.lines().len();
    post(raw, thread, "tulips", &site.url("/notes"));
    let mut entries = inbox(raw);
    entries.retain(|entry| entry["yours"] == true);
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert!(codes(&entries[0]).contains(&"call_scope"), "{entries:?}");
    assert_eq!(site.lines().len(), before);
}

fn listed(raw: &Raw) -> Vec<Value> {
    raw.get("/v1/allowances").1.as_array().expect("a list").clone()
}

#[test]
fn lost_role_ends_allowances_of_the_person() {
    let (site, host, _) = posting_host();
    for name in ["mara", "ivy"] {
        host.ctl(&["person", "add", name, "--role", "admin"]).ok();
    }
    host.ctl(&["person", "link", "mara", "loopback:mara", "--yes"]).ok();
    let (mara, ivy) = (Raw::of_person(&host, "mara"), Raw::of_person(&host, "ivy"));
    let kept = add(&ivy, &site.url("/notes"), 2);
    let lost = add(&mara, &site.url("/notes"), 2);
    host.ctl(&["person", "set", "mara", "--role", "admin", "--yes"]).ok();
    assert_eq!(listed(&mara).len(), 2, "the same role ends nothing");
    host.ctl(&["person", "set", "mara", "--role", "member", "--yes"]).ok();
    assert_eq!(why(&host, lost), "the person lost a role");
    assert_eq!(listed(&mara), Vec::<Value>::new());
    check_asks(&mara, &site, "one");
    // A role with one agent.
    let role = |role: &str| {
        let grant = json!({ "grant": [{ "identity": "loopback:mara", "role": role }] });
        host.change("a", "permissions", &grant);
    };
    role("admin");
    let lost = add(&mara, &site.url("/notes"), 2);
    role("member");
    assert_eq!(why(&host, lost), "the person lost a role");
    let lost = add(&mara, &site.url("/notes"), 2);
    host.change("a", "permissions", &json!({ "revoke": ["loopback:mara"] }));
    assert_eq!(why(&host, lost), "the person lost a role");
    assert_eq!(host.entries("allowance.removed").len(), 3);
    post(&ivy, "one", "tulips", &site.url("/notes"));
    assert_eq!((site.lines().len(), listed(&ivy)[0]["id"].as_u64()), (1, Some(kept)), "others keep theirs");
    // The page of the allowance said that its calls carry no secret.
    host.ctl_given("top-secret\n", &["secret", "set", "forge"]).ok();
    let grant =
        json!({ "host": "127.0.0.1", "port": site.port, "methods": ["POST"], "paths": ["/notes"], "secret": "forge" });
    let statuses = |raw: &Raw| listed(raw).iter().map(|one| one["status"].clone()).collect::<Vec<_>>();
    assert_eq!(statuses(&ivy), ["active"]);
    host.change("a", "egress", &grant);
    check_asks(&ivy, &site, "two");
    assert_eq!(statuses(&ivy), ["outdated"]);
    let abilities = &host.ctl(&["--json", "agent", "show", "a"]).ok().json()["abilities"];
    let host_with_secret = (&abilities["hosts"][0]["host"], &abilities["hosts"][0]["secret"]);
    assert_eq!(host_with_secret, (&json!("127.0.0.1"), &json!("forge")), "{abilities}");
    assert_eq!((&abilities["mode"], &abilities["allowances"][0]["id"]), (&json!("enforce"), &json!(kept)));
}

#[test]
fn removal_of_person_or_agent_ends_allowances() {
    let (site, host, _) = posting_host();
    host.ctl(&["person", "add", "mara"]).ok();
    let (owner, mara) = (Raw::of(&host), Raw::of_person(&host, "mara"));
    let (first, second) = (add(&mara, &site.url("/notes"), 2), add(&owner, &site.url("/notes"), 2));
    host.ctl(&["person", "remove", "mara", "--yes"]).ok();
    assert_eq!(why(&host, first), "the person was removed");
    let mara = Raw::add_person(&host, "mara", &[]);
    assert_eq!(listed(&mara), Vec::<Value>::new());
    check_asks(&mara, &site, "one");
    host.ctl(&["agent", "remove", "a", "--yes"]).ok();
    assert_eq!(why(&host, second), "the agent was removed");
    host.agent("a");
    host.change("a", "enabled_tools", &json!({ "add": ["http_fetch"] }));
    let grant = json!({ "host": "127.0.0.1", "port": site.port, "methods": ["POST"], "paths": ["/notes"] });
    host.change("a", "egress", &grant);
    assert_eq!(listed(&owner), Vec::<Value>::new());
    check_asks(&owner, &site, "one");
    assert_eq!((host.entries("allowance.used").len(), site.lines().len()), (0, 0));
}

#[test]
fn another_manifest_ends_allowances_at_the_start() {
    let (site, host, _) = posting_host();
    let id = add(&Raw::of(&host), &site.url("/notes"), 2);
    host.down();
    let sql = "UPDATE allowances SET tools = json_object('http_fetch', hex(zeroblob(32)))";
    assert_eq!(record::open_to_change(&host.home).execute(sql, []).expect("written"), 1);
    host.up();
    assert_eq!(why(&host, id), "the manifest of the tool changed");
    let raw = Raw::of(&host);
    assert_eq!(listed(&raw), Vec::<Value>::new());
    check_asks(&raw, &site, "one");
}

#[test]
fn restore_of_a_backup_ends_allowances() {
    let (site, host, raw) = posting_host();
    let id = add(&raw, &site.url("/notes"), 1);
    let file = host.home.with_file_name("b.backup");
    let file = file.to_str().expect("UTF-8");
    host.ctl(&["backup", "create", file]).ok();
    // The other history uses it up.
    post(&raw, "one", "roses", &site.url("/notes"));
    assert_eq!((listed(&raw)[0]["status"].as_str(), site.lines().len()), (Some("used_up"), 1));
    host.down();
    host.ctl(&["backup", "restore", file, "--replace", "--yes"]).ok();
    host.up();
    let raw = Raw::of(&host);
    assert_eq!(why(&host, id), "the record was put back to an earlier state");
    assert_eq!(listed(&raw), Vec::<Value>::new());
    check_asks(&raw, &site, "two");
    assert_eq!(site.lines().len(), 1);
}

#[test]
fn expired_allowance_permits_nothing() {
    let (site, mut host) = granted_while_away(TestHost::with_clock(), &["POST"], &["/notes"]);
    let raw = Raw::of(&host);
    let id = add(&raw, &site.url("/notes"), 2);
    post(&raw, "one", "roses", &site.url("/notes"));
    assert_eq!((inbox(&raw), site.lines().len()), (Vec::new(), 1));
    host.shift_clock(7 * 86_400_000);
    check_asks(&raw, &site, "two");
    assert_eq!(listed(&raw)[0]["status"], "expired");
    add(&raw, &site.url("/other"), 2);
    assert_eq!(why(&host, id), "expired");
    assert_eq!(host.entries("allowance.used").len(), 1);
}

#[test]
fn one_of_competing_calls_gets_the_last_use() {
    let (site, host, raw) = posting_host();
    add(&raw, &site.url("/notes"), 1);
    let threads = ["one", "two", "three", "four"];
    std::thread::scope(|scope| {
        for thread in threads {
            let (raw, site) = (&raw, &site);
            scope.spawn(move || post(raw, thread, "tulips", &site.url("/notes")));
        }
    });
    assert_eq!((site.lines().len(), host.entries("allowance.used").len()), (1, 1));
    let waiting = inbox(&raw);
    assert_eq!(waiting.len(), threads.len() - 1, "the others ask");
    assert!(waiting.iter().all(|entry| codes(entry) == ["call_scope"]), "{waiting:?}");
    assert_eq!(host.entries("call.refused").len(), 0);
    // Each of them runs after a yes.
    let id = waiting[0]["id"].as_str().expect("an id");
    host.ctl(&["approve", id, "--yes"]).ok();
    wait_for("the request at the site", || site.lines().len() == 2);
    host.ctl(&["audit", "verify"]).ok();
}
