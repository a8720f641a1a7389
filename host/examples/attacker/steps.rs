//! The steps of an attacker's script: one action each, without a decision.
//!
//! Expects no result; the tests do. To add a step, add it here and in its player. See `main`.

use serde::Deserialize;
use serde_json::Value;

/// One action. In every value `"$name.0.field"` is replaced by the value seen, in a list by its entries;
/// `{"$of": "$name.0", "change": "field", "with": {"field": …}}` is the same with other fields, and
/// `{"$times": "x", "count": 9}` is a long text. In SQL `{turn}`, `{message}`,
/// `{output}` and `{call}` are the values seen last, and `{next}` is the number of the next honest row.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Step {
    /// Says hello with this fingerprint; null is the right one.
    Hello(Option<String>),
    /// Takes the welcome with the key.
    Welcome,
    /// Opens both queues, as far as possible.
    Open,
    /// Rings this many bells.
    Ring(u32),
    /// Rings without an end.
    Flood,
    /// Writes these bytes to the link.
    Link(Vec<u8>),
    /// Sends one request on the model socket, without changes.
    Ask(Value),
    /// Sends a prefix and a text on a new connection to the model socket, then closes the writing side.
    Raw { length: u32, text: String },
    /// Writes a row, through the contract's own writer.
    Row(Value),
    /// Runs statements on the outbound queue.
    Sql(String),
    /// Runs statements on a connection that stays open.
    SqlHeld(String),
    /// Begins a read of the inbound queue that never ends.
    HoldInbound,
    /// Puts this in place of the outbound queue: `directory` or `garbage`.
    Plant(String),
    /// Puts a journal beside the outbound queue whose rollback removes this file.
    Journal(String),
    /// Plays these steps, unless an earlier launch did.
    Once(Vec<Step>),
    /// Plays this step so many times; only its last answer is kept.
    Repeat { times: u32, step: Box<Step> },
    /// Keeps the values seen over launches, as `$kept`.
    Keep,
    /// Waits until the host closed the turn.
    AwaitClosed,
    /// Skips the fair end of this turn.
    Leave,
    /// Runs statements on another database with the session's key.
    SqlAt { path: String, sql: String },
    /// Puts a database of another key or page size in place of the outbound queue.
    Remake { key: Option<String>, page: u32 },
    /// Copies one file's bytes into another.
    Copy { from: String, to: String },
    /// Writes these bytes into a file.
    Put { path: String, text: String },
    /// Inverts the bits of bytes in a file, from this offset on.
    Poke { path: String, at: u64, length: usize },
    /// Sets the length of a file, with a hole beyond its end.
    Size { path: String, length: u64 },
    /// Removes a file.
    Remove(String),
    /// Renames a file.
    Rename { from: String, to: String },
    /// Makes a directory.
    Directory(String),
    /// Makes so many files in a directory.
    Files { directory: String, count: u32 },
    /// Makes a directory in a directory, so many times.
    Deep { directory: String, depth: u32 },
    /// Sets the mode of a file or directory.
    Mode { path: String, mode: u32 },
    /// Makes a link, which the jail should forbid.
    Symlink { to: String, path: String },
    /// Makes a hard link, which the jail should forbid.
    Hardlink { to: String, path: String },
    /// Makes a device node in the place of a renamed file, which the jail should forbid.
    Whiteout { from: String, to: String },
    /// Makes a pipe, which the jail should forbid.
    Fifo(String),
    /// Opens so many connections to the model socket at once and keeps them; the answer is the number that the host still holds.
    Dial(u32),
    /// Closes the connections.
    HangUp,
    /// Sends bytes on the first of them, without waiting for an answer.
    Say(Vec<u8>),
    /// Sends so many requests on the first of them, without reading an answer.
    Deaf { request: Value, times: u32 },
    /// Sends two requests in one write on a new connection; keeps both answers.
    Pipelined([Value; 2]),
    /// Sends so many descriptors over the link with a bell, and over a connection to the model socket.
    Descriptors(usize),
    /// Closes the link and continues.
    CloseLink,
    /// Ends the first thread, and keeps an idle second one.
    Linger,
    /// Stays idle.
    Hang,
    /// Ends the process.
    Exit,
}
