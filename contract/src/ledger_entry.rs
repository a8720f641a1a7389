//! The rule that chains ledger entries: the hashed bytes, and the conditions for a whole chain.
//!
//! Pure: never reads a clock, a file or a database. `host/ledger/src/lib.rs` appends entries; `docs/threat-model.md` explains
//! what a whole chain proves.

use crate::canonical::Digest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// The predecessor hash of a genesis entry: 64 zeros, as text.
pub const GENESIS_PREV: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The kind of statement that an entry makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Kind {
    /// The first entry of a chain: of the ledger, or of its continuation after a rotation.
    Genesis,
    /// A start of the daemon.
    Boot,
    /// An assertion of an untrusted party: a message, a proposal, a call.
    Claim,
    /// An act that the host checked and did.
    Verify,
    /// A refusal or a withdrawal.
    Retract,
    /// An act of an operator, or a statement of the host about itself.
    Meta,
}

impl Kind {
    /// Returns its name in the hashed text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Genesis => "GENESIS",
            Self::Boot => "BOOT",
            Self::Claim => "CLAIM",
            Self::Verify => "VERIFY",
            Self::Retract => "RETRACT",
            Self::Meta => "META",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Genesis, Self::Boot, Self::Claim, Self::Verify, Self::Retract, Self::Meta]
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| format!("unknown entry type {text:?}"))
    }
}

/// Computes the SHA-256 of `prev|seq|TYPE|canonical`, all as UTF-8 text; `prev` is 64 lower-case hex characters.
pub fn hash(prev: &str, seq: u64, kind: Kind, canonical: &str) -> Digest {
    // In two parts: joining them would copy the data of each entry once more.
    let mut front = Front { bytes: [0; FRONT_BYTES_MAX], used: 0 };
    front.push(prev.as_bytes());
    front.push(b"|");
    front.push_number(seq);
    front.push(b"|");
    front.push(kind.name().as_bytes());
    front.push(b"|");
    let mut sha = Sha256::new();
    sha.update(&front.bytes[..front.used]);
    sha.update(canonical.as_bytes());
    Digest::from_bytes(sha.finalize().into())
}

/// Room for 64 characters of hash, 20 of number, 7 of kind, and three bars.
const FRONT_BYTES_MAX: usize = 96;

/// The bytes that are hashed before the data. Built without an allocation and without `format`, which would cost a fifth of
/// the time of hashing.
struct Front {
    bytes: [u8; FRONT_BYTES_MAX],
    used: usize,
}

impl Front {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.used..][..bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
    }

    fn push_number(&mut self, mut number: u64) {
        let mut digits = [0; 20];
        let mut begin = digits.len();
        loop {
            begin -= 1;
            digits[begin] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.push(&digits[begin..]);
    }
}

/// One exported entry of the ledger: one JSON object a line, with `data` as its canonical bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LedgerLine {
    /// Position, from 0, without gaps.
    pub seq: u64,
    /// `GENESIS BOOT CLAIM VERIFY RETRACT META`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The entry's data, parsed.
    pub data: serde_json::Value,
    /// SHA-256, 64 lower-case hex characters.
    pub hash: String,
    /// The canonical bytes of `data` that were hashed.
    pub canonical: String,
}

/// The first place at which a chain is not whole, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("bad seq {seq}: {why}")]
pub struct Broken {
    /// The first sequence number that cannot be right.
    pub seq: u64,
    /// The reason, in words.
    pub why: String,
}

/// A verifier that reads a chain from its genesis, one entry at a time.
#[derive(Debug, Clone)]
pub struct Verifier {
    first_seq: u64,
    next_seq: u64,
    prev: String,
}

impl Default for Verifier {
    fn default() -> Self {
        Self::starting_at(0)
    }
}

impl Verifier {
    /// Makes a verifier for a chain whose genesis has the number `first_seq`: 0, or the next number after the previous chain.
    pub fn starting_at(first_seq: u64) -> Self {
        Self { first_seq, next_seq: first_seq, prev: GENESIS_PREV.to_owned() }
    }

    /// Returns the number of entries accepted so far.
    pub const fn entries(&self) -> u64 {
        self.next_seq - self.first_seq
    }

    /// Returns the number that the next entry must have.
    pub const fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Returns the hash of the last accepted entry, or [`GENESIS_PREV`].
    pub fn head(&self) -> &str {
        &self.prev
    }

    /// Accepts the next entry from its stored parts, or refuses it because the chain is broken there.
    pub fn accept(&mut self, seq: u64, kind: &str, canonical: &str, stored_hash: &str) -> Result<(), Broken> {
        let next_seq = self.next_seq;
        let broken = |why: String| Broken { seq: next_seq, why };
        if seq != self.next_seq {
            return Err(broken(format!("expected sequence number {}, found {seq}", self.next_seq)));
        }
        let kind: Kind = kind.parse().map_err(broken)?;
        if (seq == self.first_seq) != (kind == Kind::Genesis) {
            return Err(broken(format!("{kind} is not allowed at {seq}")));
        }
        if hash(&self.prev, seq, kind, canonical).hex() != stored_hash.as_bytes() {
            return Err(broken("the hash does not follow from the entry and the one before it".to_owned()));
        }
        self.next_seq += 1;
        // The stored hash, which equals the computed one: the processor may start on the next entry before the computation of
        // this hash has ended.
        self.prev.clear();
        self.prev.push_str(stored_hash);
        Ok(())
    }

    /// Accepts the next exported line; its parsed `data` must equal its canonical bytes.
    pub fn accept_line(&mut self, line: &LedgerLine) -> Result<(), Broken> {
        let parsed: Option<serde_json::Value> = serde_json::from_str(&line.canonical).ok();
        if parsed.as_ref() != Some(&line.data) {
            return Err(Broken { seq: self.next_seq, why: "data and its canonical bytes differ".to_owned() });
        }
        self.accept(line.seq, &line.kind, &line.canonical, &line.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENESIS: &str = r#"{"agent":"bernard","created":"2026-02-21T18:00:00Z","version":"1.0"}"#;
    const GENESIS_HASH: &str = "9fff5bccc8fa2677ae9435a31eec9e09009b9e79001e2de21383eead7cb3f280";
    const APPEND: &str = r#"{"text":"test claim"}"#;
    const APPEND_HASH: &str = "67a19fda4bc5c48e6b54fde0d57bf514eed5a36bf6a30221f06ac2dd2b2cb1c2";

    #[test]
    fn the_four_published_vectors_hold() {
        assert_eq!(hash(GENESIS_PREV, 0, Kind::Genesis, GENESIS).to_string(), GENESIS_HASH);
        assert_eq!(hash(GENESIS_HASH, 1, Kind::Claim, APPEND).to_string(), APPEND_HASH);
        assert_eq!(
            hash(GENESIS_HASH, 1, Kind::Claim, r#"{"text":"TAMPERED claim"}"#).to_string(),
            "fcf9837312ced82df335dbf3f27865345409990798ee0c981091b38c97a15ae7"
        );
        let skipped = r#"{"text":"skipped seq 2"}"#;
        let skipped_hash = "b0f6df50742434b3cebd9a47a944f17b8422725a0bc3c34ca12a8d8ee4a690c9";
        assert_eq!(hash(APPEND_HASH, 3, Kind::Claim, skipped).to_string(), skipped_hash);

        let mut chain = Verifier::default();
        chain.accept(0, "GENESIS", GENESIS, GENESIS_HASH).expect("genesis");
        chain.accept(1, "CLAIM", APPEND, APPEND_HASH).expect("append");
        let gap = chain.accept(3, "CLAIM", skipped, skipped_hash).expect_err("the hash is right, the gap is not");
        assert_eq!(gap.seq, 2);
    }

    #[test]
    fn chain_after_a_rotation_starts_where_the_last_one_ended() {
        let genesis = hash(GENESIS_PREV, 7, Kind::Genesis, "{}").to_string();
        let mut chain = Verifier::starting_at(7);
        assert_eq!(chain.accept(0, "GENESIS", GENESIS, GENESIS_HASH).expect_err("an earlier chain").seq, 7);
        assert_eq!(chain.accept(7, "CLAIM", "{}", &genesis).expect_err("no genesis").seq, 7);
        chain.accept(7, "GENESIS", "{}", &genesis).expect("a genesis where it has to be");
        let next = hash(&genesis, 8, Kind::Genesis, "{}").to_string();
        assert_eq!(chain.accept(8, "GENESIS", "{}", &next).expect_err("a second genesis").seq, 8);
        assert_eq!((chain.entries(), chain.next_seq()), (1, 8));
    }

    #[test]
    fn changed_entry_breaks_the_chain_at_its_number() {
        let mut chain = Verifier::default();
        chain.accept(0, "GENESIS", GENESIS, GENESIS_HASH).expect("genesis");
        assert_eq!(chain.accept(1, "CLAIM", r#"{"text":"other"}"#, APPEND_HASH).expect_err("changed").seq, 1);
        assert_eq!(chain.accept(1, "VERIFY", APPEND, APPEND_HASH).expect_err("other type").seq, 1);
        assert_eq!(chain.accept(1, "GENESIS", APPEND, APPEND_HASH).expect_err("second genesis").seq, 1);
        chain.accept(1, "CLAIM", APPEND, APPEND_HASH).expect("the untouched entry still fits");
    }
}
