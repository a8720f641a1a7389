//! Pages that stay open while the host is away.

use super::{Console, asked, post};
use crate::e2e::requests::host_with;
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost};
use crate::support::webdriver::{DESKTOP, PHONE};

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn open_page_says_so_and_recovers_after_a_restart() {
    for screen in [DESKTOP, PHONE] {
        let (site, host, raw) = host_with(&["POST"], &["/notes"]);
        let console = Console::sign_in(&host, screen);
        let browser = &console.browser;
        console.go("/inbox");
        let first = asked(&raw, &post("tulips", &site.url("/notes"))).remove(0);
        browser.until_shown(&format!("#waiting-list li[data-id='{first}']"));
        assert!(!browser.is_shown("#offline"));
        host.down();
        browser.until_shown("#offline");
        browser.keep_picture(&format!("offline-{}", screen.width));
        host.up();
        browser.until_gone("#offline");
        // The restart opened another socket of the API.
        let raw = Raw::of(&host);
        let all = asked(&raw, &post("roses", &site.url("/notes")));
        for id in &all {
            browser.until_shown(&format!("#waiting-list li[data-id='{id}']"));
        }
        assert_eq!(all.len(), 2);
        host.kill_host();
        browser.until_shown("#offline");
        host.up();
        browser.until_gone("#offline");
        browser.until_shown(&format!("#waiting-list li[data-id='{first}']"));
    }
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn open_talk_continues_after_a_restart() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let console = Console::sign_in(&host, DESKTOP);
    let browser = &console.browser;
    console.converse();
    console.say("echo one tulip");
    console.until_said("one tulip");
    let text = "echo two tulips";
    browser.type_keys("#text", text);
    host.down();
    browser.until_shown("#offline");
    host.up();
    browser.until_gone("#offline");
    assert_eq!(browser.run("return document.querySelector('#text')?.value", &[]), text, "the typed text is kept");
    browser.click("#send-button");
    console.until_said("two tulips");
}
