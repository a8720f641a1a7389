//! Questions of an agent, answered on their pages by an option and by a text.

use super::{Console, asked, until_status};
use crate::e2e::questions::give_tool;
use crate::e2e::requests::request;
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost};
use crate::support::webdriver::{DESKTOP, PHONE};
use serde_json::json;

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn question_is_answered_by_option_and_by_text() {
    let host = TestHost::own(Build::Plain).started_with("a");
    give_tool(&host);
    let raw = Raw::of(&host);
    for screen in [DESKTOP, PHONE] {
        let console = Console::sign_in(&host, screen);
        let browser = &console.browser;
        let id = asked(&raw, &json!({ "text": "ask me which? red or blue" })).remove(0);
        console.open(&id);
        assert!(!browser.has("#answer-text"), "the question has options alone");
        browser.click("#answer");
        browser.until_shown(".notice.bad");
        assert_eq!(request(&raw, &json!(id))["status"], "pending", "no option is chosen");
        console.open(&id);
        browser.elements("form.answer input[name=option]")[1].click();
        browser.keep_picture(&format!("question-{}", screen.width));
        browser.click("#answer");
        browser.until_gone("form.answer");
        until_status(&raw, &id, "done");

        let id = asked(&raw, &json!({ "text": "ask me what do you want" })).remove(0);
        console.open(&id);
        browser.type_keys("#answer-text", "echo a garden");
        browser.click("#answer");
        browser.until_gone("form.answer");
        until_status(&raw, &id, "done");
    }
    let said = host.ctl(&["--json", "session", "list"]).ok().json();
    let session = said[0]["id"].as_str().expect("an id");
    let shown = host.ctl(&["--json", "session", "show", session]).ok().json()["transcript"].to_string();
    assert!(shown.contains("You chose: blue") && shown.contains("a garden"), "{shown}");
    let answered = host.entries("question.answered");
    assert!(answered.len() == 4 && answered.iter().all(|entry| entry["data"]["face"] == "console"), "{answered:#?}");
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn rejected_question_has_no_answer() {
    let host = TestHost::own(Build::Plain).started_with("a");
    give_tool(&host);
    let raw = Raw::of(&host);
    let id = asked(&raw, &json!({ "text": "ask me which? red or blue" })).remove(0);
    let console = Console::sign_in(&host, DESKTOP);
    console.open(&id);
    console.browser.click("#reject");
    console.browser.until_gone("form.answer");
    until_status(&raw, &id, "rejected");
    assert!(host.entries("question.answered").is_empty());
}
