//! The parts that every page shares: its frame, its notices, and the page of a refusal.
//!
//! Text of agents and of people is only text: the templates escape every value. See `host/templates`.

use super::visit::Visit;
use super::words;
use crate::api::answer::Refused;
use crate::registry::Role;
use askama::Template;
use axum::extract::Query;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use ironclaw_contract::canonical::Digest;
use ironclaw_operator::DenialCode;
use ironclaw_state::keys;
use ironclaw_store::refusal::Refusal;
use serde::Deserialize;
use std::sync::LazyLock;

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = include_str!("../../../templates/style.css");
const SCRIPT: &str = include_str!("../../../templates/script.js");

/// The version in the addresses of style and script, so that a browser never mixes those of two hosts.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    // A new one at each start: another program that had the port meanwhile may have left a file under a version that it can compute.
    let start: [u8; 16] = keys::random().unwrap_or_default();
    Digest::of(format!("{start:?}{STYLE}{SCRIPT}").as_bytes()).to_string()[..12].to_owned()
});

/// A room of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    Inbox,
    Conversations,
    Status,
    Why,
}

impl Room {
    const ALL: [Self; 4] = [Self::Inbox, Self::Conversations, Self::Status, Self::Why];

    pub const fn path(self) -> &'static str {
        match self {
            Self::Inbox => "/inbox",
            Self::Conversations => "/conversations",
            Self::Status => "/status",
            Self::Why => "/why",
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Inbox => words::INBOX,
            Self::Conversations => words::CONVERSATIONS,
            Self::Status => words::STATUS,
            Self::Why => words::WHY,
        }
    }
}

/// A sentence at the top of a page.
#[derive(Debug, Clone)]
pub struct Notice {
    pub text: String,
    pub hint: String,
    /// The code of a refusal; empty for an outcome.
    pub code: String,
    pub is_bad: bool,
}

impl Notice {
    pub fn done(text: impl Into<String>) -> Self {
        Self { text: text.into(), hint: String::new(), code: String::new(), is_bad: false }
    }
}

impl From<&Refused> for Notice {
    fn from(refused: &Refused) -> Self {
        // A visit without a session is no fault of its person.
        let is_bad = refused.code != DenialCode::SessionMissing.name();
        Self { text: refused.message.clone(), hint: refused.hint.clone(), code: refused.code.clone(), is_bad }
    }
}

/// The frame of a page.
pub struct Frame {
    pub title: String,
    pub room: Option<Room>,
    /// The name of the person; `None` without a session.
    pub person: Option<String>,
    /// The token of the forms of the session; empty without one.
    pub csrf: String,
    pub may_stop: bool,
    /// An emergency stop is on.
    pub is_stopped: bool,
    /// The path of the event stream of the live parts.
    pub live: String,
    pub notice: Option<Notice>,
}

impl Frame {
    /// Returns the frame of a page for a person with a session.
    pub fn new(visit: &Visit, room: Option<Room>, title: impl Into<String>) -> Self {
        let person = &visit.caller.person;
        Self {
            title: title.into(),
            room,
            person: Some(person.name.clone()),
            csrf: visit.form_token.clone(),
            may_stop: person.role.covers(Role::Admin),
            is_stopped: visit.caller.api.stops.is_on(),
            live: "/live".to_owned(),
            notice: None,
        }
    }

    /// Returns the frame of a page without a session.
    pub fn outside(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            room: None,
            person: None,
            csrf: String::new(),
            may_stop: false,
            is_stopped: false,
            live: String::new(),
            notice: None,
        }
    }

    pub fn with(self, notice: Option<Notice>) -> Self {
        Self { notice, ..self }
    }

    pub fn live_at(self, path: String) -> Self {
        Self { live: path, ..self }
    }

    pub fn rooms(&self) -> [Room; 4] {
        Room::ALL
    }

    pub fn is_in(&self, room: &Room) -> bool {
        self.room == Some(*room)
    }

    pub fn version(&self) -> &'static str {
        &VERSION
    }
}

#[derive(Template)]
#[template(path = "refused.html")]
struct RefusedPage {
    frame: Frame,
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    frame: Frame,
}

#[derive(Template)]
#[template(source = "{{ text }}", ext = "html")]
struct Escaped<'a> {
    text: &'a str,
}

/// Returns a text as HTML.
pub fn escaped(text: &str) -> askama::Result<String> {
    Escaped { text }.render()
}

#[derive(Template)]
#[template(path = "stopped.html")]
struct StoppedPart {}

/// Returns the words about an emergency stop as HTML; empty without one.
pub fn stopped(is_on: bool) -> askama::Result<String> {
    if is_on { StoppedPart {}.render() } else { Ok(String::new()) }
}

/// Returns a page as an answer.
pub fn page(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => (status, [(CONTENT_TYPE, HTML)], html).into_response(),
        Err(error) => {
            tracing::error!(%error, "cannot render a page");
            (StatusCode::INTERNAL_SERVER_ERROR, words::NOT_RENDERED).into_response()
        }
    }
}

/// Returns whether an answer is a page already.
pub fn is_page(response: &Response) -> bool {
    let kind = |headers: &HeaderMap| headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes() == HTML.as_bytes());
    kind(response.headers())
}

/// Returns the refusal of a request that no handler could read.
pub fn unreadable(status: StatusCode) -> Refused {
    let code = match status {
        StatusCode::NOT_FOUND => DenialCode::NotFound,
        StatusCode::METHOD_NOT_ALLOWED => DenialCode::MethodNotAllowed,
        StatusCode::PAYLOAD_TOO_LARGE => DenialCode::RequestTooLarge,
        _ => DenialCode::RequestMalformed,
    };
    Refused { status, ..Refusal::new(code, words::UNREADABLE).hint(words::GO_BACK).into() }
}

/// Returns the page of a refusal: the way in for a browser without a session, else the sentence with a way on.
pub fn refused(visit: Option<&Visit>, refused: &Refused) -> Response {
    let notice = Some(Notice::from(refused));
    match visit {
        None if refused.code == DenialCode::SessionMissing.name() => sign_in_page(refused.status, notice),
        None => page(refused.status, &RefusedPage { frame: Frame::outside(words::REFUSED).with(notice) }),
        Some(visit) => {
            page(refused.status, &RefusedPage { frame: Frame::new(visit, None, words::REFUSED).with(notice) })
        }
    }
}

/// Returns the page on which a person types a code.
pub fn sign_in_page(status: StatusCode, notice: Option<Notice>) -> Response {
    page(status, &SignInPage { frame: Frame::outside(words::SIGN_IN).with(notice) })
}

/// Leads the browser to a page of the console. A reload there repeats no step.
pub fn see_other(path: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, path)]).into_response()
}

/// Query of style and script.
#[derive(Debug, Deserialize)]
pub struct Version {
    /// The version that the page names.
    #[serde(default)]
    v: String,
}

/// `GET /style.css?v=VERSION`
pub async fn style(Query(version): Query<Version>) -> Response {
    asset("text/css; charset=utf-8", STYLE, &version)
}

/// `GET /script.js?v=VERSION`
pub async fn script(Query(version): Query<Version>) -> Response {
    asset("text/javascript; charset=utf-8", SCRIPT, &version)
}

/// Returns a file of the program. A browser keeps it only under its own version: an older page may ask for it during an upgrade.
fn asset(kind: &'static str, text: &'static str, version: &Version) -> Response {
    let keeping = if version.v == *VERSION { "private, max-age=31536000, immutable" } else { "no-store" };
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, keeping)], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_is_small_and_no_page_has_code_or_style_inline() {
        assert!(SCRIPT.len() <= 15 * 1024, "{} bytes", SCRIPT.len());
        let templates = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/templates")).expect("the templates");
        for file in templates.map(|file| file.expect("a file").path()) {
            if file.extension().is_none_or(|kind| kind != "html") {
                continue;
            }
            let text = std::fs::read_to_string(&file).expect("a text");
            for inline in
                ["|safe", "escape=", "style=", "<style", "javascript:", " onclick", " onload", " onsubmit", "<script>"]
            {
                assert!(!text.contains(inline), "{} has {inline}", file.display());
            }
        }
    }

    #[test]
    fn text_of_others_is_escaped() {
        let hostile = "<img src=x onerror=alert(1)>\"'&";
        let frame = Frame::outside(hostile).with(Some(Notice::done(hostile)));
        let html = RefusedPage { frame }.render().expect("rendered");
        assert!(!html.contains("<img") && html.contains("&#60;img"), "{html}");
    }
}
