//! The progress of a call in the words of its server, at a bounded rate.
//!
//! Never a part of a result. The words are treated as those of an error: without secrets, on one line, and cut. See
//! [`crate::turns::open_turns::progress`].

use super::connect::shown;
use crate::turns::open_turns::progress::RunningCall;
use ironclaw_mcp::Progress;
use ironclaw_state::keys::SecretText;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Time between two reports of one call.
const REPORT_EVERY: Duration = Duration::from_millis(500);

/// Waits for the answer to a call, and reports its progress meanwhile.
pub(super) async fn reporting<T>(
    answer: impl Future<Output = T>,
    newest: watch::Receiver<Option<Progress>>,
    running: &RunningCall<'_>,
    secrets: &[SecretText],
) -> T {
    let mut answer = pin!(answer);
    let mut reports = Reports { newest, next_at: Instant::now() };
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            Progress { progress, total, message } = reports.next() => {
                running.report(progress, total, message.map(|words| shown(&words, secrets)));
            }
        }
    }
}

struct Reports {
    newest: watch::Receiver<Option<Progress>>,
    next_at: Instant,
}

impl Reports {
    /// Waits for a new report, and passes over the earlier ones. Cancel-safe: a dropped wait loses no report.
    async fn next(&mut self) -> Progress {
        loop {
            sleep_until(self.next_at).await;
            if self.newest.changed().await.is_err() {
                // The call ends, so no report comes.
                pending::<()>().await;
            }
            if let Some(newest) = self.newest.borrow_and_update().clone() {
                self.next_at = Instant::now() + REPORT_EVERY;
                return newest;
            }
        }
    }
}
