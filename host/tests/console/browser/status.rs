//! The room Status: the emergency stop at once, the end of the stop with care, and what the page shows.

use super::Console;
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::webdriver::actions::ENTER;
use crate::support::webdriver::{DESKTOP, PHONE};

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn stop_is_one_click_and_resume_is_typed() {
    let host = TestHost::own(Build::Plain).started_with("a");
    host.say("a", "hello");
    for (times, screen) in [(1, DESKTOP), (2, PHONE)] {
        let console = Console::sign_in(&host, screen);
        let browser = &console.browser;
        for path in ["/inbox", "/conversations", "/status", "/why"] {
            console.go(path);
            let script = "const e = document.querySelector('#stop');
                if (!e) return false;
                const box = e.getBoundingClientRect();
                return box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth";
            assert_eq!(browser.run(script, &[]), true, "{path}: the stop needs no scrolling");
        }
        console.go("/status");
        browser.until_shown("#status-agents");
        browser.keep_picture(&format!("status-{}", screen.width));
        browser.click("#stop");
        wait_for("the stop", || host.entries("host.panicked").len() == times);
        browser.until_shown("form[action='/status/resume'] input[name=typed]");
        browser.keep_picture(&format!("stopped-{}", screen.width));
        // Another word resumes nothing.
        browser.type_keys("form[action='/status/resume'] input[name=typed]", &format!("yes{ENTER}"));
        console.go("/status");
        assert_eq!(host.entries("host.resumed").len(), times - 1);
        browser.type_keys("form[action='/status/resume'] input[name=typed]", &format!("resume{ENTER}"));
        wait_for("the end of the stop", || host.entries("host.resumed").len() == times);
        browser.until_gone("form[action='/status/resume']");
        assert!(host.say("a", "echo tulips").contains("tulips"));
    }
    let stopped = &host.entries("host.panicked")[0]["data"];
    assert_eq!(stopped["face"], "console", "{stopped}");
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn stop_elsewhere_is_on_every_open_page() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let console = Console::sign_in(&host, DESKTOP);
    console.go("/inbox");
    console.browser.run("window.__kept = true", &[]);
    host.ctl(&["panic"]).ok();
    console.browser.until_text("body", "stopped");
    host.ctl(&["resume"]).ok();
    console.browser.until("the end of it", |browser| !browser.text("body").contains("stopped"));
    assert_eq!(console.browser.run("return window.__kept === true", &[]), true);
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn why_explains_any_id() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let raw = Raw::of(&host);
    let message = crate::e2e::requests::say(&raw, "echo tulips");
    let console = Console::sign_in(&host, DESKTOP);
    console.go("/why");
    console.browser.type_keys("#main input[name=id]", &format!("{message}{ENTER}"));
    console.browser.until_text("#main", &message);
    console.browser.until_text("#main", "completed");
    console.browser.keep_picture("why");
    console.go("/why?id=msg_00000000000000000000000000");
    console.browser.until_shown(".notice.bad");
    assert!(console.browser.has("#main input[name=id]"), "the page has a way on");
}
