//! The driver itself, at a page on loopback: what a person can do, and what a failure says.

use super::page_server::PageServer;
use crate::support::webdriver::actions::{ENTER, SPACE};
use crate::support::webdriver::{Browser, DESKTOP, PHONE, Screen};
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Notes each event of its button.
const PAGE: &str = "<!doctype html><html lang=en><title>Tulips</title>
    <meta name=viewport content='width=device-width, initial-scale=1'>
    <h1>Tulips</h1><label>Name <input id=name></label><input type=file id=files multiple>
    <button type=button id=held>Hold</button><div style='height: 3000px'></div><a id=end href=/other>Other</a>
    <script>
        window.seen = [];
        let since = 0;
        for (const kind of ['pointerdown', 'pointerup', 'keydown', 'keyup', 'click'])
            document.querySelector('#held').addEventListener(kind, event => {
                window.seen.push(kind, event.pointerType ?? '', Math.round((performance.now() - since) / 100));
                since = performance.now();
            });
    </script>";

fn opened(screen: Screen) -> (PageServer, Browser) {
    let server = PageServer::start();
    server.put("/", PAGE);
    server.put("/other", "<title>Other</title><h1>Roses</h1>");
    let browser = Browser::start(screen);
    browser.go(&format!("http://some-name.localhost:{}/", server.port));
    (server, browser)
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn browser_types_holds_and_reads_as_a_person() {
    for (screen, pointer) in [(DESKTOP, "mouse"), (PHONE, "touch")] {
        let (_server, browser) = opened(screen);
        let sizes = browser.run("return [innerWidth, innerHeight]", &[]);
        assert_eq!(sizes, json!([screen.width, screen.height]));
        browser.type_keys("#name", "Ann");
        browser.type_keys("#files", "/etc/hostname\n/etc/passwd");
        let fields = "return [document.querySelector('#name').value, document.querySelector('#files').files.length]";
        assert_eq!(browser.run(fields, &[]), json!(["Ann", 2]));
        let taken = || browser.run("return window.seen.splice(0)", &[]);
        browser.hold_pointer("#held", Duration::from_secs(1));
        let seen = taken();
        assert_eq!((&seen[0], &seen[1], &seen[3]), (&json!("pointerdown"), &json!(pointer), &json!("pointerup")));
        assert!(seen[5].as_u64() >= Some(10), "it was held for less than a second: {seen}");
        browser.tab_to("#held");
        browser.hold_key(SPACE, Duration::from_secs(1));
        let seen = taken();
        assert_eq!((&seen[0], &seen[3]), (&json!("keydown"), &json!("keyup")), "{seen}");
        browser.press(ENTER);
        browser.read_to_the_end();
        assert_eq!(browser.run("return scrollY > 2000", &[]), true);
        browser.tap("#end");
        browser.until_text("h1", "Roses");
        browser.keep_picture(&format!("driver-{}", screen.width));
    }
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn dialogs_tabs_media_and_scripts_are_seen() {
    let (server, mut browser) = opened(DESKTOP);
    assert_eq!(browser.dialog(), None);
    browser.run("setTimeout(() => alert('hello'), 0)", &[]);
    browser.until("the dialog", |browser| browser.dialog().as_deref() == Some("hello"));
    browser.accept_dialog();
    browser.set_media(&[("prefers-color-scheme", "dark")]);
    assert_eq!(browser.run("return matchMedia('(prefers-color-scheme: dark)').matches", &[]), true);
    let first = browser.tab();
    browser.open_tab();
    browser.go(&format!("http://some-name.localhost:{}/other", server.port));
    assert_eq!((browser.tabs(), browser.text("h1").as_str()), (2, "Roses"));
    browser.enter_tab(&first);
    assert_eq!(browser.text("h1"), "Tulips");
    browser.set_scripts(false);
    browser.reload();
    assert_eq!(browser.run("return window.seen ?? null", &[]), json!(null));
    browser.set_screen(PHONE);
    assert_eq!(browser.run("return innerWidth", &[]), PHONE.width);
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn failure_names_the_selector_and_the_page() {
    let (server, browser) = opened(DESKTOP);
    let failed = catch_unwind(AssertUnwindSafe(|| browser.run("return nothing.at.all", &[])));
    let words = failed.expect_err("it fails");
    let words = words.downcast_ref::<String>().expect("words");
    for part in ["nothing.at.all", "Tulips", &format!("some-name.localhost:{}", server.port)] {
        assert!(words.contains(part), "{part} is missing: {words}");
    }
}
