//! The report of `doctor --prove` and `POST /v1/sessions/{id}/prove` about a jail.
//!
//! Never judges an attempt: the host does. `host/jail/src/self_test.rs` makes the report.

use serde::{Deserialize, Serialize};

/// The expectation for a resource that a wall bounds on some machines only. On the others the report states that it is not bounded.
pub const BOUNDED_OR_REPORTED: &str = "bounded, or said";

/// One attempt of the probe at an act that a jail must refuse or must allow, or one observation of the jail from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Attempt {
    /// Its group, e.g. `sockets`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The act, e.g. `open a TCP socket`.
    pub name: String,
    /// The expected result, e.g. `refused`.
    pub expected: String,
    /// The observed result, e.g. `EPERM`.
    pub observed: String,
    /// The wall that refused or should have refused, e.g. `seccomp`; empty for an allowed act.
    pub wall: String,
    /// True if the observed result is the expected one.
    pub contained: bool,
}

/// A temporary jail without one wall: the negative control. A self-test that does not notice the missing wall proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Control {
    /// The missing wall, e.g. `seccomp`.
    pub wall: String,
    /// True if at least one attempt noticed.
    pub caught: bool,
    /// The number of attempts that noticed.
    pub noticed: u32,
    /// The names of the first of them, at most five.
    pub by: Vec<String>,
}

/// The answer of `POST /v1/sessions/{id}/prove`, and the output of `doctor --prove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Proof {
    /// All attempts in the jail of the sandbox, in order.
    pub attempts: Vec<Attempt>,
    /// All attempts in a jail of the sandbox that was made ahead, in order.
    #[serde(default)]
    pub stock: Vec<Attempt>,
    /// All attempts in the jail of the reader, in order.
    #[serde(default)]
    pub reader: Vec<Attempt>,
    /// All attempts in the jail of an MCP server, in order; none on a machine that cannot run one.
    #[serde(default)]
    pub server: Vec<Attempt>,
    /// All attempts in the jail of a command that reaches the network, in order; none on a machine that cannot run one.
    #[serde(default)]
    pub commands: Vec<Attempt>,
    /// The negative controls.
    #[serde(default)]
    pub controls: Vec<Control>,
}

impl Proof {
    /// Returns the attempts in all jails.
    pub fn all_attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().chain(&self.stock).chain(&self.reader).chain(&self.server).chain(&self.commands)
    }

    /// Returns the attempts with an unexpected result.
    pub fn breaches(&self) -> impl Iterator<Item = &Attempt> {
        self.all_attempts().filter(|attempt| !attempt.contained)
    }

    /// Returns whether there were negative controls, and all of them were noticed.
    pub fn is_controlled(&self) -> bool {
        !self.controls.is_empty() && self.controls.iter().all(|control| control.caught)
    }
}
