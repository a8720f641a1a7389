//! The check of the write-ahead log of the last run: a missing log, or commits behind a damaged frame.
//!
//! SQLite silently drops all frames behind the first bad one, so this module reads the file before SQLite opens it. Never writes
//! to the log. The format is SQLite's: <https://www.sqlite.org/fileformat2.html#walformat>. See `daemon` of the host.

use super::sql::{self, Mark};
use super::{Error, WriteTx, remove_log};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// Bytes of a page, as each connection sets it for the cipher.
const PAGE_BYTES: usize = 4096;
/// The first word of a log; its lowest bit gives the byte order of the checksums.
const MAGIC: u32 = 0x377f_0682;
const READ_BYTES: usize = 256 * 1024;

/// The value of [`Mark::Open`] while the log must have a frame.
const FILLED: &str = "open";
/// The value of [`Mark::Open`] after an erasure, which empties the log.
const EMPTIED: &str = "emptied";

/// State of the log before SQLite opens the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Log {
    /// There is no log.
    Missing,
    /// The log has no frame.
    Empty,
    /// Every written frame is valid.
    Whole,
    /// Committed frames are behind an invalid one; the number of these commits.
    Damaged(u64),
}

/// The process that inspects the log when it opens the record, and removes it when it closes the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    This,
    /// Another process, which has the record open.
    Another,
}

/// A loss of changes: at an unclean end, or by a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "log")]
pub enum Lost {
    /// The log is missing, with all changes that were not yet in the database file.
    Missing,
    Damaged {
        /// Number of commits behind the damage.
        commits: u64,
    },
    /// The record comes from a backup and has no later change.
    Restored {
        /// Id of the backup.
        backup: String,
    },
}

impl Lost {
    /// Returns the sentence for an operator.
    pub fn sentence(&self) -> String {
        match self {
            Self::Missing => "the last run did not shut down cleanly, and its write-ahead log state.db-wal is missing: the changes in \
                 it are lost"
                .to_owned(),
            Self::Damaged { commits } => format!(
                "the write-ahead log state.db-wal was damaged: {commits} commits behind the damage are lost"
            ),
            Self::Restored { backup } => format!("the home was restored from the backup {backup}"),
        }
    }
}

/// Returns the path of the log of the record at `path`.
pub(super) fn path_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

/// Inspects the log of the record at `path`.
pub(super) fn inspect(path: &Path) -> Result<Log, Error> {
    let log = path_of(path);
    let found = File::open(&log).and_then(|file| walk(BufReader::with_capacity(READ_BYTES, file)));
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Log::Missing),
        found => found.map_err(|source| Error::Log { path: log.display().to_string(), source }),
    }
}

fn walk(mut file: impl Read) -> io::Result<Log> {
    let mut header = [0; HEADER_BYTES];
    if !fill(&mut file, &mut header)? {
        return Ok(Log::Empty);
    }
    let mut sums = Sums { little: word(&header, 0) == MAGIC, values: (0, 0) };
    sums.add(&header[..24]);
    let known = word(&header, 0) & !1 == MAGIC && word(&header, 2) as usize == PAGE_BYTES;
    let mut fits = known && sums.values == (word(&header, 6), word(&header, 7));
    // Without a valid header, the salts of the first frame identify the frames of this log.
    let mut salts = fits.then(|| (word(&header, 4), word(&header, 5)));
    let (mut frames, mut commits_behind) = (0u64, 0);
    let mut frame = vec![0; FRAME_HEADER_BYTES + PAGE_BYTES];
    while fill(&mut file, &mut frame)? {
        frames += 1;
        let own = (word(&frame, 2), word(&frame, 3));
        let is_current = *salts.get_or_insert(own) == own;
        let was_fitting = fits;
        if fits {
            sums.add(&frame[..8]);
            sums.add(&frame[FRAME_HEADER_BYTES..]);
            fits = is_current && word(&frame, 0) != 0 && sums.values == (word(&frame, 4), word(&frame, 5));
        }
        // A killed host may leave a half-written frame. The frames behind it were written later.
        let commits = word(&frame, 1) != 0;
        if !was_fitting && is_current && commits {
            commits_behind += 1;
        }
    }
    Ok(match (frames, commits_behind) {
        (0, _) => Log::Empty,
        (_, 0) => Log::Whole,
        (_, commits) => Log::Damaged(commits),
    })
}

/// Fills the buffer; returns `false` if the file ends earlier.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

/// Returns a word of a header; all of them are big-endian.
fn word(bytes: &[u8], number: usize) -> u32 {
    bytes[number * 4..].first_chunk().map_or(0, |word| u32::from_be_bytes(*word))
}

/// The running checksums of a log.
struct Sums {
    little: bool,
    values: (u32, u32),
}

impl Sums {
    fn add(&mut self, bytes: &[u8]) {
        let read = |word: [u8; 4]| if self.little { u32::from_le_bytes(word) } else { u32::from_be_bytes(word) };
        let (mut one, mut two) = self.values;
        let (pairs, _) = bytes.as_chunks::<8>();
        for [a, b, c, d, e, f, g, h] in pairs.iter().copied() {
            one = one.wrapping_add(read([a, b, c, d])).wrapping_add(two);
            two = two.wrapping_add(read([e, f, g, h])).wrapping_add(one);
        }
        self.values = (one, two);
    }
}

/// Records a loss for [`take_lost`], and marks the record as open in the database file.
///
/// # Errors
/// [`Error::InUse`] while another process writes.
pub(super) fn mark_open(db: &Connection, path: &Path, log: &Log) -> Result<(), Error> {
    write_open_mark(db, log).map_err(|error| match error {
        Error::Sqlite(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
            Error::InUse(path.display().to_string())
        }
        error => error,
    })
}

fn write_open_mark(db: &Connection, log: &Log) -> Result<(), Error> {
    let was_open = sql::mark(db, Mark::Open)?;
    let lost = match (log, was_open.as_deref()) {
        (Log::Missing, Some(_)) | (Log::Empty, Some(FILLED)) => Some(Lost::Missing),
        (Log::Damaged(commits), _) => Some(Lost::Damaged { commits: *commits }),
        (Log::Missing | Log::Empty | Log::Whole, _) => None,
    };
    let change = || -> Result<(), Error> {
        if let Some(lost) = lost {
            let mut all = read_lost(db)?;
            all.push(lost);
            let text = serde_json::to_string(&all).expect("plain fields");
            sql::set_mark(db, Mark::ChangesLost, &text)?;
        }
        sql::set_mark(db, Mark::Open, FILLED)?;
        Ok(())
    };
    sql::begin_to_write(db)?;
    let changed = change();
    if changed.is_ok() { sql::commit(db) } else { sql::roll_back(db) }?;
    changed?;
    // The mark must survive a later loss of the log, so a checkpoint writes it into the file now. Another reader may delay that
    // until the next checkpoint.
    Ok(sql::checkpoint(db)?)
}

/// Marks the log as emptied, so that an empty log does not count as a loss until [`mark_filled`].
pub(super) fn mark_emptied(db: &Connection) -> rusqlite::Result<()> {
    sql::set_mark(db, Mark::Open, EMPTIED)
}

/// Marks the log as filled, and writes the mark into the database file. Returns false if a reader blocks that: the next commit tries it
/// again.
pub(super) fn mark_filled(db: &Connection) -> rusqlite::Result<bool> {
    sql::set_mark(db, Mark::Open, FILLED)?;
    sql::checkpoint_passively(db)
}

/// Marks the record as cleanly closed, so that it needs no log. SQLite may then remove the log when this connection closes last.
pub(super) fn mark_closed(db: &Connection) -> rusqlite::Result<()> {
    sql::remove_mark(db, Mark::Open)?;
    remove_log(db);
    Ok(())
}

/// Marks the copy of a record as a restored one, and as cleanly closed. Each start on this copy begins another generation.
pub(super) fn mark_restored(db: &Connection, backup: &str) -> Result<(), Error> {
    let mut all = read_lost(db)?;
    all.push(Lost::Restored { backup: backup.to_owned() });
    let text = serde_json::to_string(&all).expect("plain fields");
    sql::set_mark(db, Mark::ChangesLost, &text)?;
    Ok(mark_closed(db)?)
}

fn read_lost(db: &Connection) -> Result<Vec<Lost>, Error> {
    let text = sql::mark(db, Mark::ChangesLost)?;
    text.map_or(Ok(Vec::new()), |text| serde_json::from_str(&text))
        .map_err(|_| Error::Stored("meta: changes_lost".to_owned()))
}

/// Returns the losses that the ledger does not name yet, and removes their mark.
///
/// # Errors
/// The errors of SQLite.
pub fn take_lost(tx: &mut WriteTx<'_>) -> Result<Vec<Lost>, Error> {
    take_lost_from(tx.db)
}

fn take_lost_from(db: &Connection) -> Result<Vec<Lost>, Error> {
    let lost = read_lost(db)?;
    sql::remove_mark(db, Mark::ChangesLost)?;
    Ok(lost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{State, connect, create, migrations, open_to_look, rekey};
    use ironclaw_contract::seam::crypt::SessionKey;

    fn key() -> SessionKey {
        SessionKey::new([5; 32])
    }

    /// Makes a record with the log of a killed host: `commits` changes are only in the log.
    fn killed(commits: usize) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (path, copy) = (directory.path().join("state.db"), directory.path().join("killed.db"));
        create(&path).expect("made");
        let db = connect(&path, &key()).expect("opened");
        migrations::run(&db, &path, &key()).expect("a schema");
        mark_open(&db, &path, &Log::Missing).expect("noted");
        for number in 0..commits {
            let sql = "INSERT INTO meta (key, value) VALUES (?1, hex(randomblob(9000)))";
            db.execute(sql, [format!("k{number}")]).expect("written");
        }
        std::fs::copy(&path, &copy).expect("copied");
        std::fs::copy(path_of(&path), path_of(&copy)).expect("copied");
        (directory, copy)
    }

    /// Changes a bit of the first page in the log.
    fn damage(path: &Path) {
        let mut bytes = std::fs::read(path_of(path)).expect("read");
        bytes[HEADER_BYTES + FRAME_HEADER_BYTES + 7] ^= 1;
        std::fs::write(path_of(path), bytes).expect("written");
    }

    fn lost(path: &Path) -> Vec<Lost> {
        let log = inspect(path).expect("read");
        let db = connect(path, &key()).expect("opened");
        mark_open(&db, path, &log).expect("noted");
        let lost = take_lost_from(&db).expect("read");
        mark_closed(&db).expect("noted");
        lost
    }

    #[test]
    fn log_of_a_killed_host_is_whole_and_nothing_is_lost() {
        let (_directory, path) = killed(20);
        assert_eq!(inspect(&path).expect("read"), Log::Whole);
        assert_eq!(lost(&path), []);
    }

    #[test]
    fn half_a_frame_at_the_end_is_no_damage() {
        let (_directory, path) = killed(3);
        let whole = std::fs::read(path_of(&path)).expect("read");
        for cut in [1, 100, PAGE_BYTES, PAGE_BYTES + 10, whole.len() - 40, whole.len() - HEADER_BYTES - 1] {
            std::fs::write(path_of(&path), &whole[..whole.len() - cut]).expect("written");
            let found = inspect(&path).expect("read");
            assert!(matches!(found, Log::Whole | Log::Empty), "{cut}: {found:?}");
        }
    }

    #[test]
    fn flipped_bit_anywhere_in_the_log_is_found() {
        let (_directory, path) = killed(8);
        let whole = std::fs::read(path_of(&path)).expect("read");
        let third = HEADER_BYTES + 2 * (FRAME_HEADER_BYTES + PAGE_BYTES);
        // Bytes of the header, and of the first and the third frame (frame header and page). Older frames follow the last one.
        let of_frame = |begin: usize| [2, 9, 17, 600].map(|byte| begin + byte);
        let places = (0..24).chain(of_frame(HEADER_BYTES)).chain(of_frame(third));
        for at in places {
            let mut damaged = whole.clone();
            damaged[at] ^= 4;
            std::fs::write(path_of(&path), damaged).expect("written");
            let found = inspect(&path).expect("read");
            assert!(matches!(found, Log::Damaged(commits) if commits > 0), "byte {at}: {found:?}");
        }
        std::fs::write(path_of(&path), &whole).expect("written");
        let all = inspect(&path).expect("read");
        assert_eq!(all, Log::Whole, "the original bytes");
    }

    #[test]
    fn damaged_log_is_reported_exactly_once() {
        let (_directory, path) = killed(8);
        damage(&path);
        let found = lost(&path);
        assert!(matches!(&found[..], [Lost::Damaged { commits }] if *commits >= 8), "{found:?}");
        assert_eq!(lost(&path), [], "reported once");
    }

    #[test]
    fn missing_log_after_an_unclean_end_is_a_loss() {
        let (_directory, path) = killed(8);
        std::fs::remove_file(path_of(&path)).expect("removed");
        assert_eq!(lost(&path), [Lost::Missing]);
        let (_directory, path) = killed(8);
        std::fs::write(path_of(&path), "").expect("emptied");
        assert_eq!(lost(&path), [Lost::Missing], "an empty log counts as missing");
        let (_directory, path) = killed(8);
        let db = connect(&path, &key()).expect("opened");
        mark_emptied(&db).expect("noted");
        sql::empty_log(&db).expect("emptied");
        drop(db);
        std::fs::write(path_of(&path), "").expect("the state after an erasure");
        assert_eq!(lost(&path), [], "an erasure empties it");
    }

    #[test]
    fn offline_look_leaves_the_log_in_place() {
        let (_directory, path) = killed(8);
        let before = std::fs::read(path_of(&path)).expect("read");
        drop(open_to_look(&path, &key()).expect("opened"));
        assert!(std::fs::read(path_of(&path)).expect("still there") == before);
        assert_eq!(lost(&path), []);
    }

    /// Adds a trigger that refuses this kind of change (an SQL keyword) of the table `meta`.
    fn refuse(path: &Path, change: &str) {
        let sql = format!("CREATE TRIGGER refuse BEFORE {change} ON meta BEGIN SELECT RAISE(ABORT, 'refused'); END");
        connect(path, &key()).expect("opened").execute_batch(&sql).expect("made");
    }

    fn allow(path: &Path) {
        connect(path, &key()).expect("opened").execute_batch("DROP TRIGGER refuse").expect("removed");
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(work)
    }

    #[test]
    fn log_is_removed_by_an_orderly_close_only() {
        let (_directory, path) = killed(8);
        refuse(&path, "DELETE");
        run(async { State::open(&path, &key()).expect("opened").close().await });
        assert!(path_of(&path).exists(), "the record still says that it is open");
        allow(&path);
        assert_eq!(lost(&path), []);
        run(async { State::open(&path, &key()).expect("opened").close().await });
        assert!(!path_of(&path).exists(), "every connection is closed, and the record says so");
    }

    #[test]
    fn failed_open_or_copy_leaves_the_log_in_place() {
        for change in ["INSERT", "DELETE"] {
            let (directory, path) = killed(8);
            refuse(&path, change);
            match change {
                "INSERT" => drop(State::open(&path, &key()).err().expect("the record cannot be marked as open")),
                _ => {
                    let copy = rekey::Copy::create(&path, &key(), &directory.path().join("next.db"));
                    drop(copy.err().expect("the record cannot be marked as closed"));
                }
            }
            assert!(path_of(&path).exists(), "{change}");
            allow(&path);
            assert_eq!(lost(&path), [], "{change}");
        }
    }

    #[test]
    fn open_beside_another_process_leaves_the_log_alone() {
        let (_directory, path) = killed(8);
        damage(&path);
        run(async { State::open_beside(&path, &key()).expect("opened").close().await });
        assert!(path_of(&path).exists(), "it belongs to another process");
        let db = connect(&path, &key()).expect("opened");
        assert_eq!(read_lost(&db).expect("read"), [], "it was not inspected");
        let mark = sql::mark(&db, Mark::Open).expect("read");
        assert_eq!(mark.as_deref(), Some(FILLED), "the record still says that it is open");
    }
}
