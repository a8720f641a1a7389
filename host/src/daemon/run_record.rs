//! The begin and the end of a run, in the record and in the ledger.

use super::error::Error;
use super::{config, history, lost_versions};
use crate::gateway::quorum;
use crate::gateway::waiting::Gateway;
use crate::registry;
use ironclaw_contract::ids::BootId;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::State;
use ironclaw_state::home::Home;
use ironclaw_store::record::Record;
use ironclaw_store::tables::facts::{self, Fact};
use ironclaw_store::toml_file;
use std::sync::Arc;

/// Conversations in a warning; the ledger has all.
const SESSIONS_NAMED: usize = 4;

/// Writes the entry of the start. Returns warnings, such as one about an unclean end of the last run.
pub(super) async fn begin(gateway: &Arc<Gateway>, home: &Home, boot: BootId) -> Result<Vec<String>, Error> {
    let (record, settings, own) = (&gateway.record, gateway.now(), Arc::clone(gateway));
    let policy_digest = settings.policy.digest().to_string();
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
            let lost = history::record_losses(tx, &own, boot)?;
            Ok(Some((previous, lost)))
        })
        .await?;
    let (previous, mut warnings) = begun.ok_or_else(|| Error::NoGenesis(home.path().to_owned()))?;
    home.end_setup()?;
    let mut further = losses(record, home).await?;
    let people = record.state.read(quorum::read_people).await?;
    further.extend(quorum::unmet(&people, &settings.policy).into_iter().map(|unmet| unmet.to_string()));
    if previous.is_some() {
        further.push("the last run did not end cleanly; open work was resumed".to_owned());
    }
    for warning in &further {
        tracing::warn!("{warning}");
    }
    warnings.extend(further);
    Ok(warnings)
}

/// Returns a warning for each file of an operator or of a conversation that is gone.
async fn losses(record: &Record, home: &Home) -> Result<Vec<String>, Error> {
    let mut warnings = Vec::new();
    if toml_file::is_absent(&home.policy()) {
        let warning = format!(
            "{} is missing or empty, so every default applies: one approval of an owner or admin is enough for any change; `ironctl init` writes a file to edit",
            home.policy().display()
        );
        warnings.push(warning);
    }
    if config::is_absent(home) {
        let warning = format!(
            "{} is missing or empty, so every setting has its default, such as ceilings, quotas and ports: put it back from a backup, \
             or `ironctl init` writes a file to edit",
            home.config().display()
        );
        warnings.push(warning);
    }
    let lost = lost_versions::note(record, home).await?;
    if !lost.is_empty() {
        let named = lost.iter().take(SESSIONS_NAMED).map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let warning = format!(
            "the kept versions of files of {} conversations are gone ({named}): put their directories `versions` back from a backup",
            lost.len()
        );
        warnings.push(warning);
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
