//! The projection of the record into the inbound queue of a session.
//!
//! The queue can be rebuilt from the record at any time, so a damaged one is deleted and never trusted. See
//! [`crate::runtime::actor`].

use crate::turns::items;
use ironclaw_contract::ids::MessageId;
use ironclaw_contract::seam::crypt::{Error, SessionKey};
use ironclaw_contract::seam::inbound::{InboundWriter, MessageIn};
use ironclaw_state::ReadTx;
use ironclaw_state::seal::Sealer;
use std::path::Path;

/// Opens and recovers the queue, and removes the rows of earlier launches. Rebuilds a damaged queue.
///
/// The writer blocks, so use it outside the threads of the async runtime. Also returns a sentence about the damage, if there was any, for
/// the ledger.
///
/// # Errors
/// Fails if the file is a link, a directory or a pipe, or if its lock is held for too long.
pub fn open(path: &Path, key: &SessionKey, group: Option<u32>) -> Result<(InboundWriter, Option<String>), Error> {
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
    writer.clear()?;
    Ok((writer, damage))
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

/// Returns the row of a message, with a new seal.
pub fn row(tx: &ReadTx<'_>, message: MessageId, sealer: &Sealer) -> Result<MessageIn, ironclaw_state::Error> {
    let item = items::find(tx, message.item())?;
    let item = item.ok_or_else(|| ironclaw_state::Error::Stored(format!("{message} has no item")))?;
    Ok(MessageIn { bytes: item.bytes, seal: item.seal(sealer) })
}
