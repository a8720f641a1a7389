//! The reader: the jailed process that parses an outbound queue, and the host's end of its socket.
//!
//! The daemon itself never opens an outbound queue. The reader's answers are bounded and typed, but still untrusted. See
//! `runtime::accept` of the host.

use ironclaw_contract::canonical::Digest;
use ironclaw_contract::seam::crypt::{Error as QueueError, SessionKey};
use ironclaw_contract::seam::limits::{LOCK_WAIT_MS_MAX, NAME_BYTES_MAX, ROW_BYTES_MAX, UNDRAINED_ROWS_MAX};
use ironclaw_contract::seam::link::path;
use ironclaw_contract::seam::outbound::{OutboundReader, Progress, RawRow};
use ironclaw_contract::seam::untrusted::Untrusted;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use zeroize::Zeroize;

/// The host's own sentence about a violation; the exact one may quote the file.
pub const VIOLATION: &str = "its outbound queue violates the contract";

/// Bytes of one frame: as many rows of the largest size as a queue may have, with the worst escaping, and the rest of the frame.
const FRAME_BYTES_MAX: usize = 8 * UNDRAINED_ROWS_MAX * (ROW_BYTES_MAX + NAME_BYTES_MAX);

/// Time in which the reader must answer; otherwise it counts as dead.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(LOCK_WAIT_MS_MAX + 4_000);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Ask {
    Key(String),
    Look { cursor: u64 },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Answer<R> {
    Found { rows: Vec<R>, progress: Vec<Progress>, taken: Vec<(u64, Digest)> },
    Missing,
    NeedsRecovery,
    Locked,
    Failed(String),
    Violation(String),
}

/// The rows that one read of an outbound queue found.
#[derive(Debug)]
pub struct Found {
    /// Rows above the cursor, in order.
    pub rows: Vec<Untrusted<RawRow>>,
    /// The sandbox's statements about its progress, without authority.
    pub progress: Vec<Progress>,
    /// Rows at or below the cursor that are still in the file.
    pub taken: Vec<(u64, Digest)>,
}

/// The reason why a read failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file needs recovery by the next launch of the sandbox; until then it has no readable rows.
    #[error("the outbound queue waits for its sandbox to recover it")]
    NeedsRecovery,
    /// Another process holds the lock too long.
    #[error("the outbound queue is locked by its sandbox")]
    Locked,
    /// The file violates the contract.
    #[error("{0}")]
    Violation(String),
    /// The machine has a shortage; the file may be intact.
    #[error("the outbound queue cannot be read now: {0}")]
    Failed(String),
    /// The reader has ended, does not answer, or sends malformed answers.
    #[error("the reader of the outbound queue died: {0}")]
    Dead(io::Error),
}

/// The host's end of one reader.
pub struct Reader {
    stream: tokio::net::UnixStream,
}

impl Reader {
    /// Sends the session key to a new reader.
    pub async fn start(stream: tokio::net::UnixStream, key: &SessionKey) -> Result<Self, Error> {
        let mut reader = Self { stream };
        let mut ask = Ask::Key(key.to_hex().to_string());
        let sent = reader.send(&ask).await;
        if let Ask::Key(hex) = &mut ask {
            hex.zeroize();
        }
        sent.map_err(Error::Dead).map(|()| reader)
    }

    /// Asks for the rows above `cursor`; bounded in time.
    pub async fn look(&mut self, cursor: u64) -> Result<Found, Error> {
        let exchange = async {
            self.send(&Ask::Look { cursor }).await?;
            let mut prefix = [0; 4];
            self.stream.read_exact(&mut prefix).await?;
            let mut frame = vec![0; length(prefix)?];
            self.stream.read_exact(&mut frame).await?;
            Ok(frame)
        };
        let timed_out = |_| io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
        let frame =
            tokio::time::timeout(ANSWER_TIME_MAX, exchange).await.map_err(timed_out).flatten().map_err(Error::Dead)?;
        let answer: Answer<Untrusted<RawRow>> = serde_json::from_slice(&frame)
            .map_err(|_| Error::Dead(io::Error::new(io::ErrorKind::InvalidData, "its answer is malformed")))?;
        match answer {
            Answer::Found { rows, progress, taken } => Ok(Found { rows, progress, taken }),
            Answer::Missing => Ok(Found { rows: Vec::new(), progress: Vec::new(), taken: Vec::new() }),
            Answer::NeedsRecovery => Err(Error::NeedsRecovery),
            Answer::Locked => Err(Error::Locked),
            Answer::Failed(what) => Err(Error::Failed(printable(&what))),
            Answer::Violation(what) => Err(Error::Violation(printable(&what))),
        }
    }

    async fn send(&mut self, ask: &Ask) -> io::Result<()> {
        let mut frame = frame(ask)?;
        let sent = self.stream.write_all(&frame).await;
        frame.zeroize();
        sent
    }
}

/// Truncates a sentence of the reader, which is about an untrusted file, and removes control characters.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

fn length(prefix: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_be_bytes(prefix) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("frame of {length} bytes")));
    }
    Ok(length)
}

fn frame<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, value)?;
    let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    Ok(bytes)
}

/// Runs the jailed process; returns its exit code.
pub fn main(link: OwnedFd) -> i32 {
    let database = Path::new(path::OUT).join(path::OUTBOUND_DB);
    match serve(UnixStream::from(link), database) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn serve(mut host: UnixStream, database: PathBuf) -> io::Result<()> {
    let Some(Ask::Key(mut hex)) = receive(&mut host)? else { return Ok(()) };
    let key = SessionKey::from_hex(&hex).ok_or(io::ErrorKind::InvalidData)?;
    hex.zeroize();
    let mut queue = None;
    while let Some(Ask::Look { cursor }) = receive(&mut host)? {
        let answer = look(&mut queue, &database, &key, cursor);
        host.write_all(&frame(&answer)?)?;
    }
    Ok(())
}

fn receive(host: &mut UnixStream) -> io::Result<Option<Ask>> {
    let mut prefix = [0; 4];
    match host.read_exact(&mut prefix) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut frame = vec![0; length(prefix)?];
    host.read_exact(&mut frame)?;
    let ask = serde_json::from_slice(&frame)?;
    frame.zeroize();
    Ok(Some(ask))
}

fn look(queue: &mut Option<OutboundReader>, database: &Path, key: &SessionKey, cursor: u64) -> Answer<RawRow> {
    // The contract's journal is a rollback journal. With a write-ahead log instead, the library would read an index in shared memory
    // that the sandbox writes at the same time.
    for suffix in ["db-wal", "db-shm"] {
        let log = database.with_extension(suffix);
        if log.symlink_metadata().is_ok() {
            let what = format!("{} exists, but the journal mode of the contract makes no such file", log.display());
            return Answer::Violation(what);
        }
    }
    let found = match queue.take() {
        Some(open) => Ok(open),
        None => OutboundReader::open(database, key),
    }
    .and_then(|mut open| {
        let found = open.look(cursor)?;
        *queue = Some(open);
        Ok(found)
    });
    match found {
        Ok(found) => {
            let bare = |row: Untrusted<RawRow>| {
                let Ok(row) = row.check(Ok::<_, std::convert::Infallible>);
                row
            };
            let rows = found.rows.into_iter().map(bare).collect();
            Answer::Found { rows, progress: found.progress, taken: found.taken }
        }
        Err(QueueError::Missing { .. }) => Answer::Missing,
        Err(QueueError::NeedsRecovery { .. }) => Answer::NeedsRecovery,
        Err(QueueError::Locked { .. }) => Answer::Locked,
        Err(QueueError::Sqlite { source, .. }) if !is_of_the_file(&source) => Answer::Failed(source.to_string()),
        Err(
            error @ (QueueError::NotAFile { .. }
            | QueueError::WrongKey { .. }
            | QueueError::Schema { .. }
            | QueueError::Row { .. }
            | QueueError::Sqlite { .. }),
        ) => Answer::Violation(error.to_string()),
    }
}

/// Returns whether the file causes an error (too large a value, an endless query). A full disk or memory is another cause.
fn is_of_the_file(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, DatabaseCorrupt, NotADatabase, OperationInterrupted, TooBig, TypeMismatch};
    match error.sqlite_error_code() {
        // If a regular file does not open, it needs a log beside it, which a reader cannot make.
        Some(CannotOpen) => true,
        Some(code) => matches!(code, DatabaseCorrupt | NotADatabase | OperationInterrupted | TooBig | TypeMismatch),
        None => true,
    }
}
