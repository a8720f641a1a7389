//! Tests of grants, requests and their judgement.

mod forms;
mod grants;
mod judgement;
mod spellings;

use super::{CanonicalUrl, Grant, GrantText, Loopback, Request, RequestText};

fn grant(host: &str, methods: &[&str], paths: &[&str]) -> Grant {
    checked(&GrantText { host: host.to_owned(), ..text(methods, paths) })
}

fn text(methods: &[&str], paths: &[&str]) -> GrantText {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    GrantText {
        host: "api.example.com".to_owned(),
        methods: owned(methods),
        paths: owned(paths),
        ..GrantText::default()
    }
}

fn checked(text: &GrantText) -> Grant {
    Grant::check(text, Loopback::Refused).expect("a grant")
}

fn url(text: &str) -> CanonicalUrl {
    CanonicalUrl::parse(text, Loopback::Refused).expect(text)
}

fn get(url: &str) -> Request {
    request(&RequestText { method: "GET".to_owned(), url: url.to_owned(), ..RequestText::default() })
}

fn post(url: &str, body: &str) -> Request {
    request(&RequestText {
        method: "POST".to_owned(),
        url: url.to_owned(),
        headers: [("Content-Type".to_owned(), "text/plain".to_owned())].into(),
        body: Some(body.to_owned()),
        secret: None,
    })
}

fn request(text: &RequestText) -> Request {
    Request::check(text, Loopback::Refused).expect("a request")
}

fn none(_: &str) -> bool {
    false
}
