//! The files that agents send: the host copies one when the agent asks, so people decide about these bytes, and only these are sent.
//!
//! Never sends a file of a workspace itself: the agent may change it at any moment. See [`crate::turns::calls`] for the arguments of
//! the call, and [`crate::sessions::files`] for the reading below a workspace.

use crate::sessions::files::{self, FilePath, Files};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{CallId, ItemId, SessionId};
use ironclaw_operator::{SENT_FILE_BYTES_MAX, SentFile};
use ironclaw_state::home::SessionDirectories;
use ironclaw_state::keys::ContentKey;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::tables::sent_files::{self as table, SentFileRow};
use ironclaw_text::file::{check_name, media_type};
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;

pub use ironclaw_store::tables::sent_files::{delete_file as end, open_file_count as open_count};

/// Copies of one session. Of those that were sent, the oldest ends for a new one.
pub const COPIES_MAX: u64 = 16;

/// The place of the workspace in the jail, which a model may write before a path.
const WORKSPACE: &str = "/workspace/";

/// A copy that the record does not have yet.
pub struct Copied {
    /// What people read about it.
    pub file: SentFile,
    content: Vec<u8>,
}

/// Copies a regular file below a workspace. Blocks while it reads.
///
/// # Errors
/// A sentence with the name of the file: the path leads to no regular file or through a link, the name misleads, or it is too large.
pub fn copy(place: &SessionDirectories, path: &str) -> Result<Copied, String> {
    let path = FilePath::parse(path.strip_prefix(WORKSPACE).unwrap_or(path)).map_err(|refusal| refusal.message)?;
    let unreadable = |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}", path.shown());
    let Some((_, name)) = path.split() else { return Err("the workspace itself is no file".to_owned()) };
    check_name(name).map_err(|why| format!("refused the name {}: {why}", files::shown(name)))?;
    // In a host that was started as root, a file of another user is not from the agent.
    let owner = fs::symlink_metadata(place.workspace()).map_err(|error| unreadable(&error))?.uid();
    let opened = Files::open(place, Some(owner)).map_err(|error| unreadable(&error))?;
    let opened = opened.ok_or_else(|| format!("there is no file {}", path.shown()))?;
    let (file, bytes) = opened.read(&path).map_err(|denied| match denied {
        ironclaw_store::refusal::Denied::Refused(refusal) => refusal.message,
        ironclaw_store::refusal::Denied::Failed(error) => unreadable(&error),
    })?;
    let too_large =
        |bytes: u64| format!("{} has {bytes} bytes; at most {SENT_FILE_BYTES_MAX} can be sent", path.shown());
    if bytes > SENT_FILE_BYTES_MAX as u64 {
        return Err(too_large(bytes));
    }
    let mut content = Vec::new();
    file.take(SENT_FILE_BYTES_MAX as u64 + 1).read_to_end(&mut content).map_err(|error| unreadable(&error))?;
    let bytes = content.len() as u64;
    if content.len() > SENT_FILE_BYTES_MAX {
        return Err(too_large(bytes));
    }
    let (media_type, digest) = (media_type(&content).to_owned(), Digest::of(&content));
    Ok(Copied { file: SentFile { name: name.to_owned(), media_type, bytes, digest }, content })
}

/// Records the copy of a call.
pub fn keep(
    tx: &mut WriteTx<'_>,
    call: CallId,
    session: SessionId,
    copied: Copied,
    key: &ContentKey,
) -> Result<(), Error> {
    let Copied { file: SentFile { name, media_type, bytes, digest }, content } = copied;
    table::delete_oldest_files(tx, session, COPIES_MAX - 1)?;
    let row = SentFileRow { item: ItemId::new(), name, media_type, bytes, digest };
    let content = key.seal(row.item, &content)?;
    Ok(table::insert_file(tx, call, session, &row, &content)?)
}

/// Returns what people read about the copy of a call.
pub fn find(tx: &ReadTx<'_>, call: CallId) -> Result<Option<SentFile>, ironclaw_state::Error> {
    let file = |SentFileRow { name, media_type, bytes, digest, .. }| SentFile { name, media_type, bytes, digest };
    Ok(table::find_file(tx, call)?.map(file))
}

/// Returns the copy of a call with its content.
///
/// # Errors
/// Errors of the record, and of a content that the key does not open.
pub fn read(tx: &ReadTx<'_>, call: CallId, key: &ContentKey) -> Result<Option<(SentFile, Vec<u8>)>, Error> {
    let (Some(row), Some(content)) = (table::find_file(tx, call)?, table::file_content(tx, call)?) else {
        return Ok(None);
    };
    let content = key.open(row.item, &content)?;
    let SentFileRow { name, media_type, bytes, digest, .. } = row;
    Ok(Some((SentFile { name, media_type, bytes, digest }, content)))
}
