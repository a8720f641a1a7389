//! The rules of accessibility that axe-core checks, on each page, in light and dark, at both widths.
//!
//! `.ci/long browser` installs axe-core from npm, which this project does not contain.

use super::{Console, asked, new_code, origin, post};
use crate::e2e::questions::give_tool;
use crate::e2e::requests::host_with;
use crate::support::webdriver::{Browser, DESKTOP, PHONE, kept};
use serde_json::{Value, json};

/// Where the campaign installs it.
const AXE: &str = "axe/node_modules/axe-core/axe.min.js";

fn axe() -> String {
    let path = kept(AXE);
    std::fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("{}: {error}: run .ci/long browser, which installs axe-core from npm", path.display())
    })
}

/// Returns the violations on the current page, one line each.
fn violations(browser: &Browser, axe: &str) -> Vec<String> {
    browser.run(axe, &[]);
    let script = "const done = arguments[0];
        axe.run(document, { resultTypes: ['violations'] }).then(
            found => done(found.violations.map(one =>
                one.id + ': ' + one.help + ': ' + one.nodes.slice(0, 5).map(node => node.target.join(' ') + ' ' + node.html.slice(0, 160) + ' ' + (node.any[0]?.message ?? '')).join(' | '))),
            error => done(['axe: ' + error]))";
    let found = browser.run_late(script, &[]);
    found.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn axe_finds_no_violation_on_any_page() {
    let axe = axe();
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    give_tool(&host);
    let call = asked(&raw, &post("tulips", &site.url("/notes"))).remove(0);
    asked(&raw, &json!({ "text": "ask me which? red or blue" }));
    asked(&raw, &json!({ "text": "ask me what do you want" }));
    let change = host.submit("a", "persona", json!({ "instructions": "Be brief." })).ok().json();
    let talk = raw.get("/v1/agents/a/session").1["session_id"].as_str().expect("an id").to_owned();
    let mut pages: Vec<String> = ["/inbox", "/conversations", "/status", "/why", "/nowhere"].map(str::to_owned).into();
    pages.push(format!("/waiting/{}", change["id"].as_str().expect("an id")));
    pages.extend(
        crate::e2e::requests::inbox(&raw)
            .iter()
            .filter_map(|entry| entry["id"].as_str())
            .map(|id| format!("/waiting/{id}")),
    );
    pages.push(format!("/conversations/{talk}"));
    pages.push(format!("/why?id={call}"));
    let mut found = Vec::new();
    let mut console = Console::sign_in(&host, DESKTOP);
    for screen in [DESKTOP, PHONE] {
        console.browser.set_screen(screen);
        for scheme in ["light", "dark"] {
            console.browser.set_media(&[("prefers-color-scheme", scheme)]);
            for path in &pages {
                console.go(path);
                let here = violations(&console.browser, &axe);
                found.extend(here.into_iter().map(|one| format!("{path}, {scheme}, {}: {one}", screen.width)));
                let room = path.trim_start_matches('/').split(['/', '?']).next().unwrap_or_default();
                console.browser.keep_picture(&format!("{room}-{scheme}-{}", screen.width));
            }
        }
    }
    assert!(found.is_empty(), "{} violations:\n{}", found.len(), found.join("\n"));
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn axe_finds_no_violation_before_a_session_and_after_it() {
    let axe = axe();
    let (_site, host, _raw) = host_with(&["POST"], &["/notes"]);
    let code = new_code(&host);
    let mut browser = Browser::start(DESKTOP);
    let mut found = Vec::new();
    for screen in [DESKTOP, PHONE] {
        browser.set_screen(screen);
        for scheme in ["light", "dark"] {
            browser.set_media(&[("prefers-color-scheme", scheme)]);
            browser.go(&format!("{}/", origin(&code)));
            found.extend(violations(&browser, &axe));
            browser.type_keys("input[name=code]", "wrong\u{e007}");
            browser.until_shown(".notice.bad");
            found.extend(violations(&browser, &axe));
        }
    }
    drop(browser);
    let console = Console::sign_in(&host, DESKTOP);
    console.browser.click("form[action='/sign-out'] button");
    console.browser.until_gone("nav[aria-label=Rooms]");
    found.extend(violations(&console.browser, &axe));
    assert!(found.is_empty(), "{} violations:\n{}", found.len(), found.join("\n"));
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn reduced_motion_shows_the_hold_as_text() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    let id = asked(&raw, &post("tulips", &site.url("/notes"))).remove(0);
    let console = Console::sign_in(&host, DESKTOP);
    console.browser.set_media(&[("prefers-reduced-motion", "reduce")]);
    console.open(&id);
    let script = "return [...document.querySelectorAll('*')].filter(e => {
        const style = getComputedStyle(e);
        const seconds = list => Math.max(...list.split(',').map(parseFloat));
        return seconds(style.animationDuration) > 0.01 && style.animationName !== 'none' || seconds(style.transitionDuration) > 0.01;
    }).map(e => e.outerHTML.slice(0, 100))";
    assert_eq!(console.browser.run(script, &[]), json!([]), "nothing moves");
    console.browser.hold_pointer("#approve", super::HELD);
    console.browser.until_gone("form.approve");
    super::until_status(&raw, &id, "done");
}
