//! The worker of schedules: it sleeps until the earliest next time, and settles runs as the record tells their end.
//!
//! Nothing polls: a time is a deadline, and ledger entries about schedules and about the sessions of open runs wake it. See
//! [`ironclaw_store::worker`] for the loop.

use super::{Context, come, outcome, start_next};
use crate::registry::latch::Latch;
use crate::registry::schedules::{self, OccurrenceState};
use crate::runtime::pipeline::Inbound;
use ironclaw_contract::ids::{ScheduleId, SessionId};
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_state::{Committed, EventsOf, failpoint};
use ironclaw_store::error::Error;
use ironclaw_store::shutdown::Shutdown;
use ironclaw_store::tables::schedules as table;
use ironclaw_store::worker::{self, Due, Wait};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// Schedules whose times one pass consumes.
const AT_ONCE_MAX: usize = 64;

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
}

/// What the record says about the work.
struct Work {
    due: Vec<ScheduleId>,
    next_due: Option<i64>,
    /// Schedules with an open occurrence.
    open: Vec<ScheduleId>,
    now: i64,
}

impl ScheduleWorker {
    pub fn new(inbound: Inbound, latch: Arc<Latch>, shutdown: Shutdown) -> Self {
        // No session has this id, so only entries about none arrive.
        let watch = Watch::Schedules(inbound.record.state.events_of(SessionId::new()));
        Self { inbound, latch, watch, shutdown }
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

    async fn look(&self) -> Result<Work, Error> {
        let look = self.inbound.record.state.read(|tx| {
            let now = tx.wall();
            let due = table::due(tx, now, AT_ONCE_MAX)?;
            let mut open: Vec<ScheduleId> = table::open(tx)?.into_iter().map(|open| open.schedule).collect();
            open.sort();
            open.dedup();
            Ok::<_, Error>(Work { due, next_due: table::next_due(tx)?, open, now })
        });
        look.await
    }

    /// Settles the ended runs of a schedule, consumes its times that have come, and starts the next run.
    async fn process(&self, id: ScheduleId) -> Result<(), Error> {
        let (inbound, latch) = (self.inbound.clone(), Arc::clone(&self.latch));
        let started = self.inbound.record.state.write(move |tx| {
            let settings = inbound.settings.now();
            let context = Context {
                record: &inbound.record,
                settings: &settings,
                sessions_max: inbound.sessions_max,
                is_stopped: latch.is_shut(),
            };
            settle_ended(tx, id)?;
            match come(tx, &context, id)? {
                Some(session) => Ok(Some(session)),
                None => start_next(tx, &context, id),
            }
        });
        let started: Option<SessionId> = started.await?;
        failpoint::reach("schedule_run");
        if let Some(session) = started {
            self.inbound.wake.wake(session);
        }
        Ok(())
    }
}

/// Settles the started occurrences of a schedule that have an end.
fn settle_ended(tx: &mut ironclaw_state::WriteTx<'_>, id: ScheduleId) -> Result<(), Error> {
    for open in table::open_of(tx, id)?.iter().filter(|open| open.state == OccurrenceState::Started) {
        let (Some(end), Some(row)) = (outcome::find(tx, open)?, schedules::find(tx, id)?) else { continue };
        outcome::settle(tx, &row, open, end.state, end.reason, end.receipt)?;
    }
    Ok(())
}

impl Due for ScheduleWorker {
    const FAILED: &'static str = "schedules wait";
    const RETRY_AFTER: Duration = Duration::from_secs(5);
    /// A clock that was set ahead is noticed at once; without a timer for that, after this time at the latest.
    const PAUSE_MAX: Duration = Duration::from_secs(3600);

    async fn process_due(&mut self) -> Result<Wait, Error> {
        let mut work = self.look().await?;
        for id in work.due.iter().chain(&work.open) {
            self.process(*id).await?;
        }
        if !work.due.is_empty() || !work.open.is_empty() {
            work = self.look().await?;
        }
        if self.rewatch(!work.open.is_empty()) {
            // An entry may have been committed before the watch began.
            return Ok(Wait::AtMost(Duration::ZERO));
        }
        Ok(work.next_due.map_or(Wait::Bell, |due| Wait::until(due, work.now)))
    }

    /// Waits for an entry that concerns schedules or, while a run is open, a session.
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
                Ok(entry) if concerns(&entry, matches!(watch, Watch::Every(_))) => return Some(()),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => return Some(()),
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

/// Returns whether an entry may change the work.
fn concerns(entry: &Committed, has_open: bool) -> bool {
    let (event, name) = (entry.event, entry.event.name());
    let ends_runs =
        event == LedgerEvent::TurnClosed || ["delivery.", "session."].iter().any(|start| name.starts_with(start));
    name.starts_with("schedule.") || (has_open && ends_runs)
}
