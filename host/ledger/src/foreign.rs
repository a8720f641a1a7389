//! Archives of another history, such as after a restore of the record without its archives.
//!
//! Reads the first and the last line of each archive, and renames none. See `maintenance` in the host's crate.

use super::head::{self, Signed};
use super::line::{self, Line};
use super::{Genesis, archive};
use ironclaw_operator::SignedHead;
use ironclaw_state::home::Home;
use std::io::{self, BufRead, Read, Seek, SeekFrom};

/// Longest first line, from which the genesis is read, and longest closing head, in bytes.
const GENESIS_BYTES_MAX: u64 = 64 * 1024;
const HEAD_BYTES_MAX: u64 = 4096;

/// Properties of the live chain.
#[derive(Debug, Clone)]
pub struct LiveChain {
    /// Id of the ledger.
    pub ledger: String,
    /// Number of its genesis.
    pub first: u64,
    pub genesis: Genesis,
    /// Public keys that signed heads of this ledger.
    pub keys: Vec<String>,
}

/// An archive that is not of the history of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Number of its first entry, which names its file.
    pub first: u64,
    pub signed: Signed,
}

impl Foreign {
    /// Returns a name for its history.
    pub fn name(&self) -> String {
        format!("archive {}-{}", self.first, self.signed)
    }
}

/// Returns the archives of `home` that this ledger's key closed and from which the live chain does not continue. `is_beginning`
/// returns whether the live chain has an entry.
///
/// # Errors
/// Those of the directory. An unreadable archive is left to a verification.
pub fn find(home: &Home, live: &LiveChain, is_beginning: impl Fn(&Signed) -> bool) -> io::Result<Vec<Foreign>> {
    let ends = archive::firsts(home)?.into_iter().filter_map(|first| ends(home, first)).collect();
    Ok(judge(live, ends, is_beginning))
}

fn judge(
    live: &LiveChain,
    mut ends: Vec<(Genesis, SignedHead)>,
    is_beginning: impl Fn(&Signed) -> bool,
) -> Vec<Foreign> {
    ends.retain(|(_, head)| head.ledger == live.ledger && live.keys.contains(&head.key) && head::is_authentic(head));
    let mut lowest = live.first;
    let mut previous = live.genesis.continues_from.clone();
    while let Some(wanted) = previous {
        let Some(at) = ends.iter().position(|(_, head)| head.seq == wanted.seq && head.hash == wanted.hash) else {
            break;
        };
        let (genesis, head) = ends.swap_remove(at);
        lowest = head.first;
        previous = genesis.continues_from;
    }
    // Below the lowest known chain of this ledger, one may be missing, so older archives may be of this ledger.
    let beside = ends.into_iter().map(|(_, head)| head).filter(|head| head.seq >= lowest);
    let found = beside.map(|head| Foreign { first: head.first, signed: Signed { seq: head.seq, hash: head.hash } });
    let mut found: Vec<Foreign> =
        found.filter(|foreign| foreign.first != live.first || !is_beginning(&foreign.signed)).collect();
    found.sort_by_key(|foreign| foreign.first);
    found
}

/// Returns the genesis and the closing head of an archive, if it has both.
fn ends(home: &Home, first: u64) -> Option<(Genesis, SignedHead)> {
    let mut file = archive::open(home, first).ok()?;
    let mut line = String::new();
    file.by_ref().take(GENESIS_BYTES_MAX).read_line(&mut line).ok()?;
    let Line::Entry(parts) = line::parse(line.trim_end())? else { return None };
    let genesis = Genesis::read(parts.canonical);
    let length = file.get_ref().metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(HEAD_BYTES_MAX))).ok()?;
    let mut end = Vec::new();
    file.take(HEAD_BYTES_MAX).read_to_end(&mut end).ok()?;
    let last = end.strip_suffix(b"\n")?.rsplit(|byte| *byte == b'\n').next()?;
    match line::parse(std::str::from_utf8(last).ok()?)? {
        Line::Head(head) if head.first == first && parts.seq == first => Some((genesis, *head)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::PreviousChain;
    use super::super::head::{Position, Signer};
    use super::*;

    fn hash(name: &str) -> String {
        ironclaw_contract::canonical::Digest::of(name.as_bytes()).to_string()
    }

    fn genesis(before: Option<(u64, &str)>) -> Genesis {
        let previous = before.map(|(seq, name)| PreviousChain { archive: hash("file"), hash: hash(name), seq });
        Genesis { continues_from: previous, ..Genesis::default() }
    }

    #[test]
    fn archives_of_another_history_are_found() {
        let signer = Signer::for_test();
        let ledger = hash("ledger");
        let closed = |first: u64, seq: u64, name: &str, before: Option<(u64, &str)>| {
            let position = Position { ledger: ledger.clone(), first, seq, hash: hash(name) };
            (genesis(before), signer.sign(position, 0))
        };
        let live = |first: u64, before: Option<(u64, &str)>| LiveChain {
            ledger: ledger.clone(),
            first,
            genesis: genesis(before),
            keys: vec![signer.public().to_owned()],
        };
        let firsts = |live: &LiveChain, ends: Vec<_>| -> Vec<u64> {
            judge(live, ends, |signed| signed.hash == hash("left")).iter().map(|foreign| foreign.first).collect()
        };
        let one = || closed(0, 9, "one", None);
        let two = || closed(10, 19, "two", Some((9, "one")));
        assert_eq!(firsts(&live(20, Some((19, "two"))), vec![one(), two()]), [0u64; 0]);
        assert_eq!(firsts(&live(10, Some((9, "one"))), vec![one(), two()]), [10], "the record was restored");
        assert_eq!(firsts(&live(0, None), vec![one(), two()]), [0, 10]);
        assert_eq!(firsts(&live(0, None), vec![closed(0, 9, "left", None)]), [0u64; 0], "an interrupted rotation");
        // Another history that was continued and rotated.
        let other = closed(15, 30, "other", Some((14, "x")));
        assert_eq!(firsts(&live(20, Some((19, "two"))), vec![one(), two(), other]), [15]);
        assert_eq!(firsts(&live(20, Some((19, "two"))), vec![one()]), [0u64; 0], "the archive in between is missing");
        let stranger = LiveChain { keys: Vec::new(), ..live(0, None) };
        assert_eq!(firsts(&stranger, vec![one()]), [0u64; 0], "signed with another key");
    }
}
