//! The bounds on a connection and on one call.
//!
//! Never read from a file here. See [`crate::Client`].

use crate::server::Era;
use std::time::Duration;

/// The bounds on one connection.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Tools of one listing.
    pub tools_max: usize,
    /// Bytes of JSON of all pages of one listing.
    pub listing_bytes_max: usize,
    /// Bytes of one message of the server. Over HTTP: bytes of one whole answer, with all messages before it. Over streams, the
    /// connection also ends after four times as many bytes of other messages between two requests.
    pub answer_bytes_max: usize,
    /// Time until the server is ready for calls.
    pub begin: Duration,
    /// Time for a whole listing.
    pub whole: Duration,
    /// The era to speak. `None` asks the server: first stateless, then a session after a refusal or 10 seconds of silence. A server that
    /// ends at the first question needs `Some(Era::Session)` and a new connection.
    pub era: Option<Era>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tools_max: 300,
            listing_bytes_max: 2 << 20,
            answer_bytes_max: 4 << 20,
            begin: Duration::from_secs(30),
            whole: Duration::from_secs(30),
            era: None,
        }
    }
}

/// The bounds on one call.
#[derive(Debug, Clone)]
pub struct CallLimits {
    /// Bytes of JSON of the arguments.
    pub argument_bytes_max: usize,
    /// Bytes of JSON of the result. The bound of the connection holds too.
    pub answer_bytes_max: usize,
    /// Time until the result.
    pub whole: Duration,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self { argument_bytes_max: 1 << 20, answer_bytes_max: 1 << 20, whole: Duration::from_secs(60) }
    }
}
