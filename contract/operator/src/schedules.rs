//! Schedules of agents and their occurrences: `/v1/schedules`.
//!
//! Plain data. Times are RFC 3339 in UTC; a local time has the offset of the schedule's zone.

use ironclaw_contract::ids::{ChangeId, MessageId, ScheduleId};
use ironclaw_contract::seam::change::{CatchUp, RunContext, WrittenBy};
use serde::{Deserialize, Serialize};

ironclaw_contract::words! {
    /// The state of a schedule.
    pub enum ScheduleState {
        /// It has a next time.
        Active = "active",
        /// It waits for a person or its agent.
        Paused = "paused",
        /// It has no further time.
        Ended = "ended",
        /// It was removed. The row keeps its history.
        Removed = "removed",
    }

    /// The state of one time of a schedule.
    pub enum OccurrenceState {
        /// It waits for the occurrence before it.
        Scheduled = "scheduled",
        /// Its message is recorded.
        Started = "started",
        /// The reply has its receipt.
        Done = "done",
        /// There is no reply, or it did not arrive.
        Failed = "failed",
        /// It did not run.
        Skipped = "skipped",
        /// Its outcome is not known.
        Unknown = "unknown",
    }
}

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ScheduleView {
    /// Its id.
    pub id: ScheduleId,
    /// Its name, which no other schedule of its creator with the agent has.
    pub name: String,
    /// Name of the agent.
    pub agent: String,
    /// Name of the person on whose behalf it runs.
    pub creator: String,
    /// The prompt; empty for a removed schedule.
    pub prompt: String,
    /// The author of the prompt.
    pub written_by: WrittenBy,
    /// `cron`, `every` or `at`, and the text after a blank.
    pub recurrence: String,
    /// The time zone, a name of the IANA database.
    pub zone: String,
    /// The treatment of passed times.
    pub catch_up: CatchUp,
    /// Classes of calls and names of tools that a run may use beside reading.
    pub may: Vec<String>,
    /// The receivers to which a run may send without a question.
    pub flows: Vec<ScheduleFlow>,
    /// The context of its runs.
    pub context: RunContext,
    /// The channel and the address of the replies, with a colon between.
    pub reply_to: String,
    /// Its state.
    pub state: ScheduleState,
    /// The reason of the state, if it has one.
    pub reason: Option<String>,
    /// The remedy in one sentence with its command, if the host paused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The next time.
    pub next: Option<String>,
    /// The next time in its zone.
    pub next_local: Option<String>,
    /// The time of the first failure of a failing series.
    pub failing_since: Option<String>,
    /// The newest occurrence that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Occurrence>,
    /// The change that added it.
    pub change: ChangeId,
    /// The time of its addition.
    pub created_at: String,
}

/// A way out of a run: one tool, one destination, and the directories whose text may go there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ScheduleFlow {
    /// The tool.
    pub tool: String,
    /// The agent's name for the destination.
    pub to: String,
    /// The approved identity there, with a colon between channel and address.
    pub recipient: String,
    /// The directories in the jail.
    pub from: Vec<String>,
    /// The reason why the flow covers no call now, one word.
    pub lost: Option<String>,
}

/// One time of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Occurrence {
    /// The time.
    pub due: String,
    /// The time in the zone of the schedule.
    pub due_local: String,
    /// Its state.
    pub state: OccurrenceState,
    /// The reason of the state, one word.
    pub reason: Option<String>,
    /// The message that the agent got.
    pub message: Option<MessageId>,
    /// The delivery of the reply, once it has its receipt.
    pub receipt: Option<String>,
    /// The number of times that this entry counts: 1, or that of passed times together.
    pub count: u64,
    /// Name of the person who started it by hand.
    pub by: Option<String>,
}

/// The next times of a schedule, and what a run may do: `GET /v1/schedules/{id}/next`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DryRun {
    /// The schedule.
    pub id: ScheduleId,
    /// The next times, at most ten.
    pub next: Vec<NextRun>,
    /// Classes of calls and names of tools that a run may use beside reading.
    pub may: Vec<String>,
    /// The receivers to which a run may send without a question.
    pub flows: Vec<ScheduleFlow>,
    /// The channel and the address of the replies, with a colon between.
    pub reply_to: String,
    /// The reason why a run would not start now, one word.
    pub refused: Option<String>,
    /// The remedy for that reason, in one sentence with its command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// A future time of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NextRun {
    /// The time.
    pub due: String,
    /// The time in the zone of the schedule.
    pub local: String,
}

/// The occurrence that a message belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OccurrenceOf {
    /// The schedule.
    pub schedule: ScheduleId,
    /// The time.
    pub due: String,
    /// The state of the occurrence.
    pub state: OccurrenceState,
    /// The reason of the state, one word.
    pub reason: Option<String>,
}
