//! Tests of the sandbox from the side of its host: the handshake, turns, and the program itself.

// In these tests, the test acts as the host.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, missing_docs)]

mod handshake;
mod host;
mod program;
mod turns;
