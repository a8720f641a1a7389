//! The last replies of a session, with what each rests on, for its person and for operators.
//!
//! A read of another person's conversation leaves a ledger entry, as one of the transcript does. See [`crate::turns::rests_on`].

use super::handler::{Answer, Caller, Reply};
use super::{sessions, transcript};
use crate::channels::outbound::delivery;
use crate::sessions::store::{self, Session};
use crate::turns::items;
use crate::turns::rests_on::{self, shown::shown};
use axum::Json;
use axum::extract::{Path, Query};
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_operator::{SessionReplies, SessionReply};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::error::Error;
use ironclaw_store::tables;
use serde::Deserialize;
use std::sync::Arc;

/// The bound on replies in one answer.
const REPLIES_MAX: usize = 20;

/// The newest items of a session among which its replies are found.
const ITEMS_READ_MAX: usize = 400;

/// Query of `GET /v1/sessions/{id}/replies`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct LastReplies {
    /// The number of replies, the newest ones; at most 20. Default: 5.
    #[serde(default = "usual_number")]
    #[cfg_attr(test, schema(required = false))]
    last: usize,
}

const fn usual_number() -> usize {
    5
}

/// `GET /v1/sessions/{id}/replies?last=N`
pub async fn list(
    Caller { api, person, .. }: Caller,
    Path(session): Path<String>,
    Query(query): Query<LastReplies>,
) -> Reply<SessionReplies> {
    let id = sessions::known(&api, &person, &session).await?;
    let (record, by) = (Arc::clone(&api.record), person.id);
    let read = move |tx: &ReadTx<'_>| {
        let Some((session, others)) = transcript::readable(tx, &person, id)? else { return Ok::<_, Error>(None) };
        let key = session.content_key(&record.wrapping)?;
        Ok(Some((replies(tx, &session, &key, query.last.min(REPLIES_MAX))?, others)))
    };
    let found = api.record.state.read(read).await?;
    let (replies, others) = found.ok_or_else(|| Answer::noted(store::unknown(&session)))?;
    if others {
        transcript::note(&api, id, by).await?;
    }
    Ok(Json(replies))
}

fn replies(tx: &ReadTx<'_>, session: &Session, key: &ContentKey, last: usize) -> Result<SessionReplies, Error> {
    let mut replies = Vec::new();
    for item in items::last(tx, session.id, ITEMS_READ_MAX)?.iter().rev() {
        if replies.len() >= last {
            break;
        }
        // An output without a delivery is no reply.
        if item.tuple.kind != ItemKind::Output || tables::items::delivery_state(tx, item.tuple.item)?.is_none() {
            continue;
        }
        let reply = delivery::text_of(tx, item, key)?;
        replies.push(SessionReply {
            item: item.tuple.item,
            seq: item.tuple.seq,
            at: ironclaw_ledger::rfc3339(item.tuple.issued_at),
            turn_id: item.tuple.turn,
            shown: shown(tx, session, item, key, &reply)?,
            sources: rests_on::sources(tx, session, item, key)?,
            reply,
        });
    }
    replies.reverse();
    Ok(SessionReplies { session_id: session.id, replies })
}
