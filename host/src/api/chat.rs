//! The operator's chat over the API: the messages of a caller, as the handlers below receive and show them.
//!
//! All answers come from the record; memory only holds the waits. See `channels::inbound::channel::loopback`, `channels::outbound::delivery`.

mod awaited;
pub mod conversation;
pub mod follow;
pub mod history;
pub mod messages;
pub mod read_replies;
pub mod reasoning;
pub mod threads;
pub mod unread;
mod waiting;
pub mod why;

use super::auth::Current;
use super::handler::{Answer, Api};
use super::named::id;
use crate::channels::inbound::channel::{Received, loopback};
use crate::channels::inbound::identity;
use crate::channels::inbound::inbox::{self, Message};
use crate::channels::outbound::delivery;
use crate::registry::latch;
use crate::registry::{self, Identity, Person, tokens};
use crate::sessions::store::{self, SessionState};
use crate::turns::rests_on;
use ironclaw_contract::ids::{MessageId, PersonId};
use ironclaw_contract::seam::message::Status;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_judge::provenance::spans::Telling;
use ironclaw_judge::scope::declared::{Declaration, DeclarationError};
use ironclaw_operator::DenialCode;
use ironclaw_operator::{MessageView, NewMessage, Receipt, Recorded, ShownReply, Sources};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::WrappingKey;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::Refusal;
use ironclaw_store::tables::deliveries::DeliveryState;
use ironclaw_store::tables::messages::Kind;
use ironclaw_text::excerpt::quoted;
use std::sync::Arc;

/// Bytes of the name of a thread.
const THREAD_BYTES_MAX: usize = 64;

/// Returns the answer for a recorded message, without a view of it.
pub fn recorded(message: inbox::Recorded) -> Recorded {
    Recorded { message_id: message.message, session_id: message.session, message: None }
}

/// Marks the reply of a message as read, if it has one.
async fn mark_read(api: &Api, view: &MessageView) -> Result<(), Answer> {
    if view.reply.is_some()
        && let Some(turn) = view.turn_id
    {
        api.read_replies.note(turn).await?;
    }
    Ok(())
}

/// Returns a message of the operator's channel, from the person of the token.
async fn received(api: &Api, person: &Person, agent: String, new: NewMessage) -> Result<Received, Answer> {
    let allow = declared(&new.allow)?;
    let sender = speaker(api, person, new.speak_as).await?;
    Ok(Received {
        channel: loopback::NAME.to_owned(),
        kind: Kind::Chat,
        platform_id: sender.clone(),
        thread_id: thread(new.thread)?,
        sender,
        speaker: Some(person.id),
        event_id: new.event_id,
        event_digest: None,
        agent,
        text: new.text,
        files: new.files,
        group: None,
        mentions: Vec::new(),
        quoted: new.quoted,
        allow,
        telling: if new.untyped { Telling::Nothing } else { Telling::Typed },
    })
}

/// Returns what a request declares beside its text.
fn declared(words: &[String]) -> Result<Option<Declaration>, Refusal> {
    if words.is_empty() {
        return Ok(None);
    }
    let malformed = |error: DeclarationError| Refusal::new(DenialCode::ScopeMalformed, error.to_string());
    Declaration::read(words.iter().map(String::as_str)).map(Some).map_err(malformed)
}

/// Returns the sender id of a person on the loopback: their own, or one of their identities there.
async fn speaker(api: &Api, person: &Person, named: Option<String>) -> Result<String, Answer> {
    let own = Identity::own(person.id);
    let Some(named) = named.filter(|named| *named != person.name && *named != own.sender) else {
        return Ok(own.sender);
    };
    let Ok(identity) = named.parse::<Identity>() else { return Err(Answer::noted(identity::not_yours(&named))) };
    let asked = identity.clone();
    let holder = api.state().read(move |tx| registry::person_of(tx, &asked.channel, &asked.sender)).await?;
    if holder.is_none_or(|holder| holder.id != person.id) {
        return Err(Answer::noted(identity::not_yours(&named)));
    }
    if identity.channel != loopback::NAME {
        let message = format!("{identity} is an identity of another channel");
        let refusal = Refusal::new(DenialCode::IdentityElsewhere, message);
        return Err(Answer::noted(refusal.hint("link your account first: `ironctl person link PERSON loopback:NAME`")));
    }
    Ok(identity.sender)
}

/// Returns the name of a thread as a channel has it; empty for the unnamed thread.
fn thread(name: Option<String>) -> Result<String, Answer> {
    let Some(name) = name else { return Ok(String::new()) };
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > THREAD_BYTES_MAX || !name.chars().all(fits) {
        let words = format!("a thread's name has 1 to {THREAD_BYTES_MAX} characters of a-z 0-9 - _ .");
        return Err(Refusal::new(DenialCode::ThreadMalformed, words).into());
    }
    Ok(name)
}

/// Returns the id of a message of the caller; `last` is the newest. A message of another person counts as unknown.
async fn own(api: &Api, person: &Person, message: &str) -> Result<MessageId, Answer> {
    Ok(own_message(api, person, message).await?.id)
}

async fn own_message(api: &Api, person: &Person, message: &str) -> Result<Message, Answer> {
    let (by, named) = (person.id, named(message)?);
    let found = api.record.state.read_committed(move |tx| find_own(tx, by, named)).await?;
    found.ok_or_else(|| not_own(message))
}

/// Returns the id that a request names; `None` for `last`.
fn named(message: &str) -> Result<Option<MessageId>, Answer> {
    Ok(if message == "last" { None } else { Some(id(message, DenialCode::MessageUnknown, "message")?) })
}

fn find_own(tx: &ReadTx<'_>, by: PersonId, named: Option<MessageId>) -> Result<Option<Message>, Error> {
    Ok(match named {
        None => inbox::newest_of(tx, loopback::NAME, by)?,
        Some(id) => inbox::find(tx, id)?.filter(|found| found.is_of(by)),
    })
}

/// Returns whether a message is one of the person.
async fn is_own(api: &Api, person: &Person, message: MessageId) -> Result<bool, Answer> {
    let by = person.id;
    Ok(api.record.state.read_committed(move |tx| find_own(tx, by, Some(message))).await?.is_some())
}

fn not_own(message: &str) -> Answer {
    Refusal::new(DenialCode::MessageUnknown, format!("you have no message {}", quoted(message))).into()
}

/// Reads a message of the caller and checks the token in the same transaction.
async fn read_own(api: &Api, person: &Person, message: &str, current: &Current) -> Result<MessageView, Answer> {
    let (by, named) = (person.id, named(message)?);
    let view = read_with(api, current, move |tx, wrapping| match find_own(tx, by, named)? {
        Some(found) => view(tx, wrapping, found.id),
        None => Ok(None),
    });
    view.await?.ok_or_else(|| not_own(message))
}

/// Reads a message and checks the token in the same transaction.
async fn read_for(api: &Api, id: MessageId, current: &Current) -> Result<Option<MessageView>, Answer> {
    read_with(api, current, move |tx, wrapping| view(tx, wrapping, id)).await
}

fn unknown(id: MessageId) -> Answer {
    Refusal::new(DenialCode::MessageUnknown, format!("there is no message {id}")).into()
}

async fn read_with<T, F>(api: &Api, current: &Current, look: F) -> Result<T, Answer>
where
    T: Send + 'static,
    F: FnOnce(&ReadTx<'_>, &WrappingKey) -> Result<T, Error> + Send + 'static,
{
    let (record, token) = (Arc::clone(&api.record), current.clone());
    let read = api.record.state.read_committed(move |tx| {
        let token = tokens::find_token(tx, &token.0)?;
        Ok::<_, Error>((token, look(tx, &record.wrapping)?))
    });
    let (token, found) = read.await?;
    current.check(token)?;
    Ok(found)
}

async fn read_view(api: &Api, id: MessageId) -> Result<MessageView, Answer> {
    let record = Arc::clone(&api.record);
    let view = api.record.state.read_committed(move |tx| view(tx, &record.wrapping, id)).await?;
    view.ok_or_else(|| unknown(id))
}

fn view(tx: &ReadTx<'_>, wrapping: &WrappingKey, id: MessageId) -> Result<Option<MessageView>, Error> {
    let Some(message) = inbox::find(tx, id)? else { return Ok(None) };
    let Some(session) = store::find(tx, message.session)? else { return Ok(None) };
    let delivery = message.turn.map(|turn| delivery::for_turn(tx, turn)).transpose()?.flatten();
    let delivery = delivery.filter(|_| matches!(message.status, Status::Completed | Status::Delivered));
    let (mut reply, mut notice, mut shown) = (None, false, ShownReply::default());
    if let Some(delivery) = &delivery
        && delivery.state == DeliveryState::Received
        && let Some(item) = delivery::item(tx, delivery)?
    {
        let key = session.keys(wrapping)?.content;
        notice = item.tuple.kind == ItemKind::Notice;
        let text = delivery::text_of(tx, &item, &key)?;
        shown = rests_on::shown::shown(tx, &session, &item, &key, &text)?;
        reply = Some(text);
    }
    let receipt = delivery.as_ref().map_or(Receipt::Pending, |delivery| delivery::shown(delivery.state));
    let halted = match session.standing {
        // A notice that is on its way is more precise than the state, and arrives soon.
        SessionState::Parked | SessionState::Quarantined if delivery.is_none() => {
            session.reason.clone().or_else(|| Some("its session is halted".to_owned()))
        }
        SessionState::Active | SessionState::Parked | SessionState::Quarantined | SessionState::Removed => None,
    };
    let standing = if session.standing == SessionState::Parked { "parked" } else { "quarantined" };
    let halted = halted.map(|why| {
        format!("{} is {standing} ({why}); `ironctl session release {}` releases it", session.id, session.id)
    });
    let reason = match latch::find(tx)? {
        Some(stopped) if message.status != Status::Delivered => Some(format!(
            "everything is stopped by {}; the message is kept, and answered after `ironctl resume`",
            stopped.by
        )),
        _ => halted,
    };
    Ok(Some(MessageView {
        calls: super::calls::for_message(tx, &message)?,
        message_id: id,
        session_id: session.id,
        turn_id: message.turn,
        status: message.status,
        reply,
        notice,
        receipt,
        reason,
        shown,
        sources: None,
    }))
}

/// Returns what the answer to a message rests on; `None` without an answer that its person got.
async fn sources(api: &Api, view: &MessageView) -> Result<Option<Box<Sources>>, Answer> {
    let Some(turn) = view.turn_id.filter(|_| view.reply.is_some() && !view.notice) else { return Ok(None) };
    let (record, session) = (Arc::clone(&api.record), view.session_id);
    let read = move |tx: &ReadTx<'_>| {
        let (Some(delivery), Some(session)) = (delivery::for_turn(tx, turn)?, store::find(tx, session)?) else {
            return Ok::<_, Error>(None);
        };
        let Some(item) = delivery::item(tx, &delivery)? else { return Ok(None) };
        let key = session.content_key(&record.wrapping)?;
        Ok(Some(Box::new(rests_on::sources(tx, &session, &item, &key)?)))
    };
    Ok(api.record.state.read_committed(read).await?)
}
