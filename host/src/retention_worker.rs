//! Drops what is over its bounds in sessions that nobody uses: at start, in case the bounds have become tighter, and once an hour.
//!
//! Never holds up a message: each transaction drops a bounded number. Next: `turns::items::keep_within`.

use crate::error::Error;
use crate::record::Record;
use crate::session::store;
use crate::turns::items;
use std::sync::Arc;
use std::time::Duration;

/// What a jump of the clock held back is old an hour later.
const EVERY: Duration = Duration::from_secs(3600);

/// The worker that drops what is over its bounds.
pub struct Retention {
    /// The record that it drops from.
    pub record: Arc<Record>,
}

impl Retention {
    /// Runs until the daemon ends.
    pub async fn run(self) {
        loop {
            if let Err(error) = self.drop_once().await {
                tracing::error!(%error, "old items were not dropped");
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    async fn drop_once(&self) -> Result<(), Error> {
        let record = &self.record;
        let config = record.retention.clone();
        let over = record.state.read(move |tx| items::sessions_over(tx, &config)).await?;
        for id in over {
            loop {
                let config = record.retention.clone();
                // A session that was removed meanwhile has nothing left to drop.
                let drop = record.state.write(move |tx| match store::find(tx, id)? {
                    Some(_) => items::keep_within(tx, id, &config),
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
        Ok(())
    }
}
