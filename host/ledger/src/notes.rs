//! What a check of a chain notes of its entries: its genesis, keys, accepted breaks, and the hashes that heads outside are compared with.
//!
//! It judges nothing. See [`crate::check`].

use super::Genesis;
use super::head::Signed;
use super::line::Parts;
use ironclaw_contract::ledger_entry::Kind;
use ironclaw_operator::LedgerEvent;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Event that names a signing key that is in no genesis.
const KEY_MADE: &str = LedgerEvent::LedgerKeyMade.name();

/// Event with which an owner accepts that heads or archives have another history.
const BREAK_ACCEPTED: &str = LedgerEvent::LedgerBreakAccepted.name();

/// What a walk notes of the entries of a chain.
pub(super) struct Notes<'a> {
    pub(super) first: u64,
    pub(super) genesis: Genesis,
    pub(super) genesis_hash: String,
    pub(super) keys: Vec<String>,
    pub(super) started: bool,
    wanted: std::iter::Peekable<std::collections::btree_set::Range<'a, u64>>,
    pub(super) found: Vec<(u64, String)>,
    pub(super) accepted: Vec<Accepted>,
}

/// The fields of [`LedgerEvent::LedgerBreakAccepted`].
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Accepted {
    pub(super) what: String,
    #[serde(skip)]
    pub(super) seq: u64,
    pub(super) from: u64,
    pub(super) by: String,
    pub(super) reason: String,
    pub(super) heads: Vec<String>,
}

impl Accepted {
    pub(super) fn signed(&self) -> impl Iterator<Item = Signed> {
        self.heads.iter().filter_map(|head| head.parse().ok())
    }
}

impl<'a> Notes<'a> {
    /// Begins with the chain whose genesis has the number `first`.
    pub(super) fn from(first: u64, wanted: &'a BTreeSet<u64>) -> Self {
        Self::part(first, first, wanted)
    }

    /// Begins with the entry `from` of that chain.
    pub(super) fn part(first: u64, from: u64, wanted: &'a BTreeSet<u64>) -> Self {
        Self {
            first,
            genesis: Genesis::default(),
            genesis_hash: String::new(),
            keys: Vec::new(),
            started: false,
            wanted: wanted.range(from..).peekable(),
            found: Vec::new(),
            accepted: Vec::new(),
        }
    }

    /// Notes the next entry.
    pub(super) fn entry(&mut self, parts: Parts<'_>) {
        let Parts { seq, kind, canonical, hash } = parts;
        if seq == self.first {
            self.genesis = Genesis::read(canonical);
            self.genesis_hash = hash.to_owned();
            self.keys.extend(self.genesis.key.clone());
        } else if kind == Kind::Meta.name() && canonical.contains(KEY_MADE) {
            let made = Genesis::read(canonical);
            self.keys.extend(made.key.filter(|_| made.what == KEY_MADE));
        } else if kind == Kind::Meta.name() && canonical.contains(BREAK_ACCEPTED) {
            let read: Accepted = serde_json::from_str(canonical).unwrap_or_default();
            self.accepted.extend(Some(Accepted { seq, ..read }).filter(|read| read.what == BREAK_ACCEPTED));
        }
        self.started |= kind == Kind::Boot.name();
        if self.wanted.peek() == Some(&&seq) {
            self.wanted.next();
            self.found.push((seq, hash.to_owned()));
        }
    }

    /// Adds the notes of the entries after these.
    pub(super) fn join(&mut self, next: Self) {
        if !next.genesis_hash.is_empty() {
            (self.genesis, self.genesis_hash) = (next.genesis, next.genesis_hash);
        }
        self.keys.extend(next.keys);
        self.started |= next.started;
        self.found.extend(next.found);
        self.accepted.extend(next.accepted);
    }
}
