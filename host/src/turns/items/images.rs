//! The images of a message: the files in the workspace that its sender put there, each with the digest of its bytes.
//!
//! Never reads a file: the agent may change it, so its bytes are compared with the digest when a prompt needs them. See
//! [`crate::turns::context::images`].

use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{ItemId, MessageId};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::{self, ContentKey};
use ironclaw_store::error::Error;
use ironclaw_store::tables::messages;
use serde::{Deserialize, Serialize};

/// An image of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentImage {
    /// The index of the span with the note about it.
    pub span: usize,
    /// Path of the file below the workspace.
    pub path: String,
    /// Digest of the bytes that the sender put there.
    pub digest: Digest,
}

/// Returns the encrypted list of a message's images. Its key is that of the message's body.
///
/// # Errors
/// Errors of the key.
pub fn seal(message: MessageId, images: &[SentImage], key: &ContentKey) -> Result<Vec<u8>, keys::Error> {
    key.seal(message.item(), canonical::to_string(&images).as_bytes())
}

/// Returns the images of a message; none if its row was removed.
///
/// # Errors
/// Errors of the record, and of a list that the key does not open.
pub fn for_message(tx: &ReadTx<'_>, item: ItemId, key: &ContentKey) -> Result<Vec<SentImage>, Error> {
    let Some(sealed) = messages::images(tx, item.message())? else { return Ok(Vec::new()) };
    let unreadable = || keys::Error::Sealed("the images of a message");
    Ok(serde_json::from_slice(&key.open(item, &sealed)?).map_err(|_| unreadable())?)
}
