//! Pages whose object changes while a person reads them: stale facts, two tabs at once, a decision elsewhere.

use super::{Console, asked, check_decided_here, post, until_status};
use crate::e2e::requests::{host_with, request};
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost};
use crate::support::webdriver::actions::ENTER;
use crate::support::webdriver::{DESKTOP, PHONE};
use serde_json::json;

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn stale_page_says_what_changed() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let raw = Raw::of(&host);
    for screen in [DESKTOP, PHONE] {
        let propose = |words: String| {
            let submitted = host.submit("a", "persona", json!({ "instructions": words })).ok().json();
            submitted["id"].as_str().expect("an id").to_owned()
        };
        let first = propose(format!("Be brief at {}.", screen.width));
        let second = propose(format!("Be kind at {}.", screen.width));
        let console = Console::sign_in(&host, screen);
        console.open(&second);
        // A page with typed text is not loaded again by itself.
        console.browser.type_keys("#typed", "approve");
        host.ctl(&["approve", &first]).ok();
        console.browser.type_keys("#typed", ENTER);
        console.browser.until_shown(".notice.bad");
        let code = console.refusal().expect("a code");
        assert!(["change_stale", "shown_differs"].contains(&code.as_str()), "{code}");
        let notice = console.browser.text(".notice.bad");
        assert!(notice.contains(&second) || notice.contains("persona"), "the notice names the object: {notice}");
        console.browser.keep_picture(&format!("stale-{}", screen.width));
        assert_ne!(request(&raw, &json!(second))["status"], "done");
        let persona = host.ctl(&["--json", "agent", "show", "a"]).ok().stdout;
        assert!(persona.contains("Be brief") && !persona.contains("Be kind"), "{persona}");
    }
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn two_tabs_decide_once() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    for (screen, text, is_rejected) in [(DESKTOP, "tulips", false), (PHONE, "roses", true)] {
        let id = asked(&raw, &post(text, &site.url("/notes"))).remove(0);
        let console = Console::sign_in(&host, screen);
        let browser = &console.browser;
        let first = browser.tab();
        console.open(&id);
        browser.type_keys("#typed", "approve");
        let second = browser.open_tab();
        console.open(&id);
        browser.type_keys("#typed", "approve");
        browser.enter_tab(&first);
        match is_rejected {
            true => browser.click("#reject"),
            false => browser.type_keys("#typed", ENTER),
        }
        browser.until_gone("form.approve");
        // The other tab learns it, or its decision is refused.
        browser.enter_tab(&second);
        if browser.is_shown("form.approve") {
            browser.type_keys("#typed", ENTER);
            browser.until_shown(".notice.bad");
            assert_eq!(console.refusal().as_deref(), Some("request_decided"));
            browser.keep_picture("decided-in-another-tab");
        }
        until_status(&raw, &id, if is_rejected { "rejected" } else { "done" });
        check_decided_here(&host, if is_rejected { "request.rejected" } else { "request.approved_by" }, &id);
    }
    assert_eq!(site.lines(), ["POST /notes HTTP/1.1"]);
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn decision_elsewhere_reaches_the_open_pages() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    for (screen, verb) in [(DESKTOP, "reject"), (PHONE, "approve")] {
        let id = asked(&raw, &post(&format!("tulips{}", screen.width), &site.url("/notes"))).remove(0);
        let console = Console::sign_in(&host, screen);
        let browser = &console.browser;
        let page = browser.tab();
        console.open(&id);
        let list = browser.open_tab();
        console.go("/inbox");
        browser.until_shown(&format!("#waiting-list li[data-id='{id}']"));
        host.ctl(&[verb, &id]).ok();
        browser.until_gone(&format!("#waiting-list li[data-id='{id}']"));
        let count = |browser: &crate::support::webdriver::Browser| browser.text("#inbox-count");
        browser.until("an empty count", |browser| ["", "0"].contains(&count(browser).as_str()));
        browser.enter_tab(&page);
        browser.until_gone("form.approve");
        let status = browser.attribute("article.page", "data-status");
        assert_ne!(status.as_deref(), Some("pending"));
        browser.keep_picture(&format!("decided-elsewhere-{}", screen.width));
        browser.enter_tab(&list);
        // A new call arrives in the open list, without a reload.
        browser.run("window.__kept = true", &[]);
        let id = asked(&raw, &post(&format!("roses{}", screen.width), &site.url("/notes"))).remove(0);
        browser.until_shown(&format!("#waiting-list li[data-id='{id}']"));
        assert_eq!(browser.run("return window.__kept === true", &[]), true, "the list is replaced, not the page");
        host.ctl(&["reject", &id]).ok();
    }
    assert_eq!(site.lines().len(), 1);
}
