//! The transcript of a session, for its person and for operators.
//!
//! Never shows an item without its author and labels. A read of another person's conversation leaves a ledger entry. See `turns::items`.

use super::handler::{Answer, Api, Caller, Reply};
use super::sessions;
use crate::channels::inbound::inbox;
use crate::channels::outbound::delivery;
use crate::registry::{self, Person};
use crate::sessions::store::{self, Session};
use crate::turns::calls::{self, ResultBody};
use crate::turns::context::OutputBody;
use crate::turns::items::{self, Recorded};
use crate::turns::rests_on::author;
use axum::Json;
use axum::extract::{Path, Query};
use ironclaw_contract::ids::{PersonId, SessionId};
use ironclaw_contract::seam::message::Author;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_ledger::Entry;
use ironclaw_operator::{
    CallState, LedgerEvent, Receipt, Speaker, Transcript, TranscriptCall, TranscriptItem, TranscriptSpan,
};
use ironclaw_state::keys::ContentKey;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::tables;
use serde::Deserialize;
use std::sync::Arc;

/// Items in one answer.
const ITEMS_AT_ONCE: usize = 200;

/// Bytes of text in one answer, unless one item alone has more.
const BYTES_AT_ONCE: u64 = 1 << 20;

/// Query of `GET /v1/sessions/{id}/transcript`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Page {
    /// The number of the item before the first one.
    #[serde(default)]
    after_seq: u64,
    /// The last items, up to this number, in place of a page.
    last: Option<usize>,
    /// With `last`: the number of the item after them.
    before: Option<u64>,
}

impl Page {
    /// Returns the page of the last items, or of the last ones before a number.
    pub(super) const fn last(count: usize, before: Option<u64>) -> Self {
        Self { after_seq: 0, last: Some(count), before }
    }
}

/// `GET /v1/sessions/{id}/transcript?after_seq=N` or `?last=N&before=N`
pub async fn show(caller: Caller, Path(session): Path<String>, Query(page): Query<Page>) -> Reply<Transcript> {
    let id = sessions::known(&caller.api, &caller.person, &session).await?;
    Ok(Json(shown(&caller, id, page).await?))
}

/// Returns a page of a session for a person who may read it.
pub(super) async fn shown(caller: &Caller, id: SessionId, page: Page) -> Result<Transcript, Answer> {
    let (record, person, by) = (Arc::clone(&caller.api.record), caller.person.clone(), caller.person.id);
    let read = move |tx: &ReadTx<'_>| {
        let Some((session, others)) = readable(tx, &person, id)? else { return Ok::<_, Error>(None) };
        let key = session.content_key(&record.wrapping)?;
        Ok(Some((transcript(tx, &session, &key, &page)?, others)))
    };
    let found = caller.api.record.state.read(read).await?;
    let (transcript, others) = found.ok_or_else(|| Answer::noted(store::unknown(id)))?;
    if others {
        note(&caller.api, id, by).await?;
    }
    Ok(transcript)
}

/// Records that a person read another person's session.
pub(super) async fn note(api: &Api, id: SessionId, by: PersonId) -> Result<(), Answer> {
    let note =
        move |tx: &mut WriteTx<'_>| Entry::new(LedgerEvent::TranscriptRead).session(id).with("by", by).append(tx);
    api.record.state.write(note).await?;
    Ok(())
}

/// Returns a session that a person may read, and whether it is another person's.
pub(super) fn readable(tx: &ReadTx<'_>, person: &Person, id: SessionId) -> Result<Option<(Session, bool)>, Error> {
    let Some(session) = store::find_seen_by(tx, person, id)? else { return Ok(None) };
    let others = store::find_own(tx, person.id, id)?.is_none();
    Ok(Some((session, others)))
}

fn transcript(tx: &ReadTx<'_>, session: &Session, key: &ContentKey, page: &Page) -> Result<Transcript, Error> {
    let mut found = match (page.last, page.before) {
        (Some(last), Some(seq)) => items::before(tx, session.id, seq, last.min(ITEMS_AT_ONCE))?,
        (Some(last), None) => items::last(tx, session.id, last.min(ITEMS_AT_ONCE))?,
        (None, _) => items::after(tx, session.id, page.after_seq, ITEMS_AT_ONCE + 1)?,
    };
    let mut more = found.len() > ITEMS_AT_ONCE;
    found.truncate(ITEMS_AT_ONCE);
    let mut shown = Vec::with_capacity(found.len());
    let mut bytes = 0;
    for item in &found {
        bytes += item.bytes;
        if bytes > BYTES_AT_ONCE && !shown.is_empty() && page.last.is_none() {
            more = true;
            break;
        }
        shown.push(described(tx, item, key)?);
    }
    let agent = registry::agent_by_id(tx, session.agent)?;
    let agent = registry::name_or_id(agent.map(|agent| agent.name), session.agent);
    Ok(Transcript { session_id: session.id, agent, items: shown, more })
}

fn described(tx: &ReadTx<'_>, item: &Recorded, key: &ContentKey) -> Result<TranscriptItem, Error> {
    let tuple = &item.tuple;
    let body = items::body(tx, item, key)?;
    let mut shown = TranscriptItem {
        id: tuple.item,
        seq: tuple.seq,
        kind: tuple.kind,
        speaker: item.spans().first().map_or(Speaker::Host, |span| speaker(&span.author)),
        at: ironclaw_ledger::rfc3339(tuple.issued_at),
        turn_id: tuple.turn,
        spans: Vec::new(),
        labels: tuple.labels.clone(),
        text: String::new(),
        digest: tuple.digest.to_string(),
        calls: Vec::new(),
        call_id: tuple.call,
        tool: tuple.tool.clone(),
        ok: None,
        receipt: None,
        covers: None,
    };
    fill(tx, item, body, &mut shown)?;
    // A body with structure belongs to one author as a whole.
    let whole = matches!(tuple.kind, ItemKind::Output | ItemKind::Result);
    let span = |span: ironclaw_contract::seam::message::Span| TranscriptSpan {
        author: author(&span.author),
        bytes: if whole { shown.text.len() } else { span.bytes },
    };
    shown.spans = item.spans().into_iter().map(span).collect();
    Ok(shown)
}

/// Returns the side that an author is on.
const fn speaker(author: &Author) -> Speaker {
    match author {
        Author::Person { .. } | Author::Quoted | Author::File { .. } => Speaker::Person,
        Author::Model | Author::Agent { .. } => Speaker::Agent,
        Author::Tool { .. } | Author::Host => Speaker::Host,
    }
}

/// Fills in the text of an item and the other fields of its kind.
fn fill(tx: &ReadTx<'_>, item: &Recorded, body: String, shown: &mut TranscriptItem) -> Result<(), Error> {
    let tuple = &item.tuple;
    let damaged =
        || ironclaw_state::Error::Stored(format!("the body of {} has another shape than its kind", tuple.item));
    match tuple.kind {
        ItemKind::Message => {
            shown.text = body;
            let message = inbox::find(tx, tuple.item.message())?;
            shown.turn_id = message.and_then(|message| message.turn);
        }
        ItemKind::Summary => {
            shown.text = body;
            shown.covers = items::summary::covered(tx, tuple.item)?.map(|covered| [covered.from, covered.upto]);
        }
        ItemKind::Notice => {
            shown.text = body;
            shown.receipt = Some(receipt(tx, item)?);
        }
        ItemKind::Output => {
            let output: OutputBody = serde_json::from_str(&body).map_err(|_| damaged())?;
            if output.calls.is_empty() {
                shown.receipt = Some(receipt(tx, item)?);
            }
            for call in &output.calls {
                let row = calls::find(tx, call.call_id)?;
                shown.calls.push(TranscriptCall {
                    call_id: call.call_id,
                    tool: call.tool.clone(),
                    arguments: call.arguments.clone(),
                    state: row.map_or(CallState::Unknown, |row| row.state),
                });
            }
            shown.text = output.shown();
        }
        ItemKind::Result => {
            let result: ResultBody = serde_json::from_str(&body).map_err(|_| damaged())?;
            (shown.ok, shown.text) = (Some(result.is_ok()), result.text);
        }
    }
    Ok(())
}

fn receipt(tx: &ReadTx<'_>, item: &Recorded) -> Result<Receipt, ironclaw_state::Error> {
    let state = tables::items::delivery_state(tx, item.tuple.item)?;
    Ok(state.map_or(Receipt::Unsaid, delivery::shown))
}
