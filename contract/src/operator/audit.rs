//! Statements about the ledger from outside of it: signed heads, rotations, and results of verifications.
//!
//! Plain data; nothing here signs, hashes or decides. `host/ledger/src/head.rs` signs, `docs/verify-ledger.pl` checks.

use serde::{Deserialize, Serialize};

/// Beginning of the signed text of a head, so that no other text of ours can be taken for one.
pub const HEAD_DOMAIN: &str = "ironclaw/ledger-head/1";

/// A signed statement of how far a ledger had come.
///
/// The signed bytes are the canonical JSON of every member but `signature`. The members stand in canonical order, so the
/// serialized form is canonical JSON as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SignedHead {
    /// [`HEAD_DOMAIN`].
    pub domain: String,
    /// Sequence number of the genesis of the chain that `seq` stands in.
    pub first: u64,
    /// Hash of the entry `seq`, 64 lower-case hex characters.
    pub hash: String,
    /// The Ed25519 public key, 64 lower-case hex characters.
    pub key: String,
    /// Which ledger: the hash of its very first entry, 64 lower-case hex characters.
    pub ledger: String,
    /// Sequence number of the last entry.
    pub seq: u64,
    /// Ed25519 (RFC 8032), 128 lower-case hex characters.
    pub signature: String,
    /// When it was signed, RFC 3339 in UTC, milliseconds.
    pub time: String,
}

/// `GET /v1/audit/head`, and what `ironclaw-host audit head --json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LedgerHead {
    /// The head as of now.
    pub head: SignedHead,
    /// Where heads are kept.
    pub kept: HeadsKept,
}

/// Where heads are kept, outside of the state directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HeadsKept {
    /// The directory; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Sequence number of the newest head of this ledger there; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Why heads are not kept there now, or nowhere; absent when all is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// `POST /v1/audit/rotate`: a chain was closed and put into a file.
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

/// What `audit verify --json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum LedgerVerdict {
    /// Everything fits.
    Whole(LedgerWhole),
    /// Something does not.
    Bad(LedgerBad),
}

/// A ledger in which everything fits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LedgerWhole {
    /// `true`.
    pub ok: bool,
    /// Entries in all chains.
    pub entries: u64,
    /// Chains: one more than there were rotations.
    pub chains: u64,
    /// Heads kept outside that were compared and agree.
    pub heads: u64,
    /// Which ledger: the hash of its very first entry.
    pub ledger: String,
    /// The newest public key that the ledger names; absent when it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Other histories that an owner accepted, oldest first; heads of these are not compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<AcceptedBreak>,
    /// What else is worth knowing, in sentences.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// An entry with which an owner accepted that heads or archives know another history, as after a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AcceptedBreak {
    /// Sequence number of that entry.
    pub seq: u64,
    /// The first entry that is not the same in the other history.
    pub from: u64,
    /// Id of the owner.
    pub by: String,
    /// Why, in the owner's words.
    pub reason: String,
}

/// `POST /v1/audit/accept`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AcceptBreak {
    /// Why the ledger knows another history than heads or archives do; 1 to 400 characters.
    pub reason: String,
}

/// What `POST /v1/audit/accept` came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BreakAccepted {
    /// Sequence number of the entry that says so, the last one of several.
    pub seq: u64,
    /// The first entry that is not the same in the other history.
    pub from: u64,
    /// Heads of the other history.
    pub heads: u64,
    /// Names of the archives of the other history, which were moved aside.
    pub archives: Vec<String>,
}

/// A ledger in which something does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LedgerBad {
    /// `false`.
    pub ok: bool,
    /// The first sequence number that cannot be right; absent when none can be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The file that it shows in; absent for an export, and where no file can be named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// `broken truncated rewritten forked replayed missing head`.
    pub class: String,
    /// Why, in words.
    pub why: String,
}
