//! Decisions on calls: approved by the typed word, a held key and a held pointer; never by one click; rejected; several on one page.

use super::{Console, HELD, LET_GO, asked, check_decided_here, new_code, post, present, until_status};
use crate::e2e::one_yes::{Mails, look};
use crate::e2e::requests::{host_with, inbox, request};
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::model_server::{Act, Seen};
use crate::support::site::Site;
use crate::support::webdriver::actions::{ENTER, SPACE};
use crate::support::webdriver::{DESKTOP, PHONE, Screen};
use serde_json::{Value, json};

/// A window in which no page of a call has room.
const SMALL: Screen = Screen { width: 640, height: 320, is_phone: false };

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn typed_yes_runs_the_call_once() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    for (times, screen) in [(1, DESKTOP), (2, PHONE)] {
        let ids = asked(&raw, &post(&format!("tulips{times}"), &site.url("/notes")));
        let console = Console::sign_in(&host, screen);
        console.open_unread(&ids[0]);
        console.browser.keep_picture(&format!("call-{}", screen.width));
        console.browser.read_to_the_end();
        console.browser.keep_picture(&format!("call-end-{}", screen.width));
        // Another word is none.
        console.browser.type_keys("#typed", &format!("yes{ENTER}"));
        console.open(&ids[0]);
        assert_eq!(request(&raw, &json!(ids[0]))["status"], "pending");
        console.approve_by_typing();
        until_status(&raw, &ids[0], "done");
        assert_eq!(site.lines().len(), times, "{:?}", site.lines());
        check_decided_here(&host, "request.approved_by", &ids[0]);
        console.go("/inbox");
        assert!(!console.browser.has("#waiting-list li.entry"), "nothing waits any longer");
    }
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn click_or_short_hold_decides_nothing_and_a_held_one_does() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    for screen in [SMALL, PHONE] {
        let id = asked(&raw, &post(&format!("tulips{}", screen.width), &site.url("/notes"))).remove(0);
        let console = Console::sign_in(&host, screen);
        let browser = &console.browser;
        console.go(&format!("/waiting/{id}"));
        browser.until_shown("article.page");
        let pending = || {
            assert_eq!(browser.attribute("article.page", "data-status").as_deref(), Some("pending"));
            assert_eq!(request(&raw, &json!(id))["status"], "pending");
        };
        // To jump to the end is not to read: the parts between were never on the screen.
        browser.run("scrollTo({ top: document.scrollingElement.scrollHeight, behavior: 'instant' })", &[]);
        if screen == SMALL {
            assert_eq!(browser.attribute("#approve", "aria-disabled").as_deref(), Some("true"));
            browser.hold_pointer("#approve", HELD);
            browser.until_shown("#unread");
            pending();
        }
        browser.read_to_the_end();
        browser
            .until("the button", |browser| browser.attribute("#approve", "aria-disabled").as_deref() != Some("true"));
        browser.tap("#approve");
        browser.until("the hint", |browser| !browser.text("#hold-hint").is_empty());
        browser.click("#approve");
        browser.hold_pointer("#approve", LET_GO);
        pending();
        browser.keep_picture(&format!("hold-hint-{}", screen.width));
        browser.hold_pointer("#approve", HELD);
        browser.until_gone("form.approve");
        until_status(&raw, &id, "done");
        check_decided_here(&host, "request.approved_by", &id);
    }
    assert_eq!(site.lines().len(), 2, "{:?}", site.lines());
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn held_key_decides_and_a_pressed_one_does_not() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    let console = Console::sign_in(&host, DESKTOP);
    for (at, key) in [ENTER, SPACE].into_iter().enumerate() {
        let id = asked(&raw, &post(&format!("tulips{at}"), &site.url("/notes"))).remove(0);
        console.open(&id);
        console.browser.tab_to("#approve");
        console.browser.press(key);
        console.browser.hold_key(key, LET_GO);
        assert_eq!(request(&raw, &json!(id))["status"], "pending");
        console.browser.hold_key(key, HELD);
        console.browser.until_gone("form.approve");
        until_status(&raw, &id, "done");
        check_decided_here(&host, "request.approved_by", &id);
    }
    assert_eq!(site.lines().len(), 2, "{:?}", site.lines());
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn rejected_call_keeps_its_reason_and_never_runs() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    for screen in [DESKTOP, PHONE] {
        let id = asked(&raw, &post(&format!("tulips{}", screen.width), &site.url("/notes"))).remove(0);
        let console = Console::sign_in(&host, screen);
        console.open(&id);
        console.browser.type_keys("#reason", "not today, <b>Ann</b>");
        console.browser.click("#reject");
        console.browser.until_gone("form.reject");
        until_status(&raw, &id, "rejected");
        let why = host.ctl(&["--json", "why", &id]).ok().json().to_string();
        assert!(why.contains("not today, <b>Ann</b>"), "{why}");
        check_decided_here(&host, "request.rejected", &id);
    }
    assert!(site.lines().is_empty(), "{:?}", site.lines());
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn page_without_scripts_decides_by_the_typed_word() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    let id = asked(&raw, &post("tulips", &site.url("/notes"))).remove(0);
    let console = Console::sign_in(&host, DESKTOP);
    let browser = &console.browser;
    browser.set_scripts(false);
    console.open_unread(&id);
    browser.click("#approve");
    browser.until_shown(".notice.bad");
    assert_eq!(request(&raw, &json!(id))["status"], "pending", "an empty field approves nothing");
    console.open_unread(&id);
    browser.type_keys("#typed", "approve");
    browser.click("#approve");
    until_status(&raw, &id, "done");
    assert_eq!(site.lines().len(), 1);
}

/// A model that sends two mails in one output.
fn two_mails(seen: &Seen) -> Act {
    let mail = |to: &str| ("mail__send".to_owned(), json!({ "to": to, "body": "Lunch at noon." }));
    // After a decision, the host asks again with a text of its own.
    match seen.results().is_empty() && seen.asked().starts_with("Mail ") {
        true => Act::Call(String::new(), vec![mail("ann@example.org"), mail("bob@example.org")]),
        false => Act::Say("done".to_owned()),
    }
}

fn invitation(number: usize) -> Value {
    let text = format!("Mail \"Lunch at noon.\" to each of ann@example.org, bob@example.org, {number}");
    json!({ "text": text, "allow": ["send"] })
}

fn started(host: &TestHost) -> usize {
    host.entries("call.started").len()
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn calls_of_one_output_are_approved_or_rejected_on_one_page() {
    let mails = Mails::new(two_mails);
    for (number, screen) in [DESKTOP, PHONE].into_iter().enumerate() {
        let ids = asked(&mails.raw, &invitation(number));
        assert_eq!(ids.len(), 2, "{ids:?}");
        let console = Console::sign_in(&mails.host, screen);
        console.open(&ids[1]);
        console.browser.click(&format!("a[href='/waiting/{}/together']", ids[1]));
        console.browser.until("both calls", |browser| {
            let shown = browser.text("#main");
            shown.contains("ann@example.org") && shown.contains("bob@example.org")
        });
        console.browser.read_to_the_end();
        console.browser.keep_picture(&format!("together-{}", screen.width));
        match screen == DESKTOP {
            true => {
                console.approve_by_typing();
                for id in &ids {
                    until_status(&mails.raw, id, "done");
                    check_decided_here(&mails.host, "request.approved_by", id);
                }
                assert_eq!(started(&mails.host), 2);
            }
            false => {
                console.browser.type_keys("#reason", "not now");
                console.browser.click("#reject");
                wait_for("both to be rejected", || inbox(&mails.raw).is_empty());
                assert_eq!((mails.host.entries("request.rejected").len(), started(&mails.host)), (2, 2));
            }
        }
    }
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn yes_until_the_answer_is_chosen_on_the_page() {
    let mails = Mails::new(|seen| match seen.results().len() {
        0 => Act::Call(String::new(), vec![("mail__list".to_owned(), json!({}))]),
        1 => Act::Call(String::new(), vec![("mail__get".to_owned(), json!({ "id": "m1" }))]),
        _ => Act::Say("read".to_owned()),
    });
    let (mut stream, id) = present(&mails.raw, &look());
    let console = Console::sign_in(&mails.host, DESKTOP);
    console.open(&id);
    console.browser.click("input[name=decision][value=approve_until_answer]");
    console.browser.keep_picture("until-answer");
    console.approve_by_typing();
    assert_eq!(stream.next("message")["reply"], "read", "the second call asked no person");
    assert_eq!(mails.host.entries("allowance.used").len(), 1);
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn old_session_approves_egress_with_a_fresh_code_alone() {
    let mut host = TestHost::with_clock();
    host.up();
    host.agent("a");
    let site = Site::start();
    let raw = crate::support::client::Raw::of(&host);
    let grant = json!({ "host": "example.org", "port": site.port, "methods": ["GET"], "paths": ["/page"] });
    let id = host.submit("a", "egress", &grant).ok().json()["id"].as_str().expect("an id").to_owned();
    let console = Console::sign_in(&host, DESKTOP);
    host.shift_clock(11 * 60 * 1000);
    console.open(&id);
    assert!(!console.browser.is_shown("form.approve"), "the session is older than ten minutes");
    console.browser.keep_picture("confirm");
    console.browser.type_keys("#confirm-code", &format!("wrong{ENTER}"));
    console.open(&id);
    assert!(!console.browser.is_shown("form.approve"));
    let code = new_code(&host);
    console.browser.type_keys("#confirm-code", &format!("{}{ENTER}", code["code"].as_str().expect("a code")));
    console.browser.until_shown("form.approve");
    console.browser.read_to_the_end();
    console.approve_by_typing();
    until_status(&raw, &id, "done");
}
