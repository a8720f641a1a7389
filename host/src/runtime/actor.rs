//! One actor for a session that is awake or wants to be: waiting for a place, starting, awake, stopping. It goes when its session
//! sleeps, and is made again by the next message or command.
//!
//! Nothing waits in its memory: a restart reads everything from the record. Next: `runtime::turn_loop` for what it does awake.

use crate::error::Error;
use crate::runtime::actors::{Actors, Start};
use crate::runtime::admission::Place;
use crate::runtime::command::{Command, Phase, Shown};
use crate::runtime::launch::{self, Awake};
use crate::runtime::{Runtime, shortages};
use crate::session::store::{self, Session, Standing, Why};
use crate::turns::turn::{self, Close};
use ironclaw_contract::ids::{PersonId, SessionId};
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_jail::launcher::Process;
use ironclaw_jail::shortage::Shortage;
use ironclaw_ledger::Entry;
use ironclaw_model::backoff::Backoff;
use ironclaw_state::State;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// A sandbox that was told to go has this long before it is killed.
pub(crate) const EXIT_TIME_MAX: Duration = Duration::from_secs(5);

/// At a stop of the daemon, an open turn has this long to come to its end.
pub(crate) const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

/// The whole of a shutdown: a launch on its way, an open turn, two exits and the last rows.
pub(crate) const SHUTDOWN_TIME_MAX: Duration = Duration::from_secs(45);

/// Waits between failed launches grow up to this.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// After an error of the host itself, an actor looks again after this long.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// One session's actor.
pub(crate) struct Actor {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) actors: Arc<Actors>,
    pub(crate) id: SessionId,
    pub(crate) mailbox: mpsc::Receiver<Command>,
    pub(crate) shown: Arc<Mutex<Shown>>,
    /// Launches and turns in a row that ended on a shortage of the machine.
    pub(crate) shortages: u32,
    /// Whether the open turn ended on a shortage: its messages keep their attempts.
    pub(crate) forgives: bool,
}

/// Why an awake session went to sleep.
pub(crate) enum Slept {
    /// Nothing to do for a while.
    Idle,
    /// Others need its place more.
    Yielded,
    /// Its turn was ended for no fault of its sandbox, which may still be at it.
    Cancelled,
    /// Everything is stopped.
    Halted,
    /// Somebody asked for what is done asleep.
    Asked(Command),
    /// The daemon stops, or the session is gone.
    Ended(Option<oneshot::Sender<()>>),
    /// The sandbox ended by itself, or was ended for holding a lock or missing a deadline.
    Died(Why),
    /// It broke the contract.
    Violated(Why),
    /// The machine is short of something.
    Short(Shortage),
    /// Something broke on our side.
    Broken(Error),
}

impl<E: Into<Error>> From<E> for Slept {
    fn from(error: E) -> Self {
        Self::Broken(error.into())
    }
}

impl Slept {
    pub(crate) fn died(words: impl Into<String>) -> Self {
        Self::Died(Why::new(words))
    }

    pub(crate) fn violated(words: &'static str) -> Self {
        Self::Violated(Why::new(words))
    }
}

/// The whole life of an actor. An error of the host, such as a full disk, is not the end of it.
pub(crate) async fn run(runtime: Arc<Runtime>, actors: Arc<Actors>, id: SessionId, start: Start) {
    let Start { mailbox, shown } = start;
    let mut actor = Actor { runtime, actors, id, mailbox, shown, shortages: 0, forgives: false };
    while let Err(error) = actor.life().await {
        tracing::error!(session = %id, %error, "the session waits a moment after an error of the host");
        actor.show(Phase::Asleep, None, None);
        actor.forgives = true;
        actor.actors.note_shortage(&actor.shown, shortages::behind(&actor.runtime.jails.home, Shortage::of(&error)));
        tokio::time::sleep(RETRY_AFTER).await;
    }
}

/// What an actor keeps from one step to the next.
struct Life {
    /// A command that came while something else was done.
    pending: Option<Command>,
    /// Put to sleep by an operator: work waits until the next wake.
    held: bool,
    /// A command that comes while it waits costs it no place in the line.
    place: Option<Place>,
}

/// What an actor does next.
enum Step {
    /// Look at the record again.
    Again,
    /// Do what a command asks.
    Obey(Command),
    /// End.
    End,
}

/// What a wait for a place came to.
enum Waited {
    /// The place is there.
    Held,
    /// Everything is stopped.
    Halted,
    /// Somebody asks for something.
    Asked(Command),
    /// Nobody can ask for anything any more.
    Gone,
}

impl Actor {
    async fn life(&mut self) -> Result<(), Error> {
        self.deliver().await?;
        let mut life = Life { pending: None, held: false, place: None };
        loop {
            self.show(Phase::Asleep, None, None);
            let Some(session) = self.session().await? else {
                self.leave_removed().await;
                return Ok(());
            };
            let may_wake = !life.held && session.standing == Standing::Live && !self.runtime.latch.is_shut();
            let step = match life.pending.take() {
                Some(command) => Step::Obey(command),
                None if may_wake && let Some(person) = self.person_waiting().await? => {
                    self.try_to_wake(&session, &person, &mut life).await?
                }
                None => {
                    life.place = None;
                    self.leave_or_wait().await
                }
            };
            let step = match step {
                Step::Obey(command) => self.obey(command, &session, &mut life).await?,
                other => other,
            };
            if matches!(step, Step::End) {
                return Ok(());
            }
        }
    }

    /// Waits until nothing is in the mailbox of a session that is gone.
    async fn leave_removed(&mut self) {
        // Whoever asks for something that is gone hears of it by not being answered.
        while !self.actors.leave(self.id, &self.mailbox) {
            drop(self.mailbox.recv().await);
        }
    }

    /// Goes if the mailbox is empty, or else takes a command.
    async fn leave_or_wait(&mut self) -> Step {
        if self.actors.leave(self.id, &self.mailbox) {
            return Step::End;
        }
        self.mailbox.recv().await.map_or(Step::End, Step::Obey)
    }

    /// Waits for a place, then works until there is a reason to sleep.
    async fn try_to_wake(&mut self, session: &Session, person: &str, life: &mut Life) -> Result<Step, Error> {
        // Also after a turn that went over it: nothing is launched into a workspace that has no room.
        if life.place.is_none()
            && let Some(over) = self.runtime.workspaces.look(self.id).await
        {
            self.end_over_bound(over).await?;
            self.deliver().await?;
            return Ok(Step::Again);
        }
        let join = || self.runtime.places.join(session.agent, person, self.id);
        let mut wish = life.place.take().unwrap_or_else(join);
        match self.wait_for_place(&mut wish).await? {
            Waited::Held => {}
            // Without a place nothing is launched, also if everything goes on a moment later.
            Waited::Halted => return Ok(Step::Again),
            Waited::Asked(command) => {
                life.place = Some(wish);
                life.pending = Some(command);
                return Ok(Step::Again);
            }
            Waited::Gone => return Ok(Step::End),
        }
        let slept = self.wake(session, wish).await?;
        if let Slept::Ended(Some(done)) = slept {
            tell(Some(done));
            return Ok(Step::End);
        }
        life.pending = self.after(slept).await?;
        Ok(Step::Again)
    }

    /// Draws the consequences of why an awake session went to sleep. Returns a command that came meanwhile.
    async fn after(&mut self, slept: Slept) -> Result<Option<Command>, Error> {
        match slept {
            Slept::Idle | Slept::Yielded | Slept::Halted => {
                self.shortages = 0;
                Ok(None)
            }
            Slept::Cancelled => {
                self.deliver().await?;
                Ok(None)
            }
            Slept::Asked(command) => Ok(Some(command)),
            Slept::Ended(done) => {
                tell(done);
                Ok(None)
            }
            Slept::Violated(why) => self.quarantine(&why).await.map(|()| None),
            Slept::Short(shortage) => self.wait_out(shortage).await,
            Slept::Died(why) => self.wait_out_or_count(None, &why).await,
            // Nobody's failure, and it passes: a full disk, or a lock that another process holds.
            Slept::Broken(error) if error.is_unwritten() => Err(error),
            Slept::Broken(error) => {
                tracing::error!(session = %self.id, %error, "the session stopped on an error of the host");
                let why = Why::new("the host failed; its log says how");
                self.wait_out_or_count(Shortage::of(&error), &why).await
            }
        }
    }

    /// Does what a command asks of a session that sleeps.
    async fn obey(&mut self, command: Command, session: &Session, life: &mut Life) -> Result<Step, Error> {
        match command {
            Command::Wake => {
                life.held = false;
                self.deliver().await?;
            }
            Command::Respawn => {}
            Command::Stop(by, done) => {
                self.note_stop(by).await?;
                (life.held, life.place) = (true, None);
                tell(Some(done));
            }
            Command::Shutdown(done) => {
                tell(Some(done));
                return Ok(Step::End);
            }
            Command::Cancel(by, done) => {
                self.cancel(by, done).await?;
                self.deliver().await?;
            }
            Command::Release(by, done) => tell_result(done, self.release(session, by).await),
            Command::Remove(by, done) => {
                let removed = self.remove(session, by).await;
                tell_result(done, removed);
            }
            Command::Prove(_, done) if self.runtime.latch.is_shut() => {
                tell_result(done, Err("everything is stopped: nothing is launched, not even a probe".to_owned()));
            }
            Command::Prove(by, done) => tell_result(done, self.prove(session, by).await),
        }
        Ok(Step::Again)
    }

    /// Waits until the place is there, everything is stopped, or somebody asks for something.
    async fn wait_for_place(&mut self, place: &mut Place) -> Result<Waited, Error> {
        self.show(Phase::Waiting, None, None);
        loop {
            tokio::select! {
                biased;
                command = self.mailbox.recv() => match command {
                    Some(Command::Wake) => self.deliver().await?,
                    // What is launched later is launched as the agent is then.
                    Some(Command::Respawn) => {}
                    Some(command) => return Ok(Waited::Asked(command)),
                    None => return Ok(Waited::Gone),
                },
                () = self.runtime.latch.shut() => return Ok(Waited::Halted),
                () = place.held() => return Ok(Waited::Held),
            }
        }
    }

    /// Launches, works until there is a reason to sleep, and ends the processes. The place is given back after that.
    async fn wake(&mut self, session: &Session, mut place: Place) -> Result<Slept, Error> {
        if let Some(shortage) = shortages::no_room(&self.runtime.jails.home) {
            return Ok(Slept::Short(shortage));
        }
        self.show(Phase::Starting, None, None);
        let launched = tokio::select! {
            biased;
            // What is being launched is ended with the future that waits for it.
            () = self.runtime.latch.shut() => return Ok(Slept::Halted),
            launched = launch::launch(&self.runtime.jails, &self.runtime.models, session) => launched,
        };
        let mut awake = match launched {
            Ok(awake) => awake,
            Err(_) if self.runtime.latch.is_shut() => return Ok(Slept::Halted),
            Err(error) => {
                let why = error.why();
                if !error.is_violation()
                    && let Some(shortage) = shortages::behind(&self.runtime.jails.home, error.shortage())
                {
                    tracing::warn!(session = %self.id, why = why.words, "a launch failed for want of something");
                    return Ok(Slept::Short(shortage));
                }
                // A stranger's detail may hold content: it stands in the encrypted state, for `session show`, and in no log.
                tracing::warn!(session = %self.id, why = why.words, "a launch failed");
                self.note_refused_launch(&why).await?;
                return Ok(if error.is_violation() { Slept::Violated(why) } else { Slept::Died(why) });
            }
        };
        let (sandbox, reader) = (awake.sandbox.process(), awake.reader_process.process());
        tracing::info!(session = %self.id, sandbox = sandbox.pid, reader = reader.pid, "awake");
        self.show(Phase::Awake, Some(sandbox), Some(reader));
        self.actors.note_shortage(&self.shown, None);
        let mut slept = self.work(&mut awake, &mut place).await;
        if self.runtime.latch.is_shut() && !matches!(slept, Slept::Asked(_) | Slept::Ended(_)) {
            // Whatever a killed process looks like: it is nobody's failure.
            slept = Slept::Halted;
        }
        self.runtime.turns.drafts.end(self.id);
        self.show(Phase::Stopping, Some(sandbox), Some(reader));
        let settled = self.settle(awake, slept).await;
        // Not before: a request of a sandbox that is being stopped would be refused as late, and the turn would end as failed.
        self.runtime.turns.deadlines.end(self.id);
        let slept = settled?;
        tracing::info!(session = %self.id, "asleep");
        Ok(slept)
    }

    /// Ends the processes of a session that goes to sleep: the last rows are taken between the sandbox's end and the reader's.
    async fn settle(&mut self, mut awake: Awake, slept: Slept) -> Result<Slept, Error> {
        let orderly = matches!(slept, Slept::Idle | Slept::Yielded | Slept::Asked(_) | Slept::Ended(_));
        awake.hang_up();
        if matches!(slept, Slept::Halted) {
            awake.sandbox.kill();
            awake.reader_process.kill();
            let ends = async { tokio::join!(awake.sandbox.exited(), awake.reader_process.exited()) };
            let _ = tokio::time::timeout(EXIT_TIME_MAX, ends).await;
            // What was written in the last moment is taken by the next launch, as after a crash.
            self.requeue_open_turn("everything was stopped").await?;
            return Ok(slept);
        }
        if !orderly || tokio::time::timeout(EXIT_TIME_MAX, awake.sandbox.exited()).await.is_err() {
            awake.sandbox.kill();
            // Process 1 of a jail cannot ignore it; a launcher that does not report it any more has died.
            let _ = tokio::time::timeout(EXIT_TIME_MAX, awake.sandbox.exited()).await;
        }
        if matches!(slept, Slept::Violated(_)) || awake.reader_gone {
            return Ok(slept);
        }
        match self.drain(&mut awake).await {
            Err(Slept::Violated(why)) => match slept {
                // Whoever asked is served as well: first the session is halted.
                Slept::Asked(_) | Slept::Ended(_) => self.quarantine(&why).await?,
                Slept::Idle
                | Slept::Yielded
                | Slept::Cancelled
                | Slept::Halted
                | Slept::Died(_)
                | Slept::Violated(_)
                | Slept::Short(_)
                | Slept::Broken(_) => return Ok(Slept::Violated(why)),
            },
            Err(Slept::Broken(error)) => {
                tracing::warn!(session = %self.id, %error, "the last rows of the session wait for its next launch");
            }
            Ok(()) | Err(_) => {}
        }
        if orderly {
            self.requeue_open_turn("put to sleep").await?;
        }
        Ok(slept)
    }

    /// An orderly end in the middle of a turn is nobody's failure: its messages wait, with no attempt used.
    async fn requeue_open_turn(&mut self, why: &'static str) -> Result<(), Error> {
        let id = self.id;
        self.state()
            .write(move |tx| {
                let Some(open) = turn::open_of(tx, id)? else { return Ok::<_, Error>(()) };
                let messages = turn::close(tx, &open, Close::Requeued, why)?;
                Ok(turn::forgive(tx, &messages)?)
            })
            .await
    }

    /// Whether what a jail did is only the end of the launcher, which ends every jail.
    pub(crate) async fn launcher_died(&self) -> bool {
        tokio::time::timeout(launch::LAUNCHER_END_TIME, self.runtime.jails.launcher.died()).await.is_ok()
    }

    /// Counts a failure; waits before the next try, or parks the session.
    pub(crate) async fn note_failure(&mut self, why: &Why) -> Result<Option<Command>, Error> {
        // Before anybody can be told that the session is parked.
        self.show(Phase::Asleep, None, None);
        if self.launcher_died().await {
            // That is no failure of this session's; the host ends with its launcher.
            return Ok(None);
        }
        let id = self.id;
        let failures = self.state().write(move |tx| Ok::<_, Error>(store::note_failure(tx, id, true)?)).await?;
        if failures >= self.runtime.config.launch_attempts_max {
            self.park(failures, why).await?;
            return Ok(None);
        }
        self.back_off(failures).await
    }

    /// Waits before the next try; the wait doubles with each one before it. Commands other than a wake interrupt it.
    pub(crate) async fn back_off(&mut self, tries: u32) -> Result<Option<Command>, Error> {
        let first = Duration::from_millis(self.runtime.config.backoff_ms);
        let wait = Backoff { first, factor: 2, longest: BACKOFF_MAX }.pause(tries);
        let until = Instant::now() + wait;
        loop {
            match tokio::time::timeout_at(until, self.mailbox.recv()).await {
                Ok(Some(Command::Wake)) => self.deliver().await?,
                Ok(Some(Command::Respawn)) => {}
                Ok(command) => return Ok(command),
                Err(_) => return Ok(None),
            }
        }
    }

    async fn note_refused_launch(&self, why: &Why) -> Result<(), Error> {
        let (id, words) = (self.id, why.words.clone());
        let note = self.state().write(move |tx| {
            Entry::new(LedgerEvent::LaunchRefused).session(id).reason(&words).append(tx)?;
            Ok(())
        });
        note.await
    }

    async fn note_stop(&self, by: PersonId) -> Result<(), Error> {
        let id = self.id;
        let note = self.state().write(move |tx| {
            Entry::new(LedgerEvent::SessionStopped).session(id).with("by", by).append(tx)?;
            Ok(())
        });
        note.await
    }

    pub(crate) fn state(&self) -> &State {
        &self.runtime.turns.record.state
    }

    /// The session's row, as it is now.
    pub(crate) async fn session(&self) -> Result<Option<Session>, Error> {
        let id = self.id;
        self.state().read(move |tx| Ok(store::find(tx, id)?)).await
    }

    /// On whose behalf the turn is that is open, or else the one that is next; `None` without work.
    async fn person_waiting(&self) -> Result<Option<String>, Error> {
        let id = self.id;
        self.state()
            .read(move |tx| {
                if let Some(open) = turn::open_of(tx, id)? {
                    return Ok(Some(open.principal));
                }
                Ok(turn::choose(&turn::waiting(tx, id)?).first().map(|first| first.principal.clone()))
            })
            .await
    }

    /// Shows where the actor stands; what the sandbox last said of its progress stays.
    pub(crate) fn show(&self, phase: Phase, sandbox: Option<Process>, reader: Option<Process>) {
        let mut shown = self.shown.lock().expect("no holder panics");
        let (progress, shortage) = (std::mem::take(&mut shown.progress), shown.shortage);
        *shown = Shown { phase, sandbox, reader, progress, shortage };
    }
}

fn tell(done: Option<oneshot::Sender<()>>) {
    if let Some(done) = done {
        tell_result(done, ());
    }
}

fn tell_result<T>(done: oneshot::Sender<T>, result: T) {
    // Whoever asked may have given up waiting.
    let _ = done.send(result);
}
