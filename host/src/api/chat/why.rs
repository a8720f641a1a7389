//! The outcome of a message, and its reason.
//!
//! Never shows a message of another person. See `api::forgotten` for a message without a row.

use super::awaited;
use super::follow::stages;
use super::reasoning;
use super::waiting::with_wait_reason;
use super::{own, read_view, sources};
use crate::api::forgotten;
use crate::api::handler::{Answer, Api, Caller, Reply};
use crate::api::schedules;
use crate::api::status;
use crate::channels::agent_messages::chain;
use crate::registry::{Person, Role};
use crate::turns::{endpoint_words, turn};
use axum::Json;
use axum::extract::Path;
use ironclaw_contract::seam::message::Status;
use ironclaw_contract::seam::outbound::Progress;
use ironclaw_operator::{ChainLink, EndpointWords, MessageView, ModelFailure, Receipt, Stage, Why};
use std::sync::Arc;

/// The sentence about an answer with a call as text.
const WRITTEN_CALL: &str = "The model wrote a call of a tool as text, so nothing ran: give the agent another model, or let the server \
     of this model read calls (`--jinja` for llama.cpp, `--enable-auto-tool-choice` for vLLM).";

/// `GET /v1/messages/{id}/why`; `last` is the caller's newest message.
pub async fn why(Caller { api, person, .. }: Caller, Path(message): Path<String>) -> Reply<Why> {
    let id = match own(&api, &person, &message).await {
        Ok(id) => id,
        Err(unknown) => return forgotten::why(&api, &person, &message).await?.map(Json).ok_or(unknown),
    };
    let mut view = with_wait_reason(&api, read_view(&api, id).await?);
    view.sources = sources(&api, &view).await?;
    let stages = stages(&api, id, None).await?;
    let failure = failure(&api, &view).await?;
    let has_written_call = reasoning::has_written_call(&api, id).await?;
    let words = words(&api, &person, &view).await?;
    let in_line = status::queue_position(&api, view.session_id);
    let summary = match in_line.filter(|_| view.status == Status::Queued) {
        Some(in_line) => format!("Its session is waiting {in_line}."),
        None => {
            let (seen, told) = (view.clone(), stages.clone());
            let awaited = api.record.state.read_committed(move |tx| awaited::words(tx, &person, &seen, &told));
            let summary = awaited.await?.unwrap_or_else(|| sum_up(&view, &stages, failure.as_ref()));
            if has_written_call { format!("{summary} {WRITTEN_CALL}") } else { summary }
        }
    };
    let progress = progress(&api, &view);
    let occurrence = api.state().read(move |tx| schedules::occurrence_for_message(tx, id)).await;
    let occurrence = occurrence.map_err(|error: ironclaw_state::Error| Answer::from(error))?;
    let chain = api.state().read(move |tx| chain::links(tx, id)).await;
    let chain = chain.map_err(|error: ironclaw_state::Error| Answer::from(error))?.into_iter().map(link).collect();
    Ok(Json(Why { message: view, stages, progress, failure, words, occurrence, chain, has_written_call, summary }))
}

fn link(link: chain::Link) -> ChainLink {
    ChainLink { session: link.session, agent: link.agent, message: link.message, hop: link.hop }
}

/// Returns the reason for a notice in place of the model's output.
async fn failure(api: &Api, view: &MessageView) -> Result<Option<ModelFailure>, Answer> {
    let Some(turn) = view.turn_id.filter(|_| view.notice) else { return Ok(None) };
    let found = api.state().read(move |tx| turn::coded_failure(tx, turn)).await?;
    Ok(found.map(|failure| ModelFailure { code: failure.code, message: failure.words }))
}

/// Returns the words of the endpoints that gave no answer in the turn of a message; none for a member.
async fn words(api: &Api, person: &Person, view: &MessageView) -> Result<Vec<EndpointWords>, Answer> {
    let Some(turn) = view.turn_id.filter(|_| person.role.covers(Role::Admin)) else { return Ok(Vec::new()) };
    let record = Arc::clone(&api.record);
    Ok(api.state().read(move |tx| endpoint_words::for_turn(tx, &record.wrapping, turn)).await?)
}

/// Returns the progress notes of the sandbox about this message, verbatim.
fn progress(api: &Api, view: &MessageView) -> Vec<String> {
    let shown = api.sessions.shown(view.session_id);
    let says = |note: &Progress| {
        // The turn of a notice counts as completed, which would seem to contradict the notice.
        if view.notice {
            return None;
        }
        let is_about = note.message.parse() == Ok(view.message_id);
        is_about.then(|| format!("{} {} at {}", note.message, note.status, ironclaw_ledger::rfc3339(note.at)))
    };
    shown.map(|shown| shown.progress.iter().filter_map(says).collect()).unwrap_or_default()
}

fn sum_up(view: &MessageView, stages: &[Stage], failure: Option<&ModelFailure>) -> String {
    let last = stages.last().map_or("recorded", |stage| stage.stage.as_str());
    match (view.status, &view.reason, view.notice) {
        (_, Some(reason), _) => format!("{} waits: {reason}", view.message_id),
        (Status::Delivered, None, false) => "The message was answered, and the answer was delivered.".to_owned(),
        (Status::Delivered, None, true) => match (failure, &view.reply) {
            (Some(failure), _) => format!("The agent gave no answer: {} ({}).", failure.message, failure.code),
            (None, Some(notice)) => format!("The agent gave no answer; the host says: {notice}"),
            (None, None) => "The agent gave no answer; the host's notice says why.".to_owned(),
        },
        (Status::Completed, None, _) if view.receipt == Receipt::Unknown => {
            "The message was answered. It is unknown if the answer arrived, and the host does not send it again by itself.".to_owned()
        }
        (Status::Completed, None, _) if view.receipt == Receipt::Dead => {
            "The message was answered, but the answer could not be delivered. `ironctl delivery list` shows the reason.".to_owned()
        }
        (Status::Completed, None, _) if view.receipt == Receipt::Dropped => {
            "The message was answered. The answer could not be delivered, and an operator dropped it.".to_owned()
        }
        (Status::Completed, None, _) => format!("The message was answered, and the answer is on its way (receipt {}).", view.receipt),
        (Status::Processing, None, _) => format!("The agent is working on it; the last stage was {last}."),
        _ => format!("The message waits for its turn; the last stage was {last}."),
    }
}
