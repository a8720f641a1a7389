//! The caller's conversations with an agent.
//!
//! Never shows the session of another person, and of a message only the first words, as the title. See `history` for the lines of one conversation.

use super::speaker;
use crate::api::agents;
use crate::api::handler::{Caller, Reply};
use crate::channels::inbound::channel::loopback;
use crate::sessions::store::{self, Origin, ScheduleRuns};
use crate::turns::items;
use axum::Json;
use axum::extract::{Path, Query};
use ironclaw_operator::{Thread, Threads};
use ironclaw_store::error::Error;
use serde::Deserialize;
use std::sync::Arc;

/// Conversations in one answer.
const THREADS_MAX: usize = 100;

/// Query of `GET /v1/agents/{agent}/threads`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ThreadsQuery {
    /// One of the caller's identities, as in a message.
    #[serde(default, rename = "as")]
    speak_as: Option<String>,
}

impl ThreadsQuery {
    /// Returns the query of the caller's own conversations.
    pub const fn own() -> Self {
        Self { speak_as: None }
    }
}

/// `GET /v1/agents/{agent}/threads?as=IDENTITY`: the caller's conversations with the agent, the last used first; at most 100.
pub async fn threads(
    Caller { api, person, .. }: Caller,
    Path(agent): Path<String>,
    Query(query): Query<ThreadsQuery>,
) -> Reply<Threads> {
    let agent = agents::find(&api, &person, agent).await?;
    let address = speaker(&api, &person, query.speak_as).await?;
    let record = Arc::clone(&api.record);
    let read = move |tx: &ironclaw_state::ReadTx<'_>| {
        let mut own = store::list_for_agent(tx, agent.id)?;
        // A person does not write into the runs of schedules.
        let is_chat = |origin: &Origin| origin.channel == loopback::NAME && origin.runs == ScheduleRuns::None;
        own.retain(|session| is_chat(&session.origin) && session.origin.platform_id == address);
        own.sort_by_key(|session| std::cmp::Reverse((session.last_active_at, session.id)));
        let more = own.len() > THREADS_MAX;
        own.truncate(THREADS_MAX);
        let titled = own.into_iter().map(|session| Ok((items::title(tx, &session, &record.wrapping)?, session)));
        Ok::<_, Error>((titled.collect::<Result<Vec<_>, Error>>()?, more))
    };
    let (own, more) = api.record.state.read(read).await?;
    Ok(Json(Threads { threads: own.into_iter().map(|(title, session)| view(title, session)).collect(), more }))
}

fn view(title: Option<String>, session: store::Session) -> Thread {
    Thread {
        title,
        thread: Some(session.origin.thread_id).filter(|name| !name.is_empty()),
        session_id: session.id,
        last_active_at: ironclaw_ledger::rfc3339(session.last_active_at),
    }
}
