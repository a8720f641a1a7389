//! The events in the life of an actor: the results of its effects, and the events during a wait.
//!
//! Decides nothing. See `runtime::life`.

use crate::registry::quota::workspace::Over;
use crate::runtime::sleep_reason::SleepReason;
use crate::sessions::store::{FailureReason, SessionState};
use ironclaw_jail::shortage::Shortage;
use ironclaw_store::error::Error;

/// An event in the life of an actor; `C` is a command.
#[derive(Debug)]
pub(crate) enum Event<C> {
    Begun,
    /// The effect is complete; it has no other result.
    Done,
    /// The effect failed: the host could not do it.
    Failed(Error),

    /// The session's state, and whether an emergency stop is in force.
    Found {
        standing: SessionState,
        is_halted: bool,
    },
    /// The session does not exist.
    Gone,
    /// `true` if a turn is open or a message waits.
    Work(bool),
    /// The bound that the session's directories exceed, if any.
    Measured(Option<Over>),
    /// The shortage that a launch would meet, if any.
    Room(Option<Shortage>),

    /// A command came; with whether an emergency stop is in force.
    Asked {
        command: C,
        is_halted: bool,
    },
    /// No further command can come.
    MailboxClosed,
    /// An emergency stop is in force: nothing is launched.
    Halted,
    /// The session holds a slot.
    SlotHeld,
    /// No slot is free for a session without work.
    NoSlot,
    /// The wait is over.
    TimeOver,
    /// The actor has left the list of actors; no further command can reach it.
    Left,

    /// The sandbox and its reader run.
    Launched,
    /// The launch failed; `reported` is the shortage that the error itself names.
    LaunchFailed {
        why: FailureReason,
        is_violation: bool,
        reported: Option<Shortage>,
        is_halted: bool,
    },
    /// The awake session has a reason to sleep. `shutdown` is the daemon's stop command, if it came; `is_halted` tells whether an
    /// emergency stop is in force, and `keeps_attempts` whether the messages of an open turn keep their attempts.
    Slept {
        reason: SleepReason<C>,
        shutdown: Option<C>,
        is_halted: bool,
        keeps_attempts: bool,
    },
    /// The sandbox has ended; with whether no reader is left for its last rows.
    Ended {
        is_reader_gone: bool,
    },
    /// The readable last rows are taken; `Some` if one of them broke the contract.
    Drained(Option<FailureReason>),

    /// The stop is recorded.
    StopNoted(C),
    /// The shortage of the machine, if any.
    Probed(Option<Shortage>),
    /// `true` if the launcher has died, and every jail with it.
    Launcher {
        is_dead: bool,
    },
    /// The number of launches and sandboxes in a row that have failed.
    Counted(u32),
}
