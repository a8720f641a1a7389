//! Attacks on the console over HTTP, through the real daemon: foreign pages, stolen and guessed secrets, floods, and other roles.
//!
//! See `console::browser` for those that need a browser.

use crate::e2e::requests::{host_with, inbox, post};
use crate::support::client::{Raw, check_refused};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::plain_browser::{Page, PlainBrowser, new_code};
use crate::support::record;
use crate::support::tls_site;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Each path to which a form of a page posts.
const FORMS: [&str; 9] = [
    "/sign-out",
    "/confirm",
    "/waiting/req_00000000000000000000000000/decision",
    "/conversations",
    "/conversations/ses_00000000000000000000000000/messages",
    "/conversations/ses_00000000000000000000000000/cancel",
    "/status/stop",
    "/status/resume",
    "/sign-in",
];

/// Each page that shows something of a person.
const PAGES: [&str; 6] =
    ["/inbox", "/conversations", "/status", "/why", "/live", "/files/call_00000000000000000000000000"];

fn host() -> TestHost {
    TestHost::own(Build::Plain).started_with("a")
}

fn text(code: &Value) -> &str {
    code["code"].as_str().expect("a code")
}

#[test]
fn code_is_used_once_and_a_look_uses_nothing_up() {
    let host = host();
    let code = new_code(&host);
    let mut browser = PlainBrowser::at(&code);
    assert_eq!(browser.get("/").status, 200);
    assert_eq!(browser.get(&format!("/sign-in?code={}", text(&code))).status, 405, "a GET consumes nothing");
    for wrong in ["", "0000-0000-0000-0000", &text(&code)[1..], "ict_", &"A".repeat(60_000)] {
        let page = browser.post("/sign-in", &[("code", wrong)]);
        assert_eq!((page.status, page.code(), page.header("set-cookie")), (401, Some("code_unknown"), None), "{wrong}");
    }
    // The local form of `ironctl console` gets the page that names the person, and no cookie.
    let body = format!("code={}", text(&code));
    let headers =
        [("origin", "null"), ("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "cross-site")];
    for _ in 0..2 {
        let page = browser.ask("POST", "/sign-in", &headers, body.as_bytes());
        assert_eq!((page.status, page.header("set-cookie")), (200, None), "{page:?}");
        assert!(page.body.contains("id=\"continue\"") && page.body.contains("<strong id=\"person\">owner</strong>"));
    }
    let page = browser.post("/sign-in", &[("code", text(&code))]);
    assert_eq!(page.status, 303);
    browser.keep_cookie(&page);
    assert_eq!(browser.get("/inbox").status, 200);
    assert_eq!(browser.post("/sign-in", &[("code", text(&code))]).code(), Some("code_unknown"), "used");
}

#[test]
fn code_of_another_person_does_not_replace_a_session() {
    let host = host();
    let mara = Raw::add_person(&host, "mara", &[]);
    let browser = PlainBrowser::sign_in(&host);
    let code = mara.ask("POST", "/v1/console/codes", "{}").1;
    let page = browser.post("/sign-in", &[("code", text(&code))]);
    assert_eq!((page.status, page.code()), (409, Some("session_of_another")));
    let confirm = browser.submit("/confirm", &[("code", text(&code)), ("back", "/inbox")]);
    assert_eq!((confirm.status, confirm.code()), (409, Some("session_of_another")));
    assert!(browser.get("/inbox").body.contains("<span class=\"who\">owner</span>"));
}

#[test]
fn cookie_opens_no_route_and_a_token_opens_no_page() {
    let host = host();
    let (raw, browser) = (Raw::of(&host), PlainBrowser::sign_in(&host));
    let stolen = browser.cookie.split_once('=').expect("a cookie").1.to_owned();
    check_refused(&raw.clone().with_token(&stolen).get("/v1/whoami"), 401, "token_invalid");
    let with_token = PlainBrowser { cookie: format!("ironclaw_console={}", raw.token), ..browser.clone() };
    assert_eq!((with_token.get("/inbox").status, with_token.get("/inbox").code()), (401, Some("session_missing")));
    let bearer = format!("Bearer {}", raw.token);
    let without = PlainBrowser { cookie: String::new(), ..browser.clone() };
    assert_eq!(without.ask("GET", "/inbox", &[("authorization", &bearer)], b"").status, 401);
    let listed = raw.get("/v1/tokens").1;
    let session =
        listed.as_array().expect("a list").iter().find(|token| token["face"] == "console").expect("a session").clone();
    let path = format!("/v1/tokens/{}/rotate", session["id"].as_str().expect("an id"));
    check_refused(&raw.ask("POST", &path, ""), 403, "forbidden");
}

#[test]
fn each_form_needs_its_token_and_its_own_origin() {
    let host = host();
    let (browser, other) = (PlainBrowser::sign_in(&host), PlainBrowser::sign_in(&host));
    let of_other = other.get("/why").token();
    let form = ("content-type", "application/x-www-form-urlencoded");
    for path in FORMS.into_iter().filter(|path| *path != "/sign-in") {
        for token in ["", "0", of_other.as_str()] {
            let page = browser.post(path, &[("csrf", token), ("typed", "resume")]);
            assert_eq!((page.status, page.code()), (403, Some("origin_foreign")), "{path} {token}");
        }
        assert_eq!(browser.post(path, &[]).status, 403, "{path}");
    }
    let own = browser.get("/why").token();
    let body = format!("csrf={own}&typed=resume");
    for path in FORMS {
        for origin in ["http://evil.example", "null", "http://127.0.0.1:1", "https://x.localhost"] {
            if path == "/sign-in" && origin == "null" {
                continue;
            }
            let page = browser.ask("POST", path, &[("origin", origin), form], body.as_bytes());
            assert_eq!((page.status, page.code()), (403, Some("origin_foreign")), "{path} {origin}");
        }
        let headers = [("origin", browser.origin.as_str()), ("sec-fetch-site", "cross-site"), form];
        assert_eq!(browser.ask("POST", path, &headers, body.as_bytes()).status, 403, "{path}");
    }
    assert!(host.entries("host.panicked").is_empty() && browser.get("/inbox").status == 200, "nothing happened");
}

#[test]
fn page_under_another_name_or_in_a_frame_is_refused() {
    let host = host();
    let browser = PlainBrowser::sign_in(&host);
    let port = browser.origin.rsplit(':').next().expect("a port").to_owned();
    for name in [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
    ] {
        let page = browser.ask("GET", "/inbox", &[("host", &name)], b"");
        assert_eq!((page.status, page.code()), (403, Some("host_foreign")), "{name}");
    }
    for dest in ["iframe", "frame", "image", "script", "object"] {
        let headers = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", dest)];
        assert_eq!(browser.ask("GET", "/inbox", &headers, b"").status, 403, "{dest}");
    }
    for path in ["/", "/inbox", "/style.css", "/script.js", "/nope", "/live"] {
        let page = browser.ask("HEAD", path, &[], b"");
        let policy = page.header("content-security-policy").expect("a policy");
        for word in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"] {
            assert!(policy.contains(word), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("data:"), "{policy}");
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(page.header("cross-origin-resource-policy"), Some("same-origin"), "{path}");
        assert_eq!(page.header("access-control-allow-origin"), None, "{path}");
    }
    assert!(host.entries("api.refused").iter().any(|entry| entry["data"]["via"] == "console"));
}

#[test]
fn page_without_a_session_shows_nothing_of_a_person() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    post(&raw, "tulips", &site.url("/notes"));
    let browser = PlainBrowser::at(&new_code(&host));
    for path in PAGES {
        let page = browser.get(path);
        assert_eq!((page.status, page.code()), (401, Some("session_missing")), "{path}");
        assert!(!page.body.contains("owner") && !page.body.contains("tulips"), "{path}");
    }
}

#[test]
fn member_reaches_nothing_of_an_owner() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    post(&raw, "tulips", &site.url("/notes"));
    let entry = inbox(&raw)[0].clone();
    let mara = Raw::add_person(&host, "mara", &[]);
    let browser = PlainBrowser::sign_in_with(&mara.ask("POST", "/v1/console/codes", "{}").1);
    let id = entry["id"].as_str().expect("an id");
    assert!(!browser.get("/inbox").body.contains(id));
    assert_eq!(browser.get(&format!("/waiting/{id}")).code(), Some("request_unknown"));
    let shown = entry["shown_digest"].as_str().expect("a digest");
    let fields = [("decision", "approve"), ("typed", "approve"), ("shown", shown)];
    assert_eq!(browser.submit(&format!("/waiting/{id}/decision"), &fields).code(), Some("request_unknown"));
    let session = entry["origin"]["session"].as_str().expect("a session");
    for path in [format!("/conversations/{session}"), format!("/conversations/{session}/live")] {
        assert_eq!(browser.get(&path).code(), Some("session_unknown"), "{path}");
    }
    for (path, typed) in [("/status/stop", ""), ("/status/resume", "resume")] {
        assert_eq!(browser.submit(path, &[("typed", typed)]).code(), Some("role_too_low"), "{path}");
    }
    let status = browser.get("/status?audit=1");
    assert!(
        status.status == 200 && !status.body.contains("status-audit") && !status.body.contains("id=\"stop\""),
        "{status:?}"
    );
    check_refused(
        &mara.ask("POST", "/v1/console/codes", &json!({ "new_origin": true }).to_string()),
        403,
        "role_too_low",
    );
    assert!(site.lines().is_empty() && host.entries("host.panicked").is_empty());
}

#[test]
fn new_origin_ends_each_session_and_the_old_name() {
    let host = host();
    let browser = PlainBrowser::sign_in(&host);
    let code = host.ctl(&["--json", "console", "--print", "--new-origin"]).ok().json();
    let moved = PlainBrowser::at(&code);
    assert_ne!(moved.origin, browser.origin);
    assert_eq!(browser.get("/inbox").code(), Some("host_foreign"));
    let with_cookie = PlainBrowser { cookie: browser.cookie.clone(), ..moved.clone() };
    assert_eq!(with_cookie.get("/inbox").code(), Some("session_missing"));
    assert_eq!(PlainBrowser::sign_in_with(&code).get("/inbox").status, 200);
}

#[test]
fn session_ends_with_sign_out_expiry_or_its_person() {
    let host = host();
    let out = PlainBrowser::sign_in(&host);
    let gone = out.submit("/sign-out", &[]);
    assert!(gone.status == 200 && gone.header("set-cookie").is_some_and(|set| set.contains("Max-Age=0")), "{gone:?}");
    assert_eq!(out.get("/inbox").code(), Some("session_missing"));
    let mara = Raw::add_person(&host, "mara", &[]);
    let of_mara = PlainBrowser::sign_in_with(&mara.ask("POST", "/v1/console/codes", "{}").1);
    let mut stream = of_mara.begin("GET", "/live", &[], b"");
    host.ctl(&["person", "remove", "mara", "--yes"]).ok();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("the stream ends with its session");
    assert_eq!(of_mara.get("/inbox").code(), Some("session_missing"));
    let idle = PlainBrowser::sign_in(&host);
    host.down();
    let expire = "UPDATE tokens SET expires_at = 1 WHERE face = 'console' AND state = 'live'";
    record::open_to_change(&host.home).execute_batch(expire).expect("changed");
    host.ctl(&["up", "--detach"]).ok();
    // The console answers again with the next code; its address has not changed.
    let code = new_code(&host);
    assert_eq!(PlainBrowser::at(&code).origin, idle.origin);
    assert_eq!(idle.get("/inbox").code(), Some("session_missing"));
}

#[test]
fn session_ends_with_its_token_and_shows_no_more_than_its_role() {
    let host = host();
    let admin = Raw::add_person(&host, "adam", &["--role", "admin"]);
    let code = || admin.ask("POST", "/v1/console/codes", "{}").1;
    let browser = PlainBrowser::sign_in_with(&code());
    let left = code();
    // A stream of an earlier role ends.
    let mut stream = browser.begin("GET", "/live?page=1", &[], b"");
    host.ctl(&["person", "set", "adam", "--role", "member", "--yes"]).ok();
    host.submit("a", "persona", json!({ "instructions": "Be brief." })).ok();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("the stream ends");
    assert!(!String::from_utf8_lossy(&rest).contains("chg_"), "nothing that the new role does not see");
    assert_eq!(browser.get("/inbox").status, 200);
    let tokens = admin.get("/v1/tokens").1;
    let own =
        tokens.as_array().expect("a list").iter().find(|token| token["face"] == "program").expect("a token").clone();
    host.ctl(&["token", "remove", own["id"].as_str().expect("an id")]).ok();
    assert_eq!(browser.get("/inbox").code(), Some("session_missing"));
    assert!(browser.get("/inbox").header("set-cookie").is_some_and(|set| set.contains("Max-Age=0")));
    assert_eq!(PlainBrowser::at(&left).post("/sign-in", &[("code", text(&left))]).code(), Some("code_unknown"));
}

#[test]
fn wrong_codes_are_limited_and_a_right_one_is_not() {
    let host = host();
    let code = new_code(&host);
    let browser = PlainBrowser::at(&code);
    let statuses: Vec<u16> = (0..200).map(|_| browser.post("/sign-in", &[("code", "0000")]).status).collect();
    assert!(statuses.contains(&429) && statuses.iter().all(|status| [401, 429].contains(status)), "{statuses:?}");
    let ended = PlainBrowser { cookie: format!("ironclaw_console=ict_{}", "0".repeat(64)), ..browser };
    assert_eq!(ended.post("/sign-in", &[("code", text(&code))]).status, 303, "nor with an old cookie");
}

#[test]
fn flood_of_streams_leaves_pages_and_other_people_served() {
    let host = host();
    let mara = Raw::add_person(&host, "mara", &[]);
    let of_mara = PlainBrowser::sign_in_with(&mara.ask("POST", "/v1/console/codes", "{}").1);
    let browser = PlainBrowser::sign_in(&host);
    let streams: Vec<TcpStream> = (0..500).map(|_| of_mara.begin("GET", "/live", &[], b"")).collect();
    wait_for("pages beside the streams", || browser.get("/inbox").status == 200);
    drop(streams);
    wait_for("the streams to end", || {
        let mut stream = of_mara.begin("GET", "/live", &[], b"");
        let mut begin = [0; 15];
        stream.read_exact(&mut begin).is_ok() && begin.starts_with(b"HTTP/1.1 200")
    });
}

#[test]
fn other_service_on_loopback_gets_no_cookie() {
    let host = host();
    let browser = PlainBrowser::sign_in(&host);
    // A cookie without `Domain` belongs to one host name, and the name of the console is random.
    let name = browser.origin.split_once("://").expect("an origin").1.split(':').next().expect("a name").to_owned();
    assert!(name.ends_with(".localhost") && name.len() > 30, "{name}");
    let service = TcpListener::bind("127.0.0.1:0").expect("a port");
    let page = browser.ask(
        "GET",
        "/inbox",
        &[("origin", &format!("http://{}", service.local_addr().expect("an address")))],
        b"",
    );
    assert_eq!(page.header("access-control-allow-origin"), None);
}

#[test]
fn bad_requests_get_a_page_with_a_way_on() {
    let host = host();
    let browser = PlainBrowser::sign_in(&host);
    let own = browser.origin.clone();
    let ask = |method: &str, path: &str, kind: &str, body: &[u8]| -> Page {
        browser.ask(method, path, &[("origin", own.as_str()), ("content-type", kind)], body)
    };
    let form = "application/x-www-form-urlencoded";
    for (page, status) in [
        (ask("POST", "/conversations", "text/plain", b"agent=a"), 400),
        (ask("POST", "/conversations", "multipart/form-data", b"agent=a"), 400),
        (ask("POST", "/conversations", "multipart/form-data; boundary=x", b"--y"), 400),
        (ask("POST", "/conversations", form, b"agent=%FF"), 400),
        (ask("POST", "/conversations", form, b"agent=a&agent=b"), 400),
        (ask("POST", "/conversations", form, &vec![b'x'; 2 << 20]), 413),
        (ask("PUT", "/conversations", form, b""), 405),
        (ask("DELETE", "/inbox", form, b""), 405),
        (ask("POST", "/inbox", form, b""), 405),
        (browser.get("/inbox?page=x"), 400),
        (browser.get("/waiting/req_x"), 404),
        (browser.get("/conversations/x"), 404),
        (browser.get("/conversations/%FF"), 400),
        (browser.get("/files/x"), 404),
        (browser.get(&format!("/why?id={}", "x".repeat(5000))), 404),
    ] {
        assert_eq!(page.status, status, "{page:?}");
        assert!(page.code().is_some() && page.body.contains("href=\"/inbox\""), "{page:?}");
    }
    let mut cut = browser.begin("POST", "/conversations", &[("origin", own.as_str()), ("content-length", "100")], b"");
    cut.write_all(b"agent").expect("sent");
    drop(cut);
    assert_eq!(browser.get("/inbox").status, 200);
}

#[test]
fn certificate_of_the_settings_gives_tls_and_a_secure_cookie() {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
    let host = TestHost::own(Build::Plain);
    let pem = host.home.join("localhost.pem");
    std::fs::write(&pem, tls_site::LOCALHOST).expect("written");
    let origin = format!("https://localhost:{port}");
    let console =
        |listen: &str, key: &str| format!("[console]\nlisten = \"{listen}:{port}\"\norigin = \"{origin}\"\n{key}");
    let pair = format!("certificate = {pem:?}\nkey = {pem:?}\n");
    for (listen, key) in
        [("0.0.0.0", ""), ("127.0.0.1", "certificate = \"/nowhere.pem\"\n"), ("0.0.0.0", "key = \"/nowhere.pem\"\n")]
    {
        host.configure(&console(listen, key));
        host.ctl(&["up", "--detach"]).refused("console");
    }
    host.configure(&console("127.0.0.1", "certificate = \"/nowhere.pem\"\nkey = \"/nowhere.pem\"\n"));
    host.ctl(&["up", "--detach"]).refused("nowhere.pem");
    host.configure(&console("127.0.0.1", &pair));
    host.up();
    let (code, browser) = (new_code(&host), PlainBrowser::at(&new_code(&host)));
    assert_eq!(browser.origin, origin);
    let body = format!("code={}", text(&code));
    let request = format!(
        "POST /sign-in HTTP/1.1\r\nhost: localhost:{port}\r\norigin: {origin}\r\nconnection: close\r\ncontent-type: \
         application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = browser.ask_encrypted(port, &request);
    assert!(
        answer.starts_with("HTTP/1.1 303")
            && answer.contains("__Host-ironclaw_console=ict_")
            && answer.contains("; Secure"),
        "{answer}"
    );
    let plain = browser.begin("GET", "/", &[("host", &format!("localhost:{port}"))], b"");
    let mut rest = Vec::new();
    let _ = { plain }.read_to_end(&mut rest);
    assert!(!rest.starts_with(b"HTTP/1.1 200"), "plain http is not served");
}
