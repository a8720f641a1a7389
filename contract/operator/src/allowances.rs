//! Allowances: consents to several calls that would need their person, each with a count and an end.
//!
//! Plain data. An allowance names the digest of the page that its person was shown.

use super::denial::DenialCode;
use super::judgement::Principal;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::MessageId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The content of a new allowance: `POST /v1/allowances/review`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AllowanceDraft {
    /// Name or id of the agent.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// The value of each control field of the call; a control field without a value is one that the call leaves out.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub fields: Value,
    /// The number of calls that it permits, 1 to 20.
    pub count: u32,
    /// The end, at most 30 days ahead: a duration such as `7d`, or RFC 3339.
    pub until: String,
}

/// The page of a new allowance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AllowancePage {
    /// The page: lines of printable characters, each ended by a line feed.
    pub shown: String,
    /// SHA-256 of `shown`, 64 hex characters.
    pub shown_digest: Digest,
    /// RFC 3339: the end, for the draft of the allowance.
    pub until: String,
    /// The approval requests in the record that it was compared with.
    pub compared: u64,
    /// The requests of these for which no person would have been asked; a person rejected none of them.
    pub permitted: u64,
}

/// An offer of an allowance: `GET /v1/allowances/offers`. It is not recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AllowanceOffer {
    /// The content of the allowance, for `POST /v1/allowances/review`.
    pub draft: AllowanceDraft,
    /// The typed messages whose calls the person approved.
    pub messages: u64,
    /// The days of these messages, UTC.
    pub days: u64,
    /// RFC 3339: the first approval request that it was compared with.
    pub since: Option<String>,
    /// The approval requests in the record that it was compared with.
    pub compared: u64,
    /// The approval requests in the record whose arguments are erased or damaged.
    pub unread: u64,
    /// The requests for which no person would have been asked; a person rejected none of them.
    pub permitted: u64,
}

/// A new allowance: `POST /v1/allowances`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewAllowance {
    /// Its content.
    pub draft: AllowanceDraft,
    /// The digest of the page that the person was shown.
    pub shown: Digest,
}

ironclaw_contract::words! {
    /// The status of an allowance.
    pub enum AllowanceStatus {
        /// It permits calls.
        Active = "active",
        /// It permitted its number of calls.
        UsedUp = "used_up",
        Expired = "expired",
        /// Its tool, or the host, channel or server of the tool, is not the one that the page showed. It permits nothing.
        Outdated = "outdated",
    }
}

/// An allowance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Allowance {
    /// Its number, which no other allowance of the host ever has.
    pub id: u64,
    /// Its status.
    pub status: AllowanceStatus,
    /// The name of the person whose turns it serves.
    pub person: String,
    /// The name of the agent.
    pub agent: String,
    /// The kind of principal: `person`.
    pub principal: Principal,
    /// The tools whose calls it permits, each with the SHA-256 of its manifest and of where its calls have their effect, 64 hex characters.
    pub tools: BTreeMap<String, Digest>,
    /// The message with whose answer it ends; absent if only its time ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_answer_to: Option<MessageId>,
    /// The value of each control field; empty for tools that only read.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub fields: Value,
    /// The control fields that a call has to leave out.
    pub absent: Vec<String>,
    /// The fields with any value.
    pub anything: Vec<String>,
    /// The codes of the reasons that it lifts.
    pub lifts: Vec<DenialCode>,
    /// The number of calls that it permits.
    pub count: u32,
    /// The number of calls that it permitted.
    pub used: u32,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub expires_at: String,
}
