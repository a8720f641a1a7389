//! Verification of a whole ledger: each chain, the references between chains, and the heads that were kept outside.
//!
//! It only reads, needs no secret, and hashes bytes as stored. See `docs/verify-ledger.pl`, which is independent of this code.

use super::head::Signed;
use super::line::{self, Line, Parts};
use super::notes::{Accepted, Notes};
use super::{Genesis, head};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ledger_entry::{Broken, Kind, Verifier};
use ironclaw_operator::{AcceptedBreak, LedgerBad, SignedHead};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

pub use ironclaw_operator::LedgerFault as Class;

/// Longest line of an entry, in bytes: its data, twice, and the text around them.
const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The first fault of a ledger, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad {
    /// The first sequence number that cannot be right; `None` if none can be determined.
    pub seq: Option<u64>,
    /// The class of the fault.
    pub class: Class,
    /// The reason, in words.
    pub why: String,
    /// The file with the fault, if known.
    pub file: Option<PathBuf>,
}

impl Bad {
    /// Makes a fault at this number.
    pub fn at(seq: u64, class: Class, why: impl Into<String>) -> Self {
        Self { seq: Some(seq), class, why: why.into(), file: None }
    }

    /// Adds the file with the fault.
    pub fn in_file(self, path: &Path) -> Self {
        Self { file: Some(path.to_owned()), ..self }
    }

    /// Converts the fault to the form of the API.
    pub fn view(&self) -> LedgerBad {
        LedgerBad {
            ok: false,
            seq: self.seq,
            file: self.file.as_ref().map(|file| file.display().to_string()),
            class: self.class,
            why: self.why.clone(),
        }
    }
}

impl std::error::Error for Bad {}

impl std::fmt::Display for Bad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.seq {
            Some(seq) => write!(f, "bad seq {seq}: ")?,
            None => f.write_str("bad: ")?,
        }
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        write!(f, "{} ({})", self.why, self.class.name())
    }
}

impl From<Broken> for Bad {
    fn from(broken: Broken) -> Self {
        Self::at(broken.seq, Class::Broken, broken.why)
    }
}

/// The reason why a check has no verdict, or a bad one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The ledger is not whole.
    #[error(transparent)]
    Bad(#[from] Bad),
    /// The ledger is not readable.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Broken> for Error {
    fn from(broken: Broken) -> Self {
        Self::Bad(broken.into())
    }
}

/// A walk over one chain.
pub struct Walk<'a> {
    verifier: Verifier,
    notes: Notes<'a>,
}

/// One chain without a fault in itself.
#[derive(Debug)]
pub struct Chain {
    /// Number of its genesis.
    pub first: u64,
    /// Number of its last entry.
    pub last: u64,
    /// Hash of its last entry.
    pub hash: String,
    genesis: Genesis,
    genesis_hash: String,
    keys: Vec<String>,
    started: bool,
    found: Vec<(u64, String)>,
    accepted: Vec<Accepted>,
    /// Digest of its lines, with its closing head; `None` for a chain that is not in a file.
    digest: Option<Digest>,
    head: Option<SignedHead>,
}

impl<'a> Walk<'a> {
    /// Begins a chain whose genesis must have the number `first`; notes the hashes of the `wanted` entries.
    pub fn from(first: u64, wanted: &'a BTreeSet<u64>) -> Self {
        Self { verifier: Verifier::starting_at(first), notes: Notes::from(first, wanted) }
    }

    /// Takes the next entry.
    pub fn entry(&mut self, parts: Parts<'_>) -> Result<(), Broken> {
        self.verifier.accept(parts.seq, parts.kind, parts.canonical, parts.hash)?;
        self.notes.entry(parts);
        Ok(())
    }

    /// Returns the number that the next entry must have.
    pub const fn next_seq(&self) -> u64 {
        self.verifier.next_seq()
    }

    /// Ends the chain, with its closing head and the digest of its lines, if it has them.
    pub fn end(self, head: Option<SignedHead>, digest: Option<Digest>) -> Result<Chain, Broken> {
        if self.verifier.entries() == 0 {
            return Err(Broken { seq: self.notes.first, why: "there is no entry, not even a genesis".to_owned() });
        }
        let (last, hash) = (self.verifier.next_seq() - 1, self.verifier.head().to_owned());
        Ok(Chain::end(self.notes, last, hash, head, digest))
    }
}

impl Chain {
    /// Ends a chain with its last entry.
    pub(super) fn end(
        notes: Notes<'_>,
        last: u64,
        hash: String,
        head: Option<SignedHead>,
        digest: Option<Digest>,
    ) -> Self {
        let Notes { first, genesis, genesis_hash, keys, started, found, accepted, .. } = notes;
        Self { first, last, hash, genesis, genesis_hash, keys, started, found, accepted, digest, head }
    }

    /// Returns the hashes of the wanted entries of this chain.
    pub fn into_found(self) -> Vec<(u64, String)> {
        self.found
    }
}

/// The verified part of a ledger: all joined chains.
#[derive(Debug, Default)]
pub struct Verified {
    /// Number of chains.
    pub chains: u64,
    /// The number of the next entry, which equals the number of entries.
    pub next: u64,
    /// Hash of the very first entry.
    pub ledger: String,
    /// Public keys that the ledger names, oldest first.
    pub keys: Vec<String>,
    /// True if a host has run: before that there is no head.
    started: bool,
    last: Option<(String, Option<Digest>)>,
    found: BTreeMap<u64, String>,
    accepted: Vec<Accepted>,
}

impl Verified {
    /// Joins the next chain, which must continue from the last one.
    pub fn join(&mut self, chain: Chain) -> Result<(), Bad> {
        let first = chain.first;
        if first < self.next {
            let why =
                format!("expected sequence number {}, found the chain that begins at {first} once more", self.next);
            return Err(Bad::at(self.next, Class::Replayed, why));
        }
        if first > self.next {
            let why = format!("entries {} to {} are missing", self.next, first - 1);
            return Err(Bad::at(self.next, Class::Missing, why));
        }
        let broken = |why: &str| Err(Bad::at(first, Class::Broken, why));
        match (&self.last, &chain.genesis.continues_from) {
            (None, None) => self.ledger.clone_from(&chain.genesis_hash),
            (None, Some(_)) => return broken("the first chain says that it continues from another"),
            (Some(_), None) => return broken("the chain does not say which one it continues from"),
            (Some((hash, digest)), Some(previous)) => {
                if previous.seq + 1 != first || previous.hash != *hash {
                    return broken("the chain continues from another entry than the last one before it");
                }
                if digest.is_none_or(|digest| digest.to_string() != previous.archive) {
                    return broken("the lines of the chain before it are not those that it continues from");
                }
                if chain.genesis.ledger.as_ref() != Some(&self.ledger) {
                    return broken("the chain belongs to another ledger");
                }
            }
        }
        for key in &chain.keys {
            if !self.keys.contains(key) {
                self.keys.push(key.clone());
            }
        }
        if let Some(head) = &chain.head {
            let end = chain.last;
            if !head::is_authentic(head) || !self.keys.contains(&head.key) {
                return Err(Bad::at(end, Class::Rewritten, "the head behind it was not signed by this ledger's key"));
            }
            if head.ledger != self.ledger {
                return Err(Bad::at(0, Class::Rewritten, "the head behind it was signed over another first entry"));
            }
            if head.seq > end {
                let why = format!("the head behind it was signed at {}, and the entries end at {end}", head.seq);
                return Err(Bad::at(end + 1, Class::Truncated, why));
            }
            if head.seq != end || head.hash != chain.hash || head.first != first {
                return Err(Bad::at(end, Class::Rewritten, "the head behind it was signed over another entry"));
            }
        }
        self.chains += 1;
        self.started |= chain.started;
        self.next = chain.last + 1;
        self.last = Some((chain.hash, chain.digest));
        self.found.extend(chain.found);
        self.accepted.extend(chain.accepted);
        Ok(())
    }

    /// Returns the breaks that an owner accepted.
    pub fn accepted(&self) -> Vec<AcceptedBreak> {
        let view = |read: &Accepted| {
            let Accepted { seq, from, by, reason, .. } = read.clone();
            AcceptedBreak { seq, from, by, reason }
        };
        self.accepted.iter().map(view).collect()
    }

    /// Compares the ledger with heads from outside; returns the number of its heads, and a remark on the others.
    pub fn compare(&self, kept: &[head::HeadFile]) -> Result<(u64, Option<String>), Bad> {
        let no_head = |why: String| Bad { seq: None, class: Class::Head, why, file: None };
        let accepted: BTreeSet<Signed> = self.accepted.iter().flat_map(Accepted::signed).collect();
        let mut agreed: Option<u64> = None;
        let (mut differing, mut beyond): (Option<&SignedHead>, Option<&SignedHead>) = (None, None);
        let (mut own, mut foreign) = (0, 0);
        for head::HeadFile { name, head } in kept {
            let Some(head) = head else { return Err(no_head(format!("{name} is no head"))) };
            if !head::is_authentic(head) {
                return Err(no_head(format!("the signature of {name} is not that of its key")));
            }
            let our_key = self.keys.contains(&head.key);
            if head.ledger != self.ledger {
                if our_key {
                    let why = format!("{name} was signed with this ledger's key over another first entry");
                    return Err(Bad::at(0, Class::Rewritten, why));
                }
                foreign += 1;
                continue;
            }
            if !our_key {
                return Err(no_head(format!("{name} was signed with a key that this ledger does not name")));
            }
            // An owner accepted this head, and the verdict names that.
            if accepted.contains(&Signed { seq: head.seq, hash: head.hash.clone() }) {
                continue;
            }
            own += 1;
            // The newest head that agrees and the oldest that does not bound the correct part.
            match self.found.get(&head.seq) {
                Some(hash) if *hash == head.hash => agreed = agreed.max(Some(head.seq)),
                Some(_) => oldest(&mut differing, head),
                None => oldest(&mut beyond, head),
            }
        }
        if let Some(head) = differing {
            let seq = head.seq;
            if let Some(agreed) = agreed.filter(|agreed| *agreed >= seq) {
                let why = format!("the head signed at {seq} is of another history than the one signed at {agreed}");
                return Err(Bad::at(seq, Class::Forked, why));
            }
            let since =
                agreed.map_or_else(String::new, |agreed| format!(", and nothing is known of those after {agreed}"));
            return Err(Bad::at(seq, Class::Rewritten, format!("another entry was signed here{since}")));
        }
        if let Some(head) = beyond {
            let why =
                format!("a head was signed at {}, and the entries end at {}", head.seq, self.next.saturating_sub(1));
            return Err(Bad::at(self.next, Class::Truncated, why));
        }
        if own == 0 && foreign > 0 && self.started && self.accepted.is_empty() {
            let why = format!(
                "none of the {foreign} heads is of this ledger: it is another one, or was rewritten from its first entry"
            );
            return Err(Bad::at(0, Class::Rewritten, why));
        }
        let remark = (foreign > 0).then(|| format!("{foreign} heads of other ledgers were left out"));
        Ok((own, remark))
    }
}

fn oldest<'a>(slot: &mut Option<&'a SignedHead>, head: &'a SignedHead) {
    if slot.is_none_or(|other| head.seq < other.seq) {
        *slot = Some(head);
    }
}

/// Returns the sequence numbers whose hashes a walk must note for a comparison with `kept`.
pub fn wanted(kept: &[head::HeadFile]) -> BTreeSet<u64> {
    kept.iter().filter_map(|kept| kept.head.as_ref()).map(|head| head.seq).collect()
}

/// Reads one chain of an archive or of an export, up to its closing head; `None` at the end of the input.
///
/// # Errors
/// A malformed line, an entry that does not follow, or an end before the head.
pub fn chain(input: &mut impl BufRead, expected: u64, wanted: &BTreeSet<u64>) -> Result<Option<Chain>, Error> {
    let mut lines = Lines { walk: Walk::from(expected, wanted), sha: Sha256::new(), any: false };
    let mut torn = Vec::new();
    loop {
        // Most lines are complete in the buffer and are taken from there; other lines are copied together.
        let buffer = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            buffer => buffer?,
        };
        let (head, used) = match memchr::memchr(b'\n', buffer).filter(|end| *end < LINE_BYTES_MAX) {
            Some(end) => (lines.take(&buffer[..=end])?, end + 1),
            None => {
                torn.clear();
                let read = io::Read::take(&mut *input, LINE_BYTES_MAX as u64).read_until(b'\n', &mut torn)?;
                if read == 0 && !lines.any {
                    return Ok(None);
                }
                (lines.take(&torn)?, 0)
            }
        };
        input.consume(used);
        if let Some(head) = head {
            let Lines { walk, sha, .. } = lines;
            return Ok(Some(walk.end(Some(*head), Some(Digest::from_bytes(sha.finalize().into())))?));
        }
    }
}

/// The lines of one chain.
struct Lines<'a> {
    walk: Walk<'a>,
    sha: Sha256,
    any: bool,
}

impl Lines<'_> {
    /// Takes the next line, with its line break; returns the head if the line closes the chain.
    fn take(&mut self, line: &[u8]) -> Result<Option<Box<SignedHead>>, Error> {
        let seq = self.walk.next_seq();
        if line.is_empty() {
            return Err(Bad::at(seq, Class::Truncated, "the chain ends without a signed head").into());
        }
        let Some((b'\n', text)) = line.split_last() else {
            return Err(Bad::at(seq, Class::Truncated, "the last line is torn").into());
        };
        self.sha.update(line);
        match std::str::from_utf8(text).ok().and_then(line::parse) {
            Some(Line::Entry(parts)) => {
                let expected = self.walk.notes.first;
                if !self.any && parts.seq < expected && parts.kind == Kind::Genesis.name() {
                    let why = format!(
                        "expected sequence number {expected}, found the chain that begins at {} once more",
                        parts.seq
                    );
                    return Err(Bad::at(expected, Class::Replayed, why).into());
                }
                self.walk.entry(parts)?;
                self.any = true;
                Ok(None)
            }
            Some(Line::Head(head)) => Ok(Some(head)),
            None => Err(Bad::at(seq, Class::Broken, "the line is not an entry as it is exported").into()),
        }
    }
}

/// Checks an export: chain after chain, each closed by a signed head.
pub fn export(mut input: impl BufRead, wanted: &BTreeSet<u64>) -> Result<Verified, Error> {
    let mut whole = Verified::default();
    while let Some(chain) = chain(&mut input, whole.next, wanted)? {
        whole.join(chain)?;
    }
    if whole.chains == 0 {
        return Err(Bad::at(0, Class::Missing, "there is no entry, not even a genesis").into());
    }
    Ok(whole)
}
