//! A quick check of a whole chain. It only finds that a chain has no fault; otherwise the plain check decides and gives the reason.
//!
//! It accepts nothing that [`crate::check`] refuses. It computes two hashes in turns, and entries in any order: each entry is checked
//! against the stored hash of the one before it, whose own check may come later.

use super::check::Chain;
use super::line::{self, Line, Parts};
use super::lockstep::{BLOCK_BYTES, Message, Stream};
use super::notes::Notes;
use super::table;
use ironclaw_contract::ledger_entry::{GENESIS_PREV, Kind};
use ironclaw_operator::SignedHead;
use ironclaw_state::{Error, ReadTx, View};
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Hash of an entry as text.
type Hash = [u8; 64];

/// The place in a chain: the number of the next entry, and the stored hash of the one before it.
struct Position {
    first: u64,
    next: u64,
    prev: Hash,
}

impl Position {
    fn genesis(first: u64) -> Self {
        Self { first, next: first, prev: *GENESIS_PREV.as_bytes().first_chunk().expect("64 zeros") }
    }

    /// Takes the next entry and prepares its hash; `None` if it cannot be the next one.
    fn take(&mut self, parts: Parts<'_>, hash: &mut Hashed) -> Option<()> {
        let kind: Kind = parts.kind.parse().ok()?;
        let is_next = parts.seq == self.next && (parts.seq == self.first) == (kind == Kind::Genesis);
        let stored = <Hash>::try_from(parts.hash.as_bytes()).ok().filter(|_| is_next)?;
        hash.set(&self.prev, parts, stored);
        self.prev = stored;
        self.next += 1;
        Some(())
    }
}

/// The computed and the stored hash of an entry.
struct Hashed {
    message: Message,
    stored: Hash,
    is_set: bool,
}

impl Hashed {
    fn new() -> Self {
        Self { message: Message::default(), stored: [0; 64], is_set: false }
    }

    fn set(&mut self, prev: &Hash, parts: Parts<'_>, stored: Hash) {
        let mut digits = [0; 20];
        let mut room = &mut digits[..];
        write!(room, "{}", parts.seq).expect("a number has at most 20 digits");
        let unused = room.len();
        let number = &digits[..digits.len() - unused];
        let parts = [parts.kind.as_bytes(), b"|", parts.canonical.as_bytes()];
        self.message.set(&[prev, b"|", number, b"|", parts[0], parts[1], parts[2]]);
        (self.stored, self.is_set) = (stored, true);
    }

    /// Computes the next block; returns `false` if there is none.
    #[inline]
    fn step(&mut self) -> bool {
        self.is_set && self.message.step()
    }

    /// Returns whether the computed hash is the stored one; every block must be computed.
    fn end(&mut self) -> Option<()> {
        let is_equal = !self.is_set || self.message.digest().hex() == self.stored;
        self.is_set = false;
        is_equal.then_some(())
    }
}

/// Bytes of an archive in memory. The plain check reads an archive with a longer line.
const CHUNK_BYTES: usize = 256 * 1024;

/// Checks an archive up to its end: one chain and its closing head.
pub(super) fn archive(mut input: impl Read, first: u64, wanted: &BTreeSet<u64>) -> Option<Chain> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut lines = Lines::from(first, wanted);
    let mut filled = 0;
    loop {
        let read = match input.read(buffer.get_mut(filled..).filter(|room| !room.is_empty())?) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.ok()?,
        };
        filled += read;
        let rest = lines.take(&buffer[..filled])?;
        if read == 0 {
            return lines.end(&buffer[rest..filled]);
        }
        buffer.copy_within(rest..filled, 0);
        filled -= rest;
    }
}

/// The lines of an archive.
struct Lines<'a> {
    position: Position,
    notes: Notes<'a>,
    entry: Hashed,
    file: Stream,
    /// Bytes at the begin of the next chunk that are hashed, and bytes whose lines are taken.
    hashed: usize,
    taken: usize,
    head: Option<SignedHead>,
}

impl<'a> Lines<'a> {
    fn from(first: u64, wanted: &'a BTreeSet<u64>) -> Self {
        let (position, notes) = (Position::genesis(first), Notes::from(first, wanted));
        Self { position, notes, entry: Hashed::new(), file: Stream::default(), hashed: 0, taken: 0, head: None }
    }

    /// Takes the complete lines of a chunk. Returns the number of bytes that are no longer needed.
    fn take(&mut self, chunk: &[u8]) -> Option<usize> {
        let end = memchr::memrchr(b'\n', chunk).map_or(self.taken, |end| end + 1).max(self.taken);
        let mut text = std::str::from_utf8(&chunk[self.taken..end]).ok()?;
        let blocks = chunk[self.hashed..].as_chunks::<BLOCK_BYTES>().0;
        let mut ahead = blocks.iter();
        while let Some(line_end) = memchr::memchr(b'\n', text.as_bytes()) {
            let (line, rest) = (&text[..line_end], &text[line_end + 1..]);
            // One block of the file, and one of the entry before this line.
            let step = || {
                if let Some(block) = ahead.next() {
                    self.file.add(std::slice::from_ref(block));
                }
                self.entry.step();
            };
            match line::parse_in_turns(line, step).filter(|_| self.head.is_none())? {
                Line::Entry(parts) => {
                    self.finish_entry(&mut ahead)?;
                    self.position.take(parts, &mut self.entry)?;
                    self.notes.entry(parts);
                }
                Line::Head(head) => self.head = Some(*head),
            }
            text = rest;
        }
        self.finish_entry(&mut ahead)?;
        self.file.add(ahead.as_slice());
        self.hashed += blocks.len() * BLOCK_BYTES;
        let rest = self.hashed.min(end);
        (self.hashed, self.taken) = (self.hashed - rest, end - rest);
        Some(rest)
    }

    /// Computes the remaining blocks of an entry, in turns with those of the file.
    fn finish_entry(&mut self, ahead: &mut std::slice::Iter<'_, [u8; BLOCK_BYTES]>) -> Option<()> {
        while self.entry.step() {
            if let Some(block) = ahead.next() {
                self.file.add(std::slice::from_ref(block));
            }
        }
        self.entry.end()
    }

    /// Ends the chain; `rest` is the last bytes of the file.
    fn end(self, rest: &[u8]) -> Option<Chain> {
        let digest = self.file.end(&rest[self.hashed..]);
        let is_whole = self.taken == rest.len() && self.position.next > self.position.first;
        let head = self.head.filter(|_| is_whole)?;
        let hash = String::from_utf8(self.position.prev.to_vec()).ok()?;
        Some(Chain::end(self.notes, self.position.next - 1, hash, Some(head), Some(digest)))
    }
}

/// Entries of the live chain that a reader checks at once.
const SPAN_ENTRIES: usize = 16 * 1024;

/// Checks the entries of `span`, which must be all of the live chain. `beside` is a second view of the same record; each of the two reads
/// and hashes parts of the chain in a thread of its own. It may see the record at another moment, so it may find a fault where there is
/// none, and the plain check follows.
pub(super) fn live(tx: &ReadTx<'_>, beside: Option<View>, span: Range<u64>, wanted: &BTreeSet<u64>) -> Option<Chain> {
    if span.is_empty() {
        return None;
    }
    let turn = AtomicU64::new(0);
    let work = |tx: &ReadTx<'_>| {
        let mut done = Vec::new();
        loop {
            let number = turn.fetch_add(1, Ordering::Relaxed);
            let Some(part) = part(&span, number) else { return Some(done) };
            let Some(checked) = Part::check(tx, span.start, part, wanted) else {
                // The other reader need not go on.
                turn.store(u64::MAX / 2, Ordering::Relaxed);
                return None;
            };
            done.push((number, checked));
        }
    };
    let mut parts = std::thread::scope(|scope| {
        let work = &work;
        let other = beside.map(|view| scope.spawn(move || work(&view.tx())));
        let mut parts = work(tx)?;
        if let Some(other) = other {
            parts.extend(other.join().expect("checking does not panic")?);
        }
        Some(parts)
    })?;
    parts.sort_unstable_by_key(|(number, _)| *number);
    let mut whole = Part::empty(span.start, wanted);
    for (_, part) in parts {
        whole.join(part)?;
    }
    let hash = String::from_utf8(whole.end.to_vec()).ok()?;
    Some(Chain::end(whole.notes, span.end - 1, hash, None, None))
}

/// Returns the numbers of the part `number`.
fn part(span: &Range<u64>, number: u64) -> Option<Range<u64>> {
    let from = number.checked_mul(SPAN_ENTRIES as u64)?.checked_add(span.start)?;
    (from < span.end).then(|| from..span.end.min(from + SPAN_ENTRIES as u64))
}

/// A part of the live chain without a fault in itself.
struct Part<'a> {
    /// The stored hash of the entry before it, and of its last one.
    begin: Hash,
    end: Hash,
    notes: Notes<'a>,
}

impl<'a> Part<'a> {
    fn empty(first: u64, wanted: &'a BTreeSet<u64>) -> Self {
        let Position { prev, .. } = Position::genesis(first);
        Self { begin: prev, end: prev, notes: Notes::from(first, wanted) }
    }

    /// Reads and checks the entries of `numbers`, two at a time.
    fn check(tx: &ReadTx<'_>, first: u64, numbers: Range<u64>, wanted: &'a BTreeSet<u64>) -> Option<Self> {
        let mut position = Position { next: numbers.start, ..Position::genesis(first) };
        let mut begin = position.prev;
        let mut notes = Notes::part(first, numbers.start, wanted);
        let mut entries = [Hashed::new(), Hashed::new()];
        let mut next = 0;
        let before = numbers.start - u64::from(numbers.start > first);
        let refused = || Error::Closed;
        let read = table::entries(tx, before, numbers.end - 1, |parts: Parts<'_>| {
            if parts.seq < numbers.start {
                begin = parts.hash.as_bytes().try_into().map_err(|_| refused())?;
                position.prev = begin;
                return Ok(());
            }
            position.take(parts, &mut entries[next]).ok_or_else(refused)?;
            notes.entry(parts);
            next = 1 - next;
            if next == 0 { finish(&mut entries).ok_or_else(refused) } else { Ok(()) }
        });
        read.ok()?;
        finish(&mut entries)?;
        (position.next == numbers.end).then_some(Self { begin, end: position.prev, notes })
    }

    /// Adds the part after this one.
    fn join(&mut self, next: Self) -> Option<()> {
        let Self { begin, end, notes } = next;
        let fits = begin == self.end;
        self.end = end;
        self.notes.join(notes);
        fits.then_some(())
    }
}

/// Computes the hashes of two entries in turns, and compares them with the stored ones.
fn finish([one, other]: &mut [Hashed; 2]) -> Option<()> {
    // Not `||`, because both must go on.
    while one.step() | other.step() {}
    one.end()?;
    other.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use ironclaw_contract::ledger_entry::hash;

    /// Returns the lines of an archive whose first entry has this number, with kinds and data of many lengths.
    fn lines(first: u64) -> Vec<String> {
        let mut prev = GENESIS_PREV.to_owned();
        let datas = [
            r#"{"created":"2026","key":"k\"","what":"ledger.created"}"#.to_owned(),
            r#"{"what":"host.started"}"#.to_owned(),
            format!(r#"{{"é":"{}\\"}}"#, "x".repeat(61)),
            r#"{"key":"1","what":"ledger.key_made"}"#.to_owned(),
            format!(r#"{{"text":"{}"}}"#, "0123456789".repeat(40)),
            "{}".to_owned(),
        ];
        let kinds = [Kind::Genesis, Kind::Boot, Kind::Claim, Kind::Meta, Kind::Verify, Kind::Retract];
        let mut lines = Vec::new();
        for ((seq, kind), data) in (first..).zip(kinds).zip(&datas) {
            let hash = hash(&prev, seq, kind, data).to_string();
            let mut line = String::new();
            line::write(&mut line, Parts { seq, kind: kind.name(), canonical: data, hash: &hash });
            lines.push(line);
            prev = hash;
        }
        let text = |text: &str| text.to_owned();
        let head = SignedHead {
            domain: text("d"),
            first,
            hash: prev,
            key: text("k"),
            ledger: text("l"),
            seq: first + 5,
            signature: text("s"),
            time: text("t"),
        };
        let mut line = String::new();
        line::write_head(&mut line, &head);
        lines.push(line);
        lines
    }

    /// Checks that the quick check finds the same chain as the plain one, or none if the plain one refuses the archive.
    #[track_caller]
    fn compare(bytes: &[u8], first: u64) -> bool {
        let wanted = BTreeSet::from([first + 2, first + 4, 1000]);
        let mut input = bytes;
        let plain = check::chain(&mut input, first, &wanted).ok().flatten().filter(|_| input.is_empty());
        let quick = archive(bytes, first, &wanted);
        assert_eq!(format!("{quick:?}"), format!("{plain:?}"), "{}", String::from_utf8_lossy(bytes));
        quick.is_some()
    }

    #[test]
    fn quick_check_of_an_archive_accepts_what_the_plain_one_does() {
        for first in [0, 7, 9_999] {
            let lines = lines(first);
            let whole = lines.concat().into_bytes();
            assert!(compare(&whole, first));
            assert!(!compare(&whole, first + 1));
            assert!(!compare(&[&whole[..], b"x"].concat(), first));
            for at in 0..whole.len() {
                assert!(!compare(&whole[..at], first), "cut at {at}");
                let mut changed = whole.clone();
                changed[at] ^= 1;
                compare(&changed, first);
                changed[at] = 0xff;
                assert!(!compare(&changed, first), "byte {at}");
            }
            for (at, line) in lines.iter().enumerate() {
                let mut missing = lines.clone();
                missing.remove(at);
                // The head over a missing last entry is compared when the chain is joined.
                assert_eq!(compare(missing.concat().as_bytes(), first), at == lines.len() - 2, "line {at} is missing");
                let mut twice = lines.clone();
                twice.insert(at, line.clone());
                assert!(!compare(twice.concat().as_bytes(), first), "line {at} is there twice");
            }
        }
    }

    /// Reads a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(buffer.len());
            self.0.read(&mut buffer[..most])
        }
    }

    #[test]
    fn archive_may_come_in_pieces_of_any_size() {
        let text = lines(0).concat();
        let wanted = BTreeSet::new();
        let whole = format!("{:?}", archive(text.as_bytes(), 0, &wanted).expect("it is whole"));
        for bytes in [1, 63, 64, 65, 127, 700, 2_000] {
            let chain = archive(Slow(text.as_bytes(), bytes), 0, &wanted).expect("it is whole");
            assert_eq!(format!("{chain:?}"), whole, "{bytes} bytes at a time");
        }
        let long = "x".repeat(CHUNK_BYTES + 1);
        assert!(archive(long.as_bytes(), 0, &wanted).is_none());
    }
}
