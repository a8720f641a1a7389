//! The way into the console: the typed code, the cookie, the end of a session.

use super::{Console, new_code, origin};
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost};
use crate::support::webdriver::{Browser, DESKTOP, PHONE};
use serde_json::json;

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
    let tokens = || Raw::of(&host).get("/v1/tokens").1.as_array().map(Vec::len);
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
    let listed = host.ctl(&["--json", "token", "list"]).ok().json();
    let own = listed.as_array().expect("a list").iter().find(|token| token["face"] == "console").expect("a session");
    host.ctl(&["token", "remove", own["id"].as_str().expect("an id")]).ok();
    browser.reload();
    browser.until_shown("form[action='/sign-in'] input[name=code]");
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn member_signs_in_and_sees_no_stop() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let bob = Raw::add_person(&host, "Bob", &["--role", "member"]);
    let token = host.home.with_file_name("bob.token");
    std::fs::write(&token, &bob.token).expect("written");
    std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("permissions");
    let code = host.ctl(&["--token-file", token.to_str().expect("UTF-8"), "--json", "console", "--print"]).ok().json();
    let console = Console::sign_in_with(&code, DESKTOP);
    assert_eq!(console.browser.text(".who"), "Bob");
    assert!(!console.browser.has("#stop"), "a member stops nothing");
    console.browser.keep_picture("inbox-member");
}
