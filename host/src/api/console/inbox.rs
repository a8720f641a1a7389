//! The inbox: everything that waits for the person, the most urgent first.
//!
//! Shows what [`crate::api::waiting::list`] gives, in pages.

use super::pages::{Frame, Room, page};
use super::visit::Visit;
use super::words;
use crate::api::handler::{Answer, Caller};
use crate::api::waiting::{self, ListQuery};
use askama::Template;
use axum::Json;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::Response;
use ironclaw_operator::{RequesterKind, WaitingEntry, WaitingId, WaitingKind};
use serde::Deserialize;

/// Entries on one page.
const ENTRIES: usize = 50;

/// The most pages, so that a number of a page is never too large to skip.
const PAGES_MAX: usize = 1000;

/// Query of `GET /inbox`.
#[derive(Debug, Deserialize)]
pub struct PageQuery {
    /// The page, from 1.
    #[serde(default)]
    page: usize,
}

/// An entry of the list.
struct Entry {
    id: WaitingId,
    kind: WaitingKind,
    /// The agent, if it is not the one that asks.
    agent: String,
    subject: String,
    effect: String,
    by: String,
    ends: String,
    ends_at: String,
    is_theirs: bool,
}

#[derive(Template)]
#[template(path = "inbox.html")]
struct InboxPage {
    frame: Frame,
    entries: Vec<Entry>,
    page: usize,
    more: bool,
}

#[derive(Template)]
#[template(path = "entries.html")]
struct Entries {
    entries: Vec<Entry>,
}

/// `GET /inbox`
pub async fn list(visit: Visit, Query(query): Query<PageQuery>) -> Result<Response, Answer> {
    let number = query.page.clamp(1, PAGES_MAX);
    let (entries, more) = entries(&visit.caller, number).await?;
    let frame = Frame::new(&visit, Some(Room::Inbox), words::INBOX).live_at(format!("/live?page={number}"));
    Ok(page(StatusCode::OK, &InboxPage { frame, entries, page: number, more }))
}

/// Returns the entries of a page, and whether there are more.
async fn entries(caller: &Caller, number: usize) -> Result<(Vec<Entry>, bool), Answer> {
    let query = ListQuery::inbox(ENTRIES, (number - 1) * ENTRIES);
    let Json(found) = waiting::list(caller.clone(), Query(query)).await?;
    let settings = caller.api.gateway.now();
    let zone = settings.host_policy.zone.zone.rules();
    let shown = found.entries.into_iter().map(|entry| shown(entry, |at| words::time(zone, at)));
    Ok((shown.collect(), found.more))
}

fn shown(entry: WaitingEntry, time: impl Fn(&str) -> String) -> Entry {
    let asked = &entry.requested_by;
    let by = match (asked.kind, &asked.on_behalf_of) {
        (RequesterKind::Agent, Some(person)) => format!("{}, {} {}", asked.name, words::ON_BEHALF_OF, person.name),
        (RequesterKind::Agent | RequesterKind::Person, _) => asked.name.clone(),
    };
    Entry {
        id: entry.id,
        kind: entry.kind,
        agent: entry.agent.filter(|agent| *agent != asked.name).unwrap_or_default(),
        subject: entry.subject,
        effect: words::shown(entry.question, entry.effect),
        by,
        ends: time(&entry.expires_at),
        ends_at: entry.expires_at,
        is_theirs: entry.yours,
    }
}

/// The live parts of an inbox.
pub(super) struct Fragments {
    /// The number of entries as the rooms show it.
    pub count: String,
    /// The list of the page as HTML; `None` for a page without it.
    pub list: Option<String>,
}

/// Returns the live parts for a page of the inbox; 0 is a page without its list.
pub(super) async fn fragments(caller: &Caller, number: usize) -> Result<Fragments, Answer> {
    let (entries, more) = entries(caller, number.clamp(1, PAGES_MAX)).await?;
    let count = match (entries.len(), more || number > 1) {
        (0, _) => String::new(),
        (count, false) => count.to_string(),
        (_, true) => format!("{ENTRIES}+"),
    };
    let list = (number > 0).then(|| Entries { entries }.render()).transpose();
    Ok(Fragments { count, list: list.map_err(|error| Answer::broken(&error))? })
}
