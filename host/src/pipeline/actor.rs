//! One actor a session: asleep, starting, awake, stopping; it opens turns, hears bells, and never polls.
//!
//! Nothing waits in its memory: a restart reads everything from the record. Next: `pipeline::launch`, `pipeline::accept`.

use super::accept::{self, Accepted};
use super::launch::{self, Awake};
use super::{Core, Error};
use crate::custody::ContentKey;
use crate::delivery;
use crate::failpoint;
use crate::launcher::Process;
use crate::reader;
use crate::session::link::Rung;
use crate::session::projection::{self, Inbound};
use crate::session::store::{self, Session, Standing};
use crate::turn::{self, Close, Opened};
use ironclaw_contract::ids::{MessageId, SessionId, TurnId};
use ironclaw_contract::operator::Attempt;
use ironclaw_contract::seam::inbound::Turn as TurnRow;
use ironclaw_contract::seam::outbound::{EndReason, Progress};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// A sandbox that was told to go has this long before it is killed.
const EXIT_TIME_MAX: Duration = Duration::from_secs(5);

/// At a stop of the daemon, an open turn has this long to come to its end.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

/// Waits between failed launches grow up to this.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// What an actor is asked.
pub enum Command {
    /// Look at your work.
    Wake,
    /// Sleep now; an open turn is closed and its messages wait.
    Stop(oneshot::Sender<()>),
    /// The daemon stops: let an open turn end, then sleep and end.
    Shutdown(oneshot::Sender<()>),
    /// Leave the parked or quarantined state.
    Release(oneshot::Sender<Result<(), String>>),
    /// Erase the session.
    Remove(oneshot::Sender<Result<(), String>>),
    /// Launch the probe under this session's walls.
    Prove(oneshot::Sender<Result<Vec<Attempt>, String>>),
}

/// Where an actor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// No process.
    #[default]
    Asleep,
    /// Being launched.
    Starting,
    /// Working or waiting for work.
    Awake,
    /// Being put to sleep.
    Stopping,
}

/// What is shown of an actor.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// Where it stands.
    pub phase: Phase,
    /// The sandbox's process.
    pub sandbox: Option<Process>,
    /// The reader's process.
    pub reader: Option<Process>,
    /// What the sandbox says of its progress; without authority.
    pub progress: Vec<Progress>,
}

/// How others reach an actor.
#[derive(Clone)]
pub struct Handle {
    /// Its mailbox.
    pub commands: mpsc::Sender<Command>,
    /// What is shown of it.
    pub shown: Arc<Mutex<Shown>>,
}

struct Actor {
    core: Arc<Core>,
    id: SessionId,
    mailbox: mpsc::Receiver<Command>,
    shown: Arc<Mutex<Shown>>,
}

/// Why an awake session went to sleep.
enum Slept {
    /// Nothing to do for a while, or somebody asked; whoever asked is told.
    Asked(Option<oneshot::Sender<()>>),
    /// The daemon stops, or the session is gone; whoever asked is told.
    Ended(Option<oneshot::Sender<()>>),
    /// The sandbox ended by itself, or was killed for holding a lock or missing a deadline.
    Died(String),
    /// It broke the contract.
    Violated(String),
    /// Something broke on our side.
    Broken(Error),
    /// Somebody asked for what can only be done asleep.
    Then(Command),
}

/// The whole life of an actor.
pub async fn run(core: Arc<Core>, id: SessionId, mailbox: mpsc::Receiver<Command>, shown: Arc<Mutex<Shown>>) {
    let mut actor = Actor { core, id, mailbox, shown };
    if let Err(error) = actor.life().await {
        tracing::error!(session = %id, %error, "the session's actor ended");
    }
}

impl Actor {
    async fn life(&mut self) -> Result<(), Error> {
        self.deliver().await?;
        let mut pending = None;
        loop {
            self.show(Phase::Asleep, None, None);
            let session = match self.session().await? {
                Some(session) => session,
                None => return Ok(()),
            };
            let work = session.standing == Standing::Live && self.has_work().await?;
            let command = match pending.take() {
                Some(command) => Some(command),
                None if work => None,
                None => match self.mailbox.recv().await {
                    Some(command) => Some(command),
                    None => return Ok(()),
                },
            };
            match command {
                Some(Command::Wake) => continue,
                Some(Command::Stop(done)) => tell(Some(done)),
                Some(Command::Shutdown(done)) => {
                    tell(Some(done));
                    return Ok(());
                }
                Some(Command::Release(done)) => drop(done.send(self.release(&session).await)),
                Some(Command::Remove(done)) => {
                    let removed = self.remove(&session).await;
                    let gone = removed.is_ok();
                    drop(done.send(removed));
                    if gone {
                        return Ok(());
                    }
                }
                Some(Command::Prove(done)) => drop(done.send(launch::prove(&self.core, &session).await)),
                None => match self.wake(&session).await? {
                    Slept::Asked(done) => tell(done),
                    Slept::Ended(done) => {
                        tell(done);
                        return Ok(());
                    }
                    Slept::Then(command) => pending = Some(command),
                    Slept::Violated(what) => self.quarantine(&what).await?,
                    Slept::Died(why) => pending = self.note_failure(&why).await?,
                    Slept::Broken(error) => {
                        tracing::error!(session = %self.id, %error, "the session stopped on an error of the host");
                        pending = self.note_failure(&error.to_string()).await?;
                    }
                },
            }
        }
    }

    async fn wake(&mut self, session: &Session) -> Result<Slept, Error> {
        self.show(Phase::Starting, None, None);
        let started = launch::launch(&self.core, session).await;
        let mut awake = match started {
            Ok(awake) => awake,
            Err(error) => {
                if let Some(what) = error.violation() {
                    return Ok(Slept::Violated(what));
                }
                tracing::warn!(session = %self.id, %error, "a launch failed");
                return Ok(Slept::Died(error.to_string()));
            }
        };
        let (sandbox, reader) = (awake.sandbox.process(), awake.reader_process.process());
        tracing::info!(session = %self.id, sandbox = sandbox.pid, reader = reader.pid, "awake");
        self.show(Phase::Awake, Some(sandbox), Some(reader));
        let slept = match self.first_drain(&mut awake).await {
            Ok(None) => self.work(&mut awake).await,
            Ok(Some(slept)) => slept,
            Err(error) => Slept::Broken(error),
        };
        self.show(Phase::Stopping, Some(sandbox), Some(reader));
        let slept = self.settle(awake, slept).await;
        tracing::info!(session = %self.id, "asleep");
        Ok(slept)
    }

    /// Takes what an earlier launch left, under the turn that was open; then closes that turn.
    async fn first_drain(&mut self, awake: &mut Awake) -> Result<Option<Slept>, Error> {
        if let Some(slept) = self.drain(awake).await? {
            return Ok(Some(slept));
        }
        let (core, id, key) = (Arc::clone(&self.core), self.id, Arc::clone(&awake.key));
        self.core
            .state
            .write(move |tx| {
                let Some(open) = turn::open_of(tx, id)? else { return Ok::<_, Error>(()) };
                let attempts = turn::attempts(tx, open.id)?;
                match store::find(tx, id)? {
                    Some(session) if attempts >= turn::MESSAGE_ATTEMPTS_MAX => {
                        let text = delivery::notice_for(EndReason::Failed, &core.config.turn);
                        accept::close_with_notice(tx, &core, &session, &key, &open, &text, "given up")
                    }
                    _ => {
                        turn::close(tx, &open, Close::Requeued, "its sandbox went away").map(drop).map_err(Error::from)
                    }
                }
            })
            .await?;
        self.deliver().await?;
        Ok(None)
    }

    async fn work(&mut self, awake: &mut Awake) -> Slept {
        match self.work_until(awake).await {
            Ok(slept) => slept,
            Err(error) => Slept::Broken(error),
        }
    }

    async fn work_until(&mut self, awake: &mut Awake) -> Result<Slept, Error> {
        let mut open: Option<Opened> = None;
        let mut stopping: Option<oneshot::Sender<()>> = None;
        let mut drain_until = None;
        // By a clock that nobody sets: the turn's own deadline is a time of day, for the record and the sandbox.
        let mut turn_until = tokio::time::Instant::now();
        let seconds_max = Duration::from_secs(self.core.config.turn.seconds_max.into());
        let idle = Duration::from_secs(self.core.config.session.idle_seconds);
        loop {
            if open.is_none() && stopping.is_none() {
                turn_until = tokio::time::Instant::now() + seconds_max;
                open = match self.open_turn(awake).await? {
                    Ok(open) => open,
                    Err(slept) => return Ok(slept),
                };
            }
            if open.is_none()
                && let Some(done) = stopping.take()
            {
                return Ok(Slept::Ended(Some(done)));
            }
            let limit = match (&open, drain_until) {
                (Some(_), Some(until)) => turn_until.min(until),
                (Some(_), None) => turn_until,
                (None, _) => tokio::time::Instant::now() + idle,
            };
            tokio::select! {
                biased;
                rung = awake.link.rung() => match rung {
                    Rung::Bell => {
                        if let Some(slept) = self.drain(awake).await? {
                            return Ok(slept);
                        }
                        if let Some(opened) = open.take() {
                            if self.still_open(opened.id).await? {
                                open = Some(opened);
                            } else if let Some(slept) = self.close_turn(awake, &opened).await? {
                                return Ok(slept);
                            }
                        }
                    }
                    Rung::Ended => return Ok(Slept::Died("its process ended".to_owned())),
                    Rung::Violation(what) => return Ok(Slept::Violated(what)),
                },
                command = self.mailbox.recv() => match command {
                    Some(Command::Wake) => {}
                    Some(Command::Stop(done)) => return Ok(Slept::Asked(Some(done))),
                    Some(Command::Shutdown(done)) => {
                        stopping = Some(done);
                        drain_until = Some(tokio::time::Instant::now() + DRAIN_TIME_MAX);
                    }
                    Some(Command::Prove(done)) => {
                        let session = self.session().await?;
                        let proof = match session {
                            Some(session) => launch::prove(&self.core, &session).await,
                            None => Err("the session is gone".to_owned()),
                        };
                        let _ = done.send(proof);
                    }
                    Some(other @ (Command::Release(_) | Command::Remove(_))) => return Ok(Slept::Then(other)),
                    None => return Ok(Slept::Ended(None)),
                },
                _ = awake.sandbox.exited() => return Ok(Slept::Died("its process ended".to_owned())),
                _ = awake.reader_process.exited() => {
                    if let Some(slept) = self.second_reader(awake).await? {
                        return Ok(slept);
                    }
                }
                () = tokio::time::sleep_until(limit) => match (&open, stopping.take()) {
                    (None, _) => return Ok(Slept::Asked(None)),
                    (Some(_), Some(done)) => return Ok(Slept::Ended(Some(done))),
                    (Some(opened), None) => {
                        self.miss_deadline(Arc::clone(&awake.key), opened.id).await?;
                        return Ok(Slept::Died("it missed the deadline of its turn".to_owned()));
                    }
                },
            }
        }
    }

    /// Opens the next turn, projects it and rings.
    async fn open_turn(&mut self, awake: &mut Awake) -> Result<Result<Option<Opened>, Slept>, Error> {
        let (core, id, key) = (Arc::clone(&self.core), self.id, Arc::clone(&awake.key));
        let opened = self
            .core
            .state
            .write(move |tx| {
                let Some(opened) = turn::open_next(tx, id, &core.config.turn)? else { return Ok::<_, Error>(None) };
                let Some(session) = store::find(tx, id)? else { return Ok(None) };
                let mut rows = projection::rows(tx, &session, &opened.context, None, &key, &core.sealer)?;
                rows.extend(projection::rows(tx, &session, &opened.messages, Some(opened.id), &key, &core.sealer)?);
                let routing = projection::routing(&session.origin, session.cursor);
                // What only informs has been told with this projection.
                turn::informed(tx, &opened.context)?;
                Ok(Some((opened, rows, routing)))
            })
            .await?;
        let Some((opened, rows, routing)) = opened else { return Ok(Ok(None)) };
        failpoint::reach("turn_open");
        let turn = row_of(&opened);
        if let Some(slept) = self.project(awake, move |inbound| inbound.open_turn(&turn, &rows, &routing)).await {
            return Ok(Err(slept));
        }
        failpoint::reach("project");
        if awake.link.ring().await.is_err() {
            return Ok(Err(Slept::Died("its process ended".to_owned())));
        }
        Ok(Ok(Some(opened)))
    }

    /// Delivers what the turn came to, and projects that it is over.
    async fn close_turn(&mut self, awake: &mut Awake, opened: &Opened) -> Result<Option<Slept>, Error> {
        self.deliver().await?;
        let Some(session) = self.session().await? else { return Ok(None) };
        let id = opened.id;
        let delivered = self
            .core
            .state
            .read(move |tx| {
                Ok::<_, Error>(delivery::of_turn(tx, id)?.and_then(|d| d.row_id.map(|row| (row, d.created_at))))
            })
            .await?;
        let turn = row_of(opened);
        let routing = projection::routing(&session.origin, session.cursor);
        Ok(self.project(awake, move |inbound| inbound.close_turn(&turn, &routing, delivered)).await)
    }

    /// Writes to the inbound queue off the runtime's threads; a lock that a sandbox holds ends it.
    async fn project<F>(&mut self, awake: &mut Awake, write: F) -> Option<Slept>
    where
        F: FnOnce(&mut Inbound) -> Result<(), ironclaw_contract::seam::crypt::Error> + Send + 'static,
    {
        let mut inbound = awake.inbound.take()?;
        let written = tokio::task::spawn_blocking(move || {
            let written = write(&mut inbound);
            (inbound, written)
        });
        match written.await {
            Ok((inbound, written)) => {
                awake.inbound = Some(inbound);
                written.err().map(|error| Slept::Died(error.to_string()))
            }
            Err(_) => Some(Slept::Died("writing to its inbound queue failed".to_owned())),
        }
    }

    /// Takes everything that lies in the outbound queue, row by row.
    async fn drain(&mut self, awake: &mut Awake) -> Result<Option<Slept>, Error> {
        loop {
            let Some(session) = self.session().await? else { return Ok(Some(Slept::Ended(None))) };
            let found = match awake.reader.look(session.cursor).await {
                Ok(found) => found,
                Err(reader::Error::NeedsRecovery) => return Ok(None),
                Err(reader::Error::Locked) => {
                    return Ok(Some(Slept::Died("it held the lock of its outbound queue".to_owned())));
                }
                Err(reader::Error::Violation(what)) => return Ok(Some(Slept::Violated(what))),
                Err(reader::Error::Dead(error)) => {
                    tracing::warn!(session = %self.id, %error, "the reader died");
                    if let Some(slept) = self.second_reader(awake).await? {
                        return Ok(Some(slept));
                    }
                    continue;
                }
            };
            self.shown.lock().expect("no holder panics").progress = found.progress;
            let taken = found.taken;
            let (shared, checked) = (session.clone(), taken.len());
            if checked > 0 {
                let changed =
                    self.core.state.read(move |tx| Ok::<_, Error>(accept::check_taken(tx, &shared, &taken)?)).await?;
                if let Some(what) = changed {
                    return Ok(Some(Slept::Violated(what)));
                }
            }
            let more = found.more;
            for row in found.rows {
                let (core, session, key) = (Arc::clone(&self.core), session.clone(), Arc::clone(&awake.key));
                let accepted = self.core.state.write(move |tx| accept::accept(tx, &core, &session, &key, row)).await?;
                failpoint::reach("accept");
                match accepted {
                    Accepted::Closed => {
                        failpoint::reach("intent");
                        self.deliver().await?;
                    }
                    Accepted::Called => awake.results.send_modify(|count| *count += 1),
                    Accepted::Refused => {}
                    Accepted::Violation(what) => return Ok(Some(Slept::Violated(what))),
                }
            }
            if !more {
                return Ok(None);
            }
        }
    }

    /// A reader may die once; a second death is not an accident.
    async fn second_reader(&mut self, awake: &mut Awake) -> Result<Option<Slept>, Error> {
        if awake.reader_died {
            return Ok(Some(Slept::Violated("the reader of its outbound queue died twice".to_owned())));
        }
        awake.reader_died = true;
        let Some(session) = self.session().await? else { return Ok(Some(Slept::Ended(None))) };
        match launch::start_reader(&self.core, &session, &awake.keys).await {
            Ok((process, reader)) => {
                self.show(Phase::Awake, Some(awake.sandbox.process()), Some(process.process()));
                awake.reader_process = process;
                awake.reader = reader;
                Ok(None)
            }
            Err(error) => Ok(Some(Slept::Died(error.to_string()))),
        }
    }

    /// Ends the processes of a session that goes to sleep: the last rows are taken between the sandbox's end and the reader's.
    async fn settle(&mut self, mut awake: Awake, slept: Slept) -> Slept {
        let orderly = matches!(slept, Slept::Asked(_) | Slept::Ended(_) | Slept::Then(_));
        awake.hang_up();
        if !orderly || tokio::time::timeout(EXIT_TIME_MAX, awake.sandbox.exited()).await.is_err() {
            awake.sandbox.kill();
            let _ = tokio::time::timeout(EXIT_TIME_MAX, awake.sandbox.exited()).await;
        }
        if matches!(slept, Slept::Violated(_)) {
            return slept;
        }
        match self.drain(&mut awake).await {
            Ok(None) => {}
            Ok(Some(worse @ Slept::Violated(_))) => return worse,
            Ok(Some(_)) => {}
            Err(error) => {
                tracing::warn!(session = %self.id, %error, "the last rows of the session wait for its next launch")
            }
        }
        slept
    }

    /// Sends every delivery without a receipt, and notes the receipt.
    async fn deliver(&mut self) -> Result<(), Error> {
        let id = self.id;
        let open = self.core.state.read(move |tx| Ok::<_, Error>(delivery::open_of(tx, id)?)).await?;
        for delivery in open {
            self.core.loopback.send(delivery.id, self.id);
            failpoint::reach("send");
            self.core.state.write(move |tx| Ok::<_, Error>(delivery::receive(tx, &delivery)?)).await?;
            failpoint::reach("receipt");
        }
        Ok(())
    }

    async fn miss_deadline(&mut self, key: Arc<ContentKey>, turn: TurnId) -> Result<(), Error> {
        let (core, id) = (Arc::clone(&self.core), self.id);
        self.core
            .state
            .write(move |tx| {
                let (Some(open), Some(session)) =
                    (turn::find(tx, turn)?.filter(|turn| turn.open), store::find(tx, id)?)
                else {
                    return Ok::<_, Error>(());
                };
                let text = delivery::notice_for(EndReason::Time, &core.config.turn);
                accept::close_with_notice(tx, &core, &session, &key, &open, &text, "deadline")
            })
            .await?;
        self.deliver().await
    }

    async fn quarantine(&mut self, what: &str) -> Result<(), Error> {
        tracing::error!(session = %self.id, what, "quarantined");
        let text = format!(
            "I was stopped: my process broke its contract with the host ({what}). A person has to look: `ironctl session release {}`.",
            self.id
        );
        self.halt(Standing::Quarantined, what, text).await
    }

    async fn halt(&mut self, standing: Standing, why: &str, text: String) -> Result<(), Error> {
        let (core, id, why) = (Arc::clone(&self.core), self.id, why.to_owned());
        self.core
            .state
            .write(move |tx| {
                store::set_standing(tx, id, standing, Some(&why))?;
                let Some(session) = store::find(tx, id)? else { return Ok::<_, Error>(()) };
                let key = session.keys(&core.wrapping).map_err(crate::items::BodyError::from)?.content;
                match turn::open_of(tx, id)? {
                    Some(open) => accept::close_with_notice(tx, &core, &session, &key, &open, &text, "halted"),
                    None => {
                        delivery::notify(tx, &session, None, &text, &key, &core.sealer).map(drop).map_err(Error::from)
                    }
                }
            })
            .await?;
        self.deliver().await
    }

    /// Counts a failure; waits before the next try, or parks the session. Commands interrupt the wait.
    async fn note_failure(&mut self, why: &str) -> Result<Option<Command>, Error> {
        let id = self.id;
        let failures = self.core.state.write(move |tx| Ok::<_, Error>(store::note_failure(tx, id, true)?)).await?;
        let config = &self.core.config.session;
        if failures >= config.launch_attempts_max {
            tracing::error!(session = %self.id, failures, "parked");
            let text = format!(
                "I was parked: my process failed {failures} times in a row ({why}). When the cause is mended: `ironctl session release {}`.",
                self.id
            );
            self.halt(Standing::Parked, why, text).await?;
            return Ok(None);
        }
        let wait = Duration::from_millis(config.backoff_ms) * 2u32.saturating_pow(failures.saturating_sub(1));
        match tokio::time::timeout(wait.min(BACKOFF_MAX), self.mailbox.recv()).await {
            Ok(Some(Command::Wake)) | Err(_) => Ok(None),
            Ok(command) => Ok(command),
        }
    }

    async fn release(&mut self, session: &Session) -> Result<(), String> {
        if session.standing == Standing::Live {
            return Err(format!("{} is neither parked nor quarantined", session.id));
        }
        if session.standing == Standing::Quarantined {
            // What a sandbox out of order left is kept for a look, and never opened again.
            let out = self.core.home.session(session.id).outbound();
            let aside =
                (0..u32::MAX).map(|n| out.with_file_name(format!("out.quarantined-{n}"))).find(|path| !path.exists());
            if let Some(aside) = aside.filter(|_| out.exists()) {
                std::fs::rename(&out, &aside)
                    .map_err(|error| format!("cannot set {} aside: {error}", out.display()))?;
            }
        }
        let id = self.id;
        let released =
            self.core.state.write(move |tx| Ok::<_, Error>(store::set_standing(tx, id, Standing::Live, None)?));
        released.await.map_err(|error| error.to_string())
    }

    async fn remove(&mut self, session: &Session) -> Result<(), String> {
        let id = self.id;
        let erase = self.core.state.write(move |tx| Ok::<_, Error>(store::erase(tx, id)?));
        erase.await.map_err(|error| error.to_string())?;
        failpoint::reach("erase");
        self.core.state.checkpoint().await.map_err(|error| error.to_string())?;
        let place = self.core.home.session(session.id);
        match std::fs::remove_dir_all(place.path()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(format!("{} is erased, but {} remains: {error}", session.id, place.path().display()))
            }
            _ => Ok(()),
        }
    }

    async fn session(&self) -> Result<Option<Session>, Error> {
        let id = self.id;
        self.core.state.read(move |tx| Ok(store::find(tx, id)?)).await
    }

    async fn has_work(&self) -> Result<bool, Error> {
        let id = self.id;
        self.core
            .state
            .read(move |tx| {
                Ok::<_, Error>(turn::open_of(tx, id)?.is_some() || !turn::choose(&turn::waiting(tx, id)?).is_empty())
            })
            .await
    }

    async fn still_open(&self, turn: TurnId) -> Result<bool, Error> {
        self.core.state.read(move |tx| Ok::<_, Error>(turn::find(tx, turn)?.is_some_and(|turn| turn.open))).await
    }

    fn show(&self, phase: Phase, sandbox: Option<Process>, reader: Option<Process>) {
        let mut shown = self.shown.lock().expect("no holder panics");
        *shown = Shown { phase, sandbox, reader, progress: std::mem::take(&mut shown.progress) };
    }
}

fn tell(done: Option<oneshot::Sender<()>>) {
    // Whoever asked may have given up waiting.
    if let Some(done) = done {
        let _ = done.send(());
    }
}

fn row_of(opened: &Opened) -> TurnRow {
    let messages: Vec<MessageId> = opened.messages.clone();
    TurnRow { turn: opened.id, messages, deadline: opened.deadline, open: true }
}
