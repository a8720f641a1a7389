//! A page of more lines than one step has: joined by the script, and cut into steps without it.

use super::{Console, HELD, until_status};
use crate::e2e::requests::request;
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost};
use crate::support::webdriver::{DESKTOP, PHONE};
use serde_json::json;

/// Lines of the change, which take several steps.
const LINES: usize = 200;

/// Submits a change of many lines.
fn propose(host: &TestHost, word: &str) -> String {
    let lines: Vec<String> = (0..LINES).map(|number| format!("Rule {number}: be {word}.")).collect();
    let submitted = host.submit("a", "persona", json!({ "instructions": lines.join("\n") })).ok().json();
    submitted["id"].as_str().expect("an id").to_owned()
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn long_page_is_one_that_is_read_before_it_is_approved() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let raw = Raw::of(&host);
    for (screen, word) in [(DESKTOP, "brief"), (PHONE, "kind")] {
        let id = propose(&host, word);
        let console = Console::sign_in(&host, screen);
        let browser = &console.browser;
        console.go(&format!("/waiting/{id}"));
        browser.until_shown("form.approve");
        assert!(!browser.has("nav.steps a"), "the steps are one page");
        let count = "const all = [...document.querySelectorAll('article.page .line')].map(e => e.textContent);
            return all.filter(line => line.includes(arguments[0])).length";
        assert_eq!(browser.run(count, &[json!(format!(": be {word}."))]), LINES, "each line is there once");
        // A hold at the end counts only after everything was on the screen.
        browser.hold_pointer("#approve", HELD);
        browser.until_shown("#unread");
        assert_eq!(request(&raw, &json!(id))["status"], "pending");
        browser.read_to_the_end();
        browser.keep_picture(&format!("long-{}", screen.width));
        browser.hold_pointer("#approve", HELD);
        browser.until_gone("form.approve");
        until_status(&raw, &id, "done");
    }
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn long_page_without_scripts_has_approve_on_its_last_step() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let raw = Raw::of(&host);
    let id = propose(&host, "brief");
    let console = Console::sign_in(&host, PHONE);
    let browser = &console.browser;
    browser.set_scripts(false);
    console.go(&format!("/waiting/{id}"));
    let mut read = browser.text("article.page");
    let mut steps = 1;
    while browser.has("nav.steps a[rel=next]") {
        assert!(!browser.has("#approve") && !browser.has("#typed"), "step {steps}");
        browser.click("nav.steps a[rel=next]");
        steps += 1;
        browser.until_shown(&format!("article.page[data-step='{steps}']"));
        read.push('\n');
        read.push_str(&browser.text("article.page"));
    }
    assert!(steps > 2, "{steps}");
    let seen = (0..LINES).filter(|number| read.matches(&format!("Rule {number}: be brief.")).count() == 1).count();
    assert_eq!(seen, LINES, "each line is on one step");
    browser.keep_picture("last-step");
    browser.type_keys("#typed", "approve");
    browser.click("#approve");
    until_status(&raw, &id, "done");
}
