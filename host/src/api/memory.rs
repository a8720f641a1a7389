//! The memory of an agent over the API: list, search, add, remove.
//!
//! A note may contain words of any person, so only operators read it. See `turns::memories`.

use super::agents;
use super::handler::{Answer, Body, Caller, Reply};
use super::named::id;
use crate::turns::memories::{self, Kept, NewMemory};
use axum::Json;
use axum::extract::{Path, Query};
use ironclaw_contract::ids::MemoryId;
use ironclaw_contract::seam::message::Author;
use ironclaw_judge::provenance::{Labelled, Provenance};
use ironclaw_operator::DenialCode;
use ironclaw_operator::{NewNote, Note, Notes};
use ironclaw_store::refusal::{Decide, Denied};
use serde::Deserialize;

/// Notes in one answer.
const NOTES_AT_ONCE: usize = 200;

/// Query of `GET /v1/agents/{agent}/memory`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct NotesQuery {
    /// Words of a note; without them, the newest notes.
    #[serde(default)]
    query: Option<String>,
}

/// `GET /v1/agents/{agent}/memory?query=WORDS`: the newest notes, or the best matches.
pub async fn list(
    Caller { api, person, .. }: Caller,
    Path(agent): Path<String>,
    Query(asked): Query<NotesQuery>,
) -> Reply<Notes> {
    let agent = agents::find(&api, &person, agent).await?.id;
    // One more than the limit shows if there are more.
    let notes = api.record.state.search(memories::SEARCH_TIME_MAX, move |tx| match &asked.query {
        Some(query) => {
            let found = memories::search(tx, agent, query, NOTES_AT_ONCE + 1)?;
            memories::notes(tx, agent, &found)
        }
        None => memories::list(tx, agent, NOTES_AT_ONCE + 1),
    });
    let mut notes = notes.await?;
    let more = notes.len() > NOTES_AT_ONCE;
    notes.truncate(NOTES_AT_ONCE);
    Ok(Json(Notes { notes: notes.into_iter().map(shown).collect(), more }))
}

/// `POST /v1/agents/{agent}/memory`: a note by the caller.
pub async fn add(
    Caller { api, person, .. }: Caller,
    Path(agent): Path<String>,
    Body(new): Body<NewNote>,
) -> Reply<Note> {
    let agent = agents::find(&api, &person, agent).await?.id;
    let draft = NewMemory {
        author: Author::Person { person: person.id },
        principal: person.id,
        source: None,
        text: Labelled::new(new.text, Provenance::Person),
    };
    let kept = api.record.state.decide(move |tx| {
        let (Kept::New(kept) | Kept::Existing(kept)) = memories::keep(tx, agent, draft)?;
        Ok::<_, Denied>(memories::find(tx, agent, kept)?)
    });
    let missing = || {
        Answer::from(ironclaw_store::refusal::Refusal::new(DenialCode::NoteUnknown, "the note was removed meanwhile"))
    };
    Ok(Json(shown(kept.await?.ok_or_else(missing)?)))
}

/// `DELETE /v1/agents/{agent}/memory/{id}`
pub async fn forget(Caller { api, person, .. }: Caller, Path((agent, note)): Path<(String, String)>) -> Reply<Note> {
    let agent = agents::find(&api, &person, agent).await?.id;
    let id: MemoryId = id(&note, DenialCode::NoteUnknown, "note")?;
    if api.record.state.read(move |tx| memories::find(tx, agent, id)).await?.is_some() {
        // Before the erasure: after a crash in between, no snapshot has an erased note.
        api.record.forget_snapshots().await?;
    }
    let forgotten = api.record.state.decide(move |tx| {
        let before = memories::find(tx, agent, id)?;
        memories::forget(tx, agent, id, person.id)?;
        Ok::<_, Denied>(before)
    });
    let missing = || {
        Answer::from(ironclaw_store::refusal::Refusal::new(DenialCode::NoteUnknown, format!("there is no note {id}")))
    };
    let forgotten = forgotten.await?.ok_or_else(missing)?;
    Ok(Json(shown(forgotten)))
}

fn shown(note: memories::Note) -> Note {
    Note {
        id: note.id,
        at: ironclaw_ledger::rfc3339(note.created_at),
        author: crate::turns::rests_on::author(&note.author),
        principal: note.principal,
        session_id: note.session,
        labels: note.labels.list(),
        text: note.text,
    }
}
