//! Projects what is recorded into a session's inbound queue.
//!
//! The queue can be rebuilt from the record at any time, so a damaged one is set aside and never trusted. See
//! `crate::runtime::actor`.

use super::store::{Origin, Session};
use crate::tables::messages;
use crate::turns::items::{self, BodyError};
use ironclaw_contract::ids::{MessageId, TurnId};
use ironclaw_contract::seam::crypt::{Error, SessionKey};
use ironclaw_contract::seam::inbound::{InboundWriter, MessageIn, Projection, Routing, Turn};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_state::seal::Sealer;
use std::path::Path;

/// Result of the answer that an outbound row asked for.
#[derive(Debug, Clone, Copy)]
pub struct Receipt {
    /// The row.
    pub row: MessageId,
    /// `delivered unknown failed`.
    pub status: &'static str,
    /// When that was noted, milliseconds since the epoch.
    pub at: i64,
}

/// The host's end of one inbound queue. Blocks while it writes: use it off the runtime's threads.
pub struct Inbound {
    writer: InboundWriter,
}

impl Inbound {
    /// Opens the queue, recovers it, and empties it of what earlier launches left; a damaged one is rebuilt.
    ///
    /// Returns also the sentence about the damage, if there was any, for the ledger.
    ///
    /// # Errors
    /// When the file is a link, a directory or a pipe, or its lock is held for too long.
    pub fn open(path: &Path, key: &SessionKey, group: Option<u32>) -> Result<(Self, Option<String>), Error> {
        let (mut writer, damage) = match InboundWriter::open(path, key) {
            Ok(writer) => (writer, None),
            Err(error @ (Error::WrongKey { .. } | Error::Schema { .. })) => {
                // A projection that power loss or an operator damaged: the record has all of it.
                let aside = |source: std::io::Error| Error::Row {
                    queue: "inbound queue",
                    path: path.to_owned(),
                    what: source.to_string(),
                };
                for damaged in [path.to_owned(), path.with_extension("db-journal")] {
                    match std::fs::remove_file(damaged) {
                        Err(source) if source.kind() != std::io::ErrorKind::NotFound => return Err(aside(source)),
                        _ => {}
                    }
                }
                (InboundWriter::open(path, key)?, Some(error.to_string()))
            }
            Err(other) => return Err(other),
        };
        if let Some(group) = group {
            give_to_group(path, group)?;
        }
        // Also a turn that was open when its sandbox died: the record knows that it is over.
        writer.project(|inbound| inbound.clear())?;
        Ok((Self { writer }, damage))
    }

    /// Projects an opened turn with its messages; what earlier turns needed goes.
    pub fn open_turn(
        &mut self,
        turn: &Turn,
        messages: &[MessageIn],
        routing: &Routing,
        receipts: &[Receipt],
    ) -> Result<(), Error> {
        self.writer.project(|inbound| {
            inbound.clear()?;
            for message in messages {
                inbound.message(message)?;
            }
            inbound.turn(turn)?;
            note(inbound, receipts)?;
            inbound.routing(routing)
        })
    }

    /// Projects that a turn is closed, and what became of answers.
    pub fn close_turn(&mut self, turn: &Turn, routing: &Routing, receipts: &[Receipt]) -> Result<(), Error> {
        self.writer.project(|inbound| {
            inbound.turn(&Turn { open: false, ..turn.clone() })?;
            note(inbound, receipts)?;
            inbound.routing(routing)
        })
    }

    /// Projects what became of answers.
    pub fn receipts(&mut self, receipts: &[Receipt]) -> Result<(), Error> {
        self.writer.project(|inbound| note(inbound, receipts))
    }

    /// Projects where replies go and how far rows were taken.
    pub fn routing(&mut self, routing: &Routing) -> Result<(), Error> {
        self.writer.project(|inbound| inbound.routing(routing))
    }
}

fn note(inbound: &Projection<'_>, receipts: &[Receipt]) -> rusqlite::Result<()> {
    receipts.iter().try_for_each(|Receipt { row, status, at }| inbound.delivered(row, status, *at))
}

/// Gives the file's read access to the sandbox's own group alone, when started as root.
fn give_to_group(path: &Path, group: u32) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    let give = || -> std::io::Result<()> {
        std::os::unix::fs::lchown(path, None, Some(group))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o640))
    };
    give().map_err(|source| Error::Row { queue: "inbound queue", path: path.to_owned(), what: source.to_string() })
}

/// Returns the routing row of a session.
pub fn routing(origin: &Origin, cursor: u64) -> Routing {
    Routing {
        channel_type: origin.channel.clone(),
        platform_id: origin.platform_id.clone(),
        thread_id: Some(origin.thread_id.clone()).filter(|thread| !thread.is_empty()),
        outbound_cursor: cursor,
    }
}

/// Returns the rows to project for these messages, with fresh seals; those from before `awake_since` waited for the wake.
pub fn rows(
    tx: &ReadTx<'_>,
    session: &Session,
    messages: &[MessageId],
    turn: Option<TurnId>,
    awake_since: i64,
    key: &ContentKey,
    sealer: &Sealer,
) -> Result<Vec<MessageIn>, BodyError> {
    let mut rows = Vec::with_capacity(messages.len());
    for id in messages {
        let Some(item) = items::find(tx, id.item())? else {
            return Err(ironclaw_state::Error::Stored(format!("{id} has no item")).into());
        };
        let content = items::body(tx, &item, key)?;
        let Some(message) = messages::projected(tx, *id)? else {
            return Err(ironclaw_state::Error::Stored(format!("{id} has no row")).into());
        };
        rows.push(MessageIn {
            id: *id,
            seq: item.tuple.seq,
            kind: message.kind,
            timestamp: item.tuple.issued_at,
            platform_id: Some(session.origin.platform_id.clone()),
            channel_type: Some(session.origin.channel.clone()),
            thread_id: Some(session.origin.thread_id.clone()).filter(|thread| !thread.is_empty()),
            content,
            source_session_id: None,
            on_wake: message.received_at < awake_since,
            trigger: turn.is_some(),
            sender: format!("{}:{}", message.channel, message.sender),
            principal: message.principal,
            spans: item.spans(),
            hop: item.tuple.hop,
            seal: item.seal(sealer),
        });
    }
    Ok(rows)
}
