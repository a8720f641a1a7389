//! The shapes of the API for operators, shared by the host and `ironctl`.
//!
//! Plain data. No sandbox links this crate. `host/src/api.rs` serves the shapes, and `ironctl/src/client.rs` reads them. See
//! [`routes`] for the requests.

#![forbid(unsafe_code)]

mod agents;
mod allowances;
mod audit;
mod backup;
mod bound;
mod calls;
mod changes;
mod channels;
mod config;
mod console;
mod denial;
mod explanation;
mod files;
mod findings;
mod health;
mod jail;
mod judgement;
mod ledger_event;
mod mcp;
mod memory;
mod model;
mod people;
mod proof;
mod removal;
mod report;
mod requests;
pub mod routes;
mod schedules;
mod scope;
mod secret;
mod sections;
mod sessions;
pub mod settings;
mod skills;
mod sources;
mod stops;
mod stored;
mod tokens;
mod transcript;
mod usage;
mod waiting;

pub use agents::*;
pub use allowances::*;
pub use audit::*;
pub use backup::*;
pub use bound::*;
pub use calls::*;
pub use changes::*;
pub use channels::*;
pub use config::*;
pub use console::*;
pub use denial::*;
pub use explanation::*;
pub use files::*;
pub use findings::*;
pub use health::*;
pub use jail::*;
pub use judgement::*;
pub use ledger_event::*;
pub use mcp::*;
pub use memory::*;
pub use model::*;
pub use people::*;
pub use proof::*;
pub use removal::*;
pub use report::*;
pub use requests::*;
pub use schedules::*;
pub use scope::*;
pub use secret::*;
pub use sections::*;
pub use sessions::*;
pub use skills::*;
pub use sources::*;
pub use stops::*;
pub use tokens::*;
pub use transcript::*;
pub use usage::*;
pub use waiting::*;

pub use ironclaw_contract::ledger_entry::LedgerLine;
pub use ironclaw_contract::seam::message::Status as MessageStatus;

use ironclaw_contract::ids::{AgentId, MessageId, SessionId, TurnId};
use ironclaw_contract::seam::change::Access;
use serde::{Deserialize, Serialize};

/// File in the home with the address of the running host; the host writes it at its start and removes it at its stop.
pub const RUN_FILE: &str = "run.json";

/// File in the home that the running host keeps locked, like the home itself, so that only one host runs there.
pub const LOCK_FILE: &str = "host.lock";

/// File in the home with the token of the owner, mode 0600.
pub const OWNER_TOKEN_FILE: &str = "owner.token";

/// Log file of the host, below the home.
pub const LOG_FILE: &str = "logs/host.log";

/// Exit codes of all binaries.
pub mod exit {
    /// Done.
    pub const DONE: u8 = 0;
    /// Refused or failed.
    pub const FAILED: u8 = 1;
    /// The command line was wrong.
    pub const USAGE: u8 = 2;
    /// No host answers.
    pub const UNREACHABLE: u8 = 3;
}

/// The address of a running host: the content of [`RUN_FILE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Run {
    /// Process id of the host.
    pub pid: u32,
    /// Absolute path of the API's unix socket.
    pub socket: String,
    /// Version of the host.
    pub version: String,
    /// The loopback port, e.g. `127.0.0.1:8787`, if one is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
}

/// The body of every non-2xx response, and the output of `--json` on stderr.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Failure {
    /// The failure itself.
    pub error: FailureBody,
}

/// A failure, for people and for scripts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailureBody {
    /// Stable word for scripts, snake_case: a [`DenialCode`] of the host, or a code of `ironctl` itself.
    #[cfg_attr(feature = "schema", schema(value_type = DenialCode))]
    pub code: String,
    /// A sentence that names the object.
    pub message: String,
    /// A hint for the next step; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// The bound that is reached; absent in every other failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Box<Bound>>,
}

impl Failure {
    /// Makes a failure with a code, a sentence and a hint (may be empty).
    pub fn new(code: impl AsRef<str>, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let (code, message, hint) = (code.as_ref().to_owned(), message.into(), hint.into());
        Self { error: FailureBody { code, message, hint, bound: None } }
    }
}

/// `GET /v1/status`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Status {
    /// The daemon.
    pub host: HostStatus,
    /// Every session that exists, asleep or awake.
    pub sessions: Vec<SessionStatus>,
    /// The emergency stop, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// The number of awake and waiting sessions.
    #[serde(default)]
    pub places: SlotCounts,
    /// The numbers of those that wait for people, without the types of which none waits.
    #[serde(default)]
    pub waiting: Vec<WaitingCount>,
    /// Replies to the caller that no client of theirs got yet.
    #[serde(default)]
    pub replies_unread: u64,
    /// Names of the people who are told about nothing, because they have no place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_place: Vec<String>,
    /// Bounds of which at least four fifths are used: on requests, and on schedules and allowances of the caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<Bound>,
    /// Agents whose guard mode is not `enforce`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lowered: Vec<LoweredGuard>,
    /// Skills of agents whose files on this host are damaged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged_skills: Vec<DamagedSkill>,
    /// Model endpoints that read less than the host would send.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub small_contexts: Vec<SmallContext>,
}

/// The header of each answer with the time zone of the host, an IANA name.
pub const ZONE_HEADER: &str = "ironclaw-zone";

/// The daemon.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HostStatus {
    /// Package version.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// Absolute path of the home.
    pub home: String,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// Contract fingerprint, 64 hex characters.
    pub fingerprint: String,
    /// Process id of the launcher.
    pub launcher_pid: u32,
    /// Number of entries in the ledger.
    pub ledger_entries: u64,
    /// Lowered guards and other warnings; empty if there are none.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The time zone of prompts, schedules and lists; an IANA name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// The reason why that zone is not sure; absent if the machine or the settings name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_doubt: Option<String>,
}

/// The answer of `POST /v1/stop`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Stopping {
    /// Always true: the host will end.
    pub stopping: bool,
}

/// `POST /v1/agents`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewAgent {
    /// 1–32 characters of `a-z 0-9 -`, starting with a letter.
    pub name: String,
    /// Name of the model endpoint; absent: the agent follows the default of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The text that tells the agent about itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<String>,
    /// Names of the tools that it may call; absent: the workspace tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled_tools: Option<Vec<String>>,
}

/// An agent of the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Agent {
    /// `agt_…`.
    pub id: AgentId,
    /// Its name.
    pub name: String,
    /// Name of its model endpoint.
    pub model: String,
    /// True if it switches to another endpoint when that becomes the default.
    #[serde(default)]
    pub follows_default: bool,
    /// The text that tells it about itself.
    pub persona: String,
    /// The tools that it may call.
    pub enabled_tools: Vec<String>,
    /// The built-in tools about whose calls people are always asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub always_asked: Vec<String>,
    /// The time of its creation, RFC 3339.
    pub created_at: String,
    /// The number of its sessions.
    pub sessions: u64,
    /// The people who may talk to it.
    #[serde(default = "everyone")]
    pub access: Access,
    /// People with a role at it. Only people who may decide about the agent get this field and those below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<AgentMember>,
    /// Directories of the host in its jail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<AgentMount>,
    /// Software in its jail, if there is any for this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages: Option<AgentPackages>,
    /// The channels to which it is connected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wirings: Vec<AgentWiring>,
    /// The tools of MCP servers that it may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<AgentMcp>,
    /// Everything else that it can do; `GET /v1/agents/{agent}` alone has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abilities: Option<AgentAbilities>,
}

/// Returns the default for the answer of an older host, which lacks the field.
const fn everyone() -> Access {
    Access::Everyone
}

/// `POST /v1/agents/{agent}/mode`, and its answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AgentMode {
    /// `enforce dangerous_warn dangerous_off`.
    pub mode: String,
}

/// `POST /v1/agents/{agent}/messages?wait_ms=N`; waits up to N ms for the answer.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewMessage {
    /// The text that the person typed.
    pub text: String,
    /// Files of the message; each is a span with an author of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<MessageFile>,
    /// The client's own id of this message. A second request with the same id is the same message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// The identity of the caller that sends it: `channel:id`, or the name or id of the caller. Default: the caller's own.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub speak_as: Option<String>,
    /// The name of the conversation of the person with the agent: 1–64 characters of `a-z 0-9 - _ .`; default: the one without a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Texts of others that the person quotes or forwards; each is a span that asks for nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quoted: Vec<String>,
    /// The classes of calls that the person asks for: `read`, `write`, `send`, `exec`, `trade`, as the whole scope; or each with `+` in
    /// front, to add them to what the text asks for. Empty: the text says so, or a lexicon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// True if the person may not have typed the text, such as one from a pipe. Then no value in it counts as typed, and without `allow`
    /// it asks for reading alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untyped: bool,
}

/// A file of a message: a text, or bytes that the host puts into the directory `inbox` of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MessageFile {
    /// Its name, without a directory.
    pub name: String,
    /// Its text, UTF-8. For an image, the note about it. Absent if it has `data`.
    #[serde(default)]
    pub text: String,
    /// The image in the workspace that the text is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<MessageImage>,
    /// Its bytes in base64, at most 1 MiB decoded, in place of `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The media type that its sender declares for `data`. A content of another type is refused.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

/// The answer for a recorded message.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Recorded {
    /// `msg_…`.
    pub message_id: MessageId,
    /// `ses_…`.
    pub session_id: SessionId,
    /// The message as `GET /v1/messages/{id}` returns it, for a request that waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<MessageView>>,
}

/// `GET /v1/messages/{id}?wait_ms=N`: the status of a message; waits up to N ms for its answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MessageView {
    /// `msg_…`.
    pub message_id: MessageId,
    /// `ses_…`.
    pub session_id: SessionId,
    /// `trn_…` once a turn answers it.
    pub turn_id: Option<TurnId>,
    /// Its status.
    pub status: MessageStatus,
    /// The answer, once delivered.
    pub reply: Option<String>,
    /// True if the host wrote the answer (a notice) and not the model.
    #[serde(default)]
    pub notice: bool,
    /// Receipt of the delivery.
    pub receipt: Receipt,
    /// The reason why there is no answer yet, if it is known (parked, quarantined, …).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The calls of its turn, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<MessageCall>,
    /// The form of the answer on a terminal.
    #[serde(flatten, default)]
    pub shown: ShownReply,
    /// What the answer rests on; only with `sources=true`, and in `why`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Box<Sources>>,
}

ironclaw_contract::words! {
    /// The outcome of a stage.
    pub enum StageOutcome {
        Done = "done",
        /// It was refused or withdrawn.
        Refused = "refused",
        /// Its effect may have happened.
        Unknown = "unknown",
        Failed = "failed",
        /// Its message waits for its delivery.
        Queued = "queued",
    }
}

/// One stage in the life of a message: a line of `why`, and an event of `GET /v1/messages/{id}/events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Stage {
    /// Ledger sequence number.
    pub seq: u64,
    /// RFC 3339, milliseconds.
    pub at: String,
    /// The event, e.g. `message.recorded`.
    pub stage: String,
    /// Its outcome.
    pub outcome: StageOutcome,
    /// A reason or a detail; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// `GET /v1/messages/{id}/why`; the id `last` means the newest message of the caller.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Why {
    /// Its present status.
    pub message: MessageView,
    /// Its stages, oldest first.
    pub stages: Vec<Stage>,
    /// Statements of the agent's own process about its progress, without authority.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<String>,
    /// The failure of the last request to a model, if it is the reason why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ModelFailure>,
    /// The words of the endpoints that gave no answer in its turn, newest first; for owners and admins only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<EndpointWords>,
    /// The occurrence of a schedule that sent the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurrence: Option<OccurrenceOf>,
    /// The messages of its chain between agents, in order; empty if no agent sent one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<ChainLink>,
    /// True if the answer is, or ends with, a call of a tool that the model wrote as text; nothing ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_written_call: bool,
    /// A summary in one sentence.
    pub summary: String,
}
