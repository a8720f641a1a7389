//! Conversations: live text, rows of calls, files in both directions, what is typed and what is pasted.

use super::{Console, asked, until_status};
use crate::e2e::requests::{inbox, waiting};
use crate::e2e::streaming::new_host;
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::model_server::{Act, Seen, Server};
use crate::support::site::{LOOPBACK, PEOPLE_AWAY, Site};
use crate::support::webdriver::actions::{CONTROL, ENTER};
use crate::support::webdriver::{DESKTOP, PHONE, Screen};
use serde_json::{Value, json};

/// A model that looks at the directory and answers, or streams the beginning of an answer.
fn model(seen: &Seen) -> Act {
    match (seen.results().len(), seen.asked().as_str()) {
        (_, asked) if asked.contains("weather") => Act::Stall("It rains <b>today</b> and ".to_owned()),
        (0, _) => Act::Call("I look. ".to_owned(), vec![("list_dir".to_owned(), json!({}))]),
        _ => Act::Say("There is nothing in it.".to_owned()),
    }
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn answer_streams_and_calls_are_rows_that_open() {
    let server = Server::start(model);
    let host = new_host("", &server, "openai", &[]);
    for screen in [DESKTOP, PHONE] {
        let console = Console::sign_in(&host, screen);
        let browser = &console.browser;
        console.converse();
        browser.run("window.__kept = true", &[]);
        console.say("what is there?");
        console.until_said("There is nothing in it.");
        browser.until_text("#talk", "what is there?");
        browser.until_text("details.call summary", "list_dir");
        browser.click("details.call summary");
        assert_eq!(browser.run("return document.querySelector('details.call').open", &[]), true);
        browser.keep_picture(&format!("conversation-{}", screen.width));
        console.say("how is the weather?");
        browser.until_text("#partial", "It rains <b>today</b> and");
        assert!(!browser.has("#partial b"), "the text is no markup");
        browser.keep_picture(&format!("streaming-{}", screen.width));
        assert_eq!(browser.run("return window.__kept === true", &[]), true, "the page was not loaded again");
        browser.click("form[action$='/cancel'] button");
        wait_for("the request to be dropped", || server.stalled() == 0);
        browser.until_text("#talk", "cancelled");
        browser.until_gone("form[action$='/cancel'] button");

        console.go("/conversations");
        browser.until_text("#main", "what is there?");
        browser.keep_picture(&format!("conversations-{}", screen.width));
        console.go("/conversations?q=nothing%20of%20that%20name");
        assert!(!browser.text("#main").contains("what is there?"));
    }
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn conversation_without_scripts_works_but_for_live_text() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let console = Console::sign_in(&host, DESKTOP);
    let browser = &console.browser;
    browser.set_scripts(false);
    console.go("/conversations");
    browser.click("#begin");
    browser.until_shown("#text");
    let talk = browser.url();
    browser.type_keys("#text", "echo tulips in a row");
    browser.click("#send-button");
    let script = "return document.querySelector('#talk')?.innerText.split('tulips in a row').length > 2";
    browser.until("the answer", |browser| {
        browser.go(&talk);
        browser.run(script, &[]) == true
    });
}

/// Returns a host whose agent sends files and waits for a yes.
fn sending_host() -> TestHost {
    let host = TestHost::own(Build::Plain).configured(PEOPLE_AWAY).started_with("a");
    host.change("a", "enabled_tools", &json!({ "add": ["send_file"] }));
    host
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn file_goes_up_and_comes_down_after_a_yes() {
    let host = sending_host();
    let raw = Raw::of(&host);
    // A short text is a part of the message; a longer one goes into the workspace.
    let content = "twelve ducks\n".repeat(6000);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("ducks.txt");
    std::fs::write(&path, &content).expect("written");
    for screen in [DESKTOP, PHONE] {
        let console = Console::sign_in(&host, screen);
        let browser = &console.browser;
        console.converse();
        browser.type_keys("#files", path.to_str().expect("UTF-8"));
        console.say("read inbox/ducks.txt");
        console.until_said("twelve ducks");
        drop_file(&console, "geese.txt", "nine geese");
        console.say("echo tulips");
        browser.until_text("#talk", "nine geese");
        console.until_said("tulips");

        console.say("send file inbox/ducks.txt here");
        wait_for("the request", || !inbox(&raw).is_empty());
        let id = waiting(&raw)["id"].as_str().expect("an id").to_owned();
        // The request is in the conversation, too.
        browser.click(&format!("#requests a[href='/waiting/{id}']"));
        browser.until_shown("article.page");
        browser.read_to_the_end();
        console.approve_by_typing();
        until_status(&raw, &id, "done");
        console.go("/conversations");
        browser.click("#main a[href^='/conversations/ses_']");
        browser.click("#talk a[href^='/files/']");
        browser.until("the download", |browser| browser.kept_files(content.as_bytes()) == 1);
        browser.keep_picture(&format!("file-{}", screen.width));
    }
}

/// Drops a file onto the form of the open conversation.
fn drop_file(console: &Console, name: &str, text: &str) {
    let script = "const files = new DataTransfer();
        files.items.add(new File([arguments[1]], arguments[0], { type: 'text/plain' }));
        const form = document.querySelector('#send');
        for (const kind of ['dragenter', 'dragover', 'drop'])
            form.dispatchEvent(new DragEvent(kind, { dataTransfer: files, bubbles: true, cancelable: true }));
        return document.querySelector('#files').files.length;";
    assert_eq!(console.browser.run(script, &[json!(name), json!(text)]), 1, "the field has the dropped file");
}

/// Returns a host whose agent fetches an address at each message, and asks unless its person typed the address.
fn fetching_host(site: &Site) -> (TestHost, Server) {
    let fetch = json!({ "url": site.url("/q/secret") });
    let server = Server::start(move |seen: &Seen| match seen.results().pop() {
        Some(_) => Act::Say("I have read it.".to_owned()),
        None => Act::Call(String::new(), vec![("http_fetch".to_owned(), fetch.clone())]),
    });
    let host = new_host(&format!("{LOOPBACK}{PEOPLE_AWAY}"), &server, "openai", &[]);
    host.change("a", "enabled_tools", &json!({ "add": ["http_fetch"] }));
    host.change("a", "egress", &json!({ "host": "127.0.0.1", "port": site.port, "methods": ["GET"], "paths": [] }));
    (host, server)
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn typed_address_asks_nothing_and_a_pasted_one_asks() {
    let site = Site::start();
    let (host, _server) = fetching_host(&site);
    let raw = Raw::of(&host);
    let console = Console::sign_in(&host, DESKTOP);
    let browser = &console.browser;
    let url = site.url("/q/secret");
    console.converse();
    console.say(&format!("read {url}, please"));
    console.until_said("I have read it.");
    assert!(inbox(&raw).is_empty() && site.lines().len() == 1, "{:?}", inbox(&raw));

    console.converse();
    // The clipboard gets the address from the search field of the page.
    browser.type_keys("#text", &url);
    browser.press_with(CONTROL, "a");
    browser.press_with(CONTROL, "x");
    browser.type_keys("#text", "read ");
    browser.press_with(CONTROL, "v");
    browser.type_keys("#text", ", please");
    let written = browser.run("return document.querySelector('#text')?.value", &[]);
    assert_eq!(written, json!(format!("read {url}, please")));
    browser.press_with(CONTROL, ENTER);
    console.until_said("I have read it.");
    assert_eq!((inbox(&raw).len(), site.lines().len()), (1, 1), "the address is the text of others");
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn classes_are_a_choice_and_a_lost_session_keeps_the_text() {
    let site = Site::start();
    let host = TestHost::own(Build::Plain);
    crate::support::site::grant(&host, &site, &["POST"], &["/notes"]);
    let raw = Raw::of(&host);
    let console = Console::sign_in(&host, DESKTOP);
    let browser = &console.browser;
    console.converse();
    let talk = browser.url();
    let choices = browser.run("return [...document.querySelectorAll('#allow option')].map(o => o.value)", &[]);
    assert!(choices.as_array().is_some_and(|all| all.len() > 1), "{choices}");

    let text = "this is typed, and not sent yet";
    browser.type_keys("#text", text);
    super::remove_session(&host);
    browser.click("#send-button");
    // The script keeps the page, and leads to the sign-in.
    browser.until_shown("#offline a[href='/']");
    browser.keep_picture("session-ended");
    browser.click("#offline a[href='/']");
    browser.until_shown("form[action='/sign-in'] input[name=code]");
    console.enter(&super::new_code(&host));
    browser.go(&talk);
    browser.until("the kept text", |browser| browser.run("return document.querySelector('#text')?.value", &[]) == text);
    assert!(raw.get("/v1/agents/a/history?limit=10").1["lines"].as_array().is_none_or(Vec::is_empty));
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn question_and_request_are_in_the_talk() {
    let host = TestHost::own(Build::Plain).configured(PEOPLE_AWAY).started_with("a");
    crate::e2e::questions::give_tool(&host);
    let raw = Raw::of(&host);
    let id = asked(&raw, &json!({ "text": "ask me which? red or blue" })).remove(0);
    for Screen { width, height, is_phone } in [DESKTOP, PHONE] {
        let console = Console::sign_in(&host, Screen { width, height, is_phone });
        console.go("/conversations");
        console.browser.click("#main a[href^='/conversations/ses_']");
        console.browser.until_shown(&format!("#requests a[href='/waiting/{id}']"));
        let lines: Vec<Value> = console
            .browser
            .run("return [...document.querySelectorAll('#talk .said')].map(e => e.className)", &[])
            .as_array()
            .cloned()
            .unwrap_or_default();
        assert!(lines.iter().any(|class| class.as_str().is_some_and(|class| class.contains("person"))), "{lines:?}");
        console.browser.keep_picture(&format!("talk-{width}"));
    }
}
