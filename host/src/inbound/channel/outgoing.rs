//! What each kind of channel sends, and what can become of it.
//!
//! The words of an outcome are the host's own. See [`crate::outbound::dispatch`].

use serde::Serialize;
use std::time::Duration;

/// One delivery or test, as the other side gets it.
#[derive(Debug, Serialize)]
pub struct Body<'a> {
    /// `reply` is an agent's, `notice` the host's own, `test` an operator's.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// `dlv_…`, the id under which it is sent: what comes again under it is the same delivery.
    pub delivery: &'a str,
    /// The recipient, as it was named to us.
    pub sender: &'a str,
    /// Thread of the message.
    pub thread: &'a str,
    /// The messages that it answers, `msg_…`.
    pub message_ids: &'a [String],
    /// The words.
    pub text: &'a str,
}

/// Result of one attempt. The words are the host's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The other side said that it has it.
    Received,
    /// It certainly has it not, and may take it later; not before so many seconds, where it said so.
    Later(String, Option<Duration>),
    /// It may have it or not.
    Unknown(String),
    /// It certainly has it not, and will not take it.
    Refused(String),
}

/// How often a delivery is tried.
#[derive(Debug, Clone, Copy)]
pub struct Attempts {
    /// Attempts of one delivery; after the last it is dead.
    pub most: u32,
    /// Wait before the second attempt; four times as long before each further one, up to six hours.
    pub backoff_ms: u64,
}
