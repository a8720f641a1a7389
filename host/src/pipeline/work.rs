//! What an actor does while its session is awake: open turns, hear bells, take rows, deliver. It never polls.
//!
//! What the sandbox does comes last in every choice, so that no noise of it keeps a stop or a deadline from being heard. Next: `pipeline::accept`.

use super::Error;
use super::accept::{self, Accepted};
use super::actor::{Actor, DRAIN_TIME_MAX, EXIT_TIME_MAX, Slept};
use super::command::{Command, Phase};
use super::launch::{self, Awake};
use super::model_socket::REFUSALS_MAX;
use super::places::Place;
use super::prove;
use super::workspace::Looking;
use crate::channel::loopback;
use crate::custody::ContentKey;
use crate::delivery::{self, Delivery, Ender};
use crate::failpoint;
use crate::launcher::{Exit, Jailed};
use crate::quota::workspace::Over;
use crate::reader;
use crate::session::link::Rung;
use crate::session::projection::{self, Inbound};
use crate::session::store::{self, Why};
use crate::shortage::Shortage;
use crate::turn::{self, Close, Opened};
use ironclaw_contract::ids::TurnId;
use ironclaw_contract::seam::crypt;
use ironclaw_contract::seam::inbound::Turn as TurnRow;
use ironclaw_contract::seam::link::RUNNER_LOST_CODE;
use ironclaw_contract::seam::outbound::EndReason;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Rows that are taken before the actor looks at its mailbox again.
const ROWS_AT_ONCE_MAX: usize = 64;

/// Why a turn came to no answer whose model was still being asked at its end.
const LATE_MODEL: &str = "the model did not answer in the time of this turn";

/// That a turn is over is projected after this long, unless the next one is projected in its place: the sandbox has answered and
/// waits for the bell either way.
const CLOSE_AFTER: Duration = Duration::from_millis(20);

/// The turn that is being worked on.
struct Open {
    opened: Opened,
    /// When it is over, by a clock that nobody sets.
    until: Instant,
}

/// A turn that is over and stands open in the inbound queue.
struct Closing {
    opened: Opened,
    at: Instant,
}

/// What a look at the outbound queue came to.
struct Taken {
    /// Whether there may be more.
    more: bool,
    /// Whether the turn was closed.
    closed: bool,
}

/// What is next.
enum Next {
    Halted,
    AskedBack,
    Asked(Option<Command>),
    Over,
    SandboxEnded,
    ReaderEnded,
    Trouble(&'static str),
    Full(Over),
    Rung(Rung),
    More,
}

/// What a sandbox says by its end. One that has closed its link and stays is ended by whoever settles it.
async fn ending(sandbox: &Jailed) -> &'static str {
    match tokio::time::timeout(EXIT_TIME_MAX, sandbox.exited()).await {
        Ok(Exit::Code(code)) if code == i32::from(RUNNER_LOST_CODE) => "the process that runs its commands was lost",
        Ok(Exit::Code(_) | Exit::Signal(_)) | Err(_) => "its process ended",
    }
}

impl Actor {
    /// Works until there is a reason to sleep.
    pub(super) async fn work(&mut self, awake: &mut Awake, place: &mut Place) -> Result<Slept, Error> {
        if let Some(slept) = self.first_drain(awake).await? {
            return Ok(slept);
        }
        let idle = Duration::from_secs(self.core.config.session.idle_seconds);
        let mut open: Option<Open> = None;
        let mut idle_until = Instant::now() + idle;
        let mut stopping: Option<(oneshot::Sender<()>, Instant)> = None;
        let mut more = false;
        let mut anew = false;
        let mut closing: Option<Closing> = None;
        let mut looking = Looking::begin(&self.core, self.id);
        loop {
            looking.turn(open.is_some());
            if open.is_none() {
                if let Some((done, _)) = stopping.take() {
                    return Ok(Slept::Ended(Some(done)));
                }
                if anew || place.is_asked_back() {
                    return Ok(Slept::Yielded);
                }
                open = match self.open_turn(awake).await? {
                    Ok(open) => open,
                    Err(slept) => return Ok(slept),
                };
                match open {
                    Some(_) => {
                        closing = None;
                        looking.turn(true);
                        place.busy();
                    }
                    None => place.idle(),
                }
            }
            let limit = match (&open, &stopping) {
                (Some(open), Some((_, until))) => open.until.min(*until),
                (Some(open), None) => open.until,
                (None, _) => closing.as_ref().map_or(idle_until, |closing| closing.at.min(idle_until)),
            };
            let is_free = open.is_none();
            match self.next(awake, place, &mut looking, is_free, limit, more).await {
                Next::Halted => return Ok(Slept::Halted),
                Next::AskedBack => return Ok(Slept::Yielded),
                Next::Asked(Some(Command::Wake)) => {
                    self.deliver().await?;
                    if let Some(slept) = self.project_receipts(awake).await? {
                        return Ok(slept);
                    }
                }
                Next::Asked(Some(Command::Respawn)) => anew = true,
                Next::Asked(Some(Command::Cancel(by, done))) => {
                    let cancelled = self.cancel(by).await?;
                    let running = cancelled.as_ref().is_ok_and(|cancelled| cancelled.running);
                    // Whoever asked may have given up waiting.
                    let _ = done.send(cancelled);
                    if running {
                        return Ok(Slept::Cancelled);
                    }
                    self.deliver().await?;
                }
                Next::Asked(Some(Command::Shutdown(done))) => stopping = Some((done, Instant::now() + DRAIN_TIME_MAX)),
                Next::Asked(Some(Command::Prove(by, done))) => {
                    let proof = match self.session().await? {
                        Some(session) => prove::prove(&self.core, &session, by).await,
                        None => Err("the session is gone".to_owned()),
                    };
                    // Whoever asked may have given up waiting.
                    let _ = done.send(proof);
                }
                Next::Asked(Some(other)) => return Ok(Slept::Asked(other)),
                Next::Asked(None) => return Ok(Slept::Ended(None)),
                Next::SandboxEnded | Next::Rung(Rung::Ended) => return Ok(Slept::died(ending(&awake.sandbox).await)),
                Next::Trouble(what) | Next::Rung(Rung::Violation(what)) => return Ok(Slept::violated(what)),
                // After the end of a turn it sleeps, and the next message is told.
                Next::Full(_) if open.is_none() => return Ok(Slept::Yielded),
                Next::Full(over) => {
                    self.end_over_bound(over).await?;
                    return Ok(Slept::Cancelled);
                }
                Next::ReaderEnded => {
                    if let Some(slept) = self.second_reader(awake).await? {
                        return Ok(slept);
                    }
                }
                Next::Rung(Rung::Bell) | Next::More => {
                    let taken = match self.take(awake).await? {
                        Ok(taken) => taken,
                        Err(slept) => return Ok(slept),
                    };
                    more = taken.more;
                    if taken.closed
                        && let Some(current) = open.take()
                    {
                        closing = Some(Closing::of(current.opened));
                        place.turn_ended();
                        idle_until = Instant::now() + idle;
                    }
                }
                Next::Over => match (open.take(), stopping.take()) {
                    (None, _) if closing.is_some() => {
                        if let Some(slept) = self.close_turn(awake, closing.take()).await? {
                            return Ok(slept);
                        }
                    }
                    (None, _) => return Ok(Slept::Idle),
                    (Some(_), Some((done, _))) => return Ok(Slept::Ended(Some(done))),
                    (Some(current), None) => {
                        // A reply that was written in time counts.
                        let taken = match self.take(awake).await? {
                            Ok(taken) => taken,
                            Err(slept) => return Ok(slept),
                        };
                        if !taken.closed {
                            return self.miss_deadline(Arc::clone(&awake.key), current.opened.id).await;
                        }
                        closing = Some(Closing::of(current.opened));
                        place.turn_ended();
                        idle_until = Instant::now() + idle;
                    }
                },
            }
        }
    }

    /// Waits for what is next. The order is the order of importance; every branch can be dropped without a loss.
    async fn next(
        &mut self,
        awake: &mut Awake,
        place: &mut Place,
        looking: &mut Looking,
        is_free: bool,
        limit: Instant,
        more: bool,
    ) -> Next {
        tokio::select! {
            biased;
            () = self.core.latch.shut() => Next::Halted,
            command = self.mailbox.recv() => Next::Asked(command),
            () = place.asked_back(), if is_free => Next::AskedBack,
            () = tokio::time::sleep_until(limit) => Next::Over,
            _ = awake.sandbox.exited() => Next::SandboxEnded,
            _ = awake.reader_process.exited() => Next::ReaderEnded,
            Some(what) = awake.trouble.recv() => Next::Trouble(what),
            Some(over) = looking.over.recv() => Next::Full(over),
            () = std::future::ready(()), if more => Next::More,
            rung = awake.link.rung() => Next::Rung(rung),
        }
    }

    /// Takes what an earlier launch left, under the turn that was open; then closes that turn.
    async fn first_drain(&mut self, awake: &mut Awake) -> Result<Option<Slept>, Error> {
        if let Some(slept) = self.drain(awake).await? {
            return Ok(Some(slept));
        }
        let (core, id, key, forgives) = (Arc::clone(&self.core), self.id, Arc::clone(&awake.key), self.forgives);
        let open_turn = self.core.state.write(move |tx| {
            let Some(open) = turn::open_of(tx, id)? else { return Ok::<_, Error>(()) };
            if forgives {
                let messages = turn::close(tx, &open, Close::Requeued, "the machine was short of something")?;
                return Ok(turn::forgive(tx, &messages)?);
            }
            let attempts = turn::attempts(tx, open.id)?;
            let ender = if core.cut_turns.contains(&open.id) { Ender::Host } else { Ender::Sandbox };
            match store::find(tx, id)? {
                Some(session) if attempts >= turn::MESSAGE_ATTEMPTS_MAX => {
                    let message = turn::newest_message(tx, open.id)?;
                    let text = delivery::notice_of_given_up(ender, attempts, message);
                    accept::close_with_notice(tx, &core, &session, &key, &open, &text, ender.given_up()).map(drop)
                }
                _ => Ok(turn::close(tx, &open, Close::Requeued, ender.requeued()).map(drop)?),
            }
        });
        open_turn.await?;
        self.forgives = false;
        self.deliver().await?;
        self.project_receipts(awake).await
    }

    /// Opens the next turn, projects it and rings.
    async fn open_turn(&mut self, awake: &mut Awake) -> Result<Result<Option<Open>, Slept>, Error> {
        let (core, session, key, since) =
            (Arc::clone(&self.core), Arc::clone(&awake.session), Arc::clone(&awake.key), awake.since);
        let (cursor, unreceipted) = (awake.cursor, awake.unreceipted.clone());
        let opened = self
            .core
            .state
            .write(move |tx| {
                let Some(opened) = turn::open_next(tx, session.id, &core.config.turn)? else {
                    return Ok::<_, Error>(None);
                };
                let (context, own) = (&opened.context, &opened.messages);
                let mut rows = projection::rows(tx, &session, context, None, since, &key, &core.sealer)?;
                rows.extend(projection::rows(tx, &session, own, Some(opened.id), since, &key, &core.sealer)?);
                let routing = projection::routing(&session.origin, cursor);
                turn::informed(tx, &opened.context)?;
                Ok(Some((opened, rows, routing, unreceipted.receipts(tx)?)))
            })
            .await?;
        let Some((opened, rows, routing, receipts)) = opened else { return Ok(Ok(None)) };
        failpoint::reach("turn_open");
        let until = Instant::now() + Duration::from_secs(u64::from(self.core.config.turn.seconds_max));
        // Before the sandbox hears of the turn.
        self.core.deadlines.begin(self.id, opened.id, until);
        let turn = row_of(&opened);
        awake.unreceipted.forget(&receipts);
        let open = move |inbound: &mut Inbound| inbound.open_turn(&turn, &rows, &routing, &receipts);
        if let Some(slept) = self.project(awake, open).await {
            return Ok(Err(slept));
        }
        failpoint::reach("project");
        if awake.link.ring().is_err() {
            return Ok(Err(Slept::died(ending(&awake.sandbox).await)));
        }
        Ok(Ok(Some(Open { opened, until })))
    }

    /// Projects that the turn is over, and what became of answers as far as that is known.
    async fn close_turn(&mut self, awake: &mut Awake, closing: Option<Closing>) -> Result<Option<Slept>, Error> {
        let Some(Closing { opened, .. }) = closing else { return Ok(None) };
        let receipts = self.receipts(awake).await?;
        let turn = row_of(&opened);
        let routing = projection::routing(&awake.session.origin, awake.cursor);
        Ok(self.project(awake, move |inbound| inbound.close_turn(&turn, &routing, &receipts)).await)
    }

    /// Writes to the inbound queue off the runtime's threads; a lock that a sandbox holds ends it.
    pub(super) async fn project<F>(&mut self, awake: &mut Awake, write: F) -> Option<Slept>
    where
        F: FnOnce(&mut Inbound) -> Result<(), crypt::Error> + Send + 'static,
    {
        let mut inbound = awake.inbound.take()?;
        let written = tokio::task::spawn_blocking(move || {
            let written = write(&mut inbound);
            (inbound, written)
        });
        match written.await {
            Ok((inbound, written)) => {
                awake.inbound = Some(inbound);
                written.err().map(|error| match Shortage::of(&error) {
                    Some(shortage) => Slept::Short(shortage),
                    None => Slept::died(error.to_string()),
                })
            }
            Err(_) => Some(Slept::died("writing to its inbound queue failed")),
        }
    }

    /// Takes everything that lies in the outbound queue.
    pub(super) async fn drain(&mut self, awake: &mut Awake) -> Result<Option<Slept>, Error> {
        loop {
            match self.take(awake).await? {
                Ok(Taken { more: true, .. }) => {}
                Ok(Taken { more: false, .. }) => return Ok(None),
                Err(slept) => return Ok(Some(slept)),
            }
        }
    }

    /// Takes rows out of the outbound queue, row by row, up to a bound.
    async fn take(&mut self, awake: &mut Awake) -> Result<Result<Taken, Slept>, Error> {
        let mut taken = Taken { more: false, closed: false };
        let found = match awake.reader.look(awake.cursor).await {
            Ok(found) => found,
            Err(reader::Error::NeedsRecovery) => return Ok(Ok(taken)),
            Err(reader::Error::Locked) => return Ok(Err(Slept::died("it held the lock of its outbound queue"))),
            Err(reader::Error::Failed(detail)) => {
                let words = "its outbound queue could not be read now".to_owned();
                return Ok(Err(Slept::Died(Why { words, detail })));
            }
            Err(reader::Error::Violation(detail)) => {
                return Ok(Err(Slept::Violated(Why { words: reader::VIOLATION.to_owned(), detail })));
            }
            Err(reader::Error::Dead(error)) => {
                tracing::warn!(session = %self.id, %error, "the reader died");
                return Ok(match self.second_reader(awake).await? {
                    Some(slept) => Err(slept),
                    None => Ok(Taken { more: true, closed: false }),
                });
            }
        };
        self.shown.lock().expect("no holder panics").progress = found.progress;
        if !found.taken.is_empty() {
            let (session, seen) = (Arc::clone(&awake.session), found.taken);
            let check = self.core.state.read(move |tx| Ok::<_, Error>(accept::check_taken(tx, &session, &seen)?));
            if let Some(what) = check.await? {
                return Ok(Err(Slept::violated(what)));
            }
        }
        taken.more = found.more || found.rows.len() > ROWS_AT_ONCE_MAX;
        for row in found.rows.into_iter().take(ROWS_AT_ONCE_MAX) {
            let (core, session, key) = (Arc::clone(&self.core), Arc::clone(&awake.session), Arc::clone(&awake.key));
            let accept = self.core.state.write(move |tx| accept::accept(tx, &core, &session, &key, row));
            let (accepted, cursor) = accept.await?;
            awake.cursor = cursor;
            failpoint::reach("accept");
            awake.reader_died = false;
            match accepted {
                Accepted::Closed(delivery) => {
                    failpoint::reach("intent");
                    self.core.drafts.end(self.id);
                    awake.unreceipted.add(&delivery);
                    self.deliver_one(delivery).await?;
                    taken.closed = true;
                }
                Accepted::Called => awake.results.send_modify(|count| *count += 1),
                Accepted::Refused => {
                    awake.refused_rows += 1;
                    if awake.refused_rows > REFUSALS_MAX {
                        return Ok(Err(Slept::violated("too many of its rows were refused")));
                    }
                }
                Accepted::Violation(what) => return Ok(Err(Slept::violated(what))),
            }
        }
        Ok(Ok(taken))
    }

    /// A reader may die once at the same cursor; a second death there is not an accident, unless everything dies.
    async fn second_reader(&mut self, awake: &mut Awake) -> Result<Option<Slept>, Error> {
        if self.core.latch.is_shut() {
            return Ok(Some(Slept::Halted));
        }
        if self.launcher_died().await {
            awake.reader_gone = true;
            return Ok(Some(Slept::died("the launcher died, and its reader with it")));
        }
        if awake.reader_died {
            return Ok(Some(Slept::violated("the reader of its outbound queue died twice")));
        }
        awake.reader_died = true;
        let Some(session) = self.session().await? else { return Ok(Some(Slept::Ended(None))) };
        match launch::start_reader(&self.core, &session, &awake.queue).await {
            Ok((process, reader)) => {
                self.show(Phase::Awake, Some(awake.sandbox.process()), Some(process.process()));
                awake.reader_process = process;
                awake.reader = reader;
                Ok(None)
            }
            Err(error) => {
                // The last rows wait for the next launch; looking for them now would count as a second death.
                awake.reader_gone = true;
                Ok(Some(match error.shortage() {
                    Some(shortage) => Slept::Short(shortage),
                    None => Slept::Died(error.why()),
                }))
            }
        }
    }

    /// Delivers what has no receipt on the loopback, and notes the receipt; what goes out by a network is left to whoever sends it.
    pub(super) async fn deliver(&mut self) -> Result<(), Error> {
        let id = self.id;
        let open = self.core.state.read(move |tx| Ok::<_, Error>(delivery::open_of(tx, id)?)).await?;
        for delivery in open {
            self.deliver_one(delivery).await?;
        }
        Ok(())
    }

    async fn deliver_one(&mut self, delivery: Delivery) -> Result<(), Error> {
        if self.core.latch.is_shut() {
            // The intent stands in the record, and is found there when everything goes on.
            return Ok(());
        }
        if delivery.channel != loopback::NAME {
            // Nobody's session waits for a network.
            self.core.dispatch.wake();
            return Ok(());
        }
        // Whoever waits for it is woken by the receipt's own ledger entry.
        failpoint::reach("send");
        self.core.state.write(move |tx| Ok::<_, Error>(delivery::receive(tx, &delivery)?)).await?;
        failpoint::reach("receipt");
        Ok(())
    }

    /// Ends a turn that is over and has no answer. Where a model was being asked or had failed, that is why, and it is no failure
    /// of the sandbox.
    async fn miss_deadline(&mut self, key: Arc<ContentKey>, turn: TurnId) -> Result<Slept, Error> {
        let (core, id) = (Arc::clone(&self.core), self.id);
        let is_asking = core.drafts.is_asking(id, turn);
        let close = self.core.state.write(move |tx| {
            let open = turn::find(tx, turn)?.filter(|turn| turn.open);
            let (Some(open), Some(session)) = (open, store::find(tx, id)?) else { return Ok::<_, Error>(false) };
            let why = if is_asking { Some(LATE_MODEL.to_owned()) } else { turn::failure(tx, turn)? };
            let message = turn::newest_message(tx, turn)?;
            let general = || delivery::notice_for(EndReason::Time, &core.config.turn, message);
            let text = why.as_deref().map_or_else(general, |why| delivery::notice_of_model(why, message));
            accept::close_with_notice(tx, &core, &session, &key, &open, &text, "deadline")?;
            Ok(why.is_some())
        });
        let is_models = close.await?;
        self.deliver().await?;
        Ok(if is_models { Slept::Cancelled } else { Slept::died("it missed the deadline of its turn") })
    }
}

impl Closing {
    fn of(opened: Opened) -> Self {
        Self { opened, at: Instant::now() + CLOSE_AFTER }
    }
}

fn row_of(opened: &Opened) -> TurnRow {
    TurnRow { turn: opened.id, messages: opened.messages.clone(), deadline: opened.deadline, open: true }
}
