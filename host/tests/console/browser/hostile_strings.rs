//! Markup in each string that an agent, a model, a channel, a file name, a skill, a server or a schedule controls, on every page.
//!
//! Each string carries marks. A mark must be read as text on some page, and no element, handler or link may come from it.

use super::Console;
use crate::e2e::mcp::ready;
use crate::e2e::requests::inbox;
use crate::e2e::skills::SkillFixture;
use crate::support::client::Raw;
use crate::support::hooks::{Hook, Receiver};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::listed_mcp::{Listed, ListedServers};
use crate::support::model_server::{Act, Seen, Server};
use crate::support::site::{LOOPBACK_WHILE_AWAY, Site};
use crate::support::webdriver::{Browser, DESKTOP, PHONE};
use ironclaw_skill::author;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Markup of many forms. `M` is the mark.
const MARKUP: [&str; 14] = [
    "<img src=x onerror=window.__hit=1 data-xss=M>",
    "<script data-xss=M>window.__hit=1</script>",
    "\"><svg onload=window.__hit=1 data-xss=M>",
    "' onfocus=window.__hit=1 autofocus data-xss=M '",
    "</textarea></title></style></script><b data-xss=M>",
    "<a href=\"javascript:window.__hit=1\" data-xss=M>M</a>",
    "[M](javascript:window.__hit=1)",
    "&lt;img src=x onerror=window.__hit=1 data-xss=M&gt;",
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img data-xss=M src=1 onerror=window.__hit=1&gt;\">",
    "<meta http-equiv=refresh content=\"0;url=http://127.0.0.1:1/M\">",
    "<form action=http://127.0.0.1:1/ data-xss=M><button>M</button></form>",
    "<iframe srcdoc=\"<script>parent.__hit=1</script>\" data-xss=M></iframe>",
    "{{7*7}}{%M%}${M}",
    "javascript:window.__hit=1//M",
];

/// The same for names, which have no slash and few characters.
const NAMES: [&str; 3] = [
    "<img src=x onerror=window.__hit=1 data-xss=M>",
    "\"onmouseover=window.__hit=1 data-xss=M x=\"",
    "'><b data-xss=M>",
];

/// The places that others control and people read, with the number of their marks. No page need show the thread of a channel, and the words
/// of a server that fails.
const PLACES: [(&str, usize); 13] = [
    ("answer", MARKUP.len()),
    ("streamed", MARKUP.len()),
    ("argument", MARKUP.len()),
    ("tool", NAMES.len()),
    ("question", MARKUP.len()),
    ("option", NAMES.len()),
    ("reason", NAMES.len()),
    ("persona", MARKUP.len()),
    ("prompt", MARKUP.len()),
    ("channel", MARKUP.len()),
    ("uploaded", 1),
    ("description", MARKUP.len()),
    ("result", MARKUP.len()),
];

/// At least so many strings × places.
const MARKS_MIN: usize = 40;

fn mark(place: &str, number: usize) -> String {
    format!("mark-{place}-{number}.")
}

/// Returns the strings of a place, each with its mark.
fn strings(place: &str, forms: &[&str]) -> Vec<String> {
    forms.iter().enumerate().map(|(number, form)| form.replace('M', &mark(place, number))).collect()
}

/// Returns all strings of a place as one text. The end of an event of a stream is in it, too.
fn text(place: &str) -> String {
    let event = format!("\n\nevent: fragment\ndata: {{\"id\":\"main\",\"html\":\"<b data-xss={place}>\"}}\n\n");
    strings(place, &MARKUP).join("\n") + &event
}

fn names(place: &str) -> Vec<String> {
    strings(place, &NAMES)
}

/// A model that does what the last word of a message says.
fn model(seen: &Seen, url: &str) -> Act {
    let asked = seen.asked();
    let call = |beside: String, tool: &str, arguments: Value| Act::Call(beside, vec![(tool.to_owned(), arguments)]);
    let step = seen.results().len();
    match asked.rsplit("do ").next().unwrap_or_default().trim() {
        "stream" => Act::Stall(text("streamed") + " and "),
        "call" if step == 0 => {
            let headers = json!({ "content-type": "text/plain" });
            let post = json!({ "method": "POST", "url": url, "headers": headers, "body": text("argument") });
            call(text("beside"), "http_fetch", post)
        }
        "tools" if step == 0 => {
            Act::Call(String::new(), names("tool").into_iter().map(|name| (name, json!({}))).collect())
        }
        "question" if step == 0 => {
            let question = json!({ "question": text("question"), "options": names("option"), "allow_freeform": true });
            call(String::new(), "ask_user_question", question)
        }
        "change" if step == 0 => {
            let payload = json!({ "instructions": text("persona") });
            let change = json!({ "kind": "persona", "payload": payload, "reason": names("reason").join(" ") });
            call(String::new(), "request_capability_change", change)
        }
        "schedule" if step == 0 => {
            call(String::new(), "schedule_task", json!({ "prompt": text("prompt"), "recurrence": "daily" }))
        }
        "result" if step == 0 => call(String::new(), "mail__get", json!({ "id": text("result") })),
        "fail" => Act::Status(400, Vec::new(), strings("failure", &NAMES[..1]).remove(0)),
        "find" if step == 0 => call(String::new(), "find_tools", json!({ "query": "look" })),
        "nothing" => Act::Say("I do nothing.".to_owned()),
        _ if step == 0 => Act::Say(text("answer")),
        _ => Act::Say("I have done it.".to_owned()),
    }
}

/// A host with hostile strings in each place.
struct Hostile {
    host: TestHost,
    raw: Raw,
    _fixture: (tempfile::TempDir, Site, Server, ListedServers, Receiver),
}

impl Hostile {
    fn new() -> Self {
        let settings = format!("{LOOPBACK_WHILE_AWAY}[webhook]\nlisten = \"127.0.0.1:0\"\n");
        let SkillFixture { host, directory, key: _ } =
            SkillFixture::on(TestHost::own(Build::Plain).configured(&settings));
        let (site, servers, receiver) = (Site::start(), ListedServers::start(), Receiver::accepting());
        let url = site.url("/notes");
        let server = Server::start(move |seen: &Seen| model(seen, &url));
        host.add_model(&server.url());
        host.ctl(&["agent", "set", "a", "--model", "m", "--yes"]).ok();
        let tools = json!({ "add": ["http_fetch", "ask_user_question", "schedule_task"] });
        host.change("a", "enabled_tools", &tools);
        let grant = json!({ "host": "127.0.0.1", "port": site.port, "methods": ["POST"], "paths": ["/notes"] });
        host.change("a", "egress", &grant);
        let listed = Listed::tools(&[("get", &["id"])]);
        ready(&host, "mail", &["--url", &servers.list("mail", listed)], None);
        // The description of its tool is in the answer of `find_tools`.
        let tool = json!({ "name": "look", "description": text("description"), "inputSchema": { "type": "object" } });
        ready(&host, "news", &["--url", &servers.list("news", Listed::page(&[tool.to_string()]))], None);
        let hook = Hook::add(&host, "shop", &receiver, &[]);
        let body = json!({ "sender": "ann", "thread": strings("thread", &NAMES[..1])[0], "text": text("channel") + "do nothing" });
        let (status, answer) = hook.send("e1", &body.to_string());
        assert_eq!(status, 200, "{answer}");
        Self { raw: Raw::of(&host), host, _fixture: (directory, site, server, servers, receiver) }
    }
}

/// Checks that nothing on the page came from a string, and keeps its text.
#[track_caller]
fn check(browser: &Browser, read: &mut String) {
    assert_eq!(browser.dialog(), None);
    let script = "const all = [...document.querySelectorAll('*')];
        const found = [];
        if (window.__hit !== undefined) found.push('a script ran');
        for (const e of all) {
            for (const a of e.attributes) {
                if (a.name.startsWith('on') || a.name === 'data-xss' || a.name === 'autofocus' && e.closest('#main') && a.value)
                    found.push(e.outerHTML.slice(0, 200));
                if (['href', 'src', 'action', 'formaction'].includes(a.name) && !/^(\\/(?!\\/)|#|\\?)/.test(a.value))
                    found.push(e.outerHTML.slice(0, 200));
            }
            if (['IFRAME', 'OBJECT', 'EMBED', 'BASE', 'STYLE', 'MATH', 'MGLYPH'].includes(e.tagName)
                || e.tagName === 'META' && e.httpEquiv || e.tagName === 'SCRIPT' && e.textContent.trim())
                found.push(e.outerHTML.slice(0, 200));
        }
        const values = all.map(e => e.value ?? '').filter(v => typeof v === 'string').join('\\n');
        return [found, document.documentElement.textContent + values]";
    let page = browser.run(script, &[]);
    if page[0] != json!([]) {
        browser.fail(&format!("elements that come from a string: {:#}", page[0]));
    }
    read.push_str(page[1].as_str().unwrap_or_default());
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn no_string_of_others_is_markup_on_any_page() {
    let hostile = Hostile::new();
    let (host, raw) = (&hostile.host, &hostile.raw);
    let mut console = Console::sign_in(host, DESKTOP);
    let mut read = String::new();
    console.converse();
    let talk = console.browser.url();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(format!("{}.txt", strings("uploaded", &NAMES[..1])[0]));
    std::fs::write(&path, "a file").expect("written");
    console.browser.type_keys("#files", path.to_str().expect("UTF-8"));
    for (at, what) in
        ["answer", "call", "tools", "question", "change", "schedule", "result", "find", "fail"].iter().enumerate()
    {
        let lines = |browser: &Browser| browser.elements("#talk .said.agent, #talk .said.host").len();
        let ended = || host.entries("turn.closed").len();
        let before = (lines(&console.browser), ended());
        console.say(&format!("{at}: please do {what}"));
        // A message that comes before the end of a turn is a part of it.
        wait_for(&format!("the turn of {what}"), || ended() > before.1);
        console.browser.until(&format!("an answer to {what}"), |browser| lines(browser) > before.0);
        check(&console.browser, &mut read);
    }
    wait_for("all that waits", || inbox(raw).len() >= 4);
    console.say("please do stream");
    console.browser.until_text("#partial", &mark("streamed", 0));
    check(&console.browser, &mut read);
    console.browser.keep_picture("hostile-streaming");
    console.browser.click("form[action$='/cancel'] button");

    let talks = "return [...document.querySelectorAll(`#main a[href^='/conversations/ses_']`)].map(a => a.getAttribute('href'))";
    for screen in [DESKTOP, PHONE] {
        console.browser.set_screen(screen);
        console.go("/conversations");
        let mut paths: BTreeSet<String> = ["/inbox", "/conversations", "/status", "/why"].map(str::to_owned).into();
        // The conversations of channels are not in the list of a person.
        let sessions = host.ctl(&["--json", "session", "list"]).ok().json();
        let ids = sessions.as_array().into_iter().flatten().filter_map(|session| session["id"].as_str());
        paths.extend(ids.map(|id| format!("/conversations/{id}")));
        let found = console.browser.run(talks, &[]);
        paths.extend(found.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
        for id in inbox(raw).iter().filter_map(|entry| entry["id"].as_str()) {
            paths.extend([format!("/waiting/{id}"), format!("/waiting/{id}/together"), format!("/why?id={id}")]);
        }
        for path in &paths {
            console.go(path);
            console.browser.run("for (const e of document.querySelectorAll('details')) e.open = true", &[]);
            check(&console.browser, &mut read);
        }
        console.browser.go(&talk);
        check(&console.browser, &mut read);
        console.browser.keep_picture(&format!("hostile-talk-{}", screen.width));
    }
    let missing: Vec<String> = PLACES
        .iter()
        .flat_map(|place| (0..place.1).map(|number| mark(place.0, number)))
        .filter(|mark| !read.contains(mark))
        .collect();
    let all: usize = PLACES.iter().map(|place| place.1).sum();
    assert!(missing.is_empty() && all >= MARKS_MIN, "{} of {all} marks are on no page: {missing:?}", missing.len());
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn address_of_a_link_is_markup_on_no_page() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let console = Console::sign_in(&host, DESKTOP);
    let mut read = String::new();
    let escaped = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    for form in MARKUP {
        let form = escaped(&form.replace('M', "mark"));
        for path in ["/why?id=", "/conversations?q=", "/inbox?page=", "/waiting/", "/conversations/", "/files/", "/"] {
            console.go(&format!("{path}{form}"));
            check(&console.browser, &mut read);
        }
    }
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn text_of_a_skill_is_no_markup_on_its_page() {
    let fixture = SkillFixture::new(Build::Plain);
    let directory = fixture.directory.path().join("hostile");
    std::fs::create_dir_all(directory.join("references")).expect("made");
    let description: String = names("skill").join(" ").replace('"', "'");
    let write = |path: &str, text: &str| std::fs::write(directory.join(path), text).expect("written");
    write("skill.toml", "name = \"hostile\"\nversion = \"1.0.0\"\n");
    write("SKILL.md", &format!("---\nname: hostile\ndescription: \"{description}\"\n---\n{}\n", text("skill-text")));
    write("references/<img src=x onerror=window.__hit=1 data-xss=file>.md", "Code 7 is rain.\n");
    let bytes = author::pack(&directory);
    if bytes.is_err() {
        // A package has no such name of a file.
        std::fs::remove_dir_all(directory.join("references")).expect("removed");
    }
    fixture.pack(&directory, "hostile", "1.0.0");
    fixture.host.say("a", r#"change skill_install {"skill":"hostile","version":"1.0.0"} because we need it"#);
    let raw = Raw::of(&fixture.host);
    let id = crate::e2e::requests::waiting(&raw)["id"].as_str().expect("an id").to_owned();
    let console = Console::sign_in(&fixture.host, DESKTOP);
    let mut read = String::new();
    for path in ["/inbox", &format!("/waiting/{id}"), &format!("/why?id={id}"), "/status"] {
        console.go(path);
        console.browser.until("the last step", |browser| !browser.has("nav.steps a[rel=next]"));
        check(&console.browser, &mut read);
    }
    // The page has the description; `ironctl skill show` has the text.
    for number in 0..NAMES.len() {
        assert!(read.contains(&mark("skill", number)), "the page of the skill lacks mark {number}: {read}");
    }
}
