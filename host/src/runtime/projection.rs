//! The projection of the record into the inbound queue of a session.
//!
//! The queue can be rebuilt from the record at any time, so a damaged one is deleted and never trusted. See
//! [`crate::runtime::actor`].

use crate::sessions::store::{Origin, Session};
use crate::turns::items;
use ironclaw_contract::ids::{MessageId, TurnId};
use ironclaw_contract::seam::crypt::{Error, SessionKey};
use ironclaw_contract::seam::inbound::{InboundWriter, MessageIn, Projection, Routing, Turn};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_state::seal::Sealer;
use ironclaw_store::tables::{agent_messages, messages};
use std::path::Path;

/// The outcome of the reply of an outbound row.
#[derive(Debug, Clone, Copy)]
pub struct Receipt {
    pub row: MessageId,
    /// One of `delivered`, `unknown` and `failed`.
    pub status: &'static str,
    /// The time of the record of the outcome, in milliseconds since the epoch.
    pub at: i64,
}

/// The host's end of one inbound queue. It blocks during writes, so use it outside the threads of the async runtime.
pub struct Inbound {
    writer: InboundWriter,
}

impl Inbound {
    /// Opens and recovers the queue, and removes the rows of earlier launches. Rebuilds a damaged queue.
    ///
    /// Also returns a sentence about the damage, if there was any, for the ledger.
    ///
    /// # Errors
    /// Fails if the file is a link, a directory or a pipe, or if its lock is held for too long.
    pub fn open(path: &Path, key: &SessionKey, group: Option<u32>) -> Result<(Self, Option<String>), Error> {
        let (mut writer, damage) = match InboundWriter::open(path, key) {
            Ok(writer) => (writer, None),
            Err(error @ (Error::WrongKey { .. } | Error::Schema { .. })) => {
                // Power loss or an operator damaged the queue. The record has all of its rows.
                let cannot_remove = |source: std::io::Error| Error::Row {
                    queue: "inbound queue",
                    path: path.to_owned(),
                    what: source.to_string(),
                };
                for damaged in [path.to_owned(), path.with_extension("db-journal")] {
                    ironclaw_state::home::discard(&damaged).map_err(cannot_remove)?;
                }
                (InboundWriter::open(path, key)?, Some(error.to_string()))
            }
            Err(other) => return Err(other),
        };
        if let Some(group) = group {
            give_to_group(path, group)?;
        }
        // This also removes a turn that was open when its sandbox died; in the record it is over.
        writer.project(|inbound| inbound.clear())?;
        Ok((Self { writer }, damage))
    }

    /// Projects an opened turn with its messages, and removes the rows of earlier turns.
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

    /// Projects the moved deadline of the open turn.
    pub fn move_deadline(&mut self, turn: &Turn) -> Result<(), Error> {
        self.writer.project(|inbound| inbound.turn(turn))
    }

    /// Projects a closed turn, with receipts.
    pub fn close_turn(&mut self, turn: &Turn, routing: &Routing, receipts: &[Receipt]) -> Result<(), Error> {
        self.writer.project(|inbound| {
            inbound.turn(&Turn { open: false, ..turn.clone() })?;
            note(inbound, receipts)?;
            inbound.routing(routing)
        })
    }

    pub fn receipts(&mut self, receipts: &[Receipt]) -> Result<(), Error> {
        self.writer.project(|inbound| note(inbound, receipts))
    }
}

fn note(inbound: &Projection<'_>, receipts: &[Receipt]) -> rusqlite::Result<()> {
    receipts.iter().try_for_each(|Receipt { row, status, at }| inbound.delivered(row, status, *at))
}

/// Gives read access to the file to the group of the sandbox alone; for a host that runs as root.
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

/// Returns the rows for these messages, with new seals. Messages that arrived before `awake_since` are marked as having waited for the
/// wake.
pub fn rows(
    tx: &ReadTx<'_>,
    session: &Session,
    messages: &[MessageId],
    turn: Option<TurnId>,
    awake_since: i64,
    key: &ContentKey,
    sealer: &Sealer,
) -> Result<Vec<MessageIn>, ironclaw_store::error::Error> {
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
            source_session_id: agent_messages::find(tx, *id)?.map(|of_agent| of_agent.source_session),
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
