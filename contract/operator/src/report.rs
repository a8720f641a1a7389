//! The report about the calls and the requests of a time, with the changes that would save most requests: `GET /v1/report`.
//!
//! Plain data. `host/src/calls/report.rs` makes it, with the functions that judge real calls.

use super::denial::DenialCode;
use super::judgement::Class;
use super::waiting::WaitingStatus;
use ironclaw_contract::ids::RequestId;
use serde::{Deserialize, Serialize};

ironclaw_contract::words! {
    /// The rule that let a call run without a question. If several rules did, it is the first one of this list.
    pub enum UnaskedRule {
        /// It acts in the jail of the session, or on the record of the host alone.
        Contained = "contained",
        /// It asks people itself: a question, a proposed change or schedule.
        Action = "action",
        /// An allowance of the person covers it.
        Allowance = "allowance",
        /// A flow of its schedule, which people approved, covers it.
        Flow = "flow",
        /// The guard mode of the agent lifted a stage of its judgement.
        Mode = "mode",
        /// The list of its schedule has it.
        Schedule = "schedule",
        /// The trust groups of its chain permit it.
        Group = "group",
        /// The scope of the message has its class, and the person typed the value of a control field.
        Typed = "typed",
        /// The scope of the message has its class, and a server returned the value of a control field.
        Returned = "returned",
        /// It only reads.
        Read = "read",
        /// The scope of the message has its class.
        Scope = "scope",
    }

    /// The kind of a change that would save requests. Of changes that save as many, the first one of this list comes first.
    pub enum SavingChange {
        /// An allowance of a person.
        Allowance = "allowance",
        /// Classes that need no word of the message.
        Unasked = "unasked",
        /// A grant of a host.
        Grant = "grant",
        /// A looser manifest of a tool of an MCP server.
        Manifest = "manifest",
        /// A class in each message, which its person types.
        Message = "message",
    }

    /// What a report does not count or propose.
    pub enum LeftOutOfReport {
        /// Conversations of this time that were removed, with their calls and requests.
        ConversationsRemoved = "conversations_removed",
        /// Conversations of this time whose oldest calls the record no longer has.
        ConversationsShortened = "conversations_shortened",
        /// Requests that always ask: their calls run code, buy something, push, or are of a tool that always asks.
        AlwaysAsked = "requests_always_asked",
        /// Requests that the present settings no longer ask.
        Settled = "requests_settled",
        /// Requests whose calls the present settings refuse.
        RefusedNow = "requests_refused_now",
        /// Requests that no change of this report saves alone.
        Unsaved = "requests_without_a_change",
        /// Older requests than the newest 300: no change was sought for them.
        Older = "requests_older",
        /// Requests whose turn or arguments the record no longer has.
        Lost = "requests_lost",
        /// Changes that would have let a call run that a person rejected.
        PermitsRejected = "changes_for_rejected_calls",
    }
}

/// `GET /v1/report?since=S&agent=A`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Report {
    /// RFC 3339: its begin.
    pub since: String,
    /// RFC 3339: its end.
    pub until: String,
    /// True if it begins later than asked, because one report has at most 20,000 turns.
    pub begins_later: bool,
    /// The name of the person whose turns it counts; null: those of everyone.
    pub person: Option<String>,
    /// The name of the agent whose turns it counts; null: those of all.
    #[serde(default)]
    pub agent: Option<String>,
    /// The tasks of its turns.
    pub tasks: u64,
    /// The calls of these turns.
    pub calls: ReportedCalls,
    /// The approval requests that were made in this time.
    pub requests: ReportedRequests,
    /// The changes that would have saved most requests, at most three. Each counts only requests that those before it leave.
    pub changes: Vec<ReportedChange>,
    /// What it left out, without zeros.
    pub left_out: Vec<LeftOut>,
}

/// The calls of a report. Each one is unasked, asked, refused or not made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReportedCalls {
    /// All.
    pub total: u64,
    /// Those with a class. A call that its judgement refused has none.
    pub classes: Vec<ClassCount>,
    /// Those that ran without a question.
    pub unasked: Vec<RuleCount>,
    /// Those that asked people, and that are not refused.
    pub asked: u64,
    /// Those that the host refused, also after a request.
    pub refused: Vec<CodeCount>,
    /// Those that were permitted and have not begun, or whose turn ended before.
    pub not_made: u64,
}

/// The calls of a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ClassCount {
    /// The class.
    pub class: Class,
    /// Their number.
    pub calls: u64,
}

/// The calls that ran by a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RuleCount {
    /// The rule.
    pub rule: UnaskedRule,
    /// Their number.
    pub calls: u64,
}

/// The calls that were refused with a code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CodeCount {
    /// The code; null: one of an earlier version.
    pub code: Option<DenialCode>,
    /// Their number.
    pub calls: u64,
}

/// The approval requests of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReportedRequests {
    /// All.
    pub total: u64,
    /// The tasks with a request.
    pub tasks: u64,
    /// The most requests of one task.
    pub task_max: u64,
    /// Their statuses.
    pub statuses: Vec<StatusCount>,
    /// Those that a person approved or rejected.
    pub decided: u64,
    /// Milliseconds from the request to its last decision, of decided ones: half took at most this time.
    pub median_ms: Option<u64>,
    /// The same: nine of ten took at most this time.
    pub ninetieth_ms: Option<u64>,
}

/// The requests with a status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StatusCount {
    /// The status.
    pub status: WaitingStatus,
    /// Their number.
    pub requests: u64,
}

/// A change that would have saved requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReportedChange {
    /// Its kind.
    pub change: SavingChange,
    /// The name of the agent.
    pub agent: String,
    /// The name of the person who alone can make it, for their own turns; null: anyone with the right to it.
    pub person: Option<String>,
    /// Its effect in words.
    pub effect: String,
    /// The command that makes it.
    pub command: String,
    /// The requests of this time whose calls would have run without a question.
    pub saves: u64,
    /// The newest of these, at most three.
    pub examples: Vec<SavedRequest>,
}

/// A request that a change would have saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SavedRequest {
    /// `req_…`
    pub request: RequestId,
    /// RFC 3339.
    pub created_at: String,
    /// The effect of its call in words, with its values.
    pub effect: String,
}

/// A part that a report left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LeftOut {
    /// The part.
    pub part: LeftOutOfReport,
    /// Its size.
    pub count: u64,
}
