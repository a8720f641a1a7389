//! What a script may ask the attacker to do: one thing a line, nothing that decides.
//!
//! Never says what should come of it; the tests do. To add a step, add it here and where it is played. Next: `main`.

use serde::Deserialize;
use serde_json::Value;

/// One thing to do. In every value `"$name.0.field"` stands for what was seen, in a list for its entries; and
/// `{"$of": "$name.0", "change": "field", "with": {"field": …}}` for the same with other fields, and
/// `{"$times": "x", "count": 9}` for a long text. In SQL `{turn}`, `{message}`,
/// `{output}` and `{call}` stand for what was seen last, and `{next}` for the number that the next honest row would have.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Step {
    /// Says hello with this fingerprint; null is the right one.
    Hello(Option<String>),
    /// Takes the welcome with the key.
    Welcome,
    /// Opens both queues, as far as they open.
    Open,
    /// Rings so many bells.
    Ring(u32),
    /// Rings for ever.
    Flood,
    /// Writes these bytes to the link.
    Link(Vec<u8>),
    /// One request on the model socket, as it stands here.
    Ask(Value),
    /// A prefix and a text on a new connection to the model socket, then the end of what we write.
    Raw { length: u32, text: String },
    /// A row, through the contract's own writer.
    Row(Value),
    /// Statements on the outbound queue.
    Sql(String),
    /// The same, on a connection that stays open.
    SqlHeld(String),
    /// A read of the inbound queue that never ends.
    HoldInbound,
    /// Puts this in place of the outbound queue: `directory` or `garbage`.
    Plant(String),
    /// A journal beside the outbound queue that asks whoever rolls it back to remove this file.
    Journal(String),
    /// These steps, unless an earlier launch did them.
    Once(Vec<Step>),
    /// This step so many times; of its answers only the last stays.
    Repeat { times: u32, step: Box<Step> },
    /// Keeps what was seen over launches, as `$kept`.
    Keep,
    /// Waits until the host closed the turn.
    AwaitClosed,
    /// No fair end of this turn.
    Leave,
    /// Statements on another database of the session's key.
    SqlAt { path: String, sql: String },
    /// A database of another key or page size in place of the outbound queue.
    Remake { key: Option<String>, page: u32 },
    /// One file's bytes into another.
    Copy { from: String, to: String },
    /// These bytes into a file.
    Put { path: String, text: String },
    /// Turns the bits of bytes in a file, from here on.
    Poke { path: String, at: u64, length: usize },
    /// A file of this length, with a hole where nothing was.
    Size { path: String, length: u64 },
    /// Removes a file.
    Remove(String),
    /// Another name for a file.
    Rename { from: String, to: String },
    /// A directory.
    Directory(String),
    /// So many files in a directory.
    Files { directory: String, count: u32 },
    /// A directory in a directory, so many times.
    Deep { directory: String, depth: u32 },
    /// The mode of a file or directory.
    Mode { path: String, mode: u32 },
    /// A link, which the jail should not let anybody make.
    Symlink { to: String, path: String },
    /// A second name, likewise.
    Hardlink { to: String, path: String },
    /// A device node in the place of a file that is renamed, likewise.
    Whiteout { from: String, to: String },
    /// A pipe, likewise.
    Fifo(String),
    /// So many connections to the model socket at once, kept; the answer says how many of them the host still holds.
    Dial(u32),
    /// Closes them.
    HangUp,
    /// Bytes on the first of them, without waiting for an answer.
    Say(Vec<u8>),
    /// So many requests on the first of them, none of whose answers is read.
    Deaf { request: Value, times: u32 },
    /// Two requests in one write on a new connection; both answers.
    Pipelined([Value; 2]),
    /// So many descriptors of ours, sent over the link with a bell, and over a connection to the model socket.
    Descriptors(usize),
    /// Closes the link and goes on.
    CloseLink,
    /// Ends the first thread, and stays with another that does nothing.
    Linger,
    /// Does nothing any more.
    Hang,
    /// Ends the process.
    Exit,
}
