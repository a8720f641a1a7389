//! The measurement of workspaces while their sessions work, to find one that is over its bound.
//!
//! Never delays another session: a walk is bounded, and few of them run at once. See [`crate::registry::quota::workspace`].

use crate::registry::live_settings::Live;
use crate::registry::quota::workspace::{self, Over, Used};
use ironclaw_contract::ids::SessionId;
use ironclaw_state::home::Home;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

/// The interval of measurements while a turn is open. One more follows at the end of the turn.
const MEASURE_INTERVAL: Duration = Duration::from_secs(5);

/// The pause after a measurement is at least this many times its duration.
const REST_FACTOR: u32 = 20;

/// Walks in flight, for all sessions.
const MEASUREMENTS_MAX: usize = 2;

/// Measures the workspaces of sessions.
pub struct Workspaces {
    home: Home,
    /// Have `[quota]`.
    pub settings: Arc<Live>,
    at_once: Semaphore,
    /// Held while a person's file is written or removed, and while a session is removed with its files.
    pub(crate) writing: Mutex<()>,
}

impl Workspaces {
    /// Makes the measurement for the workspaces of a home.
    pub fn new(home: Home, settings: Arc<Live>) -> Self {
        Self { home, settings, at_once: Semaphore::new(MEASUREMENTS_MAX), writing: Mutex::default() }
    }

    /// Measures the directories of a session. Returns the exceeded bound, if any.
    pub async fn measure(&self, session: SessionId) -> Option<Over> {
        let _permit = self.at_once.acquire().await.ok()?;
        let (path, settings) = (self.home.session(session).path().to_owned(), self.settings.now());
        let looked = tokio::task::spawn_blocking(move || workspace::exceeded_bound(&path, &settings.quota)).await;
        match looked {
            Ok(Ok(over)) => over,
            Ok(Err(error)) => {
                tracing::warn!(%session, %error, "cannot measure the workspace");
                None
            }
            Err(_) => None,
        }
    }

    /// Counts the contents of the directories of a session, for the notice of one that is over its bound; `None` if that fails.
    pub async fn count(&self, session: SessionId) -> Option<Used> {
        let _permit = self.at_once.acquire().await.ok()?;
        let (path, settings) = (self.home.session(session).path().to_owned(), self.settings.now());
        let counted = tokio::task::spawn_blocking(move || workspace::count(&path, &settings.quota)).await;
        counted.ok()?.ok()
    }
}

/// A task that measures a workspace during the work of its session. Dropping this value ends the task.
pub struct WorkspaceMonitor {
    /// `true` while a turn is open.
    is_busy: watch::Sender<bool>,
    /// Receives one value if the workspace is over its bound.
    pub over: mpsc::Receiver<Over>,
    task: JoinHandle<()>,
}

impl WorkspaceMonitor {
    /// Starts the task for the workspace of a session.
    pub fn begin(workspaces: &Arc<Workspaces>, session: SessionId) -> Self {
        let (is_busy, busy) = watch::channel(false);
        let (sender, over) = mpsc::channel(1);
        let task = tokio::spawn(measure_while_busy(Arc::clone(workspaces), session, busy, sender));
        Self { is_busy, over, task }
    }

    /// Reports that a turn begins or has ended.
    pub fn turn(&self, is_open: bool) {
        self.is_busy.send_if_modified(|busy| std::mem::replace(busy, is_open) != is_open);
    }
}

impl Drop for WorkspaceMonitor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn measure_while_busy(
    workspaces: Arc<Workspaces>,
    session: SessionId,
    mut busy: watch::Receiver<bool>,
    sender: mpsc::Sender<Over>,
) {
    let mut rest = MEASURE_INTERVAL;
    loop {
        let is_busy = *busy.borrow_and_update();
        let changed = if is_busy {
            tokio::time::timeout(rest, busy.changed()).await.unwrap_or(Ok(()))
        } else {
            busy.changed().await
        };
        if changed.is_err() {
            return;
        }
        if !is_busy {
            // A turn begins: the workspace was measured before the launch or after the previous turn.
            continue;
        }
        let began = Instant::now();
        if let Some(over) = workspaces.measure(session).await {
            // The receiver is gone only when the session sleeps.
            let _ = sender.send(over).await;
            return;
        }
        rest = MEASURE_INTERVAL.max(began.elapsed() * REST_FACTOR);
    }
}
