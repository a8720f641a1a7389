//! The forms of the pages: none is accepted without its token, or from a person without the right.

use super::sign_in::sign_in_bob;
use super::{Console, asked, post};
use crate::e2e::requests::{host_with_people, request};
use crate::support::webdriver::{Browser, DESKTOP};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Sends each form of the current page with this token, as the page's own script can, and returns for each its action, the status and
/// the code of the refusal.
fn send_each(browser: &Browser, csrf: &str) -> Vec<Value> {
    let script = "const [csrf, done] = arguments;
        const forms = [...document.querySelectorAll('form')].filter(form => form.method === 'post');
        Promise.all(forms.map(async form => {
            const body = new FormData(form);
            if (csrf === null) body.delete('csrf'); else body.set('csrf', csrf);
            if (body.has('typed')) body.set('typed', form.classList.contains('resume') ? 'resume' : 'approve');
            const encoded = form.enctype === 'multipart/form-data' ? body : new URLSearchParams(body);
            const answer = await fetch(form.action, { method: 'POST', body: encoded });
            const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
            return [new URL(form.action).pathname, answer.status,
                page.querySelector('[data-code]')?.dataset.code ?? '', !!page.querySelector('main a[href], main form')];
        })).then(done, error => done(['' + error]))";
    let csrf = if csrf.is_empty() { Value::Null } else { json!(csrf) };
    browser.run_late(script, &[csrf]).as_array().cloned().unwrap_or_default()
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn no_form_is_accepted_without_its_token() {
    let (site, host, raw) = host_with_people(&["POST"], &["/notes"]);
    crate::e2e::questions::give_tool(&host);
    let call = asked(&raw, &post("tulips", &site.url("/notes"))).remove(0);
    asked(&raw, &json!({ "text": "ask me which? red or blue" }));
    let console = Console::sign_in(&host, DESKTOP);
    let browser = &console.browser;
    // The token of another session of the same person is none of this one.
    let other = Console::sign_in(&host, DESKTOP);
    let foreign = other.browser.attribute("body", "data-csrf").expect("a token");
    let talk = raw.get("/v1/agents/a/session").1["session_id"].as_str().expect("an id").to_owned();
    let mut paths: Vec<String> = ["/inbox", "/conversations", "/status", "/why"].map(str::to_owned).into();
    paths.push(format!("/conversations/{talk}"));
    let waiting = crate::e2e::requests::inbox(&raw);
    paths.extend(waiting.iter().map(|entry| format!("/waiting/{}", entry["id"].as_str().expect("an id"))));
    let mut sent = BTreeSet::new();
    for path in &paths {
        console.go(path);
        for csrf in ["", "x", &foreign] {
            for answer in send_each(browser, csrf) {
                let action = answer[0].as_str().expect("a path").to_owned();
                assert_eq!((&answer[1], &answer[2]), (&json!(403), &json!("origin_foreign")), "{action}: {answer}");
                assert_eq!(answer[3], true, "{action}: the page has a way on");
                sent.insert(action.replace(&talk, "ID"));
            }
        }
    }
    for action in ["/status/stop", "/sign-out", "/conversations", "/conversations/ID/messages"] {
        assert!(sent.contains(action), "{action} is in no form: {sent:?}");
    }
    assert!(sent.contains(&format!("/waiting/{call}/decision")), "{sent:?}");
    assert!(waiting.iter().all(|entry| request(&raw, &entry["id"])["status"] == "pending"));
    assert!(host.entries("host.panicked").is_empty() && site.lines().is_empty());
    console.go("/inbox");
    browser.until_shown("nav[aria-label=Rooms]");
}

#[test]
#[ignore = "needs Chromium: .ci/long browser"]
fn member_gets_nothing_of_the_owner() {
    let (site, host, raw) = host_with_people(&["POST"], &["/notes"]);
    let id = asked(&raw, &post("tulips", &site.url("/notes"))).remove(0);
    let shown = request(&raw, &json!(id));
    let digest = shown["shown_digest"].as_str().expect("a digest");
    let talk = raw.get("/v1/agents/a/session").1["session_id"].as_str().expect("an id").to_owned();
    let call = shown["details"]["call_id"].as_str().unwrap_or("call_00000000000000000000000000").to_owned();
    let console = sign_in_bob(&host);
    let gets = [
        format!("/waiting/{id}"),
        format!("/waiting/{id}/together"),
        format!("/conversations/{talk}"),
        format!("/conversations/{talk}?before=9"),
        format!("/conversations/{talk}/live"),
        format!("/files/{call}"),
        format!("/why?id={call}"),
    ];
    let approve = |word: &str| format!("decision={word}&typed=approve&shown={digest}");
    let decision = format!("/waiting/{id}/decision");
    let posts = [
        (decision.clone(), approve("approve")),
        (decision.clone(), approve("approve_until_answer")),
        (decision.clone(), approve("approve_together")),
        (decision.clone(), "decision=reject".to_owned()),
        (decision.clone(), "decision=reject_together".to_owned()),
        (decision, "decision=answer&text=yes".to_owned()),
        (format!("/conversations/{talk}/messages"), "text=hello&typed=1".to_owned()),
        (format!("/conversations/{talk}/cancel"), String::new()),
        ("/status/stop".to_owned(), String::new()),
        ("/status/resume".to_owned(), "typed=resume".to_owned()),
    ];
    let script = "const [path, body, done] = arguments;
        const form = body === null ? {} : { method: 'POST',
            body: new URLSearchParams(`csrf=${document.body.dataset.csrf}&${body}`) };
        fetch(path, { ...form, signal: AbortSignal.timeout(5000) })
            .then(async answer => done([answer.status, await answer.text()]), error => done([0, '' + error]))";
    let mut asked = gets.map(|path| (path, Value::Null)).to_vec();
    asked.extend(posts.map(|(path, body)| (path, json!(body))));
    for (path, body) in asked {
        let answer = console.browser.run_late(script, &[json!(path), body.clone()]);
        assert!([403, 404].contains(&answer[0].as_u64().unwrap_or_default()), "{path} {body}: {answer}");
        let page = answer[1].as_str().expect("a page");
        assert!(!page.contains("tulips") && page.contains("data-code"), "{path} {body}: {page}");
    }
    console.go("/status?audit=1");
    assert!(!console.browser.has("#status-audit") && !console.browser.has("#status-incidents"));
    for path in ["/inbox", "/conversations"] {
        console.go(path);
        assert!(!console.browser.source().contains("tulips"), "{path}");
    }
    assert_eq!(request(&raw, &json!(id))["status"], "pending");
    assert!(host.entries("host.panicked").is_empty() && site.lines().is_empty());
}
