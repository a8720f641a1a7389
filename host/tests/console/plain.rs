//! The console in a browser without scripts, through the real daemon: each room, each decision, and what the record says of it.
//!
//! See `console::browser` for the same with Chromium, `console::walls` for attacks.

use crate::e2e::one_yes::{Mails, five_mails, invitation};
use crate::e2e::questions::give_tool;
use crate::e2e::requests::{delivered, host_with, inbox, last_answer, post, post_while_reading, request, say, waiting};
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::plain_browser::{Page, PlainBrowser, between, new_code};
use crate::support::record;
use serde_json::{Value, json};

/// Decides about something that waits, from its page.
fn decide(browser: &PlainBrowser, id: &Value, fields: &[(&str, &str)]) -> Page {
    let id = id.as_str().expect("an id");
    let page = browser.get(&format!("/waiting/{id}"));
    let shown = page.field("class=\"approve\"", "shown").unwrap_or_default();
    browser.submit(&format!("/waiting/{id}/decision"), &[&[("shown", shown.as_str())], fields].concat())
}

/// Returns the field of the newest ledger entry of an event.
fn last_entry(host: &TestHost, event: &str) -> Value {
    host.entries(event).last().map(|entry| entry["data"].clone()).unwrap_or_else(|| panic!("no {event}"))
}

#[test]
fn call_is_approved_on_its_page_and_the_ledger_names_the_face() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    post(&raw, "tulips", &site.url("/notes"));
    let (entry, browser) = (waiting(&raw), PlainBrowser::sign_in(&host));
    let list = browser.get("/inbox");
    assert!(list.body.contains(&format!("data-id=\"{}\"", entry["id"].as_str().expect("an id"))), "{list:?}");
    let page = browser.get(&format!("/waiting/{}", entry["id"].as_str().expect("an id")));
    assert!(page.body.contains(&format!("data-digest=\"{}\"", entry["shown_digest"].as_str().expect("a digest"))));
    let tap = decide(&browser, &entry["id"], &[("decision", "approve")]);
    assert_eq!((tap.status, tap.code()), (400, Some("not_typed")), "one tap decides nothing");
    assert!(site.lines().is_empty() && tap.body.contains("id=\"approve\""), "the page has the form again");
    let done = decide(&browser, &entry["id"], &[("decision", "approve"), ("typed", "approve")]);
    assert_eq!(done.status, 303, "{done:?}");
    wait_for("the follow-up", || last_answer(&host).contains("The page says tulip."));
    assert_eq!(site.lines(), ["POST /notes HTTP/1.1"]);
    let entry_of = last_entry(&host, "request.approved_by");
    assert_eq!(
        (entry_of["face"].as_str(), entry_of["shown"].as_str()),
        (Some("console"), entry["shown_digest"].as_str())
    );
    let again = decide(&browser, &entry["id"], &[("decision", "approve"), ("typed", "approve")]);
    assert_eq!((again.status, again.code()), (400, Some("request_malformed")), "the form is gone");
    let ended = browser.get(&format!("/waiting/{}", entry["id"].as_str().expect("an id")));
    assert!(ended.body.contains("data-status=\"done\"") && !ended.body.contains("id=\"approve\""), "{ended:?}");
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn call_is_rejected_with_a_reason() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    post(&raw, "tulips", &site.url("/notes"));
    let (entry, browser) = (waiting(&raw), PlainBrowser::sign_in(&host));
    let long = "x".repeat(20_000);
    let refused = decide(&browser, &entry["id"], &[("decision", "reject"), ("reason", &long)]);
    assert_eq!((refused.status, refused.code()), (400, Some("reason_too_long")));
    assert!(refused.body.contains(&long), "the page keeps the text");
    let done = decide(&browser, &entry["id"], &[("decision", "reject"), ("reason", "not <b>today</b>")]);
    assert_eq!(done.status, 303, "{done:?}");
    let now = request(&raw, &entry["id"]);
    assert_eq!((now["status"].as_str(), now["outcome"].as_str()), (Some("rejected"), Some("not <b>today</b>")));
    assert_eq!(last_entry(&host, "request.rejected")["face"], "console");
    assert!(site.lines().is_empty());
}

#[test]
fn stale_page_says_what_changed_and_decides_nothing() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    let browser = PlainBrowser::sign_in(&host);
    let other_digest = "0".repeat(64);
    post(&raw, "tulips", &site.url("/notes"));
    let entry = waiting(&raw);
    let path = format!("/waiting/{}/decision", entry["id"].as_str().expect("an id"));
    let fields = [("decision", "approve"), ("typed", "approve"), ("shown", other_digest.as_str())];
    let refused = browser.submit(&path, &fields);
    assert_eq!((refused.status, refused.code()), (409, Some("shown_differs")));
    assert_eq!(last_entry(&host, "request.decision_refused")["code"], "shown_differs");
    // A decision elsewhere meanwhile.
    raw.ask("POST", &format!("/v1{path}"), &json!({ "reject": "" }).to_string());
    let shown = entry["shown_digest"].as_str().expect("a digest");
    let late = browser.submit(&path, &[("decision", "approve"), ("typed", "approve"), ("shown", shown)]);
    assert_eq!((late.status, late.code()), (409, Some("request_decided")));
    assert!(late.body.contains("data-status=\"rejected\"") && site.lines().is_empty());
}

#[test]
fn question_is_answered_by_option_and_by_text() {
    let host = TestHost::own(Build::Plain).started_with("a");
    give_tool(&host);
    let (raw, browser) = (Raw::of(&host), PlainBrowser::sign_in(&host));
    for (fields, status) in [
        (&[("decision", "answer"), ("option", "9")][..], 400),
        (&[("decision", "answer")][..], 400),
        (&[("decision", "answer"), ("option", "1")][..], 303),
    ] {
        if inbox(&raw).is_empty() {
            say(&raw, "ask me which day? Monday or Tuesday");
        }
        let entry = waiting(&raw);
        let page = browser.get(&format!("/waiting/{}", entry["id"].as_str().expect("an id")));
        assert!(page.body.contains("Monday") && page.body.contains("id=\"answer\""), "{page:?}");
        assert_eq!(decide(&browser, &entry["id"], fields).status, status, "{fields:?}");
    }
    wait_for("the answer", || inbox(&raw).is_empty());
    assert_eq!(last_entry(&host, "question.answered")["face"], "console");
}

#[test]
fn several_calls_are_decided_on_one_page() {
    let mails = Mails::new(five_mails);
    let message = mails.raw.send_body("a", &invitation());
    delivered(&mails.raw, &message);
    let (entries, browser) = (inbox(&mails.raw), PlainBrowser::sign_in(&mails.host));
    let id = entries[0]["id"].as_str().expect("an id");
    assert!(browser.get(&format!("/waiting/{id}")).body.contains("/together"));
    let page = browser.get(&format!("/waiting/{id}/together"));
    let shown = page.field("class=\"approve\"", "shown").expect("a digest");
    let fields = [("decision", "approve_together"), ("shown", shown.as_str()), ("page", "together")];
    let path = format!("/waiting/{id}/decision");
    let tap = browser.submit(&path, &fields);
    assert!(
        tap.code() == Some("not_typed") && tap.body.contains("/together\"") || tap.body.contains("approve_together")
    );
    assert_eq!(browser.submit(&path, &[&fields[..], &[("typed", "approve")]].concat()).status, 303);
    wait_for("the mails", || mails.host.entries("call.started").len() == entries.len());
    let event = last_entry(&mails.host, "request.shown_together");
    assert_eq!((event["face"].as_str(), event["shown"].as_str()), (Some("console"), Some(shown.as_str())));
}

#[test]
fn grave_approval_needs_a_fresh_code_after_ten_minutes() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let (raw, browser) = (Raw::of(&host), PlainBrowser::sign_in(&host));
    let before = "UPDATE tokens SET confirmed_at = confirmed_at - 600000 WHERE face = 'console'";
    host.down();
    record::open_to_change(&host.home).execute_batch(before).expect("changed");
    host.up();
    host.submit("a", "persona", json!({ "instructions": "You are brief." })).ok();
    let entry = waiting(&raw);
    let page = browser.get(&format!("/waiting/{}", entry["id"].as_str().expect("an id")));
    assert!(page.body.contains("id=\"confirm-code\"") && !page.body.contains("id=\"approve\""), "{page:?}");
    let shown = entry["shown_digest"].as_str().expect("a digest").to_owned();
    let path = format!("/waiting/{}/decision", entry["id"].as_str().expect("an id"));
    let fields = [("decision", "approve"), ("typed", "approve"), ("shown", shown.as_str())];
    let refused = browser.submit(&path, &fields);
    assert_eq!((refused.status, refused.code()), (403, Some("not_confirmed")), "the form of another tab");
    let wrong = browser.submit("/confirm", &[("code", "0000-0000-0000-0000"), ("back", "/inbox")]);
    assert_eq!((wrong.status, wrong.code()), (401, Some("code_unknown")));
    let code = new_code(&host);
    let back = format!("/waiting/{}", entry["id"].as_str().expect("an id"));
    let fields_of_code = [("code", code["code"].as_str().expect("a code")), ("back", back.as_str())];
    let confirmed = browser.submit("/confirm", &fields_of_code);
    assert_eq!((confirmed.status, confirmed.header("location")), (303, Some(back.as_str())));
    assert_eq!(browser.submit(&path, &fields).status, 303);
    wait_for("the change", || request(&raw, &entry["id"])["status"] == "done");
    assert_eq!(
        (host.entries("token.confirmed").len(), last_entry(&host, "change.approved_by")["face"].as_str()),
        (1, Some("console"))
    );
}

#[test]
fn message_is_answered_and_a_refused_one_keeps_its_text() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let browser = PlainBrowser::sign_in(&host);
    let opened = browser.submit("/conversations", &[("agent", "a")]);
    let path = opened.header("location").expect("a conversation").to_owned();
    let sent = browser.submit_parts(
        &format!("{path}/messages"),
        &[("text", "hello & goodbye"), ("typed", "1"), ("pasted", "[[6,7]]")],
        &[("note.txt", b"a note"), ("bytes.bin", b"\x00\x01")],
    );
    assert_eq!((sent.status, sent.header("location")), (303, Some(path.as_str())), "{sent:?}");
    wait_for("the answer", || browser.get(&path).body.contains("class=\"said agent\""));
    let page = browser.get(&path);
    assert!(page.body.contains("hello [quoted 1] goodbye"), "{page:?}");
    assert!(page.body.contains("<p class=\"by\">owner") && !page.body.contains("?before="), "{page:?}");
    let listed = browser.get("/conversations?q=HELLO");
    assert!(listed.body.contains(&format!("href=\"{path}\"")), "{listed:?}");
    assert!(!browser.get("/conversations?q=nothing-like-it").body.contains(&format!("href=\"{path}\"")));
    let event = page.field("id=\"send\"", "event").expect("an id of the message");
    for _ in 0..2 {
        let twice = [("text", "sent twice"), ("event", event.as_str())];
        assert_eq!(browser.submit_parts(&format!("{path}/messages"), &twice, &[]).status, 303);
    }
    wait_for("the second answer", || browser.get(&path).body.matches("class=\"said agent\"").count() > 1);
    assert_eq!(browser.get(&path).body.matches("<div class=\"text\" dir=\"auto\">sent twice</div>").count(), 1);
    let many: Vec<(String, &[u8])> = (0..64).map(|number| (format!("{number}.txt"), &b"x"[..])).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|file| (file.0.as_str(), file.1)).collect();
    let refused = browser.submit_parts(&format!("{path}/messages"), &[("text", "keep <me>")], &many);
    assert_eq!(refused.code(), Some("too_many_files"));
    assert!(refused.body.contains("keep &#60;me&#62;"), "the page keeps the text");
}

#[test]
fn emergency_stop_is_one_button_and_resume_is_typed() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let browser = PlainBrowser::sign_in(&host);
    for path in ["/inbox", "/conversations", "/status", "/why"] {
        assert!(browser.get(path).body.contains("id=\"stop\""), "{path}");
    }
    let stopped = browser.submit("/status/stop", &[]);
    assert_eq!((stopped.status, stopped.header("location")), (303, Some("/status")));
    assert_eq!(host.entries("host.panicked").len(), 1);
    assert!(browser.get("/status").body.contains("id=\"resume\""));
    assert_eq!(browser.submit("/status/resume", &[("typed", "yes")]).code(), Some("not_typed"));
    assert_eq!(browser.submit("/status/resume", &[("typed", "resume")]).status, 303);
    assert!(!browser.get("/status").body.contains("id=\"resume\""));
    assert_eq!(host.entries("host.resumed").len(), 1);
}

#[test]
fn session_outlives_a_restart_and_keeps_its_address() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    let browser = PlainBrowser::sign_in(&host);
    host.down();
    host.up();
    post_while_reading(&raw, "tulips", &site.url("/notes"));
    let page = browser.get("/inbox");
    assert!(page.status == 200 && page.body.contains("data-kind=\"call\""), "{page:?}");
    let sessions = host.ctl(&["--json", "token", "list"]).ok().json();
    let session =
        sessions.as_array().expect("a list").iter().find(|token| token["face"] == "console").expect("listed").clone();
    host.ctl(&["token", "remove", session["id"].as_str().expect("an id")]).ok();
    assert_eq!(browser.get("/inbox").code(), Some("session_missing"));
    // The page of an ended session keeps the typed text.
    let ended = browser.post("/waiting/req_1/decision", &[("reason", "because <of> it"), ("csrf", "x")]);
    assert!(ended.status == 401 && ended.body.contains("because &#60;of&#62; it"), "{ended:?}");
}

#[test]
fn why_shows_the_stages_of_a_message_and_a_call() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    let message = post(&raw, "tulips", &site.url("/notes"));
    let browser = PlainBrowser::sign_in(&host);
    let page = browser.get(&format!("/why?id={message}"));
    assert!(page.status == 200 && page.body.contains("message.recorded"), "{page:?}");
    let call = raw.get(&format!("/v1/messages/{message}")).1["calls"][0]["id"].as_str().expect("a call").to_owned();
    assert!(browser.get(&format!("/why?id={call}")).body.contains("id=\"summary\""));
    let waiting = waiting(&raw)["id"].as_str().expect("an id").to_owned();
    assert_eq!(
        browser.get(&format!("/why?id={waiting}")).header("location"),
        Some(format!("/waiting/{waiting}").as_str())
    );
    let unknown = browser.get("/why?id=%3Cscript%3E");
    assert!(
        unknown.status == 404
            && between(&unknown.body, "id=\"id\"", ">").is_some_and(|field| !field.contains("<script"))
    );
}
