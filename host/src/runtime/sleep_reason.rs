//! The reason that an awake session goes to sleep.
//!
//! Decides nothing: `runtime::work` returns a reason, and `runtime::life` acts on it.

use crate::runtime::command::Command;
use crate::sessions::store::FailureReason;
use ironclaw_jail::shortage::Shortage;
use ironclaw_store::error::Error;

/// A reason for an awake session to go to sleep; `C` is a command.
#[derive(Debug)]
pub(crate) enum SleepReason<C = Command> {
    /// The session had no work for a while.
    Idle,
    /// Other sessions need its slot more, or the sandbox must restart.
    Yielded,
    /// The turn was closed without a fault of the sandbox, which may still work on it.
    Cancelled,
    /// An emergency stop is in force.
    Halted,
    /// A command needs a sleeping session.
    Asked(C),
    /// The daemon stops, with the shutdown command, or the session is gone.
    Ended(Option<C>),
    /// The sandbox exited, or was ended because it held a lock or missed a deadline.
    Died(FailureReason),
    /// The sandbox broke the contract.
    Violated(FailureReason),
    /// The machine is short of something.
    Short(Shortage),
    /// The host itself failed.
    Broken(Error),
}

impl<E: Into<Error>> From<E> for SleepReason {
    fn from(error: E) -> Self {
        Self::Broken(error.into())
    }
}

impl<C> SleepReason<C> {
    /// Makes the reason that the sandbox ended, in the host's own words.
    pub(crate) fn died(words: impl Into<String>) -> Self {
        Self::Died(FailureReason::new(words))
    }

    /// Makes the reason that the sandbox broke the contract, in the host's own words.
    pub(crate) fn violated(words: &'static str) -> Self {
        Self::Violated(FailureReason::new(words))
    }

    /// Returns whether the sandbox is asked to exit and gets time for it; an open turn is then no failure.
    pub(crate) const fn is_orderly(&self) -> bool {
        match self {
            Self::Idle | Self::Yielded | Self::Asked(_) | Self::Ended(_) => true,
            Self::Cancelled | Self::Halted | Self::Died(_) | Self::Violated(_) | Self::Short(_) | Self::Broken(_) => {
                false
            }
        }
    }

    /// Returns whether a command or the end of the session is the reason: an emergency stop does not replace these.
    pub(crate) const fn is_asked(&self) -> bool {
        matches!(self, Self::Asked(_) | Self::Ended(_))
    }

    /// Returns the command in it, if there is one.
    pub(crate) fn into_command(self) -> Option<C> {
        match self {
            Self::Asked(command) => Some(command),
            Self::Ended(command) => command,
            _ => None,
        }
    }
}
