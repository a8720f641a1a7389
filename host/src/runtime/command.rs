//! What an actor can be asked, and what it shows of itself.
//!
//! Decides nothing. Next: `runtime::actor`.

use crate::refusal::Refusal;
use crate::registry::Person;
use ironclaw_contract::ids::{MessageId, PersonId, TurnId};
use ironclaw_contract::operator::Proof;
use ironclaw_contract::seam::outbound::Progress;
use ironclaw_jail::launcher::Process;
use ironclaw_jail::shortage::Shortage;
use tokio::sync::oneshot;

/// What an actor is asked.
pub enum Command {
    /// Look at your work, and at what is intended and not sent: it may have been held back while everything was stopped.
    Wake,
    /// Sleep now; an open turn is closed and its messages wait for the next wake.
    Stop(PersonId, oneshot::Sender<()>),
    /// End the open turn, or the one that would be next, with a notice.
    Cancel(Person, oneshot::Sender<Result<Cancelled, Refusal>>),
    /// The daemon stops: let an open turn end, then sleep and end.
    Shutdown(oneshot::Sender<()>),
    /// Leave the parked or quarantined state.
    Release(PersonId, oneshot::Sender<Result<(), String>>),
    /// Begin anew once no turn is open: the agent has changed, and only a fresh process sees it.
    Respawn,
    /// Erase the session.
    Remove(PersonId, oneshot::Sender<Result<(), String>>),
    /// Launch the probe under this session's walls.
    Prove(PersonId, oneshot::Sender<Result<Proof, String>>),
}

/// Where an actor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// No process.
    #[default]
    Asleep,
    /// Work, and no place among the awake ones yet.
    Waiting,
    /// Being launched.
    Starting,
    /// Working or waiting for work.
    Awake,
    /// Being put to sleep.
    Stopping,
}

/// What is shown of an actor.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// Where it stands.
    pub phase: Phase,
    /// The sandbox's process.
    pub sandbox: Option<Process>,
    /// The reader's process.
    pub reader: Option<Process>,
    /// What the sandbox says of its progress; without authority.
    pub progress: Vec<Progress>,
    /// What the machine is short of, while the session waits for it.
    pub shortage: Option<Shortage>,
}

/// A turn that was cancelled.
#[derive(Debug, Clone)]
pub struct Cancelled {
    /// The turn.
    pub turn: TurnId,
    /// The messages that it was to answer.
    pub messages: Vec<MessageId>,
    /// Whether it was being worked on, and not still to begin.
    pub running: bool,
}
