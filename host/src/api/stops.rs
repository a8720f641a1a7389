//! Cancelling a turn and the emergency stop, over the API.
//!
//! Only passes requests on. See `emergency_stop`, `runtime::cancel`.

use super::handler::{Caller, Reply};
use super::sessions;
use crate::runtime::command::Command;
use axum::Json;
use axum::extract::Path;
use ironclaw_operator::{Cancelled, Panicked, Resumed, Stopped};

/// `POST /v1/sessions/{id}/cancel`: ends the open turn, or the next one if none is open; a member only their own.
pub async fn cancel(Caller { api, person, .. }: Caller, Path(session): Path<String>) -> Reply<Cancelled> {
    let id = sessions::known(&api, &person, &session).await?;
    let cancelled = api.sessions.ask(id, |done| Command::Cancel(person, done)).await??;
    Ok(Json(Cancelled {
        session_id: id,
        turn_id: cancelled.turn,
        messages: cancelled.messages,
        running: cancelled.running,
    }))
}

/// `POST /v1/panic`: ends the processes of every agent, and lets none start until [`resume`].
pub async fn panic(caller: Caller) -> Reply<Panicked> {
    let panicked = caller.api.stops.panic(&caller.signer()).await?;
    Ok(Json(Panicked {
        stopped: Stopped { since: ironclaw_ledger::rfc3339(panicked.stopped.at), by: panicked.stopped.by },
        sessions: panicked.sessions as u64,
        gone: panicked.gone,
    }))
}

/// `POST /v1/resume`
pub async fn resume(caller: Caller) -> Reply<Resumed> {
    let resumed = caller.api.stops.resume(&caller.signer()).await?;
    Ok(Json(Resumed { resumed }))
}
