//! The worker of schedules: it sleeps until the earliest next time, and settles runs as the record tells their end.
//!
//! Nothing polls: a time is a deadline, and ledger entries about schedules and about the sessions of open runs wake it. See
//! [`ironclaw_store::worker`] for the loop, and [`super::attendance`] for a clock that jumps.

use super::attendance::Attendance;
use super::{Context, consume_due, outcome, start_next};
use crate::registry::latch::Latch;
use crate::registry::schedules::catch_up::Moment;
use crate::registry::schedules::next_time::ATTENDED_RECORDED_EVERY_MS;
use crate::registry::schedules::{self, OccurrenceState, next_time};
use crate::runtime::pipeline::Inbound;
use ironclaw_contract::ids::{ScheduleId, SessionId};
use ironclaw_operator::{LedgerEvent, Topic};
use ironclaw_state::{Committed, EventsOf, ReadTx, WriteTx, failpoint, wall_clock};
use ironclaw_store::error::Error;
use ironclaw_store::shutdown::Shutdown;
use ironclaw_store::tables::facts::{self, Fact};
use ironclaw_store::tables::schedules as table;
use ironclaw_store::worker::{self, Due, Wait};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// Schedules that one transaction handles.
const AT_ONCE_MAX: usize = 64;

/// Schedules whose next times one read checks.
const CHECKED_AT_ONCE: usize = 256;

/// The pause between two checks of all next times: the rules of a zone may have changed.
const CHECKED_EVERY: Duration = Duration::from_secs(3600);

/// The ledger entries that wake the worker.
enum Watch {
    /// Those about no session, among them every change of a schedule.
    Schedules(EventsOf),
    /// All, while a run is open.
    Every(Receiver<Arc<Committed>>),
}

pub struct ScheduleWorker {
    inbound: Inbound,
    latch: Arc<Latch>,
    watch: Watch,
    shutdown: Shutdown,
    began: Instant,
    /// Empty before the first pass.
    attendance: Option<Attendance>,
    /// The recorded attended time.
    recorded: Option<i64>,
    /// The end of the wait, by the monotonic clock.
    planned: Option<Duration>,
    /// The last check of all next times.
    checked: Option<Duration>,
    /// Schedules whose late times wait until the clock is trusted.
    held: BTreeSet<ScheduleId>,
}

/// What the record says about the work.
struct Work {
    due: Vec<ScheduleId>,
    /// Schedules with a run that has ended, or with one that may start.
    moving: Vec<ScheduleId>,
    next_due: Option<i64>,
    /// Flag: an occurrence is open.
    has_open: bool,
}

impl ScheduleWorker {
    pub fn new(inbound: Inbound, latch: Arc<Latch>, shutdown: Shutdown) -> Self {
        // No session has this id, so only entries about none arrive.
        let watch = Watch::Schedules(inbound.record.state.events_of(SessionId::new()));
        let began = Instant::now();
        let (attendance, recorded, planned, checked) = (None, None, None, None);
        Self { inbound, latch, watch, shutdown, began, attendance, recorded, planned, checked, held: BTreeSet::new() }
    }

    /// Runs until the host stops.
    pub async fn run(self) {
        let shutdown = self.shutdown.clone();
        worker::run(self, &Notify::new(), &shutdown).await;
    }

    /// Watches the entries of sessions only while a run is open. Returns whether the entries since the last look may have been missed.
    fn rewatch(&mut self, has_open: bool) -> bool {
        let state = &self.inbound.record.state;
        match (&self.watch, has_open) {
            (Watch::Schedules(_), true) => self.watch = Watch::Every(state.events()),
            (Watch::Every(_), false) => self.watch = Watch::Schedules(state.events_of(SessionId::new())),
            (Watch::Schedules(_), false) | (Watch::Every(_), true) => return false,
        }
        true
    }

    /// Observes the clocks.
    async fn observe(&mut self) -> Result<Attendance, Error> {
        let planned = self.planned.take();
        let attendance = match self.attendance {
            Some(mut attendance) => {
                attendance.observe(wall_clock(), self.began.elapsed(), planned);
                attendance
            }
            None => {
                self.recorded = self.inbound.record.state.read(facts::schedules_attended).await?;
                Attendance::new(wall_clock(), self.began.elapsed(), self.recorded)
            }
        };
        self.attendance = Some(attendance);
        Ok(attendance)
    }

    /// Computes the next times again that are wrong by the present clock and the present rules of the zones.
    async fn correct_all(&self, moment: Moment) -> Result<(), Error> {
        let state = &self.inbound.record.state;
        let mut after = None;
        loop {
            let page = state.read(move |tx| {
                let page = table::timed(tx, after, CHECKED_AT_ONCE)?;
                let wrong = page.iter().filter(|row| is_wrong(tx, row, &moment)).map(|row| row.id).collect();
                let last = page.last().filter(|_| page.len() == CHECKED_AT_ONCE).map(|row| row.id);
                Ok::<(Vec<ScheduleId>, Option<ScheduleId>), Error>((wrong, last))
            });
            let (wrong, last) = page.await?;
            for ids in wrong.chunks(AT_ONCE_MAX) {
                let ids = ids.to_vec();
                let correct =
                    move |tx: &mut WriteTx<'_>| ids.iter().try_for_each(|id| next_time::correct(tx, *id, &moment));
                state.write(correct).await?;
            }
            match last {
                Some(last) => after = Some(last),
                None => return Ok(()),
            }
        }
    }

    async fn read_due(&self, now: i64) -> Result<Work, Error> {
        let held = self.held.clone();
        let look = self.inbound.record.state.read(move |tx| {
            let mut due = table::due(tx, now, AT_ONCE_MAX + held.len())?;
            due.retain(|id| !held.contains(id));
            due.truncate(AT_ONCE_MAX);
            let open = table::open_runs(tx)?;
            Ok::<_, Error>(Work {
                due,
                moving: moving(tx, &open)?,
                next_due: table::next_due(tx, now)?,
                has_open: !open.is_empty(),
            })
        });
        look.await
    }

    /// Processes schedules in one transaction; if that fails, each in one of its own, so that one with an error delays no other.
    async fn process_all(&self, ids: Vec<ScheduleId>, moment: Moment) -> Result<(), Error> {
        let failed = match self.process(ids.clone(), moment).await {
            Err(error) if ids.len() > 1 && !is_closed(&error) => error,
            done => return done,
        };
        tracing::warn!(error = %failed, "schedules are processed one by one");
        let mut last = Ok(());
        for id in ids {
            match self.process(vec![id], moment).await {
                Err(error) if is_closed(&error) => return Err(error),
                Err(error) => last = Err(error),
                Ok(()) => {}
            }
        }
        last
    }

    /// Settles the ended runs of schedules, consumes their times that have come, and starts the next runs.
    async fn process(&self, ids: Vec<ScheduleId>, moment: Moment) -> Result<(), Error> {
        let (inbound, latch) = (self.inbound.clone(), Arc::clone(&self.latch));
        let started = self.inbound.record.state.write(move |tx| {
            let settings = inbound.settings.now();
            let context = Context {
                record: &inbound.record,
                settings: &settings,
                sessions_max: inbound.sessions_max,
                is_stopped: latch.is_shut(),
            };
            let mut started = Vec::new();
            for id in ids {
                settle_ended(tx, id)?;
                let session = match consume_due(tx, &context, id, &moment)? {
                    Some(session) => Some(session),
                    None => start_next(tx, &context, id)?,
                };
                started.extend(session);
            }
            Ok::<_, Error>(started)
        });
        let started: Vec<SessionId> = started.await?;
        failpoint::reach("schedule_run");
        for session in started {
            self.inbound.wake.wake(session);
        }
        Ok(())
    }

    /// Records the attended time, now and then, and once it went back.
    async fn record_attended(&mut self, attended: i64) -> Result<(), Error> {
        let is_due = |recorded: i64| attended < recorded || attended - recorded >= ATTENDED_RECORDED_EVERY_MS;
        if self.recorded.is_none_or(is_due) {
            let set = move |tx: &mut WriteTx<'_>| facts::set(tx, Fact::SchedulesAttended, attended);
            self.inbound.record.state.write(set).await?;
            self.recorded = Some(attended);
        }
        Ok(())
    }
}

fn is_closed(error: &Error) -> bool {
    matches!(error, Error::State(ironclaw_state::Error::Closed))
}

/// Returns whether the next time of a schedule is wrong. A row that cannot be read has none.
fn is_wrong(tx: &ReadTx<'_>, row: &schedules::Schedule, moment: &Moment) -> bool {
    let found = next_time::is_wrong(tx, row, moment);
    found.inspect_err(|error| tracing::warn!(%error, "the times of a schedule cannot be read")).unwrap_or(false)
}

/// Returns the schedules with a run that has ended, or with one that may start.
fn moving(tx: &ReadTx<'_>, open: &[table::OpenRun]) -> Result<Vec<ScheduleId>, Error> {
    let awaited: BTreeSet<ScheduleId> =
        open.iter().filter(|run| run.is_awaited).map(|run| run.occurrence.schedule).collect();
    let mut moving = BTreeSet::new();
    for run in open {
        let id = run.occurrence.schedule;
        let may_start = run.occurrence.state == OccurrenceState::Scheduled && !awaited.contains(&id);
        if may_start || (run.may_have_ended && outcome::find(tx, &run.occurrence)?.is_some()) {
            moving.insert(id);
        }
    }
    Ok(moving.into_iter().collect())
}

/// Settles the started occurrences of a schedule that have an end.
fn settle_ended(tx: &mut WriteTx<'_>, id: ScheduleId) -> Result<(), Error> {
    for open in table::open_of(tx, id)?.iter().filter(|open| open.state == OccurrenceState::Started) {
        let (Some(end), Some(row)) = (outcome::find(tx, open)?, schedules::find(tx, id)?) else { continue };
        outcome::settle(tx, &row, open, end.state, end.reason, end.receipt)?;
    }
    Ok(())
}

impl Due for ScheduleWorker {
    const FAILED: &'static str = "schedules wait";
    const RETRY_AFTER: Duration = Duration::from_secs(5);
    /// A clock that was set is noticed at once; without a timer for that, after this time at the latest.
    const PAUSE_MAX: Duration = CHECKED_EVERY;

    async fn process_due(&mut self) -> Result<Wait, Error> {
        let mut attendance = self.observe().await?;
        let moment = attendance.moment();
        let at = self.began.elapsed();
        let is_due = |checked: Duration| at.saturating_sub(checked) >= CHECKED_EVERY;
        if attendance.take_went_back() || self.checked.is_none_or(is_due) {
            self.correct_all(moment).await?;
            self.checked = Some(at);
            self.held.clear();
        }
        if moment.is_trusted {
            self.held.clear();
        }
        let (mut work, mut processed) = (self.read_due(moment.now).await?, Ok(()));
        let ids: BTreeSet<ScheduleId> = work.due.iter().chain(work.moving.iter().take(AT_ONCE_MAX)).copied().collect();
        if !ids.is_empty() {
            processed = self.process_all(ids.into_iter().collect(), moment).await;
            let handled: BTreeSet<ScheduleId> = work.due.into_iter().collect();
            work = self.read_due(moment.now).await?;
            if !moment.is_trusted {
                self.held.extend(work.due.extract_if(.., |id| handled.contains(id)));
            }
        }
        let has_more = !work.due.is_empty() || !work.moving.is_empty();
        if !has_more && self.held.is_empty() {
            attendance.attend();
            self.record_attended(attendance.attended()).await?;
        }
        self.attendance = Some(attendance);
        // An entry may have been committed before the watch began.
        let wait = if self.rewatch(work.has_open) || has_more {
            Some(Duration::ZERO)
        } else {
            let until =
                |due: i64| Duration::from_millis(u64::try_from(due - wall_clock()).unwrap_or(0)).min(CHECKED_EVERY);
            [work.next_due.map(until), attendance.steady_in()].into_iter().flatten().min()
        };
        self.planned = wait.map(|wait| self.began.elapsed() + wait);
        processed.map(|()| wait.map_or(Wait::Bell, Wait::AtMost))
    }

    /// Waits for an entry that concerns schedules or, while a run is open, a session. Entries that follow at once are one with it.
    async fn finish_one(&mut self) -> Option<()> {
        let Self { watch, shutdown, .. } = self;
        loop {
            let next = async {
                match watch {
                    Watch::Schedules(events) => events.recv().await,
                    Watch::Every(events) => events.recv().await,
                }
            };
            let received = tokio::select! {
                // Nothing is in flight: a stop waits for no entry.
                () = shutdown.stopped() => return None,
                received = next => received,
            };
            match received {
                Ok(entry) if !concerns(&entry, matches!(watch, Watch::Every(_))) => continue,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
            if let Watch::Every(events) = watch {
                // The look after this one sees what they changed.
                while matches!(events.try_recv(), Ok(_) | Err(TryRecvError::Lagged(_))) {}
            }
            return Some(());
        }
    }
}

/// Returns whether an entry may change the work.
fn concerns(entry: &Committed, has_open: bool) -> bool {
    match entry.event.topic() {
        Topic::Schedule => true,
        Topic::Delivery | Topic::Session => has_open,
        _ => has_open && entry.event == LedgerEvent::TurnClosed,
    }
}
