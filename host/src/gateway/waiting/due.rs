//! The worker that ends what was not decided or used in time, and reminds people once before.
//!
//! A restart finds all due times in the record. See [`ironclaw_store::worker`] for the loop.

use super::decide::OVERDUE;
use super::gateway::Gateway;
use super::{ending, notices};
use crate::sessions::Wake;
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::shutdown::Shutdown;
use ironclaw_store::tables::waiting::{self, Ending, Status, Waiting};
use ironclaw_store::worker::{self, Due, Wait};
use std::sync::Arc;
use std::time::Duration;

/// The bound on those that one pass ends.
const AT_ONCE_MAX: usize = 64;

pub struct EndWorker {
    all: Arc<Gateway>,
    wake: Arc<dyn Wake>,
}

impl EndWorker {
    pub fn new(all: Arc<Gateway>, wake: Arc<dyn Wake>) -> Self {
        Self { all, wake }
    }

    /// Ends and reminds, until the host stops.
    pub async fn run(self, shutdown: Shutdown) {
        let all = Arc::clone(&self.all);
        worker::run(self, &all.bells.ends, &shutdown).await;
    }

    /// Ends one whose time is over. Returns false if its row cannot be read: it waits for a version that can.
    async fn end(&self, of: Waiting) -> Result<bool, Error> {
        let (all, id, was_approved) = (Arc::clone(&self.all), of.id, of.status == Status::Approved);
        let outcome = if was_approved { "its approvals were not used in time" } else { OVERDUE };
        let ending = Ending { status: Status::Expired, by: None, outcome };
        match self.all.record.state.write(move |tx| ending::end_active(tx, &all, id, &ending)).await {
            Ok(_) => {}
            Err(Error::State(ironclaw_state::Error::Closed)) => return Err(ironclaw_state::Error::Closed.into()),
            Err(error) => {
                tracing::error!(%id, %error, "cannot end what was not decided in time");
                return Ok(false);
            }
        }
        self.all.announce_end();
        if let Some(session) = of.session {
            // A message may have waited for an approved call, and a notice waits for its delivery.
            if was_approved { self.wake.wake(session) } else { self.wake.nudge(session) }
        }
        Ok(true)
    }
}

impl Due for EndWorker {
    const FAILED: &'static str =
        "ends and reminders of what waits for people wait for a retry after an error of the host";
    const RETRY_AFTER: Duration = Duration::from_secs(30);
    const PAUSE_MAX: Duration = Duration::from_secs(3600);

    async fn process_due(&mut self) -> Result<Wait, Error> {
        let look = |tx: &ReadTx<'_>| {
            let is_reminder_due = waiting::next_reminder(tx)?.is_some_and(|at| at <= tx.wall());
            Ok::<_, Error>((is_reminder_due, waiting::ended(tx, tx.expiry_time(), AT_ONCE_MAX)?))
        };
        let (is_reminder_due, ended) = self.all.record.state.read(look).await?;
        let mut has_failed = false;
        let mut has_more = ended.len() == AT_ONCE_MAX;
        for of in ended {
            has_failed |= !self.end(of).await?;
        }
        if is_reminder_due {
            let all = Arc::clone(&self.all);
            has_more |= self.all.record.state.write(move |tx| notices::remind(tx, &all)).await?;
        }
        if has_failed || has_more {
            return Ok(Wait::AtMost(if has_failed { Self::RETRY_AFTER } else { Duration::ZERO }));
        }
        let next = |tx: &ReadTx<'_>| {
            let end = waiting::next_end(tx)?.map(|at| at - tx.expiry_time());
            let reminder = waiting::next_reminder(tx)?.map(|at| at - tx.wall());
            Ok::<_, Error>([end, reminder].into_iter().flatten().min())
        };
        let next = self.all.record.state.read(next).await?;
        Ok(next.map_or(Wait::Bell, |ms| Wait::AtMost(Duration::from_millis(u64::try_from(ms).unwrap_or(0) + 1))))
    }
}
