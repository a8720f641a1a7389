//! The client side of the Model Context Protocol: one connection to one server, its list of tools, and calls.
//!
//! Never offers sampling, roots or elicitation, never sends a call twice, never follows a redirect, and never resumes a stream. Only
//! `protocol` names the types of `rmcp`. See [`Client`].

#![forbid(unsafe_code)]
// The crates of this workspace alone read this one, so only what a name does not say is documented.
#![allow(missing_docs)]

mod answer;
mod client;
mod error;
mod http;
mod limits;
mod listing;
mod message;
mod progress;
mod protocol;
mod server;
mod streams;
mod traffic;
mod wire;

pub use answer::{Answer, Asked, NotAnswered, Output};
pub use client::Client;
pub use error::Error;
pub use limits::{CallLimits, Limits};
pub use listing::{Cut, ListedTool, Listing};
pub use progress::Progress;
pub use server::{Era, ServerInfo};
