//! The recording of messages: number, seal, body and ledger entry in one transaction.
//!
//! Never opens a turn. Text reaches a model as a person's words only through this module. See [`crate::turns::turn`].

pub mod answer;
pub mod events;

pub use ironclaw_store::tables::messages::{Message, find, newest_of, waiting_count};
pub use ironclaw_store::tables::sessions::session_of_another;

use crate::channels::inbound::channel::Received;
use crate::channels::inbound::identity::Authenticated;
use crate::channels::inbound::routing::Routed;
use crate::channels::inbound::scope::{self, DeclaredScope};
use crate::sessions::store::{self, Session};
use crate::turns::items::images::{self, SentImage};
use crate::turns::items::{self, NewItem};
use crate::turns::turn::{CONTEXT_BYTES_MAX, CONTEXT_MESSAGES_MAX};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{MessageId, SessionId};
use ironclaw_contract::seam::change::WrittenBy;
use ironclaw_contract::seam::limits::BODY_BYTES_MAX;
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_judge::Principal;
use ironclaw_judge::provenance::{Labelled, Provenance};
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent, MessageFile, MessageImage};
use ironclaw_state::keys::{self, WrappingKey};
use ironclaw_state::seal::Sealer;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::messages::Kind;
use ironclaw_store::tables::messages::{self, NewMessage};
use ironclaw_text::lookalike;

/// A message that is in the record.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub message: MessageId,
    pub session: SessionId,
    /// `true` if the message was already recorded (the same event came again).
    pub again: bool,
}

/// The recorded scope of the prompt of a schedule: it declares no class.
const OF_SCHEDULE: &str = "schedule:";

/// Bytes of the platform's id of an event.
const EVENT_ID_BYTES_MAX: usize = 256;

/// Refuses a message that no session may get: an empty or too long one, or one with a malformed event id.
pub fn check(received: &Received) -> Result<(), Refusal> {
    let refuse = |code, text: String| Err(Refusal::new(code, text));
    let bytes = bytes(received);
    if received.text.trim().is_empty()
        && received.files.iter().all(|file| file.text.trim().is_empty() && file.data.is_none())
    {
        return refuse(DenialCode::MessageEmpty, "the message is empty".to_owned());
    }
    if bytes > BODY_BYTES_MAX {
        return Err(too_long(bytes));
    }
    if received.event_id.as_ref().is_some_and(|id| id.is_empty() || id.len() > EVENT_ID_BYTES_MAX) {
        return refuse(DenialCode::EventId, format!("an event id has 1 to {EVENT_ID_BYTES_MAX} bytes"));
    }
    Ok(())
}

/// Returns the refusal of a message of this many bytes.
pub fn too_long(bytes: usize) -> Refusal {
    let bound =
        Bound::new("bytes of the message", BODY_BYTES_MAX, bytes, "send a shorter message, or the text as a file");
    Refusal::over(DenialCode::MessageTooLong, bound)
}

/// Returns whether a message with this event id is already in the record. Such a message counts against no quota.
pub fn is_known(tx: &ReadTx<'_>, received: &Received) -> Result<bool, ironclaw_state::Error> {
    let Some(event) = &received.event_id else { return Ok(false) };
    Ok(messages::find_by_event(tx, &received.channel, &received.sender, event)?.is_some())
}

/// Returns the bytes of the sender's text and files.
pub fn bytes(received: &Received) -> usize {
    let quoted = received.quoted.iter().map(String::len).sum::<usize>();
    received.text.len() + quoted + received.files.iter().map(|file| file.text.len()).sum::<usize>()
}

/// Records a routed message.
///
/// # Errors
/// Refuses a message that is too long after neutralisation, and another text under a used event id.
pub fn record(
    tx: &mut WriteTx<'_>,
    routed: &Routed,
    wrapping: &WrappingKey,
    sealer: &Sealer,
) -> Result<Recorded, Denied<Error>> {
    let (message, session, received) = (routed.message(), routed.session(), routed.message().received());
    let DeclaredScope { recorded: scope, text } = match message.written_by() {
        None => scope::find(received)?,
        // The list that was approved with the schedule is its only authority.
        Some(_) => DeclaredScope { recorded: OF_SCHEDULE.to_owned(), text: &received.text },
    };
    let (body, spans) = content(message, text);
    if body.len() > BODY_BYTES_MAX {
        return Err(too_long(body.len()).into());
    }
    if let Some(recorded) = recorded_before(tx, received, &body, &scope)? {
        return Ok(recorded);
    }
    let id = MessageId::new();
    let key = content_key(session, wrapping).map_err(Error::from)?;
    let text = Text { body: Labelled::new(&body, provenance(routed)), spans, scope, hop: 0 };
    let row = |seq| NewMessage {
        id,
        session: session.id,
        seq,
        kind: received.kind,
        trigger: routed.asks(),
        mentions: routed.mentions(),
        reply_to: reply_to(received),
        sender: &received.sender,
        principal: message.sender_id(),
        principal_kind: message.principal(),
        channel: &received.channel,
        event: received.event_id.as_deref(),
        bytes: body.len(),
    };
    insert(tx, text, &key, sealer, id, session.id, row).map_err(Denied::Failed)?;
    let images = images_of(received);
    if !images.is_empty() {
        messages::set_images(tx, id, &images::seal(id, &images, &key).map_err(Error::from)?)?;
    }
    settle_context(tx, routed)?;
    Ok(Recorded { message: id, session: session.id, again: false })
}

/// The text of a message, and what its item says about it.
pub struct Text<'a> {
    pub body: Labelled<&'a str>,
    /// The authors of its parts.
    pub spans: Vec<Span>,
    pub scope: String,
    /// The number of agents that it passed through.
    pub hop: u32,
}

/// Records the item, the row and the ledger entry of a new message. `row` gets the number of the item.
pub fn insert<'a>(
    tx: &mut WriteTx<'_>,
    text: Text<'_>,
    key: &keys::ContentKey,
    sealer: &Sealer,
    id: MessageId,
    session: SessionId,
    row: impl FnOnce(u64) -> NewMessage<'a>,
) -> Result<(), Error> {
    let Text { body, spans, scope, hop } = text;
    let item = NewItem::new(id.item(), ItemKind::Message, body, spans, key)?.scope(scope.clone()).hop(hop);
    let digest = item.digest();
    let item = item.record(tx, session, sealer)?;
    let row = row(item.tuple.seq);
    messages::insert(tx, &row)?;
    store::touch(tx, session)?;
    Entry::new(LedgerEvent::MessageRecorded)
        .session(session)
        .message(id)
        .with("person", row.principal)
        .with("principal_kind", row.principal_kind.name())
        .with("channel", row.channel)
        .with("digest", digest)
        .with("asks", row.trigger)
        .with("scope", scope)
        .append(tx)?;
    Ok(())
}

/// Bounds the context of the session of a message that asks for nothing.
fn settle_context(tx: &mut WriteTx<'_>, routed: &Routed) -> Result<(), ironclaw_state::Error> {
    if routed.asks() { Ok(()) } else { bound_context(tx, routed.session().id) }
}

/// Leaves out the oldest context of a session that has too much. It remains in the conversation, and its items may be dropped.
pub fn bound_context(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), ironclaw_state::Error> {
    messages::complete_older_context(tx, session, CONTEXT_MESSAGES_MAX, CONTEXT_BYTES_MAX)
}

/// Returns the group and the thread of the reply to a message of a channel. The reply to any other message goes to the origin of its
/// session.
fn reply_to(received: &Received) -> Option<(&str, &str)> {
    match received.kind {
        Kind::Webhook => Some((received.group.as_deref().unwrap_or_default(), received.thread_id.as_str())),
        Kind::Chat | Kind::Task | Kind::System => None,
    }
}

/// Returns the provenance of a message. A person may pass on a file of another author, and then the whole message counts as text of others.
/// The prompt of a schedule is a text of the person who made it, unless a model wrote it. A sender that a person calls theirs gets no more
/// in a turn of its own than another guest.
fn provenance(routed: &Routed) -> Provenance {
    let message = routed.message();
    let received = message.received();
    if !received.files.is_empty() || !received.quoted.is_empty() {
        return Provenance::Others;
    }
    let is_persons = matches!(message.principal(), Principal::Person | Principal::Schedule);
    match is_persons && message.written_by() != Some(WrittenBy::Model) {
        true => Provenance::Person,
        false if message.is_own() && !routed.asks() => Provenance::Own,
        false => Provenance::Others,
    }
}

/// Returns the neutralised body of a message, and the author of each part.
fn content(message: &Authenticated, text: &str) -> (String, Vec<Span>) {
    let received = message.received();
    let (mut body, mut spans) = (String::new(), Vec::new());
    let mut add = |author: Author, text: &str| {
        let text = lookalike::neutralise(text);
        spans.push(Span { author, bytes: text.len() });
        body.push_str(&text);
    };
    let author = match message.written_by() {
        Some(WrittenBy::Model) => Author::Model,
        Some(WrittenBy::Person) | None => Author::Person { person: message.sender_id() },
    };
    add(author, text);
    for text in &received.quoted {
        add(Author::Quoted, text);
    }
    for file in &received.files {
        add(Author::File { name: file_name(&file.name) }, &file.text);
    }
    (body, spans)
}

/// Returns the images of a message. The spans of files follow those of the text and of the quoted texts.
fn images_of(received: &Received) -> Vec<SentImage> {
    let image = |(at, file): (usize, &MessageFile)| {
        let MessageImage { path, digest } = file.image.clone()?;
        Some(SentImage { span: 1 + received.quoted.len() + at, path, digest })
    };
    received.files.iter().enumerate().filter_map(image).collect()
}

/// Returns the message that is already recorded under the same event id.
///
/// # Errors
/// Refuses another text under that id.
fn recorded_before(tx: &ReadTx<'_>, received: &Received, body: &str, scope: &str) -> Result<Option<Recorded>, Denied> {
    let Some(event) = &received.event_id else { return Ok(None) };
    let Some(known) = messages::find_by_event(tx, &received.channel, &received.sender, event)? else { return Ok(None) };
    let tuple = items::find(tx, known.message.item())?.map(|item| item.tuple);
    // If the item was dropped since then, there is no digest to compare with.
    if tuple.is_some_and(|tuple| tuple.digest != Digest::of(body.as_bytes()) || tuple.scope != scope) {
        let words = format!("event {event:?} was already received with another text");
        return Err(Refusal::new(DenialCode::EventReused, words).into());
    }
    Ok(Some(Recorded { message: known.message, session: known.session, again: true }))
}

/// Returns a file's name for a model: one line, without text that looks like a wrapper.
fn file_name(name: &str) -> String {
    let line: String = name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    lookalike::neutralise(&line).into_owned()
}

/// Records a message of the host to a session. It is information only and opens no turn.
pub fn notify(
    tx: &mut WriteTx<'_>,
    session: &Session,
    text: &str,
    wrapping: &WrappingKey,
    sealer: &Sealer,
) -> Result<MessageId, Error> {
    let id = MessageId::new();
    let content = content_key(session, wrapping)?;
    let spans = vec![Span { author: Author::Host, bytes: text.len() }];
    let item = NewItem::new(id.item(), ItemKind::Message, Labelled::new(text, Provenance::Host), spans, &content)?
        .record(tx, session.id, sealer)?;
    messages::insert_of_host(tx, id, session.id, item.tuple.seq)?;
    Ok(id)
}

fn content_key(session: &Session, wrapping: &WrappingKey) -> Result<keys::ContentKey, keys::Error> {
    let [_, stored] = session.wrapped.as_ref().ok_or(keys::Error::Sealed("the key of a removed session"))?;
    wrapping.content_key(session.id, stored)
}
