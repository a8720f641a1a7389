//! The client against the example `mcp_server`, over streams and over HTTP, in both eras.

mod answers;
mod conformance;
mod misbehaviour;
mod published;
mod requests;
mod server;
mod unreadable;
mod well;
