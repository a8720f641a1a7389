//! Tests of the life of what waits, which is the same for a call, a question and a change: who is told, how it ends, and what becomes of it
//! in a restored record.
//!
//! They use the real programs with the scripted model. See `requests`, `questions` and `changes` for what each kind does.

use super::notifications::{count, host_with_place, text};
use super::questions::give_tool;
use super::requests::{approve, host_with, inbox, post, reject, request, say};
use crate::support::client::{Raw, code};
use crate::support::hooks::Receiver;
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::record;
use crate::support::site::{Site, granted_while_away};
use serde_json::{Value, json};

const HOUR_MS: i64 = 3_600_000;

/// What an agent and the owner asked for: a call, a question and a change.
struct All {
    call: Value,
    question: Value,
    change: Value,
}

impl All {
    /// Has the agent ask for a call and ask a question in a conversation of this person, and has the owner propose a change.
    fn ask(host: &TestHost, person: &Raw, site: &Site) -> Self {
        post(person, "tulips", &site.url("/notes"));
        say(person, "ask me which? red or blue");
        host.submit("a", "persona", json!({ "instructions": "Be brief." })).ok();
        let listed = Raw::of(host).get("/v1/waiting?status=pending").1["entries"].clone();
        let of = |kind: &str| {
            let all = listed.as_array().expect("a list");
            all.iter().find(|entry| entry["type"] == kind).unwrap_or_else(|| panic!("no {kind}: {listed}")).clone()
        };
        Self { call: of("call"), question: of("question"), change: of("change") }
    }

    fn each(&self) -> [&Value; 3] {
        [&self.call, &self.question, &self.change]
    }

    fn statuses(&self, raw: &Raw) -> [Value; 3] {
        self.each().map(|entry| request(raw, &entry["id"])["status"].clone())
    }

    /// Decides on each with a yes, and returns the code of each refusal.
    fn decide(&self, raw: &Raw) -> [String; 3] {
        let [call, change] = [&self.call, &self.change].map(|entry| code(&approve(raw, entry)).1.to_owned());
        [call, code(&self.answer(raw)).1.to_owned(), change]
    }

    fn answer(&self, raw: &Raw) -> (u16, Value) {
        let path = format!("/v1/waiting/{}/decision", self.question["id"].as_str().expect("an id"));
        raw.ask("POST", &path, &json!({ "answer": { "option": 1 } }).to_string())
    }
}

#[test]
fn each_kind_is_decided_by_its_people_on_the_shown_page() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    give_tool(&host);
    let (mara, ada) = (Raw::add_person(&host, "mara", &[]), Raw::add_person(&host, "ada", &["--role", "admin"]));
    let all = All::ask(&host, &raw, &site);
    let unknown = ["request_unknown", "question_unknown", "change_unknown"];
    // A member neither sees nor decides what is of others, in the words for what does not exist.
    assert_eq!(all.decide(&mara), unknown);
    for (entry, unknown) in all.each().into_iter().zip(unknown) {
        let id = entry["id"].as_str().expect("an id");
        let none = format!("{}{}", &id[..id.len() - 1], if id.ends_with('0') { '1' } else { '0' });
        let [of_others, of_none] = [id, none.as_str()].map(|id| mara.get(&format!("/v1/waiting/{id}")));
        assert_eq!(code(&of_others), (404, unknown));
        assert_eq!(of_others.1.to_string().replace(id, &none), of_none.1.to_string());
        assert_eq!(code(&reject(&mara, entry, "no")).1, unknown);
        for body in ["{}", r#"{"approved":true}"#, r#"{"approve":"yes"}"#] {
            let (status, said) = raw.ask("POST", &format!("/v1/waiting/{id}/decision"), body);
            assert_eq!(status, 400, "{body}: {said}");
        }
    }
    // Another page than that of now.
    for entry in [&all.call, &all.change] {
        let mut other = entry.clone();
        other["shown_digest"] = json!("0".repeat(64));
        assert_eq!(code(&approve(&raw, &other)).1, "shown_differs");
    }
    // An admin decides on changes, and reads what others decide. An owner alone ends questions of others.
    let not_theirs = "not_yours_to_decide";
    assert_eq!(all.decide(&ada), [not_theirs, not_theirs, ""]);
    assert_eq!(all.statuses(&ada)[..2], ["pending", "pending"]);
    assert_eq!(code(&reject(&ada, &all.question, "no")), (403, not_theirs));
    let own = |person: &Raw, more: &str| {
        let listed = person.get(&format!("/v1/waiting?own=true{more}")).1["entries"].clone();
        listed.as_array().expect("a list").len()
    };
    assert_eq!([own(&raw, ""), own(&mara, "&status=all")], [2, 0]);
    assert!(site.lines().is_empty());
    // A member sees the status of a change that an agent asked for on their behalf, not its values, and withdraws it.
    say(&mara, "change persona to speak in secret");
    let change = mara.get("/v1/waiting?own=true").1["entries"][0].clone();
    let shown = request(&mara, &change["id"]);
    assert_eq!(
        (&shown["status"], &shown["yours"], &shown["may_reject"]),
        (&json!("pending"), &json!(false), &json!(true))
    );
    assert!(shown["details"].is_null() && !shown.to_string().contains("in secret"), "{shown}");
    assert_eq!(reject(&mara, &change, "never mind").0, 200);
    assert_eq!([own(&mara, ""), own(&mara, "&status=withdrawn"), own(&mara, "&status=pending")], [0, 1, 0]);
}

#[test]
fn each_kind_is_told_reminded_and_expires_once() {
    let (site, receiver) = (Site::start(), Receiver::accepting());
    let mut host = host_with_place(Build::Failpoints, &site, &receiver, &[]);
    give_tool(&host);
    for (name, role) in [("ada", "admin"), ("bob", "member")] {
        host.ctl(&["person", "add", name, "--role", role]).ok();
        host.ctl(&["person", "link", name, &format!("desk:{name}"), "--yes"]).ok();
        host.ctl(&["person", "set", name, "--notify", "desk"]).ok();
    }
    let begun = [count(&host, "notification.intended"), count(&host, "notification.withdrawn")];
    assert_eq!(begun[0], begun[1], "a change that its person decides at once is not told to others");
    let all = All::ask(&host, &Raw::of(&host), &site);
    // The owner decides on the call and the question, and ada on the change, a minute later. A call expires after 24 hours, and people are
    // told an hour before; a question and a change expire after a week.
    let steps =
        [(0, 61, 3), (22, 0, 3), (23, 120, 4), (23, 180, 4), (85, 0, 5), (167, 120, 5), (167, 240, 6), (169, 0, 6)];
    for (hours, seconds, received) in steps {
        host.kill_host();
        host.shift_clock(hours * HOUR_MS + seconds * 1000);
        host.up();
        wait_for(&format!("the notifications after {hours} h and {seconds} s"), || {
            count(&host, "notification.received") == received
        });
    }
    let raw = Raw::of(&host);
    wait_for("the ends", || all.statuses(&raw) == ["expired", "expired", "expired"]);
    assert_eq!(all.decide(&raw), ["call_expired", "question_ended", "change_expired"]);
    for event in ["request.expired", "question.expired", "change.expired"] {
        assert_eq!(count(&host, event), 1, "{event}");
    }
    for event in ["request.reminded", "question.reminded", "change.reminded"] {
        assert_eq!(count(&host, event), 1, "{event}");
    }
    let got = receiver.replies();
    for (entry, receiver) in all.each().into_iter().zip(["ann", "ann", "ada"]) {
        let id = entry["id"].as_str().expect("an id");
        let told: Vec<_> = got.iter().filter(|one| text(one).contains(id)).collect();
        let [first, second] = told[..] else { panic!("{id}: {got:?}") };
        assert!(text(first) != text(second) && [first, second].iter().all(|one| one.body["sender"] == receiver));
        let content = [r"\n", "tulips", "/notes", "127.0.0.1", "http_fetch", "which", "brief"];
        assert!(content.iter().all(|words| !first.body.to_string().contains(words)), "{first:?}");
    }
    assert!(site.lines().is_empty());
}

#[test]
fn running_host_ends_a_call_that_was_asked_later() {
    let (site, mut host) = granted_while_away(TestHost::with_clock(), &["POST"], &["/notes"]);
    let raw = Raw::of(&host);
    post(&raw, "tulips", &site.url("/notes"));
    let first = inbox(&raw).remove(0);
    host.shift_clock(25 * HOUR_MS);
    // Nothing decides and nothing runs: the second request alone lets the host look.
    post(&raw, "roses", &site.url("/notes"));
    wait_for("the end of the first one", || request(&raw, &first["id"])["status"] == "expired");
    assert_eq!(inbox(&raw).len(), 1);
    assert!(site.lines().is_empty());
}

#[test]
fn each_kind_of_a_restored_record_has_no_earlier_decision() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    give_tool(&host);
    let all = All::ask(&host, &raw, &site);
    let file = host.home.with_file_name("w.backup").display().to_string();
    host.ctl(&["backup", "create", &file]).ok();
    for restores in 1..=2 {
        let raw = Raw::of(&host);
        if restores == 1 {
            assert_eq!([approve(&raw, &all.call).0, all.answer(&raw).0, approve(&raw, &all.change).0], [200; 3]);
            wait_for("the effects", || all.statuses(&raw) == ["done", "done", "done"]);
        }
        host.down();
        host.ctl(&["backup", "restore", &file, "--replace", "--yes"]).ok();
        host.up();
        assert_eq!(all.statuses(&Raw::of(&host)), ["withdrawn", "doubtful", "doubtful"]);
    }
    let raw = Raw::of(&host);
    let of_restore = &host.entries("state.generation")[0]["data"];
    assert_eq!((&of_restore["doubtful"], &of_restore["withdrawn"]), (&json!(2), &json!(1)));
    for event in ["request.withdrawn", "question.unknown", "change.doubtful"] {
        assert_eq!(count(&host, event), 1, "{event}");
    }
    assert_eq!(code(&approve(&raw, &all.call)).1, "call_withdrawn");
    assert_eq!(code(&all.answer(&raw)).1, "question_ended");
    assert_eq!(reject(&raw, &all.question, "").0, 200);
    let change = request(&raw, &all.change["id"]);
    assert_eq!((change["yours"].as_bool(), approve(&raw, &change).0), (Some(true), 200));
    wait_for("the change", || request(&raw, &all.change["id"])["status"] == "done");
    assert_eq!((inbox(&raw), site.lines().len()), (Vec::new(), 1));
    host.restart();
    assert_eq!(count(&host, "request.withdrawn"), 1, "another start withdraws nothing");
}

#[test]
fn each_kind_ends_with_its_conversation_and_its_agent() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    give_tool(&host);
    host.ctl(&["person", "add", "mara"]).ok();
    let of_mara = All::ask(&host, &Raw::of_person(&host, "mara"), &site);
    assert_eq!(
        code(&approve(&raw, &of_mara.call)),
        (403, "not_yours_to_decide"),
        "an owner sends nothing for a member"
    );
    // An emergency stop ends calls, and forgets no question and no change.
    host.ctl(&["panic"]).ok();
    host.ctl(&["resume"]).ok();
    assert_eq!(of_mara.statuses(&raw), ["withdrawn", "pending", "pending"]);
    // Another person answers nothing, and an owner ends it.
    assert_eq!(code(&of_mara.answer(&raw)), (403, "not_yours_to_decide"));
    host.ctl(&["person", "remove", "mara", "--erase", "--yes"]).ok();
    assert_eq!(code(&reject(&raw, &of_mara.question, "")), (404, "question_unknown"));
    assert_eq!(reject(&raw, &of_mara.change, "no").0, 200);

    let all = All::ask(&host, &raw, &site);
    host.ctl(&["session", "remove", host.session()["id"].as_str().expect("an id"), "--yes"]).ok();
    assert_eq!(all.decide(&raw)[..2], ["request_unknown", "question_unknown"]);
    host.ctl(&["agent", "remove", "a", "--yes"]).ok();
    assert!(["change_stale", "change_unknown"].contains(&all.decide(&raw)[2].as_str()));
    assert_eq!((inbox(&raw), site.lines().len()), (Vec::new(), 0));
    assert_eq!(record::count(&record::open(&host.home), "SELECT count(*) FROM waiting WHERE status = 'pending'"), 0);
    host.ctl(&["audit", "verify"]).ok();
}
