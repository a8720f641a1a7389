//! The actor of a session that is awake or has work: it waits for a slot, starts, is awake, or stops. It exits when its session
//! sleeps, and the next message or command makes a new one.
//!
//! Performs the effects of `runtime::life`, and decides nothing. No work waits in memory only: a restart reads everything from the
//! record. See [`crate::runtime::turn_loop`] for an awake session.

use crate::gateway::requests;
use crate::registry::Identity;
use crate::runtime::actors::{Actors, Start};
use crate::runtime::admission::Slot;
use crate::runtime::command::{ActorView, Command, Phase};
use crate::runtime::launch::{self, Awake};
use crate::runtime::life::{Effect, Ending, Event, Life, Note};
use crate::runtime::shortages::LOOK_EVERY;
use crate::runtime::sleep_reason::SleepReason;
use crate::runtime::{Runtime, shortages};
use crate::sessions::store::{self, FailureReason, Session};
use crate::turns::turn::TurnEnd;
use crate::turns::turn::{self, Close};
use ironclaw_contract::ids::SessionId;
use ironclaw_jail::launcher::Process;
use ironclaw_jail::shortage::Shortage;
use ironclaw_ledger::Entry;
use ironclaw_net::backoff::Backoff;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::State;
use ironclaw_state::home::Home;
use ironclaw_store::error::Error;
use ironclaw_store::tables::facts;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// The time for a sandbox to exit before it is killed.
pub(crate) const EXIT_TIME_MAX: Duration = Duration::from_secs(5);

/// The time of a whole shutdown: a launch in progress, an open turn, two exits and the last rows.
pub(crate) const SHUTDOWN_TIME_MAX: Duration = Duration::from_secs(45);

/// The longest wait between failed launches.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// The wait of an actor after an error of the host.
const RETRY_AFTER: Duration = Duration::from_secs(5);

pub(crate) struct Actor {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) actors: Arc<Actors>,
    pub(crate) id: SessionId,
    pub(crate) mailbox: mpsc::Receiver<Command>,
    pub(crate) shown: Arc<Mutex<ActorView>>,
}

/// The resources of an actor between two effects.
struct Resources {
    /// The session's row, from the last read.
    session: Option<Session>,
    /// The principal of the next turn.
    person: String,
    /// The processes, if any. The field is before the slot, so that they are dropped first.
    awake: Option<Awake>,
    /// A queued request for a slot, then the slot.
    slot: Option<Slot>,
    backoff_until: Instant,
}

/// Runs the whole life of an actor.
pub(crate) async fn run(runtime: Arc<Runtime>, actors: Arc<Actors>, id: SessionId, start: Start) {
    let Start { mailbox, shown } = start;
    let mut life = Life::new(runtime.settings.now().session.launch_attempts_max);
    let mut actor = Actor { runtime, actors, id, mailbox, shown };
    let mut resources =
        Resources { session: None, person: String::new(), slot: None, awake: None, backoff_until: Instant::now() };
    let mut event = Some(Event::Begun);
    while let Some(next) = event.take() {
        for effect in life.step(next) {
            // Only the last effect has a result.
            event = actor.perform(effect, &mut resources).await.unwrap_or_else(|error| Some(Event::Failed(error)));
        }
    }
}

impl Actor {
    /// Performs an effect. Returns its result, if it has one.
    async fn perform(
        &mut self,
        effect: Effect<Command>,
        resources: &mut Resources,
    ) -> Result<Option<Event<Command>>, Error> {
        let home = &self.runtime.jails.home;
        let event = match effect {
            Effect::Deliver => self.deliver().await.map(done)?,
            Effect::Find => self.find(resources).await?,
            Effect::FindWork => self.find_work(resources).await?,
            Effect::Measure => Event::Measured(self.runtime.workspaces.measure(self.id).await),
            Effect::EndOverBound(over) => self.end_over_bound(over).await.map(done)?,
            Effect::AwaitSlot => self.await_slot(resources).await,
            Effect::TakeFreeSlot => self.take_free_slot(resources),
            Effect::CheckRoom => Event::Room(shortages::storage_shortage(home)),
            Effect::Launch => return Ok(self.launch(resources).await),
            Effect::Probe(reported) => Event::Probed(shortages::find(home, reported)),
            Effect::NoteRefusedLaunch(why) => self.record_refused_launch(&why).await.map(done)?,
            Effect::Work { keeps_attempts } => return Ok(self.work_awake(resources, keeps_attempts).await),
            Effect::EndProcesses(ending) => end_processes(resources, ending).await,
            Effect::Drain => self.last_drain(resources).await,
            Effect::Requeue(why) => self.requeue_open_turn(why).await.map(done)?,
            Effect::Quarantine(why) => self.quarantine(&why).await.map(done)?,
            Effect::Park(failures, why) => self.park(failures, &why).await.map(done)?,
            Effect::CheckLauncher => Event::Launcher { is_dead: self.launcher_died().await },
            Effect::CountFailure => self.count_failure().await?,
            Effect::AwaitBackoff => self.await_backoff(resources.backoff_until).await,
            Effect::Pause => self.pause().await,
            Effect::NoteStop(command) => self.record_stop(command).await?,
            Effect::RunCommand(command) => self.run_command(command, resources.session.clone()).await.map(done)?,
            Effect::LeaveOrWait => self.leave_or_wait().await,
            Effect::LeaveRemoved => self.leave_removed().await,
            // Listed one by one, so that the compiler reports a new effect here.
            at_once @ (Effect::Show(_)
            | Effect::Log(_)
            | Effect::Join
            | Effect::GiveSlotBack
            | Effect::NoteShortage(_)
            | Effect::EndDrafts
            | Effect::DropAwake
            | Effect::SetBackoff(_)
            | Effect::Answer(_)
            | Effect::RefuseProof(_)
            | Effect::Abandon(_)
            | Effect::End) => {
                self.perform_at_once(at_once, resources);
                return Ok(None);
            }
        };
        Ok(Some(event))
    }

    /// Performs an effect that has no result.
    fn perform_at_once(&self, effect: Effect<Command>, resources: &mut Resources) {
        match effect {
            Effect::Show(phase) => {
                let process = |awake: &Awake| (awake.sandbox.process(), awake.reader_process.process());
                let (sandbox, reader) = resources.awake.as_ref().map(process).unzip();
                self.show(phase, sandbox, reader);
            }
            Effect::Log(note) => self.log(&note),
            Effect::Join => {
                let session = resources.session.as_ref();
                resources.slot =
                    session.map(|found| self.runtime.admission.join(found.agent, &resources.person, self.id));
            }
            Effect::GiveSlotBack => resources.slot = None,
            Effect::NoteShortage(shortage) => self.actors.record_shortage(&self.shown, shortage),
            Effect::EndDrafts => self.runtime.turns.partial_outputs.end(self.id),
            Effect::DropAwake => {
                resources.awake = None;
                // Not earlier: a request of a stopping sandbox would be refused as late, and the turn would end as failed.
                self.runtime.turns.deadlines.end(self.id);
            }
            Effect::SetBackoff(tries) => resources.backoff_until = Instant::now() + self.backoff(tries),
            Effect::Answer(Command::Stop(_, done) | Command::Shutdown(done) | Command::Prepare(done)) => {
                reply(done, ())
            }
            Effect::RefuseProof(Command::Prove(_, done)) => {
                reply(done, Err("an emergency stop is in force: nothing is launched, not even a self-test".to_owned()));
            }
            // The requester of a dropped command gets the error that the host stops.
            other => drop(other),
        }
    }

    fn log(&self, note: &Note) {
        let session = self.id;
        match note {
            Note::Asleep => tracing::info!(%session, "asleep"),
            Note::ShortLaunch(why) => {
                tracing::warn!(%session, why = why.words, "a launch failed because of a shortage");
            }
            Note::WaitsFor(shortage) => {
                tracing::warn!(%session, shortage = %shortage.code(), "the session waits: {}", shortage.words());
            }
            Note::Ends(error) => tracing::error!(%session, %error, "an error of the host ends the session"),
            Note::Stopped(error) => tracing::error!(%session, %error, "an error of the host stopped the session"),
            Note::Waits(error) => {
                tracing::error!(%session, %error, "the session pauses after an error of the host");
            }
        }
    }

    /// Reads the session's row into the resources.
    async fn find(&self, resources: &mut Resources) -> Result<Event<Command>, Error> {
        let Some(session) = self.session().await? else { return Ok(Event::Gone) };
        let standing = session.standing;
        resources.session = Some(session);
        Ok(Event::Found { standing, is_halted: self.runtime.latch.is_shut() })
    }

    /// Reads the principal of the open turn, or else of the next one.
    async fn find_work(&self, resources: &mut Resources) -> Result<Event<Command>, Error> {
        let id = self.id;
        let person = self.state().read(move |tx| {
            if let Some(open) = turn::open_of(tx, id)? {
                return Ok::<_, Error>(Some(open.principal));
            }
            Ok(turn::choose(&turn::waiting(tx, id)?).first().map(|first| first.principal.clone()))
        });
        let Some(person) = person.await? else { return Ok(Event::Work(false)) };
        resources.person = person;
        Ok(Event::Work(true))
    }

    /// Takes a slot on behalf of the person who began the session.
    fn take_free_slot(&self, resources: &mut Resources) -> Event<Command> {
        let slot = resources.session.as_ref().and_then(|session| {
            let person = session.person.map(|person| Identity::own(person).sender).unwrap_or_default();
            self.runtime.admission.take_free(session.agent, &person, self.id)
        });
        let is_held = slot.is_some();
        resources.slot = slot;
        if is_held { Event::SlotHeld } else { Event::NoSlot }
    }

    /// Waits for a command, the emergency stop or the slot, with priority in this order.
    async fn await_slot(&mut self, resources: &mut Resources) -> Event<Command> {
        let slot = async {
            match &mut resources.slot {
                Some(slot) => slot.held().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            command = self.mailbox.recv() => command_event(command, &self.runtime),
            () = self.runtime.latch.shut() => Event::Halted,
            () = slot => Event::SlotHeld,
        }
    }

    /// Waits for a command, the end of the backoff or the end of a shortage of storage.
    async fn await_backoff(&mut self, until: Instant) -> Event<Command> {
        let relief = relief(&self.actors, &self.shown, &self.runtime.jails.home);
        tokio::select! {
            biased;
            command = self.mailbox.recv() => command_event(command, &self.runtime),
            () = relief => Event::TimeOver,
            () = tokio::time::sleep_until(until) => Event::TimeOver,
        }
    }

    /// Waits after an error of the host, and at most until a shortage of storage ends.
    async fn pause(&self) -> Event<Command> {
        let relief = relief(&self.actors, &self.shown, &self.runtime.jails.home);
        let _ = tokio::time::timeout(RETRY_AFTER, relief).await;
        Event::TimeOver
    }

    /// Leaves if the mailbox is empty, or else takes a command.
    async fn leave_or_wait(&mut self) -> Event<Command> {
        if self.actors.leave(self.id, &self.mailbox) {
            return Event::Left;
        }
        command_event(self.mailbox.recv().await, &self.runtime)
    }

    /// Empties the mailbox of a removed session, then leaves.
    async fn leave_removed(&mut self) -> Event<Command> {
        // A dropped command gives its requester an error.
        while !self.actors.leave(self.id, &self.mailbox) {
            drop(self.mailbox.recv().await);
        }
        Event::Left
    }

    /// Launches the session. An emergency stop cancels the launch.
    async fn launch(&self, resources: &mut Resources) -> Option<Event<Command>> {
        let session = resources.session.as_ref()?;
        let launched = tokio::select! {
            biased;
            () = self.runtime.latch.shut() => return Some(Event::Halted),
            launched = launch::launch(&self.runtime.jails, &self.runtime.models, session) => launched,
        };
        Some(match launched {
            Ok(awake) => {
                let (sandbox, reader) = (awake.sandbox.process(), awake.reader_process.process());
                tracing::info!(session = %self.id, sandbox = sandbox.pid, reader = reader.pid, "awake");
                resources.awake = Some(awake);
                Event::Launched
            }
            Err(error) => Event::LaunchFailed {
                why: error.why(),
                is_violation: error.is_violation(),
                reported: error.shortage(),
                is_halted: self.runtime.latch.is_shut(),
            },
        })
    }

    /// Works until there is a reason to sleep.
    async fn work_awake(&mut self, resources: &mut Resources, keeps_attempts: bool) -> Option<Event<Command>> {
        let (awake, slot) = (resources.awake.as_mut()?, resources.slot.as_mut()?);
        Some(self.work(awake, slot, keeps_attempts).await)
    }

    /// Takes the rows that are left after the sandbox ended.
    async fn last_drain(&mut self, resources: &mut Resources) -> Event<Command> {
        let Some(awake) = &mut resources.awake else { return Event::Drained(None) };
        match self.drain(awake).await {
            Err(SleepReason::Violated(why)) => Event::Drained(Some(why)),
            Err(SleepReason::Broken(error)) => {
                tracing::warn!(session = %self.id, %error, "the last rows of the session wait for its next launch");
                Event::Drained(None)
            }
            Ok(()) | Err(_) => Event::Drained(None),
        }
    }

    /// Runs a command for a sleeping session, and replies.
    async fn run_command(&mut self, command: Command, session: Option<Session>) -> Result<(), Error> {
        let Some(session) = session else { return Ok(()) };
        match command {
            Command::Cancel(by, done) => self.cancel(by, done).await.map(drop)?,
            Command::Release(by, done) => reply(done, self.release(&session, by).await),
            Command::Remove(by, done) => {
                let removed = self.remove(&session, by).await;
                reply(done, removed);
            }
            Command::Prove(by, done) => reply(done, self.prove(&session, by).await),
            Command::Wake | Command::Prepare(_) | Command::Respawn | Command::Stop(..) | Command::Shutdown(_) => {}
        }
        Ok(())
    }

    /// Closes the open turn, if any, with no attempt used.
    async fn requeue_open_turn(&self, why: TurnEnd) -> Result<(), Error> {
        let id = self.id;
        self.state()
            .write(move |tx| {
                let Some(open) = turn::open_of(tx, id)? else { return Ok::<_, Error>(()) };
                let messages = turn::close(tx, &open, Close::Requeued, why)?;
                Ok(turn::refund_attempt(tx, &messages)?)
            })
            .await
    }

    /// Returns whether the launcher died, which ends every jail.
    pub(crate) async fn launcher_died(&self) -> bool {
        tokio::time::timeout(launch::LAUNCHER_END_TIME, self.runtime.jails.launcher.died()).await.is_ok()
    }

    async fn count_failure(&self) -> Result<Event<Command>, Error> {
        let id = self.id;
        let failures = self.state().write(move |tx| Ok::<_, Error>(store::count_failure(tx, id)?)).await?;
        Ok(Event::Counted(failures))
    }

    /// Returns the wait before the next try; it doubles with each try.
    fn backoff(&self, tries: u32) -> Duration {
        let first = Duration::from_millis(self.runtime.settings.now().session.backoff_ms);
        Backoff { first, factor: 2, longest: BACKOFF_MAX }.pause(tries)
    }

    async fn record_refused_launch(&self, why: &FailureReason) -> Result<(), Error> {
        // The detail is from a stranger and may hold content: it is in the encrypted state, for `session show`, and in no log.
        tracing::warn!(session = %self.id, why = why.words, "a launch failed");
        let (id, words) = (self.id, why.words.clone());
        let note = self.state().write(move |tx| {
            Entry::new(LedgerEvent::LaunchRefused).session(id).reason(&words).append(tx)?;
            Ok(())
        });
        note.await
    }

    async fn record_stop(&self, command: Command) -> Result<Event<Command>, Error> {
        if let Command::Stop(by, _) = &command {
            let (id, by) = (self.id, *by);
            let gateway = Arc::clone(&self.runtime.outbound.gateway);
            let note = self.state().write(move |tx| {
                requests::withdraw_approved(tx, &gateway, id, "its session was stopped")?;
                facts::add_stopped_session(tx, id)?;
                Entry::new(LedgerEvent::SessionStopped).session(id).with("by", by).append(tx)?;
                Ok::<_, Error>(())
            });
            note.await?;
        }
        Ok(Event::StopNoted(command))
    }

    pub(crate) fn state(&self) -> &State {
        &self.runtime.turns.record.state
    }

    /// Reads the current row of the session.
    pub(crate) async fn session(&self) -> Result<Option<Session>, Error> {
        let id = self.id;
        self.state().read(move |tx| Ok(store::find(tx, id)?)).await
    }

    /// Sets the visible phase of the actor, and keeps the last progress of the sandbox.
    pub(crate) fn show(&self, phase: Phase, sandbox: Option<Process>, reader: Option<Process>) {
        let mut shown = self.shown.lock().expect("no holder panics");
        let (progress, shortage) = (std::mem::take(&mut shown.progress), shown.shortage);
        *shown = ActorView { phase, sandbox, reader, progress, shortage };
    }
}

/// Waits until a shortage of storage that an actor waits for is over, and clears it. It never ends for an actor without one.
async fn relief(actors: &Actors, shown: &Mutex<ActorView>, home: &Home) {
    let shortage = shown.lock().unwrap_or_else(PoisonError::into_inner).shortage;
    if !shortage.is_some_and(Shortage::is_of_storage) {
        std::future::pending::<()>().await;
    }
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if actors.looks.is_over(home) {
            return actors.record_shortage(shown, None);
        }
    }
}

/// Ends the processes of a session that goes to sleep. The reader stays for the last rows, except in an emergency stop.
async fn end_processes(resources: &mut Resources, ending: Ending) -> Event<Command> {
    let Some(awake) = &mut resources.awake else { return Event::Ended { is_reader_gone: true } };
    awake.hang_up();
    if ending == Ending::KilledWithReader {
        awake.sandbox.kill();
        awake.reader_process.kill();
        let ends = async { tokio::join!(awake.sandbox.exited(), awake.reader_process.exited()) };
        let _ = tokio::time::timeout(EXIT_TIME_MAX, ends).await;
    } else if ending == Ending::Killed || tokio::time::timeout(EXIT_TIME_MAX, awake.sandbox.exited()).await.is_err() {
        awake.sandbox.kill();
        // Process 1 of a jail cannot ignore the signal; if its exit is not reported, the launcher has died.
        let _ = tokio::time::timeout(EXIT_TIME_MAX, awake.sandbox.exited()).await;
    }
    Event::Ended { is_reader_gone: awake.reader_gone }
}

fn command_event(command: Option<Command>, runtime: &Runtime) -> Event<Command> {
    command.map_or(Event::MailboxClosed, |command| Event::Asked { command, is_halted: runtime.latch.is_shut() })
}

const fn done<C>((): ()) -> Event<C> {
    Event::Done
}

fn reply<T>(done: oneshot::Sender<T>, result: T) {
    // The requester may have given up waiting.
    let _ = done.send(result);
}
