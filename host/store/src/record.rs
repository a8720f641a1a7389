//! The record with the keys that seal and open its content, and the bounds on it.
//!
//! Decides nothing: each transaction belongs to the module that starts it. See `runtime::pipeline`.

use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::State;
use ironclaw_state::keys::WrappingKey;
use ironclaw_state::seal::Sealer;

ironclaw_operator::settings! {
    /// `[items]`
    pub struct ItemsConfig for items {
        /// The most messages, outputs and results of one session; the oldest are dropped first.
        session_items_max: u32 = 20_000, AtLeast(0, "items"), Restart;
        /// The most bytes of the items of one session; the oldest items are dropped first.
        session_bytes_max: u64 = 256 << 20, AtLeast(0, "bytes"), Restart;
        /// Older items are dropped, with the rows of their messages, turns and deliveries; 0 keeps them.
        keep_days: u32 = 0, AtLeast(0, "days"), Restart;
    }
}

/// The record of one host.
pub struct Record {
    /// The state, and the ledger in it.
    pub state: State,
    /// Makes and checks the seals of this run.
    pub sealer: Sealer,
    /// Opens the keys of sessions, secrets and channels.
    pub wrapping: WrappingKey,
    /// `[items]`
    pub retention: ItemsConfig,
}

impl Record {
    /// Removes the snapshots from before a change of the schema, since erased content is still in them.
    ///
    /// # Errors
    /// Returns an error for a snapshot that remains, and errors of the record.
    pub async fn forget_snapshots(&self) -> Result<(), ironclaw_state::Error> {
        let removed = self.state.forget_snapshots().await?;
        if removed > 0 {
            tracing::info!(removed, "removed snapshots from before an upgrade, which had erased content");
            let entry = Entry::new(LedgerEvent::StateSnapshotsRemoved).with("snapshots", removed);
            self.state.write(move |tx| entry.append(tx).map(drop)).await?;
        }
        Ok(())
    }
}

/// Runs a test in one transaction of a new record.
///
/// A panic of the test is passed on to the caller. In the writing thread, it would end the process without a message of the test.
#[cfg(any(test, feature = "testing"))]
pub fn in_a_new_one(
    test: impl FnOnce(&mut ironclaw_state::WriteTx<'_>, &ironclaw_state::keys::MasterKey) + Send + 'static,
) {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    let directory = tempfile::tempdir().expect("a directory");
    let key = ironclaw_state::keys::MasterKey::fresh().expect("random bytes");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let outcome = runtime.block_on(async {
        let path = directory.path().join("state.db");
        State::create(&path).expect("made");
        let state = State::open(&path, &key.state_key()).expect("it opens");
        let run = move |tx: &mut ironclaw_state::WriteTx<'_>| {
            Ok::<_, ironclaw_state::Error>(catch_unwind(AssertUnwindSafe(|| test(tx, &key))))
        };
        let outcome = state.write(run).await.expect("committed");
        state.close().await;
        outcome
    });
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}
