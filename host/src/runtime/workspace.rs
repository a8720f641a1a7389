//! Measures the workspaces of sessions while they work, to find one that is over its bound.
//!
//! Touches no other session: a walk is bounded, and few of them run at once. Next: `quota::workspace`.

use crate::quota;
use crate::quota::workspace::{self, Over};
use ironclaw_contract::ids::SessionId;
use ironclaw_state::home::Home;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

/// A workspace is looked at so often while a turn is open, and once more at the end of the turn.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// After a look there is none for so many times as long as it took.
const REST: u32 = 20;

/// Walks at once, for all sessions.
const LOOKS_MAX: usize = 2;

/// Measures the workspaces of sessions.
pub struct Workspaces {
    home: Home,
    /// `[quota]`
    pub quota: quota::Config,
    at_once: Semaphore,
}

impl Workspaces {
    /// The workspaces below a home.
    pub fn new(home: Home, quota: quota::Config) -> Self {
        Self { home, quota, at_once: Semaphore::new(LOOKS_MAX) }
    }

    /// Returns how the directories of a session are over the bounds, if they are.
    pub async fn look(&self, session: SessionId) -> Option<Over> {
        let _permit = self.at_once.acquire().await.ok()?;
        let (path, quota) = (self.home.session(session).path().to_owned(), self.quota.clone());
        let looked = tokio::task::spawn_blocking(move || workspace::look(&path, &quota)).await;
        match looked {
            Ok(Ok(over)) => over,
            Ok(Err(error)) => {
                tracing::warn!(%session, %error, "its workspace could not be measured");
                None
            }
            Err(_) => None,
        }
    }
}

/// Looks at a workspace beside the work of its session, and ends with whoever holds this.
pub struct Looking {
    /// Whether a turn is open.
    is_busy: watch::Sender<bool>,
    /// Hears once that the workspace is over its bound.
    pub over: mpsc::Receiver<Over>,
    task: JoinHandle<()>,
}

impl Looking {
    /// Begins to look at the workspace of a session.
    pub fn begin(workspaces: &Arc<Workspaces>, session: SessionId) -> Self {
        let (is_busy, busy) = watch::channel(false);
        let (tell, over) = mpsc::channel(1);
        let task = tokio::spawn(look_while_busy(Arc::clone(workspaces), session, busy, tell));
        Self { is_busy, over, task }
    }

    /// A turn begins or has ended.
    pub fn turn(&self, is_open: bool) {
        self.is_busy.send_if_modified(|busy| std::mem::replace(busy, is_open) != is_open);
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn look_while_busy(
    workspaces: Arc<Workspaces>,
    session: SessionId,
    mut busy: watch::Receiver<bool>,
    tell: mpsc::Sender<Over>,
) {
    let mut rest = LOOK_EVERY;
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
            // A turn begins: it was looked at before the launch or after the turn before.
            continue;
        }
        let began = Instant::now();
        if let Some(over) = workspaces.look(session).await {
            // Its receiver is gone only when the session sleeps.
            let _ = tell.send(over).await;
            return;
        }
        rest = LOOK_EVERY.max(began.elapsed() * REST);
    }
}
