//! Decides what an awake session does: take what an earlier launch left, open turns, take rows, obey, and go to sleep for a reason.
//!
//! Pure: it knows no clock, no process, no lock and not the record; a time is a duration since the work began. `runtime::turn_loop`
//! performs its effects and tells it what came of them. Next: `runtime::life` for what follows on the reason.

use crate::quota::workspace::Over;
use crate::runtime::command::{Ask, Asks};
use crate::runtime::sleep_reason::SleepReason;
use std::time::Duration;

/// At a stop of the daemon, an open turn has this long to come to its end.
pub(crate) const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

/// That a turn is over is projected after this long, unless the next one is projected in its place: the sandbox has answered and
/// waits for the bell either way.
const CLOSE_AFTER: Duration = Duration::from_millis(20);

/// The work of an awake session; `C` is a command, which it hands on and never opens.
pub(crate) struct Work<C> {
    stage: Stage,
    /// Until when the open turn may go on.
    open_until: Option<Duration>,
    /// When it is projected that the last turn is over.
    close_at: Option<Duration>,
    /// The daemon stops: the command that says so, and until when an open turn may go on.
    stopping: Option<(C, Duration)>,
    /// How long it stays awake without a turn.
    idle: Duration,
    idle_until: Duration,
    /// Whether more rows may be in the outbound queue.
    has_more: bool,
    /// Whether it begins anew once no turn is open.
    is_stale: bool,
    /// Whether the messages of a turn that an earlier launch left keep their attempts.
    forgives: bool,
}

/// What the session waits for.
#[derive(Debug, Clone, Copy)]
enum Stage {
    New,
    /// The end of an effect without another result.
    Doing(Then),
    CheckingSlot,
    Opening,
    Listening,
    Taking,
    /// Rows that were written before the deadline of the turn.
    TakingLast,
    /// The deadline of a turn is missed.
    Missing,
    Cancelling,
    FindingEnd,
    Over,
}

/// What follows on an effect.
#[derive(Debug, Clone, Copy)]
enum Then {
    CloseLeftOver,
    DeliverFirst,
    ProjectFirst,
    /// What an earlier launch left is dealt with.
    Begin,
    ProjectReceipts,
    GoOn,
    SleepCancelled,
}

/// An event in the work of an awake session; `C` is a command.
#[derive(Debug)]
pub(crate) enum Event<C> {
    /// The work begins.
    Begun,
    /// The effect is done; it has no other result.
    Done,
    /// The effect came to a reason to sleep.
    Slept(SleepReason<C>),
    /// Whether other sessions need the slot more.
    Slot { is_asked_back: bool },
    /// A turn is open until then, or there was none to open.
    Opened(Option<Duration>),
    /// Rows were taken: whether there may be more, and whether the turn was closed by one.
    Taken { has_more: bool, is_closed: bool },
    /// Whether the turn that was cancelled was the open one.
    Cancelled { is_running: bool },
    /// The turn has its notice; and whether a model was the reason.
    Missed { is_models: bool },
    /// What the sandbox says by its end.
    End(&'static str),

    /// The emergency stop holds.
    Halted,
    /// Other sessions need the slot more.
    AskedBack,
    /// A command came.
    Asked(C),
    /// No command can come any more.
    MailboxClosed,
    /// The time that was listened for has come.
    TimeOver,
    /// The sandbox has ended, or has closed its link.
    SandboxEnded,
    /// The reader has ended.
    ReaderEnded,
    /// The sandbox broke the contract.
    Violation(&'static str),
    /// The workspace is over its bound.
    Full(Over),
    /// The sandbox rang, or rows are left from the last look.
    Rows,
}

/// What an awake session is told to do; `C` is a command. Those of the first part have no result. One of the second part is the last
/// of each step, and the event that it names is the next one, or else `Slept`.
#[derive(Debug)]
pub(crate) enum Effect<C> {
    /// Measure the workspace now and then while a turn is open, and only then.
    Watch { is_open: bool },
    /// Tell the slots that the session has a turn.
    MarkBusy,
    /// Tell the slots that the session has nothing to do.
    MarkIdle,
    /// Keep the open turn as the one that is over, and tell the slots.
    EndTurn,
    /// Drop a command that cannot be answered; its requester hears that the host stops.
    Abandon(C),

    /// Do nothing more, and sleep; the daemon may have said meanwhile that it stops.
    Sleep { reason: SleepReason<C>, shutdown: Option<C> },
    /// Take every row: `Done`.
    Drain,
    /// Close the turn that an earlier launch left open: `Done`.
    CloseLeftOver { forgives: bool },
    /// Deliver what has no receipt: `Done`.
    Deliver,
    /// Project the receipts that there are: `Done`.
    ProjectReceipts,
    /// Look whether the slot is asked back: `Slot`.
    CheckSlot,
    /// Open the next turn, project it and ring: `Opened`.
    OpenTurn,
    /// Wait for what is next, at most until then; only a free session hears that its slot is asked back.
    Listen { until: Duration, is_free: bool, has_more: bool },
    /// Take rows, up to a bound: `Taken`.
    Take,
    /// Project that the last turn is over: `Done`.
    CloseTurn,
    /// End the open turn because its time is over: `Missed`.
    MissDeadline,
    /// End the open turn because of a full workspace: `Done`.
    EndOverBound(Over),
    /// Replace the reader: `Done`.
    ReplaceReader,
    /// Find out what the sandbox says by its end: `End`.
    FindEnd,
    /// Cancel a turn and answer: `Cancelled`.
    Cancel(C),
    /// Prove the walls and answer: `Done`.
    Prove(C),
}

impl<C: Asks> Work<C> {
    /// Makes the work of a session that has just woken and stays awake so long without a turn.
    pub(crate) const fn new(idle: Duration, forgives: bool) -> Self {
        Self {
            stage: Stage::New,
            open_until: None,
            close_at: None,
            stopping: None,
            idle,
            idle_until: Duration::ZERO,
            has_more: false,
            is_stale: false,
            forgives,
        }
    }

    /// Returns whether the messages of an open turn still keep their attempts.
    pub(crate) const fn forgives(&self) -> bool {
        self.forgives
    }

    /// Takes an event at this time, and returns what is to be done in this order. An event that cannot come now does not change the stage; a command
    /// in it is abandoned.
    pub(crate) fn step(&mut self, now: Duration, event: Event<C>) -> Vec<Effect<C>> {
        match (self.stage, event) {
            (Stage::Over, event) => event.into_command().map(Effect::Abandon).into_iter().collect(),
            (_, Event::Slept(reason)) => self.sleep(reason),
            (Stage::New, Event::Begun) => self.then(Then::CloseLeftOver, Effect::Drain),
            (Stage::Doing(then), Event::Done) => self.go_on_with(now, then),
            (Stage::CheckingSlot, Event::Slot { is_asked_back: true }) => self.sleep(SleepReason::Yielded),
            (Stage::CheckingSlot, Event::Slot { is_asked_back: false }) => self.wait(Stage::Opening, Effect::OpenTurn),
            (Stage::Opening, Event::Opened(until)) => self.opened(until),
            (Stage::Listening, Event::Rows) => self.wait(Stage::Taking, Effect::Take),
            (Stage::Taking, Event::Taken { has_more, is_closed }) => {
                self.has_more = has_more;
                if is_closed && self.open_until.is_some() { self.end_turn(now) } else { self.go_on() }
            }
            // A reply that was written in time counts.
            (Stage::TakingLast, Event::Taken { is_closed: true, .. }) => self.end_turn(now),
            (Stage::TakingLast, Event::Taken { is_closed: false, .. }) => {
                self.wait(Stage::Missing, Effect::MissDeadline)
            }
            (Stage::Missing, Event::Missed { is_models: true }) => self.sleep(SleepReason::Cancelled),
            (Stage::Missing, Event::Missed { is_models: false }) => {
                self.sleep(SleepReason::died("it missed the deadline of its turn"))
            }
            (Stage::Cancelling, Event::Cancelled { is_running: true }) => self.sleep(SleepReason::Cancelled),
            (Stage::Cancelling, Event::Cancelled { is_running: false }) => self.then(Then::GoOn, Effect::Deliver),
            (Stage::FindingEnd, Event::End(words)) => self.sleep(SleepReason::died(words)),
            (Stage::Listening, event) => self.hear(now, event),
            (_, event) => event.into_command().map(Effect::Abandon).into_iter().collect(),
        }
    }

    /// Takes what comes from outside.
    fn hear(&mut self, now: Duration, event: Event<C>) -> Vec<Effect<C>> {
        match event {
            Event::Halted => self.sleep(SleepReason::Halted),
            Event::AskedBack => self.sleep(SleepReason::Yielded),
            Event::Asked(command) => self.obey(now, command),
            Event::MailboxClosed => self.sleep(SleepReason::Ended(None)),
            Event::TimeOver => self.time_is_over(),
            Event::SandboxEnded => self.wait(Stage::FindingEnd, Effect::FindEnd),
            Event::ReaderEnded => self.then(Then::GoOn, Effect::ReplaceReader),
            Event::Violation(what) => self.sleep(SleepReason::violated(what)),
            // After the end of a turn it sleeps, and the next message is told.
            Event::Full(_) if self.open_until.is_none() => self.sleep(SleepReason::Yielded),
            Event::Full(over) => self.then(Then::SleepCancelled, Effect::EndOverBound(over)),
            event => event.into_command().map(Effect::Abandon).into_iter().collect(),
        }
    }

    /// Does what a command asks of a session that is awake.
    fn obey(&mut self, now: Duration, command: C) -> Vec<Effect<C>> {
        match command.ask() {
            Ask::Wake => self.then(Then::ProjectReceipts, Effect::Deliver),
            Ask::Respawn => {
                self.is_stale = true;
                self.go_on()
            }
            Ask::Cancel => self.wait(Stage::Cancelling, Effect::Cancel(command)),
            Ask::Shutdown => {
                let before = self.stopping.replace((command, now + DRAIN_TIME_MAX));
                let mut effects: Vec<_> = before.map(|(command, _)| Effect::Abandon(command)).into_iter().collect();
                effects.extend(self.go_on());
                effects
            }
            Ask::Prove => self.then(Then::GoOn, Effect::Prove(command)),
            Ask::Stop | Ask::Release | Ask::Remove => self.sleep(SleepReason::Asked(command)),
        }
    }

    /// The time of a turn, of a closed turn, of a stop or of an idle session is over.
    fn time_is_over(&mut self) -> Vec<Effect<C>> {
        if self.open_until.is_none() {
            return match self.close_at.take() {
                Some(_) => self.then(Then::GoOn, Effect::CloseTurn),
                None => self.sleep(SleepReason::Idle),
            };
        }
        match self.stopping.take() {
            Some((command, _)) => self.sleep(SleepReason::Ended(Some(command))),
            None => self.wait(Stage::TakingLast, Effect::Take),
        }
    }

    fn go_on_with(&mut self, now: Duration, then: Then) -> Vec<Effect<C>> {
        match then {
            Then::CloseLeftOver => self.then(Then::DeliverFirst, Effect::CloseLeftOver { forgives: self.forgives }),
            Then::DeliverFirst => {
                self.forgives = false;
                self.then(Then::ProjectFirst, Effect::Deliver)
            }
            Then::ProjectFirst => self.then(Then::Begin, Effect::ProjectReceipts),
            Then::ProjectReceipts => self.then(Then::GoOn, Effect::ProjectReceipts),
            Then::Begin => {
                self.idle_until = now + self.idle;
                self.go_on()
            }
            Then::GoOn => self.go_on(),
            Then::SleepCancelled => self.sleep(SleepReason::Cancelled),
        }
    }

    /// Waits for what is next, or opens the next turn unless there is a reason to sleep.
    fn go_on(&mut self) -> Vec<Effect<C>> {
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

    fn opened(&mut self, until: Option<Duration>) -> Vec<Effect<C>> {
        self.open_until = until;
        let mut effects = if until.is_some() {
            self.close_at = None;
            vec![Effect::Watch { is_open: true }, Effect::MarkBusy]
        } else {
            vec![Effect::MarkIdle]
        };
        effects.extend(self.listen());
        effects
    }

    fn listen(&mut self) -> Vec<Effect<C>> {
        let is_free = self.open_until.is_none();
        self.wait(Stage::Listening, Effect::Listen { until: self.limit(), is_free, has_more: self.has_more })
    }

    /// Returns until when to wait for what is next.
    fn limit(&self) -> Duration {
        match (self.open_until, &self.stopping) {
            (Some(open), Some((_, until))) => open.min(*until),
            (Some(open), None) => open,
            (None, _) => self.close_at.map_or(self.idle_until, |at| at.min(self.idle_until)),
        }
    }

    /// Ends the turn, which has its answer.
    fn end_turn(&mut self, now: Duration) -> Vec<Effect<C>> {
        self.open_until = None;
        self.close_at = Some(now + CLOSE_AFTER);
        self.idle_until = now + self.idle;
        let mut effects = vec![Effect::EndTurn];
        effects.extend(self.go_on());
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
