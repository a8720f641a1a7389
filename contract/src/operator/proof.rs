//! Report of `doctor --prove` and `POST /v1/sessions/{id}/prove` about a jail.
//!
//! Holds no judgement: the host decides whether a line came out as it must. See `host/jail/src/self_test.rs`, which makes the report.

use serde::{Deserialize, Serialize};

/// Expectation of a resource that a wall bounds on some machines only: on the others the report says that it is not bounded.
pub const BOUNDED_OR_SAID: &str = "bounded, or said";

/// One attempt of the probe to do what a jail must not allow, or something that it must; or one look at it from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Attempt {
    /// What it belongs to, e.g. `sockets`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// What was tried, e.g. `open a TCP socket`.
    pub name: String,
    /// What ought to happen, e.g. `refused`.
    pub expected: String,
    /// What happened, e.g. `EPERM`.
    pub observed: String,
    /// Which wall held, e.g. `seccomp`, or which one should have; empty for what is allowed.
    pub wall: String,
    /// Whether it came out as expected.
    pub contained: bool,
}

/// A throw-away jail with one wall taken down on purpose: a proof that does not notice it proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Control {
    /// The wall that was missing, e.g. `seccomp`.
    pub wall: String,
    /// Whether at least one attempt noticed.
    pub caught: bool,
    /// How many attempts noticed.
    pub noticed: u32,
    /// The first of them by name, at most five.
    pub by: Vec<String>,
}

/// `POST /v1/sessions/{id}/prove`, and what `doctor --prove` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Proof {
    /// Everything that was tried in the jail of the agent's process, in order.
    pub attempts: Vec<Attempt>,
    /// The same in the jail of the session's reader.
    #[serde(default)]
    pub reader: Vec<Attempt>,
    /// The negative controls.
    #[serde(default)]
    pub controls: Vec<Control>,
}

impl Proof {
    /// Returns every attempt that did not come out as it must, in either jail.
    pub fn breaches(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().chain(&self.reader).filter(|attempt| !attempt.contained)
    }

    /// Returns whether there was a negative control, and every one of them was noticed.
    pub fn is_controlled(&self) -> bool {
        !self.controls.is_empty() && self.controls.iter().all(|control| control.caught)
    }
}
