//! The copy of a file that an agent sends, for the people who may read the call.
//!
//! If an operator reads the file of another person, the ledger has an entry. See `channels::outbound::delivery::sent_files`.

use super::content::FileContent;
use crate::api::handler::{Answer, Caller};
use crate::api::named::id;
use crate::channels::outbound::delivery::sent_files;
use crate::registry::{Person, Role};
use crate::sessions::store;
use crate::turns::calls;
use crate::turns::turn;
use axum::extract::Path;
use ironclaw_contract::ids::CallId;
use ironclaw_ledger::Entry;
use ironclaw_operator::{DenialCode, LedgerEvent};
use ironclaw_state::WriteTx;
use ironclaw_state::keys::WrappingKey;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::Refusal;
use std::sync::Arc;

/// `GET /v1/calls/{id}/file`
pub async fn sent(caller: Caller, Path(call): Path<String>) -> Result<FileContent, Answer> {
    Ok(FileContent::from_bytes(bytes(caller, &call).await?.1))
}

/// Returns the name and the bytes of a file that an agent sends with a call, if this person may read it.
pub async fn bytes(Caller { api, person, .. }: Caller, call: &str) -> Result<(String, Vec<u8>), Answer> {
    let call: CallId = id(call, DenialCode::CallUnknown, "call")?;
    let record = Arc::clone(&api.record);
    let found = api.state().write(move |tx| read(tx, &record.wrapping, &person, call)).await?;
    let unknown = || Refusal::new(DenialCode::FileUnknown, format!("you have no file of a call {call}"));
    Ok(found.ok_or_else(unknown)?)
}

/// Returns the bytes of the copy of a call that this person may read.
fn read(
    tx: &mut WriteTx<'_>,
    wrapping: &WrappingKey,
    person: &Person,
    call: CallId,
) -> Result<Option<(String, Vec<u8>)>, Error> {
    let Some(row) = calls::find(tx, call)? else { return Ok(None) };
    let (turn, session) = (turn::find(tx, row.turn)?, store::find(tx, row.session)?);
    let Some((turn, session)) = turn.zip(session.filter(|session| session.wrapped.is_some())) else { return Ok(None) };
    let is_own = turn.person().is_ok_and(|principal| principal == person.id);
    if !person.role.covers(Role::Admin) && !is_own {
        return Ok(None);
    }
    let key = session.content_key(wrapping)?;
    let Some((file, content)) = sent_files::read(tx, call, &key)? else { return Ok(None) };
    if !is_own {
        Entry::new(LedgerEvent::FileRead).session(row.session).with("by", person.id).append(tx)?;
    }
    Ok(Some((file.name, content)))
}
