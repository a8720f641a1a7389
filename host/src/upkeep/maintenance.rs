//! Maintenance of the ledger: signs heads and keeps them outside, and rotates a long or old chain.
//!
//! Never stops the host: a directory that does not answer leads to a warning, an entry, and a retry. See [`ironclaw_ledger::archive`].

mod outside;

pub use outside::AcceptError;

use ironclaw_ledger::archive::{self, RotationReason};
use ironclaw_ledger::head::{self, Position, Signed, Signer};
use ironclaw_ledger::sink::{Sink, no_destination};
use ironclaw_ledger::{Config, Entry, Genesis};
use ironclaw_net::backoff::Backoff;
use ironclaw_operator::{LedgerEvent, LedgerHead, Rotated, SignedHead};
use ironclaw_state::failpoint;
use ironclaw_state::home::Home;
use ironclaw_state::keys::WrappingKey;
use ironclaw_state::{ReadTx, State, WriteTx};
use ironclaw_store::times::DAY_MS;
use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, broadcast::error::RecvError};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The pause before the first retry; it doubles with each further failure.
const RETRY_MIN: Duration = Duration::from_secs(30);

/// The pauses before the retries of one task.
const RETRIES: Backoff = Backoff { first: RETRY_MIN, factor: 2, longest: LOOK_MAX };

/// The longest pause between two attempts, and between two checks of the chain's age: the clock may change, and a machine may sleep.
const LOOK_MAX: Duration = Duration::from_secs(3600);

/// Records in a transaction that people are to be told of a head that was not kept.
pub type Incident = fn(&mut WriteTx<'_>) -> Result<(), ironclaw_state::Error>;

/// Maintenance of the ledger of a running host.
#[derive(Clone)]
pub struct HeadPublisher {
    shared: Arc<Shared>,
    task: Arc<Mutex<Option<JoinHandle<()>>>>,
}

struct Shared {
    state: State,
    home: Home,
    config: Config,
    signer: Arc<Signer>,
    sink: Sink,
    incident: Incident,
    /// Id of the ledger.
    ledger: String,
    /// Directory of its heads.
    directory: Option<PathBuf>,
    /// Known entries of other histories that have signed heads.
    other: Mutex<BTreeSet<Signed>>,
    /// The name of a head that was kept only because of time; the next head replaces it.
    passing: Mutex<Option<String>>,
    stop: Notify,
    /// Allows one rotation at a time: of the task or on request.
    rotating: tokio::sync::Mutex<()>,
    /// Allows one write of a head at a time: two with one name would overwrite each other.
    putting: tokio::sync::Mutex<()>,
    issues: Mutex<HealthIssues>,
    /// The time of the newest head that this host kept outside.
    kept_at: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct HealthIssues {
    /// The reason that the newest head is not outside.
    heads: Option<String>,
    /// The reason that the chain was not rotated.
    rotation: Option<String>,
    /// The reason that the chain could not be read, so that no head is signed.
    reading: Option<String>,
    /// Entries that heads or archives know and this ledger does not.
    behind: Option<String>,
    /// The reason that an earlier state cannot be compared.
    unknown: Option<String>,
    /// Another copy of this home.
    copy: Option<String>,
}

impl HeadPublisher {
    /// Starts the maintenance of a ledger; a home of an earlier version gets its signing key now. Returns the names of heads and archives
    /// of another history, which exist if the home was restored to an earlier state. `incident` is part of the transaction that records
    /// the first of several failures to keep a head.
    pub async fn start(
        state: &State,
        home: &Home,
        config: &Config,
        sink: Sink,
        wrapping: WrappingKey,
        incident: Incident,
    ) -> Result<(Self, Vec<String>), head::Error> {
        let signer = state.write(move |tx| Signer::ensure(tx, &wrapping)).await?;
        let ledger = state.read(Position::read).await?.ledger;
        let shared = Arc::new(Shared {
            directory: sink.directory(&ledger),
            ledger,
            other: Mutex::default(),
            passing: Mutex::default(),
            state: state.clone(),
            home: home.clone(),
            config: config.clone(),
            signer: Arc::new(signer),
            sink,
            incident,
            stop: Notify::new(),
            rotating: tokio::sync::Mutex::default(),
            putting: tokio::sync::Mutex::default(),
            issues: Mutex::default(),
            kept_at: Mutex::default(),
        });
        shared.adopt_heads().await;
        let other_history = shared.find_other_history().await?;
        let task = tokio::spawn(Arc::clone(&shared).run());
        Ok((Self { shared, task: Arc::new(Mutex::new(Some(task))) }, other_history))
    }

    /// Signs the current position of the ledger, and returns it with the directory of the heads.
    pub async fn head(&self) -> Result<LedgerHead, ironclaw_state::Error> {
        let head = self.shared.sign().await?;
        let mut kept = self.shared.sink.look(&head.ledger);
        let issues = self.shared.issues.lock().expect("no holder panics");
        kept.trouble = issues.heads.clone().or(kept.trouble);
        Ok(LedgerHead { head, kept })
    }

    pub async fn rotate(&self, why: RotationReason) -> Result<Rotated, archive::Error> {
        self.shared.rotate(why).await
    }

    /// Returns the warnings for the operator; empty if there is none.
    pub fn warnings(&self) -> Vec<String> {
        let issues = self.shared.issues.lock().expect("no holder panics");
        let nowhere = match &self.shared.sink {
            Sink::None(why) => Some(no_destination(why)),
            Sink::Named(_) | Sink::Default { .. } => None,
        };
        let HealthIssues { heads, rotation, reading, behind, unknown, copy } = &*issues;
        let issues = [heads, rotation, reading, behind, unknown, copy].map(Clone::clone);
        std::iter::once(nowhere).chain(issues).flatten().collect()
    }

    /// Returns the seconds since this host last kept a head outside; `None` before the first.
    pub fn head_age_seconds(&self) -> Option<u64> {
        let kept_at = self.shared.kept_at.lock().expect("no holder panics");
        kept_at.map(|at| at.elapsed().as_secs())
    }

    /// Stops, with a last head. No head covers later entries.
    pub async fn stop(&self) {
        self.shared.stop.notify_one();
        let task = self.task.lock().expect("no holder panics").take();
        if let Some(task) = task {
            // If the task panicked, the last head is written all the same.
            let _ = task.await;
        }
        if self.shared.directory.is_some() {
            self.shared.keep_head(false).await;
        }
    }
}

impl Shared {
    /// Runs until it is stopped.
    async fn run(self: Arc<Self>) {
        let mut events = self.state.events();
        let mut heads = HeadProgress::default();
        let mut rotation_retry = RetrySchedule::default();
        let mut known: Option<ChainState> = None;
        loop {
            if known.is_none() {
                known = match self.known().await {
                    ControlFlow::Continue(read) => read,
                    ControlFlow::Break(()) => return,
                };
            }
            let Some(now) = &known else { continue };
            let timed = match self.keep_due_head(&mut heads, now).await {
                HeadCheck::Tried => {
                    known = None;
                    continue;
                }
                HeadCheck::At(timed) => timed,
            };
            if let Some(why) = now.rotation(&self.config).filter(|_| rotation_retry.is_due()) {
                self.rotate_due(why, &mut rotation_retry).await;
                known = None;
                heads.kept = None;
                continue;
            }
            tokio::select! {
                () = self.stop.notified() => return,
                event = events.recv() => match event {
                    Ok(entry) => match &mut known {
                        // Except if another caller began a new chain.
                        Some(now) if entry.event != LedgerEvent::LedgerRotated => now.next = now.next.max(entry.seq + 1),
                        _ => known = None,
                    },
                    Err(RecvError::Lagged(_)) => known = None,
                    Err(RecvError::Closed) => return,
                },
                () = tokio::time::sleep_until(now.until(&self.config, timed, &heads.retry, &rotation_retry)) => known = None,
            }
        }
    }

    /// Reads the live chain. After a failure, waits and returns `None`. Breaks when the host ends.
    async fn known(&self) -> ControlFlow<(), Option<ChainState>> {
        match self.state.read(ChainState::read).await {
            Ok(read) => {
                self.issues.lock().expect("no holder panics").reading = None;
                ControlFlow::Continue(Some(read))
            }
            Err(ironclaw_state::Error::Closed) => ControlFlow::Break(()),
            Err(error) => {
                tracing::error!(%error, "the ledger was not read");
                let sentence = format!("the ledger was not read, so no head is signed: {error}");
                self.issues.lock().expect("no holder panics").reading = Some(sentence);
                tokio::select! {
                    () = self.stop.notified() => ControlFlow::Break(()),
                    () = tokio::time::sleep(RETRY_MIN) => ControlFlow::Continue(None),
                }
            }
        }
    }

    /// Signs a head and keeps it outside, if enough entries or time passed since the last one.
    async fn keep_due_head(&self, heads: &mut HeadProgress, now: &ChainState) -> HeadCheck {
        let kept_to = *heads.kept.get_or_insert_with(|| {
            let newest = self.directory.as_deref().and_then(|path| head::newest(path, &self.ledger));
            newest.map_or(0, |seq| (seq + 1).min(now.next))
        });
        let far = now.next.saturating_sub(kept_to);
        if far > 0 && heads.changed.is_none() {
            heads.changed = Some(Instant::now());
        }
        let timed = heads.changed.map(|since| since + Duration::from_secs(self.config.head_every_seconds));
        let is_time = timed.is_some_and(|at| at <= Instant::now());
        // The first head comes at once: without one, a shared directory has no evidence about this ledger.
        let asked = far >= self.config.head_every_entries
            || kept_to == 0
            || self.issues.lock().expect("no holder panics").heads.is_some();
        if self.directory.is_none() || !(asked || is_time) || !heads.retry.is_due() {
            return HeadCheck::At(timed);
        }
        match self.keep_head(!asked).await {
            Some(seq) => {
                heads.kept = Some(seq + 1);
                heads.changed = None;
                heads.retry.reset();
            }
            None => heads.retry.postpone(),
        }
        HeadCheck::Tried
    }

    /// Rotates the chain, which is due. A failure becomes a warning and a retry.
    async fn rotate_due(&self, why: RotationReason, retry: &mut RetrySchedule) {
        match self.rotate(why).await {
            Ok(_) => retry.reset(),
            Err(error) => {
                tracing::error!(%error, "the ledger was not rotated");
                let sentence = format!("the ledger was not rotated: {error}");
                self.issues.lock().expect("no holder panics").rotation = Some(sentence);
                retry.postpone();
            }
        }
    }

    async fn sign(&self) -> Result<SignedHead, ironclaw_state::Error> {
        let signer = Arc::clone(&self.signer);
        self.state.read(move |tx| Ok(signer.sign(Position::read(tx)?, tx.now()))).await
    }

    /// Signs a head and keeps it outside; a passing one only until the next. Returns its number, or `None` after a failure.
    async fn keep_head(&self, passing: bool) -> Option<u64> {
        self.find_foreign_heads().await;
        let head = match self.sign().await {
            Ok(head) => head,
            Err(error) => {
                tracing::error!(%error, "no head was signed");
                return None;
            }
        };
        let (seq, name) = (head.seq, head::file_name(&head));
        let put = self.put_outside(head).await;
        if put && passing {
            *self.passing.lock().expect("no holder panics") = Some(name);
        }
        put.then_some(seq)
    }

    /// Writes a head outside, on a blocking thread: the directory may be on another machine.
    async fn put_outside(&self, head: SignedHead) -> bool {
        let (sink, home, ledger, seq) = (self.sink.clone(), self.home.clone(), self.ledger.clone(), head.seq);
        let passed = self.passing.lock().expect("no holder panics").clone();
        let to_remove = passed.clone();
        let put = move || {
            let directory = sink.ready(&ledger, &home)?;
            head::keep(&directory, &head)?;
            // The new head covers the passing one. If that cannot be removed, it remains.
            if let Some(passed) = to_remove.filter(|name| *name != head::file_name(&head)) {
                let _ = std::fs::remove_file(directory.join(passed));
            }
            Ok(())
        };
        let one = self.putting.lock().await;
        let done = tokio::task::spawn_blocking(put).await.unwrap_or_else(|error| Err(io::Error::other(error)));
        drop(one);
        let directory = self.directory.as_deref().unwrap_or(Path::new("")).display().to_string();
        let failed = done.err().map(|error| {
            tracing::warn!(%directory, %error, seq, "a head of the ledger was not kept outside");
            (
                error.kind(),
                format!("the head of the ledger was not kept in {directory}: {error}; the host will try again"),
            )
        });
        if failed.is_none() {
            // Another head may have replaced the name meanwhile.
            self.passing.lock().expect("no holder panics").take_if(|name| passed.as_ref() == Some(name));
            *self.kept_at.lock().expect("no holder panics") = Some(Instant::now());
        }
        let (kind, sentence) = failed.unzip();
        let before = std::mem::replace(&mut self.issues.lock().expect("no holder panics").heads, sentence);
        // The ledger records the first failure and the first success after it, not every attempt.
        let note = match (kind, before) {
            (Some(kind), None) => Entry::new(LedgerEvent::LedgerHeadNotKept).reason(&kind.to_string()),
            (None, Some(_)) => Entry::new(LedgerEvent::LedgerHeadKeptAgain).with("kept", seq),
            (Some(_), Some(_)) | (None, None) => return kind.is_none(),
        };
        let incident = kind.map(|_| self.incident);
        let record = self.state.write(move |tx| {
            note.append(tx)?;
            incident.map_or(Ok(()), |tell| tell(tx))
        });
        if let Err(error) = record.await {
            tracing::error!(%error, "cannot record the failure of a head");
        }
        kind.is_none()
    }

    async fn rotate(&self, why: RotationReason) -> Result<Rotated, archive::Error> {
        let _one = self.rotating.lock().await;
        let (home, signer) = (self.home.clone(), Arc::clone(&self.signer));
        let rotate = self.state.write_alone(move |tx| archive::rotate(tx, &home, &signer, &why));
        let (rotated, head) = rotate.await?;
        failpoint::reach("chain_rotated");
        self.issues.lock().expect("no holder panics").rotation = None;
        tracing::info!(archive = %rotated.archive, "the ledger was rotated");
        if self.directory.is_some() {
            self.put_outside(head).await;
        }
        Ok(rotated)
    }
}

/// The state of the live chain as last read.
struct ChainState {
    first: u64,
    begun_at: i64,
    next: u64,
    now: i64,
}

impl ChainState {
    fn read(tx: &ReadTx<'_>) -> Result<Self, ironclaw_state::Error> {
        let position = Position::read(tx)?;
        let begun_at = Genesis::from_live_chain(tx)?.at;
        Ok(Self { first: position.first, begun_at, next: position.seq + 1, now: tx.now() })
    }

    /// Returns the reason for a rotation, if the chain is long or old enough. A chain with only its genesis never is.
    fn rotation(&self, config: &Config) -> Option<RotationReason> {
        let entries = self.next - self.first;
        if entries < 2 {
            return None;
        }
        if entries >= config.rotate_entries {
            return Some(RotationReason::Entries);
        }
        (self.left(config) <= 0).then_some(RotationReason::Days)
    }

    /// Returns the milliseconds until the chain is too old.
    fn left(&self, config: &Config) -> i64 {
        self.begun_at + config.rotate_days as i64 * DAY_MS - self.now
    }

    /// Returns the time of the next check without an event.
    fn until(
        &self,
        config: &Config,
        timed: Option<Instant>,
        head: &RetrySchedule,
        rotation: &RetrySchedule,
    ) -> Instant {
        let age = Duration::from_millis(self.left(config).clamp(1_000, LOOK_MAX.as_millis() as i64) as u64);
        let look = Instant::now() + age;
        [timed, head.at, rotation.at].into_iter().flatten().filter(|at| *at > Instant::now()).fold(look, Instant::min)
    }
}

/// The coverage of the heads outside, and the retry of the next one.
#[derive(Default)]
struct HeadProgress {
    /// The first entry without a head; `None` until the directory was read.
    kept: Option<u64>,
    /// The time of the first entry without a head.
    changed: Option<Instant>,
    retry: RetrySchedule,
}

/// The result of a check for a due head.
enum HeadCheck {
    /// A head was due, and was tried.
    Tried,
    /// No head was due; the next is due at this time if there are entries.
    At(Option<Instant>),
}

/// Schedule of the retries of a failed task.
#[derive(Default)]
struct RetrySchedule {
    at: Option<Instant>,
    failures: u32,
}

impl RetrySchedule {
    fn is_due(&self) -> bool {
        self.at.is_none_or(|at| at <= Instant::now())
    }

    fn reset(&mut self) {
        *self = Self::default();
    }

    fn postpone(&mut self) {
        self.failures = self.failures.saturating_add(1);
        self.at = Some(Instant::now() + RETRIES.pause(self.failures));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(entries: u64, age_days: i64) -> ChainState {
        ChainState { first: 20, begun_at: 0, next: 20 + entries, now: age_days * DAY_MS }
    }

    #[test]
    fn chain_is_rotated_when_long_or_old_and_never_when_empty() {
        let config = Config::default();
        assert_eq!(known(9_999, 29).rotation(&config), None);
        assert_eq!(known(10_000, 0).rotation(&config), Some(RotationReason::Entries));
        assert_eq!(known(2, 30).rotation(&config), Some(RotationReason::Days));
        assert_eq!(known(1, 31).rotation(&config), None);
    }
}
