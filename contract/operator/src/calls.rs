//! Tools and the judgement of their calls, for `ironctl tool` and `ironctl why CALL`.
//!
//! Plain data. `host/src/api/calls.rs` makes it.

use super::bound::Bound;
use super::denial::DenialCode;
use super::files::SentFile;
use super::judgement::{ArgumentRule, Class, InputType, JudgementStage, StageAnswer, ToolReach};
use super::people::Role;
use ironclaw_contract::ids::{CallId, MessageId, RequestId, SessionId, TurnId};
use ironclaw_contract::seam::seal::Label;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use ironclaw_contract::seam::egress::Commands;

/// The answer of one stage of a judgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CallStage {
    /// The stage.
    pub stage: JudgementStage,
    /// Its answer.
    pub answer: StageAnswer,
    /// The code, for an answer other than `pass`.
    pub code: Option<DenialCode>,
    /// A sentence about the code.
    pub meaning: Option<String>,
}

/// The newest progress of a running call, as its MCP server reports it: an event of `GET /v1/messages/{id}/events`. It is not recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CallProgress {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// The work that is done, in a unit of the server.
    pub progress: f64,
    /// The whole work, if the server knows it.
    pub total: Option<f64>,
    /// The words of the server, at most 300 characters on one line; invisible characters are codes.
    pub words: Option<String>,
}

ironclaw_contract::words! {
    /// The state of a call.
    pub enum CallState {
        /// It is permitted and has no result yet.
        Permitted = "permitted",
        /// It waits for people.
        Asked = "asked",
        /// The host runs it; its effect may have happened.
        Running = "running",
        Refused = "refused",
        /// It did what it was made for.
        Done = "done",
        /// It ended with an error, or had no effect.
        Failed = "failed",
        /// Its message waits for its delivery.
        Queued = "queued",
        /// Its effect may have happened.
        Unknown = "unknown",
        /// Its turn ended before it ran.
        Void = "void",
    }
}

/// The judgement of a recorded call, and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CallWhy {
    /// The call.
    pub call_id: CallId,
    /// Its session.
    pub session_id: SessionId,
    /// Its turn.
    pub turn_id: TurnId,
    /// The tool.
    pub tool: String,
    /// The class of a permitted call.
    pub class: Option<Class>,
    /// Its state.
    pub status: CallState,
    /// The code of a refused call.
    pub code: Option<DenialCode>,
    /// The stages in their order, up to the one that denied; empty for a call of an earlier version.
    pub stages: Vec<CallStage>,
    /// The codes that would have stopped the call in mode `enforce`, and that a dangerous mode lifted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub would_have_blocked: Vec<DenialCode>,
    /// A sentence about the outcome.
    pub summary: String,
    /// The bound by which the call was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// The approval request of a call that waits or waited for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestId>,
    /// The text of its result, cut to 4,000 characters; only for the person of its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The file of a call of `send_file`, as long as the host has its copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<SentFile>,
}

/// The rule of an argument of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ToolArgument {
    /// Its rule.
    pub rule: ArgumentRule,
    /// The type of value that a person gives; null if no person has to give it.
    #[serde(rename = "type")]
    pub kind: Option<InputType>,
    /// The labels that its value needs, or a value in it; empty if no person has to give it.
    pub needs: Vec<Label>,
    /// True if only a reference to a value with these labels meets it. Otherwise a person is asked about another value.
    pub by_reference: bool,
    /// True if a third party receives its value.
    pub outward: bool,
}

impl ToolArgument {
    /// Returns its rule in words: `floor email outward`.
    pub fn words(&self) -> String {
        let kind = self.kind.filter(|kind| *kind != InputType::Any).map(InputType::name);
        let by_reference = self.by_reference.then_some("by reference");
        let outward = self.outward.then_some("outward");
        let words = [Some(self.rule.name()), kind, by_reference, outward];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// The rule of the policy for the calls of a tool that need people of the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ToolRule {
    /// The class of the calls.
    pub class: Class,
    /// The table of `policy.toml` that applies: `tool.NAME` or `call.CLASS`. Absent if the policy has neither, so that the defaults hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The roles that decide.
    pub roles: Vec<Role>,
    /// The number of different people who must approve.
    pub approvals: u32,
    /// True if the person of the turn counts as one of them.
    pub requester_may_approve: bool,
    /// The hours after which an undecided call expires.
    pub expires_hours: u32,
}

/// A tool of the host with its manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its description for a model.
    pub description: String,
    /// The class of its calls.
    pub class: Class,
    /// The place of its effect.
    pub reach: ToolReach,
    /// True if the host can undo its effect.
    pub reversible: bool,
    /// True if every call needs a person.
    pub always_ask: bool,
    /// Its effect in words, with `{argument}` for values.
    pub effect: String,
    /// The rules of its arguments, by name.
    pub arguments: BTreeMap<String, ToolArgument>,
    /// The rule of the policy for each class that its calls can have. A call of the class `ask` has none.
    #[serde(default)]
    pub rules: Vec<ToolRule>,
    /// The names of the agents that have it.
    pub agents: Vec<String>,
    /// The names of the agents whose calls of it always ask people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub always_asked_of: Vec<String>,
}

/// A call to judge without running it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TestCall {
    /// The agent, by name or id.
    pub agent: String,
    /// The arguments, as JSON text.
    pub arguments: String,
    /// The classes that the request declares as its whole scope, or each with `+` in front beside those that need no word. Empty: it
    /// declares nothing.
    #[serde(default)]
    pub allow: Vec<String>,
    /// True to judge it with text of others in the context.
    #[serde(default)]
    pub external: bool,
    /// True to judge it as if a person had typed every value.
    #[serde(default)]
    pub typed: bool,
}

/// A host of the network that the host asks for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EgressGrant {
    /// The name of the agent.
    pub agent: String,
    /// The host.
    pub host: String,
    /// The port, if it is not 443.
    pub port: Option<u16>,
    /// The methods.
    pub methods: Vec<String>,
    /// Templates of paths; without any, only whole addresses that a person typed.
    pub paths: Vec<String>,
    /// The name of the secret that each request carries.
    pub secret: Option<String>,
    /// Bytes of the body of a request; in tunnels, bytes that one command sends.
    pub upload_bytes_max: Option<u64>,
    /// The use by commands; without it, no command reaches the host.
    #[serde(default)]
    pub commands: Option<Commands>,
}

ironclaw_contract::words! {
    /// The state of a destination: an approved address is usable while its channel and the person behind it are the same.
    pub enum DestinationState {
        /// The agent may send there.
        Active = "active",
        /// The channel was removed.
        ChannelGone = "channel_gone",
        /// The address is linked to another person, or to none.
        Unlinked = "unlinked",
        /// The other agent was removed.
        AgentGone = "agent_gone",
        /// The two agents share no trust group.
        NoGroup = "no_group",
    }
}

/// An address or another agent to which an agent may send messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Destination {
    /// The name of the agent.
    pub agent: String,
    /// The agent's name for it.
    pub name: String,
    /// The channel; `agent` for another agent.
    pub channel: String,
    /// The address on the channel; for another agent its id.
    pub address: String,
    /// The thread at the address.
    pub thread: Option<String>,
    /// The person who was linked to the address when people approved it; empty for another agent.
    pub person: String,
    /// The name of the other agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_agent: Option<String>,
    /// Its state; the agent may send to an active one only.
    pub state: DestinationState,
}

/// A trust group: agents that may send messages to each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentGroup {
    /// Its name.
    pub name: String,
    /// The names of its agents.
    pub agents: Vec<String>,
    /// The tools that a member may use at the request of another member.
    pub tools: Vec<String>,
}

/// The JSON Schema of manifests, in its own format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(value_type = Object))]
#[serde(transparent)]
pub struct ManifestSchema(pub serde_json::Value);

/// A message of a chain between agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChainLink {
    /// The session that has the message.
    pub session: SessionId,
    /// The name of the agent of that session.
    pub agent: String,
    /// The message.
    pub message: MessageId,
    /// The number of agents that it passed through; 0 for the message of the person.
    pub hop: u32,
}

/// The judgement of a call that was not made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TestedCall {
    /// `permitted`, `asked` (it needs people) or `refused`.
    pub status: CallState,
    /// The class of a call that is permitted or needs people.
    pub class: Option<Class>,
    /// The code of a refused call, or of the first reason of one that needs people.
    pub code: Option<DenialCode>,
    /// The stages in their order, up to the one that denied.
    pub stages: Vec<CallStage>,
    /// The words that a model gets about a refused call.
    pub advice: Option<String>,
}
