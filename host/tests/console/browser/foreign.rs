//! Pages and services of others in the same browser: frames, forms, requests, other names of the host, other ports.

use super::page_server::PageServer;
use super::{Console, asked, post};
use crate::e2e::requests::{host_with, request};
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost};
use crate::support::webdriver::DESKTOP;
use serde_json::{Value, json};

/// The host and the port of an origin.
fn name_and_port(origin: &str) -> (&str, &str) {
    origin.trim_start_matches("http://").rsplit_once(':').expect("a port")
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn page_of_another_origin_cannot_frame_the_console() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    let id = asked(&raw, &post("tulips", &site.url("/notes"))).remove(0);
    let console = Console::sign_in(&host, DESKTOP);
    let browser = &console.browser;
    let other = PageServer::start();
    let paths = ["/", "/inbox", "/status", &format!("/waiting/{id}"), "/nowhere", "/style.css"];
    for (at, path) in paths.into_iter().enumerate() {
        let page = format!("<iframe src=\"{}{path}\" onload=\"window.loaded = true\"></iframe>", console.origin);
        other.put(&format!("/{at}"), &page);
        browser.go(&format!("http://127.0.0.1:{}/{at}", other.port));
        browser.until("the frame", |browser| browser.run("return window.loaded === true", &[]) == true);
        browser.enter_frame(Some(0));
        assert!(browser.url().starts_with("http://127.0.0.1"), "the page around it");
        let shown = browser.run("return [location.href, document.body?.innerText ?? '', document.forms.length]", &[]);
        browser.enter_frame(None);
        // Chromium shows its own page in place of one that may not be framed.
        assert!(shown[0].as_str().is_some_and(|url| url.starts_with("chrome-error:")), "{path}: {shown}");
        assert_eq!(shown[2], 0, "{path}: {shown}");
    }
    // A window that another page opened gives it no handle.
    let script = "const opened = window.open(arguments[0]); window.opened = opened; return opened === null";
    browser.run(script, &[json!(format!("{}/inbox", console.origin))]);
    browser.until("the opened page to be out of reach", |browser| {
        browser.run("return !window.opened || window.opened.closed", &[]) == true
    });
}

/// A page that sends each of these forms to the console when its button is clicked.
fn forms(origin: &str, forms: &[(&str, Vec<(&str, &str)>)]) -> String {
    let field = |field: &(&str, &str)| format!("<input name={:?} value={:?}>", field.0, field.1);
    let form = |at: usize, path: &str, fields: &[(&str, &str)]| {
        let fields: String = fields.iter().map(field).collect();
        format!("<form method=post action=\"{origin}{path}\">{fields}<button id=f{at}>Win a prize</button></form>")
    };
    forms.iter().enumerate().map(|(at, one)| form(at, one.0, &one.1)).collect()
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn form_of_a_foreign_page_changes_nothing() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    let id = asked(&raw, &post("tulips", &site.url("/notes"))).remove(0);
    let digest = request(&raw, &json!(id))["shown_digest"].as_str().expect("a digest").to_owned();
    let console = Console::sign_in(&host, DESKTOP);
    let browser = &console.browser;
    // The token of the person's own page: even with it, a foreign page is refused.
    console.go("/inbox");
    let csrf = browser.attribute("body", "data-csrf").expect("a token");
    let decision = format!("/waiting/{id}/decision");
    let approve =
        |csrf| vec![("csrf", csrf), ("decision", "approve"), ("shown", digest.as_str()), ("typed", "approve")];
    let reject = |csrf| vec![("csrf", csrf), ("decision", "reject"), ("reason", "")];
    let all = [
        (decision.as_str(), approve("")),
        (decision.as_str(), approve(&csrf)),
        (decision.as_str(), reject(&csrf)),
        ("/status/stop", vec![("csrf", csrf.as_str())]),
        ("/status/resume", vec![("csrf", csrf.as_str()), ("typed", "resume")]),
        ("/sign-out", vec![("csrf", csrf.as_str())]),
        ("/conversations", vec![("csrf", csrf.as_str()), ("agent", "a")]),
        ("/sign-in", vec![("code", "AAAA")]),
        ("/confirm", vec![("csrf", csrf.as_str()), ("code", "AAAA"), ("back", "/inbox")]),
    ];
    let other = PageServer::start();
    other.put("/", &forms(&console.origin, &all));
    let sessions = || raw.get("/v1/status").1["sessions"].as_array().map(Vec::len);
    let before = (sessions(), host.ledger().len());
    for (at, (path, _)) in all.iter().enumerate() {
        for name in ["127.0.0.1", "localhost", "other.localhost"] {
            browser.go(&format!("http://{name}:{}/", other.port));
            browser.click(&format!("#f{at}"));
            browser.until("the answer", |browser| browser.url().starts_with(&console.origin));
            assert!(!browser.is_shown("nav[aria-label=Rooms]"), "{path}: a page of the session answers");
        }
    }
    assert_eq!(request(&raw, &json!(id))["status"], "pending");
    assert!(host.entries("host.panicked").is_empty() && site.lines().is_empty());
    assert_eq!(before.0, sessions(), "no conversation is new");
    console.go("/inbox");
    browser.until_shown("nav[aria-label=Rooms]");
    console.open(&id);
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn script_of_a_foreign_page_reads_nothing() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let console = Console::sign_in(&host, DESKTOP);
    let browser = &console.browser;
    let other = PageServer::start();
    browser.go(&format!("http://127.0.0.1:{}/", other.port));
    let script = "const [origin, done] = arguments;
        const tries = [];
        for (const mode of ['cors', 'no-cors', 'same-origin'])
            for (const path of ['/inbox', '/live', '/status', '/script.js'])
                tries.push(fetch(origin + path, { mode, credentials: 'include', signal: AbortSignal.timeout(5000) })
                    .then(async answer => mode + path + ' ' + answer.type + ' ' + (await answer.text()).length, () => ''));
        tries.push(fetch(origin + '/status/stop', { method: 'POST', mode: 'no-cors', credentials: 'include',
            headers: { 'content-type': 'text/plain' }, body: 'csrf=x' }).then(() => '', () => ''));
        tries.push(new Promise(settle => {
            const source = new EventSource(origin + '/live', { withCredentials: true });
            source.onopen = () => settle('event stream');
            source.onerror = () => { source.close(); settle(''); };
        }));
        for (const [tag, path] of [['script', '/script.js'], ['img', '/files/cal_00000000000000000000000000'], ['link', '/style.css']])
            tries.push(new Promise(settle => {
                const element = document.createElement(tag);
                element.onload = () => settle(tag); element.onerror = () => settle('');
                if (tag === 'link') { element.rel = 'stylesheet'; element.href = origin + path; } else element.src = origin + path;
                document.body.append(element);
            }));
        Promise.all(tries).then(all => done(all.filter(one => one && !one.endsWith(' opaque 0'))))";
    let read = browser.run_late(script, &[json!(console.origin)]);
    assert_eq!(read, json!([]), "a foreign page got something");
    assert!(host.entries("host.panicked").is_empty());
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn link_of_an_agent_opens_at_the_second_yes_without_a_trace() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let other = PageServer::start();
    other.put("/page", "<h1>Tulips</h1><script>window.reached = !!window.opener</script>");
    let url = format!("http://127.0.0.1:{}/page", other.port);
    let console = Console::sign_in(&host, DESKTOP);
    let browser = &console.browser;
    console.converse();
    console.say(&format!("echo see {url} and javascript:window.__hit=1"));
    console.until_said(&url);
    assert_eq!(browser.run("return [...document.querySelectorAll('#talk a[href]')].map(a => a.href)", &[]), json!([]));
    browser.click("#talk .said.agent .url");
    browser.until_text("#talk", "Open");
    assert!(other.seen().is_empty() && browser.tabs() == 1, "the first click only shows the address");
    browser.keep_picture("link");
    let open = "return [...document.querySelectorAll('#talk a, #talk button, #talk .url')].find(e => e.innerText.includes('Open'))";
    let found = browser.run(open, &[]);
    browser.run("arguments[0].click()", &[found]);
    browser.until("the page", |browser| browser.tabs() == 2 && !other.seen().is_empty());
    let head = other.seen()[0].to_lowercase();
    let (name, _) = name_and_port(&console.origin);
    assert!(head.starts_with("get /page ") && !head.contains(name) && !head.contains("ironclaw"), "{head}");
    assert_eq!(browser.run("return window.__hit ?? null", &[]), Value::Null);
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn other_port_gets_no_cookie_and_other_names_get_no_page() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let console = Console::sign_in(&host, DESKTOP);
    let browser = &console.browser;
    let (name, port) = name_and_port(&console.origin);
    let other = PageServer::start();
    // A service knows no name of this home, and the name is what keeps the cookie from it. Even one that guesses it gets no cookie with
    // what a page of another site loads or sends.
    let inner = format!("http://{name}:{}", other.port);
    other.put(
        "/",
        &format!("<img src=\"{inner}/image\"><form method=post action=\"{inner}/form\"><button>Go</button></form>"),
    );
    for of in ["127.0.0.1", "localhost", "other.localhost"] {
        browser.go(&format!("http://{of}:{}/", other.port));
        browser.until("the image", |_| other.seen().iter().any(|head| head.starts_with("GET /image ")));
        browser.click("button");
        browser.until("the form", |_| other.seen().iter().any(|head| head.starts_with("POST /form ")));
    }
    let sent: Vec<String> = other.seen();
    assert!(sent.len() >= 6, "{sent:?}");
    let is_of_another_site =
        |head: &str| !head.contains(name) || head.to_lowercase().contains("sec-fetch-site: cross-site");
    let has_cookie = |head: &str| head.to_lowercase().contains("ironclaw_console");
    assert!(!sent.iter().any(|head| is_of_another_site(head) && has_cookie(head)), "{sent:#?}");

    // Names that resolve to this address, as a name of an attacker can after a while.
    for of in [
        "127.0.0.1",
        "localhost",
        "other.localhost",
        &format!("{}.evil.localhost", name.trim_end_matches(".localhost")),
    ] {
        for path in ["/", "/inbox", "/sign-in", "/style.css"] {
            browser.go(&format!("http://{of}:{port}{path}"));
            assert!(!browser.has("form") && !browser.has("nav"), "{of}{path}: {}", browser.source());
        }
    }
    let raw = Raw::of(&host);
    let api = raw.get("/v1/status").1["api"]["listen"].clone();
    assert_ne!(api, Value::String(format!("127.0.0.1:{port}")), "the console is not on the port of the API");
}
