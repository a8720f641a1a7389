//! The reading of one message of a server, within bounds on its values and its depth.
//!
//! Reads a long message in a blocking thread, and few of them at once: the tree of a message takes a hundred times its text. See
//! [`ironclaw_text::json`].

use crate::listing::pieces;
use ironclaw_text::json;
use serde_json::Value;
use tokio::sync::Semaphore;

/// Values of one message. A listing of 300 tools has some ten thousand.
const VALUES_MAX: usize = 65_536;
/// Bytes of the longest message that is read on the async threads.
const INLINE_BYTES_MAX: usize = 64 << 10;
/// Long messages that are read at the same time, over all connections.
const LONG_MAX: usize = 2;

static LONG: Semaphore = Semaphore::const_new(LONG_MAX);

/// A message of a server.
pub(crate) enum Message {
    Read(Value),
    Unread(Unread),
    /// No object, such as a line of a log.
    Other,
}

/// An object that cannot be read.
pub(crate) struct Unread {
    /// The number in its field `id`.
    pub(crate) id: Option<i64>,
    pub(crate) why: String,
    /// Its result, if that is a page of a listing: an entry that cannot be read hides no other.
    pub(crate) page: Option<Value>,
}

/// Reads a message. No tree is made of a text that is no object.
pub(crate) async fn read(text: Vec<u8>) -> Message {
    if text.len() <= INLINE_BYTES_MAX {
        return parsed(&text);
    }
    // The semaphore is never closed.
    let _permit = LONG.acquire().await;
    let reading = tokio::task::spawn_blocking(move || parsed(&text));
    reading.await.unwrap_or(Message::Other)
}

fn parsed(text: &[u8]) -> Message {
    if text.trim_ascii_start().first() != Some(&b'{') {
        return Message::Other;
    }
    match json::read(text, VALUES_MAX) {
        Ok(value) => Message::Read(value),
        Err(unread) => Message::Unread(Unread {
            id: json::number_in(text, "id").or_else(|| pieces::number(text, b"id")),
            why: unread.to_string(),
            page: pieces::read(text, VALUES_MAX),
        }),
    }
}
