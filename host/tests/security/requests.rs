//! Attacks on approval requests: changed records, lost rights, other people, other words, and deaths of the host.
//!
//! They use the real programs, and a server on loopback that records its requests. See `e2e::requests`.

mod people;
mod restore;

use crate::e2e::requests::{
    Stream, answered, approve, approve_and_die, host_with, inbox, post, reject, request, waiting,
};
use crate::support::client::{Raw, check_refused, code};
use crate::support::host_fixture::{Build, TestHost, alive, wait_for};
use crate::support::model_server::{Act, Server};
use crate::support::record;
use crate::support::site::{Site, granted};
use serde_json::{Value, json};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

/// The fail points of a call that waits for people, in their order.
pub(crate) const POINTS: [&str; 6] =
    ["call_paused", "call_pending", "approved", "call_started", "call_sent", "call_followed_up"];

/// Rounds of two people who decide at the same time.
const ROUNDS: usize = 20;

/// A host in a build with fail points, with the grant of a site.
fn failing_host() -> (Site, TestHost) {
    granted(TestHost::own(Build::Failpoints), &["POST"], &["/notes"])
}

/// Restarts a host, which then dies at this point.
fn dying_at(host: &mut TestHost, point: &str) -> Raw {
    host.down();
    host.up_failing_at(point);
    Raw::of(host)
}

/// Returns the entry of the inbox with this body.
fn with_body(raw: &Raw, body: &str) -> Value {
    let all = inbox(raw);
    all.iter()
        .find(|entry| entry["details"]["call"]["arguments"]["body"] == body)
        .unwrap_or_else(|| panic!("{body}: {all:?}"))
        .clone()
}

fn id(entry: &Value) -> &str {
    entry["id"].as_str().expect("an id")
}

/// Returns the status of a request in the record, also if its page is damaged.
fn status(host: &TestHost, request: &Value) -> String {
    let sql = "SELECT status FROM waiting WHERE id = ?1";
    let id = request["id"].as_str().expect("an id");
    record::open(&host.home).query_row(sql, [id], |row| row.get(0)).expect("a request")
}

/// Requests of one home: used, approved and not used, pending.
struct Waiting {
    host: TestHost,
    used: Value,
    approved: Value,
    pending: Value,
}

impl Waiting {
    /// Makes a home whose host died after an approval and before its use.
    fn make() -> (Site, Self) {
        let (site, mut host) = failing_host();
        host.ctl(&["person", "add", "mara"]).ok();
        let raw = dying_at(&mut host, "approved");
        post(&raw, "roses", &site.url("/notes"));
        let used = waiting(&raw);
        approve_and_die(&raw, &host, &used);
        host.up();
        wait_for("the first call", || status(&host, &used) == "done" && site.sent("roses") == 1);
        let raw = dying_at(&mut host, "approved");
        for body in ["lilies", "tulips"] {
            post(&raw, body, &site.url("/notes"));
        }
        let (pending, approved) = (with_body(&raw, "lilies"), with_body(&raw, "tulips"));
        let own = Raw::of_person(&host, "owner");
        approve_and_die(&own, &host, &approved);
        assert_eq!(status(&host, &approved), "approved");
        (site, Self { host, used, approved, pending })
    }

    /// Starts a copy of the home after a change of its record or its files, and returns it once `request` is no longer approved.
    fn start_changed(&self, name: &str, request: &Value, sql: &str, prepare: &dyn Fn(&mut TestHost)) -> TestHost {
        let mut copy = self.host.copy();
        let sql = sql
            .replace("USED", &format!("'{}'", id(&self.used)))
            .replace("PENDING", &format!("'{}'", id(&self.pending)))
            .replace("APPROVED", &format!("'{}'", id(&self.approved)));
        record::open_to_change(&copy.home).execute_batch(&sql).unwrap_or_else(|error| panic!("{name}: {error}"));
        prepare(&mut copy);
        copy.up();
        wait_for(&format!("{name}: the end of the request"), || status(&copy, request) != "approved");
        copy
    }
}

/// Checks that a request with a changed record is withdrawn, and returns the codes of the approvals that did not count.
fn check_withdrawn(host: &TestHost, name: &str, request: &Value, codes: &[&str]) {
    assert_eq!(status(host, request), "withdrawn", "{name}");
    let refused = host.entries("approval.refused");
    let found: Vec<&str> = refused.iter().filter_map(|entry| entry["data"]["code"].as_str()).collect();
    assert_eq!(found, codes, "{name}");
    assert_eq!(host.entries("request.withdrawn").last().expect("an entry")["data"]["request"], request["id"], "{name}");
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn changed_record_uses_no_approval() {
    check_changed_records(0..5);
}

#[test]
fn changed_request_runs_no_other_call() {
    check_changed_records(5..9);
}

/// Starts a host with each of these changes of its record, and checks that it uses no approval.
fn check_changed_records(some: Range<usize>) {
    let (site, home) = Waiting::make();
    let token_of_used =
        "UPDATE approvals SET token = (SELECT token FROM approvals WHERE subject = USED) WHERE subject = APPROVED";
    let other_call = "DELETE FROM waiting WHERE id = PENDING; UPDATE waiting SET (call_id, turn_id, output_item) = \
                      (SELECT id, turn_id, output_item FROM calls WHERE id = CALL) WHERE id = APPROVED";
    let call = request_call(&home.host, &home.pending);
    let other_call = other_call.replace("CALL", &format!("'{call}'"));
    let cases: [(&str, &Value, &str, &[&str]); 9] = [
        ("replay", &home.approved, token_of_used, &["approval_for_another"]),
        (
            "forged tag",
            &home.approved,
            "UPDATE approvals SET token = replace(token, substr(token, instr(token, '\"mac\":') + 7, 8), '00000000') \
             WHERE subject = APPROVED",
            &["approval_forged"],
        ),
        (
            "swapped approver",
            &home.approved,
            "UPDATE approvals SET person_id = (SELECT id FROM people WHERE name = 'mara') WHERE subject = APPROVED",
            &["approval_forged"],
        ),
        (
            "swapped principal",
            &home.approved,
            "UPDATE waiting SET principal = (SELECT id FROM people WHERE name = 'mara') WHERE id = APPROVED",
            &[],
        ),
        ("flipped status", &home.pending, "UPDATE waiting SET status = 'approved' WHERE id = PENDING", &[]),
        ("argument drift", &home.approved, &other_call, &[]),
        ("other tool", &home.approved, "UPDATE waiting SET subject = 'send_message' WHERE id = APPROVED", &[]),
        (
            "other class",
            &home.approved,
            "UPDATE waiting SET own = json_set(own, '$.class', 'read') WHERE id = APPROVED",
            &["approval_for_another"],
        ),
        (
            "used again",
            &home.used,
            "UPDATE approvals SET state = 'live', ended_at = NULL WHERE subject = USED; \
             UPDATE waiting SET status = 'approved', expires_at = expires_at + 3600000, ends_at = expires_at + 3600000 WHERE id = USED",
            &[],
        ),
    ];
    for (name, request, sql, codes) in cases.into_iter().skip(some.start).take(some.len()) {
        let end_others = match request == &home.approved {
            true => String::new(),
            false => "; UPDATE waiting SET status = 'withdrawn' WHERE id = APPROVED".to_owned(),
        };
        let host = home.start_changed(name, request, &format!("{sql}{end_others}"), &|_| {});
        check_withdrawn(&host, name, request, codes);
        let all = ["roses", "lilies", "tulips"].map(|body| site.sent(body));
        assert_eq!(all, [1, 0, 0], "{name}");
    }
}

fn request_call(host: &TestHost, request: &Value) -> String {
    let sql = "SELECT call_id FROM waiting WHERE id = ?1";
    record::open(&host.home).query_row(sql, [id(request)], |row| row.get(0)).expect("a request")
}

/// A name, the statement that changes the record, the change of the home, and the codes of the approvals that are taken back.
type Case<'a> = (&'a str, &'a str, &'a dyn Fn(&mut TestHost), &'a [&'a str]);

#[test]
fn approved_call_is_judged_again_before_it_runs() {
    let (site, home) = Waiting::make();
    let newest =
        "UPDATE tokens SET state = 'revoked', ended_at = created_at WHERE rowid = (SELECT max(rowid) FROM tokens)";
    let cases: [Case<'_>; 5] = [
        ("revoked token", newest, &|_| {}, &["approver_proof_lost"]),
        (
            "changed policy",
            "",
            &|host| std::fs::write(host.home.join("policy.toml"), "[call.send]\nexpires_hours = 2\n").expect("written"),
            &["approval_for_another"],
        ),
        ("removed grant", "DELETE FROM egress_grants", &|_| {}, &[]),
        (
            "grant with a secret",
            "UPDATE egress_grants SET granted = json_set(granted, '$.secret', 'forge')",
            &|_| {},
            &[],
        ),
        ("restored", "UPDATE waiting SET generation = generation + 1", &|_| {}, &[]),
    ];
    for (name, sql, prepare, codes) in cases {
        let host = home.start_changed(name, &home.approved, sql, prepare);
        check_withdrawn(&host, name, &home.approved, codes);
        assert_eq!(site.sent("tulips"), 0, "{name}");
        if name.contains("grant") {
            // The call would do something else than the page showed, so people are asked about that.
            let again = with_body(&Raw::of_person(&host, "owner"), "tulips");
            assert_ne!((&again["id"], &again["shown_digest"]), (&home.approved["id"], &home.approved["shown_digest"]));
            assert_eq!((again["status"].as_str(), again["yours"].as_bool()), (Some("pending"), Some(true)), "{name}");
        }
    }
    let late = home.start_changed("expiry", &home.approved, "", &|host| {
        host.shift_clock(11 * 60_000);
    });
    assert_eq!((status(&late, &home.approved).as_str(), site.sent("tulips")), ("expired", 0));
    drop(late);
    let host = home.start_changed("unchanged", &home.approved, "", &|_| {});
    wait_for("the end of the call", || status(&host, &home.approved) == "done");
    assert_eq!(site.sent("tulips"), 1);
}

#[test]
fn lost_role_token_or_policy_leaves_a_request_pending() {
    let (site, host, _) = host_with(&["GET"], &["/other"]);
    for name in ["ada", "ivy", "eve"] {
        host.ctl(&["person", "add", name, "--role", "admin"]).ok();
    }
    let policy = |text: &str| {
        std::fs::write(host.home.join("policy.toml"), text).expect("written");
        host.ctl(&["config", "reload"]).ok();
    };
    policy("[call.send]\napprovals = 2\n");
    let (owner, ada, eve) = (Raw::of(&host), Raw::of_person(&host, "ada"), Raw::of_person(&host, "eve"));
    let made = host.ctl(&["--json", "token", "add", "--person", "ivy"]).ok().json();
    let ivy = Raw::of(&host).with_token(made["text"].as_str().expect("a token"));
    let ask = |body: &str| {
        post(&owner, body, &site.url("/notes"));
        waiting(&owner)
    };
    let first = |by: &Raw, entry: &Value| {
        let (status, approved) = approve(by, entry);
        assert_eq!((status, approved["status"].as_str()), (200, Some("pending")), "{approved}");
    };
    let entry = ask("role");
    first(&ada, &entry);
    host.ctl(&["person", "set", "ada", "--role", "member", "--yes"]).ok();
    first(&owner, &entry);
    assert_eq!(reject(&owner, &entry, "no").0, 200);
    let entry = ask("token");
    first(&ivy, &entry);
    host.ctl(&["token", "revoke", made["token"]["id"].as_str().expect("an id")]).ok();
    first(&owner, &entry);
    assert_eq!(reject(&owner, &entry, "no").0, 200);
    let entry = ask("policy");
    first(&eve, &entry);
    policy("[call.send]\napprovals = 2\nroles = [\"owner\", \"admin\", \"member\"]\n");
    assert_eq!(code(&approve(&owner, &entry)).1, "shown_differs");
    first(&owner, &waiting(&owner));
    let codes: Vec<Value> =
        host.entries("approval.refused").iter().map(|entry| entry["data"]["code"].clone()).collect();
    assert_eq!(codes, ["approver_role_lost", "approver_proof_lost", "approval_for_another"]);
    assert!(site.lines().is_empty());
    // Two people who keep their rights.
    assert_eq!(approve(&eve, &waiting(&owner)).0, 200);
    wait_for("the request at the site", || site.lines().len() == 1);
}

#[test]
fn two_deciders_at_once_have_one_outcome() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    let mut approved = 0;
    for round in 0..ROUNDS {
        post(&raw, "tulips", &site.url("/notes"));
        let entry = waiting(&raw);
        let (yes, no) = std::thread::scope(|scope| {
            let yes = scope.spawn(|| approve(&raw, &entry));
            let no = scope.spawn(|| reject(&raw, &entry, "no"));
            (yes.join().expect("an answer"), no.join().expect("an answer"))
        });
        assert_eq!([yes.0, no.0].iter().filter(|status| **status == 200).count(), 1, "{round}: {yes:?} {no:?}");
        let lost = if yes.0 == 200 { &no } else { &yes };
        assert_eq!(code(lost).1, "request_decided", "{round}");
        approved += usize::from(yes.0 == 200);
        let expected = if yes.0 == 200 { "done" } else { "rejected" };
        wait_for("the outcome", || request(&raw, &entry["id"])["status"] == expected);
        assert_eq!(site.lines().len(), approved, "{round}");
    }
    assert_eq!(host.entries("request.used").len(), approved);
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn equal_call_that_ran_withdraws_an_approved_request() {
    let (site, mut host) = failing_host();
    host.down();
    host.shift_clock(3_600_000);
    host.up();
    let raw = Raw::of(&host);
    let text = format!("post tulips at {}", site.url("/notes"));
    post(&raw, "tulips", &site.url("/notes"));
    let entry = waiting(&raw);
    // The later turn has an earlier time.
    host.shift_clock(0);
    host.say("a", &format!("/allow send\n{text}"));
    assert_eq!(site.lines().len(), 1);
    assert_eq!(approve(&raw, &entry).0, 200);
    wait_for("the end of the request", || request(&raw, &entry["id"])["status"] == "withdrawn");
    assert_eq!(site.lines().len(), 1);
    assert_eq!(host.entries("call.refused").last().expect("an entry")["data"]["reason"], "call_repeated");
}

/// Lets a model repeat a call that waited and ran while the model worked, and repeat it again in the follow-up. With `is_granted`, the
/// second call needs no person.
fn check_repeated_before_the_outcome(is_granted: bool) {
    let (site, asked, (ran, may_answer)) = (Site::start(), Arc::new(AtomicUsize::new(0)), mpsc::channel());
    let headers = json!({ "content-type": "text/plain" });
    let arguments = json!({ "method": "POST", "url": site.url("/notes"), "headers": headers, "body": "tulips" });
    let (may_answer, requests) = (Mutex::new(may_answer), Arc::clone(&asked));
    let server = Server::start(move |_| {
        let call = || Act::Call(String::new(), vec![("http_fetch".to_owned(), arguments.clone())]);
        match requests.fetch_add(1, Ordering::SeqCst) {
            0 => call(),
            // This prompt says that the call waits. It runs before the model answers.
            1 => {
                may_answer.lock().expect("no holder panics").recv().expect("the test ends later");
                call()
            }
            2 => Act::Say("it waits".to_owned()),
            // The prompt of the follow-up has the outcome, so this is another call.
            3 => call(),
            _ => Act::Say("it is done".to_owned()),
        }
    });
    let host = people::host_with_model(&site, &server, &["GET"], &["/other"]);
    let raw = Raw::of(&host);
    let message = raw.send("a", &format!("/allow send\npost tulips at {}", site.url("/notes")));
    wait_for("the second request to the model", || asked.load(Ordering::SeqCst) == 2);
    let entry = waiting(&raw);
    assert_eq!(approve(&raw, &entry).0, 200);
    wait_for("the call", || request(&raw, &entry["id"])["status"] == "done");
    if is_granted {
        let grant = json!({ "host": "127.0.0.1", "port": site.port, "methods": ["POST"], "paths": ["/notes"] });
        host.change("a", "egress", &grant);
    }
    ran.send(()).expect("the model waits");
    answered(&host, &message);
    assert_eq!(host.entries("call.refused").last().expect("an entry")["data"]["reason"], "call_repeated");
    if !is_granted {
        wait_for("the request of the follow-up", || inbox(&raw).len() == 1);
        assert_eq!(site.lines().len(), 1);
        assert_eq!(approve(&raw, &waiting(&raw)).0, 200);
    }
    // With the grant, the call goes to an address that the person typed, and asks nothing.
    wait_for("the call of the follow-up", || site.lines().len() == 2);
    assert_eq!(host.entries("call.refused").len(), 1);
}

#[test]
fn equal_call_without_the_outcome_in_its_prompt_is_refused() {
    check_repeated_before_the_outcome(false);
    check_repeated_before_the_outcome(true);
}

#[test]
fn request_of_an_earlier_try_runs_nothing_twice() {
    let (site, asked) = (Site::start(), AtomicUsize::new(0));
    let headers = json!({ "content-type": "text/plain" });
    let arguments = json!({ "method": "POST", "url": site.url("/notes"), "headers": headers, "body": "tulips" });
    let server = Server::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        // The model repeats the call in the next try.
        0 | 1 => Act::Call(String::new(), vec![("http_fetch".to_owned(), arguments.clone())]),
        _ => Act::Say("it is done".to_owned()),
    });
    let host = people::host_with_model(&site, &server, &["GET"], &["/other"]);
    let raw = Raw::of(&host);
    let text = format!("/allow send\npost tulips at {}", site.url("/notes"));
    let message = raw.send("a", &text);
    let mut stream = Stream::open(&raw, &message);
    let entry = stream.next("request");
    // The next try has the grant, so it needs no person.
    let grant = json!({ "host": "127.0.0.1", "port": site.port, "methods": ["POST"], "paths": ["/notes"] });
    host.change("a", "egress", &grant);
    host.kill_host();
    host.up();
    let raw = Raw::of(&host);
    answered(&host, &message);
    assert_eq!(site.lines().len(), 1);
    // The call of the next try took the place of the request.
    assert_eq!(request(&raw, &entry["id"])["status"], "withdrawn");
    check_refused(&approve(&raw, &entry), 409, "call_withdrawn");
    assert_eq!(site.lines().len(), 1);
    assert_eq!(host.entries("call.refused").last().expect("an entry")["data"]["reason"], "call_withdrawn");
}

/// Asks for a call until the host dies at a point of its turn. A person is present, unless the call is faster than their stream.
fn ask_and_die(raw: &Raw, host: &TestHost, url: &str) -> String {
    let pid = host.pid().expect("the host runs");
    for _ in 0..ROUNDS {
        let message = raw.send("a", &format!("post tulips at {url}"));
        let stream = raw.try_decide_at(&message);
        wait_for("the death of the host or an answer", || !alive(pid) || is_delivered(raw, &message));
        drop(stream);
        if !alive(pid) {
            return message;
        }
        inbox(raw).iter().for_each(|entry| assert_eq!(reject(raw, entry, "no").0, 200));
    }
    panic!("no call met a present person");
}

/// Returns whether a message has its answer. A host that dies says nothing.
fn is_delivered(raw: &Raw, message: &str) -> bool {
    let view = raw.try_ask("GET", &format!("/v1/messages/{message}"), "");
    view.is_ok_and(|(_, view)| view["status"] == "delivered")
}

#[test]
fn host_death_in_the_turn_that_asks_leaves_one_effect() {
    check_deaths(&POINTS[..2]);
}

#[test]
fn host_death_after_an_approval_leaves_one_effect() {
    check_deaths(&POINTS[2..]);
}

fn check_deaths(points: &[&str]) {
    for point in points {
        let (site, mut host) = failing_host();
        host.say("a", "hello");
        let raw = dying_at(&mut host, point);
        let in_turn = POINTS[..2].contains(point);
        let message = match in_turn {
            true if *point == "call_paused" => ask_and_die(&raw, &host, &site.url("/notes")),
            true => {
                let pid = host.pid().expect("the host runs");
                let message = raw.send("a", &format!("post tulips at {}", site.url("/notes")));
                wait_for("the host to die", || !alive(pid));
                message
            }
            false => {
                let message = post(&raw, "tulips", &site.url("/notes"));
                approve_and_die(&raw, &host, &waiting(&raw));
                message
            }
        };
        host.up();
        let raw = Raw::of(&host);
        answered(&host, &message);
        if in_turn {
            assert!(site.lines().is_empty(), "{point}");
            assert_eq!(approve(&raw, &waiting(&raw)).0, 200, "{point}");
        }
        let is_over = |status: &Value| status == "done" || status == "unknown";
        let statuses = || {
            let all = raw.get("/v1/waiting?type=call&status=all").1["entries"].clone();
            let all = all.as_array().expect("a list").iter().map(|entry| entry["status"].clone());
            all.filter(|status| status != "rejected").collect::<Vec<_>>()
        };
        wait_for(&format!("{point}: the outcome"), || statuses().iter().all(is_over));
        let is_unknown = ["call_started", "call_sent"].contains(point);
        assert_eq!(
            statuses(),
            [if is_unknown { "unknown" } else { "done" }],
            "{point}: a retried turn asks no second time"
        );
        assert_eq!(site.lines().len(), usize::from(*point != "call_started"), "{point}");
        host.ctl(&["audit", "verify"]).ok();
    }
}
