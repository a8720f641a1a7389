//! The execution of an awake session's work: it opens turns, waits for bells, takes rows and delivers.
//!
//! Never polls, and never decides. Events of the sandbox have the lowest priority, so that a noisy sandbox cannot delay a stop or a
//! deadline. See `runtime::work` for the decisions, and [`crate::runtime::accept`].

use crate::channels::agent_messages::{Keys, answer, request};
use crate::channels::outbound::delivery::{self, EndedBy};
use crate::gateway::requests;
use crate::runtime::accept;
use crate::runtime::actor::{Actor, EXIT_TIME_MAX};
use crate::runtime::admission::Slot;
use crate::runtime::command::Command;
use crate::runtime::launch::Awake;
use crate::runtime::life;
use crate::runtime::link::LinkEvent;
use crate::runtime::projection;
use crate::runtime::sleep_reason::SleepReason;
use crate::runtime::work::{Effect, Event, Opening, Work};
use crate::runtime::workspace::WorkspaceMonitor;
use crate::sessions::store;
use crate::turns::open_turns::deadlines::Moves;
use crate::turns::turn::TurnEnd;
use crate::turns::turn::{self, Close, Opened};
use ironclaw_contract::ids::SessionId;
use ironclaw_contract::seam::crypt;
use ironclaw_contract::seam::inbound::{InboundWriter, MessageIn, Turn as TurnRow};
use ironclaw_contract::seam::link::RUNNER_LOST_CODE;
use ironclaw_contract::seam::outbound::EndReason;
use ironclaw_jail::launcher::{Exit, Jailed};
use ironclaw_jail::shortage::Shortage;
use ironclaw_state::ReadTx;
use ironclaw_state::failpoint;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The reason for a turn whose model did not answer before the deadline.
const LATE_MODEL: &str = "the model did not answer before the deadline of this turn";

/// The resources of an awake session's work.
struct WorkResources<'a> {
    awake: &'a mut Awake,
    slot: &'a mut Slot,
    monitor: WorkspaceMonitor,
    open: Option<Opened>,
    /// The start of the work, by the monotonic clock.
    began: Instant,
    /// Changes when the opening of a turn may be lost.
    lost: watch::Receiver<u64>,
}

impl WorkResources<'_> {
    /// Performs an effect that has no result.
    fn perform_at_once(&mut self, effect: Effect<Command>) {
        match effect {
            Effect::Watch { is_open } => self.monitor.turn(is_open),
            Effect::MarkBusy => self.slot.busy(),
            Effect::MarkIdle => self.slot.idle(),
            Effect::EndTurn => {
                self.open = None;
                self.slot.turn_ended();
            }
            // The requester of a dropped command gets the error that the host stops.
            other => drop(other),
        }
    }
}

/// The next turn in the record.
enum Next {
    Opened(Box<Projected>),
    NoMessage,
    Undelivered,
}

struct Projected {
    opened: Opened,
    rows: Vec<MessageIn>,
}

/// Finds the reason from the exit of a sandbox. A sandbox that closed its link but still runs is killed when the session goes to sleep.
async fn exit_reason(sandbox: &Jailed) -> &'static str {
    match tokio::time::timeout(EXIT_TIME_MAX, sandbox.exited()).await {
        Ok(Exit::Code(code)) if code == i32::from(RUNNER_LOST_CODE) => "the process that runs its commands was lost",
        Ok(Exit::Code(_) | Exit::Signal(_)) | Err(_) => "its process ended",
    }
}

impl Actor {
    /// Works until there is a reason to sleep. Returns it as an event for the life of the actor.
    pub(crate) async fn work(
        &mut self,
        awake: &mut Awake,
        slot: &mut Slot,
        keeps_attempts: bool,
    ) -> life::Event<Command> {
        let idle_seconds = self.runtime.settings.now().session.idle_seconds;
        let mut work = Work::new(Duration::from_secs(idle_seconds), keeps_attempts);
        let monitor = WorkspaceMonitor::begin(&self.runtime.workspaces, self.id);
        let (began, lost) = (Instant::now(), self.state().lost());
        let mut resources = WorkResources { awake, slot, monitor, open: None, began, lost };
        let mut event = Some(Event::Begun);
        while let Some(next) = event.take() {
            for effect in work.step(resources.began.elapsed(), next) {
                if let Effect::Sleep { reason, shutdown } = effect {
                    return self.slept(reason, shutdown, work.keeps_attempts());
                }
                event = self.do_work(effect, &mut resources).await.unwrap_or_else(|reason| Some(Event::Slept(reason)));
            }
        }
        // Unreachable: each step ends with an effect that has a result, so the loop ends by a reason to sleep.
        self.slept(SleepReason::Ended(None), None, work.keeps_attempts())
    }

    fn slept(&self, reason: SleepReason, shutdown: Option<Command>, keeps_attempts: bool) -> life::Event<Command> {
        life::Event::Slept { reason, shutdown, is_halted: self.runtime.latch.is_shut(), keeps_attempts }
    }

    /// Performs an effect. Returns its result, if it has one.
    ///
    /// # Errors
    /// A reason to sleep.
    async fn do_work(
        &mut self,
        effect: Effect<Command>,
        resources: &mut WorkResources<'_>,
    ) -> Result<Option<Event<Command>>, SleepReason> {
        let event = match effect {
            Effect::Drain => self.drain(resources.awake).await.map(done)?,
            Effect::CloseLeftOver { keeps_attempts } => {
                self.close_left_over(Arc::clone(&resources.awake.key), keeps_attempts).await.map(done)?
            }
            Effect::Deliver => self.deliver().await.map(done)?,
            Effect::CheckSlot => Event::Slot { is_asked_back: resources.slot.is_asked_back() },
            Effect::OpenTurn => Event::Opened(self.open_turn(resources).await?),
            Effect::Listen { until, is_free, has_more } => self.listen(resources, until, is_free, has_more).await,
            Effect::Take => {
                let taken = self.take(resources.awake).await?;
                Event::Taken { has_more: taken.more, closed: taken.closed }
            }
            Effect::MoveDeadline(moves) => self.move_deadline(resources, moves).await.map(done)?,
            Effect::MissDeadline => Event::Missed {
                is_models: self.miss_deadline(Arc::clone(&resources.awake.key), resources.open.take()).await?,
            },
            Effect::EndOverBound(over) => self.end_over_bound(over).await.map(done)?,
            Effect::ReplaceReader => self.replace_reader(resources.awake).await.map(done)?,
            Effect::FindEnd => Event::End(exit_reason(&resources.awake.sandbox).await),
            Effect::Cancel(command) => Event::Cancelled { is_running: self.cancel_by(command).await? },
            Effect::Prove(command) => self.prove_by(command).await.map(done)?,
            // Listed one by one, so that the compiler reports a new effect here.
            at_once @ (Effect::Watch { .. }
            | Effect::MarkBusy
            | Effect::MarkIdle
            | Effect::EndTurn
            | Effect::Abandon(_)
            | Effect::Sleep { .. }) => {
                resources.perform_at_once(at_once);
                return Ok(None);
            }
        };
        Ok(Some(event))
    }

    async fn cancel_by(&self, command: Command) -> Result<bool, Error> {
        let Command::Cancel(by, done) = command else { return Ok(false) };
        self.cancel(by, done).await
    }

    async fn prove_by(&self, command: Command) -> Result<(), Error> {
        let Command::Prove(by, done) = command else { return Ok(()) };
        let proof = match self.session().await? {
            Some(session) => self.prove(&session, by).await,
            None => Err("the session is gone".to_owned()),
        };
        // The requester may have given up waiting.
        let _ = done.send(proof);
        Ok(())
    }

    /// Waits for the next event. The branches are in order of priority, and every branch is cancel safe.
    async fn listen(
        &mut self,
        resources: &mut WorkResources<'_>,
        until: Duration,
        is_free: bool,
        has_more: bool,
    ) -> Event<Command> {
        let awake = &mut *resources.awake;
        tokio::select! {
            biased;
            () = self.runtime.latch.shut() => Event::Halted,
            command = self.mailbox.recv() => command.map_or(Event::MailboxClosed, Event::Asked),
            () = resources.slot.asked_back(), if is_free => Event::AskedBack,
            (moves, moved) = self.runtime.turns.deadlines.moved(self.id), if !is_free => {
                Event::DeadlineMoved { until: moved.saturating_duration_since(resources.began), moves }
            }
            () = tokio::time::sleep_until(resources.began + until) => Event::TimeOver,
            _ = awake.sandbox.exited() => Event::SandboxEnded,
            _ = awake.reader_process.exited() => Event::ReaderEnded,
            Some(what) = awake.violations.recv() => Event::Violation(what),
            Some(over) = resources.monitor.over.recv() => Event::Full(over),
            Ok(()) = resources.lost.changed(), if !is_free => match self.find_turn(resources.open.as_ref()).await {
                Ok(()) => Event::Rows,
                Err(error) => Event::Slept(error.into()),
            },
            () = std::future::ready(()), if has_more => Event::Rows,
            rung = awake.link.next_event() => match rung {
                LinkEvent::Bell => Event::Rows,
                LinkEvent::Violation(what) => Event::Violation(what),
                LinkEvent::Ended => Event::SandboxEnded,
            },
        }
    }

    /// Checks that the record has the open turn after a commit failed.
    async fn find_turn(&self, open: Option<&Opened>) -> Result<(), Error> {
        let Some(turn) = open.map(|opened| opened.id) else { return Ok(()) };
        match self.state().read(move |tx| turn::find(tx, turn)).await? {
            Some(_) => Ok(()),
            None => Err(ironclaw_state::Error::Unwritten(format!("the opening of {turn}")).into()),
        }
    }

    /// Closes the turn that an earlier launch left open, after its rows are taken.
    async fn close_left_over(&self, key: Arc<ContentKey>, keeps_attempts: bool) -> Result<(), Error> {
        let (turns, id) = (Arc::clone(&self.runtime.turns), self.id);
        let close = self.state().write(move |tx| {
            let Some(open) = turn::open_of(tx, id)? else { return Ok::<_, Error>(()) };
            if keeps_attempts {
                let messages = turn::close(tx, &open, Close::Requeued, TurnEnd::Shortage)?;
                return Ok(turn::refund_attempt(tx, &messages)?);
            }
            let attempts = turn::attempts(tx, open.id)?;
            let ended_by = if turns.cut.contains(&open.id) { EndedBy::Host } else { EndedBy::Sandbox };
            match store::find(tx, id)? {
                Some(session) if attempts >= turn::MESSAGE_ATTEMPTS_MAX => {
                    let message = turn::newest_message(tx, open.id)?;
                    let text = delivery::notice_of_given_up(ended_by, attempts, message);
                    accept::close_with_notice(
                        tx,
                        &turns.record,
                        &session,
                        &key,
                        &open,
                        &text,
                        ended_by.give_up_reason(),
                    )
                    .map(drop)
                }
                _ => Ok(turn::close(tx, &open, Close::Requeued, ended_by.requeue_reason()).map(drop)?),
            }
        });
        close.await
    }

    /// Opens the next turn, projects it and rings, unless an answer on this host is not delivered.
    async fn open_turn(&mut self, resources: &mut WorkResources<'_>) -> Result<Opening, SleepReason> {
        let awake = &mut *resources.awake;
        let (turns, session) = (Arc::clone(&self.runtime.turns), Arc::clone(&awake.session));
        let latch = Arc::clone(&self.runtime.latch);
        let next = self
            .state()
            .write(move |tx| {
                if !latch.is_shut() && delivery::is_any_open_here(tx, session.id)? {
                    return Ok(Next::Undelivered);
                }
                let keys = Keys { wrapping: &turns.record.wrapping, sealer: &turns.record.sealer };
                request::end_lost(tx, &session, keys)?;
                if waits_for_a_call(tx, session.id)? {
                    return Ok(Next::NoMessage);
                }
                let Some(opened) = turn::open_next(tx, session.id, &turns.config())? else {
                    return Ok::<_, Error>(Next::NoMessage);
                };
                answer::receive(tx, &opened.messages)?;
                let shown = opened.context.iter().chain(&opened.messages);
                let rows = shown.map(|message| projection::row(tx, *message, &turns.record.sealer));
                let rows = rows.collect::<Result<Vec<_>, _>>()?;
                turn::mark_context_shown(tx, &opened.context)?;
                // If it is lost, the messages still wait. The first request to a model is on disk before it is sent.
                tx.defer();
                Ok(Next::Opened(Box::new(Projected { opened, rows })))
            })
            .await?;
        let Projected { opened, rows } = match next {
            Next::Opened(projected) => *projected,
            Next::NoMessage => return Ok(Opening::NoMessage),
            Next::Undelivered => return Ok(Opening::Undelivered),
        };
        failpoint::reach("turn_open");
        let until = Instant::now() + Duration::from_secs(u64::from(self.runtime.turns.config().seconds_max));
        // Before the sandbox sees the turn.
        self.runtime.turns.deadlines.begin(self.id, opened.id, until);
        let (turn, messages, deadline) = (opened.id, opened.messages.clone(), opened.deadline);
        let turn = TurnRow { turn, messages, deadline, cursor: awake.cursor };
        self.project(awake, move |inbound| inbound.open_turn(&turn, &rows)).await?;
        failpoint::reach("project");
        if awake.link.ring().is_err() {
            return Err(SleepReason::died(exit_reason(&awake.sandbox).await));
        }
        resources.open = Some(opened);
        Ok(Opening::Until(until.saturating_duration_since(resources.began)))
    }

    /// Projects the deadline of the open turn, which moved because a call waits for people.
    async fn move_deadline(&self, resources: &mut WorkResources<'_>, moves: Moves) -> Result<(), SleepReason> {
        if let Some(opened) = &resources.open {
            let later = i64::try_from(moves.ms).unwrap_or(i64::MAX);
            let deadline = opened.deadline.saturating_add(later);
            self.project(resources.awake, move |inbound| inbound.move_deadline(deadline)).await?;
        }
        self.runtime.turns.deadlines.mark_projected(self.id, moves);
        Ok(())
    }

    /// Writes to the inbound queue on a blocking thread; a lock that the sandbox holds ends the session.
    pub(crate) async fn project<F>(&self, awake: &mut Awake, write: F) -> Result<(), SleepReason>
    where
        F: FnOnce(&mut InboundWriter) -> Result<(), crypt::Error> + Send + 'static,
    {
        let Some(mut inbound) = awake.inbound.take() else { return Ok(()) };
        let written = tokio::task::spawn_blocking(move || {
            let written = write(&mut inbound);
            (inbound, written)
        });
        match written.await {
            Ok((inbound, written)) => {
                awake.inbound = Some(inbound);
                written.map_err(|error| match Shortage::find_in(&error) {
                    Some(shortage) => SleepReason::Short(shortage),
                    None => SleepReason::died(error.to_string()),
                })
            }
            Err(_) => Err(SleepReason::died("writing to its inbound queue failed")),
        }
    }

    /// Delivers open answers on the loopback and records their receipts; the dispatcher sends those that go over a network.
    pub(crate) async fn deliver(&self) -> Result<(), Error> {
        let id = self.id;
        let open = self.state().read(move |tx| Ok::<_, Error>(delivery::open_of(tx, id)?)).await?;
        for delivery in open {
            self.runtime.outbound.deliver(delivery).await?;
        }
        Ok(())
    }

    /// Closes a turn that has no answer at its deadline. Returns whether a model request was running or had failed: then the model is the
    /// reason, and this is no failure of the sandbox.
    async fn miss_deadline(&self, key: Arc<ContentKey>, opened: Option<Opened>) -> Result<bool, Error> {
        let Some(Opened { id: turn, .. }) = opened else { return Ok(false) };
        let (turns, id) = (Arc::clone(&self.runtime.turns), self.id);
        let is_asking = turns.partial_outputs.is_asking(id, turn);
        let close = self.state().write(move |tx| {
            let open = turn::find(tx, turn)?.filter(|turn| turn.open);
            let (Some(open), Some(session)) = (open, store::find(tx, id)?) else { return Ok::<_, Error>(false) };
            let why = if is_asking { Some(LATE_MODEL.to_owned()) } else { turn::failure(tx, turn)? };
            let message = turn::newest_message(tx, turn)?;
            let general = || delivery::notice_for(EndReason::Time, &turns.config(), message);
            let text = why.as_deref().map_or_else(general, |why| delivery::notice_of_model(why, message));
            accept::close_with_notice(tx, &turns.record, &session, &key, &open, &text, TurnEnd::Deadline)?;
            Ok(why.is_some())
        });
        let is_models = close.await?;
        self.deliver().await?;
        Ok(is_models)
    }
}

/// Returns whether the next message waits for an approved call of an interrupted attempt: the next attempt begins with its result. The
/// worker of late calls makes the call and wakes the session.
fn waits_for_a_call(tx: &ReadTx<'_>, session: SessionId) -> Result<bool, ironclaw_state::Error> {
    match turn::choose(&turn::waiting(tx, session)?).first() {
        Some(first) if turn::open_of(tx, session)?.is_none() => requests::is_any_due(tx, session, first.id),
        Some(_) | None => Ok(false),
    }
}

const fn done<C>((): ()) -> Event<C> {
    Event::Done
}
