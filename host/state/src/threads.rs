//! The three threads of the record. The writer groups changes into one commit, the reader groups reads into one snapshot, and the
//! searcher uses one snapshot for each search.
//!
//! Every caller gets an answer, and after damage no thread commits a change. See [`crate::events`].

use super::clock::{Clock, wall_clock};
use super::events::Events;
use super::opening::keep_log;
use super::{Committed, DAMAGE, Error, ReadTx, WriteTx, is_damage, log, sql};
use crate::metrics::Metrics;
use rusqlite::Connection;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// Changes that share a commit, and reads that share a snapshot.
pub(super) const GROUP_MAX: usize = 64;

/// Searches that share a snapshot. A search may take long, and a checkpoint cannot pass its snapshot.
pub(super) const SEARCH_GROUP_MAX: usize = 1;

/// A function that works in a transaction, and returns whether to keep its changes.
pub(super) type Work = Box<dyn FnOnce(&mut WriteTx<'_>) -> bool + Send>;

/// Work in the queue of a thread.
pub(super) struct Job {
    pub(super) work: Work,
    /// Flag: the job needs a transaction of its own.
    pub(super) alone: bool,
    /// Receiver of the result of the commit, or of the begin of the snapshot.
    pub(super) reply: oneshot::Sender<Result<(), Error>>,
}

fn reply_to_all(replies: Vec<oneshot::Sender<Result<(), Error>>>, result: &rusqlite::Result<()>) {
    for reply in replies {
        // The caller may have stopped waiting; the commit is kept.
        let _ = reply.send(result.as_ref().copied().map_err(|error| Error::Unwritten(error.to_string())));
    }
}

/// Metrics and damage flag that the threads share.
#[derive(Clone)]
pub(super) struct Watched {
    pub(super) metrics: Metrics,
    pub(super) damaged: watch::Sender<bool>,
}

impl Watched {
    /// Reports damage that this thread found since the last call, and returns whether any thread found damage. It is called after each
    /// job, and the flag is never reset.
    fn report_damage(&self) -> bool {
        if DAMAGE.take() && !self.damaged.send_replace(true) {
            tracing::error!("SQLite found damage in the state database");
        }
        *self.damaged.borrow()
    }
}

pub(super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    // A panic in a job must not leave a running host that records nothing.
    let run = move || {
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
            std::process::abort();
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(run).expect("the system can start a thread when the host starts")
}

pub(super) fn write_loop(
    db: &Connection,
    mut jobs: mpsc::Receiver<Job>,
    clock: &Clock,
    events: &Events,
    closing: &AtomicBool,
    watched: &Watched,
) {
    let mut held: Option<Job> = None;
    let mut is_emptied = false;
    while let Some(first) = held.take().or_else(|| jobs.blocking_recv()) {
        // Another thread may have found damage.
        if watched.report_damage() {
            break;
        }
        watched.metrics.group_begins();
        let mut group = Group::default();
        let committed = group.commit(db, clock, first, &mut jobs, &mut held);
        let took = group.committing.map_or(Duration::ZERO, |since| since.elapsed());
        watched.metrics.commit(group.replies.len(), took, committed.is_ok(), group.wrote);
        if let Err(error) = &committed {
            DAMAGE.set(DAMAGE.get() || is_damage(error));
            tracing::error!(%error, "a group of changes was not committed");
            if !db.is_autocommit() {
                let _ = sql::roll_back(db);
            }
        } else {
            group.settle_log(db, &mut is_emptied);
            for entry in &group.entries {
                watched.metrics.entry(entry.event, entry.refuses);
            }
            events.notify(group.entries);
        }
        reply_to_all(group.replies, &committed);
        watched.metrics.group_ends();
        if watched.report_damage() {
            break;
        }
        // Jobs from before the one that woke this thread are done by now, or they are in the next group.
        if closing.load(Ordering::SeqCst) && held.is_none() && jobs.is_empty() {
            break;
        }
    }
    drop(held);
    drop_waiting_jobs(jobs);
}

/// Changes that share a commit.
#[derive(Default)]
struct Group {
    replies: Vec<oneshot::Sender<Result<(), Error>>>,
    /// Ledger entries for the subscribers.
    entries: Vec<Committed>,
    /// Flag: a job of this group changed a row.
    wrote: bool,
    /// Flag: a job of this group requests an empty log, because it erased content.
    empty_log: bool,
    /// Start of the commit itself.
    committing: Option<Instant>,
}

impl Group {
    /// Runs `first` and the jobs that wait behind it, and commits. A job that needs its own transaction ends the group and goes to
    /// `held`.
    fn commit(
        &mut self,
        db: &Connection,
        clock: &Clock,
        first: Job,
        jobs: &mut mpsc::Receiver<Job>,
        held: &mut Option<Job>,
    ) -> rusqlite::Result<()> {
        let (now, wall, prune) = (clock.now(), wall_clock(), clock.prune_time());
        let alone = first.alone;
        sql::begin_to_write(db)?;
        let mut next = Some(first);
        while let Some(job) = next.take() {
            let mut tx = WriteTx::new(ReadTx { db, now, wall, prune });
            self.perform(job, &mut tx)?;
            if DAMAGE.get() {
                // After damage, no job of this group is committed.
                let damage = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
                return Err(rusqlite::Error::SqliteFailure(damage, None));
            }
            if !alone && self.replies.len() < GROUP_MAX {
                next = jobs.try_recv().ok();
                if next.as_ref().is_some_and(|job| job.alone) {
                    *held = next.take();
                }
            }
        }
        self.committing = Some(Instant::now());
        sql::commit(db)
    }

    /// Runs one job, and rolls its changes back if it does not keep them.
    fn perform(&mut self, job: Job, tx: &mut WriteTx<'_>) -> rusqlite::Result<()> {
        let db = tx.db;
        sql::begin_job(db)?;
        let before = db.total_changes();
        let keep = (job.work)(tx);
        self.empty_log |= tx.empty_log;
        if keep {
            self.wrote |= db.total_changes() > before;
            self.entries.append(&mut tx.entries);
        } else {
            sql::roll_back_job(db)?;
        }
        sql::end_job(db)?;
        self.replies.push(job.reply);
        Ok(())
    }

    /// Empties the log if a job of this group requests that, or marks it as filled.
    fn settle_log(&self, db: &Connection, is_emptied: &mut bool) {
        if self.empty_log {
            let _ = log::mark_emptied(db);
            // With busy readers it is incomplete; the next call or the stop of the host completes it.
            let _ = sql::empty_log(db);
            *is_emptied = true;
        } else if self.wrote && *is_emptied {
            *is_emptied = log::mark_filled(db).is_err();
        }
    }
}

/// Closes the write connection; it must be the last one.
pub(super) fn close(db: Connection, owner: log::Owner, watched: &Watched) {
    // The log of a record that is marked as open must stay, and a damaged record is not changed.
    if owner == log::Owner::Another || watched.report_damage() || log::mark_closed(&db).is_err() {
        return;
    }
    if let Err(error) = sql::empty_log(&db) {
        DAMAGE.set(DAMAGE.get() || is_damage(&error));
    }
    if watched.report_damage() {
        keep_log(&db);
    }
}

/// Drops the jobs that arrive while the thread ends, so that their callers get an error. A receiver that is only dropped leaves such
/// a job in the channel while there is another sender, and its caller waits for ever.
fn drop_waiting_jobs(mut jobs: mpsc::Receiver<Job>) {
    jobs.close();
    while let Some(job) = jobs.blocking_recv() {
        drop(job);
    }
}

pub(super) fn read_loop(
    db: Connection,
    mut jobs: mpsc::Receiver<Job>,
    group_max: usize,
    clock: &Clock,
    closing: &AtomicBool,
    watched: &Watched,
) {
    while let Some(first) = jobs.blocking_recv() {
        // The waiting reads share a new snapshot, because after each commit a snapshot reads its pages from the file again. A later
        // read gets a later snapshot; otherwise it could miss a change that was reported as written.
        let group: Vec<Job> =
            std::iter::once(first).chain(std::iter::from_fn(|| jobs.try_recv().ok())).take(group_max).collect();
        let begun = sql::begin(&db);
        for job in group {
            let now = clock.now();
            let mut tx = WriteTx::new(ReadTx { db: &db, now, wall: wall_clock(), prune: clock.prune_time() });
            (job.work)(&mut tx);
            reply_to_all(vec![job.reply], &begun);
        }
        let _ = sql::commit(&db);
        watched.report_damage();
        // Jobs from before the one that woke this thread are done by now, or they are in the next group.
        if closing.load(Ordering::SeqCst) && jobs.is_empty() {
            break;
        }
    }
    drop_waiting_jobs(jobs);
}
