//! People and tokens at the API: each request without a right is refused with a code, and the ledger records the refusal.
//!
//! The tests use the socket or the port of the real daemon. See `ops::keys`.
#![allow(unsafe_code)]

use crate::support::client::{Raw, check_refused};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::jail_fixture::{HostUser, ORDINARY_UID, host_users};
use serde_json::{Value, json};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Starts a host of the own user, with a loopback port if `open`.
fn start_host(open: bool) -> TestHost {
    let host = TestHost::own(Build::Plain);
    if open {
        host.configure("[api]\nlisten = \"127.0.0.1:0\"\n");
    }
    host.up();
    host
}

/// Adds a person with this role and returns a token for them.
fn person(host: &TestHost, name: &str, role: &str) -> String {
    host.ctl(&["person", "add", name, "--role", role]).ok();
    token(host, name, &[])["text"].as_str().expect("a token").to_owned()
}

fn token(host: &TestHost, person: &str, more: &[&str]) -> Value {
    let arguments = [&["--json", "token", "add", "--person", person], more].concat();
    host.ctl(&arguments).ok().json()
}

/// Returns the ledger entries about requests that were refused with this code.
fn refusals(host: &TestHost, code: &str) -> Vec<Value> {
    host.entries("api.refused").into_iter().filter(|line| line["data"]["code"] == code).collect()
}

/// Returns the number of requests that were refused with this code; one entry can count several.
fn refusal_count(host: &TestHost, code: &str) -> u64 {
    refusals(host, code).iter().map(|line| line["data"]["count"].as_u64().expect("a count")).sum()
}

#[test]
fn invalid_token_is_refused_and_never_stored() {
    let host = start_host(false);
    let api = Raw::of(&host);
    let owner = api.token.clone();
    let bob = person(&host, "Bob", "member");
    let id = token(&host, "Bob", &["--name", "old"])["token"]["id"].as_str().expect("an id").to_owned();
    let revoked = token(&host, "Bob", &[])["text"].as_str().expect("a token").to_owned();
    let listed = host.ctl(&["--json", "token", "list"]).ok().json();
    let last = listed.as_array().expect("a list").last().expect("a token")["id"].as_str().expect("an id").to_owned();
    assert_ne!(last, id);
    host.ctl(&["token", "remove", &last]).ok();
    let expiring = token(&host, "Bob", &["--expires", "1s"])["text"].as_str().expect("a token").to_owned();
    wait_for("the token to expire", || !host.entries("token.expired").is_empty());

    let with = |token: &str| api.get_with(&[("authorization", &format!("Bearer {token}"))], "/v1/agents");
    assert_eq!(with(&bob).0, 200);
    check_refused(&with(&revoked), 401, "token_revoked");
    check_refused(&with(&expiring), 401, "token_expired");
    check_refused(&with(&owner[..owner.len() - 1]), 401, "token_malformed");
    check_refused(&with(&format!("{owner}0")), 401, "token_malformed");
    check_refused(&with(""), 401, "token_missing");
    let mut other = owner.clone().into_bytes();
    other[40] = if other[40] == b'0' { b'1' } else { b'0' };
    check_refused(&with(std::str::from_utf8(&other).expect("hex")), 401, "token_invalid");
    check_refused(&api.get_with(&[], "/v1/agents"), 401, "token_missing");
    check_refused(&api.get_with(&[("authorization", &format!("Basic {owner}"))], "/v1/agents"), 401, "token_missing");
    let bearer = format!("Bearer {owner}");
    let twice = [("authorization", bearer.as_str()), ("authorization", bearer.as_str())];
    check_refused(&api.get_with(&twice, "/v1/agents"), 401, "token_missing");
    check_refused(&api.get_with(&[("cookie", &format!("token={owner}"))], "/v1/agents"), 401, "token_missing");
    check_refused(&with(&format!("{bob}, {owner}")), 401, "token_malformed");
    check_refused(&api.get_with(&[], "/v1/nowhere"), 401, "token_missing");

    host.down();
    for code in ["token_revoked", "token_expired", "token_malformed", "token_invalid", "token_missing"] {
        let counted: u64 = refusals(&host, code).iter().map(|line| line["data"]["count"].as_u64().unwrap_or(0)).sum();
        assert!(counted >= 1, "{code} is not in the ledger");
        assert!(refusals(&host, code).iter().all(|line| line["type"] == "RETRACT"), "{code}");
    }
    let ledger = host.ctl(&["audit", "export"]).ok().stdout;
    let log = std::fs::read_to_string(host.home.join("logs/host.log")).expect("a log");
    for secret in [&owner, &bob, &revoked, &expiring] {
        assert!(
            !ledger.contains(secret.as_str()) && !log.contains(secret.as_str()),
            "a token is in the ledger or the log"
        );
    }
}

#[test]
fn expired_token_stays_expired_if_the_clock_is_set_back() {
    let host = start_host(false);
    host.ctl(&["person", "add", "Bob"]).ok();
    let made = token(&host, "Bob", &["--expires", "1s"]);
    let (text, id) = (made["text"].as_str().expect("a token"), made["token"]["id"].as_str().expect("an id").to_owned());
    let api = Raw::of(&host);
    let ask = |api: &Raw| api.get_with(&[("authorization", &format!("Bearer {text}"))], "/v1/agents");
    // The host records the expiry of a token that is not used.
    wait_for("the entry about its expiry", || !host.entries("token.expired").is_empty());
    check_refused(&ask(&api), 401, "token_expired");
    host.down();
    // After a clock change the expiry would be in the future again.
    let db = crate::support::record::open_to_change(&host.home);
    let changed =
        db.execute("UPDATE tokens SET expires_at = expires_at + 3600000 WHERE id = ?1", [&id]).expect("changed");
    assert_eq!(changed, 1);
    drop(db);
    crate::support::record::restore_owner(&host);
    host.up();
    check_refused(&ask(&Raw::of(&host)), 401, "token_expired");
    let shown = host.ctl(&["--json", "person", "show", "Bob"]).ok().json();
    assert_eq!(shown["tokens"][0]["state"], "expired", "{shown}");
    host.ctl(&["token", "remove", &id]).refused("is expired already");
    host.ctl(&["token", "add", "--person", "Bob", "--expires", "2001-01-01T00:00:00Z"]).refused("cannot end before");
    host.ctl(&["token", "add", "--person", "Bob", "--expires", "soon"]).refused("invalid expiry");
    host.ctl(&["token", "add", "--person", "Unknown"]).refused("there is no person");
}

#[test]
fn member_token_cannot_read_or_act_for_other_people() {
    let host = start_host(false);
    host.agent("a");
    let said = host.chat("a", "my name is Ada");
    let message = said["message_id"].as_str().expect("an id").to_owned();
    let owner_id =
        host.ctl(&["--json", "person", "show", "owner"]).ok().json()["id"].as_str().expect("an id").to_owned();
    let bob = person(&host, "Bob", "member");
    host.ctl(&["person", "link", "owner", "loopback:ada-work", "--yes"]).ok();
    host.ctl(&["person", "link", "Bob", "loopback:bob-work", "--yes"]).ok();
    host.ctl(&["person", "link", "Bob", "telegram:4711:x y", "--yes"]).ok();

    let api = Raw::of(&host).with_token(&bob);
    for path in ["", "/why", "/events"] {
        check_refused(&api.get(&format!("/v1/messages/{message}{path}")), 404, "message_unknown");
    }
    assert_eq!(api.get("/v1/agents/a/history"), (200, json!({ "lines": [], "more": false })));
    for user in ["owner", &owner_id, "loopback:ada-work", &format!("loopback:{owner_id}"), "loopback:unknown", "Bobby"]
    {
        check_refused(&api.say("a", "hello", Some(user)), 403, "identity_not_yours");
        let path = format!("/v1/agents/a/history?as={}", user.replace(':', "%3A"));
        check_refused(&api.get(&path), 403, "identity_not_yours");
    }
    check_refused(&api.say("a", "hello", Some("telegram:4711:x y")), 400, "identity_elsewhere");
    assert_eq!(api.say("a", "hello", Some("Bob")).0, 202);
    assert_eq!(api.say("a", "hello", Some("loopback:bob-work")).0, 202);
    // An owner cannot act as another person either.
    for user in ["Bob", "loopback:bob-work", "telegram:4711:x y"] {
        host.ctl(&["chat", "a", "hello", "--as", user]).refused("is no identity of yours");
    }
    let as_work = host.ctl(&["--json", "chat", "a", "--as", "loopback:ada-work", "hello"]).ok().json();
    assert_ne!(as_work["session_id"], said["session_id"], "each identity has its own conversation");
    // No other person gets the sessions of an unlinked identity.
    host.ctl(&["person", "unlink", "owner", "loopback:ada-work"]).ok();
    host.ctl(&["chat", "a", "hello", "--as", "loopback:ada-work"]).refused("is no identity of yours");
    host.ctl(&["person", "link", "Bob", "loopback:ada-work", "--yes"]).refused("another person's conversation");
    let session = as_work["session_id"].as_str().expect("an id");
    host.ctl(&["session", "remove", session, "--yes"]).ok();
    host.ctl(&["person", "link", "Bob", "loopback:ada-work", "--yes"]).ok();
    host.down();
    assert_eq!(refusal_count(&host, "identity_not_yours"), 6 * 2 + 3 + 1);
    assert_eq!(refusal_count(&host, "identity_elsewhere"), 1);
    assert!(refusals(&host, "identity_not_yours").iter().all(|line| line["type"] == "RETRACT"));
}

#[test]
fn request_completes_even_if_its_client_disconnects() {
    let host = start_host(false);
    host.agent("a");
    let api = Raw::of(&host);
    // If the server sees the disconnect first, it ignores the request. A request that has begun completes.
    wait_for("a message to be recorded", || {
        drop(api.begin("POST", "/v1/agents/a/messages", r#"{"text":"hello"}"#));
        api.get("/v1/messages/last").0 == 200
    });
    wait_for("the message to be answered", || api.get("/v1/messages/last").1["status"] == "delivered");
    wait_for("the token to be replaced", || {
        drop(api.begin("POST", "/v1/tokens/current/rotate", "{}"));
        !host.entries("token.rotated").is_empty()
    });
    wait_for("the new token in its file", || Raw::of(&host).token != api.token);
    assert_eq!(Raw::of(&host).get("/v1/status").0, 200);
    check_refused(&api.get("/v1/status"), 401, "token_revoked");
    assert_eq!(host.entries("token.rotated").len(), 1);
    assert!(!host.home.join("owner.token.next").exists());
}

#[test]
fn concurrent_rotations_replace_the_token_only_once() {
    let host = start_host(false);
    for round in 1..=5 {
        let api = Raw::of(&host);
        let answers: Vec<u16> = std::thread::scope(|scope| {
            let asking: Vec<_> =
                (0..6).map(|_| scope.spawn(|| api.ask("POST", "/v1/tokens/current/rotate", "").0)).collect();
            asking.into_iter().map(|asking| asking.join().expect("an answer")).collect()
        });
        assert_eq!(answers.iter().filter(|status| **status == 200).count(), 1, "{answers:?}");
        host.ctl(&["status"]).ok();
        assert_eq!(host.entries("token.rotated").len(), round);
    }
}

#[test]
fn event_stream_ends_when_its_token_is_revoked() {
    let host = crate::chaos::scale::new_host("");
    host.up();
    host.agent("a");
    host.ctl(&["person", "add", "Bob"]).ok();
    let made = token(&host, "Bob", &[]);
    let bob = Raw::of(&host).with_token(made["text"].as_str().expect("a token"));
    assert_eq!(bob.say("a", "slow", None).0, 202);
    let mut stream = bob.begin("GET", "/v1/messages/last/events", "");
    wait_for("the request", || host.entries("model.asked").len() == 1);
    host.ctl(&["token", "remove", made["token"]["id"].as_str().expect("an id")]).ok();
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("the stream ends while the message is open");
    assert!(said.starts_with("HTTP/1.1 200") && !said.contains("event: message"), "{said}");
}

#[test]
fn identity_has_one_person_and_the_last_owner_stays() {
    let host = start_host(false);
    host.ctl(&["person", "add", "Bob"]).ok();
    host.ctl(&["person", "add", "Bob"]).refused("there is the person");
    host.ctl(&["person", "add", "B\u{43e}b"]).refused("it looks like the person \"Bob\"");
    host.ctl(&["person", "add", "chat:bob"]).refused("would read as an identity");
    host.ctl(&["person", "add", "Eve", "--role", "king"]).refused("unknown role");
    host.ctl(&["person", "link", "Bob", "matrix:@bob:example.org", "--yes"]).ok();
    host.ctl(&["person", "link", "Bob", "matrix:@bob:example.org", "--yes"]).ok();
    host.ctl(&["person", "link", "owner", "matrix:@bob:example.org", "--yes"]).refused("is linked to Bob");
    host.ctl(&["person", "link", "Bob", "no-colon", "--yes"]).refused("is not a valid identity");
    host.ctl(&["person", "link", "Unknown", "chat:x", "--yes"]).refused("there is no person");
    host.ctl(&["person", "unlink", "Bob", "matrix:@bob"]).refused("is not linked to Bob");
    let odd = host.ctl(&["person", "link", "owner", "matrix:@b\u{43e}b:example.org", "--yes"]).ok();
    assert!(odd.stderr.contains("look twice") && odd.stderr.contains("looks like"), "{}", odd.stderr);
    let shown = host.ctl(&["person", "show", "owner"]).ok().stdout;
    assert!(
        shown.contains("[! holds U+043E, which reads as \"o\"; looks like matrix:@bob:example.org of Bob"),
        "{shown}"
    );
    assert!(!shown.contains("ict_"), "{shown}");
    let owner = host.ctl(&["--json", "person", "show", "owner"]).ok().json();
    let own = format!("loopback:{}", owner["id"].as_str().expect("an id"));
    host.ctl(&["person", "unlink", "owner", &own]).refused("stays with the person");
    host.ctl(&["person", "set", "owner", "--role", "member", "--yes"]).refused("is the last owner");
    host.ctl(&["person", "set", "Bob", "--role", "owner", "--yes"]).ok();
    let in_use = owner["tokens"][0]["id"].as_str().expect("an id").to_owned();
    host.ctl(&["token", "remove", &in_use]).refused("is the token that asks");
    assert_eq!(refusals(&host, "token_in_use").len(), 1);
    host.ctl(&["token", "add", "--person", "Unknown"]).refused("there is no person");
    for (what, count) in [("person.refused", 4), ("identity.refused", 4), ("token.refused", 1)] {
        let entries = host.entries(what);
        assert!(entries.len() >= count, "{what}: {entries:?}");
        assert!(entries.iter().all(|line| line["type"] == "RETRACT" && line["data"]["code"].is_string()), "{what}");
    }
    for what in ["person.created", "person.role", "identity.linked", "token.created"] {
        let entries = host.entries(what);
        assert!(!entries.is_empty() && entries.iter().all(|line| line["type"] == "META"), "{what}: {entries:?}");
    }
    let ledger = host.ctl(&["audit", "export"]).ok().stdout;
    assert!(!ledger.contains("@bob"), "the ledger contains a digest instead of the identity");
}

#[test]
fn every_route_refuses_a_missing_token_and_a_low_role() {
    let host = start_host(false);
    host.agent("a");
    let (member, admin) = (person(&host, "Mia", "member"), person(&host, "Ada", "admin"));
    let owner = Raw::of(&host);
    let (status, document) = owner.get("/openapi.json");
    assert_eq!(status, 200);
    let mut seen = 0;
    for (path, methods) in document["paths"].as_object().expect("paths") {
        let real = path.replace("{agent}", "a").replace("{identity}", "chat%3Ax").replace("{", "x").replace("}", "x");
        for (method, operation) in methods.as_object().expect("methods") {
            let method = method.to_uppercase();
            let needs = operation["x-role"].as_str().expect("a role");
            if needs == "anybody" {
                assert!(method == "GET" && ["/healthz", "/readyz"].contains(&path.as_str()), "{method} {path}");
                continue;
            }
            check_refused(&owner.ask_with(&method, &real, &[], "{}"), 401, "token_missing");
            for (role, token) in [("member", &member), ("admin", &admin)] {
                let order = ["member", "admin", "owner"];
                let at = |role: &str| order.iter().position(|known| *known == role).expect("a role");
                if at(role) < at(needs) {
                    let answer = owner.clone().with_token(token).ask(&method, &real, "{}");
                    check_refused(&answer, 403, "role_too_low");
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 20, "only {seen} pairs of a role and a forbidden route were tested");
    assert!(refusals(&host, "role_too_low").len() < seen, "repeated refusals share entries");
    // A new role applies to the next request.
    let mia = Raw::of(&host).with_token(&member);
    check_refused(&mia.get("/v1/status"), 403, "role_too_low");
    host.ctl(&["person", "set", "Mia", "--role", "admin", "--yes"]).ok();
    assert_eq!(mia.get("/v1/status").0, 200);
    host.ctl(&["person", "set", "Mia", "--role", "member", "--yes"]).ok();
    check_refused(&mia.get("/v1/status"), 403, "role_too_low");
    // A person sees only their own tokens; an owner sees all tokens.
    let tokens = mia.get("/v1/tokens").1;
    assert_eq!(tokens.as_array().expect("a list").len(), 1, "{tokens}");
    let of_owner = owner.get("/v1/tokens").1.as_array().expect("a list")[0]["id"].as_str().expect("an id").to_owned();
    check_refused(&mia.ask("DELETE", &format!("/v1/tokens/{of_owner}"), ""), 403, "token_not_yours");
    check_refused(&mia.ask("POST", &format!("/v1/tokens/{of_owner}/rotate"), ""), 403, "token_not_yours");
}

#[test]
fn served_openapi_document_equals_the_committed_one() {
    let host = start_host(false);
    let (status, document) = Raw::of(&host).get("/openapi.json");
    assert_eq!(status, 200);
    let committed: Value = serde_json::from_str(include_str!("../../../docs/openapi.json")).expect("JSON");
    assert_eq!(document, committed);
}

#[test]
fn peer_in_another_user_namespace_is_refused_with_valid_token() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None).started();
        host.ctl(&["status"]).ok();
        let mut command = host.command("ironctl");
        command.arg("--home").arg(&host.home).args(["--json", "status"]);
        // SAFETY: between fork and exec the child makes one system call and allocates no memory.
        unsafe {
            command
                .pre_exec(|| nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER).map_err(std::io::Error::from));
        }
        let output = command.output().expect("ironctl runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{user:?}: {said}");
        assert!(said.contains("peer_namespace") && said.contains("another user namespace"), "{user:?}: {said}");
        assert_eq!(refusals(&host, "peer_namespace").len(), 1, "{user:?}");
        host.ctl(&["status"]).ok();
    }
}

#[test]
fn session_uid_is_refused_by_file_modes_and_by_the_api() {
    if HostUser::current() != HostUser::Root {
        // The sessions of an ordinary user have the uid of that user. The host refuses them because of their user namespace.
        return;
    }
    let host = TestHost::with(HostUser::Root, Build::Plain, None);
    let directory = host.home.parent().expect("a directory").join("s");
    std::fs::create_dir(&directory).expect("made");
    let socket = directory.join("api.sock");
    host.configure(&format!("[api]\nsocket = {socket:?}\n"));
    host.up();
    host.agent("a");
    host.say("a", "hello");
    let uid = u32::try_from(host.session()["jail"]["uid"].as_u64().expect("a uid")).expect("a uid");
    assert!(uid > ORDINARY_UID, "the session has its own uid");
    let token = std::fs::read_to_string(host.home.join("owner.token")).expect("a token");
    // The test runs perl under the uid of the session, which has no account on this machine.
    let ask = || {
        let script = "my $to = IO::Socket::UNIX->new($ARGV[0]) or die $!; print $to $ARGV[1]; $to->flush; print <$to>";
        let request =
            format!("GET /v1/status HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\r\n");
        let mut perl = Command::new("perl");
        perl.args(["-MIO::Socket::UNIX", "-e", script]).arg(&socket).arg(request).uid(uid).gid(uid).current_dir("/");
        let output = perl.output().expect("perl runs");
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    assert!(ask().contains("Permission denied"), "the file modes refuse the connection");
    // Now the file modes permit the connection.
    std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o666)).expect("set");
    std::fs::set_permissions(&directory, PermissionsExt::from_mode(0o755)).expect("set");
    let answer = ask();
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("peer_user"), "{answer}");
    assert_eq!(refusals(&host, "peer_user").len(), 1);
}

#[test]
fn many_refusals_are_counted_in_few_ledger_entries() {
    let host = start_host(false);
    let api = Raw::of(&host).with_token(&format!("ict_{}", "0".repeat(64)));
    for _ in 0..300 {
        check_refused(&api.get("/v1/agents"), 401, "token_invalid");
    }
    host.down();
    assert_eq!(refusal_count(&host, "token_invalid"), 300);
    let entries = refusals(&host, "token_invalid");
    assert!(entries.len() < 30, "{} entries", entries.len());
}

#[test]
fn repeated_refusals_of_a_member_make_few_ledger_entries() {
    const TIMES: u64 = 60;
    let host = start_host(false);
    host.agent("a");
    host.ctl(&["person", "add", "Bob"]).ok();
    let old = token(&host, "Bob", &[])["token"]["id"].as_str().expect("an id").to_owned();
    host.ctl(&["token", "remove", &old]).ok();
    let owner = Raw::of(&host);
    let of_owner = owner.get("/v1/tokens").1.as_array().expect("a list")[0]["id"].as_str().expect("an id").to_owned();
    let bob = token(&host, "Bob", &[]);
    let own = bob["token"]["id"].as_str().expect("an id");
    let api = owner.with_token(bob["text"].as_str().expect("a token"));
    let before = host.ledger().len();
    for _ in 0..TIMES {
        check_refused(&api.say("a", "hello", Some("owner")), 403, "identity_not_yours");
        check_refused(&api.get("/v1/agents/a/history?as=owner"), 403, "identity_not_yours");
        check_refused(&api.say("a", "", None), 400, "message_empty");
        check_refused(&api.ask("DELETE", "/v1/tokens/tok_0000000000000000", ""), 404, "token_unknown");
        check_refused(&api.ask("POST", &format!("/v1/tokens/{of_owner}/rotate"), ""), 403, "token_not_yours");
        check_refused(&api.ask("DELETE", &format!("/v1/tokens/{of_owner}"), ""), 403, "token_not_yours");
        check_refused(&api.ask("POST", &format!("/v1/tokens/{old}/rotate"), ""), 400, "token_ended");
        check_refused(&api.ask("DELETE", &format!("/v1/tokens/{old}"), ""), 400, "token_ended");
        check_refused(&api.ask("DELETE", &format!("/v1/tokens/{own}"), ""), 409, "token_in_use");
    }
    host.down();
    for (code, times) in [
        ("identity_not_yours", 2 * TIMES),
        ("message_empty", TIMES),
        ("token_unknown", TIMES),
        ("token_not_yours", 2 * TIMES),
        ("token_ended", 2 * TIMES),
        ("token_in_use", TIMES),
    ] {
        assert_eq!(refusal_count(&host, code), times, "{code}");
    }
    let made = host.ledger().len() - before;
    assert!(made < 60, "{made} entries");
}
