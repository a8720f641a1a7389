//! The effects that `runtime::life` decides and an actor performs.
//!
//! Decides nothing. See `runtime::life` for the decisions, and [`crate::runtime::actor`] for their execution.

use crate::registry::quota::workspace::Over;
use crate::runtime::command::Phase;
use crate::sessions::store::FailureReason;
use crate::turns::turn::TurnEnd;
use ironclaw_jail::shortage::Shortage;
use ironclaw_store::error::Error;

/// An effect; `C` is a command. Effects of the first half have no result. Each step ends with one effect of the second half; its result
/// is the next event, one of those named here or `Failed`.
#[derive(Debug)]
pub(crate) enum Effect<C> {
    /// Show this phase, with the running processes.
    Show(Phase),
    /// Write this to the log.
    Log(Note),
    /// Queue for a slot, for the found turn.
    Join,
    /// Give back the slot, or leave the queue for one.
    GiveSlotBack,
    /// Show the shortage that the session waits for.
    NoteShortage(Option<Shortage>),
    /// Drop the partial output of the open turn.
    EndDrafts,
    /// Drop the resources of an awake session, then refuse further requests of its turn.
    DropAwake,
    /// Start a backoff after this many tries.
    SetBackoff(u32),
    /// Reply to a command that is complete.
    Answer(C),
    /// Refuse a self-test: nothing is launched during an emergency stop.
    RefuseProof(C),
    /// Drop a command without a reply; its requester gets the error that the host stops.
    Abandon(C),

    End,
    /// Deliver the answers without a receipt: `Done`.
    Deliver,
    /// Read the session's row: `Found` or `Gone`.
    Find,
    /// Read whether there is work: `Work`.
    FindWork,
    /// Measure the session's directories: `Measured`.
    Measure,
    /// End the next turn because of a full workspace: `Done`.
    EndOverBound(Over),
    /// Wait for a command, the emergency stop, or the slot: `Asked`, `MailboxClosed`, `Halted`, `SlotHeld`.
    AwaitSlot,
    /// Take a slot for a session without work, without a wait: `SlotHeld`, `NoSlot`.
    TakeFreeSlot,
    /// Check the room in the home: `Room`.
    CheckRoom,
    /// Launch: `Launched`, `LaunchFailed`, or `Halted`.
    Launch,
    /// Find the shortage of the machine; the argument is the shortage that an error names: `Probed`.
    Probe(Option<Shortage>),
    /// Record that a launch was refused: `Done`.
    NoteRefusedLaunch(FailureReason),
    /// Work until there is a reason to sleep: `Slept`.
    Work {
        keeps_attempts: bool,
    },
    /// End the sandbox: `Ended`.
    EndProcesses(Ending),
    /// Take the last rows: `Drained`.
    Drain,
    /// Close an open turn and requeue its messages, with no attempt used: `Done`.
    Requeue(TurnEnd),
    /// Quarantine the session after a violation of the contract: `Done`.
    Quarantine(FailureReason),
    /// Park the session after this many failures: `Done`.
    Park(u32, FailureReason),
    /// Wait a moment for the end of the launcher: `Launcher`.
    CheckLauncher,
    /// Record one more failure: `Counted`.
    CountFailure,
    /// Wait for a command or the end of the backoff: `Asked`, `MailboxClosed`, `TimeOver`.
    AwaitBackoff,
    /// Wait after an error of the host; no command is taken meanwhile: `TimeOver`.
    Pause,
    /// Record that a person stopped the session: `StopNoted`.
    NoteStop(C),
    /// Run a command for a sleeping session, and reply: `Done`.
    RunCommand(C),
    /// Leave if no command waits, or else take one: `Left`, `Asked`, `MailboxClosed`.
    LeaveOrWait,
    /// Leave, and drop every waiting command: `Left`.
    LeaveRemoved,
}

/// The way to end a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The sandbox is asked to exit, and killed if it does not.
    Told,
    /// The sandbox is killed; its reader stays for the last rows.
    Killed,
    /// The sandbox is killed with its reader.
    KilledWithReader,
}

/// A line for the log.
#[derive(Debug)]
pub(crate) enum Note {
    Asleep,
    /// A launch failed because the machine is short of something.
    ShortLaunch(FailureReason),
    /// The session waits for the end of a shortage.
    WaitsFor(Shortage),
    /// An error of the host ended an awake session.
    Stopped(Error),
    /// The session waits a moment after an error of the host.
    Waits(Error),
    /// The actor ends after an error of the host, because the daemon stops.
    Ends(Error),
}
