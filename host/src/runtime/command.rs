//! The commands to an actor, and the view of its state.
//!
//! Decides nothing. See [`crate::runtime::actor`].

use crate::registry::Person;
use ironclaw_contract::ids::{MessageId, PersonId, TurnId};
use ironclaw_contract::seam::outbound::Progress;
use ironclaw_jail::launcher::Process;
use ironclaw_jail::shortage::Shortage;
use ironclaw_operator::Proof;
use ironclaw_store::refusal::Refusal;
use tokio::sync::oneshot;

/// A command to an actor.
pub enum Command {
    /// Look for work and for deliveries without a receipt; an emergency stop may have delayed them.
    Wake,
    /// Wake without work if a slot is free and no session waits for one. The reply comes when the session is awake; without it the session
    /// was not waked for this.
    Prepare(oneshot::Sender<()>),
    /// Sleep now; an open turn is closed and its messages wait for the next wake.
    Stop(PersonId, oneshot::Sender<()>),
    /// End the open turn, or else the next one, with a notice.
    Cancel(Person, oneshot::Sender<Result<Cancelled, Refusal>>),
    /// The daemon stops: let an open turn end, then sleep and exit.
    Shutdown(oneshot::Sender<()>),
    /// Leave the parked or quarantined state.
    Release(PersonId, oneshot::Sender<Result<(), String>>),
    /// Restart the sandbox when no turn is open: the agent has changed, and only a new process sees it.
    Respawn,
    Remove(PersonId, oneshot::Sender<Result<(), String>>),
    /// Run the self-test in a jail like this session's.
    Prove(PersonId, oneshot::Sender<Result<Proof, String>>),
}

/// The kind of a command, without its arguments and its reply channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandKind {
    Wake,
    Prepare,
    Stop,
    Cancel,
    Shutdown,
    Release,
    Respawn,
    Remove,
    Prove,
}

/// A command with a kind. `runtime::life` and `runtime::work` know no more of it.
pub(crate) trait HasKind {
    fn kind(&self) -> CommandKind;
}

impl HasKind for Command {
    fn kind(&self) -> CommandKind {
        match self {
            Self::Wake => CommandKind::Wake,
            Self::Prepare(_) => CommandKind::Prepare,
            Self::Stop(..) => CommandKind::Stop,
            Self::Cancel(..) => CommandKind::Cancel,
            Self::Shutdown(_) => CommandKind::Shutdown,
            Self::Release(..) => CommandKind::Release,
            Self::Respawn => CommandKind::Respawn,
            Self::Remove(..) => CommandKind::Remove,
            Self::Prove(..) => CommandKind::Prove,
        }
    }
}

/// The phase of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// No process.
    #[default]
    Asleep,
    /// Has work, and waits for a slot.
    Waiting,
    Starting,
    /// Working or waiting for work.
    Awake,
    /// Being put to sleep.
    Stopping,
}

/// The view of an actor's state.
#[derive(Debug, Clone, Default)]
pub struct ActorView {
    pub phase: Phase,
    pub sandbox: Option<Process>,
    pub reader: Option<Process>,
    /// The progress that the sandbox reports; without authority.
    pub progress: Vec<Progress>,
    /// The shortage that the session waits for.
    pub shortage: Option<Shortage>,
}

/// A turn that was cancelled.
#[derive(Debug, Clone)]
pub struct Cancelled {
    pub turn: TurnId,
    /// The messages of the turn.
    pub messages: Vec<MessageId>,
    /// `true` if the turn was open, and not only the next one.
    pub running: bool,
}

/// A command without a requester, for tests of code that only needs the kind: its kind and its number.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Ticket(pub(crate) CommandKind, pub(crate) usize);

#[cfg(test)]
impl HasKind for Ticket {
    fn kind(&self) -> CommandKind {
        self.0
    }
}

#[cfg(test)]
impl Ticket {
    pub(crate) fn numbered(number: usize) -> Self {
        use CommandKind::{Cancel, Prepare, Prove, Release, Remove, Respawn, Shutdown, Stop, Wake};
        let asks = [Wake, Stop, Cancel, Shutdown, Release, Respawn, Remove, Prove, Prepare];
        Self(asks[number % asks.len()], number)
    }

    /// Returns whether a requester waits for the answer to this kind.
    pub(crate) fn is_request(ask: CommandKind) -> bool {
        !matches!(ask, CommandKind::Wake | CommandKind::Respawn)
    }

    /// Counts the commands with a requester in the debug output of an event or of effects.
    pub(crate) fn requests(shown: &impl std::fmt::Debug) -> usize {
        let shown = format!("{shown:?}");
        let asks = shown.split("Ticket(").skip(1);
        asks.filter(|rest| !rest.starts_with("Wake") && !rest.starts_with("Respawn")).count()
    }
}
