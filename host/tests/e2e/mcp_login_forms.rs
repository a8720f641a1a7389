//! Tests of what issuers of all kinds send: names, documents, tokens, refusals; and of the calls around the end of a token.
//!
//! They use the real programs with the scripted model. Rows share one host: each has a stand-in of `support::issuer` of its own. See
//! `mcp_login` for the steps of a login.

use super::mcp::{add, call, host, show};
use crate::support::client::{Raw, code};
use crate::support::hooks::{Receiver, add_place};
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::issuer::{Behaviour, Issuer, Names, Renewal};
use serde_json::{Value, json};
use std::process::Command;

/// A manifest that makes `peek` a tool that only reads.
const PEEK_READS: &str = "[[tool]]\nname = \"peek\"\nclass = \"read\"\nreach = \"outside\"\neffect = \"looks\"\n";

/// Begins a login, and returns its status and its answer.
fn begin(host: &TestHost, server: &str) -> (u16, Value) {
    let body = json!({ "redirect_uri": "http://127.0.0.1:9/callback" });
    Raw::of(host).ask("POST", &format!("/v1/mcp/{server}/login"), &body.to_string())
}

/// Logs in at a server, and returns the answer of the host to the address of the browser.
fn finish(host: &TestHost, server: &str, issuer: &Issuer) -> (u16, Value) {
    let (status, begun) = begin(host, server);
    assert_eq!(status, 200, "{server}: {begun}");
    let address = issuer.browse(begun["url"].as_str().expect("a page"));
    let body = json!({ "address": address }).to_string();
    Raw::of(host).ask("POST", &format!("/v1/mcp/{server}/login/finish"), &body)
}

fn log_in(host: &TestHost, server: &str, issuer: &Issuer) {
    let (status, finished) = finish(host, server, issuer);
    assert_eq!((status, &finished["login"]["state"]), (200, &json!("active")), "{server}: {finished}");
}

/// Adds a server of a stand-in, and logs in.
fn logged_in(host: &TestHost, server: &str, behaviour: Behaviour) -> Issuer {
    let issuer = Issuer::start(behaviour);
    add(host, server, &["--url", &issuer.server, "--oauth", &issuer.origin]);
    log_in(host, server, &issuer);
    issuer
}

/// Confirms and grants the tools of a server that a person logged in at; `peek` only reads.
fn confirm(host: &TestHost, server: &str) {
    host.ctl(&["mcp", "test", server]);
    let digest = show(host, server)["digest"].as_str().expect("a digest").to_owned();
    let file = host.home.with_file_name("peek.toml");
    std::fs::write(&file, PEEK_READS).expect("written");
    let file = file.to_str().expect("UTF-8");
    host.ctl(&["mcp", "confirm", server, "--digest", &digest, "--manifest", file, "--yes"]).ok();
    host.ctl(&["mcp", "grant", "a", server, "--yes"]).ok();
}

/// Types the command in a hint as a shell reads it, with `--yes`, and returns what it prints for scripts.
fn type_hint(host: &TestHost, answer: &Value) -> Value {
    let hint = answer["error"]["hint"].as_str().expect("a hint");
    let (_, command) = hint.split_once("ironctl ").unwrap_or_else(|| panic!("no command: {hint}"));
    let split = Command::new("sh").arg("-c").arg(format!("printf '%s\\n' {command}")).output().expect("sh runs");
    let words = String::from_utf8(split.stdout).expect("UTF-8");
    let words: Vec<&str> = words.lines().collect();
    let (verbs, rest) = words.split_at(3);
    host.ctl(&[&["--json"], verbs, &["--yes"], rest].concat()).ok().json()
}

fn with_slash(origin: &str) -> String {
    format!("{origin}/")
}

fn in_capitals(origin: &str) -> String {
    origin.replace("http://", "HTTP://")
}

fn with_path(origin: &str) -> String {
    format!("{origin}/tenant")
}

fn at_another_port(_: &str) -> String {
    "http://127.0.0.1:1".to_owned()
}

fn with_tls(origin: &str) -> String {
    origin.replace("http://", "https://")
}

#[test]
fn issuer_is_one_in_each_form_of_its_name() {
    let host = host();
    let plain = Names::default();
    for (row, (typed, names, refused)) in [
        (with_slash as fn(&str) -> String, plain, None),
        (str::to_owned, Names { server: with_slash, ..plain }, None),
        (str::to_owned, Names { document: with_slash, ..plain }, None),
        (str::to_owned, Names { browser: with_slash, ..plain }, None),
        (with_slash, Names { server: in_capitals, document: with_slash, ..plain }, None),
        (in_capitals, Names { server: with_slash, document: in_capitals, browser: in_capitals }, None),
        (str::to_owned, Names { server: with_path, ..plain }, Some("mcp_issuer")),
        (str::to_owned, Names { server: with_tls, ..plain }, Some("mcp_issuer")),
        (str::to_owned, Names { server: at_another_port, ..plain }, Some("mcp_issuer")),
        (str::to_owned, Names { document: with_path, ..plain }, Some("mcp_oauth")),
        (str::to_owned, Names { document: with_tls, ..plain }, Some("mcp_oauth")),
        (str::to_owned, Names { document: at_another_port, ..plain }, Some("mcp_oauth")),
        (str::to_owned, Names { browser: with_path, ..plain }, Some("mcp_issuer")),
        (str::to_owned, Names { browser: at_another_port, ..plain }, Some("mcp_issuer")),
    ]
    .into_iter()
    .enumerate()
    {
        let issuer = Issuer::start(Behaviour { names, ..Behaviour::default() });
        let server = format!("s{row}");
        add(&host, &server, &["--url", &issuer.server, "--oauth", &typed(&issuer.origin)]);
        assert_eq!(show(&host, &server)["login"]["issuer"], issuer.origin, "one form of each name");
        let Some(wanted) = refused else {
            log_in(&host, &server, &issuer);
            continue;
        };
        let begun = begin(&host, &server);
        let answer = if begun.0 == 200 { finish(&host, &server, &issuer) } else { begun };
        assert_eq!(code(&answer).1, wanted, "{server}: {}", answer.1);
    }
}

#[test]
fn absent_field_of_a_document_has_any_usual_form() {
    let host = host();
    for (row, absent) in [Value::Null, json!(""), json!([])].into_iter().enumerate() {
        let fields = json!({
            "registration_endpoint": absent, "revocation_endpoint": absent,
            "token_endpoint_auth_methods_supported": absent, "scopes_supported": absent,
        });
        let issuer = Issuer::start(Behaviour { document: Some(fields), ..Behaviour::default() });
        let server = format!("s{row}");
        let place = ["--url", &issuer.server, "--oauth", &issuer.origin];
        add(&host, &server, &place);
        let answer = begin(&host, &server);
        assert_eq!(code(&answer).1, "mcp_oauth", "{}", answer.1);
        assert!(answer.1.to_string().contains("--client-id"), "it registers no clients: {}", answer.1);
        add(&host, &server, &[&place[..], &["--client-id", "client"]].concat());
        log_in(&host, &server, &issuer);
        // Without an address for revocations the host asks for none.
        host.ctl(&["mcp", "logout", &server]).ok();
        assert_eq!(issuer.revocations(), 0);
    }
}

#[test]
fn page_in_the_place_of_a_document_is_passed_over() {
    let host = host();
    logged_in(&host, "s", Behaviour { has_pages: true, ..Behaviour::default() });
    assert_eq!(show(&host, "s")["login"]["state"], "active");
}

#[test]
fn issuer_without_s256_is_accepted_on_its_page_alone() {
    let host = host();
    for (row, methods) in [json!(["plain"]), json!([]), Value::Null, json!("")].into_iter().enumerate() {
        let fields = json!({ "code_challenge_methods_supported": methods });
        let issuer = Issuer::start(Behaviour { document: Some(fields), ..Behaviour::default() });
        let server = format!("s{row}");
        add(&host, &server, &["--url", &issuer.server, "--oauth", &issuer.origin]);
        let answer = begin(&host, &server);
        assert_eq!(code(&answer).1, "mcp_oauth", "{}", answer.1);
        assert!(answer.1["error"]["message"].as_str().is_some_and(|text| text.contains("S256")), "{}", answer.1);
        let added = type_hint(&host, &answer.1);
        assert!(added["change"].is_string(), "the acceptance is a change with a page: {added}");
        // The stand-in refuses a login without S256.
        log_in(&host, &server, &issuer);
        let login = &show(&host, &server)["login"];
        let shown = (&login["issuer"], &login["accepts_unannounced_s256"]);
        assert_eq!(shown, (&json!(issuer.origin), &json!(true)), "{login}");
    }
}

#[test]
fn hint_of_a_login_is_a_command_that_works() {
    let host = host();
    host.ctl_given("value-of-key\n", &["secret", "set", "key"]).ok();
    for (row, names) in [Names::default(), Names { server: with_slash, ..Names::default() }].into_iter().enumerate() {
        let issuer = Issuer::start(Behaviour { names, scopes: &["day:read", "day"], ..Behaviour::default() });
        let server = format!("s{row}");
        let header = ["--header", "X-Team=Team secret:key", "--tool", "peek"];
        host.ctl(&[&["mcp", "add", &server, "--yes", "--url", &issuer.server], &header[..]].concat());
        let answer = begin(&host, &server);
        type_hint(&host, &answer.1);
        let shown = show(&host, &server);
        assert_eq!(
            (&shown["login"]["scopes"], &shown["headers"][0]["scheme"]),
            (&json!(["day", "day:read"]), &json!("Team"))
        );
        log_in(&host, &server, &issuer);
    }
}

#[test]
fn dead_login_ends_once_whatever_the_issuer_answers() {
    const JSON: &str = "application/json";
    let host = host();
    let place = Receiver::accepting();
    add_place(&host, &place, &[]);
    let rows = [
        (200, JSON, r#"{"error":"invalid_grant"}"#, "invalid_grant"),
        (200, JSON, r#"{"ok":false,"error":{"message":"zinnober"}}"#, "an unknown error"),
        (200, JSON, r#"{"message":"zinnober"}"#, "without a token"),
        (
            200,
            "application/x-www-form-urlencoded",
            "error=bad_refresh_token&error_description=zinnober",
            "an unknown error",
        ),
        (400, JSON, r#"{"message":"zinnober"}"#, "HTTP status 400"),
        (400, "text/html", "<html>zinnober</html>", "HTTP status 400"),
        (401, JSON, r#"{"error":"invalid_client"}"#, "invalid_client"),
        (403, JSON, r#"{"message":"zinnober"}"#, "HTTP status 403"),
        (404, "text/html", "<html>zinnober</html>", "HTTP status 404"),
    ];
    for (row, (status, media_type, body, reason)) in rows.into_iter().enumerate() {
        let server = format!("s{row}");
        let renewal = Some(Renewal { status, media_type, body });
        let issuer = logged_in(&host, &server, Behaviour { renewal, ..Behaviour::default() });
        confirm(&host, &server);
        issuer.end_access();
        for _ in 0..2 {
            let refused = host.ctl(&["--json", "mcp", "test", &server]).refused("ironctl mcp login");
            assert!(refused.stderr.contains("mcp_login_needed"), "{server}: {}", refused.stderr);
        }
        let (said, answer) = call(&host, &server, &format!("/allow send -- use {server}__count"));
        assert!(answer.contains("nothing was sent"), "{server}: {said} {answer}");
        let login = &show(&host, &server)["login"];
        assert_eq!((&login["state"], issuer.renewals(), issuer.acts()), (&json!("needed"), 1, 0), "{server}: {login}");
        let why = login["reason"].as_str().unwrap_or_default();
        assert!(why.contains(reason) && !why.contains("zinnober"), "{server}: {why}");
    }
    assert_eq!(host.entries("mcp.login_ended").len(), rows.len());
    wait_for("a notice of each", || place.notifications().len() == rows.len());
}

#[test]
fn issuer_out_of_order_keeps_the_login_and_has_a_pause() {
    let host = host();
    for (row, (status, body)) in [(503, "{}"), (429, "{}"), (200, "<html>busy</html>")].into_iter().enumerate() {
        let server = format!("s{row}");
        let renewal = Some(Renewal { status, media_type: "text/html", body });
        let issuer = logged_in(&host, &server, Behaviour { renewal, ..Behaviour::default() });
        confirm(&host, &server);
        issuer.end_access();
        for _ in 0..3 {
            host.ctl(&["--json", "mcp", "test", &server]).refused("ironctl mcp login");
        }
        let login = &show(&host, &server)["login"];
        assert_eq!((&login["state"], issuer.renewals()), (&json!("active"), 1), "{server}: {login}");
        assert!(login["reason"].is_string(), "{server}: {login}");
        let shown = host.ctl(&["mcp", "show", &server]).ok().stdout;
        assert!(shown.contains("its last renewal failed"), "{shown}");
    }
    assert_eq!(host.entries("mcp.login_ended").len(), 0);
}

#[test]
fn tokens_of_any_usual_form_are_renewed_ahead() {
    let host = host();
    let short = Behaviour { lifetime: Some(2), ..Behaviour::default() };
    let tokens = |fields: Value| Behaviour { tokens: Some(fields), ..short.clone() };
    let rows = [
        tokens(json!({ "expires_in": "2" })),
        tokens(json!({ "expires_in": 2.5, "token_type": null })),
        tokens(json!({ "token_type": "" })),
        tokens(json!({ "error": null, "scope": "" })),
        Behaviour { answers_forms: true, ..short.clone() },
        Behaviour { makes_jwts: true, ..tokens(json!({ "expires_in": null })) },
        Behaviour { makes_jwts: true, ..tokens(json!({ "expires_in": "" })) },
    ];
    let issuers: Vec<Issuer> =
        rows.into_iter().enumerate().map(|(row, behaviour)| logged_in(&host, &format!("s{row}"), behaviour)).collect();
    for (row, issuer) in issuers.iter().enumerate() {
        wait_for(&format!("a renewal of row {row}"), || issuer.renewals() >= 2);
        assert_eq!(show(&host, &format!("s{row}"))["login"]["state"], "active", "row {row}");
    }
    let absent = logged_in(&host, "absent", Behaviour { tokens: Some(json!({ "expires_in": null })), ..short });
    assert_eq!((&show(&host, "absent")["login"]["expires_at"], absent.renewals()), (&Value::Null, 0));
    assert_eq!(host.entries("mcp.login_ended").len(), 0);
}

#[test]
fn ended_token_loses_no_reading_call_and_repeats_no_other() {
    let host = host();
    // No life is stated, so the server is the first to say that the token has ended.
    let unstated = Behaviour { tokens: Some(json!({ "expires_in": null })), ..Behaviour::default() };
    let issuer = logged_in(&host, "s", unstated);
    confirm(&host, "s");
    let (said, answer) = call(&host, "t0", "use s__peek");
    assert_eq!((&said["status"], issuer.reads()), (&json!("done"), 1), "{said} {answer}");
    issuer.end_access();
    let (said, answer) = call(&host, "t1", "use s__peek");
    assert_eq!((&said["status"], issuer.reads(), issuer.renewals()), (&json!("done"), 2, 1), "{said} {answer}");
    assert!(answer.contains("seen"), "{answer}");

    issuer.end_access();
    let (said, answer) = call(&host, "t2", "/allow send -- use s__count");
    assert_eq!((&said["status"], issuer.acts()), (&json!("unknown"), 0), "{said} {answer}");
    assert!(answer.contains("log in again") && answer.contains("ironctl mcp login s"), "{answer}");
    let (said, answer) = call(&host, "t3", "/allow send -- use s__count");
    assert_eq!((&said["status"], issuer.acts(), issuer.renewals()), (&json!("done"), 1, 2), "{said} {answer}");

    // The listing asks with the ended token too.
    issuer.end_access();
    host.ctl(&["mcp", "test", "s"]).ok();
    assert_eq!(issuer.renewals(), 3);
}

#[test]
fn reading_call_is_sent_twice_at_most() {
    let host = host();
    let refused = Some(Renewal { status: 400, media_type: "application/json", body: r#"{"error":"invalid_grant"}"# });
    let issuer = logged_in(&host, "s", Behaviour { renewal: refused, ..Behaviour::default() });
    confirm(&host, "s");
    call(&host, "t0", "use s__peek");
    issuer.end_access();
    let (said, answer) = call(&host, "t1", "use s__peek");
    assert_eq!((&said["status"], issuer.reads(), issuer.renewals()), (&json!("unknown"), 1, 1), "{said} {answer}");
    assert!(answer.contains("log in again"), "{answer}");
    let (_, answer) = call(&host, "t2", "use s__peek");
    assert!(answer.contains("nothing was sent") && answer.contains("ironctl mcp login s"), "{answer}");
}
