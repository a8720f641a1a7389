//! Usage of models, its cost and its ceilings: `/v1/usage`, `/v1/agents/{agent}/budget`.
//!
//! Counts and ids, never words.

use crate::ids::{AgentId, SessionId};
use serde::{Deserialize, Serialize};

/// `GET /v1/usage?days=N&agent=A&session=S`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Usage {
    /// What was used, the newest day first.
    pub rows: Vec<UsageRow>,
    /// The ceilings that are set, and how far each is used up.
    pub ceilings: Vec<Ceiling>,
}

/// What one session of one agent took of one model endpoint on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UsageRow {
    /// The day in UTC, e.g. `2026-11-22`.
    pub day: String,
    /// `agt_…`.
    pub agent_id: AgentId,
    /// Its name, or its id once it is removed.
    pub agent: String,
    /// `ses_…`; it may be removed.
    pub session_id: SessionId,
    /// Name of the model endpoint.
    pub model: String,
    /// Whether that is a script and no model: its tokens are an estimate and cost nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scripted: bool,
    /// Requests, also those that failed.
    pub requests: u64,
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Tokens of outputs.
    pub output_tokens: u64,
    /// Millionths of the currency that the endpoint's prices are in.
    pub cost_micros: u64,
}

/// A ceiling and how far it is used up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Ceiling {
    /// `tokens_per_day cost_per_day tokens_per_agent_day cost_per_agent_day tokens_per_session`.
    pub name: String,
    /// Whose: the name of an agent or the id of a session; absent for the whole host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Tokens, or millionths of a currency.
    pub limit: u64,
    /// How much of it is used.
    pub used: u64,
    /// How much of it is left.
    pub left: u64,
    /// When it begins anew, RFC 3339; absent when it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// `POST /v1/agents/{agent}/budget`, and its answer: an agent's own ceilings.
///
/// In a request what is absent stays as it is, and 0 takes a ceiling away; in an answer what is absent is not set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AgentBudget {
    /// Tokens a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// Millionths of a currency a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_per_day_micros: Option<u64>,
}

/// Words of an answer that is being made: an event of `GET /v1/messages/{id}/events`. Progress only: the answer that counts
/// comes with the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Draft {
    /// Which try this is of; a further one begins anew, and what the one before said is gone.
    pub attempt: u32,
    /// At which byte of it these words begin.
    pub from: u64,
    /// The words.
    pub text: String,
}
