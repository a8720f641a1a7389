//! The keyboard alone: from the code to an approved call.

use super::{asked, check_decided_here, new_code, post, until_status};
use crate::e2e::requests::host_with;
use crate::support::webdriver::actions::{END, ENTER, PAGE_DOWN};
use crate::support::webdriver::{Browser, DESKTOP};
use serde_json::json;

/// Returns whether the focus has a visible ring, which a person without a pointer needs.
const HAS_RING: &str = "const style = getComputedStyle(document.activeElement);
    return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== 'none'";

/// Scrolls with the keyboard to the end of the page.
fn page_down(browser: &Browser) {
    let at_end = "const e = document.scrollingElement; return e.scrollTop + innerHeight >= e.scrollHeight - 2";
    browser.until("the end of the page", |browser| {
        browser.press(PAGE_DOWN);
        browser.run(at_end, &[]) == true
    });
    browser.press(END);
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn keyboard_walks_from_the_code_to_an_approved_call() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    let id = asked(&raw, &post("tulips", &site.url("/notes"))).remove(0);
    let code = new_code(&host);
    let browser = Browser::start(DESKTOP);
    browser.go(code["url"].as_str().expect("a url"));
    browser.tab_to("form[action='/sign-in'] input[name=code]");
    browser.press_each(code["code"].as_str().expect("a code"));
    browser.press(ENTER);
    browser.until("the inbox", |browser| browser.url().ends_with("/inbox"));
    // The first stop is the link over the header.
    browser.run("document.activeElement.blur()", &[]);
    browser.tab_to("a.skip");
    assert_eq!(browser.run(HAS_RING, &[]), true, "the focus is not visible on the skip link");
    browser.press(ENTER);
    browser.tab_to(&format!("#waiting-list li[data-id='{id}'] a"));
    assert_eq!(browser.run(HAS_RING, &[]), true, "the focus is not visible in the list");
    browser.press(ENTER);
    browser.until_shown("article.page");
    page_down(&browser);
    browser.tab_to("#typed");
    assert_eq!(browser.run(HAS_RING, &[]), true, "the focus is not visible in the field");
    browser.press_each("approve");
    browser.press(ENTER);
    browser.until_gone("form.approve");
    until_status(&raw, &id, "done");
    check_decided_here(&host, "request.approved_by", &id);
    assert_eq!(site.lines().len(), 1);
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn every_control_of_the_rooms_is_reached_by_tab() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    let id = asked(&raw, &post("tulips", &site.url("/notes"))).remove(0);
    let console = super::Console::sign_in(&host, DESKTOP);
    let browser = &console.browser;
    for path in ["/inbox".to_owned(), format!("/waiting/{id}"), "/conversations".to_owned(), "/status".to_owned()] {
        console.go(&path);
        let script = "return [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')]
            .filter(e => e.checkVisibility() && (e.tabIndex < 0 || e.disabled)).map(e => e.outerHTML.slice(0, 120))";
        assert_eq!(browser.run(script, &[]), json!([]), "{path}: no control is out of reach");
        browser.run("document.activeElement.blur()", &[]);
        browser.tab_to("#stop");
    }
}
