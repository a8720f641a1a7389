//! The rows that the agent appends to its outbound queue: one for each call, and one that ends a turn.
//!
//! A reply names an output and has no text. Addresses are copied from the routing and decide nothing. See
//! [`crate::agent::turn`].

use ironclaw_contract::canonical;
use ironclaw_contract::ids::{CallId, MessageId, TurnId};
use ironclaw_contract::seam::crypt::Error;
use ironclaw_contract::seam::inbound::{Routing, Turn};
use ironclaw_contract::seam::message::{Kind, Status};
use ironclaw_contract::seam::outbound::{Chat, NewRow, OutboundWriter};

/// Key of the statement that names the turn in work.
const STATE_TURN: &str = "turn";

/// The sandbox's end of the outbound queue.
pub(super) struct Outbox {
    queue: OutboundWriter,
    #[cfg(feature = "failpoints")]
    failpoint: Option<String>,
}

impl Outbox {
    #[cfg_attr(not(feature = "failpoints"), allow(clippy::needless_pass_by_value, unused_variables))]
    pub(super) fn new(queue: OutboundWriter, failpoint: Option<String>) -> Self {
        Self {
            queue,
            #[cfg(feature = "failpoints")]
            failpoint,
        }
    }

    /// Ends a turn with a reply or without one. This row completes its last message.
    pub(super) fn answer(&mut self, turn: &Turn, chat: &Chat, routing: Routing) -> Result<(), Error> {
        let content = canonical::to_string(chat);
        self.append(Kind::Chat, content, turn.turn, turn.messages.last().copied(), None, routing)?;
        #[cfg(feature = "failpoints")]
        if self.failpoint.as_deref() == Some("outbound_commit") {
            // A signal that cannot be caught is the closest imitation of a power cut; if it fails, the test does.
            let _ = nix::sys::signal::kill(nix::unistd::getpid(), nix::sys::signal::Signal::SIGKILL);
        }
        Ok(())
    }

    /// Appends the row of a recorded call, for the host to judge.
    pub(super) fn call(
        &mut self,
        turn: TurnId,
        call: CallId,
        kind: Kind,
        content: String,
        routing: Routing,
    ) -> Result<(), Error> {
        self.append(kind, content, turn, None, Some(call), routing)
    }

    /// Records that a turn needs more than one output. This is a durable commit, so it happens once a turn and only if necessary.
    pub(super) fn record_work(&mut self, turn: &Turn) -> Result<(), Error> {
        let Some(message) = turn.messages.last() else { return Ok(()) };
        let state = turn.turn.to_string();
        self.queue.progress(message, Status::Processing, (STATE_TURN, &state), now_ms())
    }

    fn append(
        &mut self,
        kind: Kind,
        content: String,
        turn: TurnId,
        in_reply_to: Option<MessageId>,
        call_id: Option<CallId>,
        routing: Routing,
    ) -> Result<(), Error> {
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let row = NewRow {
            id: MessageId::new(),
            in_reply_to,
            timestamp: now_ms(),
            kind,
            platform_id: some(routing.platform_id),
            channel_type: some(routing.channel_type),
            thread_id: routing.thread_id,
            content,
            turn,
            call_id,
        };
        self.queue.append(&row, routing.outbound_cursor).map(drop)
    }
}

/// Returns the time by the clock of this process, in milliseconds since the epoch, without authority.
pub(super) fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
