//! Records messages: number, seal, body and ledger entry in one transaction. Recording never opens a turn.
//!
//! Nothing reaches a model as anybody's words that did not pass here. Next: `turn`.

pub mod events;

use crate::inbound::channel::Received;
use crate::inbound::identity::Authenticated;
use crate::inbound::routing::Routed;
use crate::refusal::{Denied, Refusal};
use crate::registry::LOOPBACK;
use crate::session::store::{self, NewError, Session};
use crate::turns::items::{self, Draft};
use crate::turns::turn::CONTEXT_MESSAGES_MAX;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{MessageId, PersonId, SessionId};
use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use ironclaw_contract::seam::limits::BODY_BYTES_MAX;
use ironclaw_contract::seam::message::{Author, Kind, Span};
use ironclaw_contract::seam::seal::{ItemKind, Label};
use ironclaw_ledger::Entry;
use ironclaw_state::keys::{self, WrappingKey};
use ironclaw_state::seal::Sealer;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_text::lookalike;
use rusqlite::{OptionalExtension, Row, params};

/// A message that stands in the record.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The message.
    pub message: MessageId,
    /// Its session.
    pub session: SessionId,
    /// Whether it stood there already (the same event came again).
    pub again: bool,
}

/// Why a message could not be recorded.
pub type Error = NewError;

/// Bytes of the platform's own id of an event.
const EVENT_ID_BYTES_MAX: usize = 256;

/// Refuses what no session should hear of: an empty message, one that is too long, an event id without end.
pub fn check(received: &Received) -> Result<(), Refusal> {
    let refuse = |code, text: String| Err(Refusal::new(code, text));
    let bytes = bytes(received);
    if received.text.trim().is_empty() && received.files.iter().all(|(_, text)| text.trim().is_empty()) {
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

fn too_long(bytes: usize) -> Refusal {
    let words = format!("the message is {bytes} bytes; at most {BODY_BYTES_MAX} fit");
    Refusal::new(DenialCode::MessageTooLong, words)
}

/// Whether a message with this event id stands in the record already: then it takes no more room, whatever is said of it.
///
/// # Errors
/// What the state reports.
pub fn is_known(tx: &ReadTx<'_>, received: &Received) -> Result<bool, ironclaw_state::Error> {
    let Some(event) = &received.event_id else { return Ok(false) };
    Ok(of_event(tx, &received.channel, &received.sender, event)?.is_some())
}

/// Bytes of what a sender typed and of the files with it.
pub fn bytes(received: &Received) -> usize {
    received.text.len() + received.files.iter().map(|(_, text)| text.len()).sum::<usize>()
}

/// Records a routed message.
///
/// # Errors
/// Refuses one that is too long once it is neutralised, and another text under an event id that was used.
pub fn record(
    tx: &mut WriteTx<'_>,
    routed: &Routed,
    wrapping: &WrappingKey,
    sealer: &Sealer,
) -> Result<Recorded, Denied<Error>> {
    let (message, session) = (routed.message(), routed.session());
    let received = message.received();
    let (body, spans) = content(message);
    if body.len() > BODY_BYTES_MAX {
        return Err(too_long(body.len()).into());
    }
    if let Some(recorded) = recorded_before(tx, received, &body).map_err(Denied::widen)? {
        return Ok(recorded);
    }
    let id = MessageId::new();
    // A file is somebody's text that a person passed on, and taints what is made of the whole.
    let labels = if received.files.is_empty() { vec![Label::UserSurfaceInput] } else { vec![Label::External] };
    let key = content_key(session, wrapping).map_err(Error::from)?;
    let draft = Draft::new(id.item(), ItemKind::Message, &body, spans, labels, &key).map_err(Error::from)?;
    let digest = draft.digest();
    let item = draft.record(tx, session.id, sealer)?;
    insert(tx, id, routed, item.tuple.seq, body.len())?;
    if !routed.asks() {
        bound_context(tx, session.id)?;
    }
    store::touch(tx, session.id)?;
    Entry::new(LedgerEvent::MessageRecorded)
        .session(session.id)
        .message(id)
        .with("person", message.person().id)
        .with("channel", received.channel.clone())
        .with("digest", digest)
        .with("asks", routed.asks())
        .append(tx)?;
    Ok(Recorded { message: id, session: session.id, again: false })
}

/// Returns the body of a message, neutralised, and who wrote which part of it.
fn content(message: &Authenticated) -> (String, Vec<Span>) {
    let received = message.received();
    let (mut body, mut spans) = (String::new(), Vec::new());
    let mut add = |author: Author, text: &str| {
        let text = lookalike::neutralise(text);
        spans.push(Span { author, bytes: text.len() });
        body.push_str(&text);
    };
    add(Author::Person { person: message.person().id }, &received.text);
    for (name, text) in &received.files {
        add(Author::File { name: file_name(name) }, text);
    }
    (body, spans)
}

/// Returns the message that was recorded under the same event id.
///
/// # Errors
/// Refuses another text under that id.
fn recorded_before(tx: &ReadTx<'_>, received: &Received, body: &str) -> Result<Option<Recorded>, Denied> {
    let Some(event) = &received.event_id else { return Ok(None) };
    let Some((message, session)) = of_event(tx, &received.channel, &received.sender, event)? else { return Ok(None) };
    let digest = items::find(tx, message.item())?.map(|item| item.tuple.digest);
    // One whose item was dropped since has nothing left to compare with.
    if digest.is_some_and(|digest| digest != Digest::of(body.as_bytes())) {
        let words = format!("event {event:?} was already received with another text");
        return Err(Refusal::new(DenialCode::EventReused, words).into());
    }
    Ok(Some(Recorded { message, session, again: true }))
}

fn insert(
    tx: &ReadTx<'_>,
    id: MessageId,
    routed: &Routed,
    seq: u64,
    bytes: usize,
) -> Result<(), ironclaw_state::Error> {
    let received = routed.message().received();
    let now = tx.now();
    tx.db()
        .prepare_cached(
            "INSERT INTO messages (id, session_id, seq, kind, status, trigger, sender, principal, channel, event_id, received_at, attempts, \
             bytes) VALUES (?1,?2,?3,?10,'queued',?9,?4,?5,?6,?7,?8,0,?11)",
        )?
        .execute(params![
            id,
            routed.session().id,
            seq as i64,
            received.sender,
            routed.message().person().id,
            received.channel,
            received.event_id,
            now,
            routed.asks(),
            kind_on(&received.channel).name(),
            bytes as i64
        ])?;
    Ok(())
}

/// What sort of row a message is that comes on this channel.
fn kind_on(channel: &str) -> Kind {
    if channel == LOOPBACK { Kind::Chat } else { Kind::Webhook }
}

/// No turn is handed more context than its bound; what is older waits for none, and must not keep its item from being dropped. It
/// stands in the conversation all the same.
fn bound_context(tx: &ReadTx<'_>, session: SessionId) -> Result<(), ironclaw_state::Error> {
    // `status IN …` says nothing new: it is the condition of the index, without which all messages would be read.
    let waiting = "session_id = ?1 AND status IN ('queued','processing') AND status = 'queued' AND trigger = 0";
    let sql = format!(
        "UPDATE messages SET status = 'completed' WHERE {waiting} AND seq <= \
         (SELECT seq FROM messages WHERE {waiting} ORDER BY seq DESC LIMIT 1 OFFSET ?2)"
    );
    tx.db().prepare_cached(&sql)?.execute(params![session, CONTEXT_MESSAGES_MAX as i64])?;
    Ok(())
}

/// A file's name as a model is told it: one line, and nothing that looks like a wrapper.
fn file_name(name: &str) -> String {
    let line: String = name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    lookalike::neutralise(&line).into_owned()
}

/// Records what the host has to tell a session outside a turn; it informs and opens no turn.
pub fn tell(
    tx: &mut WriteTx<'_>,
    session: &Session,
    text: &str,
    wrapping: &WrappingKey,
    sealer: &Sealer,
) -> Result<MessageId, Error> {
    let id = MessageId::new();
    let content = content_key(session, wrapping)?;
    let spans = vec![Span { author: Author::Host, bytes: text.len() }];
    let item =
        Draft::new(id.item(), ItemKind::Message, text, spans, Vec::new(), &content)?.record(tx, session.id, sealer)?;
    let now = tx.now();
    tx.db().execute(
        "INSERT INTO messages (id, session_id, seq, kind, status, trigger, sender, principal, channel, received_at, attempts) \
         VALUES (?1,?2,?3,'system','queued',0,'host','host','host',?4,0)",
        params![id, session.id, item.tuple.seq as i64, now],
    )?;
    Ok(id)
}

fn content_key(session: &Session, wrapping: &WrappingKey) -> Result<keys::ContentKey, keys::Error> {
    let [_, stored] = session.wrapped.as_ref().ok_or(keys::Error::Sealed("the key of a removed session"))?;
    wrapping.content_key(session.id, stored)
}

fn of_event(
    tx: &ReadTx<'_>,
    channel: &str,
    sender: &str,
    event: &str,
) -> Result<Option<(MessageId, SessionId)>, ironclaw_state::Error> {
    let sql = "SELECT id, session_id FROM messages WHERE channel = ?1 AND sender = ?2 AND event_id = ?3";
    let read = |row: &Row<'_>| Ok((row.get("id")?, row.get("session_id")?));
    Ok(tx.db().prepare_cached(sql)?.query_row([channel, sender, event], read).optional()?)
}

/// A message's row.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// Its session.
    pub session: SessionId,
    /// Its number.
    pub seq: u64,
    /// `chat task webhook system`.
    pub kind: Kind,
    /// Where it stands.
    pub status: String,
    /// Whether it asks for a turn.
    pub trigger: bool,
    /// Its sender on the channel.
    pub sender: String,
    /// On whose behalf.
    pub principal: String,
    /// Its channel.
    pub channel: String,
    /// Milliseconds since the epoch.
    pub received_at: i64,
    /// The turn that it is or was in.
    pub turn: Option<ironclaw_contract::ids::TurnId>,
}

impl Message {
    /// Whether it is on behalf of this person.
    pub fn is_of(&self, person: PersonId) -> bool {
        self.principal.parse::<PersonId>().is_ok_and(|principal| principal == person)
    }
}

fn message(row: &Row<'_>) -> rusqlite::Result<Message> {
    Ok(Message {
        id: row.get("id")?,
        session: row.get("session_id")?,
        seq: row.get::<_, i64>("seq")? as u64,
        kind: row.get("kind")?,
        status: row.get("status")?,
        trigger: row.get("trigger")?,
        sender: row.get("sender")?,
        principal: row.get("principal")?,
        channel: row.get("channel")?,
        received_at: row.get("received_at")?,
        turn: row.get("turn_id")?,
    })
}

/// The message of this id.
pub fn find(tx: &ReadTx<'_>, id: MessageId) -> Result<Option<Message>, ironclaw_state::Error> {
    Ok(tx.db().prepare_cached("SELECT * FROM messages WHERE id = ?1")?.query_row([id], message).optional()?)
}

/// The newest message on this channel that is on this person's behalf.
pub fn newest_of(
    tx: &ReadTx<'_>,
    channel: &str,
    principal: PersonId,
) -> Result<Option<Message>, ironclaw_state::Error> {
    let sql =
        "SELECT * FROM messages WHERE channel = ?1 AND principal = ?2 ORDER BY received_at DESC, seq DESC LIMIT 1";
    Ok(tx.db().prepare_cached(sql)?.query_row(params![channel, principal], message).optional()?)
}

/// The session in which this sender spoke for somebody other than `person`.
pub fn session_of_another(
    tx: &ReadTx<'_>,
    channel: &str,
    sender: &str,
    person: PersonId,
) -> Result<Option<SessionId>, ironclaw_state::Error> {
    let sql = "SELECT session_id FROM messages WHERE channel = ?1 AND sender = ?2 AND principal <> ?3 LIMIT 1";
    let read = |row: &Row<'_>| row.get("session_id");
    Ok(tx.db().prepare_cached(sql)?.query_row(params![channel, sender, person], read).optional()?)
}

/// How many messages of the session wait or are being worked on.
pub fn waiting_count(tx: &ReadTx<'_>, session: SessionId) -> Result<u64, ironclaw_state::Error> {
    let sql =
        "SELECT count(*) FROM messages WHERE session_id = ?1 AND status IN ('queued','processing') AND trigger = 1";
    Ok(tx.db().prepare_cached(sql)?.query_row([session], |row| row.get::<_, i64>(0))? as u64)
}
