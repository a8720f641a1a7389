//! The replies of the caller's conversations that no client of theirs got yet.
//!
//! A reply counts as read once the API gave it to its person: as a message, in the stream of one, or in the list here. See
//! `channels::outbound::delivery`.

use crate::api::agents;
use crate::api::handler::{Caller, Reply};
use crate::channels::outbound::delivery;
use crate::registry;
use crate::sessions::store::{self, ScheduleRuns};
use crate::turns::items;
use crate::turns::rests_on::shown::shown;
use axum::Json;
use axum::extract::Path;
use ironclaw_contract::ids::{AgentId, PersonId};
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_operator::{ReadReplies, Speaker, UnreadReplies, UnreadReply};
use ironclaw_state::WriteTx;
use ironclaw_state::keys::WrappingKey;
use ironclaw_store::error::Error;
use ironclaw_store::tables::{deliveries, schedules};
use std::sync::Arc;

/// Replies in one answer.
const AT_ONCE_MAX: usize = 100;

/// `GET /v1/unread`: the number of unread replies of each conversation of the caller.
pub async fn counts(Caller { api, person, .. }: Caller) -> Reply<Vec<UnreadReplies>> {
    let read = move |tx: &ironclaw_state::ReadTx<'_>| {
        let mut all = Vec::new();
        for unseen in deliveries::unseen_by_session(tx, person.id)? {
            let Some(session) = store::find(tx, unseen.session)? else { continue };
            let agent = registry::agent_by_id(tx, session.agent)?;
            all.push(UnreadReplies {
                entry_type: "replies".to_owned(),
                agent: registry::name_or_id(agent.map(|agent| agent.name), session.agent),
                session_id: session.id,
                thread: Some(session.origin.thread_id).filter(|name| !name.is_empty()),
                count: unseen.count,
                newest_at: ironclaw_ledger::rfc3339(unseen.newest_at),
            });
        }
        Ok::<_, Error>(all)
    };
    api.read_replies.record().await?;
    Ok(Json(api.state().read(read).await?))
}

/// `POST /v1/agents/{agent}/unread`: the unread replies of the agent to the caller, the oldest first; at most 100. They count as read.
pub async fn read(Caller { api, person, .. }: Caller, Path(agent): Path<String>) -> Reply<ReadReplies> {
    let agent = agents::find(&api, &person, agent).await?.id;
    api.read_replies.record().await?;
    let record = Arc::clone(&api.record);
    let take = api.state().write(move |tx| take(tx, &record.wrapping, person.id, agent));
    Ok(Json(take.await?))
}

fn take(tx: &mut WriteTx<'_>, wrapping: &WrappingKey, person: PersonId, agent: AgentId) -> Result<ReadReplies, Error> {
    let now = tx.wall();
    let mut replies = Vec::new();
    let mut found = deliveries::unseen(tx, person, agent, AT_ONCE_MAX + 1)?;
    let more = found.len() > AT_ONCE_MAX;
    found.truncate(AT_ONCE_MAX);
    for unseen in found {
        deliveries::mark_seen(tx, unseen.id, now)?;
        let Some(sent) = unseen.sent() else { continue };
        let Some(session) = store::find(tx, sent.session)?.filter(|session| session.wrapped.is_some()) else {
            continue;
        };
        // The text may have been dropped since.
        let Some(item) = items::find(tx, sent.item)? else { continue };
        let key = session.content_key(wrapping)?;
        let text = delivery::text_of(tx, &item, &key)?;
        let author = if item.tuple.kind == ItemKind::Notice { Speaker::Host } else { Speaker::Agent };
        let shown_as = shown(tx, &session, &item, &key, &text)?.shown_as;
        replies.push(UnreadReply {
            session_id: session.id,
            thread: Some(session.origin.thread_id).filter(|name| !name.is_empty()),
            schedule: match sent.turn {
                Some(turn) if session.origin.runs != ScheduleRuns::None => schedules::name_for_turn(tx, turn)?,
                Some(_) | None => None,
            },
            at: ironclaw_ledger::rfc3339(item.tuple.issued_at),
            author,
            text,
            shown_as,
        });
    }
    Ok(ReadReplies { replies, more })
}
