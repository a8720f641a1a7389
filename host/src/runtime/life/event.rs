//! What an actor hears: the results of its effects, and what comes while it waits.
//!
//! Decides nothing. See `runtime::life`.

use crate::error::Error;
use crate::quota::workspace::Over;
use crate::runtime::sleep_reason::SleepReason;
use crate::session::store::{Standing, Why};
use ironclaw_jail::shortage::Shortage;

/// An event in the life of an actor; `C` is a command.
#[derive(Debug)]
pub(crate) enum Event<C> {
    /// The actor begins.
    Begun,
    /// The effect is done; it has no other result.
    Done,
    /// The effect failed: the host could not do it.
    Failed(Error),

    /// The session's row, and whether the emergency stop holds now.
    Found { standing: Standing, is_halted: bool },
    /// There is no such session.
    Gone,
    /// Whether a turn is open or a message waits.
    Work(bool),
    /// How the session's directories are over their bound, if they are.
    Measured(Option<Over>),
    /// What a launch would lack, if anything.
    Room(Option<Shortage>),

    /// A command came; and whether the emergency stop holds now.
    Asked { command: C, is_halted: bool },
    /// No command can come any more.
    MailboxClosed,
    /// The emergency stop holds: nothing is launched.
    Halted,
    /// The slot is there.
    SlotHeld,
    /// The wait is over.
    TimeOver,
    /// No command can reach the actor any more.
    Left,

    /// The sandbox and its reader run.
    Launched,
    /// The launch failed; and what the error itself says of a shortage.
    LaunchFailed { why: Why, is_violation: bool, reported: Option<Shortage>, is_halted: bool },
    /// The awake session has a reason to sleep; and with which command the daemon stops, if it does, whether the emergency stop
    /// holds now, and whether the messages of an open turn still keep their attempts.
    Slept { reason: SleepReason<C>, shutdown: Option<C>, is_halted: bool, forgives: bool },
    /// The sandbox has ended; and whether no reader is left for its last rows.
    Ended { is_reader_gone: bool },
    /// The last rows are taken, as far as they can be; or one of them broke the contract.
    Drained(Option<Why>),

    /// The stop is recorded.
    StopNoted(C),
    /// What the machine is short of, if anything.
    Probed(Option<Shortage>),
    /// Whether the launcher has died, and every jail with it.
    Launcher { is_dead: bool },
    /// So many launches and sandboxes in a row have failed.
    Counted(u32),
}
