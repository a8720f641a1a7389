//! The steps of the attacker's script. Each step is one action.
//!
//! The tests check the results. A new step is added here and in `main` or `files`.

use serde::Deserialize;
use serde_json::Value;

/// One action. In every value `"$name.0.field"` is replaced by the received value, and in a list by its entries.
/// `{"$of": "$name.0", "change": "field", "with": {"field": …}}` is the received value with other fields, and
/// `{"$times": "x", "count": 9}` is a long text. In SQL, `{turn}`, `{message}`, `{output}` and `{call}` are the last received values,
/// and `{next}` is the number of the next honest row.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Step {
    /// Sends a hello with this fingerprint; null means the correct one.
    Hello(Option<String>),
    /// Reads the welcome, which contains the key.
    Welcome,
    /// Opens both queues if possible.
    Open,
    /// Rings this many bells.
    Ring(u32),
    /// Rings bells without end.
    Flood,
    /// Writes these bytes to the link.
    Link(Vec<u8>),
    /// Sends one request on the model socket.
    Ask(Value),
    /// Sends a prefix and a text on a new connection to the model socket, then closes the writing side.
    Raw { length: u32, text: String },
    /// Writes a row with the writer of the contract.
    Row(Value),
    /// Runs statements on the outbound queue.
    Sql(String),
    /// Runs statements on a connection and keeps it open.
    SqlHeld(String),
    /// Begins a read transaction on the inbound queue that never ends.
    HoldInbound,
    /// Replaces the outbound queue by a `directory` or by `garbage`.
    Plant(String),
    /// Writes a journal beside the outbound queue. Its rollback would remove this file.
    Journal(String),
    /// Plays these steps, unless an earlier launch did.
    Once(Vec<Step>),
    /// Plays this step this many times and keeps only its last answer.
    Repeat { times: u32, step: Box<Step> },
    /// Saves the received values over launches, as `$kept`.
    Keep,
    /// Waits until the person has the answer of the turn.
    AwaitAnswered,
    /// Skips the honest end of this turn.
    Leave,
    /// Runs statements on another database with the key of the session.
    SqlAt { path: String, sql: String },
    /// Replaces the outbound queue by a database with another key or page size.
    Remake { key: Option<String>, page: u32 },
    /// Copies the bytes of one file into another.
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
    /// Makes this many files in a directory.
    Files { directory: String, count: u32 },
    /// Makes this many nested directories.
    Deep { directory: String, depth: u32 },
    /// Sets the mode of a file or directory.
    Mode { path: String, mode: u32 },
    /// Makes a symbolic link, which the jail should forbid.
    Symlink { to: String, path: String },
    /// Makes a hard link, which the jail should forbid.
    Hardlink { to: String, path: String },
    /// Makes a device node in the place of a renamed file, which the jail should forbid.
    Whiteout { from: String, to: String },
    /// Makes a pipe, which the jail should forbid.
    Fifo(String),
    /// Opens this many connections to the model socket and keeps them. The answer is the number that the host keeps open.
    Dial(u32),
    /// Closes the connections.
    HangUp,
    /// Sends bytes on the first of them, without waiting for an answer.
    Say(Vec<u8>),
    /// Sends this many requests on the first of them, without reading an answer.
    Deaf { request: Value, times: u32 },
    /// Sends two requests in one write on a new connection, and keeps both answers.
    Pipelined([Value; 2]),
    /// Sends this many descriptors over the link with a bell, and over a connection to the model socket.
    Descriptors(usize),
    /// Closes the link and continues.
    CloseLink,
    /// Ends the first thread and keeps an idle second one.
    Linger,
    /// Stays idle.
    Hang,
    /// Ends the process.
    Exit,
}
