//! Decides what the actor of one session does: wait for a slot, launch, let it work, end its processes, wait out a failure, go.
//!
//! Pure: it knows no clock, no process, no lock and not the record. `runtime::actor` performs its effects and tells it what came of
//! them. Next: `runtime::work` for the decisions of an awake session.

mod effect;
mod event;

pub(crate) use effect::{Effect, Ending, Note};
pub(crate) use event::Event;

use crate::error::Error;
use crate::runtime::command::{Ask, Asks, Phase};
use crate::runtime::sleep_reason::SleepReason;
use crate::session::store::{Standing, Why};
use ironclaw_jail::shortage::Shortage;

/// The life of an actor; `C` is a command, which it hands on and never opens.
pub(crate) struct Life<C> {
    stage: Stage<C>,
    /// A command that came while something else was done.
    pending: Option<C>,
    /// The daemon stops; what put the session to sleep comes first.
    shutdown: Option<C>,
    /// Put to sleep by an operator: work waits until the next wake.
    is_held: bool,
    /// The slot: none, in line, or held. A command that comes in line does not cost it.
    slot: Slot,
    /// Whether an awake session is to be dropped.
    is_awake: bool,
    /// Launches and turns in a row that ended on a shortage of the machine.
    shortages: u32,
    /// Whether the open turn ended for no fault of its session: its messages keep their attempts.
    forgives: bool,
    /// The number of failures in a row at which the session is parked.
    failures_max: u32,
}

/// The session's slot among the awake ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    None,
    InLine,
    Held,
}

/// What the actor waits for.
#[derive(Debug)]
enum Stage<C> {
    New,
    /// The end of an effect without another result.
    Doing(Then<C>),
    Finding,
    FindingWork,
    Measuring,
    InLine,
    CheckingRoom,
    Launching,
    /// What is behind a launch that failed.
    ProbingLaunch(Why),
    Working,
    EndingProcesses(SleepReason<C>),
    Draining(SleepReason<C>),
    /// What is behind the end of a sandbox.
    ProbingFailure(Why),
    CheckingLauncher(Setback),
    Counting(Why),
    BackingOff,
    NotingStop,
    Leaving,
    /// What is behind an error of the host.
    ProbingError,
    Pausing,
    Over,
}

/// The step after an effect.
#[derive(Debug)]
enum Then<C> {
    Look,
    Deliver,
    AwaitSlot,
    AwaitBackoff,
    Requeue(SleepReason<C>),
    Settle(SleepReason<C>),
    /// Without processes there is nothing to settle.
    Conclude(SleepReason<C>),
}

/// The reason that the session does not run again at once.
#[derive(Debug)]
enum Setback {
    Shortage(Shortage),
    Failure(Why),
}

impl<C: Asks> Life<C> {
    /// Makes the life of an actor that has not begun; so many failures in a row park its session.
    pub(crate) const fn new(failures_max: u32) -> Self {
        Self {
            stage: Stage::New,
            pending: None,
            shutdown: None,
            is_held: false,
            slot: Slot::None,
            is_awake: false,
            shortages: 0,
            forgives: false,
            failures_max,
        }
    }

    /// Takes an event, and returns what is to be done in this order. An event that cannot come now does not change the stage; a command
    /// in it is abandoned.
    pub(crate) fn step(&mut self, event: Event<C>) -> Vec<Effect<C>> {
        match (std::mem::replace(&mut self.stage, Stage::Over), event) {
            (stage, Event::Failed(error)) if !matches!(stage, Stage::Over) => self.fail(stage, error),
            (Stage::New, Event::Begun) | (Stage::Pausing, Event::TimeOver) => self.deliver(Then::Look),
            (Stage::Doing(then), Event::Done) => self.go_on(then),
            (Stage::Finding, Event::Found { standing, is_halted }) => self.found(standing, is_halted),
            (Stage::Finding, Event::Gone) => self.wait(Stage::Leaving, vec![Effect::LeaveRemoved]),
            (Stage::FindingWork, Event::Work(true)) if self.slot == Slot::None => {
                self.wait(Stage::Measuring, vec![Effect::Measure])
            }
            (Stage::FindingWork, Event::Work(true)) => self.stay_in_line(),
            (Stage::FindingWork, Event::Work(false)) => self.leave_or_wait(),
            // Also after a turn that went over it: nothing is launched into a workspace that has no room.
            (Stage::Measuring, Event::Measured(Some(over))) => {
                self.wait(Stage::Doing(Then::Deliver), vec![Effect::EndOverBound(over)])
            }
            (Stage::Measuring, Event::Measured(None)) => self.join(),
            (Stage::Leaving, Event::Left) => self.end(None),
            (Stage::Leaving, Event::Asked { command, is_halted }) => self.obey(command, is_halted),
            (Stage::Leaving | Stage::InLine, Event::MailboxClosed) => self.end(None),
            (Stage::InLine, Event::Asked { command, .. }) => self.asked_waiting(command, Then::AwaitSlot),
            // Without a slot nothing is launched, also if everything goes on a moment later.
            (Stage::InLine, Event::Halted) => self.give_back_and(Self::look),
            (Stage::InLine, Event::SlotHeld) => {
                self.slot = Slot::Held;
                self.wait(Stage::CheckingRoom, vec![Effect::CheckRoom])
            }
            (Stage::BackingOff, Event::Asked { command, .. }) => self.asked_waiting(command, Then::AwaitBackoff),
            (Stage::BackingOff, Event::MailboxClosed | Event::TimeOver) => self.look(),
            (Stage::NotingStop, Event::StopNoted(command)) => {
                self.is_held = true;
                let mut effects = self.give_back();
                effects.push(Effect::Answer(command));
                self.and_look(effects)
            }
            (Stage::ProbingError, Event::Probed(shortage)) => {
                self.wait(Stage::Pausing, vec![Effect::NoteShortage(shortage), Effect::Pause])
            }
            (stage, event) => self.step_awake(stage, event),
        }
    }

    /// Takes the events of a launch, and those that follow on a failure.
    fn step_awake(&mut self, stage: Stage<C>, event: Event<C>) -> Vec<Effect<C>> {
        match (stage, event) {
            (Stage::CheckingRoom, Event::Room(Some(shortage))) => self.conclude(SleepReason::Short(shortage)),
            (Stage::CheckingRoom, Event::Room(None)) => {
                self.wait(Stage::Launching, vec![Effect::Show(Phase::Starting), Effect::Launch])
            }
            (Stage::Launching, Event::Halted | Event::LaunchFailed { is_halted: true, .. }) => {
                self.conclude(SleepReason::Halted)
            }
            (Stage::Launching, Event::LaunchFailed { why, is_violation: true, .. }) => {
                self.refuse_launch(why.clone(), SleepReason::Violated(why))
            }
            (Stage::Launching, Event::LaunchFailed { why, reported, .. }) => {
                self.wait(Stage::ProbingLaunch(why), vec![Effect::Probe(reported)])
            }
            (Stage::ProbingLaunch(why), Event::Probed(Some(shortage))) => {
                let mut effects = vec![Effect::Log(Note::ShortLaunch(why))];
                effects.extend(self.conclude(SleepReason::Short(shortage)));
                effects
            }
            (Stage::ProbingLaunch(why), Event::Probed(None)) => self.refuse_launch(why.clone(), SleepReason::Died(why)),
            (Stage::Launching, Event::Launched) => {
                self.is_awake = true;
                let work = Effect::Work { forgives: self.forgives };
                self.wait(Stage::Working, vec![Effect::Show(Phase::Awake), Effect::NoteShortage(None), work])
            }
            (Stage::Working, Event::Slept { reason, shutdown, is_halted, forgives }) => {
                (self.shutdown, self.forgives) = (shutdown, forgives);
                // Whatever a killed process looks like: it is no failure of its session.
                self.end_processes(if is_halted && !reason.is_asked() { SleepReason::Halted } else { reason })
            }
            (Stage::ProbingFailure(_), Event::Probed(Some(shortage))) => self.set_back(Setback::Shortage(shortage)),
            (Stage::ProbingFailure(why), Event::Probed(None)) => self.set_back(Setback::Failure(why)),
            // That is no failure of this session's; the host ends with its launcher.
            (Stage::CheckingLauncher(_), Event::Launcher { is_dead: true }) => self.look(),
            (Stage::CheckingLauncher(Setback::Shortage(shortage)), Event::Launcher { .. }) => self.wait_out(shortage),
            (Stage::CheckingLauncher(Setback::Failure(why)), Event::Launcher { .. }) => {
                self.wait(Stage::Counting(why), vec![Effect::CountFailure])
            }
            (Stage::Counting(why), Event::Counted(failures)) if failures >= self.failures_max => {
                self.wait(Stage::Doing(Then::Look), vec![Effect::Park(failures, why)])
            }
            (Stage::Counting(_), Event::Counted(failures)) => self.back_off(Vec::new(), failures),
            (stage, event) => self.step_settling(stage, event),
        }
    }

    /// Takes the events from the end of the sandbox to the last rows.
    fn step_settling(&mut self, stage: Stage<C>, event: Event<C>) -> Vec<Effect<C>> {
        match (stage, event) {
            (Stage::EndingProcesses(reason), Event::Ended { is_reader_gone }) => match reason {
                // What was written in the last moment is taken by the next launch, as after a crash.
                SleepReason::Halted => self.requeue(reason, "everything was stopped"),
                SleepReason::Violated(_) => self.settle(reason),
                reason if is_reader_gone => self.settle(reason),
                reason => self.wait(Stage::Draining(reason), vec![Effect::Drain]),
            },
            (Stage::Draining(reason), Event::Drained(Some(why))) if reason.is_asked() => {
                // The requester is served as well: first the session is quarantined.
                self.wait(Stage::Doing(Then::Requeue(reason)), vec![Effect::Quarantine(why)])
            }
            (Stage::Draining(_), Event::Drained(Some(why))) => self.settle(SleepReason::Violated(why)),
            (Stage::Draining(reason), Event::Drained(None)) if reason.is_orderly() => {
                self.requeue(reason, "put to sleep")
            }
            (Stage::Draining(reason), Event::Drained(None)) => self.settle(reason),
            (stage, event) => {
                self.stage = stage;
                event.into_commands().map(Effect::Abandon).collect()
            }
        }
    }

    fn wait(&mut self, stage: Stage<C>, effects: Vec<Effect<C>>) -> Vec<Effect<C>> {
        self.stage = stage;
        effects
    }

    fn deliver(&mut self, then: Then<C>) -> Vec<Effect<C>> {
        self.wait(Stage::Doing(then), vec![Effect::Deliver])
    }

    fn go_on(&mut self, then: Then<C>) -> Vec<Effect<C>> {
        match then {
            Then::Look => self.look(),
            Then::Deliver => self.deliver(Then::Look),
            Then::AwaitSlot => self.wait(Stage::InLine, vec![Effect::AwaitSlot]),
            Then::AwaitBackoff => self.wait(Stage::BackingOff, vec![Effect::AwaitBackoff]),
            Then::Requeue(reason) => self.requeue(reason, "put to sleep"),
            Then::Settle(reason) => self.settle(reason),
            Then::Conclude(reason) => self.conclude(reason),
        }
    }

    /// Looks at the record again.
    fn look(&mut self) -> Vec<Effect<C>> {
        self.and_look(Vec::new())
    }

    fn and_look(&mut self, mut effects: Vec<Effect<C>>) -> Vec<Effect<C>> {
        effects.extend([Effect::Show(Phase::Asleep), Effect::Find]);
        self.wait(Stage::Finding, effects)
    }

    fn found(&mut self, standing: Standing, is_halted: bool) -> Vec<Effect<C>> {
        if let Some(command) = self.pending.take().or_else(|| self.shutdown.take()) {
            return self.obey(command, is_halted);
        }
        if self.is_held || standing != Standing::Live || is_halted {
            return self.leave_or_wait();
        }
        self.wait(Stage::FindingWork, vec![Effect::FindWork])
    }

    fn leave_or_wait(&mut self) -> Vec<Effect<C>> {
        self.give_back_and(|life| life.wait(Stage::Leaving, vec![Effect::LeaveOrWait]))
    }

    fn join(&mut self) -> Vec<Effect<C>> {
        self.slot = Slot::InLine;
        let mut effects = vec![Effect::Join];
        effects.extend(self.stay_in_line());
        effects
    }

    fn stay_in_line(&mut self) -> Vec<Effect<C>> {
        self.wait(Stage::InLine, vec![Effect::Show(Phase::Waiting), Effect::AwaitSlot])
    }

    /// Takes a command that comes in line or in a backoff: a wake does not end the wait, and what is launched later is launched as the
    /// agent is then.
    fn asked_waiting(&mut self, command: C, then: Then<C>) -> Vec<Effect<C>> {
        match command.ask() {
            Ask::Wake => self.deliver(then),
            Ask::Respawn => self.go_on(then),
            Ask::Stop | Ask::Cancel | Ask::Shutdown | Ask::Release | Ask::Remove | Ask::Prove => {
                self.pending = Some(command);
                self.look()
            }
        }
    }

    /// Does what a command asks of a session that sleeps.
    fn obey(&mut self, command: C, is_halted: bool) -> Vec<Effect<C>> {
        match command.ask() {
            Ask::Wake => {
                self.is_held = false;
                self.deliver(Then::Look)
            }
            Ask::Respawn => self.look(),
            Ask::Stop => self.wait(Stage::NotingStop, vec![Effect::NoteStop(command)]),
            Ask::Shutdown => self.end(Some(Effect::Answer(command))),
            Ask::Cancel => self.wait(Stage::Doing(Then::Deliver), vec![Effect::Obey(command)]),
            Ask::Prove if is_halted => self.and_look(vec![Effect::RefuseProof(command)]),
            Ask::Release | Ask::Remove | Ask::Prove => self.wait(Stage::Doing(Then::Look), vec![Effect::Obey(command)]),
        }
    }

    fn refuse_launch(&mut self, why: Why, reason: SleepReason<C>) -> Vec<Effect<C>> {
        self.wait(Stage::Doing(Then::Conclude(reason)), vec![Effect::NoteRefusedLaunch(why)])
    }

    fn end_processes(&mut self, reason: SleepReason<C>) -> Vec<Effect<C>> {
        let ending = match &reason {
            SleepReason::Halted => Ending::KilledWithReader,
            reason if reason.is_orderly() => Ending::Told,
            _ => Ending::Killed,
        };
        let effects = vec![Effect::EndDrafts, Effect::Show(Phase::Stopping), Effect::EndProcesses(ending)];
        self.wait(Stage::EndingProcesses(reason), effects)
    }

    /// An orderly end in the middle of a turn is no failure: its messages wait, with no attempt used.
    fn requeue(&mut self, reason: SleepReason<C>, why: &'static str) -> Vec<Effect<C>> {
        self.wait(Stage::Doing(Then::Settle(reason)), vec![Effect::Requeue(why)])
    }

    /// The processes are gone.
    fn settle(&mut self, reason: SleepReason<C>) -> Vec<Effect<C>> {
        self.is_awake = false;
        let mut effects = vec![Effect::DropAwake, Effect::Log(Note::Asleep)];
        effects.extend(self.conclude(reason));
        effects
    }

    /// Gives the slot back, then draws the consequences of the reason to sleep.
    fn conclude(&mut self, reason: SleepReason<C>) -> Vec<Effect<C>> {
        self.give_back_and(|life| life.draw_consequences(reason))
    }

    fn draw_consequences(&mut self, reason: SleepReason<C>) -> Vec<Effect<C>> {
        match reason {
            SleepReason::Idle | SleepReason::Yielded | SleepReason::Halted => {
                self.shortages = 0;
                self.look()
            }
            SleepReason::Cancelled => self.deliver(Then::Look),
            SleepReason::Asked(command) => {
                self.pending = Some(command);
                self.look()
            }
            SleepReason::Ended(Some(command)) => self.end(Some(Effect::Answer(command))),
            SleepReason::Ended(None) => self.look(),
            SleepReason::Violated(why) => self.wait(Stage::Doing(Then::Look), vec![Effect::Quarantine(why)]),
            SleepReason::Short(shortage) => self.set_back(Setback::Shortage(shortage)),
            SleepReason::Died(why) => self.wait(Stage::ProbingFailure(why), vec![Effect::Probe(None)]),
            // No failure of the session, and it passes: a full disk, or a lock that another process holds.
            SleepReason::Broken(error) if error.is_unwritten() => self.fail(Stage::Over, error),
            SleepReason::Broken(error) => {
                let (why, reported) = (Why::new("the host failed; its log says how"), Shortage::of(&error));
                let effects = vec![Effect::Log(Note::Stopped(error)), Effect::Probe(reported)];
                self.wait(Stage::ProbingFailure(why), effects)
            }
        }
    }

    fn set_back(&mut self, setback: Setback) -> Vec<Effect<C>> {
        // Before it can be seen that the session is parked.
        let effects = vec![Effect::Show(Phase::Asleep), Effect::CheckLauncher];
        self.wait(Stage::CheckingLauncher(setback), effects)
    }

    /// Waits for what the machine is short of, and tries again: nothing is counted, and the session is never parked for it.
    fn wait_out(&mut self, shortage: Shortage) -> Vec<Effect<C>> {
        self.forgives = true;
        self.shortages = self.shortages.saturating_add(1);
        let effects = vec![Effect::Log(Note::WaitsFor(shortage)), Effect::NoteShortage(Some(shortage))];
        self.back_off(effects, self.shortages)
    }

    fn back_off(&mut self, mut effects: Vec<Effect<C>>, tries: u32) -> Vec<Effect<C>> {
        if self.shutdown.is_some() {
            return self.and_look(effects);
        }
        effects.extend([Effect::SetBackoff(tries), Effect::AwaitBackoff]);
        self.wait(Stage::BackingOff, effects)
    }

    /// Begins anew after a pause: an error of the host, such as a full disk, is not the end of an actor. Only the stop of the daemon
    /// is, which finds the rest at its next start.
    fn fail(&mut self, stage: Stage<C>, error: Error) -> Vec<Effect<C>> {
        let commands: Vec<C> =
            [stage.into_command(), self.pending.take(), self.shutdown.take()].into_iter().flatten().collect();
        let is_stopping = commands.iter().any(|command| command.ask() == Ask::Shutdown);
        let mut effects: Vec<_> = commands.into_iter().map(Effect::Abandon).collect();
        if std::mem::take(&mut self.is_awake) {
            effects.push(Effect::DropAwake);
        }
        effects.extend(self.give_back());
        if is_stopping {
            effects.extend([Effect::Log(Note::Ends(error)), Effect::Show(Phase::Asleep), Effect::End]);
            return self.wait(Stage::Over, effects);
        }
        self.forgives = true;
        let reported = Shortage::of(&error);
        effects.extend([Effect::Log(Note::Waits(error)), Effect::Show(Phase::Asleep), Effect::Probe(reported)]);
        self.wait(Stage::ProbingError, effects)
    }

    fn give_back(&mut self) -> Vec<Effect<C>> {
        let slot = std::mem::replace(&mut self.slot, Slot::None);
        (slot != Slot::None).then_some(Effect::GiveSlotBack).into_iter().collect()
    }

    fn give_back_and(&mut self, then: impl FnOnce(&mut Self) -> Vec<Effect<C>>) -> Vec<Effect<C>> {
        let mut effects = self.give_back();
        effects.extend(then(self));
        effects
    }

    fn end(&mut self, last: Option<Effect<C>>) -> Vec<Effect<C>> {
        let mut effects: Vec<_> = last.into_iter().collect();
        effects.extend([self.pending.take(), self.shutdown.take()].into_iter().flatten().map(Effect::Abandon));
        effects.extend(self.give_back());
        effects.push(Effect::End);
        self.wait(Stage::Over, effects)
    }
}

impl<C> Stage<C> {
    fn into_command(self) -> Option<C> {
        match self {
            Self::Doing(Then::Requeue(reason) | Then::Settle(reason) | Then::Conclude(reason))
            | Self::EndingProcesses(reason)
            | Self::Draining(reason) => reason.into_command(),
            _ => None,
        }
    }
}

impl<C> Event<C> {
    fn into_commands(self) -> impl Iterator<Item = C> {
        let commands = match self {
            Self::Asked { command, .. } | Self::StopNoted(command) => [Some(command), None],
            Self::Slept { reason, shutdown, .. } => [reason.into_command(), shutdown],
            _ => [None, None],
        };
        commands.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests;
