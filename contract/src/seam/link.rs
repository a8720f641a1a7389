//! The link: one socketpair between host and sandbox. First the handshake, then one byte at a time as a bell.
//!
//! Carries the session key once and nothing else of value; never a message. Next: `socket`.

use crate::ids::SessionId;
use serde::{Deserialize, Serialize};

/// Descriptor of the link in a new process.
pub const LINK_FD: i32 = 3;

/// Descriptor of the gate in a new process: it writes one byte when it is loaded, and reads one when its root has been put in place.
pub const GATE_FD: i32 = 4;

/// An argument of the program for each directory that a person granted, with its place in the jail behind it: the only ones
/// that the host ever gives. Whether it can be written, the mount says.
pub const GRANTED_ARGUMENT: &str = "--granted=";

/// Exit code of a sandbox that has nobody any more to run commands: whatever they started ends with it.
pub const RUNNER_LOST_CODE: u8 = 3;

/// The bell, in both directions: "look at your queue".
pub const BELL: u8 = b'!';

/// Where things lie inside the jail.
pub mod path {
    /// Directory of the inbound queue, read-only.
    pub const IN: &str = "/in";
    /// Directory of the outbound queue.
    pub const OUT: &str = "/out";
    /// The agent's files.
    pub const WORKSPACE: &str = "/workspace";
    /// Directory of the sockets, read-only.
    pub const RUN: &str = "/run";
    /// Name of a queue file in [`IN`].
    pub const INBOUND_DB: &str = "inbound.db";
    /// Name of a queue file in [`OUT`].
    pub const OUTBOUND_DB: &str = "outbound.db";
    /// Name of the model socket in [`RUN`].
    pub const MODEL_SOCK: &str = "model.sock";
}

/// First frame, from the sandbox, after it has locked itself down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`crate::seam::fingerprint`] of its build.
    pub fingerprint: String,
    /// Version of its package.
    pub version: String,
}

/// Second frame, from the host, once. Not printable and not cloneable: it carries the key.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Welcome {
    /// The session.
    pub session: SessionId,
    /// The session key, 64 hex characters.
    pub key: String,
    /// Bounds of a turn.
    pub turn: TurnLimits,
    /// Name of the point at which to die; in test builds only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failpoint: Option<String>,
}

/// Bounds of a turn as the sandbox is told them; the host enforces its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnLimits {
    /// Requests to the model.
    pub model_calls_max: u32,
    /// Tool calls.
    pub tool_calls_max: u32,
    /// Bytes of all results together.
    pub result_bytes_max: u64,
    /// Bytes of bodies that one request to the model may name.
    pub context_bytes_max: u64,
}

/// Last frame, from a sandbox that cannot go on: the reason in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fatal {
    /// Why, without content.
    pub fatal: String,
}

/// What a sandbox may write before the bells: one of the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FromSandbox {
    /// It is ready for its key.
    Hello(Hello),
    /// It cannot go on.
    Fatal(Fatal),
}
