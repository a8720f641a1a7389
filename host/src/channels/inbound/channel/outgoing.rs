//! The data that each kind of channel sends, and the possible outcomes.
//!
//! Never repeats words of the other side in an outcome. See [`crate::channels::outbound::dispatch`].

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ironclaw_operator::SentFile;
use serde::Serialize;
use std::time::Duration;

/// The body of one delivery or test.
#[derive(Debug, Serialize)]
pub struct Body<'a> {
    /// `reply` is from an agent, `message` from an agent that sends by itself, `notice` from the host, `notification` from the host to a
    /// person, `test` from an operator.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// `dlv_…`, the id of the delivery: a second body under the same id is the same delivery.
    pub delivery: &'a str,
    /// The recipient's id, unchanged from the inbound message.
    pub sender: &'a str,
    /// The group of the message; absent outside of one. Then the reply is for the group, and `sender` is the author of the message.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub group: &'a str,
    /// Thread of the message.
    pub thread: &'a str,
    /// The answered messages, `msg_…`.
    pub message_ids: &'a [String],
    pub text: &'a str,
    /// Files that an agent sends with it.
    #[serde(skip_serializing_if = "<[File]>::is_empty")]
    pub files: &'a [File],
}

/// A file of a delivery, with its bytes.
#[derive(Debug, Serialize)]
pub struct File {
    #[serde(flatten)]
    file: SentFile,
    data: String,
}

impl File {
    pub fn new(file: SentFile, content: &[u8]) -> Self {
        Self { file, data: STANDARD.encode(content) }
    }
}

/// Result of one attempt. The strings are the host's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The other side confirmed receipt.
    Received,
    /// The other side certainly does not have the delivery, and may take it later; the duration is the wait that it asked for.
    Later(String, Option<Duration>),
    /// It is unknown whether the other side has the delivery.
    Unknown(String),
    /// The other side certainly does not have the delivery, and will not take it.
    Refused(String),
}
