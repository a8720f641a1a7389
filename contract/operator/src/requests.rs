//! The parts of a call that waits for people, and the count of an agent's requests.
//!
//! Plain data. See [`super::waiting`] for the call as a whole.

use super::bound::Bound;
use super::calls::CallState;
use super::denial::DenialCode;
use super::files::SentFile;
use super::judgement::Class;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{CallId, ItemId, RequestId};
use ironclaw_contract::seam::seal::Label;
use serde::{Deserialize, Serialize};

ironclaw_contract::words! {
    /// A person who can remove a reason.
    pub enum Decider {
        /// The person of the turn, if their role may use the class.
        Principal = "principal",
        /// People with the roles of the policy.
        Policy = "policy",
    }

    /// The source of a value.
    pub enum ValueSource {
        /// The person of the turn typed it in this task.
        Typed = "typed",
        /// A server returned it at a result path.
        Returned = "returned",
        Model = "model",
    }
}

/// A reason why a call needs a person, and the people who can remove it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RequestReason {
    /// The code of the stage that found it.
    pub reason: DenialCode,
    /// A sentence about the code.
    pub meaning: String,
    /// `principal`: the person of the turn. `policy`: people with the roles of the policy.
    pub decider: Decider,
    /// The arguments that it concerns; empty for the whole call.
    pub arguments: Vec<String>,
}

/// An argument that leaves, with the origin of its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ArgumentSource {
    /// The name of the argument.
    pub argument: String,
    /// The origin of its value.
    pub origin: ValueOrigin,
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ValueOrigin {
    /// `typed` by the person of the turn in this task, or written by the `model`.
    pub source: ValueSource,
    /// The labels of the value; none for a request of an earlier version.
    pub labels: Vec<Label>,
    /// The item that has the value: the message in which the person typed it, or the output of the model.
    pub item: Option<ItemId>,
    /// The id of a value that a person typed, such as `m12.email.1`, if the call takes it as this value.
    pub handle: Option<String>,
}

/// The body of `POST /v1/agents/{agent}/requests/reset`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewRequestReset {
    /// A person by name or id, whose requests no longer count. Without it: of a member their own, and of an owner or admin those of all
    /// people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
}

/// The requests of an agent that no longer count against a bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RequestReset {
    /// The name of the agent.
    pub agent: String,
    /// The name of the person; null for all people.
    pub person: Option<String>,
    /// The number of requests that counted before.
    pub requests: u64,
}

/// A part of the diff of a push: `GET /v1/waiting/{id}/diff`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PushDiff {
    /// SHA-256 of the whole diff; the arguments and the page of the call name it.
    pub digest: Digest,
    /// Lines of printable characters, each ended by a line feed. `=` begins a file, `@` a place in it, `-` and `+` changed lines.
    pub text: String,
    /// The first line of the next part; null at the end.
    pub next: Option<u64>,
    /// Lines that no part has, because the diff is too long. The digest covers them.
    pub left_off: u64,
}

/// A call of a message, as the view of the message shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MessageCall {
    /// `call_…`.
    pub id: CallId,
    /// The tool.
    pub tool: String,
    /// Its class; null for a call that was denied before it had one.
    pub class: Option<Class>,
    /// Its state.
    pub status: CallState,
    /// The code of a refused call, or of the first reason of one that waits.
    pub code: Option<DenialCode>,
    /// The bound by which it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// The approval request of a call that waits or waited for a person.
    pub request: Option<RequestId>,
    /// The file of a call of `send_file`, as long as the host has its copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<SentFile>,
}
