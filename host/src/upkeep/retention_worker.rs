//! Retention: drops old items of unused sessions, at a start, because the bounds may be tighter than before, and once an hour.
//!
//! Never delays a message: each transaction drops a bounded number. See `turns::items` for the rules, and [`ironclaw_store::worker`] for the loop.

use crate::sessions::store;
use crate::turns::items;
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::shutdown::Shutdown;
use ironclaw_store::worker::{self, Due, Wait};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The pause between two passes. An item that a jump of the clock kept young is old at the next pass.
const EVERY: Duration = Duration::from_secs(3600);

/// The worker that drops old items.
pub struct Retention {
    pub record: Arc<Record>,
}

impl Retention {
    /// Runs until the host stops.
    pub async fn run(self, shutdown: Shutdown) {
        // A session in use drops its own items, so this worker needs no bell.
        worker::run(self, &Notify::new(), &shutdown).await;
    }
}

impl Due for Retention {
    const FAILED: &'static str = "old items were not dropped";
    const RETRY_AFTER: Duration = EVERY;
    const PAUSE_MAX: Duration = EVERY;

    async fn process_due(&mut self) -> Result<Wait, Error> {
        let record = &self.record;
        let config = record.retention.clone();
        let over = record.state.read(move |tx| items::sessions_over(tx, &config)).await?;
        for id in over {
            loop {
                let config = record.retention.clone();
                // A session that was removed meanwhile has no items.
                let drop = record.state.write(move |tx| match store::find(tx, id)? {
                    Some(_) => items::enforce_retention(tx, id, &config),
                    None => Ok(0),
                });
                if drop.await? == 0 {
                    break;
                }
            }
        }
        for rows in items::FORGETTABLE {
            while let Some(keys) = record.state.read(move |tx| rows.find(tx)).await? {
                if record.state.write(move |tx| rows.forget(tx, &keys)).await? == 0 {
                    break;
                }
            }
        }
        Ok(Wait::AtMost(EVERY))
    }
}
