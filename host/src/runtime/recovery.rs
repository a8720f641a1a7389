//! Finishes at a start what a crash cut short.
//!
//! Wakes no session. See `runtime::sessions`.

use crate::error::Error;
use crate::record::Record;
use crate::session;
use crate::turns::memories;
use ironclaw_state::home::Home;

/// Finishes the removals that a crash cut short, and the index of memories.
pub async fn recover(record: &Record, home: &Home) -> Result<(), Error> {
    finish_removals(record, home).await?;
    // After a change of the schema that made the index anew.
    while record.state.write(memories::index_some).await? {}
    Ok(())
}

/// A removal is a row first: what the row has lost may still be in the log, and its files in their directory.
async fn finish_removals(record: &Record, home: &Home) -> Result<(), Error> {
    record.state.checkpoint().await?;
    for id in record.state.read(session::store::removed).await? {
        let directory = home.session(id).path().to_owned();
        let is_gone = directory.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
        if !is_gone {
            record.forget_snapshots().await?;
            match ironclaw_state::home::remove_tree(&directory) {
                Ok(()) => tracing::warn!(session = %id, "its removal was cut short and is finished now"),
                Err(error) => {
                    tracing::error!(session = %id, %error, "it is erased, but its directory remains");
                    continue;
                }
            }
        }
        record.state.write(move |tx| session::store::give_uid_back(tx, id)).await?;
    }
    Ok(())
}
