//! The threads of the record: one writes, several changes to a commit; one reads, several reads to a snapshot; one searches, each
//! search with a snapshot of its own.
//!
//! None leaves a caller without an answer, and nothing is built on damage. See [`crate::events`].

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

/// Searches that share a snapshot. A search may take long, and no checkpoint passes the snapshot that it reads from.
pub(super) const SEARCH_GROUP_MAX: usize = 1;

/// Work in a transaction. Returns whether its changes are kept.
pub(super) type Work = Box<dyn FnOnce(&mut WriteTx<'_>) -> bool + Send>;

/// Work that waits for a thread.
pub(super) struct Job {
    pub(super) work: Work,
    /// Whether it needs a transaction of its own.
    pub(super) alone: bool,
    /// Receives the result of the commit, or of the beginning of a snapshot.
    pub(super) reply: oneshot::Sender<Result<(), Error>>,
}

fn reply_to_all(replies: Vec<oneshot::Sender<Result<(), Error>>>, result: &rusqlite::Result<()>) {
    for reply in replies {
        // The caller may have gone; the commit is kept all the same.
        let _ = reply.send(result.as_ref().copied().map_err(|error| Error::Unwritten(error.to_string())));
    }
}

/// State of the threads for their watcher.
#[derive(Clone)]
pub(super) struct Watched {
    pub(super) metrics: Metrics,
    pub(super) damaged: watch::Sender<bool>,
}

impl Watched {
    /// Tells of the damage that this thread came upon since the last call; damage is never taken back. Gives whether there is any,
    /// and is called after each job.
    fn look(&self) -> bool {
        if DAMAGE.take() && !self.damaged.send_replace(true) {
            tracing::error!("SQLite found damage in the state database");
        }
        *self.damaged.borrow()
    }
}

pub(super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    // A half-done job must not leave a host that looks alive and records nothing.
    let run = move || {
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
            std::process::abort();
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(run).expect("the system starts one thread at start-up")
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
        // The other thread may have found damage.
        if watched.look() {
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
            for entry in &group.told {
                watched.metrics.entry(entry.event, entry.refuses);
            }
            events.tell(group.told);
        }
        reply_to_all(group.replies, &committed);
        watched.metrics.group_ends();
        if watched.look() {
            break;
        }
        // Earlier jobs are in the queue before the job that woke us, and are done by now or in the next group.
        if closing.load(Ordering::SeqCst) && held.is_none() && jobs.is_empty() {
            break;
        }
    }
    drop(held);
    refuse_the_rest(jobs);
}

/// Changes that share a commit.
#[derive(Default)]
struct Group {
    replies: Vec<oneshot::Sender<Result<(), Error>>>,
    /// Entries of the ledger, for those who watch it.
    told: Vec<Committed>,
    /// Whether any of them changed a row.
    wrote: bool,
    /// Whether any of them wants the log emptied, because it removed what must not stay there.
    empty_log: bool,
    /// When the commit itself began.
    committing: Option<Instant>,
}

impl Group {
    /// Does `first` and what waits behind it, and commits. A job that wants a transaction to itself ends the group, and is held.
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
                // Nothing is built on it, and nothing that shares its commit.
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

    /// Does one job, and takes back what it changed if it says so.
    fn perform(&mut self, job: Job, tx: &mut WriteTx<'_>) -> rusqlite::Result<()> {
        let db = tx.db;
        sql::begin_job(db)?;
        let before = db.total_changes();
        let keep = (job.work)(tx);
        self.empty_log |= tx.empty_log;
        if keep {
            self.wrote |= db.total_changes() > before;
            self.told.append(&mut tx.entries);
        } else {
            sql::roll_back_job(db)?;
        }
        sql::end_job(db)?;
        self.replies.push(job.reply);
        Ok(())
    }

    /// Empties the log if a job of this group wants it, or notes that it is no longer empty.
    fn settle_log(&self, db: &Connection, is_emptied: &mut bool) {
        if self.empty_log {
            let _ = log::emptied(db);
            // Busy readers make it incomplete; the next one, or the stop of the daemon, completes it.
            let _ = sql::empty_log(db);
            *is_emptied = true;
        } else if self.wrote && *is_emptied {
            *is_emptied = log::filled(db).is_err();
        }
    }
}

/// Closes the connection that writes, once it is the last.
pub(super) fn close(db: Connection, owner: log::Owner, watched: &Watched) {
    // While the record says that it is open its log has to stay, and a damaged record stays as it is.
    if owner == log::Owner::Another || watched.look() || log::closed(&db).is_err() {
        return;
    }
    if let Err(error) = sql::empty_log(&db) {
        DAMAGE.set(DAMAGE.get() || is_damage(&error));
    }
    if watched.look() {
        keep_log(&db);
    }
}

/// Takes what was on its way while the thread ended, and drops it, which tells the waiting caller. A receiver that is only
/// dropped leaves such a job in the channel for as long as there is another sender, and its sender waiting.
fn refuse_the_rest(mut jobs: mpsc::Receiver<Job>) {
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
        // Those that wait share a snapshot, which is taken now: after each commit of a change, a new one reads its pages from the
        // file again. A later caller gets a later one, or they might miss what they were told is on disk.
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
        watched.look();
        // Earlier jobs are in the queue before the job that woke us, and are done by now or in the next group.
        if closing.load(Ordering::SeqCst) && jobs.is_empty() {
            break;
        }
    }
    refuse_the_rest(jobs);
}
