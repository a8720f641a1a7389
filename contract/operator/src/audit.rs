//! Statements about the ledger from outside of it: signed heads, rotations, and results of verifications.
//!
//! Plain data: never signs, hashes or decides. `host/ledger/src/head.rs` signs heads, `docs/verify-ledger.pl` checks them.

use serde::{Deserialize, Serialize};

/// The first part of the signed text of a head, so that no other signed text of this project can pass for one.
pub const HEAD_DOMAIN: &str = "ironclaw/ledger-head/1";

/// A signed statement of the last entry of a chain.
///
/// The signed bytes are the canonical JSON of all members except `signature`. The members are in canonical order, so the
/// serialized form is canonical JSON as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SignedHead {
    /// [`HEAD_DOMAIN`].
    pub domain: String,
    /// Sequence number of the genesis of the chain with `seq`.
    pub first: u64,
    /// Hash of the entry `seq`, 64 lower-case hex characters.
    pub hash: String,
    /// The Ed25519 public key, 64 lower-case hex characters.
    pub key: String,
    /// The ledger: the hash of its first entry, 64 lower-case hex characters.
    pub ledger: String,
    /// Sequence number of the last entry.
    pub seq: u64,
    /// Ed25519 (RFC 8032), 128 lower-case hex characters.
    pub signature: String,
    /// The time of the signature, RFC 3339 in UTC, milliseconds.
    pub time: String,
}

/// The answer of `GET /v1/audit/head`, and the output of `ironclaw-host audit head --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LedgerHead {
    /// The present head.
    pub head: SignedHead,
    /// The place where heads are kept.
    pub kept: HeadsKept,
}

/// The place outside of the home where the host keeps heads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HeadsKept {
    /// The directory; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Sequence number of the newest head of this ledger there; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The reason why the host keeps no heads there now; absent if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// `POST /v1/audit/rotate`: a closed chain and its archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Rotated {
    /// Absolute path of the file.
    pub archive: String,
    /// Sequence number of its first entry.
    pub first: u64,
    /// Sequence number of its last entry.
    pub last: u64,
    /// SHA-256 of the file, 64 lower-case hex characters.
    pub digest: String,
}

/// The output of `audit verify --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum LedgerVerdict {
    /// The ledger is whole.
    Whole(LedgerWhole),
    /// The ledger is not whole.
    Bad(LedgerBad),
}

/// A ledger without an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LedgerWhole {
    /// `true`.
    pub ok: bool,
    /// Entries in all chains.
    pub entries: u64,
    /// Number of chains: one more than rotations.
    pub chains: u64,
    /// Number of heads outside of the home that were compared and agree.
    pub heads: u64,
    /// The ledger: the hash of its first entry.
    pub ledger: String,
    /// The newest public key that the ledger names; absent if it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Other histories that an owner accepted, the oldest first. Their heads are not compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<AcceptedBreak>,
    /// Remarks, in sentences.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// An entry by which an owner accepted that heads or archives belong to another history, as after a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AcceptedBreak {
    /// Sequence number of that entry.
    pub seq: u64,
    /// The first entry that differs in the other history.
    pub from: u64,
    /// Id of the owner.
    pub by: String,
    /// The reason in the owner's words.
    pub reason: String,
}

/// `POST /v1/audit/accept`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AcceptBreak {
    /// The reason why the history of the ledger differs from heads or archives; 1 to 400 characters.
    pub reason: String,
}

/// The answer of `POST /v1/audit/accept`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BreakAccepted {
    /// Sequence number of the entry about it; the last one if there are several.
    pub seq: u64,
    /// The first entry that differs in the other history.
    pub from: u64,
    /// Number of heads of the other history.
    pub heads: u64,
    /// New names of the archives of the other history.
    pub archives: Vec<String>,
}

ironclaw_contract::words! {
    /// The class of the fault of a ledger.
    pub enum LedgerFault {
        /// An entry does not follow from the one before it.
        Broken = "broken",
        /// Its end is missing.
        Truncated = "truncated",
        /// A head was signed over other entries.
        Rewritten = "rewritten",
        /// Two histories were signed.
        Forked = "forked",
        /// A chain is in the place of a later one.
        Replayed = "replayed",
        /// A whole chain is missing.
        Missing = "missing",
        /// A head is not authentic.
        Head = "head",
    }
}

/// A ledger with an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LedgerBad {
    /// `false`.
    pub ok: bool,
    /// The first sequence number that cannot be right; absent if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The file with the error; absent for an export, and if no file is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The class of the error.
    pub class: LedgerFault,
    /// The reason, in words.
    pub why: String,
}
