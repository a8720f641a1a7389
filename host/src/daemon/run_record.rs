//! The begin and the end of a run, in the record and in the ledger.

use super::error::Error;
use super::history;
use crate::gateway::quorum;
use crate::registry;
use crate::registry::policy::{self, Policy};
use ironclaw_contract::ids::BootId;
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_ledger::Entry;
use ironclaw_state::State;
use ironclaw_state::home::Home;
use ironclaw_store::record::Record;
use ironclaw_store::tables::facts::{self, Fact};
use std::sync::Arc;

/// Writes the entry of the start. Returns warnings, such as one about an unclean end of the last run.
pub(super) async fn begin(
    record: &Arc<Record>,
    home: &Home,
    boot: BootId,
    policy: &Policy,
) -> Result<Vec<String>, Error> {
    let (policy_digest, own) = (policy.digest().to_string(), Arc::clone(record));
    let begun: Option<(Option<String>, Vec<String>)> = record
        .state
        .write(move |tx| {
            if registry::owner(tx)?.is_none() {
                return Ok::<_, ironclaw_store::error::Error>(None);
            }
            let previous = facts::get(tx, Fact::Running)?;
            facts::set(tx, Fact::Running, boot)?;
            let entry = Entry::new(LedgerEvent::HostStarted)
                .with("boot", boot)
                .with("version", env!("CARGO_PKG_VERSION"))
                .with("fingerprint", ironclaw_contract::seam::fingerprint())
                .with("policy", policy_digest);
            if let Some(migrated) = ironclaw_state::migrations::take_note(tx)? {
                Entry::new(LedgerEvent::StateMigrated)
                    .with("from", migrated.from)
                    .with("to", migrated.to)
                    .with("snapshot", migrated.snapshot)
                    .append(tx)?;
            }
            match &previous {
                Some(previous) => entry.with("unclean_end_of", previous.clone()).append(tx)?,
                None => entry.append(tx)?,
            };
            let lost = history::note_losses(tx, &own, boot)?;
            Ok(Some((previous, lost)))
        })
        .await?;
    let (previous, mut warnings) = begun.ok_or_else(|| Error::NoGenesis(home.path().to_owned()))?;
    home.end_setup()?;
    if policy::is_absent(&home.policy()) {
        let warning = format!(
            "{} is missing or empty, so every default applies: one approval of an owner or admin is enough for any change; `ironctl init` writes a file to edit",
            home.policy().display()
        );
        tracing::warn!("{warning}");
        warnings.push(warning);
    }
    for unmet in quorum::unmet(&record.state.read(quorum::read_people).await?, policy) {
        let warning = unmet.to_string();
        tracing::warn!("{warning}");
        warnings.push(warning);
    }
    if previous.is_some() {
        let warning = "the last run did not end cleanly; open work was resumed";
        tracing::warn!("{warning}");
        warnings.push(warning.to_owned());
    }
    Ok(warnings)
}

/// Writes the entry of an orderly end.
pub(super) async fn end(state: &State, boot: BootId) -> Result<(), Error> {
    state
        .write(move |tx| {
            facts::remove(tx, Fact::Running)?;
            Entry::new(LedgerEvent::HostStopped).with("boot", boot).append(tx)?;
            Ok::<_, ironclaw_state::Error>(())
        })
        .await?;
    Ok(())
}
