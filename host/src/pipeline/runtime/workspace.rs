//! Ends the turn of a session whose workspace is over its bound, and keeps such a session from being launched.
//!
//! Touches no other session: a walk is bounded, and few of them run at once. Next: `quota::workspace`.

use crate::items::BodyError;
use crate::pipeline::Error;
use crate::pipeline::outbound::accept;
use crate::pipeline::runtime::actor::Actor;
use crate::quota;
use crate::quota::workspace::{self, Over};
use crate::session::store;
use crate::turn::{self, Close};
use ironclaw_contract::ids::SessionId;
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_ledger::Entry;
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
    quota: quota::Config,
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

impl Actor {
    /// Answers the open turn, or else the one that would be next, with why there is no work on it. Sends nothing yet.
    pub(in crate::pipeline) async fn end_over_bound(&self, over: Over) -> Result<(), Error> {
        let (turns, workspaces, id) = (Arc::clone(&self.runtime.turns), Arc::clone(&self.runtime.workspaces), self.id);
        self.state()
            .write(move |tx| {
                let Some(session) = store::find(tx, id)? else { return Ok::<_, Error>(()) };
                if turn::open_of(tx, id)?.is_none() {
                    turn::open_next(tx, id, &turns.config)?;
                }
                let Some(open) = turn::open_of(tx, id)? else { return Ok(()) };
                let key = session.content_key(&turns.record.wrapping).map_err(BodyError::from)?;
                let text = over.notice(&workspaces.quota, id);
                accept::close_as(tx, &turns.record, &session, &key, &open, &text, Close::Cancelled, over.code())?;
                Entry::new(LedgerEvent::WorkspaceOver)
                    .session(id)
                    .turn(open.id)
                    .with("limit", over.code())
                    .append(tx)?;
                Ok(())
            })
            .await
    }
}
