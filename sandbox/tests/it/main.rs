//! The sandbox as its host sees it: the handshake, turns, and the program itself.

// In these tests the test is the host.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, missing_docs)]

mod handshake;
mod host;
mod program;
mod turns;
