//! What an actor does while its session is awake: open turns, hear bells, take rows, deliver. It never polls.
//!
//! What the sandbox does comes last in every choice, so that no noise of it keeps a stop or a deadline from being heard. Next: `outbound::accept`.

use crate::error::Error;
use crate::outbound::accept;
use crate::outbound::delivery::{self, Ender};
use crate::quota::workspace::Over;
use crate::runtime::actor::{Actor, DRAIN_TIME_MAX, EXIT_TIME_MAX, Slept};
use crate::runtime::admission::Place;
use crate::runtime::command::Command;
use crate::runtime::launch::Awake;
use crate::runtime::workspace::Looking;
use crate::session::link::Rung;
use crate::session::projection::{self, Inbound, Receipt};
use crate::session::store;
use crate::turns::turn::{self, Close, Opened};
use ironclaw_contract::ids::TurnId;
use ironclaw_contract::seam::crypt;
use ironclaw_contract::seam::inbound::Turn as TurnRow;
use ironclaw_contract::seam::link::RUNNER_LOST_CODE;
use ironclaw_contract::seam::outbound::EndReason;
use ironclaw_jail::launcher::{Exit, Jailed};
use ironclaw_jail::shortage::Shortage;
use ironclaw_state::failpoint;
use ironclaw_state::keys::ContentKey;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

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

/// What an awake session keeps from one step to the next.
struct Work {
    open: Option<Open>,
    closing: Option<Closing>,
    /// The daemon stops: until when an open turn may go on.
    stopping: Option<(oneshot::Sender<()>, Instant)>,
    /// How long it stays awake without a turn.
    idle: Duration,
    idle_until: Instant,
    /// Whether more rows may be in the outbound queue.
    more: bool,
    /// Whether it begins anew once no turn is open.
    anew: bool,
}

impl Work {
    fn new(idle: Duration) -> Self {
        let idle_until = Instant::now() + idle;
        Self { open: None, closing: None, stopping: None, idle, idle_until, more: false, anew: false }
    }

    /// Until when to wait for what is next.
    fn limit(&self) -> Instant {
        match (&self.open, &self.stopping) {
            (Some(open), Some((_, until))) => open.until.min(*until),
            (Some(open), None) => open.until,
            (None, _) => self.closing.as_ref().map_or(self.idle_until, |closing| closing.at.min(self.idle_until)),
        }
    }

    /// The turn has its answer.
    fn end_turn(&mut self, current: Open, place: &mut Place) {
        self.closing = Some(Closing::of(current.opened));
        place.turn_ended();
        self.idle_until = Instant::now() + self.idle;
    }
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
    /// Works until there is a reason to sleep, and returns it.
    pub(crate) async fn work(&mut self, awake: &mut Awake, place: &mut Place) -> Slept {
        let Err(slept) = self.work_on(awake, place).await;
        slept
    }

    async fn work_on(&mut self, awake: &mut Awake, place: &mut Place) -> Result<Infallible, Slept> {
        self.first_drain(awake).await?;
        let mut work = Work::new(Duration::from_secs(self.runtime.config.idle_seconds));
        let mut looking = Looking::begin(&self.runtime.workspaces, self.id);
        loop {
            looking.turn(work.open.is_some());
            if work.open.is_none() {
                self.begin_turn(awake, place, &mut work, &looking).await?;
            }
            let is_free = work.open.is_none();
            let next = self.next(awake, place, &mut looking, is_free, work.limit(), work.more).await;
            self.handle(next, awake, place, &mut work).await?;
        }
    }

    /// Opens the next turn, unless there is a reason to sleep.
    async fn begin_turn(
        &mut self,
        awake: &mut Awake,
        place: &mut Place,
        work: &mut Work,
        looking: &Looking,
    ) -> Result<(), Slept> {
        if let Some((done, _)) = work.stopping.take() {
            return Err(Slept::Ended(Some(done)));
        }
        if work.anew || place.is_asked_back() {
            return Err(Slept::Yielded);
        }
        work.open = self.open_turn(awake).await?;
        match work.open {
            Some(_) => {
                work.closing = None;
                looking.turn(true);
                place.busy();
            }
            None => place.idle(),
        }
        Ok(())
    }

    async fn handle(&mut self, next: Next, awake: &mut Awake, place: &mut Place, work: &mut Work) -> Result<(), Slept> {
        match next {
            Next::Halted => Err(Slept::Halted),
            Next::AskedBack => Err(Slept::Yielded),
            Next::Asked(Some(command)) => self.obey_awake(command, awake, work).await,
            Next::Asked(None) => Err(Slept::Ended(None)),
            Next::SandboxEnded | Next::Rung(Rung::Ended) => Err(Slept::died(ending(&awake.sandbox).await)),
            Next::Trouble(what) | Next::Rung(Rung::Violation(what)) => Err(Slept::violated(what)),
            // After the end of a turn it sleeps, and the next message is told.
            Next::Full(_) if work.open.is_none() => Err(Slept::Yielded),
            Next::Full(over) => {
                self.end_over_bound(over).await?;
                Err(Slept::Cancelled)
            }
            Next::ReaderEnded => self.second_reader(awake).await,
            Next::Rung(Rung::Bell) | Next::More => {
                let taken = self.take(awake).await?;
                work.more = taken.more;
                if taken.closed
                    && let Some(current) = work.open.take()
                {
                    work.end_turn(current, place);
                }
                Ok(())
            }
            Next::Over => self.time_is_up(awake, place, work).await,
        }
    }

    /// Does what a command asks of a session that is awake.
    async fn obey_awake(&mut self, command: Command, awake: &mut Awake, work: &mut Work) -> Result<(), Slept> {
        match command {
            Command::Wake => {
                self.deliver().await?;
                return self.project_receipts(awake).await;
            }
            Command::Respawn => work.anew = true,
            Command::Cancel(by, done) => {
                if self.cancel(by, done).await? {
                    return Err(Slept::Cancelled);
                }
                self.deliver().await?;
            }
            Command::Shutdown(done) => work.stopping = Some((done, Instant::now() + DRAIN_TIME_MAX)),
            Command::Prove(by, done) => {
                let proof = match self.session().await? {
                    Some(session) => self.prove(&session, by).await,
                    None => Err("the session is gone".to_owned()),
                };
                // Whoever asked may have given up waiting.
                let _ = done.send(proof);
            }
            other => return Err(Slept::Asked(other)),
        }
        Ok(())
    }

    /// The time of a turn, of a closed turn, of a stop or of an idle session is over.
    async fn time_is_up(&mut self, awake: &mut Awake, place: &mut Place, work: &mut Work) -> Result<(), Slept> {
        match (work.open.take(), work.stopping.take()) {
            (None, _) if work.closing.is_some() => self.close_turn(awake, work.closing.take()).await,
            (None, _) => Err(Slept::Idle),
            (Some(_), Some((done, _))) => Err(Slept::Ended(Some(done))),
            (Some(current), None) => {
                // A reply that was written in time counts.
                let taken = self.take(awake).await?;
                if !taken.closed {
                    return Err(self.miss_deadline(Arc::clone(&awake.key), current.opened.id).await?);
                }
                work.end_turn(current, place);
                Ok(())
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
            () = self.runtime.latch.shut() => Next::Halted,
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
    async fn first_drain(&mut self, awake: &mut Awake) -> Result<(), Slept> {
        self.drain(awake).await?;
        let (turns, id, key, forgives) =
            (Arc::clone(&self.runtime.turns), self.id, Arc::clone(&awake.key), self.forgives);
        let open_turn = self.state().write(move |tx| {
            let Some(open) = turn::open_of(tx, id)? else { return Ok::<_, Error>(()) };
            if forgives {
                let messages = turn::close(tx, &open, Close::Requeued, "the machine was short of something")?;
                return Ok(turn::forgive(tx, &messages)?);
            }
            let attempts = turn::attempts(tx, open.id)?;
            let ender = if turns.cut.contains(&open.id) { Ender::Host } else { Ender::Sandbox };
            match store::find(tx, id)? {
                Some(session) if attempts >= turn::MESSAGE_ATTEMPTS_MAX => {
                    let message = turn::newest_message(tx, open.id)?;
                    let text = delivery::notice_of_given_up(ender, attempts, message);
                    accept::close_with_notice(tx, &turns.record, &session, &key, &open, &text, ender.given_up())
                        .map(drop)
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
    async fn open_turn(&mut self, awake: &mut Awake) -> Result<Option<Open>, Slept> {
        let (turns, session, key, since) =
            (Arc::clone(&self.runtime.turns), Arc::clone(&awake.session), Arc::clone(&awake.key), awake.since);
        let (cursor, unreceipted) = (awake.cursor, awake.unreceipted.clone());
        let opened = self
            .state()
            .write(move |tx| {
                let Some(opened) = turn::open_next(tx, session.id, &turns.config)? else {
                    return Ok::<_, Error>(None);
                };
                let (context, own) = (&opened.context, &opened.messages);
                let mut rows = projection::rows(tx, &session, context, None, since, &key, &turns.record.sealer)?;
                rows.extend(projection::rows(tx, &session, own, Some(opened.id), since, &key, &turns.record.sealer)?);
                let routing = projection::routing(&session.origin, cursor);
                turn::informed(tx, &opened.context)?;
                Ok(Some((opened, rows, routing, unreceipted.receipts(tx)?)))
            })
            .await?;
        let Some((opened, rows, routing, receipts)) = opened else { return Ok(None) };
        failpoint::reach("turn_open");
        let until = Instant::now() + Duration::from_secs(u64::from(self.runtime.turns.config.seconds_max));
        // Before the sandbox hears of the turn.
        self.runtime.turns.deadlines.begin(self.id, opened.id, until);
        let turn = row_of(&opened);
        awake.unreceipted.forget(&receipts);
        let open = move |inbound: &mut Inbound| inbound.open_turn(&turn, &rows, &routing, &receipts);
        self.project(awake, open).await?;
        failpoint::reach("project");
        if awake.link.ring().is_err() {
            return Err(Slept::died(ending(&awake.sandbox).await));
        }
        Ok(Some(Open { opened, until }))
    }

    /// Projects that the turn is over, and what became of answers as far as that is known.
    async fn close_turn(&mut self, awake: &mut Awake, closing: Option<Closing>) -> Result<(), Slept> {
        let Some(Closing { opened, .. }) = closing else { return Ok(()) };
        let receipts = self.receipts(awake).await?;
        let turn = row_of(&opened);
        let routing = projection::routing(&awake.session.origin, awake.cursor);
        self.project(awake, move |inbound| inbound.close_turn(&turn, &routing, &receipts)).await
    }

    /// Projects the receipts of answers, once there are some: what goes out by a network has its receipt after its turn.
    pub(crate) async fn project_receipts(&mut self, awake: &mut Awake) -> Result<(), Slept> {
        let receipts = self.receipts(awake).await?;
        if receipts.is_empty() {
            return Ok(());
        }
        self.project(awake, move |inbound| inbound.receipts(&receipts)).await
    }

    /// Takes the receipts that there are by now, for the sandbox.
    pub(crate) async fn receipts(&self, awake: &mut Awake) -> Result<Vec<Receipt>, Error> {
        if awake.unreceipted.is_empty() {
            return Ok(Vec::new());
        }
        let unreceipted = awake.unreceipted.clone();
        let receipts = self.state().read(move |tx| Ok::<_, Error>(unreceipted.receipts(tx)?)).await?;
        awake.unreceipted.forget(&receipts);
        Ok(receipts)
    }

    /// Writes to the inbound queue off the runtime's threads; a lock that a sandbox holds ends it.
    pub(crate) async fn project<F>(&mut self, awake: &mut Awake, write: F) -> Result<(), Slept>
    where
        F: FnOnce(&mut Inbound) -> Result<(), crypt::Error> + Send + 'static,
    {
        let Some(mut inbound) = awake.inbound.take() else { return Ok(()) };
        let written = tokio::task::spawn_blocking(move || {
            let written = write(&mut inbound);
            (inbound, written)
        });
        match written.await {
            Ok((inbound, written)) => {
                awake.inbound = Some(inbound);
                written.map_err(|error| match Shortage::of(&error) {
                    Some(shortage) => Slept::Short(shortage),
                    None => Slept::died(error.to_string()),
                })
            }
            Err(_) => Err(Slept::died("writing to its inbound queue failed")),
        }
    }

    /// Delivers what has no receipt on the loopback, and notes the receipt; what goes out by a network is left to whoever sends it.
    pub(crate) async fn deliver(&mut self) -> Result<(), Error> {
        let id = self.id;
        let open = self.state().read(move |tx| Ok::<_, Error>(delivery::open_of(tx, id)?)).await?;
        for delivery in open {
            self.runtime.outbound.deliver(delivery).await?;
        }
        Ok(())
    }

    /// Ends a turn that is over and has no answer. Where a model was being asked or had failed, that is why, and it is no failure
    /// of the sandbox.
    async fn miss_deadline(&mut self, key: Arc<ContentKey>, turn: TurnId) -> Result<Slept, Error> {
        let (turns, id) = (Arc::clone(&self.runtime.turns), self.id);
        let is_asking = turns.drafts.is_asking(id, turn);
        let close = self.state().write(move |tx| {
            let open = turn::find(tx, turn)?.filter(|turn| turn.open);
            let (Some(open), Some(session)) = (open, store::find(tx, id)?) else { return Ok::<_, Error>(false) };
            let why = if is_asking { Some(LATE_MODEL.to_owned()) } else { turn::failure(tx, turn)? };
            let message = turn::newest_message(tx, turn)?;
            let general = || delivery::notice_for(EndReason::Time, &turns.config, message);
            let text = why.as_deref().map_or_else(general, |why| delivery::notice_of_model(why, message));
            accept::close_with_notice(tx, &turns.record, &session, &key, &open, &text, "deadline")?;
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
