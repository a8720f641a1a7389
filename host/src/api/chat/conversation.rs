//! The session of the caller's conversation with an agent, for requests about its files.
//!
//! Records no message. See `pipeline::Inbound`.

use super::{received, speaker, thread};
use crate::api::agents;
use crate::api::handler::{Answer, Body, Caller, Reply};
use crate::channels::inbound::channel::loopback;
use crate::sessions::store::{self, Origin};
use axum::Json;
use axum::extract::{Path, Query};
use ironclaw_operator::{Conversation, DenialCode, NewConversation, NewMessage};
use ironclaw_store::refusal::Refusal;
use serde::Deserialize;

/// Query of `GET /v1/agents/{agent}/session`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ConversationQuery {
    /// One of the caller's identities, as in a message.
    #[serde(default, rename = "as")]
    speak_as: Option<String>,
    /// One of the caller's conversations with the agent, as in a message.
    #[serde(default)]
    thread: Option<String>,
}

/// `GET /v1/agents/{agent}/session?thread=NAME`
pub async fn find(
    Caller { api, person, .. }: Caller,
    Path(agent): Path<String>,
    Query(query): Query<ConversationQuery>,
) -> Reply<Conversation> {
    let agent = agents::find(&api, &person, agent).await?;
    let (platform_id, thread_id) = (speaker(&api, &person, query.speak_as).await?, thread(query.thread)?);
    let origin = Origin::from_sender(loopback::NAME.to_owned(), platform_id, thread_id);
    let found = api.record.state.read(move |tx| store::find_by_origin(tx, agent.id, &origin)).await?;
    let none = || {
        let words = format!("you have no such conversation with agent {}", agent.name);
        let hint = format!("begin it with `ironctl chat {}`; --thread names another conversation", agent.name);
        Answer::from(Refusal::new(DenialCode::SessionUnknown, words).hint(hint))
    };
    Ok(Json(Conversation { session_id: found.ok_or_else(none)?.id }))
}

/// `POST /v1/agents/{agent}/session`: for files that come before the first message.
pub async fn open(
    Caller { api, person, .. }: Caller,
    Path(agent): Path<String>,
    Body(new): Body<NewConversation>,
) -> Reply<Conversation> {
    let NewConversation { speak_as, thread } = new;
    let message = NewMessage { speak_as, thread, ..NewMessage::default() };
    let origin = received(&api, &person, agent, message).await?;
    Ok(Json(Conversation { session_id: api.inbound.session_of(origin).await.map_err(Answer::denied)? }))
}
