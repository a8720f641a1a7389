//! The messages of the caller: send, show, wait, retry.
//!
//! Records nothing itself. See [`super::waiting`] for the wait.

pub use super::waiting::Wait;

use super::waiting;
use super::{mark_read, own, received, recorded, sources};
use crate::api::attachments;
use crate::api::handler::{Answer, Body, Caller, Reply};
use crate::api::named::id;
use crate::channels::inbound::channel::checks::check_files;
use crate::registry::Role;
use crate::runtime::pipeline::Confirmation;
use axum::Json;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use ironclaw_operator::{DenialCode, MessageView, NewMessage, Recorded};

/// `POST /v1/agents/{agent}/messages?wait_ms=N`
pub async fn send(
    Caller { api, person, current, .. }: Caller,
    Path(agent): Path<String>,
    Query(wait): Query<Wait>,
    Body(new): Body<NewMessage>,
) -> Result<(StatusCode, Json<Recorded>), Answer> {
    check_files(&new.files)?;
    let received = received(&api, &person, agent, new).await?;
    let received = attachments::place(&api.inbound, &api.sessions, received).await.map_err(Answer::denied)?;
    let mut recorded = match wait.is_none() {
        true => recorded(api.inbound.inbound(received, Confirmation::AtOnce).await.map_err(Answer::denied)?),
        false => waiting::record_and_wait(&api, received, &person, &current, &wait).await?,
    };
    if let Some(view) = &mut recorded.message {
        mark_read(&api, view).await?;
        if wait.sources {
            view.sources = sources(&api, view).await?;
        }
    }
    Ok((StatusCode::ACCEPTED, Json(recorded)))
}

/// `GET /v1/messages/{id}?wait_ms=N&sources=true`
pub async fn message(
    Caller { api, person, current, .. }: Caller,
    Path(message): Path<String>,
    Query(wait): Query<Wait>,
) -> Reply<MessageView> {
    let mut view = waiting::wait_for(&api, &person, &current, &message, &wait).await?;
    mark_read(&api, &view).await?;
    if wait.sources {
        view.sources = sources(&api, &view).await?;
    }
    Ok(Json(view))
}

/// `POST /v1/messages/{id}/retry`; a member only their own.
pub async fn retry(
    Caller { api, person, .. }: Caller,
    Path(message): Path<String>,
) -> Result<(StatusCode, Json<Recorded>), Answer> {
    let id = match person.role {
        Role::Owner | Role::Admin if message != "last" => id(&message, DenialCode::MessageUnknown, "message")?,
        Role::Owner | Role::Admin | Role::Member => own(&api, &person, &message).await?,
    };
    Ok((StatusCode::ACCEPTED, Json(recorded(api.inbound.retry(id, person).await?))))
}
