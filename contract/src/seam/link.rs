//! The link: one socketpair between host and sandbox. First the handshake, then single bytes as bells.
//!
//! Carries the session key once, and never a message. See [`crate::seam::socket`].

use crate::ids::SessionId;
use serde::{Deserialize, Serialize};

/// Descriptor of the link in a new process.
pub const LINK_FD: i32 = 3;

/// Descriptor of the gate in a new process. The process writes one byte when it is loaded, and reads one byte when its root is
/// in place.
pub const GATE_FD: i32 = 4;

/// Prefix of the argument for a granted directory; its path in the jail follows. The host gives a sandbox no other argument.
/// The mount decides whether the directory is writable.
pub const GRANTED_ARGUMENT: &str = "--granted=";

/// Exit code of a sandbox whose runner was lost; all processes that its commands started end with it.
pub const RUNNER_LOST_CODE: u8 = 3;

/// The bell, in both directions: the receiver looks at its queue.
pub const BELL: u8 = b'!';

/// Paths inside the jail.
pub mod path {
    /// Directory of the inbound queue, read-only.
    pub const IN: &str = "/in";
    /// Directory of the outbound queue.
    pub const OUT: &str = "/out";
    /// The agent's files.
    pub const WORKSPACE: &str = "/workspace";
    /// The skills of the agent, read-only; absent without one.
    pub const SKILLS: &str = "/skills";
    /// Directory of the sockets, read-only.
    pub const RUN: &str = "/run";
    /// Name of the inbound queue in [`IN`].
    pub const INBOUND_DB: &str = "inbound.db";
    /// Name of the outbound queue in [`OUT`].
    pub const OUTBOUND_DB: &str = "outbound.db";
    /// Name of the model socket in [`RUN`].
    pub const MODEL_SOCK: &str = "model.sock";
}

/// The first frame, from the sandbox, after it has restricted itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The [`crate::seam::fingerprint`] of its build.
    pub fingerprint: String,
    /// The version of its package.
    pub version: String,
}

/// The second frame, from the host, once. It does not print and does not clone, because it carries the key.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Welcome {
    /// The session.
    pub session: SessionId,
    /// The session key, 64 hex characters.
    pub key: String,
    /// Bounds of a turn.
    pub turn: TurnLimits,
    /// Name of the point at which the sandbox kills itself; in test builds only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failpoint: Option<String>,
}

/// Bounds of a turn for the sandbox; the host enforces its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnLimits {
    /// Requests to the model.
    pub model_calls_max: u32,
    /// Tool calls.
    pub tool_calls_max: u32,
    /// Bytes of all results together.
    pub result_bytes_max: u64,
    /// Bytes of all bodies that one request to the model names.
    pub context_bytes_max: u64,
}

/// The last frame, from a sandbox that cannot continue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fatal {
    /// The reason in a sentence, without content of messages.
    pub fatal: String,
}

/// A frame from the sandbox before the bells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FromSandbox {
    /// The sandbox is ready for its key.
    Hello(Hello),
    /// The sandbox cannot continue.
    Fatal(Fatal),
}
