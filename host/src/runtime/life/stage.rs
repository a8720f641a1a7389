//! The stages of the life of an actor.
//!
//! Decides nothing. See `runtime::life` for the step from one to the next.

use crate::runtime::sleep_reason::SleepReason;
use crate::sessions::store::FailureReason;
use ironclaw_jail::shortage::Shortage;

/// The session's progress toward a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotProgress {
    None,
    InLine,
    Held,
}

/// The event that the actor waits for.
#[derive(Debug)]
pub(super) enum Stage<C> {
    New,
    /// The end of an effect without a result.
    Doing(Then<C>),
    Finding,
    FindingWork,
    Measuring,
    TakingFreeSlot,
    InLine,
    CheckingRoom,
    Launching,
    /// The cause of a failed launch.
    ProbingLaunch(FailureReason),
    Working,
    EndingProcesses(SleepReason<C>),
    Draining(SleepReason<C>),
    /// The cause of the end of a sandbox.
    ProbingFailure(FailureReason),
    CheckingLauncher(Setback),
    Counting(FailureReason),
    BackingOff,
    NotingStop,
    Leaving,
    /// The cause of an error of the host.
    ProbingError,
    Pausing,
    Over,
}

/// The step after an effect.
#[derive(Debug)]
pub(super) enum Then<C> {
    Look,
    Deliver,
    AwaitSlot,
    AwaitBackoff,
    Requeue(SleepReason<C>),
    Settle(SleepReason<C>),
    /// The same as `Settle`, but without processes.
    Conclude(SleepReason<C>),
}

/// The reason that the session does not run again at once.
#[derive(Debug)]
pub(super) enum Setback {
    Shortage(Shortage),
    Failure(FailureReason),
}

impl<C> Stage<C> {
    pub(super) fn into_command(self) -> Option<C> {
        match self {
            Self::Doing(Then::Requeue(reason) | Then::Settle(reason) | Then::Conclude(reason))
            | Self::EndingProcesses(reason)
            | Self::Draining(reason) => reason.into_command(),
            _ => None,
        }
    }
}
