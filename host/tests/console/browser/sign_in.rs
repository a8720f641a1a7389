//! The way into the console: the typed code, the cookie, the end of a session.

use super::{Console, new_code, origin};
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost};
use crate::support::webdriver::{Browser, DESKTOP, PHONE};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The name of the cookie of a session.
const COOKIE: &str = "ironclaw_console";

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn wrong_and_used_codes_open_nothing() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let code = new_code(&host);
    assert!(code["expires_at"].is_string(), "{code}");
    let browser = Browser::start(DESKTOP);
    let enter = |words: &str| {
        browser.go(code["url"].as_str().expect("a url"));
        browser.type_keys("form[action='/sign-in'] input[name=code]", words);
        browser.click("form[action='/sign-in'] button");
    };
    let no_session = || browser.cookies().iter().all(|cookie| cookie["name"] != COOKIE);
    browser.go(&format!("{}/inbox", origin(&code)));
    browser.until_shown("form[action='/sign-in'] input[name=code]");
    browser.keep_picture("sign-in");
    enter("not a code");
    browser.until_shown(".notice.bad");
    assert!(no_session(), "{:?}", browser.cookies());
    // To load the page with the code in its address uses nothing up.
    browser.go(&format!("{}/?code={}", origin(&code), code["code"].as_str().expect("a code")));
    assert!(no_session(), "{:?}", browser.cookies());
    enter(code["code"].as_str().expect("a code"));
    browser.until("the inbox", |browser| browser.url().ends_with("/inbox"));
    let cookies = browser.cookies();
    let cookie = cookies.iter().find(|cookie| cookie["name"] == COOKIE).expect("a cookie");
    assert_eq!(
        (&cookie["httpOnly"], &cookie["sameSite"], &cookie["path"]),
        (&json!(true), &json!("Strict"), &json!("/"))
    );
    let name = origin(&code).trim_start_matches("http://").rsplit_once(':').map(|(name, _)| name.to_owned());
    assert_eq!(cookie["domain"].as_str().map(str::to_owned), name, "the cookie belongs to this name alone");
    assert_eq!(browser.run("return document.cookie", &[]), "");
    browser.forget_cookies();
    enter(code["code"].as_str().expect("a code"));
    browser.until_shown(".notice.bad");
    assert!(no_session(), "{:?}", browser.cookies());
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn session_is_listed_and_ended_at_both_places() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let tokens = || {
        let listed = Raw::of(&host).get("/v1/tokens").1;
        listed.as_array().into_iter().flatten().filter(|token| token["state"] == "live").count()
    };
    let before = tokens();
    let console = Console::sign_in(&host, PHONE);
    let browser = &console.browser;
    assert_eq!(browser.text("header .name"), "IronClaw");
    browser.keep_picture("inbox-empty-phone");
    browser.click("form[action='/sign-out'] button");
    browser.until("the end of the session", |browser| !browser.is_shown("nav[aria-label=Rooms]"));
    console.go("/inbox");
    browser.until_shown("form[action='/sign-in'] input[name=code]");
    assert_eq!(before, tokens(), "no session is left");

    console.enter(&new_code(&host));
    super::remove_session(&host);
    browser.reload();
    browser.until_shown("form[action='/sign-in'] input[name=code]");
}

/// Has `ironctl` write the local form of a person, and returns its path. No desktop opens it.
fn local_form(host: &TestHost, arguments: &[&str]) -> PathBuf {
    let said = host.ctl(&[arguments, &["console"]].concat()).ok().stderr;
    let (_, path) = said.split_once("open the file ").unwrap_or_else(|| panic!("no file: {said}"));
    PathBuf::from(path.split_once(", or type").expect("a path").0)
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn local_form_names_the_person_before_it_signs_in() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let form = local_form(&host, &[]);
    let mode = std::fs::metadata(&form).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{}", form.display());
    let browser = Browser::start(DESKTOP);
    // The file has the code in its form alone, and the page that answers needs a click.
    browser.go(&format!("file://{}", form.display()));
    browser.until_shown("#continue");
    assert_eq!(browser.text("#person"), "owner");
    assert!(browser.cookies().is_empty(), "{:?}", browser.cookies());
    browser.keep_picture("continue");
    browser.click("#continue");
    browser.until("the inbox", |browser| browser.url().ends_with("/inbox"));
    // The form of another person does not take this browser over.
    let token = bob(&host);
    let form = local_form(&host, &["--token-file", token.to_str().expect("UTF-8")]);
    browser.go(&format!("file://{}", form.display()));
    browser.until_shown("#continue");
    assert_eq!(browser.text("#person"), "Bob");
    browser.click("#continue");
    browser.until_shown(".notice.bad");
    assert_eq!(browser.attribute(".notice.bad [data-code]", "data-code").as_deref(), Some("session_of_another"));
    browser.go(&format!("{}/inbox", origin(&new_code(&host))));
    assert_eq!(browser.text(".who"), "owner");
}

/// Adds the member Bob, and returns the file of his token.
fn bob(host: &TestHost) -> PathBuf {
    let bob = Raw::add_person(host, "Bob", &["--role", "member"]);
    let token = host.home.with_file_name("bob.token");
    std::fs::write(&token, &bob.token).expect("written");
    std::fs::set_permissions(&token, PermissionsExt::from_mode(0o600)).expect("permissions");
    token
}

/// Adds the member Bob and signs him in.
pub(super) fn sign_in_bob(host: &TestHost) -> Console {
    let token = bob(host);
    let code = host.ctl(&["--token-file", token.to_str().expect("UTF-8"), "--json", "console", "--print"]).ok().json();
    Console::sign_in_with(&code, DESKTOP)
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn member_signs_in_and_sees_no_stop() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let console = sign_in_bob(&host);
    assert_eq!(console.browser.text(".who"), "Bob");
    assert!(!console.browser.has("#stop"), "a member stops nothing");
    console.browser.keep_picture("inbox-member");
}
