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
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::error::SendError;
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
    /// Present if the change was deferred when it was submitted.
    pub(super) deferred: Option<Deferred>,
}

/// A deferred change that is not committed. Dropping this value means that it is committed, or lost.
pub(super) struct Deferred(Arc<AtomicUsize>);

impl Drop for Deferred {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn reply_to_all(replies: Vec<oneshot::Sender<Result<(), Error>>>, result: &rusqlite::Result<()>) {
    for reply in replies {
        // The caller may have stopped waiting; the commit is kept.
        let _ = reply.send(result.as_ref().copied().map_err(|error| Error::Unwritten(error.to_string())));
    }
}

/// A group of changes that ended.
pub(super) struct Ended {
    /// Ledger entries for the subscribers; none if the group was not committed.
    entries: Vec<Committed>,
    /// Of the callers that wait for the commit.
    replies: Vec<oneshot::Sender<Result<(), Error>>>,
    committed: rusqlite::Result<()>,
}

impl Ended {
    fn notify(self, events: &Events) {
        events.notify(self.entries);
        reply_to_all(self.replies, &self.committed);
    }
}

/// Notifies the subscribers and the callers of each group, in the order of the commits, until the writer ends. As a task of the runtime it
/// wakes no thread for each of them.
pub(super) async fn notify_all(mut ended: mpsc::UnboundedReceiver<Ended>, events: Events) {
    while let Some(group) = ended.recv().await {
        group.notify(&events);
    }
}

/// Time that a deferred change waits at most for a change that shares its commit.
pub const DEFERRED_MAX: Duration = Duration::from_millis(50);

/// Metrics and flags that the threads share.
#[derive(Clone, Default)]
pub(super) struct Watched {
    pub(super) metrics: Metrics,
    pub(super) damaged: watch::Sender<bool>,
    /// Deferred changes that are not committed.
    deferred: Arc<AtomicUsize>,
    /// Number of commits with deferred changes that failed.
    pub(super) lost: watch::Sender<u64>,
}

impl Watched {
    /// Counts a deferred change until the returned value is dropped.
    pub(super) fn defer(&self) -> Deferred {
        self.deferred.fetch_add(1, Ordering::SeqCst);
        Deferred(Arc::clone(&self.deferred))
    }

    /// Returns whether a deferred change is not committed.
    pub(super) fn has_deferred(&self) -> bool {
        self.deferred.load(Ordering::SeqCst) > 0
    }

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

pub(super) struct Writer<'a> {
    pub(super) db: &'a Connection,
    pub(super) clock: &'a Clock,
    pub(super) events: &'a Events,
    /// To [`notify_all`].
    pub(super) ended: &'a mpsc::UnboundedSender<Ended>,
    pub(super) closing: &'a AtomicBool,
    pub(super) watched: &'a Watched,
}

impl Writer<'_> {
    /// Writes until the state is closed, or until there is damage.
    pub(super) fn run(&self, mut jobs: mpsc::Receiver<Job>) {
        let mut held: Option<Job> = None;
        let mut group = Group::default();
        let mut is_emptied = false;
        loop {
            let next = match held.take() {
                Some(job) => Next::Job(job),
                None => next_of(&mut jobs, group.until),
            };
            // Another thread may have found damage.
            if self.watched.report_damage() {
                // The deferred changes are lost, so no later read may succeed without them.
                std::mem::forget(std::mem::take(&mut group.deferred));
                break;
            }
            let outcome = match next {
                Next::Closed if group.until.is_none() => break,
                Next::Closed | Next::Late => group.commit(self.db).map(|()| true),
                // Its transaction begins after all earlier changes are on disk.
                Next::Job(job) if job.alone && group.until.is_some() => {
                    held = Some(job);
                    group.commit(self.db).map(|()| true)
                }
                Next::Job(job) => self.perform(&mut group, job, &mut jobs, &mut held),
            };
            if matches!(outcome, Ok(false)) {
                continue;
            }
            self.end(std::mem::take(&mut group), outcome.map(drop), &mut is_emptied);
            if self.watched.report_damage() {
                break;
            }
            // Jobs from before the one that woke this thread are done by now, or they are in the next group.
            if self.closing.load(Ordering::SeqCst) && held.is_none() && jobs.is_empty() {
                break;
            }
        }
        drop(held);
        drop_waiting_jobs(jobs);
    }

    /// Runs a job and those that wait behind it. Commits them unless every one of them is deferred, and returns whether it did.
    fn perform(
        &self,
        group: &mut Group,
        first: Job,
        jobs: &mut mpsc::Receiver<Job>,
        held: &mut Option<Job>,
    ) -> rusqlite::Result<bool> {
        if group.until.is_none() {
            self.watched.metrics.group_begins();
        }
        group.run(self, first, jobs, held)?;
        if group.replies.is_empty() && group.jobs < GROUP_MAX && group.until.is_some() {
            return Ok(false);
        }
        group.commit(self.db).map(|()| true)
    }

    /// Ends a group, and has its callers and the subscribers notified.
    fn end(&self, group: Group, committed: rusqlite::Result<()>, is_emptied: &mut bool) {
        let took = group.committing.map_or(Duration::ZERO, |since| since.elapsed());
        self.watched.metrics.commit(group.jobs, took, committed.is_ok(), group.wrote);
        if let Err(error) = &committed {
            DAMAGE.set(DAMAGE.get() || is_damage(error));
            tracing::error!(%error, "a group of changes was not committed");
            if !self.db.is_autocommit() {
                let _ = sql::roll_back(self.db);
            }
            if group.until.is_some() {
                self.watched.lost.send_modify(|count| *count += 1);
            }
        } else {
            group.settle_log(self.db, is_emptied);
            for entry in &group.entries {
                self.watched.metrics.entry(entry.event, entry.refuses);
            }
        }
        drop(group.deferred);
        let entries = if committed.is_ok() { group.entries } else { Vec::new() };
        if let Err(SendError(ended)) = self.ended.send(Ended { entries, replies: group.replies, committed }) {
            // There is no runtime, or it has ended.
            ended.notify(self.events);
        }
        self.watched.metrics.group_ends();
    }
}

/// The next event of the writing thread.
enum Next {
    Job(Job),
    /// The time of the deferred changes is over.
    Late,
    Closed,
}

/// Waits for the next job, at most until this time.
fn next_of(jobs: &mut mpsc::Receiver<Job>, until: Option<Instant>) -> Next {
    let closed = |job: Option<Job>| job.map_or(Next::Closed, Next::Job);
    let Some(until) = until else { return closed(jobs.blocking_recv()) };
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        if let Poll::Ready(job) = jobs.poll_recv(&mut Context::from_waker(&waker)) {
            return closed(job);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Next::Late;
        }
        thread::park_timeout(left);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Changes that share a commit.
#[derive(Default)]
struct Group {
    jobs: usize,
    /// Of the jobs whose callers wait for the commit.
    replies: Vec<oneshot::Sender<Result<(), Error>>>,
    /// Ledger entries for the subscribers.
    entries: Vec<Committed>,
    /// Flag: a job of this group changed a row.
    wrote: bool,
    /// Flag: a job of this group requests an empty log, because it erased content.
    empty_log: bool,
    /// Start of the commit itself.
    committing: Option<Instant>,
    /// Latest time of the commit, if a job of this group is deferred: its caller already has its result.
    until: Option<Instant>,
    deferred: Vec<Deferred>,
}

impl Group {
    /// Runs `first` and the jobs that wait behind it. A job that needs its own transaction ends the group and goes to `held`.
    fn run(
        &mut self,
        writer: &Writer<'_>,
        first: Job,
        jobs: &mut mpsc::Receiver<Job>,
        held: &mut Option<Job>,
    ) -> rusqlite::Result<()> {
        let Writer { db, clock, watched, .. } = *writer;
        let (now, wall, prune, expiry) = (clock.now(), wall_clock(), clock.prune_time(), clock.expiry_time());
        let alone = first.alone;
        if self.jobs == 0 {
            sql::begin_to_write(db)?;
        }
        let mut next = Some(first);
        while let Some(job) = next.take() {
            let mut tx = WriteTx::new(ReadTx { db, now, wall, prune, expiry });
            self.perform(job, &mut tx, watched)?;
            if !alone && self.jobs < GROUP_MAX {
                next = jobs.try_recv().ok();
                if next.as_ref().is_some_and(|job| job.alone) {
                    *held = next.take();
                }
            }
        }
        Ok(())
    }

    /// Runs one job, and rolls its changes back if it does not keep them. The caller of a deferred job gets its result.
    fn perform(&mut self, job: Job, tx: &mut WriteTx<'_>, watched: &Watched) -> rusqlite::Result<()> {
        let db = tx.db;
        sql::begin_job(db)?;
        let before = db.total_changes();
        self.jobs += 1;
        let keep = (job.work)(tx);
        self.empty_log |= tx.empty_log;
        if keep {
            self.wrote |= db.total_changes() > before;
            self.entries.append(&mut tx.entries);
        } else {
            sql::roll_back_job(db)?;
        }
        sql::end_job(db)?;
        if DAMAGE.get() {
            // After damage, no job of this group is committed.
            self.replies.push(job.reply);
            let damage = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
            return Err(rusqlite::Error::SqliteFailure(damage, None));
        }
        if keep && tx.is_deferred && !job.alone {
            self.until.get_or_insert_with(|| Instant::now() + DEFERRED_MAX);
            // Before the caller continues, so that its next read finds this change.
            self.deferred.push(job.deferred.unwrap_or_else(|| watched.defer()));
            reply_to_all(vec![job.reply], &Ok(()));
        } else {
            self.replies.push(job.reply);
        }
        Ok(())
    }

    fn commit(&mut self, db: &Connection) -> rusqlite::Result<()> {
        self.committing = Some(Instant::now());
        sql::commit(db)
    }

    /// Empties the log if a job of this group requests that, or marks it as filled.
    fn settle_log(&self, db: &Connection, is_emptied: &mut bool) {
        if self.empty_log {
            let _ = log::mark_emptied(db);
            // With busy readers it is incomplete; the next call or the stop of the host completes it.
            let _ = sql::empty_log(db);
            *is_emptied = true;
        } else if self.wrote && *is_emptied {
            *is_emptied = !log::mark_filled(db).unwrap_or(false);
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
            let (wall, prune, expiry) = (wall_clock(), clock.prune_time(), clock.expiry_time());
            let mut tx = WriteTx::new(ReadTx { db: &db, now, wall, prune, expiry });
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
