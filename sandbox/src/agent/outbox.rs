//! The rows that the agent appends to its outbound queue: one for each call that the host acts on, and one that ends a turn.
//!
//! A row names what the host recorded, and has no text. See [`crate::agent::turn`].

use ironclaw_contract::canonical;
use ironclaw_contract::ids::CallId;
use ironclaw_contract::seam::crypt::Error;
use ironclaw_contract::seam::inbound::Turn;
use ironclaw_contract::seam::message::Status;
use ironclaw_contract::seam::outbound::{Content, NewRow, Note, OutboundWriter};

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
    pub(super) fn answer(&mut self, turn: &Turn, content: &Content) -> Result<(), Error> {
        self.append(turn, content, Status::Completed)?;
        #[cfg(feature = "failpoints")]
        if self.failpoint.as_deref() == Some("outbound_commit") {
            // A signal that cannot be caught is the closest imitation of a power cut; if it fails, the test does.
            let _ = nix::sys::signal::kill(nix::unistd::getpid(), nix::sys::signal::Signal::SIGKILL);
        }
        Ok(())
    }

    /// Names a recorded call, for the host to act on. The row also records the work.
    pub(super) fn call(&mut self, turn: &Turn, call: CallId) -> Result<(), Error> {
        self.append(turn, &Content::Call(call), Status::Processing)
    }

    /// Records that a turn needs more than one output. This is a durable commit, so it happens once a turn and only if necessary.
    pub(super) fn record_work(&mut self, turn: &Turn) -> Result<(), Error> {
        note(turn, Status::Processing).map_or(Ok(()), |note| self.queue.note(&note))
    }

    fn append(&mut self, turn: &Turn, content: &Content, status: Status) -> Result<(), Error> {
        let row = NewRow { turn: turn.turn, content: canonical::to_string(content), note: note(turn, status) };
        self.queue.append(&row, turn.cursor).map(drop)
    }
}

fn note(turn: &Turn, status: Status) -> Option<Note> {
    turn.messages.last().map(|message| Note { message: *message, status, at: now_ms() })
}

/// Returns the time by the clock of this process, in milliseconds since the epoch, without authority.
pub(super) fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
