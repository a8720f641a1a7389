//! The rows of messages, in the forms in which they are read and inserted.
//!
//! Has no SQL: see [`super`].

use super::Kind;
use crate::rows::rows;
use ironclaw_contract::ids::{MessageId, PersonId, SessionId, TurnId};
use ironclaw_contract::seam::message::Status;
use ironclaw_judge::Principal;

rows! {
    #[derive(Debug, Clone)]
    pub struct Message {
        pub id: MessageId,
        pub session: SessionId = "session_id",
        /// Its number.
        pub seq: u64,
        /// `chat task webhook system`.
        pub kind: Kind,
        pub status: Status,
        /// True if it asks for a turn.
        pub trigger: bool,
        /// Its sender on the channel.
        pub sender: String,
        /// The id of its principal.
        pub principal: String,
        pub channel: String,
        /// Milliseconds since the epoch.
        pub received_at: i64,
        /// The current or last turn that answers it.
        pub turn: Option<TurnId> = "turn_id",
    }
}

impl Message {
    /// Returns whether it waits for an answer: in the queue, or in a turn.
    pub const fn waits_for_an_answer(&self) -> bool {
        matches!(self.status, Status::Queued | Status::Processing)
    }

    /// Returns whether this person is its principal.
    pub fn is_of(&self, person: PersonId) -> bool {
        self.principal.parse::<PersonId>().is_ok_and(|principal| principal == person)
    }
}

/// A message of a person to insert; it waits for its first turn.
#[derive(Debug, Clone, Copy)]
pub struct NewMessage<'a> {
    pub id: MessageId,
    pub session: SessionId,
    /// Its number.
    pub seq: u64,
    /// `chat task webhook system`.
    pub kind: Kind,
    /// True if it asks for a turn.
    pub trigger: bool,
    /// True if it mentions the agent and asks for a turn for that.
    pub mentions: bool,
    /// The group and the thread of its reply; `None` if the reply goes to the origin of the session.
    pub reply_to: Option<(&'a str, &'a str)>,
    /// Its sender on the channel.
    pub sender: &'a str,
    /// The person on whose behalf it asks.
    pub principal: PersonId,
    pub principal_kind: Principal,
    pub channel: &'a str,
    /// The platform's id of its event.
    pub event: Option<&'a str>,
    /// Bytes of its body.
    pub bytes: usize,
}

rows! {
    /// A message that waits for a turn.
    #[derive(Debug, Clone)]
    pub struct Waiting {
        pub id: MessageId,
        /// Its number.
        pub seq: u64,
        /// The id of its principal.
        pub principal: String,
        pub principal_kind: Principal as word,
        /// True if it asks for a turn.
        pub trigger: bool,
        /// Turns with this message that ended without an answer.
        pub attempts: u32,
        /// True if it answers a question.
        pub is_answer: bool,
        /// The address of its reply, in a form to compare; `None` for the origin of the session.
        pub reply_to: Option<String>,
    }

    /// A message and its session.
    #[derive(Debug, Clone, Copy)]
    pub struct InSession {
        pub message: MessageId = "id",
        pub session: SessionId = "session_id",
    }

    /// The position of a message among the items of its conversation.
    #[derive(Debug, Clone, Copy)]
    pub struct MessagePosition {
        /// The ordinal of the turn that showed it first.
        pub ordinal: i64 = "first_ordinal",
        /// The last number of its session at the time of a retry.
        pub moved_seq: Option<u64>,
    }
}
