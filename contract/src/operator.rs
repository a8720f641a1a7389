//! The shapes of the operator's API, shared by the host and `ironctl`.
//!
//! Plain data without behaviour: nothing here decides anything, and nothing here reaches a sandbox. `host/src/api.rs` serves
//! them, `ironctl/src/client.rs` asks for them.

mod agents;
mod audit;
mod changes;
mod channels;
mod denial;
mod ledger_event;
mod memory;
mod model;
mod people;
mod proof;
mod secret;
mod stops;
mod tokens;
mod transcript;
mod usage;
mod watching;

pub use agents::*;
pub use audit::*;
pub use changes::*;
pub use channels::*;
pub use denial::*;
pub use ledger_event::*;
pub use memory::*;
pub use model::*;
pub use people::*;
pub use proof::*;
pub use secret::*;
pub use stops::*;
pub use tokens::*;
pub use transcript::*;
pub use usage::*;
pub use watching::*;

use crate::ids::{AgentId, MessageId, SessionId, TurnId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The first part of every path of the API.
pub const API_VERSION: &str = "v1";

/// File in the home that tells where a running host listens; written at start, removed at stop.
pub const RUN_FILE: &str = "run.json";

/// File in the home that the one host that runs there holds locked, as it does the home itself.
pub const LOCK_FILE: &str = "host.lock";

/// File in the home that holds the owner's token, mode 0600.
pub const OWNER_TOKEN_FILE: &str = "owner.token";

/// File below the home that the host logs to.
pub const LOG_FILE: &str = "logs/host.log";

/// Exit codes that every binary keeps to.
pub mod exit {
    /// Done.
    pub const DONE: u8 = 0;
    /// Refused, or failed.
    pub const FAILED: u8 = 1;
    /// The command line was wrong.
    pub const USAGE: u8 = 2;
    /// No host answers.
    pub const UNREACHABLE: u8 = 3;
}

/// Where a running host listens: the contents of [`RUN_FILE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Run {
    /// Process id of the host.
    pub pid: u32,
    /// Absolute path of the API's unix socket.
    pub socket: String,
    /// Version of the host.
    pub version: String,
    /// The loopback port, e.g. `127.0.0.1:8787`, when one is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
}

/// An answer that says no: the body of every non-2xx response, and what `--json` prints on stderr.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Failure {
    /// The failure itself.
    pub error: FailureBody,
}

/// What went wrong, for people and for scripts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailureBody {
    /// Stable word for scripts, snake_case: a [`DenialCode`] of the host, or a code of `ironctl` itself.
    #[cfg_attr(feature = "schema", schema(value_type = DenialCode))]
    pub code: String,
    /// A sentence that names the thing.
    pub message: String,
    /// What to do about it; empty when there is nothing to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
}

impl Failure {
    /// Makes a failure with a code, a sentence and a hint (may be empty).
    pub fn new(code: impl AsRef<str>, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { error: FailureBody { code: code.as_ref().to_owned(), message: message.into(), hint: hint.into() } }
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
    /// That everything is stopped, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// How full it is.
    #[serde(default)]
    pub places: Places,
    /// Changes that wait for a person.
    #[serde(default)]
    pub changes_waiting: u64,
}

/// The daemon as it sees itself.
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
    /// What is lowered or worth a look; empty when all is well.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// What `POST /v1/stop` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Stopping {
    /// Always true: the host will end.
    pub stopping: bool,
}

/// One session as the host and the kernel see it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionStatus {
    /// `ses_…`.
    pub id: SessionId,
    /// Name of the agent.
    pub agent: String,
    /// `asleep waiting starting awake stopping parked quarantined`.
    pub state: String,
    /// Why it is parked or quarantined, or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `enforce dangerous_warn dangerous_off`.
    pub mode: String,
    /// Channel and address, e.g. `loopback:per_…`.
    pub origin: String,
    /// Messages that wait or are being worked on.
    pub waiting: u64,
    /// Process id of the sandbox (outside its namespace) when awake.
    pub pid: Option<u32>,
    /// What the kernel reports of the sandbox; null when asleep.
    pub jail: Option<JailReport>,
    /// The jailed process that reads its outbound queue; null when asleep.
    pub reader: Option<ReaderStatus>,
}

/// The reader of an awake session.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReaderStatus {
    /// Process id outside its namespace.
    pub pid: u32,
    /// What the kernel reports of it.
    pub jail: JailReport,
}

/// What the kernel reports about a jailed process, read from `/proc` and not from what was intended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JailReport {
    /// Namespace kind (`user mnt pid net ipc uts cgroup`) to its inode number, e.g. `4026532281`.
    pub namespaces: BTreeMap<String, u64>,
    /// Namespace kinds in which the process differs from the host.
    pub own_namespaces: Vec<String>,
    /// Seccomp mode: 0 none, 1 strict, 2 filter.
    pub seccomp: u32,
    /// Number of seccomp filters.
    pub seccomp_filters: u32,
    /// Capability sets (`inheritable permitted effective bounding ambient`) as 16 hex digits.
    pub capabilities: BTreeMap<String, String>,
    /// Whether `no_new_privs` is set.
    pub no_new_privs: bool,
    /// Whether a Landlock domain was installed by the launcher (the kernel does not show it; the launcher does it before exec).
    pub landlock: bool,
    /// The Landlock ABI of the running kernel; 0 when there is none.
    pub landlock_abi: u32,
    /// Network interfaces of its network namespace with their state, e.g. `lo down`.
    pub interfaces: Vec<String>,
    /// User id outside its namespace.
    pub uid: u32,
    /// Group id outside its namespace.
    pub gid: u32,
    /// Names in its root directory.
    pub root: Vec<String>,
    /// Mount points of its mount namespace, e.g. `/in ro`.
    pub mounts: Vec<String>,
}

impl JailReport {
    /// Returns whether every capability set is empty.
    pub fn no_capabilities(&self) -> bool {
        !self.capabilities.is_empty() && self.capabilities.values().all(|set| set.bytes().all(|b| b == b'0'))
    }
}

/// One thing that the machine has to offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Check {
    /// What was looked at, e.g. `user namespaces`.
    pub name: String,
    /// Whether it is there.
    pub ok: bool,
    /// What was found, in a sentence.
    pub found: String,
    /// The exact thing to do when it is not; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

/// What `ironclaw-host preflight --json` prints.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Preflight {
    /// Whether an agent can be launched here.
    pub ok: bool,
    /// Each check, in order.
    pub checks: Vec<Check>,
}

/// `POST /v1/agents`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewAgent {
    /// 1–32 characters of `a-z 0-9 -`, starting with a letter.
    pub name: String,
    /// Name of the model endpoint; without one, whatever is the default, also later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What the agent is told about itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<String>,
    /// Names of the tools that it may call; default the workspace tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled_tools: Option<Vec<String>>,
}

/// An agent as the registry knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Agent {
    /// `agt_…`.
    pub id: AgentId,
    /// Its name.
    pub name: String,
    /// Name of its model endpoint.
    pub model: String,
    /// Whether it goes over to another endpoint when that becomes the default.
    #[serde(default)]
    pub follows_default: bool,
    /// What it is told about itself.
    pub persona: String,
    /// The tools that it may call.
    pub enabled_tools: Vec<String>,
    /// When it was made, RFC 3339.
    pub created_at: String,
    /// How many sessions it has.
    pub sessions: u64,
    /// `everyone members`: who may talk to it.
    #[serde(default = "everyone")]
    pub access: String,
    /// Who has a role of it. This and what follows is told to whoever decides about the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<AgentMember>,
    /// Directories of the host in its jail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<AgentMount>,
    /// Software in its jail, if it has any of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages: Option<AgentPackages>,
    /// The channels that it hears.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wirings: Vec<AgentWiring>,
    /// Tools of MCP servers that it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<AgentMcp>,
}

/// Returns the default for a host from before there was a choice.
fn everyone() -> String {
    "everyone".to_owned()
}

/// `POST /v1/agents/{agent}/mode`, and its answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AgentMode {
    /// `enforce dangerous_warn dangerous_off`.
    pub mode: String,
}

/// `POST /v1/agents/{agent}/messages`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewMessage {
    /// What the person typed.
    pub text: String,
    /// Files that go with it, each a span of its own author.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<MessageFile>,
    /// The client's own id of this message: a second post with the same one is the same message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// Which of the caller's own identities speaks: `channel:id`, or the caller's name or id. Default: the caller's own.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub speak_as: Option<String>,
    /// Which of the person's conversations with the agent: 1–64 characters of `a-z 0-9 - _ .`; default the one without a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

/// A text file that goes with a message.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MessageFile {
    /// Its name, without a directory.
    pub name: String,
    /// Its text, UTF-8.
    pub text: String,
}

/// A message was recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Recorded {
    /// `msg_…`.
    pub message_id: MessageId,
    /// `ses_…`.
    pub session_id: SessionId,
}

/// `GET /v1/messages/{id}?wait_ms=N`: where a message stands; waits up to N ms for its answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MessageView {
    /// `msg_…`.
    pub message_id: MessageId,
    /// `ses_…`.
    pub session_id: SessionId,
    /// `trn_…` once a turn answers it.
    pub turn_id: Option<TurnId>,
    /// `queued processing completed delivered`.
    pub status: String,
    /// The answer, once delivered.
    pub reply: Option<String>,
    /// Whether the answer was written by the host (a notice) and not by the model.
    #[serde(default)]
    pub notice: bool,
    /// Receipt of the delivery: `pending sent received unknown dead dropped`.
    pub receipt: String,
    /// Why there is no answer yet, when that is known (parked, quarantined, …).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One stage in the life of a message: a line of `why`, and an event of `GET /v1/messages/{id}/events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Stage {
    /// Ledger sequence number.
    pub seq: u64,
    /// RFC 3339, milliseconds.
    pub at: String,
    /// What happened, e.g. `message.recorded`.
    pub stage: String,
    /// `done refused unknown`.
    pub outcome: String,
    /// Why, or with what; empty when the stage says it all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// `GET /v1/messages/{id}/why` (`last` for the newest of the caller).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Why {
    /// Where it stands now.
    pub message: MessageView,
    /// Its stages, oldest first.
    pub stages: Vec<Stage>,
    /// What the agent's own process says of its progress; its word, without authority.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<String>,
    /// Why the last request to a model came to nothing, if that is why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ModelFailure>,
    /// One sentence that sums it up.
    pub summary: String,
}

/// Why a request to a model came to nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ModelFailure {
    /// A stable word: `late`, `unreachable`, `key_refused`, `budget` …
    pub code: String,
    /// What happened and what can be done about it, in the host's words.
    pub message: String,
}

/// One line of a conversation: `GET /v1/agents/{agent}/history?limit=N`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HistoryLine {
    /// RFC 3339.
    pub at: String,
    /// `person agent host`.
    pub author: String,
    /// What was said.
    pub text: String,
}

/// One session in a list: `GET /v1/sessions`; `GET /v1/sessions/{id}`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Session {
    /// As in the status.
    #[serde(flatten)]
    pub status: SessionStatus,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339, of the last message or launch.
    pub last_active_at: String,
    /// How many sealed items it has.
    pub items: u64,
    /// The open turn, if any.
    pub turn_id: Option<TurnId>,
    /// Launches that failed in a row.
    pub failures: u32,
}

/// One entry of the ledger, as exported: one JSON object a line, with `data` as its canonical bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LedgerLine {
    /// Position, from 0, without gaps.
    pub seq: u64,
    /// `GENESIS BOOT CLAIM VERIFY RETRACT META`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The entry's data, parsed.
    pub data: serde_json::Value,
    /// SHA-256, 64 lower-case hex characters.
    pub hash: String,
    /// The canonical bytes of `data` that were hashed.
    pub canonical: String,
}
