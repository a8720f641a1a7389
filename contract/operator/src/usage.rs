//! Usage of models with its cost and its ceilings: `/v1/usage`, `/v1/agents/{agent}/budget`.
//!
//! Has counts and ids; the one type with words is [`Draft`]. See [`crate::Model`] for prices.

use ironclaw_contract::ids::{AgentId, SessionId};
use serde::{Deserialize, Serialize};

/// `GET /v1/usage?days=N&agent=A&session=S`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Usage {
    /// The usage, the newest day first.
    pub rows: Vec<UsageRow>,
    /// True if there are more rows, of earlier days.
    #[serde(default)]
    pub more: bool,
    /// The ceilings that are set, with their usage.
    pub ceilings: Vec<Ceiling>,
}

/// The usage of one model endpoint by one session of one agent on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UsageRow {
    /// The day in UTC, e.g. `2026-11-22`.
    pub day: String,
    /// `agt_…`.
    pub agent_id: AgentId,
    /// Its name, or its id after its removal.
    pub agent: String,
    /// `ses_…`; the session may be removed.
    pub session_id: SessionId,
    /// Name of the model endpoint.
    pub model: String,
    /// True for a script in place of a model: its tokens are an estimate and cost nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scripted: bool,
    /// Requests, including failed ones.
    pub requests: u64,
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Tokens of outputs.
    pub output_tokens: u64,
    /// Millionths of the currency of the endpoint's prices.
    pub cost_micros: u64,
}

ironclaw_contract::words! {
    /// The kind of a ceiling.
    pub enum CeilingKind {
        /// Tokens of the host on one day.
        TokensPerDay = "tokens_per_day",
        /// Cost of the host on one day.
        CostPerDay = "cost_per_day",
        /// Tokens of the agent on one day.
        TokensPerAgentDay = "tokens_per_agent_day",
        /// Cost of the agent on one day.
        CostPerAgentDay = "cost_per_agent_day",
        TokensPerSession = "tokens_per_session",
        /// Tokens of a chain of messages between agents.
        TokensPerChain = "tokens_per_chain",
    }
}

impl CeilingKind {
    /// Returns whether it resets at midnight UTC.
    pub const fn is_daily(self) -> bool {
        match self {
            Self::TokensPerDay | Self::CostPerDay | Self::TokensPerAgentDay | Self::CostPerAgentDay => true,
            Self::TokensPerSession | Self::TokensPerChain => false,
        }
    }

    /// Returns whether it counts millionths of a currency.
    pub const fn is_cost(self) -> bool {
        match self {
            Self::CostPerDay | Self::CostPerAgentDay => true,
            Self::TokensPerDay | Self::TokensPerAgentDay | Self::TokensPerSession | Self::TokensPerChain => false,
        }
    }
}

/// A ceiling with its usage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Ceiling {
    /// Its kind.
    pub name: CeilingKind,
    /// The name of an agent or the id of a session; absent for the whole host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Tokens, or millionths of a currency.
    pub limit: u64,
    /// The used part.
    pub used: u64,
    /// The remaining part.
    pub left: u64,
    /// The time at which it starts again from 0, RFC 3339; absent if it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// `POST /v1/agents/{agent}/budget`, and its answer: the ceilings of one agent.
///
/// In a request, an absent ceiling is unchanged and 0 removes one. In an answer, an absent ceiling is not set.
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

/// A part of an answer that the model still writes: an event of `GET /v1/messages/{id}/events`. It shows progress only: the
/// final answer comes with the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Draft {
    /// The number of the attempt. A further attempt starts from the beginning and discards the words of the previous one.
    pub attempt: u32,
    /// The byte of the attempt at which these words begin.
    pub from: u64,
    /// The words.
    pub text: String,
}
