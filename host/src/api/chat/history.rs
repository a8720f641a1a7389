//! The caller's conversation with an agent, line by line.
//!
//! Never shows results of tools, summaries, or output that was not delivered. See `channels::outbound::delivery`.

use super::{speaker, thread};
use crate::api::agents;
use crate::api::handler::{Caller, Reply};
use crate::channels::inbound::channel::loopback;
use crate::channels::outbound::delivery;
use crate::sessions::store::{self, Origin};
use crate::turns::items;
use crate::turns::rests_on::shown::shown;
use axum::Json;
use axum::extract::{Path, Query};
use ironclaw_contract::seam::message::Author;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_operator::{History, HistoryLine, Speaker};
use ironclaw_store::error::Error;
use serde::Deserialize;
use std::sync::Arc;

/// Lines of history in one answer.
const HISTORY_MAX: usize = 500;

/// Query of `GET /v1/agents/{agent}/history`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct HistoryQuery {
    /// The number of lines, the newest ones; at most 500, by default 50.
    #[serde(default = "usual_limit")]
    #[cfg_attr(test, schema(required = false))]
    limit: usize,
    /// One of the caller's identities, as in a message.
    #[serde(default, rename = "as")]
    speak_as: Option<String>,
    /// One of the caller's conversations with the agent, as in a message.
    #[serde(default)]
    thread: Option<String>,
}

const fn usual_limit() -> usize {
    50
}

/// `GET /v1/agents/{agent}/history?limit=N&thread=NAME`: the caller's conversation with the agent.
pub async fn history(
    Caller { api, person, .. }: Caller,
    Path(agent): Path<String>,
    Query(query): Query<HistoryQuery>,
) -> Reply<History> {
    let agent = agents::find(&api, &person, agent).await?;
    let (platform_id, thread_id) = (speaker(&api, &person, query.speak_as).await?, thread(query.thread)?);
    let origin = Origin::from_sender(loopback::NAME.to_owned(), platform_id, thread_id);
    let record = Arc::clone(&api.record);
    let found = api
        .record
        .state
        .read(move |tx| {
            let Some(session) = store::find_by_origin(tx, agent.id, &origin)? else {
                return Ok(History { lines: Vec::new(), more: false });
            };
            let key = session.keys(&record.wrapping)?.content;
            let received = delivery::received_of(tx, session.id)?;
            let mut lines = Vec::new();
            let read_max = query.limit.min(HISTORY_MAX) * 4;
            let items = items::last(tx, session.id, read_max)?;
            let is_cut = items.len() >= read_max;
            for item in items {
                // The output of an interrupted turn was never sent.
                if item.tuple.kind != ItemKind::Message && !received.contains(&item.tuple.item) {
                    continue;
                }
                let author = match item.tuple.kind {
                    ItemKind::Message if is_of_host(&item) => continue,
                    ItemKind::Message => Speaker::Person,
                    ItemKind::Output => Speaker::Agent,
                    ItemKind::Notice => Speaker::Host,
                    ItemKind::Result | ItemKind::Summary => continue,
                };
                let text = delivery::text_of(tx, &item, &key)?;
                if !text.is_empty() {
                    let at = ironclaw_ledger::rfc3339(item.tuple.issued_at);
                    let shown_as = shown(tx, &session, &item, &key, &text)?.shown_as;
                    lines.push(HistoryLine { at, author, text, shown_as });
                }
            }
            let skip = lines.len().saturating_sub(query.limit.min(HISTORY_MAX));
            Ok::<_, Error>(History { lines: lines.split_off(skip), more: is_cut || skip > 0 })
        })
        .await?;
    Ok(Json(found))
}

/// Returns whether a message is from the host. An answer to a question also has words of the host, and is from its person.
fn is_of_host(item: &items::Recorded) -> bool {
    let spans = item.spans();
    let has = |author: &Author| spans.iter().any(|span| span.author == *author);
    has(&Author::Host) && !has(&Author::Model)
}
