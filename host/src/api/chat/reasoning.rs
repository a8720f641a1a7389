//! What the outputs of a message have beside the answer: the thoughts of the model, and a call that it wrote as text.
//!
//! Never shows thoughts to another person than the sender of the message. See `turns::items`.

use super::own;
use crate::api::handler::{Api, Caller, Reply};
use crate::channels::inbound::inbox;
use crate::sessions::store;
use crate::turns::calls::OutputBody;
use crate::turns::items::{self, Recorded};
use axum::Json;
use axum::extract::Path;
use ironclaw_contract::ids::MessageId;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_operator::Reasoning;
use ironclaw_state::ReadTx;
use ironclaw_state::keys::{ContentKey, WrappingKey};
use ironclaw_store::error::Error;
use ironclaw_store::tables;
use std::sync::Arc;

/// `GET /v1/messages/{id}/reasoning`; `last` is the caller's newest message.
pub async fn show(Caller { api, person, .. }: Caller, Path(message): Path<String>) -> Reply<Reasoning> {
    let id = own(&api, &person, &message).await?;
    let record = Arc::clone(&api.record);
    let read = move |tx: &ReadTx<'_>| thoughts(tx, &record.wrapping, id);
    Ok(Json(Reasoning { message_id: id, thoughts: api.record.state.read_committed(read).await? }))
}

fn thoughts(tx: &ReadTx<'_>, wrapping: &WrappingKey, id: MessageId) -> Result<Vec<String>, Error> {
    let Some((outputs, key)) = outputs(tx, wrapping, id)? else { return Ok(Vec::new()) };
    let mut thoughts = Vec::new();
    for output in outputs {
        thoughts.extend(Some(items::reasoning(tx, output.tuple.item, &key)?).filter(|text| !text.is_empty()));
    }
    Ok(thoughts)
}

/// Returns whether the answer to a message has a call that the model wrote as text.
pub(super) async fn has_written_call(api: &Api, id: MessageId) -> Result<bool, Error> {
    let record = Arc::clone(&api.record);
    let read = move |tx: &ReadTx<'_>| {
        let Some((outputs, key)) = outputs(tx, &record.wrapping, id)? else { return Ok::<_, Error>(false) };
        let Some(last) = outputs.last() else { return Ok(false) };
        Ok(items::parse_body::<OutputBody>(&items::body(tx, last, &key)?)?.has_written_call)
    };
    api.record.state.read_committed(read).await
}

/// Returns the outputs of the turn of a message in order, and the key of its session.
fn outputs(
    tx: &ReadTx<'_>,
    wrapping: &WrappingKey,
    id: MessageId,
) -> Result<Option<(Vec<Recorded>, ContentKey)>, Error> {
    let Some(message) = inbox::find(tx, id)? else { return Ok(None) };
    let (Some(turn), Some(session)) = (message.turn, store::find(tx, message.session)?) else { return Ok(None) };
    let key = session.content_key(wrapping)?;
    let mut outputs = tables::items::made_in_turn(tx, session.id, turn)?;
    outputs.retain(|item| item.tuple.kind == ItemKind::Output);
    Ok(Some((outputs, key)))
}
