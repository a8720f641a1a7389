//! Copies of changed files before a turn's first call that may change files, so that a person can undo the call.
//!
//! The copies are made on a blocking thread, outside of every transaction and within a time limit. A failure delays the call and never
//! prevents it. See [`crate::sessions::files::versions`].

use crate::calls::model_socket::Server;
use crate::calls::model_socket::requests::Answer;
use crate::registry::tools::{self, Tool};
use crate::sessions::files::versions::{COPY_TIME_MAX, Run, take};
use ironclaw_contract::ids::{SessionId, TurnId};
use ironclaw_contract::seam::socket::{Call, Response, Verdict};
use ironclaw_state::failpoint;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Runs at once, for all sessions: more would only wait for the disk.
const RUNS_MAX: usize = 2;

/// The time for a run after its own limit: for the file that it reads, and for the index.
const AFTER_COPIES: Duration = Duration::from_secs(2);

/// Failures in memory. Older ones are only in the report of the run.
const FAILURES_MAX: usize = 1000;

/// The copying of files for all sessions.
#[derive(Debug)]
pub struct VersionKeeper {
    at_once: Arc<Semaphore>,
    /// The failure of the last run of a session, also if the disk has no room for a report.
    failures: Mutex<HashMap<SessionId, String>>,
}

impl Default for VersionKeeper {
    fn default() -> Self {
        Self { at_once: Arc::new(Semaphore::new(RUNS_MAX)), failures: Mutex::default() }
    }
}

impl VersionKeeper {
    /// Returns the failure of the last run of a session.
    pub fn failure(&self, session: SessionId) -> Option<String> {
        self.failures().get(&session).cloned()
    }

    fn settle(&self, session: SessionId, failure: Option<String>) {
        let mut failures = self.failures();
        match failure {
            Some(failure) if failures.len() < FAILURES_MAX || failures.contains_key(&session) => {
                failures.insert(session, failure);
            }
            Some(_) => {}
            None => drop(failures.remove(&session)),
        }
    }

    fn failures(&self) -> MutexGuard<'_, HashMap<SessionId, String>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// Copies the changed files of the workspace before the sandbox sees an answer with the turn's first call that may change files.
    pub(super) async fn keep_versions(&self, turn: TurnId, answer: &Answer) {
        let Ok(Response::Output { calls, .. }) = answer else { return };
        if !calls.iter().any(may_change_files) || !self.begins_changes(turn) {
            return;
        }
        let (keeper, session) = (&self.shared.versions, self.session);
        let kept = tokio::time::timeout(COPY_TIME_MAX + AFTER_COPIES, self.take_versions(turn)).await;
        let failure = match kept {
            Ok(done) => done.err(),
            Err(_) => Some(format!("the copies took over {} seconds", (COPY_TIME_MAX + AFTER_COPIES).as_secs())),
        };
        if let Some(error) = &failure {
            tracing::warn!(%session, %turn, error, "cannot keep versions of the files of a workspace");
        }
        keeper.settle(session, failure);
        failpoint::reach("versions_kept");
    }

    async fn take_versions(&self, turn: TurnId) -> Result<(), String> {
        let (place, quota) = (self.shared.home.session(self.session), self.shared.settings.now().quota.clone());
        let at_once = Arc::clone(&self.shared.versions.at_once);
        let permit = at_once.acquire_owned().await.map_err(|error| error.to_string())?;
        let run = Run::new(Some(turn), self.state().now(), quota);
        let took = tokio::task::spawn_blocking(move || {
            // Held until the run ends, also if the call no longer waits for it.
            let _permit = permit;
            take(&place, &run)
        });
        match took.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns whether this is the first call of the turn that may change files.
    fn begins_changes(&self, turn: TurnId) -> bool {
        self.kept_for.lock().unwrap_or_else(PoisonError::into_inner).replace(turn) != Some(turn)
    }
}

/// Returns whether a call may overwrite or delete files of the workspace.
fn may_change_files(call: &Call) -> bool {
    let runs = call.verdict == Verdict::Local || call.verdict == Verdict::Await;
    runs && tools::find(&call.tool).is_some_and(Tool::may_change_files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::ids::CallId;

    fn call(tool: &str, verdict: Verdict) -> Call {
        Call { call_id: CallId::new(), tool: tool.to_owned(), arguments: "{}".to_owned(), verdict }
    }

    #[test]
    fn only_permitted_calls_that_may_change_files_need_copies() {
        for (tool, verdict) in
            [("write_file", Verdict::Local), ("run_command", Verdict::Local), ("network_command", Verdict::Await)]
        {
            assert!(may_change_files(&call(tool, verdict)), "{tool}");
            assert!(!may_change_files(&call(tool, Verdict::Row)), "{tool}");
        }
        assert!(!may_change_files(&call("http_fetch", Verdict::Await)));
        for tool in ["read_file", "list_dir", "search_files", "no_such_tool"] {
            assert!(!may_change_files(&call(tool, Verdict::Local)), "{tool}");
        }
    }

    #[test]
    fn failure_is_remembered_until_the_next_run_succeeds() {
        let (keeper, session) = (VersionKeeper::default(), SessionId::new());
        keeper.settle(session, Some("no space".to_owned()));
        assert_eq!(keeper.failure(session).as_deref(), Some("no space"));
        keeper.settle(session, None);
        assert_eq!(keeper.failure(session), None);
        for _ in 0..FAILURES_MAX {
            keeper.settle(SessionId::new(), Some("no space".to_owned()));
        }
        keeper.settle(session, Some("no space".to_owned()));
        assert_eq!(keeper.failure(session), None);
        assert_eq!(keeper.failures().len(), FAILURES_MAX);
    }
}
