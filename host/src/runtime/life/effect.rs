//! What an actor is told to do by the decisions about its life.
//!
//! Decides nothing. See `runtime::life` for the decisions, `runtime::actor` for what performs them.

use crate::error::Error;
use crate::quota::workspace::Over;
use crate::runtime::command::Phase;
use crate::session::store::Why;
use ironclaw_jail::shortage::Shortage;

/// An effect; `C` is a command. Those of the first half have no result. One of the second half is the last of each step, and the
/// event that it names is the next one; or else it fails with `Failed`.
#[derive(Debug)]
pub(crate) enum Effect<C> {
    /// Show this phase, with the processes that there are.
    Show(Phase),
    /// Say this in the log.
    Log(Note),
    /// Join the line for a slot, for the turn that was found.
    Join,
    /// Give back the slot, or leave the line.
    GiveSlotBack,
    /// Show what the session waits for.
    NoteShortage(Option<Shortage>),
    /// Forget the words of the open turn.
    EndDrafts,
    /// Drop what is left of an awake session, then let no request of its turn in any more.
    DropAwake,
    /// Begin a wait after so many tries.
    SetBackoff(u32),
    /// Answer a command: it is done.
    Answer(C),
    /// Answer a request for a proof: nothing is launched during an emergency stop.
    RefuseProof(C),
    /// Drop a command that cannot be answered; its requester hears that the host stops.
    Abandon(C),

    /// Do nothing more: the actor is at its end.
    End,
    /// Deliver what has no receipt: `Done`.
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
    /// Look at the room in the home: `Room`.
    CheckRoom,
    /// Launch: `Launched`, `LaunchFailed`, or `Halted`.
    Launch,
    /// Find out what the machine is short of, with what an error says of it: `Probed`.
    Probe(Option<Shortage>),
    /// Record that a launch was refused: `Done`.
    NoteRefusedLaunch(Why),
    /// Work until there is a reason to sleep: `Slept`.
    Work { forgives: bool },
    /// End the sandbox: `Ended`.
    EndProcesses(Ending),
    /// Take the last rows: `Drained`.
    Drain,
    /// Close an open turn so that its messages wait, with no attempt used: `Done`.
    Requeue(&'static str),
    /// Take the session out of service, for a breach of the contract: `Done`.
    Quarantine(Why),
    /// Take the session out of service, after so many failures: `Done`.
    Park(u32, Why),
    /// Wait a moment for the end of the launcher: `Launcher`.
    CheckLauncher,
    /// Record one more failure: `Counted`.
    CountFailure,
    /// Wait for a command or the end of the backoff: `Asked`, `MailboxClosed`, `TimeOver`.
    AwaitBackoff,
    /// Wait after an error of the host; no command is heard meanwhile: `TimeOver`.
    Pause,
    /// Record that a person stopped the session: `StopNoted`.
    NoteStop(C),
    /// Do what a command asks of a sleeping session, and answer it: `Done`.
    Obey(C),
    /// Go if no command waits, or else take one: `Left`, `Asked`, `MailboxClosed`.
    LeaveOrWait,
    /// Go, and drop every command that waits: `Left`.
    LeaveRemoved,
}

/// The way to end a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is told to go, and killed if it does not.
    Told,
    /// It is killed; its reader stays for the last rows.
    Killed,
    /// It is killed with its reader.
    KilledWithReader,
}

/// A line for the log.
#[derive(Debug)]
pub(crate) enum Note {
    /// The session sleeps.
    Asleep,
    /// A launch failed because the machine is short of something.
    ShortLaunch(Why),
    /// The session waits for what the machine is short of.
    WaitsFor(Shortage),
    /// An awake session came to its end by an error of the host.
    Stopped(Error),
    /// The session waits a moment after an error of the host.
    Waits(Error),
    /// The actor ends after an error of the host, because the daemon stops.
    Ends(Error),
}
