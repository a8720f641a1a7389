//! Detection of a lost or restored record at a start, and its consequences: another generation of the record, entries, a warning.
//!
//! The evidence comes from `ironclaw_state::log`, heads and archives. See [`crate::gateway::store`] and
//! [`crate::channels::outbound::delivery::journal`].

use crate::channels::notifications::{self, About, Notification};
use crate::channels::outbound::delivery::{self, journal};
use crate::gateway::questions;
use crate::gateway::requests;
use crate::gateway::store;
use crate::runtime::schedules;
use ironclaw_contract::ids::BootId;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{WriteTx, log};
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use std::sync::Arc;

/// The outcome of a call that waited in a restored record.
const RESTORED: &str = "the record was put back to an earlier state: this may have been decided or carried out since";

/// Records in the ledger the losses of the write-ahead log, and treats the record as restored. Returns warnings.
pub(super) fn record_losses(tx: &mut WriteTx<'_>, record: &Record, boot: BootId) -> Result<Vec<String>, Error> {
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
        let unknown = begin_generation(tx, record, &[format!("log of {boot}")])?;
        warnings.push(put_back(unknown.unwrap_or(0)));
    }
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    Ok(warnings)
}

/// Treats the record as restored if heads or archives know another history. Returns a warning.
pub(super) async fn begin_another(record: &Arc<Record>, other_history: Vec<String>) -> Result<Option<String>, Error> {
    let own = Arc::clone(record);
    let begun = record.state.write(move |tx| begin_generation(tx, &own, &other_history)).await?;
    let warning = begun.map(put_back);
    if let Some(warning) = &warning {
        tracing::warn!("{warning}");
    }
    Ok(warning)
}

/// Returns the number of changes that wait for a person; `None` if all of this history was known before.
fn begin_generation(tx: &mut WriteTx<'_>, record: &Record, other_history: &[String]) -> Result<Option<usize>, Error> {
    let unknown = store::begin_generation(tx, other_history)?;
    if unknown.is_some() {
        // One restore may begin two generations in one start: by the backup, and by the heads outside. Nothing is sent in between, so the
        // second one leaves the notifications of the first.
        if !journal::is_in_doubt(tx)? {
            // Before their objects end: a notification that may have been sent is not withdrawn.
            delivery::notifications::doubt(tx)?;
        }
        requests::end_all(tx, record, RESTORED)?;
        questions::doubt_all(tx, record)?;
        journal::doubt_deliveries(tx)?;
        let now = tx.wall();
        notifications::add_for_operators(tx, &Notification::new(About::RecordRestored, "record"), now)?;
        schedules::pause_restored(tx)?;
    }
    Ok(unknown)
}

fn put_back(unknown: usize) -> String {
    let waiting = match unknown {
        0 => String::new(),
        1 => ", and 1 change waits for a decision (`ironctl inbox`)".to_owned(),
        many => format!(", and {many} changes wait for a decision (`ironctl inbox`)"),
    };
    format!(
        "this record was restored to an earlier state: earlier approvals are void, and open replies are not sent by themselves \
         (`ironctl delivery list`){waiting}"
    )
}
