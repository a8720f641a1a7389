//! Detection of a lost or restored record at a start, and its consequences: another generation of the record, entries, a warning.
//!
//! The evidence comes from `ironclaw_state::log`, heads and archives. See [`crate::gateway::generation`] and
//! [`crate::channels::outbound::journal`].

use crate::channels::notifications::{self, About, Notification};
use crate::channels::outbound::journal;
use crate::gateway::generation;
use crate::gateway::waiting::{self, Doubted, Gateway};
use crate::runtime::schedules;
use ironclaw_contract::ids::BootId;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{WriteTx, log};
use ironclaw_store::error::Error;
use std::sync::Arc;

/// Records in the ledger the losses of the write-ahead log, and treats the record as restored. Returns warnings.
pub(super) fn record_losses(tx: &mut WriteTx<'_>, gateway: &Gateway, boot: BootId) -> Result<Vec<String>, Error> {
    let lost = log::take_lost(tx)?;
    let mut warnings = Vec::new();
    for one in &lost {
        let entry = Entry::new(LedgerEvent::StateChangesLost);
        match one {
            log::Lost::Missing => entry.with("log", "missing").append(tx)?,
            log::Lost::Damaged { commits } => entry.with("log", "damaged").with("commits", *commits).append(tx)?,
            log::Lost::Restored { backup } => {
                Entry::new(LedgerEvent::StateRestored).with("backup", backup.clone()).append(tx)?
            }
        };
        warnings.push(one.sentence());
    }
    if !lost.is_empty() {
        // Each loss begins its own history.
        let doubtful = begin_generation(tx, gateway, &[format!("log of {boot}")])?;
        warnings.push(put_back(doubtful.unwrap_or(0)));
    }
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    Ok(warnings)
}

/// Treats the record as restored if heads or archives know another history. Returns a warning.
pub(super) async fn begin_another(gateway: &Arc<Gateway>, other_history: Vec<String>) -> Result<Option<String>, Error> {
    let own = Arc::clone(gateway);
    let begun = gateway.record.state.write(move |tx| begin_generation(tx, &own, &other_history)).await?;
    let warning = begun.map(put_back);
    if let Some(warning) = &warning {
        tracing::warn!("{warning}");
    }
    Ok(warning)
}

/// Returns the number of those that wait for a person to check; `None` if all of this history was known before.
fn begin_generation(tx: &mut WriteTx<'_>, gateway: &Gateway, other_history: &[String]) -> Result<Option<usize>, Error> {
    let Some(generation) = generation::begin(tx, other_history)? else { return Ok(None) };
    // Before the objects of notifications end: one that may have been sent is not withdrawn.
    journal::doubt(tx)?;
    let Doubted { doubtful, withdrawn } = waiting::doubt_all(tx, gateway, generation)?;
    Entry::new(LedgerEvent::StateGeneration)
        .with("generation", generation)
        .with("doubtful", doubtful)
        .with("withdrawn", withdrawn)
        .append(tx)?;
    let now = tx.wall();
    notifications::add_for_operators(tx, &Notification::new(About::RecordRestored, "record"), now)?;
    schedules::pause_restored(tx)?;
    Ok(Some(doubtful))
}

fn put_back(doubtful: usize) -> String {
    let waiting = match doubtful {
        0 => String::new(),
        1 => ", and 1 entry of the inbox is in doubt (`ironctl inbox`)".to_owned(),
        many => format!(", and {many} entries of the inbox are in doubt (`ironctl inbox`)"),
    };
    format!(
        "this record was restored to an earlier state: earlier approvals are void, and open replies are not sent by themselves \
         (`ironctl delivery list`){waiting}"
    )
}
