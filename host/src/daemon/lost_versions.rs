//! The look, at a start, for conversations whose kept versions of files are gone.
//!
//! An empty directory takes their place, so a loss is reported once. See [`crate::sessions::files::versions`].

use super::error::Error;
use crate::registry::tools::{self};
use ironclaw_contract::ids::SessionId;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::home::{self, Home};
use ironclaw_store::record::Record;
use ironclaw_store::tables::turns;

/// Records each loss in the ledger, and returns the sessions.
///
/// # Errors
/// Errors of the record and of the home.
pub(super) async fn note(record: &Record, home: &Home) -> Result<Vec<SessionId>, Error> {
    let changing: Vec<&str> =
        tools::builtin().iter().filter(|tool| tool.may_change_files()).map(|tool| tool.name).collect();
    let found = record.state.read(move |tx| turns::sessions_with_ended_calls(tx, &changing)).await?;
    let place = home.clone();
    let look = tokio::task::spawn_blocking(move || {
        let is_lost = |session: &SessionId| {
            let own = place.session(*session);
            // Without a workspace, the next launch of the session reports the loss of all its files.
            own.workspace().is_dir() && own.versions().symlink_metadata().is_err()
        };
        found.into_iter().filter(is_lost).collect::<Vec<_>>()
    });
    let lost = look.await.expect("a look at directories does not panic");
    for session in &lost {
        home::make_private(&home.session(*session).versions())?;
    }
    let noted = lost.clone();
    if !noted.is_empty() {
        let note = move |tx: &mut ironclaw_state::WriteTx<'_>| {
            for session in noted {
                Entry::new(LedgerEvent::SessionVersionsLost).session(session).append(tx)?;
            }
            Ok::<_, ironclaw_state::Error>(())
        };
        record.state.write(note).await?;
    }
    Ok(lost)
}
