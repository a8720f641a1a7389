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

/// The kind of a command, without what is needed to do it or to answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    Wake,
    Stop,
    Cancel,
    Shutdown,
    Release,
    Respawn,
    Remove,
    Prove,
}

/// A command, as far as `runtime::life` and `runtime::work` look into it.
pub(crate) trait Asks {
    /// Returns what it asks.
    fn ask(&self) -> Ask;
}

impl Asks for Command {
    fn ask(&self) -> Ask {
        match self {
            Self::Wake => Ask::Wake,
            Self::Stop(..) => Ask::Stop,
            Self::Cancel(..) => Ask::Cancel,
            Self::Shutdown(_) => Ask::Shutdown,
            Self::Release(..) => Ask::Release,
            Self::Respawn => Ask::Respawn,
            Self::Remove(..) => Ask::Remove,
            Self::Prove(..) => Ask::Prove,
        }
    }
}

/// The phase of an actor.
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
    /// Its phase.
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

/// A command without a requester, for the tests of what looks no further into one: what it asks, and its number.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Ticket(pub(crate) Ask, pub(crate) usize);

#[cfg(test)]
impl Asks for Ticket {
    fn ask(&self) -> Ask {
        self.0
    }
}

#[cfg(test)]
impl Ticket {
    /// Makes the ticket with this number.
    pub(crate) fn numbered(number: usize) -> Self {
        use Ask::{Cancel, Prove, Release, Remove, Respawn, Shutdown, Stop, Wake};
        let asks = [Wake, Stop, Cancel, Shutdown, Release, Respawn, Remove, Prove];
        Self(asks[number % asks.len()], number)
    }

    /// Returns whether a requester waits for its answer.
    pub(crate) fn is_request(ask: Ask) -> bool {
        !matches!(ask, Ask::Wake | Ask::Respawn)
    }

    /// Counts the commands that want an answer an event or some effects show.
    pub(crate) fn requests(shown: &impl std::fmt::Debug) -> usize {
        let shown = format!("{shown:?}");
        let asks = shown.split("Ticket(").skip(1);
        asks.filter(|rest| !rest.starts_with("Wake") && !rest.starts_with("Respawn")).count()
    }
}
