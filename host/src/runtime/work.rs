//! The decisions of an awake session: close the turn of an earlier launch, open turns, take rows, run commands, and go to sleep.
//!
//! Pure: it has no clock, no process, no lock and no record; a time is a duration since the work began. [`crate::runtime::turn_loop`]
//! performs the effects and returns the resulting events. See `runtime::life` for the handling of the reason to sleep.

use crate::registry::quota::workspace::Over;
use crate::runtime::command::{CommandKind, HasKind};
use crate::runtime::sleep_reason::SleepReason;
use crate::turns::open_turns::deadlines::Moves;
use std::time::Duration;

/// At a stop of the daemon, an open turn has this time to end.
pub(crate) const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

/// The work of an awake session; `C` is a command, which it passes on and never opens.
pub(crate) struct Work<C> {
    stage: Stage,
    /// The deadline of the open turn.
    open_until: Option<Duration>,
    /// The daemon's stop: its command, and the deadline for an open turn.
    stopping: Option<(C, Duration)>,
    /// The time that the session stays awake without a turn.
    idle: Duration,
    idle_until: Duration,
    /// `true` if more rows may be in the outbound queue.
    has_more: bool,
    /// `true` if the sandbox restarts when no turn is open.
    is_stale: bool,
    /// `true` if the messages of a turn of an earlier launch keep their attempts.
    keeps_attempts: bool,
    /// `true` if a message may wait for a turn: a command may report one, and the record was not read since.
    may_open: bool,
}

/// The event that the session waits for.
#[derive(Debug, Clone, Copy)]
enum Stage {
    New,
    /// The end of an effect without a result.
    Doing(Then),
    CheckingSlot,
    Opening,
    Listening,
    Taking,
    /// Takes the rows from before the deadline of the turn.
    TakingLast,
    /// The deadline of a turn is missed.
    Missing,
    Cancelling,
    FindingEnd,
    Over,
}

/// The step after an effect.
#[derive(Debug, Clone, Copy)]
enum Then {
    CloseLeftOver,
    DeliverFirst,
    /// The turn of an earlier launch is settled.
    Begin,
    Proceed,
    SleepCancelled,
}

/// An event in the work of an awake session; `C` is a command.
#[derive(Debug)]
pub(crate) enum Event<C> {
    Begun,
    /// The effect is complete; it has no other result.
    Done,
    /// The effect led to a reason to sleep.
    Slept(SleepReason<C>),
    /// The state of the slot: `true` if other sessions need it more.
    Slot {
        is_asked_back: bool,
    },
    /// The result of `OpenTurn`.
    Opened(Opening),
    /// Rows were taken; with whether there may be more, and whether one closed the turn.
    Taken {
        has_more: bool,
        closed: Option<Closed>,
    },
    /// A turn was cancelled; with whether it was the open one.
    Cancelled {
        is_running: bool,
    },
    /// The turn has its notice; with whether a model was the reason.
    Missed {
        is_models: bool,
    },
    /// The reason that the exit of the sandbox shows.
    End(&'static str),

    /// An emergency stop is in force.
    Halted,
    /// Other sessions need the slot more.
    AskedBack,
    Asked(C),
    /// No further command can come.
    MailboxClosed,
    /// The time limit of `Listen` is reached.
    TimeOver,
    /// The deadline of the open turn moved to this time, by so much for its sandbox.
    DeadlineMoved {
        until: Duration,
        moves: Moves,
    },
    /// The sandbox has ended, or has closed its link.
    SandboxEnded,
    ReaderEnded,
    /// The sandbox broke the contract.
    Violation(&'static str),
    /// The workspace is over its bound.
    Full(Over),
    /// The sandbox rang, or rows are left from the last read.
    Rows,
}

/// The result of an attempt to open a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// A turn is open until this time.
    Until(Duration),
    /// No message waits for a turn.
    NoMessage,
    /// An answer on this host must be delivered first.
    Undelivered,
}

/// The record after a row closed the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed {
    /// `true` if a message waits for a turn.
    pub(crate) is_waiting: bool,
}

/// An effect of an awake session; `C` is a command. Effects of the first part have no result. Each step ends with one effect of the
/// second part; its result is the next event, the one named here or `Slept`.
#[derive(Debug)]
pub(crate) enum Effect<C> {
    /// Measure the workspace periodically while a turn is open, and only then.
    Watch { is_open: bool },
    /// Notify admission that the session has a turn.
    MarkBusy,
    /// Notify admission that the session has no work.
    MarkIdle,
    /// Forget the open turn, and notify admission.
    EndTurn,
    /// Drop a command without a reply; its requester gets the error that the host stops.
    Abandon(C),

    /// End the work and sleep; `shutdown` is the daemon's stop command, if it came.
    Sleep { reason: SleepReason<C>, shutdown: Option<C> },
    /// Take every row: `Done`.
    Drain,
    /// Close the turn that an earlier launch left open: `Done`.
    CloseLeftOver { keeps_attempts: bool },
    /// Deliver the answers without a receipt: `Done`.
    Deliver,
    /// Check whether the slot is asked back: `Slot`.
    CheckSlot,
    /// Open the next turn, project it and ring: `Opened`.
    OpenTurn,
    /// Wait for the next event, at most until this time. Only a session without an open turn reacts to a request for its slot.
    Listen { until: Duration, is_free: bool, has_more: bool },
    /// Take rows, up to a bound: `Taken`.
    Take,
    /// Project the moved deadline of the open turn: `Done`.
    MoveDeadline(Moves),
    /// Close the open turn because its deadline is missed: `Missed`.
    MissDeadline,
    /// Close the open turn because of a full workspace: `Done`.
    EndOverBound(Over),
    /// Replace the reader: `Done`.
    ReplaceReader,
    /// Find the reason from the exit of the sandbox: `End`.
    FindEnd,
    /// Cancel a turn and reply: `Cancelled`.
    Cancel(C),
    /// Run the self-test and reply: `Done`.
    Prove(C),
}

impl<C: HasKind> Work<C> {
    /// Makes the work of a session that has just woken; it stays awake for `idle` without a turn.
    pub(crate) const fn new(idle: Duration, keeps_attempts: bool) -> Self {
        Self {
            stage: Stage::New,
            open_until: None,
            stopping: None,
            idle,
            idle_until: Duration::ZERO,
            has_more: false,
            is_stale: false,
            keeps_attempts,
            may_open: true,
        }
    }

    /// Returns whether the messages of an open turn still keep their attempts.
    pub(crate) const fn keeps_attempts(&self) -> bool {
        self.keeps_attempts
    }

    /// Takes an event at this time, and returns the effects to perform in this order. An event that cannot come now does not change the
    /// stage; a command in it is abandoned.
    pub(crate) fn step(&mut self, now: Duration, event: Event<C>) -> Vec<Effect<C>> {
        match (self.stage, event) {
            (Stage::Over, event) => event.into_command().map(Effect::Abandon).into_iter().collect(),
            (_, Event::Slept(reason)) => self.sleep(reason),
            (Stage::New, Event::Begun) => self.then(Then::CloseLeftOver, Effect::Drain),
            (Stage::Doing(then), Event::Done) => self.proceed_with(now, then),
            (Stage::CheckingSlot, Event::Slot { is_asked_back: true }) => self.sleep(SleepReason::Yielded),
            (Stage::CheckingSlot, Event::Slot { is_asked_back: false }) if self.may_open => {
                self.wait(Stage::Opening, Effect::OpenTurn)
            }
            (Stage::CheckingSlot, Event::Slot { is_asked_back: false }) => self.rest(),
            (Stage::Opening, Event::Opened(opening)) => self.opened(opening),
            (Stage::Listening, Event::Rows) => self.wait(Stage::Taking, Effect::Take),
            (Stage::Taking, Event::Taken { has_more, closed }) => {
                self.has_more = has_more;
                match closed {
                    Some(closed) if self.open_until.is_some() => self.end_turn(now, closed),
                    _ => self.proceed(),
                }
            }
            // A reply from before the deadline counts.
            (Stage::TakingLast, Event::Taken { closed: Some(closed), .. }) => self.end_turn(now, closed),
            (Stage::TakingLast, Event::Taken { closed: None, .. }) => self.wait(Stage::Missing, Effect::MissDeadline),
            (Stage::Missing, Event::Missed { is_models: true }) => self.sleep(SleepReason::Cancelled),
            (Stage::Missing, Event::Missed { is_models: false }) => {
                self.sleep(SleepReason::died("it missed the deadline of its turn"))
            }
            (Stage::Cancelling, Event::Cancelled { is_running: true }) => self.sleep(SleepReason::Cancelled),
            (Stage::Cancelling, Event::Cancelled { is_running: false }) => self.then(Then::Proceed, Effect::Deliver),
            (Stage::FindingEnd, Event::End(words)) => self.sleep(SleepReason::died(words)),
            (Stage::Listening, event) => self.handle_external(now, event),
            (_, event) => event.into_command().map(Effect::Abandon).into_iter().collect(),
        }
    }

    /// Takes an external event.
    fn handle_external(&mut self, now: Duration, event: Event<C>) -> Vec<Effect<C>> {
        match event {
            Event::Halted => self.sleep(SleepReason::Halted),
            Event::AskedBack => self.sleep(SleepReason::Yielded),
            Event::Asked(command) => self.run_command(now, command),
            Event::MailboxClosed => self.sleep(SleepReason::Ended(None)),
            Event::TimeOver => self.time_is_over(),
            Event::DeadlineMoved { until, moves } if self.open_until.is_some() => {
                self.open_until = Some(until);
                self.then(Then::Proceed, Effect::MoveDeadline(moves))
            }
            Event::SandboxEnded => self.wait(Stage::FindingEnd, Effect::FindEnd),
            Event::ReaderEnded => self.then(Then::Proceed, Effect::ReplaceReader),
            Event::Violation(what) => self.sleep(SleepReason::violated(what)),
            // Between turns the session sleeps, and the next message gets the notice.
            Event::Full(_) if self.open_until.is_none() => self.sleep(SleepReason::Yielded),
            Event::Full(over) => self.then(Then::SleepCancelled, Effect::EndOverBound(over)),
            event => event.into_command().map(Effect::Abandon).into_iter().collect(),
        }
    }

    /// Runs a command for an awake session.
    fn run_command(&mut self, now: Duration, command: C) -> Vec<Effect<C>> {
        self.may_open = true;
        match command.kind() {
            // `OpenTurn` finds undelivered answers in the transaction that looks for messages.
            CommandKind::Wake if self.open_until.is_none() => self.proceed(),
            CommandKind::Wake => self.then(Then::Proceed, Effect::Deliver),
            CommandKind::Prepare => {
                let mut effects = vec![Effect::Abandon(command)];
                effects.extend(self.proceed());
                effects
            }
            CommandKind::Respawn => {
                self.is_stale = true;
                self.proceed()
            }
            CommandKind::Cancel => self.wait(Stage::Cancelling, Effect::Cancel(command)),
            CommandKind::Shutdown => {
                let before = self.stopping.replace((command, now + DRAIN_TIME_MAX));
                let mut effects: Vec<_> = before.map(|(command, _)| Effect::Abandon(command)).into_iter().collect();
                effects.extend(self.proceed());
                effects
            }
            CommandKind::Prove => self.then(Then::Proceed, Effect::Prove(command)),
            CommandKind::Stop | CommandKind::Release | CommandKind::Remove => self.sleep(SleepReason::Asked(command)),
        }
    }

    /// Handles the end of the time of a turn, of a shutdown or of an idle session.
    fn time_is_over(&mut self) -> Vec<Effect<C>> {
        if self.open_until.is_none() {
            return self.sleep(SleepReason::Idle);
        }
        match self.stopping.take() {
            Some((command, _)) => self.sleep(SleepReason::Ended(Some(command))),
            None => self.wait(Stage::TakingLast, Effect::Take),
        }
    }

    fn proceed_with(&mut self, now: Duration, then: Then) -> Vec<Effect<C>> {
        match then {
            Then::CloseLeftOver => {
                self.then(Then::DeliverFirst, Effect::CloseLeftOver { keeps_attempts: self.keeps_attempts })
            }
            Then::DeliverFirst => {
                self.keeps_attempts = false;
                self.then(Then::Begin, Effect::Deliver)
            }
            Then::Begin => {
                self.idle_until = now + self.idle;
                self.proceed()
            }
            Then::Proceed => self.proceed(),
            Then::SleepCancelled => self.sleep(SleepReason::Cancelled),
        }
    }

    /// Waits for the next event, or opens the next turn, or sleeps if there is a reason.
    fn proceed(&mut self) -> Vec<Effect<C>> {
        let mut effects = vec![Effect::Watch { is_open: self.open_until.is_some() }];
        effects.extend(if self.open_until.is_some() {
            self.listen()
        } else if let Some((command, _)) = self.stopping.take() {
            self.sleep(SleepReason::Ended(Some(command)))
        } else if self.is_stale {
            self.sleep(SleepReason::Yielded)
        } else {
            self.wait(Stage::CheckingSlot, Effect::CheckSlot)
        });
        effects
    }

    fn opened(&mut self, opening: Opening) -> Vec<Effect<C>> {
        match opening {
            Opening::Until(until) => {
                self.open_until = Some(until);
                let mut effects = vec![Effect::Watch { is_open: true }, Effect::MarkBusy];
                effects.extend(self.listen());
                effects
            }
            Opening::Undelivered => self.then(Then::Proceed, Effect::Deliver),
            Opening::NoMessage => {
                self.may_open = false;
                self.rest()
            }
        }
    }

    /// Waits without a turn.
    fn rest(&mut self) -> Vec<Effect<C>> {
        let mut effects = vec![Effect::MarkIdle];
        effects.extend(self.listen());
        effects
    }

    fn listen(&mut self) -> Vec<Effect<C>> {
        let is_free = self.open_until.is_none();
        self.wait(Stage::Listening, Effect::Listen { until: self.limit(), is_free, has_more: self.has_more })
    }

    /// Returns the time limit of the wait for the next event.
    fn limit(&self) -> Duration {
        match (self.open_until, &self.stopping) {
            (Some(open), Some((_, until))) => open.min(*until),
            (Some(open), None) => open,
            (None, _) => self.idle_until,
        }
    }

    /// Ends the answered turn.
    fn end_turn(&mut self, now: Duration, closed: Closed) -> Vec<Effect<C>> {
        // A later message comes with a command.
        self.may_open = closed.is_waiting;
        self.open_until = None;
        self.idle_until = now + self.idle;
        let mut effects = vec![Effect::EndTurn];
        effects.extend(self.proceed());
        effects
    }

    fn sleep(&mut self, reason: SleepReason<C>) -> Vec<Effect<C>> {
        let shutdown = self.stopping.take().map(|(command, _)| command);
        self.wait(Stage::Over, Effect::Sleep { reason, shutdown })
    }

    fn then(&mut self, then: Then, effect: Effect<C>) -> Vec<Effect<C>> {
        self.wait(Stage::Doing(then), effect)
    }

    fn wait(&mut self, stage: Stage, effect: Effect<C>) -> Vec<Effect<C>> {
        self.stage = stage;
        vec![effect]
    }
}

impl<C> Event<C> {
    fn into_command(self) -> Option<C> {
        match self {
            Self::Asked(command) => Some(command),
            Self::Slept(reason) => reason.into_command(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
