//! Dead letters over the API: a member sees their own, an operator all.
//!
//! Never sends one again by itself; a person asks for that. See `channels::outbound::journal`.

use super::handler::{Answer, Api, Caller, Reply};
use crate::channels::outbound::delivery::{self, Delivery};
use crate::channels::outbound::journal;
use crate::registry::{Person, Role};
use axum::Json;
use axum::extract::Path;
use ironclaw_contract::ids::{DeliveryId, MessageId, PersonId};
use ironclaw_operator::DenialCode;
use ironclaw_operator::{DeadLetter, DeadLetterDone, DeadLetters, Receipt};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::Refusal;
use ironclaw_text::excerpt::quoted;

/// Dead letters in one list.
const LETTERS_MAX: usize = 500;

/// `GET /v1/dead`: the dead letters that wait longest, oldest first.
pub async fn list(Caller { api, person, .. }: Caller) -> Reply<DeadLetters> {
    let of = (!person.role.covers(Role::Admin)).then_some(person.id);
    let mut lost = api.state().read(move |tx| journal::lost(tx, of, LETTERS_MAX + 1)).await?;
    let more = lost.len() > LETTERS_MAX;
    lost.truncate(LETTERS_MAX);
    Ok(Json(DeadLetters { letters: lost.into_iter().filter_map(view).collect(), more }))
}

/// `POST /v1/dead/{delivery}/retry`
pub async fn retry(Caller { api, person, .. }: Caller, Path(named): Path<String>) -> Reply<DeadLetterDone> {
    let done = act(&api, person, named, Receipt::Pending, journal::send_again).await?;
    api.dispatch.wake();
    Ok(Json(done))
}

/// `DELETE /v1/dead/{delivery}`
pub async fn drop_dead_letter(Caller { api, person, .. }: Caller, Path(named): Path<String>) -> Reply<DeadLetterDone> {
    Ok(Json(act(&api, person, named, Receipt::Dropped, journal::drop_dead_letter).await?))
}

/// Retries or drops a delivery, named by its id or by that of a message that it answers. One of another person counts as unknown.
async fn act(
    api: &Api,
    person: Person,
    named: String,
    receipt: Receipt,
    change: impl FnOnce(&mut WriteTx<'_>, &Delivery, PersonId) -> Result<bool, ironclaw_state::Error> + Send + 'static,
) -> Result<DeadLetterDone, Answer> {
    let shown = quoted(&named);
    let changed = api.state().write(move |tx| {
        let Some(found) = find(tx, &named)? else { return Ok(None) };
        if !may(tx, &person, &found)? || !change(tx, &found, person.id)? {
            return Ok(None);
        }
        Ok::<_, ironclaw_state::Error>(Some(found.id))
    });
    let Some(id) = changed.await? else {
        let refusal = Refusal::new(DenialCode::DeliveryUnknown, format!("there is no undelivered answer {shown}"));
        return Err(refusal.hint("`ironctl delivery list` shows them").into());
    };
    Ok(DeadLetterDone { delivery_id: id, receipt })
}

fn find(tx: &ReadTx<'_>, named: &str) -> Result<Option<Delivery>, ironclaw_state::Error> {
    if let Ok(id) = named.parse::<DeliveryId>() {
        return journal::find(tx, id);
    }
    let Ok(id) = named.parse::<MessageId>() else { return Ok(None) };
    let turn = crate::channels::inbound::inbox::find(tx, id)?.and_then(|message| message.turn);
    Ok(turn.map(|turn| delivery::for_turn(tx, turn)).transpose()?.flatten())
}

fn may(tx: &ReadTx<'_>, person: &Person, delivery: &Delivery) -> Result<bool, ironclaw_state::Error> {
    if person.role.covers(Role::Admin) {
        return Ok(true);
    }
    Ok(journal::person_of(tx, delivery.id)? == Some(person.id))
}

fn view(lost: Delivery) -> Option<DeadLetter> {
    Some(DeadLetter {
        delivery_id: lost.id,
        session_id: lost.sent()?.session,
        channel: lost.channel,
        recipient: lost.recipient,
        thread: lost.thread,
        receipt: delivery::shown(lost.state),
        reason: lost.reason.unwrap_or_default(),
        attempts: lost.attempts,
        created_at: ironclaw_ledger::rfc3339(lost.created_at),
        settled_at: ironclaw_ledger::rfc3339(lost.settled_at.unwrap_or_default()),
    })
}
