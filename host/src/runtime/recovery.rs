//! The recovery at a start of work that a crash interrupted.
//!
//! Wakes no session. See [`crate::runtime::sessions`].

use crate::sessions;
use crate::turns::memories;
use ironclaw_state::home::Home;
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;

/// Finishes the removals that a crash interrupted, and the index of memories.
pub async fn recover(record: &Record, home: &Home) -> Result<(), Error> {
    finish_removals(record, home).await?;
    // A change of the schema may have rebuilt the index.
    while record.state.write(memories::index_some).await? {}
    Ok(())
}

/// Finishes interrupted removals. A removal first changes the row; the erased data may still be in the write-ahead log, and the files in
/// their directory.
async fn finish_removals(record: &Record, home: &Home) -> Result<(), Error> {
    record.state.checkpoint().await?;
    for id in record.state.read(sessions::store::removed).await? {
        let directory = home.session(id).path().to_owned();
        let is_gone = directory.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
        if !is_gone {
            record.forget_snapshots().await?;
            match ironclaw_state::home::remove_tree(&directory) {
                Ok(()) => tracing::warn!(session = %id, "finished the removal that a crash interrupted"),
                Err(error) => {
                    tracing::error!(session = %id, %error, "the session is erased, but its directory remains");
                    continue;
                }
            }
        }
        record.state.write(move |tx| sessions::store::give_uid_back(tx, id)).await?;
    }
    Ok(())
}
