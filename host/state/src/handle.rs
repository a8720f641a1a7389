//! The shared handle of the state, for all readers and writers.
//!
//! Never touches the file itself: its threads do that. See [`crate::threads`].

use super::clock::Clock;
use super::events::{Events, EventsOf};
use super::opening::{check_pages, connect, connect_for_searches, connect_to_read, create};
use super::threads::{GROUP_MAX, Job, SEARCH_GROUP_MAX, Watched, Work, Writer, close, notify_all, read_loop, spawn};
use super::{Committed, Error, ReadTx, SEARCH_UNTIL, WriteTx, log, migrations, snapshot, sql, wall_clock};
use crate::metrics::Metrics;
use ironclaw_contract::ids::SessionId;
use ironclaw_contract::seam::crypt::SessionKey;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

/// Jobs in a queue; when it is full, the next sender waits.
const QUEUE_MAX: usize = 1024;

/// The result of work in the record, after its transaction. Boxed, so that the wait is compiled once for each result and not for each
/// caller.
pub type Outcome<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// Work of a caller.
type Task<T, E> = Box<dyn FnOnce(&mut WriteTx<'_>) -> Result<T, E> + Send>;

/// The shared handle of the state.
#[derive(Clone)]
pub struct State {
    writes: mpsc::Sender<Job>,
    reads: mpsc::Sender<Job>,
    searches: mpsc::Sender<Job>,
    events: Events,
    /// The writing thread, which ends after the other threads.
    writer: Arc<Mutex<Option<JoinHandle<()>>>>,
    closing: Arc<AtomicBool>,
    clock: Clock,
    watched: Watched,
    path: Arc<Path>,
}

impl State {
    /// Makes an empty file for the state, unless there is one. Only the setup of a home needs it.
    ///
    /// # Errors
    /// [`Error::NotMade`].
    pub fn create(path: &Path) -> Result<(), Error> {
        create(path)
    }

    /// Opens an existing state, migrates its schema, and starts its threads. Inside a runtime, the results of changes arrive only while
    /// this runtime runs.
    ///
    /// # Errors
    /// [`Error::WrongKey`], [`Error::Newer`] and [`Error::Older`]; otherwise the errors of SQLite.
    pub fn open(path: &Path, key: &SessionKey) -> Result<Self, Error> {
        Self::open_as(path, key, log::Owner::This)
    }

    /// Opens the state as [`State::open`] does while another process has it open. It leaves the write-ahead log to that process.
    ///
    /// # Errors
    /// As [`State::open`].
    pub fn open_beside(path: &Path, key: &SessionKey) -> Result<Self, Error> {
        Self::open_as(path, key, log::Owner::Another)
    }

    fn open_as(path: &Path, key: &SessionKey, owner: log::Owner) -> Result<Self, Error> {
        // Before SQLite opens the file, because SQLite drops all frames behind a damaged one. The log of another process may end in half a
        // frame at any time, so it is not inspected.
        let left = match owner {
            log::Owner::This => Some(log::inspect(path)?),
            log::Owner::Another => None,
        };
        let db = connect(path, key)?;
        check_pages(&db, path)?;
        migrations::run(&db, path, key)?;
        if let Some(left) = left {
            log::mark_open(&db, path, &left)?;
        }
        for other in snapshot::under_other_keys(path, key) {
            tracing::warn!(
                "{} does not open under this master key: remove it if you did not keep the old key",
                other.display()
            );
        }
        // All connections are opened before the first thread starts: a start that fails drops them all, and the log stays.
        let (reading, searching) = (connect_to_read(path, key)?, connect_for_searches(path, key)?);
        let (clock, events) = (Clock::new(sql::newest_entry_at(&db)?), Events::default());
        let closing = Arc::new(AtomicBool::new(false));
        let watched = Watched::default();
        let read = |name: &str, db: Connection, group_max: usize| {
            let (sender, jobs) = mpsc::channel(QUEUE_MAX);
            let (clock, closing, watched) = (clock.clone(), Arc::clone(&closing), watched.clone());
            (sender, spawn(name, move || read_loop(db, jobs, group_max, &clock, &closing, &watched)))
        };
        let (reads, reader) = read("state-reader", reading, GROUP_MAX);
        let (searches, searcher) = read("state-searcher", searching, SEARCH_GROUP_MAX);
        let (writes, jobs) = mpsc::channel(QUEUE_MAX);
        let writer = {
            let (clock, closing, watched) = (clock.clone(), Arc::clone(&closing), watched.clone());
            let (listeners, (ended, of_writer)) = (events.clone(), mpsc::unbounded_channel());
            if let Ok(runtime) = Handle::try_current() {
                runtime.spawn(notify_all(of_writer, events.clone()));
            }
            spawn("state-writer", move || {
                let (events, ended) = (&listeners, &ended);
                Writer { db: &db, clock: &clock, events, ended, closing: &closing, watched: &watched }.run(jobs);
                // The last connection that closes writes the log into the file and removes it, if it may.
                for thread in [reader, searcher] {
                    drop(thread.join());
                }
                close(db, owner, &watched);
            })
        };
        Ok(Self {
            writes,
            reads,
            searches,
            events,
            writer: Arc::new(Mutex::new(Some(writer))),
            closing,
            clock,
            watched,
            path: path.into(),
        })
    }

    /// Runs `change` in a transaction of its own, and rolls it back if it returns an error.
    /// When this function returns, the change is on disk, unless it called [`WriteTx::defer`].
    pub fn write<T, E, F>(&self, change: F) -> Outcome<'_, T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: FnOnce(&mut WriteTx<'_>) -> Result<T, E> + Send + 'static,
    {
        Box::pin(submit(&self.writes, Box::new(change), false))
    }

    /// Submits a deferred change, and waits only for room in the queue of the writer. Each later [`State::read`] finds the change. If it fails,
    /// it is rolled back and logged.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub async fn submit<F>(&self, change: F) -> Result<(), Error>
    where
        F: FnOnce(&mut WriteTx<'_>) -> Result<(), Error> + Send + 'static,
    {
        let work = Box::new(move |tx: &mut WriteTx<'_>| {
            tx.defer();
            change(tx).inspect_err(|error| tracing::error!(%error, "a deferred change failed")).is_ok()
        });
        let job = Job { work, alone: false, reply: oneshot::channel().0, deferred: Some(self.watched.defer()) };
        self.writes.send(job).await.map_err(|_| Error::Closed)
    }

    /// Writes as [`State::write`] does, in a transaction that no other change shares: all data that `change` sees is on disk already.
    pub fn write_alone<T, E, F>(&self, change: F) -> Outcome<'_, T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: FnOnce(&mut WriteTx<'_>) -> Result<T, E> + Send + 'static,
    {
        Box::pin(submit(&self.writes, Box::new(change), true))
    }

    /// Runs `look` on a snapshot of the committed state. Commits deferred changes before.
    pub fn read<T, E, F>(&self, look: F) -> Outcome<'_, T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: FnOnce(&ReadTx<'_>) -> Result<T, E> + Send + 'static,
    {
        Box::pin(self.look(&self.reads, Box::new(move |tx| look(tx))))
    }

    /// Reads as [`State::read`] does, without changes that are still deferred. For a caller that gets the ledger entries of later commits.
    pub fn read_committed<T, E, F>(&self, look: F) -> Outcome<'_, T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: FnOnce(&ReadTx<'_>) -> Result<T, E> + Send + 'static,
    {
        Box::pin(submit(&self.reads, Box::new(move |tx| look(tx)), false))
    }

    /// Commits deferred changes, so that a later [`State::read_committed`] finds them.
    ///
    /// # Errors
    /// The error of the commit.
    pub async fn commit_deferred(&self) -> Result<(), Error> {
        match self.watched.has_deferred() {
            true => self.write(|_| Ok(())).await,
            false => Ok(()),
        }
    }

    /// Reads as [`State::read`] does, in a thread of its own, for reads that may take long. SQLite interrupts a statement that runs
    /// beyond `time_max`.
    pub fn search<T, E, F>(&self, time_max: Duration, look: F) -> Outcome<'_, T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: FnOnce(&ReadTx<'_>) -> Result<T, E> + Send + 'static,
    {
        let timed = move |tx: &mut WriteTx<'_>| {
            SEARCH_UNTIL.set(Some(Instant::now() + time_max));
            let found = look(tx);
            SEARCH_UNTIL.set(None);
            found
        };
        Box::pin(self.look(&self.searches, Box::new(timed)))
    }

    /// Commits deferred changes, and then reads.
    async fn look<T, E>(&self, jobs: &mpsc::Sender<Job>, task: Task<T, E>) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.commit_deferred().await?;
        submit(jobs, task, false).await
    }

    /// Returns the time of the record, in milliseconds since the epoch. It never goes back.
    pub fn now(&self) -> i64 {
        self.clock.now()
    }

    /// Returns by how many milliseconds the record is ahead of the machine's clock. It is ahead if that clock was once set ahead.
    pub fn ahead_ms(&self) -> i64 {
        self.clock.now() - wall_clock()
    }

    /// Returns the metrics of this host.
    pub fn metrics(&self) -> &Metrics {
        &self.watched.metrics
    }

    /// Returns the number of jobs that wait for the writing thread.
    pub fn write_queue(&self) -> usize {
        self.writes.max_capacity() - self.writes.capacity()
    }

    /// Returns the size of the file and of its log, in bytes.
    pub fn bytes(&self) -> u64 {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
        size(&self.path) + size(&log::path_of(&self.path))
    }

    /// Waits until SQLite finds damage in the file, and returns the error for the operator.
    pub async fn damaged(&self) -> Error {
        // It cannot fail: the sender is in `self`.
        let _ = self.watched.damaged.subscribe().wait_for(|damaged| *damaged).await;
        Error::DamagedMeanwhile(self.path.display().to_string())
    }

    /// Subscribes to the number of commits that failed with deferred changes in them. A caller of a deferred change then looks whether the
    /// record has it.
    pub fn lost(&self) -> watch::Receiver<u64> {
        self.watched.lost.subscribe()
    }

    /// Removes the snapshots from before earlier migrations, because they still hold erased content. Returns their number.
    ///
    /// # Errors
    /// [`Error::Snapshot`] with the first snapshot that could not be removed.
    pub async fn forget_snapshots(&self) -> Result<usize, Error> {
        let path: PathBuf = self.path.to_path_buf();
        for aside in snapshot::aside(&path) {
            tracing::warn!("erased content may remain in {}: remove it by hand", aside.display());
        }
        let removed = tokio::task::spawn_blocking(move || snapshot::remove_all(&path)).await;
        removed.map_err(|_| Error::Closed)?.map(|removed| removed.len())
    }

    /// Subscribes to all committed ledger entries.
    pub fn events(&self) -> broadcast::Receiver<Arc<Committed>> {
        self.events.every.subscribe()
    }

    /// Subscribes to committed ledger entries about one session and about none.
    pub fn events_of(&self, session: SessionId) -> EventsOf {
        self.events.subscribe(session)
    }

    /// Writes the changes that wait, closes the file, and returns when its threads have ended. Later calls get [`Error::Closed`].
    ///
    /// A process that exits while a thread still uses the cipher can crash in the exit handler of the cipher library.
    pub async fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        // These jobs only wake the threads. An error means that the state is closed already.
        let _ = self.write(|_| Ok::<_, Error>(())).await;
        let _ = self.read(|_| Ok::<_, Error>(())).await;
        let _ = self.search(Duration::ZERO, |_| Ok::<_, Error>(())).await;
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let joined = tokio::task::spawn_blocking(|| writer.map(JoinHandle::join));
        let _ = joined.await;
    }

    /// Writes the write-ahead log into the database and truncates it, so that it holds no deleted content.
    pub async fn checkpoint(&self) -> Result<(), Error> {
        self.write(|tx| {
            tx.empty_log = true;
            Ok(())
        })
        .await
    }
}

async fn submit<T, E>(jobs: &mpsc::Sender<Job>, task: Task<T, E>, alone: bool) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let result = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&result);
    let work = Box::new(move |tx: &mut WriteTx<'_>| {
        let result = task(tx);
        let keep = result.is_ok();
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        keep
    });
    let committed = run(jobs, work, alone).await;
    let result = result.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (result, committed) {
        (Some(Err(refused)), _) => Err(refused),
        (Some(Ok(value)), Ok(())) => Ok(value),
        (_, Err(error)) => Err(E::from(error)),
        (None, Ok(())) => Err(E::from(Error::Closed)),
    }
}

/// Sends the work to its thread and waits for the commit. Not generic, so that the channels are compiled once.
async fn run(jobs: &mpsc::Sender<Job>, work: Work, alone: bool) -> Result<(), Error> {
    let (reply, committed) = oneshot::channel();
    jobs.send(Job { work, alone, reply, deferred: None }).await.map_err(|_| Error::Closed)?;
    committed.await.unwrap_or_else(|_| match jobs.is_closed() {
        true => Err(Error::Closed),
        // The transaction of its group could not begin.
        false => Err(Error::Unwritten("its transaction could not begin; see the log".to_owned())),
    })
}
