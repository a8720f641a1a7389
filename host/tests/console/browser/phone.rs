//! A phone and no other client: from the question of an agent to the end of its work.

use super::{Console, HELD, check_decided_here};
use crate::e2e::requests::{host_with_people, inbox, waiting};
use crate::support::host_fixture::wait_for;
use crate::support::webdriver::PHONE;
use serde_json::json;

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn phone_alone_takes_a_request_from_asked_to_done() {
    let (site, host, raw) = host_with_people(&["POST"], &["/notes"]);
    let console = Console::sign_in(&host, PHONE);
    let browser = &console.browser;
    console.converse();
    let script = "const field = document.querySelector('#allow');
        const reading = [...field.options].find(o => o.value === 'read');
        if (reading) { field.value = 'read'; field.dispatchEvent(new Event('change', { bubbles: true })); }
        return !!reading";
    assert_eq!(browser.run(script, &[]), true, "a person can permit reading alone");
    console.say(&format!("post tulips at {}", site.url("/notes")));
    wait_for("the request", || inbox(&raw).len() == 1);
    let id = waiting(&raw)["id"].as_str().expect("an id").to_owned();
    let link = format!("#requests a[href='/waiting/{id}']");
    browser.until_shown(&link);
    browser.keep_picture("phone-1-asked");
    browser.tap(&link);
    browser.until_shown("article.page");
    browser.keep_picture("phone-2-page");
    let is_wide = "return document.scrollingElement.scrollWidth > innerWidth";
    assert_eq!(browser.run(is_wide, &[]), false, "the page fits into the width of the phone");
    browser.read_to_the_end();
    browser.keep_picture("phone-3-end");
    browser.hold_pointer("#approve", HELD);
    browser.until_gone("form.approve");
    browser.until("its end", |_| crate::e2e::requests::request(&raw, &json!(id))["status"] == "done");
    console.go("/conversations");
    browser.tap("#main a[href^='/conversations/ses_']");
    console.until_said("The page says tulip.");
    browser.keep_picture("phone-4-done");
    assert_eq!(site.lines(), ["POST /notes HTTP/1.1"]);
    check_decided_here(&host, "request.approved_by", &id);
    let by = &host.entries("request.approved_by")[0]["data"];
    let owner = host.ctl(&["--json", "whoami"]).ok().json();
    assert!(by.to_string().contains(owner["id"].as_str().expect("an id")), "the ledger says who decided: {by}");
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn no_room_is_wider_than_a_phone_or_a_doubled_zoom() {
    let (site, host, raw) = host_with_people(&["POST"], &["/notes"]);
    let long = "x".repeat(400);
    let id = super::asked(&raw, &super::post(&format!("tulips{long}"), &site.url("/notes"))).remove(0);
    // A window of 640 pixels is one of 1280 at 200 %.
    let zoomed = crate::support::webdriver::Screen { width: 640, height: 450, is_phone: false };
    let mut console = Console::sign_in(&host, PHONE);
    for screen in [PHONE, zoomed] {
        console.browser.set_screen(screen);
        for path in ["/inbox", &format!("/waiting/{id}"), "/conversations", "/status", "/why", "/nowhere"] {
            console.go(path);
            let widths = console.browser.run("return [document.scrollingElement.scrollWidth, innerWidth]", &[]);
            assert!(widths[0].as_u64() <= widths[1].as_u64(), "{path} at {}: {widths}", screen.width);
        }
        console.go("/conversations");
        console.browser.click("#main a[href^='/conversations/ses_']");
        let widths = console.browser.run("return [document.scrollingElement.scrollWidth, innerWidth]", &[]);
        assert!(widths[0].as_u64() <= widths[1].as_u64(), "the talk at {}: {widths}", screen.width);
    }
}
