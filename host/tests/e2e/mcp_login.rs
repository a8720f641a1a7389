//! Tests of logins at MCP servers: from `ironctl mcp login` to a call with the token, its renewal, and its end.
//!
//! They use the real programs with the scripted model, and the stand-in of `support::issuer`.

use super::mcp::{add, call, host, show};
use crate::support::client::{Raw, code};
use crate::support::hooks::{Receiver, add_place};
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::issuer::{Behaviour, Issuer, SECRET};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

/// The address for the browser in logins without `ironctl`.
const CALLBACK: &str = "http://127.0.0.1:9/callback";

/// Returns a host with the server of a stand-in.
fn host_with(behaviour: Behaviour) -> (TestHost, Issuer) {
    let (issuer, host) = (Issuer::start(behaviour), host());
    add(&host, "s", &["--url", &issuer.server, "--oauth", &issuer.origin]);
    (host, issuer)
}
fn begin(raw: &Raw) -> (u16, Value) {
    raw.ask("POST", "/v1/mcp/s/login", &json!({ "redirect_uri": CALLBACK }).to_string())
}

fn finish(raw: &Raw, address: &str) -> (u16, Value) {
    raw.ask("POST", "/v1/mcp/s/login/finish", &json!({ "address": address }).to_string())
}
fn log_in(host: &TestHost, issuer: &Issuer) {
    let raw = Raw::of(host);
    let (status, begun) = begin(&raw);
    assert_eq!(status, 200, "{begun}");
    let address = issuer.browse(begun["url"].as_str().expect("a page"));
    let (status, finished) = finish(&raw, &address);
    assert_eq!((status, &finished["login"]["state"]), (200, &json!("active")), "{finished}");
}

/// Confirms what the server lists, and grants it.
fn confirm(host: &TestHost) {
    host.ctl(&["mcp", "test", "s"]);
    let digest = show(host, "s")["digest"].as_str().expect("a digest").to_owned();
    host.ctl(&["mcp", "confirm", "s", "--digest", &digest, "--yes"]).ok();
    host.ctl(&["mcp", "grant", "a", "s", "--yes"]).ok();
}

#[test]
fn person_logs_in_with_a_browser_and_the_agent_calls() {
    let (host, issuer) = host_with(Behaviour::default());
    let refused = host.ctl(&["--json", "mcp", "test", "s"]).refused("login");
    assert!(refused.stderr.contains("mcp_login_needed"), "{}", refused.stderr);
    let listed = host.ctl(&["mcp", "list"]).ok();
    assert!(listed.stdout.contains("login needed"), "{}", listed.stdout);
    assert!(listed.stderr.contains("ironctl mcp login s"), "{}", listed.stderr);

    let mut command = host.command("ironctl");
    command.arg("--home").arg(&host.home).args(["mcp", "login", "s"]);
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("ironctl runs");
    let mut lines = BufReader::new(running.stderr.take().expect("piped")).lines();
    let page = lines.by_ref().map(|line| line.expect("UTF-8")).find(|line| line.starts_with("http")).expect("a page");
    let address = issuer.browse(&page);
    // Another program on this machine does not end the wait.
    visit(&address.replace("state=", "state=x"));
    visit("http://127.0.0.1/favicon.ico".replace("127.0.0.1", host_of(&address)).as_str());
    visit(&address);
    let rest: Vec<String> = lines.map(|line| line.expect("UTF-8")).collect();
    let said = running.wait_with_output().expect("ended");
    assert!(said.status.success(), "{rest:?}");
    assert!(String::from_utf8_lossy(&said.stdout).contains("logged in at"), "{said:?}");

    confirm(&host);
    let (said, answer) = call(&host, "t", "/allow send -- use s__count");
    assert_eq!((&said["status"], issuer.acts()), (&json!("done"), 1), "{said} {answer}");
    assert_eq!(host.entries("mcp.logged_in").len(), 1);
    let ledger = serde_json::to_string(&host.ledger()).expect("JSON");
    assert!(!ledger.contains("zinnober") && !ledger.contains("karmin"), "a token is in the ledger");

    host.ctl(&["mcp", "logout", "s"]).ok();
    let (said, answer) = call(&host, "t2", "/allow send -- use s__count");
    assert!(answer.contains("nothing was sent") && answer.contains("ironctl mcp login s"), "{said} {answer}");
    assert_eq!((issuer.acts(), host.entries("mcp.logged_out").len()), (1, 1));
}

/// Returns the host with the port in an address.
fn host_of(address: &str) -> &str {
    address.trim_start_matches("http://").split('/').next().expect("a host")
}

/// Opens an address of this machine as a browser.
fn visit(address: &str) {
    let host = host_of(address);
    let path = address.split_once(host).expect("its host").1;
    let mut stream = TcpStream::connect(host).expect("ironctl listens");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n").expect("written");
    stream.read_to_string(&mut String::new()).expect("an answer");
}

#[test]
fn pasted_address_completes_a_login_once() {
    let (host, issuer) = host_with(Behaviour::default());
    let raw = Raw::of(&host);
    let begun = begin(&raw).1;
    let address = issuer.browse(begun["url"].as_str().expect("a page"));
    for (wrong, refusal) in [
        (address.replace("state=", "state=x"), "mcp_login_address"),
        (address.replace("iss=http", "iss=https"), "mcp_issuer"),
        (address.replace(":9/", ":10/"), "mcp_login_address"),
        ("tulips".to_owned(), "mcp_login_address"),
    ] {
        let answer = finish(&raw, &wrong);
        assert_eq!(code(&answer).1, refusal, "{wrong}: {}", answer.1);
        assert!(!answer.1.to_string().contains("code-"), "{}", answer.1);
    }
    let other = Raw::add_person(&host, "mara", &["--role", "admin"]);
    assert_eq!(code(&finish(&other, &address)).1, "mcp_login_unknown", "a login is of the person who began it");
    assert_eq!(finish(&raw, &address).0, 200, "a wrong address did not end the login");
    assert_eq!(code(&finish(&raw, &address)).1, "mcp_login_unknown", "a code is used once");

    // Through ironctl, with nothing to read from the pasted line but a wrong address.
    let refused = host.ctl_given("http://127.0.0.1:9/callback?code=x\n", &["--json", "mcp", "login", "s", "--paste"]);
    assert!(refused.stderr.contains("mcp_login_address"), "{}", refused.stderr);
}

#[test]
fn late_answer_is_refused_and_a_new_login_is_not() {
    let issuer = Issuer::start(Behaviour::default());
    let mut host = TestHost::with_clock().started();
    add(&host, "s", &["--url", &issuer.server, "--oauth", &issuer.origin]);
    let raw = Raw::of(&host);
    let address = issuer.browse(begin(&raw).1["url"].as_str().expect("a page"));
    host.shift_clock(600_000);
    assert_eq!(code(&finish(&raw, &address)).1, "mcp_login_unknown");
    assert_eq!(host.entries("mcp.logged_in").len(), 0);
    log_in(&host, &issuer);
}

#[test]
fn unsafe_issuer_is_refused() {
    for (behaviour, words) in [
        (Behaviour { plain_challenges: true, ..Behaviour::default() }, "S256"),
        (Behaviour { redirects: true, ..Behaviour::default() }, "redirects"),
    ] {
        let (host, _issuer) = host_with(behaviour);
        let answer = begin(&Raw::of(&host));
        assert_eq!(code(&answer).1, "mcp_oauth", "{}", answer.1);
        assert!(answer.1.to_string().contains(words), "{}", answer.1);
    }
}

#[test]
fn login_of_another_issuer_than_approved_is_refused() {
    let scopes = &["day:read", "day:write"];
    let (host, issuer) = host_with(Behaviour { names_other: true, scopes, ..Behaviour::default() });
    let raw = Raw::of(&host);
    let begun = begin(&raw).1;
    let answer = finish(&raw, &issuer.browse(begun["url"].as_str().expect("a page")));
    assert_eq!(code(&answer).1, "mcp_issuer", "{}", answer.1);

    add(&host, "s", &["--url", &issuer.server, "--oauth", "https://login.example"]);
    assert_eq!(code(&begin(&raw)).1, "mcp_issuer", "the server names another one");
    host.ctl(&["mcp", "add", "s", "--url", &issuer.server, "--yes"]);
    let answer = begin(&raw);
    assert_eq!(code(&answer).1, "mcp_oauth", "people approved none");
    let hint = format!("--oauth {} --scope day:read --scope day:write", issuer.origin);
    assert!(answer.1["error"]["hint"].as_str().is_some_and(|text| text.ends_with(&hint)), "{}", answer.1);

    let words =
        ["--json", "mcp", "add", "r", "--yes", "--url", "https://r.example/mcp", "--oauth", "http://login.example"];
    let refused = host.ctl(&words).refused("encrypted");
    assert!(refused.stderr.contains("mcp_oauth"), "{}", refused.stderr);
    let words = ["--json", "mcp", "add", "r", "--yes", "--url", "https://r.example/mcp", "--oauth", &issuer.origin];
    let refused = host.ctl(&words).refused("https");
    assert!(refused.stderr.contains("mcp_oauth"), "{}", refused.stderr);
}

#[test]
fn hint_has_no_words_of_a_server_that_a_shell_reads() {
    let scopes = &["day:read;touch", "x"];
    let issuer = Issuer::start(Behaviour { scopes, ..Behaviour::default() });
    let host = host();
    host.ctl(&["mcp", "add", "s", "--url", &issuer.server, "--yes"]);
    let answer = begin(&Raw::of(&host));
    assert_eq!(code(&answer).1, "mcp_oauth", "{}", answer.1);
    let hint = answer.1["error"]["hint"].as_str().expect("a hint");
    assert!(hint.contains(&issuer.origin) && !hint.contains("ironctl") && !hint.contains("touch"), "{hint}");
}

#[test]
fn secret_of_a_registration_proves_the_host_at_each_request() {
    for method in ["client_secret_basic", "client_secret_post"] {
        let (host, issuer) =
            host_with(Behaviour { client_method: Some(method), lifetime: Some(2), ..Behaviour::default() });
        log_in(&host, &issuer);
        host.restart();
        let before = issuer.renewals();
        wait_for("a renewal after the start", || issuer.renewals() > before);
        let said = format!("{}{:?}", show(&host, "s"), host.ledger());
        assert!(said.contains("active") && !said.contains(SECRET), "{said}");
        assert_eq!(host.entries("mcp.login_ended").len(), 0, "{method}");
    }
    let (host, _issuer) = host_with(Behaviour { client_method: Some("private_key_jwt"), ..Behaviour::default() });
    assert_eq!(code(&begin(&Raw::of(&host))).1, "mcp_oauth");
}

#[test]
fn named_secret_of_a_client_proves_the_host() {
    for method in ["client_secret_basic", "client_secret_post"] {
        let issuer =
            Issuer::start(Behaviour { client_method: Some(method), lifetime: Some(2), ..Behaviour::default() });
        let host = host();
        let by = ["mcp", "add", "s", "--url", &issuer.server, "--oauth", &issuer.origin, "--client-id", "client"];
        let with = |secret: &str| host.ctl(&[&by[..], &["--client-secret", secret, "--yes", "--json"]].concat());
        let refused = with("secret:client").refused("ironctl secret set client");
        assert!(refused.stderr.contains("secret_unknown"), "{}", refused.stderr);
        assert_eq!(with(SECRET).code, 2, "a value is no name");
        host.ctl_given("wrong-secret\n", &["secret", "set", "client"]).ok();
        with("secret:client").ok();
        let page = host.ctl(&["--json", "inbox", "list", "--type", "change"]).ok().stdout;
        let raw = Raw::of(&host);
        let finished = finish(&raw, &issuer.browse(begin(&raw).1["url"].as_str().expect("a page")));
        assert_eq!(code(&finished).1, "mcp_login", "{method}: {}", finished.1);
        // The host reads the value for each request.
        host.ctl_given(&format!("{SECRET}\n"), &["secret", "rotate", "client"]).ok();
        log_in(&host, &issuer);
        let before = issuer.renewals();
        wait_for("a renewal", || issuer.renewals() > before);
        let kept = host.ctl(&["--json", "secret", "remove", "client", "--yes"]);
        assert!(kept.code == 1 && kept.stderr.contains("MCP server s"), "{}", kept.stderr);
        let shown = show(&host, "s");
        assert_eq!((&shown["login"]["client_secret"], &shown["login"]["state"]), (&json!("client"), &json!("active")));
        let said = format!("{page}{shown}{:?}", host.ledger());
        assert!(!said.contains(SECRET) && !said.contains("wrong-secret"), "{said}");
        assert_eq!(host.entries("mcp.login_ended").len(), 0, "{method}");
        host.ctl(&["mcp", "logout", "s"]).ok();
        assert!(!issuer.has_tokens(), "the issuer revoked them");
    }
}

/// Returns a host with a renewal in progress: the issuer has replaced the tokens, and answers two seconds later.
fn host_in_a_renewal() -> (TestHost, Issuer) {
    let slow = Behaviour { lifetime: Some(2), renewal_takes: Duration::from_secs(2), ..Behaviour::default() };
    let (host, issuer) = host_with(slow);
    log_in(&host, &issuer);
    wait_for("a renewal", || issuer.renewals() == 1);
    (host, issuer)
}

#[test]
fn logout_during_a_renewal_revokes_the_new_tokens() {
    let (host, issuer) = host_in_a_renewal();
    host.ctl(&["mcp", "logout", "s"]).ok();
    assert!(!issuer.has_tokens(), "the issuer revoked them");
    assert_eq!((issuer.revocations(), &show(&host, "s")["login"]["state"]), (1, &json!("needed")));
}

#[test]
fn stop_during_a_renewal_keeps_the_login() {
    let (host, issuer) = host_in_a_renewal();
    host.restart();
    // A refused renewal would be the last one.
    wait_for("two more renewals", || issuer.renewals() >= 3);
    assert_eq!(show(&host, "s")["login"]["state"], "active");
    assert_eq!(host.entries("mcp.login_ended").len(), 0);
}

#[test]
fn token_is_in_no_result_and_in_no_error() {
    let (host, issuer) = host_with(Behaviour::default());
    log_in(&host, &issuer);
    confirm(&host);
    for tool in ["leak", "fail"] {
        let (said, answer) = call(&host, tool, &format!("/allow send -- use s__{tool}"));
        assert!(!format!("{said}{answer}").contains(&issuer.access()), "{said} {answer}");
    }
    let shown = show(&host, "s").to_string();
    assert!(!shown.contains("zinnober") && !shown.contains("karmin"), "{shown}");
}

#[test]
fn token_is_not_in_an_error_in_place_of_a_listing() {
    let (host, issuer) = host_with(Behaviour { lists_nothing: true, ..Behaviour::default() });
    log_in(&host, &issuer);
    let refused = host.ctl(&["--json", "mcp", "test", "s"]).refused("tools/list");
    assert!(refused.stderr.contains("mcp_unreachable"), "{}", refused.stderr);
    let said = format!("{}{}", refused.stderr, show(&host, "s"));
    assert!(!said.contains(&issuer.access()), "{said}");
}

#[test]
fn token_is_renewed_ahead_and_after_a_restart() {
    let (host, issuer) = host_with(Behaviour { lifetime: Some(2), ..Behaviour::default() });
    log_in(&host, &issuer);
    wait_for("a renewal", || issuer.renewals() >= 2);
    host.down();
    let before = issuer.renewals();
    host.up();
    wait_for("a renewal after the start", || issuer.renewals() > before);
    assert_eq!(show(&host, "s")["login"]["state"], "active");
    assert_eq!(host.entries("mcp.login_ended").len(), 0);
}

#[test]
fn refused_renewal_is_one_notice_with_the_command() {
    let (host, issuer) = host_with(Behaviour { refuses_renewals: true, ..Behaviour::default() });
    let place = Receiver::accepting();
    add_place(&host, &place, &[]);
    log_in(&host, &issuer);
    confirm(&host);
    // The server refuses the token, so that the host renews it before its time.
    issuer.end_access();
    host.ctl(&["mcp", "test", "s"]);
    wait_for("the end of the login", || show(&host, "s")["login"]["state"] == "needed");
    call(&host, "t", "/allow send -- use s__count");
    host.ctl(&["mcp", "test", "s"]);
    assert_eq!((issuer.renewals(), issuer.acts(), host.entries("mcp.login_ended").len()), (1, 0, 1));
    wait_for("the notification", || host.entries("notification.received").len() == 1);
    assert_eq!(host.entries("notification.intended")[0]["data"]["about"], "login_ended");
    let told = place.notifications();
    assert!(told.len() == 1 && told[0].contains("MCP server s ") && !told[0].contains("invalid_grant"), "{told:?}");
    for words in [["mcp", "list"].as_slice(), &["status"]] {
        let said = host.ctl(words);
        let said = format!("{}{}", said.stdout, said.stderr);
        let notices: Vec<&str> = said.lines().filter(|line| line.contains("MCP server s")).collect();
        assert_eq!(notices.len(), 1, "{said}");
        assert!(notices[0].contains("invalid_grant") && notices[0].ends_with("ironctl mcp login s"), "{said}");
    }
    let found = host.ctl(&["doctor"]).stdout;
    assert_eq!(found.matches("ironctl mcp login s").count(), 1, "{found}");
    log_in(&host, &issuer);
    call(&host, "t2", "/allow send -- use s__count");
    assert_eq!(issuer.acts(), 1);
}

#[test]
fn call_that_acted_before_a_refusal_is_not_sent_again() {
    let (host, issuer) = host_with(Behaviour { acts_and_refuses: true, ..Behaviour::default() });
    log_in(&host, &issuer);
    confirm(&host);
    let (said, answer) = call(&host, "t", "/allow send -- use s__count");
    assert_eq!(issuer.acts(), 1, "{said}");
    assert!(answer.contains("unknown if the server acted"), "{answer}");
    // The next call has a new token.
    let (said, _) = call(&host, "t2", "/allow send -- use s__leak");
    assert_eq!((&said["status"], issuer.renewals()), (&json!("done"), 1), "{said}");
    assert_eq!(issuer.acts(), 1);
}

#[test]
fn logout_revokes_the_tokens_or_says_that_they_stay() {
    for method in [None, Some("client_secret_basic")] {
        let (host, issuer) = host_with(Behaviour { client_method: method, ..Behaviour::default() });
        log_in(&host, &issuer);
        host.ctl(&["mcp", "logout", "s"]).ok();
        assert_eq!((issuer.has_tokens(), issuer.revocations()), (false, 1));
        // Without a login there is nothing to revoke.
        host.ctl(&["mcp", "logout", "s"]).ok();
        assert_eq!(issuer.revocations(), 1);
    }
    let (host, issuer) = host_with(Behaviour { keeps_tokens: true, ..Behaviour::default() });
    log_in(&host, &issuer);
    let refused = host.ctl(&["--json", "mcp", "logout", "s"]).refused("did not revoke");
    assert!(refused.stderr.contains("mcp_login") && !refused.stderr.contains("karmin"), "{}", refused.stderr);
    assert_eq!(show(&host, "s")["login"]["state"], "needed", "the host has removed its tokens");
    assert_eq!((issuer.revocations(), host.entries("mcp.logged_out").len()), (1, 1));
}

#[test]
fn login_survives_a_rotation_of_the_master_key() {
    let (host, issuer) = host_with(Behaviour::default());
    log_in(&host, &issuer);
    confirm(&host);
    host.down();
    host.ctl(&["key", "rotate", "master", "--yes"]).ok();
    host.up();
    let (said, answer) = call(&host, "t", "/allow send -- use s__count");
    assert_eq!(issuer.acts(), 1, "{said} {answer}");
}

#[test]
fn server_at_another_place_has_no_login() {
    let (host, issuer) = host_with(Behaviour::default());
    log_in(&host, &issuer);
    // The same registration keeps the login, and another place or issuer does not.
    add(&host, "s", &["--url", &issuer.server, "--oauth", &issuer.origin]);
    assert_eq!(show(&host, "s")["login"]["state"], "active");
    add(&host, "s", &["--url", &format!("{}/other", issuer.server), "--oauth", &issuer.origin]);
    assert_eq!(show(&host, "s")["login"]["state"], "needed");
}
