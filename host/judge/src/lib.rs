//! The judgement of tool calls: classes, scopes of requests, grants of hosts, manifests of tools, provenance, and the stages of one
//! judgement.
//!
//! Pure: never reads a clock, a file, the database or the network, and never runs a call. See [`scope`] and [`egress`].

#![forbid(unsafe_code)]
// The crates of this workspace alone read this one, so only what a name does not say is documented.
#![allow(missing_docs)]

pub mod call;
pub mod class;
pub mod egress;
pub mod inputs;
pub mod manifest;
pub mod place;
pub mod principal;
pub mod provenance;
pub mod scope;

pub use class::{Class, Classes};
pub use principal::{Allowed, OwnAllowed, OwnReceiver, Principal, ReceiverPolicy};
