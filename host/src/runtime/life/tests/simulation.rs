//! A simulation of an actor without processes: it answers each effect with a possible event, as a script says. After the end of the
//! script every effect succeeds.

use crate::registry::quota::workspace::Over;
use crate::runtime::command::{CommandKind, HasKind, Ticket};
use crate::runtime::life::{Effect, Event, Life};
use crate::runtime::sleep_reason::SleepReason;
use crate::runtime::work::{self, Work};
use crate::sessions::store::{FailureReason, SessionState};
use ironclaw_jail::shortage::Shortage;
use ironclaw_store::error::Error;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::time::Duration;

pub const FAILURES_MAX: u32 = 3;
pub const IDLE: Duration = Duration::from_secs(60);
/// More steps than any script causes.
const STEPS_MAX: usize = 5000;
const TURN_TIME: Duration = Duration::from_secs(30);

pub struct Simulation {
    script: VecDeque<u8>,
    mailbox: VecDeque<Ticket>,
    /// The number of replies to each command or drops of it; a command without a requester needs none.
    pub answers: Vec<(CommandKind, usize)>,
    /// Every event and effect, in order.
    pub trace: Vec<String>,
    pub is_halted: bool,
    pub slot: SlotProgress,
    pub is_launched: bool,
    pub standing: SessionState,
    pub is_gone: bool,
    pub failures: u32,
    /// Turns that were opened, turns that were closed, and messages that wait.
    pub opened: u32,
    pub closed: u32,
    pub waiting: u32,
    now: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotProgress {
    None,
    InLine,
    Held,
}

pub fn script() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..400)
}

pub fn unwritten() -> Error {
    Error::State(ironclaw_state::Error::Unwritten(String::new()))
}

/// Runs a whole life, and returns the simulation at its end.
pub fn simulate(script: Vec<u8>) -> Simulation {
    let mut simulation = Simulation {
        script: script.into(),
        mailbox: VecDeque::new(),
        answers: Vec::new(),
        trace: Vec::new(),
        is_halted: false,
        slot: SlotProgress::None,
        is_launched: false,
        standing: SessionState::Active,
        is_gone: false,
        failures: 0,
        opened: 0,
        closed: 0,
        waiting: 2,
        now: Duration::ZERO,
    };
    // Some lives begin without work.
    simulation.waiting -= u32::from(simulation.chance(3));
    simulation.send(CommandKind::Wake);
    let mut life = Life::new(FAILURES_MAX);
    let mut event = Some(Event::Begun);
    let mut steps = 0;
    while let Some(next) = event.take() {
        steps += 1;
        assert!(steps < STEPS_MAX, "it does not end");
        simulation.note(&next);
        let effects = life.step(next);
        let last = effects.len().checked_sub(1).expect("every event that can come has an effect");
        for (at, effect) in effects.into_iter().enumerate() {
            simulation.note(&effect);
            let is_end = matches!(effect, Effect::End);
            event = simulation.perform(effect);
            assert_eq!(event.is_some() || is_end, at == last, "the last effect, and no other, has a result");
        }
    }
    simulation
}

impl Simulation {
    pub fn note(&mut self, what: &impl std::fmt::Debug) {
        self.trace.push(format!("{what:?}"));
    }

    /// Returns whether the trace has an entry with this prefix.
    pub fn has(&self, what: &str) -> bool {
        self.trace.iter().any(|seen| seen.starts_with(what))
    }

    pub fn is_open(&self) -> bool {
        self.opened > self.closed
    }

    /// Returns a number below `of` from the script, or 0 after its end.
    fn chance(&mut self, of: u8) -> u8 {
        self.script.pop_front().map_or(0, |byte| byte % of)
    }

    fn send(&mut self, ask: CommandKind) {
        self.mailbox.push_back(Ticket(ask, self.answers.len()));
        self.answers.push((ask, 0));
    }

    fn answer(&mut self, ticket: &Ticket) {
        self.answers[ticket.1].1 += 1;
    }

    fn close(&mut self) {
        if self.is_open() {
            self.closed += 1;
        }
    }

    /// Adds external events, which can come at any time: messages, commands, an emergency stop and its end.
    fn pass_time(&mut self) {
        let calm = self.script.is_empty();
        match self.chance(80) {
            1..=5 => {
                let asks = [
                    CommandKind::Stop,
                    CommandKind::Cancel,
                    CommandKind::Release,
                    CommandKind::Respawn,
                    CommandKind::Prove,
                    CommandKind::Wake,
                    CommandKind::Prepare,
                ];
                let ask = self.chance(asks.len() as u8);
                self.send(asks[usize::from(ask)]);
            }
            6 => self.send(CommandKind::Shutdown),
            7 if self.chance(3) == 1 => self.send(CommandKind::Remove),
            8..=12 => {
                self.waiting += 1;
                self.send(CommandKind::Wake);
            }
            13 | 14 => self.is_halted = true,
            15..=20 => self.resume(),
            _ if calm => self.resume(),
            _ => {}
        }
    }

    /// Ends the emergency stop; the session is woken.
    fn resume(&mut self) {
        if std::mem::take(&mut self.is_halted) {
            self.send(CommandKind::Wake);
        }
    }

    fn fails(&mut self) -> Option<Error> {
        match self.chance(60) {
            1 => Some(unwritten()),
            2 => Some(Error::Stopping),
            _ => None,
        }
    }

    fn done_or_failed(&mut self) -> Option<Event<Ticket>> {
        Some(self.fails().map_or(Event::Done, Event::Failed))
    }

    fn shortage(&mut self) -> Option<Shortage> {
        (self.chance(6) == 1).then_some(Shortage::Memory)
    }

    fn next_command(&mut self) -> Option<Event<Ticket>> {
        self.mailbox.pop_front().map(|command| Event::Asked { command, is_halted: self.is_halted })
    }

    fn perform(&mut self, effect: Effect<Ticket>) -> Option<Event<Ticket>> {
        match effect {
            Effect::Show(_) | Effect::Log(_) | Effect::NoteShortage(_) | Effect::EndDrafts => None,
            Effect::Join => self.moves_slot(SlotProgress::None, SlotProgress::InLine),
            Effect::GiveSlotBack => {
                assert!(self.slot != SlotProgress::None, "it is given back once");
                assert!(!self.is_launched, "not before the processes are gone");
                self.slot = SlotProgress::None;
                None
            }
            Effect::DropAwake => {
                assert!(std::mem::take(&mut self.is_launched), "there are resources to drop");
                None
            }
            Effect::SetBackoff(tries) => {
                assert!(tries > 0, "a first try has no wait");
                None
            }
            Effect::Answer(ticket) | Effect::RefuseProof(ticket) | Effect::Abandon(ticket) => {
                self.answer(&ticket);
                None
            }
            Effect::End => {
                assert!(self.slot == SlotProgress::None && !self.is_launched, "all resources are given back");
                None
            }
            effect => {
                self.pass_time();
                self.perform_with_result(effect)
            }
        }
    }

    fn moves_slot(&mut self, from: SlotProgress, to: SlotProgress) -> Option<Event<Ticket>> {
        assert_eq!(std::mem::replace(&mut self.slot, to), from);
        None
    }

    fn perform_with_result(&mut self, effect: Effect<Ticket>) -> Option<Event<Ticket>> {
        match effect {
            Effect::Deliver | Effect::NoteRefusedLaunch(_) => self.done_or_failed(),
            Effect::Find if self.is_gone => Some(Event::Gone),
            Effect::Find => Some(match self.fails() {
                Some(error) => Event::Failed(error),
                None => Event::Found { standing: self.standing, is_halted: self.is_halted },
            }),
            Effect::FindWork => Some(Event::Work(self.is_open() || self.waiting > 0)),
            Effect::Measure => Some(Event::Measured((self.chance(12) == 1).then_some(Over::Bytes))),
            Effect::EndOverBound(_) => {
                self.waiting = if self.is_open() { self.waiting } else { self.waiting.saturating_sub(1) };
                self.close();
                self.done_or_failed()
            }
            Effect::AwaitSlot => self.next_command().or_else(|| {
                let event = if self.is_halted { Event::Halted } else { Event::SlotHeld };
                self.slot = if self.is_halted { self.slot } else { SlotProgress::Held };
                Some(event)
            }),
            Effect::TakeFreeSlot if self.chance(3) == 1 => Some(Event::NoSlot),
            Effect::TakeFreeSlot => {
                self.moves_slot(SlotProgress::None, SlotProgress::Held);
                Some(Event::SlotHeld)
            }
            Effect::CheckRoom => Some(Event::Room(self.shortage())),
            Effect::Launch => Some(self.launch()),
            Effect::Probe(reported) => Some(Event::Probed(reported.or_else(|| self.shortage()))),
            Effect::Work { keeps_attempts } => Some(self.work(keeps_attempts)),
            Effect::EndProcesses(_) => Some(Event::Ended { is_reader_gone: self.chance(6) == 1 }),
            Effect::Drain => Some(Event::Drained((self.chance(6) == 1).then(|| FailureReason::new("a bad row")))),
            Effect::Requeue(_) => {
                self.waiting += u32::from(self.is_open());
                self.close();
                self.done_or_failed()
            }
            Effect::Quarantine(_) => self.halt(SessionState::Quarantined),
            Effect::Park(failures, _) => {
                assert_eq!(failures, FAILURES_MAX);
                self.halt(SessionState::Parked)
            }
            Effect::CheckLauncher => Some(Event::Launcher { is_dead: self.chance(20) == 1 }),
            Effect::CountFailure => {
                self.failures += 1;
                Some(Event::Counted(self.failures))
            }
            Effect::AwaitBackoff => self.next_command().or(Some(Event::TimeOver)),
            Effect::Pause => Some(Event::TimeOver),
            Effect::NoteStop(ticket) => Some(match self.fails() {
                Some(error) => self.fail_with(&ticket, error),
                None => Event::StopNoted(ticket),
            }),
            Effect::RunCommand(ticket) => self.run_command(&ticket),
            Effect::LeaveOrWait => {
                if self.mailbox.is_empty() && self.standing == SessionState::Active && self.chance(8) > 3 {
                    self.send(CommandKind::Prepare);
                }
                if self.mailbox.is_empty() && self.chance(8) > 0 {
                    // Most lives continue: a message or a release comes at this moment.
                    self.waiting += 1;
                    self.send(if self.standing == SessionState::Active {
                        CommandKind::Wake
                    } else {
                        CommandKind::Release
                    });
                }
                self.next_command().or(Some(Event::Left))
            }
            Effect::LeaveRemoved => {
                while let Some(ticket) = self.mailbox.pop_front() {
                    self.answer(&ticket);
                }
                Some(Event::Left)
            }
            other => panic!("{other:?} has no result"),
        }
    }

    fn fail_with(&mut self, ticket: &Ticket, error: Error) -> Event<Ticket> {
        self.answer(ticket);
        Event::Failed(error)
    }

    fn halt(&mut self, standing: SessionState) -> Option<Event<Ticket>> {
        if let Some(error) = self.fails() {
            return Some(Event::Failed(error));
        }
        self.standing = standing;
        self.close();
        Some(Event::Done)
    }

    fn run_command(&mut self, ticket: &Ticket) -> Option<Event<Ticket>> {
        assert!(!self.is_launched, "the session sleeps");
        self.answer(ticket);
        match ticket.kind() {
            CommandKind::Cancel => {
                self.close();
                return self.done_or_failed();
            }
            CommandKind::Release if self.standing != SessionState::Active => {
                (self.standing, self.failures) = (SessionState::Active, 0)
            }
            CommandKind::Remove => (self.is_gone, self.waiting, self.closed) = (true, 0, self.opened),
            _ => {}
        }
        Some(Event::Done)
    }

    fn launch(&mut self) -> Event<Ticket> {
        assert_eq!(self.slot, SlotProgress::Held, "nothing is launched without a slot");
        assert!(!self.is_launched, "there is one sandbox");
        assert_eq!(self.standing, SessionState::Active, "a session out of service is not launched");
        if self.is_halted {
            return Event::Halted;
        }
        let is_violation = match self.chance(8) {
            1 => true,
            2 | 3 => false,
            _ => {
                self.is_launched = true;
                return Event::Launched;
            }
        };
        let reported = self.shortage();
        Event::LaunchFailed { why: FailureReason::new("no"), is_violation, reported, is_halted: self.is_halted }
    }

    /// Runs the work of an awake session.
    fn work(&mut self, keeps_attempts: bool) -> Event<Ticket> {
        assert!(self.is_launched && self.slot == SlotProgress::Held, "work has a sandbox and a slot");
        let mut work = Work::new(IDLE, keeps_attempts);
        let mut event = work::Event::Begun;
        self.now = Duration::ZERO;
        for _ in 0..STEPS_MAX {
            self.note(&event);
            let mut next = None;
            for effect in work.step(self.now, event) {
                self.note(&effect);
                assert!(next.is_none(), "the last effect, and no other, has a result");
                if let work::Effect::Sleep { reason, shutdown } = effect {
                    return Event::Slept {
                        reason,
                        shutdown,
                        is_halted: self.is_halted,
                        keeps_attempts: work.keeps_attempts(),
                    };
                }
                next = self.do_work(effect);
            }
            event = next.expect("every event that can come has an effect");
        }
        panic!("the work does not end");
    }

    fn do_work(&mut self, effect: work::Effect<Ticket>) -> Option<work::Event<Ticket>> {
        use work::{Effect, Event, Opening};
        let event = match effect {
            Effect::Watch { .. } | Effect::MarkBusy | Effect::MarkIdle | Effect::EndTurn => return None,
            Effect::Abandon(ticket) => {
                self.answer(&ticket);
                return None;
            }
            Effect::Drain | Effect::Deliver | Effect::ReplaceReader | Effect::MoveDeadline(_) => self.done_or_slept(),
            Effect::CloseLeftOver { .. } => {
                self.waiting += u32::from(self.is_open());
                self.close();
                self.done_or_slept()
            }
            Effect::CheckSlot => Event::Slot { is_asked_back: self.chance(9) == 1 },
            Effect::OpenTurn => {
                assert!(!self.is_open(), "one turn is open at a time");
                if self.chance(9) == 1 {
                    return Some(Event::Opened(Opening::Undelivered));
                }
                if self.waiting == 0 {
                    return Some(Event::Opened(Opening::NoMessage));
                }
                (self.opened, self.waiting) = (self.opened + 1, self.waiting - 1);
                match self.done_or_slept() {
                    Event::Done => Event::Opened(Opening::Until(self.now + TURN_TIME)),
                    slept => slept,
                }
            }
            Effect::Listen { until, is_free, has_more } => {
                assert_eq!(is_free, !self.is_open(), "it knows whether a turn is open");
                assert!(until <= self.now + IDLE.max(TURN_TIME), "it waits no longer than it may");
                self.pass_time();
                self.listen(until, is_free, has_more)
            }
            Effect::Take => self.take(),
            Effect::MissDeadline => {
                assert!(self.is_open());
                self.close();
                Event::Missed { is_models: self.chance(2) == 1 }
            }
            Effect::EndOverBound(_) => {
                assert!(self.is_open());
                self.close();
                self.done_or_slept()
            }
            Effect::FindEnd => Event::End("its process ended"),
            Effect::Cancel(ticket) => {
                self.answer(&ticket);
                let is_running = self.is_open();
                self.close();
                Event::Cancelled { is_running }
            }
            Effect::Prove(ticket) => {
                self.answer(&ticket);
                self.done_or_slept()
            }
            Effect::Sleep { .. } => return None,
        };
        Some(event)
    }

    fn done_or_slept(&mut self) -> work::Event<Ticket> {
        let reason = match self.chance(80) {
            1 => SleepReason::died("it held a lock"),
            2 => SleepReason::violated("a bad row"),
            3 => SleepReason::Short(Shortage::Disk),
            4 => SleepReason::Broken(unwritten()),
            5 => SleepReason::Broken(Error::Stopping),
            6 => SleepReason::Ended(None),
            _ => return work::Event::Done,
        };
        work::Event::Slept(reason)
    }

    fn take(&mut self) -> work::Event<Ticket> {
        let is_closed = self.chance(3) == 0 && self.is_open();
        if is_closed {
            // An accepted row ends a series of failures.
            self.failures = 0;
            self.close();
        }
        match self.done_or_slept() {
            work::Event::Done => {
                let closed = is_closed.then_some(work::Closed { is_waiting: self.waiting > 0 });
                work::Event::Taken { has_more: self.chance(5) == 1, closed }
            }
            slept => slept,
        }
    }

    fn listen(&mut self, until: Duration, is_free: bool, has_more: bool) -> work::Event<Ticket> {
        use work::Event;
        if self.is_halted {
            return Event::Halted;
        }
        if let Some(ticket) = self.mailbox.pop_front() {
            return Event::Asked(ticket);
        }
        match self.chance(24) {
            1 if is_free => Event::AskedBack,
            2 | 3 => Event::SandboxEnded,
            4 => Event::ReaderEnded,
            5 => Event::Violation("noise"),
            6 => Event::Full(Over::Files),
            7..=11 => Event::Rows,
            _ if has_more || (!is_free && self.chance(3) == 0) => Event::Rows,
            _ => {
                self.now = self.now.max(until);
                Event::TimeOver
            }
        }
    }
}
