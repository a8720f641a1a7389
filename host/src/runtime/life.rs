//! The decisions of one session's actor: wait for a slot, launch, let the session work, end its processes, wait after a failure, exit.
//!
//! Pure: it has no clock, no process, no lock and no record. [`crate::runtime::actor`] performs the effects and returns the resulting
//! events. See `runtime::work` for the decisions of an awake session.

mod effect;
mod event;
mod stage;

pub(crate) use effect::{Effect, Ending, Note};
pub(crate) use event::Event;

use crate::runtime::command::{CommandKind, HasKind, Phase};
use crate::runtime::sleep_reason::SleepReason;
use crate::sessions::store::{FailureReason, SessionState};
use crate::turns::turn::TurnEnd;
use ironclaw_jail::shortage::Shortage;
use ironclaw_store::error::Error;
use stage::{Setback, SlotProgress, Stage, Then};

/// The life of an actor; `C` is a command, which it passes on and never opens.
pub(crate) struct Life<C> {
    stage: Stage<C>,
    /// A command that came during another effect.
    pending: Option<C>,
    /// The command to wake without work, until the session is awake or cannot be.
    preparing: Option<C>,
    /// The shutdown command of the daemon; the reason to sleep is handled first.
    shutdown: Option<C>,
    /// `true` after an operator stopped the session: work waits until the next wake.
    is_held: bool,
    /// The progress toward a slot. A command that comes while the session waits does not lose the position.
    slot: SlotProgress,
    /// `true` while an awake session has resources to drop.
    is_awake: bool,
    /// Launches and turns in a row that ended because of a shortage of the machine.
    shortages: u32,
    /// `true` if the open turn ended without a fault of its session, so that its messages keep their attempts.
    keeps_attempts: bool,
    /// The number of failures in a row at which the session is parked.
    failures_max: u32,
}

impl<C: HasKind> Life<C> {
    /// Makes the life of a new actor; `failures_max` failures in a row park its session.
    pub(crate) const fn new(failures_max: u32) -> Self {
        Self {
            stage: Stage::New,
            pending: None,
            preparing: None,
            shutdown: None,
            is_held: false,
            slot: SlotProgress::None,
            is_awake: false,
            shortages: 0,
            keeps_attempts: false,
            failures_max,
        }
    }

    /// Takes an event, and returns the effects to perform in this order. An event that cannot come now does not change the stage; a
    /// command in it is abandoned.
    pub(crate) fn step(&mut self, event: Event<C>) -> Vec<Effect<C>> {
        match (std::mem::replace(&mut self.stage, Stage::Over), event) {
            (stage, Event::Failed(error)) if !matches!(stage, Stage::Over) => self.fail(stage, error),
            (Stage::New, Event::Begun) | (Stage::Pausing, Event::TimeOver) => self.deliver(Then::Look),
            (Stage::Doing(then), Event::Done) => self.proceed_with(then),
            (Stage::Finding, Event::Found { standing, is_halted }) => self.found(standing, is_halted),
            (Stage::Finding, Event::Gone) => self.wait(Stage::Leaving, vec![Effect::LeaveRemoved]),
            (Stage::FindingWork, Event::Work(has_work)) => self.found_work(has_work),
            // A session without work has no turn that could get the notice.
            (Stage::Measuring, Event::Measured(Some(_))) if self.preparing.is_some() => self.leave_or_wait(),
            (Stage::Measuring, Event::Measured(None)) if self.preparing.is_some() => {
                self.wait(Stage::TakingFreeSlot, vec![Effect::TakeFreeSlot])
            }
            (Stage::TakingFreeSlot, Event::NoSlot) => self.leave_or_wait(),
            // This also holds after a turn that exceeded the bound: nothing is launched into a full workspace.
            (Stage::Measuring, Event::Measured(Some(over))) => {
                self.wait(Stage::Doing(Then::Deliver), vec![Effect::EndOverBound(over)])
            }
            (Stage::Measuring, Event::Measured(None)) => self.join(),
            (Stage::Leaving, Event::Left) => self.end(None),
            (Stage::Leaving, Event::Asked { command, is_halted }) => self.run_command(command, is_halted),
            (Stage::Leaving | Stage::InLine, Event::MailboxClosed) => self.end(None),
            (Stage::InLine, Event::Asked { command, .. }) => self.command_while_waiting(command, Then::AwaitSlot),
            // Without a slot nothing is launched, even if the emergency stop ends a moment later.
            (Stage::InLine, Event::Halted) => self.give_back_then(Self::find_again),
            (Stage::InLine | Stage::TakingFreeSlot, Event::SlotHeld) => {
                self.slot = SlotProgress::Held;
                self.wait(Stage::CheckingRoom, vec![Effect::CheckRoom])
            }
            (Stage::BackingOff, Event::Asked { command, .. }) => {
                self.command_while_waiting(command, Then::AwaitBackoff)
            }
            (Stage::BackingOff, Event::MailboxClosed | Event::TimeOver) => self.find_again(),
            (Stage::NotingStop, Event::StopNoted(command)) => {
                self.is_held = true;
                let mut effects = self.give_back();
                effects.push(Effect::Answer(command));
                self.look_after(effects)
            }
            (Stage::ProbingError, Event::Probed(shortage)) => {
                self.wait(Stage::Pausing, vec![Effect::NoteShortage(shortage), Effect::Pause])
            }
            (stage, event) => self.step_awake(stage, event),
        }
    }

    /// Takes the events of a launch, and those after a failure.
    fn step_awake(&mut self, stage: Stage<C>, event: Event<C>) -> Vec<Effect<C>> {
        match (stage, event) {
            // Only work waits for the end of a shortage.
            (Stage::CheckingRoom, Event::Room(Some(_))) if self.preparing.is_some() => self.leave_or_wait(),
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
                let work = Effect::Work { keeps_attempts: self.keeps_attempts };
                let mut effects = vec![Effect::Show(Phase::Awake), Effect::NoteShortage(None)];
                effects.extend(self.preparing.take().map(Effect::Answer));
                effects.push(work);
                self.wait(Stage::Working, effects)
            }
            (Stage::Working, Event::Slept { reason, shutdown, is_halted, keeps_attempts }) => {
                (self.shutdown, self.keeps_attempts) = (shutdown, keeps_attempts);
                // The end of a killed process may look like a crash, but it is no failure of its session.
                self.end_processes(if is_halted && !reason.is_asked() { SleepReason::Halted } else { reason })
            }
            (Stage::ProbingFailure(_), Event::Probed(Some(shortage))) => self.set_back(Setback::Shortage(shortage)),
            (Stage::ProbingFailure(why), Event::Probed(None)) => self.set_back(Setback::Failure(why)),
            // This is no failure of the session; the host ends with its launcher.
            (Stage::CheckingLauncher(_), Event::Launcher { is_dead: true }) => self.find_again(),
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
                // The next launch takes the last rows, as after a crash.
                SleepReason::Halted => self.requeue(reason, TurnEnd::Stopped),
                SleepReason::Violated(_) => self.drop_resources(reason),
                reason if is_reader_gone => self.drop_resources(reason),
                reason => self.wait(Stage::Draining(reason), vec![Effect::Drain]),
            },
            (Stage::Draining(reason), Event::Drained(Some(why))) if reason.is_asked() => {
                // First the session is quarantined, then the command is served.
                self.wait(Stage::Doing(Then::Requeue(reason)), vec![Effect::Quarantine(why)])
            }
            (Stage::Draining(_), Event::Drained(Some(why))) => self.drop_resources(SleepReason::Violated(why)),
            (Stage::Draining(reason), Event::Drained(None)) if reason.is_orderly() => {
                self.requeue(reason, TurnEnd::PutToSleep)
            }
            (Stage::Draining(reason), Event::Drained(None)) => self.drop_resources(reason),
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

    fn proceed_with(&mut self, then: Then<C>) -> Vec<Effect<C>> {
        match then {
            Then::Look => self.find_again(),
            Then::Deliver => self.deliver(Then::Look),
            Then::AwaitSlot => self.wait(Stage::InLine, vec![Effect::AwaitSlot]),
            Then::AwaitBackoff => self.wait(Stage::BackingOff, vec![Effect::AwaitBackoff]),
            Then::Requeue(reason) => self.requeue(reason, TurnEnd::PutToSleep),
            Then::Settle(reason) => self.drop_resources(reason),
            Then::Conclude(reason) => self.conclude(reason),
        }
    }

    /// Reads the session's row again.
    fn find_again(&mut self) -> Vec<Effect<C>> {
        self.look_after(Vec::new())
    }

    fn look_after(&mut self, mut effects: Vec<Effect<C>>) -> Vec<Effect<C>> {
        effects.extend([Effect::Show(Phase::Asleep), Effect::Find]);
        self.wait(Stage::Finding, effects)
    }

    fn found(&mut self, standing: SessionState, is_halted: bool) -> Vec<Effect<C>> {
        if let Some(command) = self.pending.take().or_else(|| self.shutdown.take()) {
            return self.run_command(command, is_halted);
        }
        if self.is_held || standing != SessionState::Active || is_halted {
            return self.leave_or_wait();
        }
        self.wait(Stage::FindingWork, vec![Effect::FindWork])
    }

    fn found_work(&mut self, has_work: bool) -> Vec<Effect<C>> {
        if !has_work && self.preparing.is_none() {
            return self.leave_or_wait();
        }
        // Work has its own place in the line.
        let command = if has_work { self.preparing.take() } else { None };
        let mut effects: Vec<_> = command.map(Effect::Abandon).into_iter().collect();
        effects.extend(if self.slot == SlotProgress::None {
            self.wait(Stage::Measuring, vec![Effect::Measure])
        } else {
            self.stay_in_line()
        });
        effects
    }

    fn leave_or_wait(&mut self) -> Vec<Effect<C>> {
        self.give_back_then(|life| life.wait(Stage::Leaving, vec![Effect::LeaveOrWait]))
    }

    fn join(&mut self) -> Vec<Effect<C>> {
        self.slot = SlotProgress::InLine;
        let mut effects = vec![Effect::Join];
        effects.extend(self.stay_in_line());
        effects
    }

    fn stay_in_line(&mut self) -> Vec<Effect<C>> {
        self.wait(Stage::InLine, vec![Effect::Show(Phase::Waiting), Effect::AwaitSlot])
    }

    /// Takes a command during the wait for a slot or a backoff. A wake does not end the wait. A respawn needs no action, because a later
    /// launch uses the agent's current settings.
    fn command_while_waiting(&mut self, command: C, then: Then<C>) -> Vec<Effect<C>> {
        match command.kind() {
            CommandKind::Wake => self.deliver(then),
            CommandKind::Respawn => self.proceed_with(then),
            CommandKind::Prepare => {
                let mut effects = vec![Effect::Abandon(command)];
                effects.extend(self.proceed_with(then));
                effects
            }
            CommandKind::Stop
            | CommandKind::Cancel
            | CommandKind::Shutdown
            | CommandKind::Release
            | CommandKind::Remove
            | CommandKind::Prove => {
                self.pending = Some(command);
                self.find_again()
            }
        }
    }

    /// Runs a command for a sleeping session.
    fn run_command(&mut self, command: C, is_halted: bool) -> Vec<Effect<C>> {
        match command.kind() {
            CommandKind::Wake => {
                self.is_held = false;
                self.deliver(Then::Look)
            }
            CommandKind::Respawn => self.find_again(),
            CommandKind::Prepare => {
                let before = self.preparing.replace(command);
                self.look_after(before.map(Effect::Abandon).into_iter().collect())
            }
            CommandKind::Stop => self.wait(Stage::NotingStop, vec![Effect::NoteStop(command)]),
            CommandKind::Shutdown => self.end(Some(Effect::Answer(command))),
            CommandKind::Cancel => self.wait(Stage::Doing(Then::Deliver), vec![Effect::RunCommand(command)]),
            CommandKind::Prove if is_halted => self.look_after(vec![Effect::RefuseProof(command)]),
            CommandKind::Release | CommandKind::Remove | CommandKind::Prove => {
                self.wait(Stage::Doing(Then::Look), vec![Effect::RunCommand(command)])
            }
        }
    }

    fn refuse_launch(&mut self, why: FailureReason, reason: SleepReason<C>) -> Vec<Effect<C>> {
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

    /// Requeues the messages of an open turn with no attempt used: an orderly end in the middle of a turn is no failure.
    fn requeue(&mut self, reason: SleepReason<C>, why: TurnEnd) -> Vec<Effect<C>> {
        self.wait(Stage::Doing(Then::Settle(reason)), vec![Effect::Requeue(why)])
    }

    /// Drops the resources of the ended processes.
    fn drop_resources(&mut self, reason: SleepReason<C>) -> Vec<Effect<C>> {
        self.is_awake = false;
        let mut effects = vec![Effect::DropAwake, Effect::Log(Note::Asleep)];
        effects.extend(self.conclude(reason));
        effects
    }

    /// Gives the slot back, then acts on the reason to sleep.
    fn conclude(&mut self, reason: SleepReason<C>) -> Vec<Effect<C>> {
        self.give_back_then(|life| life.act_on(reason))
    }

    fn act_on(&mut self, reason: SleepReason<C>) -> Vec<Effect<C>> {
        match reason {
            SleepReason::Idle | SleepReason::Halted => {
                self.shortages = 0;
                self.find_again()
            }
            // A wake may have come just before, and its answers are not delivered.
            SleepReason::Yielded => {
                self.shortages = 0;
                self.deliver(Then::Look)
            }
            SleepReason::Cancelled => self.deliver(Then::Look),
            SleepReason::Asked(command) => {
                self.pending = Some(command);
                self.find_again()
            }
            SleepReason::Ended(Some(command)) => self.end(Some(Effect::Answer(command))),
            SleepReason::Ended(None) => self.find_again(),
            SleepReason::Violated(why) => self.wait(Stage::Doing(Then::Look), vec![Effect::Quarantine(why)]),
            SleepReason::Short(shortage) => self.set_back(Setback::Shortage(shortage)),
            SleepReason::Died(why) => self.wait(Stage::ProbingFailure(why), vec![Effect::Probe(None)]),
            // No failure of the session, and temporary: a full disk, or a lock of another process.
            SleepReason::Broken(error) if error.is_unwritten() => self.fail(Stage::Over, error),
            SleepReason::Broken(error) => {
                let (why, reported) =
                    (FailureReason::new("the host failed; its log has the cause"), Shortage::find_in(&error));
                let effects = vec![Effect::Log(Note::Stopped(error)), Effect::Probe(reported)];
                self.wait(Stage::ProbingFailure(why), effects)
            }
        }
    }

    fn set_back(&mut self, setback: Setback) -> Vec<Effect<C>> {
        // The view changes to asleep before the session shows as parked.
        let effects = vec![Effect::Show(Phase::Asleep), Effect::CheckLauncher];
        self.wait(Stage::CheckingLauncher(setback), effects)
    }

    /// Waits for the end of a shortage, and retries. A shortage is never counted as a failure and parks no session.
    fn wait_out(&mut self, shortage: Shortage) -> Vec<Effect<C>> {
        self.keeps_attempts = true;
        self.shortages = self.shortages.saturating_add(1);
        let effects = vec![Effect::Log(Note::WaitsFor(shortage)), Effect::NoteShortage(Some(shortage))];
        self.back_off(effects, self.shortages)
    }

    fn back_off(&mut self, mut effects: Vec<Effect<C>>, tries: u32) -> Vec<Effect<C>> {
        if self.shutdown.is_some() {
            return self.look_after(effects);
        }
        effects.extend([Effect::SetBackoff(tries), Effect::AwaitBackoff]);
        self.wait(Stage::BackingOff, effects)
    }

    /// Restarts after a pause: an error of the host, such as a full disk, does not end the actor. During a stop of the daemon it does; the
    /// next start finds the rest.
    fn fail(&mut self, stage: Stage<C>, error: Error) -> Vec<Effect<C>> {
        let commands: Vec<C> =
            [stage.into_command(), self.pending.take(), self.shutdown.take()].into_iter().flatten().collect();
        let is_stopping = commands.iter().any(|command| command.kind() == CommandKind::Shutdown);
        let mut effects: Vec<_> = commands.into_iter().map(Effect::Abandon).collect();
        if std::mem::take(&mut self.is_awake) {
            effects.push(Effect::DropAwake);
        }
        effects.extend(self.give_back());
        if is_stopping {
            effects.extend([Effect::Log(Note::Ends(error)), Effect::Show(Phase::Asleep), Effect::End]);
            return self.wait(Stage::Over, effects);
        }
        self.keeps_attempts = true;
        let reported = Shortage::find_in(&error);
        effects.extend([Effect::Log(Note::Waits(error)), Effect::Show(Phase::Asleep), Effect::Probe(reported)]);
        self.wait(Stage::ProbingError, effects)
    }

    /// Gives the slot back. A session that was waked without work is not waked again.
    fn give_back(&mut self) -> Vec<Effect<C>> {
        let slot = std::mem::replace(&mut self.slot, SlotProgress::None);
        let mut effects: Vec<_> = self.preparing.take().map(Effect::Abandon).into_iter().collect();
        effects.extend((slot != SlotProgress::None).then_some(Effect::GiveSlotBack));
        effects
    }

    fn give_back_then(&mut self, then: impl FnOnce(&mut Self) -> Vec<Effect<C>>) -> Vec<Effect<C>> {
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
