//! The stream of a message: its stages, the partial answer, the progress of its calls, the approval requests of its turn, then the
//! message.
//!
//! Stages, requests and messages come from the record. A client that decides counts as present while its stream is open,
//! until the host stops. See [`crate::gateway::waiting::Presence`].

use super::super::auth::{Current, check_still_valid};
use super::super::handler::{Answer, Api, Caller};
use super::super::streaming::{PartialOutput, ProgressOfCalls};
use super::super::waiting::calls_for_message;
use super::waiting::{settled, with_wait_reason};
use super::{mark_read, own_message, read_view};
use crate::registry::Person;
use axum::extract::{Path, Query};
use axum::response::sse::{Event, KeepAlive, Sse};
use ironclaw_contract::ids::MessageId;
use ironclaw_contract::seam::message::Status;
use ironclaw_operator::{DenialCode, Draft, MessageView, Stage, Waiting};
use ironclaw_state::Committed;
use ironclaw_store::refusal::Refusal;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::broadcast::error::RecvError;

/// Query of `GET /v1/messages/{id}/events`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Follow {
    /// True for a client that shows the page of a call that waits and sends the decision of its person. The call then waits for it.
    #[serde(default)]
    decides: bool,
}

/// `GET /v1/messages/{id}/events?decides=B`: each stage, the message as `waiting` when its wait has another reason, the partial answer, the
/// progress of calls of MCP servers, then the message.
pub async fn events(
    Caller { api, person, current, .. }: Caller,
    Path(message): Path<String>,
    Query(query): Query<Follow>,
) -> Result<Sse<impl futures_core::Stream<Item = Result<Event, Infallible>>>, Answer> {
    let found = own_message(&api, &person, &message).await?;
    let present = query.decides.then(|| api.gateway.presence.enter(found.id, person.id));
    let id = found.id;
    let (sender, receiver) = tokio::sync::mpsc::channel(16);
    tokio::spawn(async move {
        // Ends when the client disconnects, the token ends, the host stops, or it cannot read.
        let _ = follow(&api, id, &person, &current, &sender).await;
        drop(present);
    });
    Ok(Sse::new(tokio_stream::wrappers::ReceiverStream::new(receiver)).keep_alive(KeepAlive::default()))
}

type EventSender = tokio::sync::mpsc::Sender<Result<Event, Infallible>>;

async fn follow(api: &Api, id: MessageId, person: &Person, current: &Current, to: &EventSender) -> Result<(), Answer> {
    let mut changed = api.gateway.watch();
    let mut events = api.record.state.events();
    let mut shortages = api.sessions.shortages();
    let (mut shown, mut last, mut said) = (Vec::new(), None, None);
    let mut words: Option<PartialOutput> = None;
    let mut progress = ProgressOfCalls::new(api.sessions.call_progress());
    let mut gone = std::pin::pin!(gone(api, to));
    loop {
        let stages = stages(api, id, last).await?;
        for stage in stages {
            last = Some(stage.seq);
            send_event(api, current, to, "stage", stage).await?;
        }
        let view = read_view(api, id).await?;
        changed.mark_unchanged();
        for request in requests_of(api, person, &view).await? {
            let told = (request.entry.id, request.entry.status);
            if !shown.contains(&told) {
                shown.push(told);
                send_event(api, current, to, "request", request).await?;
            }
        }
        if settled(&view) {
            // Before the event, after which the client may ask for unread replies.
            if !to.is_closed() {
                mark_read(api, &view).await?;
            }
            return send_event(api, current, to, "message", view).await;
        }
        let view = with_wait_reason(api, view);
        if view.reason != said {
            said.clone_from(&view.reason);
            send_event(api, current, to, "waiting", &view).await?;
        }
        check_still_valid(api, current).await?;
        follow_output(api, &view, &mut words);
        loop {
            tokio::select! {
                // A stage comes before the words that the model wrote after it.
                biased;
                event = events.recv() => match event {
                    Ok(event) if !concerns(&event, &view) => {}
                    Ok(_) | Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return Ok(()),
                },
                draft = next_draft(&mut words) => send_event(api, current, to, "draft", draft).await?,
                progress = progress.next(view.turn_id) => send_event(api, current, to, "progress", progress).await?,
                Ok(()) = shortages.changed() => break,
                Ok(()) = changed.changed() => break,
                () = &mut gone => return Ok(()),
            }
        }
    }
}

/// Waits until the client leaves, or until the host has stopped its sessions.
async fn gone(api: &Api, to: &EventSender) {
    tokio::select! {
        () = to.closed() => {}
        () = api.about.shutdown.over() => {}
    }
}

/// Returns the approval requests of the message that this person may see.
async fn requests_of(api: &Api, person: &Person, view: &MessageView) -> Result<Vec<Waiting>, Answer> {
    let (all, person, view) = (Arc::clone(&api.gateway), person.clone(), view.clone());
    Ok(api.state().read_committed(move |tx| calls_for_message(tx, &all, &person, &view)).await?)
}

/// Returns true if an event may change the view of this message.
fn concerns(event: &Committed, view: &MessageView) -> bool {
    event.session.is_none_or(|session| session == view.session_id)
}

/// Follows the partial output of the turn that works on the message, once there is some.
fn follow_output(api: &Api, view: &MessageView, words: &mut Option<PartialOutput>) {
    let Some(turn) = view.turn_id.filter(|_| view.status == Status::Processing) else { return };
    if words.as_ref().is_none_or(|words| words.turn != turn) {
        let watched = api.sessions.words(view.session_id, turn);
        *words = watched.map(|watched| PartialOutput::new(turn, watched));
    }
}

async fn next_draft(words: &mut Option<PartialOutput>) -> Draft {
    match words {
        Some(words) => words.next().await,
        None => std::future::pending().await,
    }
}

/// Sends one event, unless the token ended before the channel had room for it.
async fn send_event(
    api: &Api,
    current: &Current,
    to: &EventSender,
    name: &str,
    what: impl Serialize,
) -> Result<(), Answer> {
    let gone = || Answer::from(Refusal::new(DenialCode::ListenerGone, "the listener is gone"));
    let room = to.reserve().await.map_err(|_| gone())?;
    check_still_valid(api, current).await?;
    room.send(Ok(Event::default().event(name).json_data(what).map_err(|_| gone())?));
    Ok(())
}

pub(super) async fn stages(api: &Api, id: MessageId, after: Option<u64>) -> Result<Vec<Stage>, Answer> {
    let home = api.about.home.clone();
    Ok(api.record.state.read_committed(move |tx| ironclaw_ledger::stages(tx, &home, id, after)).await?)
}
