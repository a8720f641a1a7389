//! Walks over the live chain of the record, also beside a running host.
//!
//! Returns the canonical bytes as stored, and never serializes them again before hashing. See [`crate::check`].

use super::check::{self, Bad, Chain, Walk};
use super::line::Parts;
use super::table;
use ironclaw_contract::operator::LedgerLine;
use ironclaw_state::{ReadTx, View};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::mpsc;

pub use super::table::{first_seq, hash_at, is_older_than_this_run, last_seq, next_seq};

/// The reason why a walk ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The chain is not whole.
    #[error(transparent)]
    Bad(#[from] Bad),
    /// The database does not answer.
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
}

impl From<ironclaw_contract::ledger_entry::Broken> for Error {
    fn from(broken: ironclaw_contract::ledger_entry::Broken) -> Self {
        Self::Bad(broken.into())
    }
}

impl From<Error> for check::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Bad(bad) => Self::Bad(bad),
            Error::State(error) => Self::Io(std::io::Error::other(error)),
        }
    }
}

/// Calls `each` with every entry of the live chain from `from_seq` on, in order.
pub fn walk<E: From<ironclaw_state::Error>>(
    tx: &ReadTx<'_>,
    from_seq: u64,
    each: impl FnMut(Parts<'_>) -> Result<(), E>,
) -> Result<(), E> {
    table::entries(tx, from_seq, i64::MAX as u64, each)
}

/// Converts an entry to the form of the API.
pub fn view(parts: Parts<'_>) -> LedgerLine {
    LedgerLine {
        seq: parts.seq,
        kind: parts.kind.to_owned(),
        data: serde_json::from_str(parts.canonical).unwrap_or(serde_json::Value::Null),
        hash: parts.hash.to_owned(),
        canonical: parts.canonical.to_owned(),
    }
}

/// Checks the live chain without its archives; notes the hashes of the `wanted` entries.
///
/// Most of the time is decryption, page by page. `beside` is a second view of the same record, which reads half of the chain. It may
/// see the record at another moment, so only `tx` decides that an entry is wrong or missing.
///
/// # Errors
/// [`Error::Bad`] with the first sequence number that cannot be right.
pub fn check(tx: &ReadTx<'_>, beside: Option<View>, wanted: &BTreeSet<u64>) -> Result<Chain, Error> {
    let first = first_seq(tx)?.unwrap_or(0);
    let last = table::stored_last_seq(tx)?;
    let end = last.and_then(|last| u64::try_from(last).ok()).map_or(0, |last| last + 1);
    let mut walk = ahead(tx, beside, first..end, Walk::from(first, wanted));
    // Valid numbers are not negative. If one is, `ahead` has walked over no entry, and the walk begins at 0.
    let next = Some(walk.next_seq()).filter(|next| *next <= end).unwrap_or(0);
    self::walk(tx, next, |parts| Ok::<_, Error>(walk.entry(parts)?))?;
    Ok(walk.end(None, None)?)
}

/// Walks over the entries of `span` up to the first doubtful one. Each reader and the hashing have a thread of their own. The readers
/// alternate in turns of [`TURN_ENTRIES`].
fn ahead<'a>(tx: &ReadTx<'_>, beside: Option<View>, span: Range<u64>, walk: Walk<'a>) -> Walk<'a> {
    let readers = 1 + usize::from(beside.is_some());
    let turns =
        span.clone().step_by(TURN_ENTRIES).map(move |from| (from, span.end.min(from + TURN_ENTRIES as u64) - 1));
    let of = |reader: usize| turns.clone().skip(reader).step_by(readers);
    std::thread::scope(|scope| {
        let (send, receive): (Vec<_>, Vec<_>) = (0..readers).map(|_| mpsc::sync_channel(BATCHES_MAX)).unzip();
        let hashing = scope.spawn({
            let turns = turns.clone();
            move || hash(walk, turns.zip(receive.iter().cycle()))
        });
        let mut send = send.into_iter();
        let (own, others) = (send.next(), send.next());
        if let (Some(view), Some(send)) = (beside, others) {
            let turns = of(1);
            scope.spawn(move || read(&view.tx(), turns, &send));
        }
        if let Some(send) = own {
            read(tx, of(0), &send);
        }
        hashing.join().expect("hashing does not panic")
    })
}

/// Reads `turns` until they end, one is not readable, or the receiver is closed.
fn read(tx: &ReadTx<'_>, turns: impl Iterator<Item = (u64, u64)>, send: &mpsc::SyncSender<Batch>) {
    for (from, to) in turns {
        let mut batch = Batch::default();
        let read = table::entries(tx, from, to, |parts| {
            batch.push(parts);
            let stop = batch.text.len() >= BATCH_BYTES && send.send(std::mem::take(&mut batch)).is_err();
            if stop { Err(ironclaw_state::Error::Closed) } else { Ok(()) }
        });
        batch.ends = true;
        if read.is_err() || send.send(batch).is_err() {
            return;
        }
    }
}

/// Walks over the entries of `turns`, each from its reader, until one of them is incomplete.
fn hash<'a, 'b>(mut walk: Walk<'a>, turns: impl Iterator<Item = ((u64, u64), &'b mpsc::Receiver<Batch>)>) -> Walk<'a> {
    for ((_, to), batches) in turns {
        loop {
            let Ok(batch) = batches.recv() else { return walk };
            if batch.each(|parts| walk.entry(parts)).is_err() {
                return walk;
            }
            if batch.ends {
                break;
            }
        }
        if walk.next_seq() != to + 1 {
            return walk;
        }
    }
    walk
}

/// Entries of one turn of a reader.
const TURN_ENTRIES: usize = 512;
/// Bytes of entries in one batch, and the number of batches that may wait at each reader.
const BATCH_BYTES: usize = 256 * 1024;
const BATCHES_MAX: usize = 4;

/// Entries to hash: one text, and the end of each of their fields.
#[derive(Default)]
struct Batch {
    text: String,
    cuts: Vec<(u64, [usize; 3])>,
    /// True for the last batch of a turn.
    ends: bool,
}

impl Batch {
    fn push(&mut self, parts: Parts<'_>) {
        let cuts = [parts.kind, parts.canonical, parts.hash].map(|text| {
            self.text.push_str(text);
            self.text.len()
        });
        self.cuts.push((parts.seq, cuts));
    }

    fn each<E>(&self, mut each: impl FnMut(Parts<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut begin = 0;
        for &(seq, [kind, canonical, hash]) in &self.cuts {
            let text = |from: usize, to: usize| &self.text[from..to];
            each(Parts {
                seq,
                kind: text(begin, kind),
                canonical: text(kind, canonical),
                hash: text(canonical, hash),
            })?;
            begin = hash;
        }
        Ok(())
    }
}
