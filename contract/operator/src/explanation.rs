//! The explanation of a call that is not made: the facts that decide on it, and its judgement at requests of each kind.
//!
//! Plain data. `host/src/calls/supposition.rs` judges it with the functions that judge real calls.

use super::calls::{CallStage, CallState, ToolArgument, ToolRule};
use super::denial::DenialCode;
use super::judgement::{Class, ToolReach};
use super::usage::Ceiling;
use ironclaw_contract::seam::change::GuardMode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

ironclaw_contract::words! {
    /// The request at which a call is supposed to be made.
    pub enum Supposition {
        /// A person asks for calls of its class.
        Asked = "person_asks",
        /// A person asks for calls of its class, and the context has text of others.
        AskedWithOthers = "person_asks_with_text_of_others",
        /// A person typed every value of the call, and the context has text of others.
        TypedWithOthers = "person_typed_with_text_of_others",
        /// A person asks for nothing beyond reading and writing.
        Unasked = "person_does_not_ask",
        Schedule = "schedule",
        /// Another agent of a trust group.
        Agent = "agent",
        /// A stranger on a public channel.
        Guest = "guest",
    }
}

/// `POST /v1/tools/{tool}/explain`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ExplainCall {
    /// The agent, by name or id.
    pub agent: String,
    /// The arguments, as JSON text. Absent: an example that the host makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The person who asks, by name or id. Absent: the caller.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// A schedule of the agent, whose list holds for a run. Absent: a schedule without a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
}

/// The explanation of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExplainedCall {
    /// The name of the agent.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// The name of the person who asks.
    pub person: String,
    /// The arguments, as they are judged.
    pub arguments: String,
    /// True if the host made the arguments.
    pub example: bool,
    /// True if the tool exists.
    pub known: bool,
    /// The code of the reason why the agent does not have the tool, or may not call it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<DenialCode>,
    /// The class of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// The place of its effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<ToolReach>,
    /// The guard mode of the agent.
    pub mode: GuardMode,
    /// The rule of the policy for such a call; absent if it asks a person itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<ToolRule>,
    /// The rules of the arguments, by name.
    pub fields: BTreeMap<String, ToolArgument>,
    /// The allowances of the person that cover the call.
    pub allowances: Vec<CoveringAllowance>,
    /// The ceilings of the agent and of the host for a day.
    pub ceilings: Vec<Ceiling>,
    /// The judgement at each request.
    pub situations: Vec<Situation>,
    /// The commands that change a judgement.
    pub remedies: Vec<Remedy>,
}

/// An allowance that covers a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CoveringAllowance {
    /// Its number.
    pub id: u64,
    /// The uses that are left.
    pub uses_left: u32,
    /// Its end, RFC 3339.
    pub expires_at: String,
}

/// The judgement of a call at one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Situation {
    /// The request.
    pub request: Supposition,
    /// The schedule or the trust group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// `permitted`, `asked` (it waits for people) or `refused`.
    pub status: CallState,
    /// The code of the refusal, or of the first reason to ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<DenialCode>,
    /// The people who decide about an asked call: the name of the person, or roles with the number of approvals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deciders: Vec<String>,
    /// The allowance that lets it run without a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowance: Option<u64>,
    /// The stages in their order, up to the one that denied.
    pub stages: Vec<CallStage>,
}

/// A command that changes a judgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Remedy {
    /// Its effect on the call.
    pub effect: String,
    /// The command.
    pub command: String,
}
