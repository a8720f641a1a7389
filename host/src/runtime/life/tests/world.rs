//! A world without processes, in which an actor lives: it answers each effect with an event that can come of it, as a script says.
//! After the end of the script everything goes well.

use crate::error::Error;
use crate::quota::workspace::Over;
use crate::runtime::command::{Ask, Asks, Ticket};
use crate::runtime::life::{Effect, Event, Life};
use crate::runtime::sleep_reason::SleepReason;
use crate::runtime::work::{self, Work};
use crate::session::store::{Standing, Why};
use ironclaw_jail::shortage::Shortage;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::time::Duration;

pub const FAILURES_MAX: u32 = 3;
pub const IDLE: Duration = Duration::from_secs(60);
/// More than any script leads to.
const STEPS_MAX: usize = 5000;
const TURN_TIME: Duration = Duration::from_secs(30);

pub struct World {
    script: VecDeque<u8>,
    mailbox: VecDeque<Ticket>,
    /// How often each command was answered or dropped; none is expected for one that needs no answer.
    pub answers: Vec<(Ask, usize)>,
    /// Every event and effect, in order.
    pub trace: Vec<String>,
    pub is_halted: bool,
    pub slot: Slot,
    pub is_launched: bool,
    pub standing: Standing,
    pub is_gone: bool,
    pub failures: u32,
    /// Turns that were opened, turns that were closed, and messages that wait.
    pub opened: u32,
    pub closed: u32,
    pub waiting: u32,
    now: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
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

/// Lives a whole life, and returns the world at its end.
pub fn live(script: Vec<u8>) -> World {
    let mut world = World {
        script: script.into(),
        mailbox: VecDeque::new(),
        answers: Vec::new(),
        trace: Vec::new(),
        is_halted: false,
        slot: Slot::None,
        is_launched: false,
        standing: Standing::Live,
        is_gone: false,
        failures: 0,
        opened: 0,
        closed: 0,
        waiting: 2,
        now: Duration::ZERO,
    };
    world.send(Ask::Wake);
    let mut life = Life::new(FAILURES_MAX);
    let mut event = Some(Event::Begun);
    let mut steps = 0;
    while let Some(next) = event.take() {
        steps += 1;
        assert!(steps < STEPS_MAX, "it does not end");
        world.note(&next);
        let effects = life.step(next);
        let last = effects.len().checked_sub(1).expect("every event that can come has an effect");
        for (at, effect) in effects.into_iter().enumerate() {
            world.note(&effect);
            let is_end = matches!(effect, Effect::End);
            event = world.perform(effect);
            assert_eq!(event.is_some() || is_end, at == last, "the last effect, and no other, has a result");
        }
    }
    world
}

impl World {
    pub fn note(&mut self, what: &impl std::fmt::Debug) {
        self.trace.push(format!("{what:?}"));
    }

    /// Whether something was ever noted that begins so.
    pub fn has(&self, what: &str) -> bool {
        self.trace.iter().any(|seen| seen.starts_with(what))
    }

    pub fn is_open(&self) -> bool {
        self.opened > self.closed
    }

    /// One of so many, as the script says; the first one at its end.
    fn chance(&mut self, of: u8) -> u8 {
        self.script.pop_front().map_or(0, |byte| byte % of)
    }

    fn send(&mut self, ask: Ask) {
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

    /// What comes from outside at any time: messages, commands, an emergency stop and its end.
    fn pass_time(&mut self) {
        let calm = self.script.is_empty();
        match self.chance(80) {
            1..=5 => {
                let asks = [Ask::Stop, Ask::Cancel, Ask::Release, Ask::Respawn, Ask::Prove, Ask::Wake];
                let ask = self.chance(asks.len() as u8);
                self.send(asks[usize::from(ask)]);
            }
            6 => self.send(Ask::Shutdown),
            7 if self.chance(3) == 1 => self.send(Ask::Remove),
            8..=12 => {
                self.waiting += 1;
                self.send(Ask::Wake);
            }
            13 | 14 => self.is_halted = true,
            15..=20 => self.resume(),
            _ if calm => self.resume(),
            _ => {}
        }
    }

    /// Ends the emergency stop; whatever has work is woken.
    fn resume(&mut self) {
        if std::mem::take(&mut self.is_halted) {
            self.send(Ask::Wake);
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

    fn heard(&mut self) -> Option<Event<Ticket>> {
        self.mailbox.pop_front().map(|command| Event::Asked { command, is_halted: self.is_halted })
    }

    fn perform(&mut self, effect: Effect<Ticket>) -> Option<Event<Ticket>> {
        match effect {
            Effect::Show(_) | Effect::Log(_) | Effect::NoteShortage(_) | Effect::EndDrafts => None,
            Effect::Join => self.moves_slot(Slot::None, Slot::InLine),
            Effect::GiveSlotBack => {
                assert!(self.slot != Slot::None, "it is given back once");
                assert!(!self.is_launched, "not before the processes are gone");
                self.slot = Slot::None;
                None
            }
            Effect::DropAwake => {
                assert!(std::mem::take(&mut self.is_launched), "there is something to drop");
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
                assert!(self.slot == Slot::None && !self.is_launched, "nothing is left behind");
                None
            }
            effect => {
                self.pass_time();
                self.perform_with_result(effect)
            }
        }
    }

    fn moves_slot(&mut self, from: Slot, to: Slot) -> Option<Event<Ticket>> {
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
            Effect::AwaitSlot => self.heard().or_else(|| {
                let event = if self.is_halted { Event::Halted } else { Event::SlotHeld };
                self.slot = if self.is_halted { self.slot } else { Slot::Held };
                Some(event)
            }),
            Effect::CheckRoom => Some(Event::Room(self.shortage())),
            Effect::Launch => Some(self.launch()),
            Effect::Probe(reported) => Some(Event::Probed(reported.or_else(|| self.shortage()))),
            Effect::Work { forgives } => Some(self.work(forgives)),
            Effect::EndProcesses(_) => Some(Event::Ended { is_reader_gone: self.chance(6) == 1 }),
            Effect::Drain => Some(Event::Drained((self.chance(6) == 1).then(|| Why::new("a bad row")))),
            Effect::Requeue(_) => {
                self.waiting += u32::from(self.is_open());
                self.close();
                self.done_or_failed()
            }
            Effect::Quarantine(_) => self.halt(Standing::Quarantined),
            Effect::Park(failures, _) => {
                assert_eq!(failures, FAILURES_MAX);
                self.halt(Standing::Parked)
            }
            Effect::CheckLauncher => Some(Event::Launcher { is_dead: self.chance(20) == 1 }),
            Effect::CountFailure => {
                self.failures += 1;
                Some(Event::Counted(self.failures))
            }
            Effect::AwaitBackoff => self.heard().or(Some(Event::TimeOver)),
            Effect::Pause => Some(Event::TimeOver),
            Effect::NoteStop(ticket) => Some(match self.fails() {
                Some(error) => self.fail_with(&ticket, error),
                None => Event::StopNoted(ticket),
            }),
            Effect::Obey(ticket) => self.obey(&ticket),
            Effect::LeaveOrWait => {
                if self.mailbox.is_empty() && self.chance(8) > 0 {
                    // Most lives go on: the session is asked for something just then, or is released.
                    self.waiting += 1;
                    self.send(if self.standing == Standing::Live { Ask::Wake } else { Ask::Release });
                }
                self.heard().or(Some(Event::Left))
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

    fn halt(&mut self, standing: Standing) -> Option<Event<Ticket>> {
        if let Some(error) = self.fails() {
            return Some(Event::Failed(error));
        }
        self.standing = standing;
        self.close();
        Some(Event::Done)
    }

    fn obey(&mut self, ticket: &Ticket) -> Option<Event<Ticket>> {
        assert!(!self.is_launched, "it is done asleep");
        self.answer(ticket);
        match ticket.ask() {
            Ask::Cancel => {
                self.close();
                return self.done_or_failed();
            }
            Ask::Release if self.standing != Standing::Live => (self.standing, self.failures) = (Standing::Live, 0),
            Ask::Remove => (self.is_gone, self.waiting, self.closed) = (true, 0, self.opened),
            _ => {}
        }
        Some(Event::Done)
    }

    fn launch(&mut self) -> Event<Ticket> {
        assert_eq!(self.slot, Slot::Held, "nothing is launched without a slot");
        assert!(!self.is_launched, "there is one sandbox");
        assert_eq!(self.standing, Standing::Live, "a session out of service is not launched");
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
        Event::LaunchFailed { why: Why::new("no"), is_violation, reported, is_halted: self.is_halted }
    }

    /// Runs the work of an awake session in this world.
    fn work(&mut self, forgives: bool) -> Event<Ticket> {
        assert!(self.is_launched && self.slot == Slot::Held, "work has a sandbox and a slot");
        let mut work = Work::new(IDLE, forgives);
        let mut event = work::Event::Begun;
        self.now = Duration::ZERO;
        for _ in 0..STEPS_MAX {
            self.note(&event);
            let mut next = None;
            for effect in work.step(self.now, event) {
                self.note(&effect);
                assert!(next.is_none(), "the last effect, and no other, has a result");
                if let work::Effect::Sleep { reason, shutdown } = effect {
                    return Event::Slept { reason, shutdown, is_halted: self.is_halted, forgives: work.forgives() };
                }
                next = self.do_work(effect);
            }
            event = next.expect("every event that can come has an effect");
        }
        panic!("the work does not end");
    }

    fn do_work(&mut self, effect: work::Effect<Ticket>) -> Option<work::Event<Ticket>> {
        use work::{Effect, Event};
        let event = match effect {
            Effect::Watch { .. } | Effect::MarkBusy | Effect::MarkIdle | Effect::EndTurn => return None,
            Effect::Abandon(ticket) => {
                self.answer(&ticket);
                return None;
            }
            Effect::Drain | Effect::Deliver | Effect::ProjectReceipts | Effect::ReplaceReader | Effect::CloseTurn => {
                self.done_or_slept()
            }
            Effect::CloseLeftOver { .. } => {
                self.waiting += u32::from(self.is_open());
                self.close();
                self.done_or_slept()
            }
            Effect::CheckSlot => Event::Slot { is_asked_back: self.chance(9) == 1 },
            Effect::OpenTurn => {
                assert!(!self.is_open(), "one turn is open at a time");
                if self.waiting == 0 {
                    return Some(Event::Opened(None));
                }
                (self.opened, self.waiting) = (self.opened + 1, self.waiting - 1);
                match self.done_or_slept() {
                    Event::Done => Event::Opened(Some(self.now + TURN_TIME)),
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
            // A row that was accepted ends a series of failures.
            self.failures = 0;
            self.close();
        }
        match self.done_or_slept() {
            work::Event::Done => work::Event::Taken { has_more: self.chance(5) == 1, is_closed },
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
