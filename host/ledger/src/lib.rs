//! The ledger: an append-only chain of entries about all requests, decisions, refusals and acts of the host.
//!
//! An entry has no content, only ids, digests and reasons. It is written in the transaction that it records. See `maintenance` in the
//! host's crate for rotation and heads, and [`crate::check`] for verification.

#![forbid(unsafe_code)]
// The crates of this workspace alone read this one, so only what a name does not say is documented.
#![allow(missing_docs)]

pub mod archive;
pub mod chain;
pub mod check;
pub mod foreign;
pub mod forgotten;
pub mod head;
pub mod line;
mod lockstep;
mod notes;
mod quick;
pub mod sink;
mod stages;
mod table;

pub use stages::{stages, turns_of};

use ironclaw_contract::canonical;
use ironclaw_contract::ids::{MessageId, SessionId, TurnId};
use ironclaw_contract::ledger_entry::{GENESIS_PREV, Kind, hash};
use ironclaw_operator::{Fault, LedgerEvent};
use ironclaw_state::{Committed, ReadTx, WriteTx};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::PathBuf;
use table::{End, New};

ironclaw_operator::settings! {
    /// `[ledger]`
    pub struct Config for ledger {
        /// A chain with this number of entries is archived.
        rotate_entries: u64 = 10_000, Range(16, 10_000_000, "entries"), Restart;
        /// A chain of this age is archived.
        rotate_days: u64 = 30, Range(1, 3650, "days"), Restart;
        /// A signed head is kept outside of the home after this number of entries, and at each stop.
        head_every_entries: u64 = 1000, Range(1, 1_000_000, "entries"), Restart;
        /// A signed head is also kept after this time with changes; the next head replaces it.
        head_every_seconds: u64 = 60, Range(1, 86_400, "seconds"), Restart;
        /// The directory of the heads; a named one has to exist.
        heads: Option<PathBuf> = None, Optional {
            rule: "an absolute path outside of the home", instead: "`ironclaw/heads` in the XDG data directory",
            example: "\"/path/dir\"",
        }, Restart;
    }
}

/// The fields of the first entry of a chain; a missing field is absent.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Genesis {
    /// Name of the event.
    pub what: String,
    /// Time of the entry, in milliseconds since the epoch.
    pub at: i64,
    /// The chain before it.
    pub continues_from: Option<PreviousChain>,
    /// Id of the ledger: the hash of its very first entry; absent in that entry itself.
    pub ledger: Option<String>,
    /// The public key that signs heads.
    pub key: Option<String>,
}

/// The reference of a chain to the one before it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PreviousChain {
    /// SHA-256 of the file that holds the chain before it.
    pub archive: String,
    /// Hash of its last entry.
    pub hash: String,
    /// Number of its last entry.
    pub seq: u64,
}

impl Genesis {
    /// Reads the data of a first entry; malformed data has no fields.
    pub fn read(canonical: &str) -> Self {
        serde_json::from_str(canonical).unwrap_or_default()
    }

    /// Returns the fields of the first entry of the live chain.
    ///
    /// # Errors
    /// Those of the database, also if there is no entry.
    pub fn from_live_chain(tx: &ReadTx<'_>) -> Result<Self, ironclaw_state::Error> {
        Ok(Self::read(&table::genesis_data(tx)?))
    }
}

#[derive(Debug, Clone)]
pub struct Entry {
    kind: Kind,
    event: LedgerEvent,
    data: Map<String, Value>,
    session: Option<SessionId>,
    message: Option<MessageId>,
    turn: Option<TurnId>,
}

impl Entry {
    /// Makes an entry of the usual kind of this event.
    pub fn new(event: LedgerEvent) -> Self {
        Self::with_kind(event, event.kinds()[0])
    }

    /// Makes an entry of an event that has several kinds.
    pub fn with_kind(event: LedgerEvent, kind: Kind) -> Self {
        debug_assert!(event.kinds().contains(&kind), "{event} has no entry of kind {}", kind.name());
        let data = Map::from_iter([("what".to_owned(), Value::from(event.name()))]);
        Self { kind, event, data, session: None, message: None, turn: None }
    }

    /// Adds a field, which must not be content.
    pub fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        if cfg!(debug_assertions) && !self.event.fields().any(|field| field == key) {
            tracing::error!(
                event = self.event.name(),
                key,
                "the list of events does not have this field for the event"
            );
        }
        self.data.insert(key.to_owned(), value.into());
        self
    }

    pub fn session(mut self, id: SessionId) -> Self {
        self.session = Some(id);
        self.with("session", id)
    }

    pub fn message(mut self, id: MessageId) -> Self {
        self.message = Some(id);
        self.with("message", id)
    }

    pub fn turn(mut self, id: TurnId) -> Self {
        self.turn = Some(id);
        self.with("turn", id)
    }

    /// Sets the party at fault.
    pub fn fault(self, fault: Fault) -> Self {
        self.with("fault", fault.name())
    }

    /// Sets the reason, truncated to the bound of an entry.
    pub fn reason(self, reason: &str) -> Self {
        const REASON_CHARACTERS_MAX: usize = 400;
        let short: String = reason.chars().take(REASON_CHARACTERS_MAX).collect();
        self.with("reason", short)
    }

    /// Appends the entry in this transaction; returns its number.
    pub fn append(self, tx: &mut WriteTx<'_>) -> Result<u64, ironclaw_state::Error> {
        let begins = self.kind == Kind::Genesis;
        match table::last(tx)? {
            None if begins => self.put(tx, 0, GENESIS_PREV),
            Some(last) if !begins => self.put(tx, last.seq + 1, &last.hash),
            Some(End { seq, .. }) => Err(ironclaw_state::Error::Stored(format!(
                "ledger: an entry of type {} cannot have the number {}",
                self.kind,
                seq + 1
            ))),
            None => Err(ironclaw_state::Error::Stored(format!(
                "ledger: an entry of type {} cannot have the number 0",
                self.kind
            ))),
        }
    }

    /// Begins a chain at `seq`, the number after the end of the previous chain. Only `ledger::archive` calls this.
    fn append_at(self, tx: &mut WriteTx<'_>, seq: u64) -> Result<u64, ironclaw_state::Error> {
        self.put(tx, seq, GENESIS_PREV)
    }

    fn put(mut self, tx: &mut WriteTx<'_>, seq: u64, prev: &str) -> Result<u64, ironclaw_state::Error> {
        let now = tx.now();
        self.data.insert("at".to_owned(), now.into());
        let canonical = canonical::to_string(&self.data);
        let hash = hash(prev, seq, self.kind, &canonical);
        let (kind, session, message, turn) = (self.kind, self.session, self.message, self.turn);
        table::insert(tx, &New { seq, kind, data: &canonical, hash: &hash, at: now, session, message, turn })?;
        let refuses = kind == Kind::Retract;
        tx.entry(Committed { seq, event: self.event, session, message, turn, refuses });
        Ok(seq)
    }
}

/// Formats milliseconds since the epoch as RFC 3339 in UTC.
pub fn rfc3339(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |time| format!("{time:.3}"))
}
