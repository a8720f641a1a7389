//! Files of every type that an agent sends: none of them is a page of the console, and none of them runs.

use super::Console;
use crate::e2e::requests::{approve, inbox, request, say};
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::site::PEOPLE_AWAY;
use crate::support::webdriver::{Browser, DESKTOP};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// What a browser would run if it took the bytes for a page.
const PAGE: &str =
    "<html><body data-xss=file><script>window.__hit = 1; opener && (opener.__hit = 1)</script></body></html>";

/// A picture of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The files: name and content. The names and the beginnings of contents disagree in some.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" data-xss=\"file\"><script>window.__hit = 1</script></svg>";
    let xhtml = format!("<?xml version=\"1.0\"?><html xmlns=\"http://www.w3.org/1999/xhtml\">{svg}</html>");
    let after = |head: &[u8]| [head, PAGE.as_bytes()].concat();
    let png = STANDARD.decode(PNG).expect("base64");
    vec![
        ("page.html", PAGE.into()),
        ("page.htm", PAGE.into()),
        ("page.shtml", PAGE.into()),
        ("page.xhtml", xhtml.clone().into()),
        ("page.xml", xhtml.into()),
        ("sheet.xsl", "<xsl:stylesheet version=\"1.0\" xmlns:xsl=\"http://www.w3.org/1999/XSL/Transform\"/>".into()),
        ("picture.svg", svg.into()),
        ("picture.svgz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec()),
        ("page.mht", "MIME-Version: 1.0\nContent-Type: text/html\n\n<script>window.__hit=1</script>".into()),
        ("script.js", "window.__hit = 1".into()),
        ("module.mjs", "window.__hit = 1".into()),
        ("style.css", "body { background: red !important }".into()),
        ("data.json", "{\"__proto__\": {\"__hit\": 1}}".into()),
        ("paper.pdf", "%PDF-1.4\n1 0 obj<</OpenAction<</S/JavaScript/JS(app.alert(1))>>>>endobj".into()),
        ("player.swf", b"CWS\x0a\0\0\0\0".to_vec()),
        ("program.exe", after(b"MZ\x90\0")),
        ("archive.zip", after(b"PK\x03\x04")),
        ("link.url", "[InternetShortcut]\nURL=javascript:window.__hit=1".into()),
        ("text.txt", PAGE.into()),
        ("no-suffix", PAGE.into()),
        ("is-a-page.png", PAGE.into()),
        ("is-a-page.gif", after(b"GIF89a/*")),
        ("is-a-page.jpg", after(b"\xff\xd8\xff\xe0")),
        ("is-a-page.webp", after(b"RIFF\x10\0\0\0WEBPVP8 ")),
        ("is-a-page.bmp", after(b"BM")),
        ("picture.png", [png.as_slice(), PAGE.as_bytes()].concat()),
        ("picture-of-a-page.html", [png.as_slice(), PAGE.as_bytes()].concat()),
    ]
}

/// Files that are sent before they are opened: fewer than a conversation keeps.
const AT_ONCE: usize = 14;

/// A sent file: its name, its content and the call.
type Sent<'a> = (&'a str, &'a [u8], String);

/// Has the agent send a file into its conversation, and returns the call.
fn send(host: &TestHost, raw: &Raw, name: &str, content: &[u8]) -> String {
    let directory = crate::e2e::files::shared_directory();
    let path = directory.path().join(name);
    std::fs::write(&path, content).expect("written");
    host.ctl(&["file", "put", "a", path.to_str().expect("UTF-8"), name, "--replace"]).ok();
    let message = say(raw, &format!("send file {name} here"));
    let entry = request(raw, &inbox(raw)[0]["id"]);
    assert_eq!(approve(raw, &entry).0, 200);
    wait_for("the file", || request(raw, &entry["id"])["status"] == "done");
    raw.get(&format!("/v1/messages/{message}")).1["calls"][0]["id"].as_str().expect("an id").to_owned()
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn no_file_of_an_agent_is_a_page_or_runs() {
    let host = TestHost::own(Build::Plain).configured(PEOPLE_AWAY).started_with("a");
    host.change("a", "enabled_tools", &json!({ "add": ["send_file"] }));
    let raw = Raw::of(&host);
    host.say("a", "hello");
    let console = Console::sign_in(&host, DESKTOP);
    // A conversation keeps the copies of its last files alone.
    for part in files().chunks(AT_ONCE) {
        let sent: Vec<Sent<'_>> =
            part.iter().map(|(name, content)| (*name, content.as_slice(), send(&host, &raw, name, content))).collect();
        check_each(&console, &sent);
    }
}

/// Checks the answer of each file, and what the browser makes of it.
fn check_each(console: &Console, sent: &[Sent<'_>]) {
    let browser = &console.browser;
    console.go("/conversations");
    browser.click("#main a[href^='/conversations/ses_']");
    browser.until_shown("#talk");
    let talk = browser.url();
    for (name, content, call) in sent {
        open_page_of(browser, &talk, call);
        // The answer, as the script of a page of the console sees it.
        let script = "const [path, done] = arguments;
            fetch(path).then(async a => done([a.status, Object.fromEntries(a.headers), (await a.arrayBuffer()).byteLength]), e => done(['' + e]))";
        let answer = browser.run_late(script, &[json!(format!("/files/{call}"))]);
        let header = |header: &str| answer[1][header].as_str().unwrap_or_default().to_owned();
        assert_eq!((&answer[0], &answer[2]), (&json!(200), &json!(content.len())), "{name}: {answer}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{name}");
        let policy = header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{name}: {policy}");
        let kind = header("content-type");
        let is_picture = ["image/png", "image/jpeg", "image/webp", "image/gif"].contains(&kind.as_str());
        let is_download = header("content-disposition").starts_with("attachment");
        assert!(is_download || is_picture, "{name}: {answer}");
        assert!(is_picture || kind == "application/octet-stream", "{name}: {kind}");
    }
    open_each(console, &talk, sent);
}

/// Opens the page of the conversation that has the file of a call.
fn open_page_of(browser: &Browser, talk: &str, call: &str) {
    browser.go(talk);
    while !browser.has(&format!("#talk a[href='/files/{call}']")) {
        browser.click("nav.pages a[rel=prev]");
        browser.until_shown("#talk");
    }
}

/// Opens each file as a person does, and by its address, and checks that the browser only keeps it or shows a picture.
fn open_each(console: &Console, talk: &str, sent: &[Sent<'_>]) {
    let browser = &console.browser;
    for (name, content, call) in sent {
        open_page_of(browser, talk, call);
        browser.run("window.__kept = true", &[]);
        let before = browser.kept_files(content);
        browser.click(&format!("#talk a[href='/files/{call}']"));
        let is_picture =
            |browser: &Browser| browser.run("return document.contentType.startsWith('image/')", &[]) == true;
        browser.until(&format!("{name} to be kept or shown"), |browser| {
            browser.kept_files(content) > before || is_picture(browser)
        });
        let found = browser.run(
            "return [window.__hit ?? null, document.querySelectorAll('[data-xss]').length, ({}).__hit ?? null]",
            &[],
        );
        assert_eq!(found, json!([Value::Null, 0, Value::Null]), "{name}");
        assert!(browser.dialog().is_none(), "{name}");
        if browser.run("return window.__kept === true", &[]) != true {
            assert!(is_picture(browser), "{name}: another page was loaded: {}", browser.url());
        }
    }
    // A script that a page of the console would load from a file.
    browser.go(talk);
    let script = "const [path, done] = arguments;
        const element = document.createElement('script');
        element.src = path; element.onload = () => done('loaded'); element.onerror = () => done('refused');
        document.body.append(element); setTimeout(() => done('refused'), 5000)";
    for (_, _, call) in sent.iter().filter(|(name, ..)| name.ends_with("js")) {
        assert_eq!(browser.run_late(script, &[json!(format!("/files/{call}"))]), "refused");
    }
    assert_eq!(browser.run("return window.__hit ?? null", &[]), Value::Null);
}
