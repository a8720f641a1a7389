//! The record of proposals, and the notices about their outcomes.
//!
//! Decides on no change. See [`crate::gateway::store`].

use crate::channels::inbound::inbox;
use crate::gateway::store::{self, Row, Status, Submitted};
use crate::gateway::{Proposed, Requester, checks, decider_notices, kinds};
use crate::registry;
use crate::registry::live_settings::Live;
use crate::sessions::store as sessions;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::refusal::Denied;
use ironclaw_text::lookalike;
use std::sync::Arc;

/// The rules that check proposals, and the record that has them.
pub struct Proposals {
    /// The record of proposals and of the conversations that get notices.
    pub record: Arc<Record>,
    /// The rules for decisions, and the other settings of the operator.
    pub settings: Arc<Live>,
}

impl Proposals {
    /// Checks a proposal and records it.
    ///
    /// # Errors
    /// Refuses a proposal that fails a check, and records the refusal in the ledger.
    pub(crate) fn submit(&self, tx: &mut WriteTx<'_>, proposed: Proposed) -> Result<Submitted, Denied<Error>> {
        let (kind, requester) = (proposed.change.kind(), proposed.requester.clone());
        let settings = self.settings.now();
        let proposed = checks::check(tx, &settings.host_policy, proposed).and_then(|checked| {
            kinds::schedule::check_rights(tx, &settings.policy, &checked.proposed)?;
            store::propose(tx, &settings.policy, checked)
        });
        let submitted = proposed.map_err(|denied| {
            denied.noted(|refusal| {
                let entry = Entry::new(LedgerEvent::ChangeRefused).with("kind", kind.name()).with("code", refusal.code);
                match requester {
                    Requester::Agent { origin, .. } => entry.session(origin.session).turn(origin.turn).append(tx)?,
                    Requester::Person(person) => entry.with("by", person).append(tx)?,
                };
                Ok(())
            })
        })?;
        if let Some(row) = &submitted.superseded {
            notify(tx, &self.record, row)?;
        }
        if !submitted.again {
            decider_notices::waits(tx, &settings.policy, submitted.id)?;
        }
        Ok(submitted)
    }
}

/// Notifies the requesting conversation of the outcome of a change. The notice is from the host and opens no turn.
pub(crate) fn notify(tx: &mut WriteTx<'_>, record: &Record, row: &Row) -> Result<(), Error> {
    let Some(session) = row.session() else { return Ok(()) };
    let Some(session) = sessions::find(tx, session)?.filter(|session| session.wrapped.is_some()) else { return Ok(()) };
    let by = match row.decided_by {
        Some(person) => {
            registry::person_by_id(tx, person)?.map_or_else(String::new, |person| format!(" by {}", person.name))
        }
        None => String::new(),
    };
    let outcome = row.outcome.as_deref().unwrap_or_default();
    let what = match row.status {
        Status::Applied => format!("was approved{by} and is applied: {outcome}"),
        Status::Rejected if outcome.is_empty() => format!("was rejected{by}; nothing was changed"),
        Status::Rejected => format!("was rejected{by}; nothing was changed. The given reason: {outcome:?}"),
        Status::Expired => "has expired without a decision; nothing was changed".to_owned(),
        Status::Withdrawn if outcome.is_empty() => format!("was withdrawn{by}; nothing was changed"),
        Status::Withdrawn => format!("is withdrawn: {outcome}; nothing was changed"),
        // The reason may be a stranger's words, or name paths of the host. Only people who see the change may read it.
        Status::Failed => {
            let show = format!("ironctl change show {}", row.id);
            format!(
                "was approved{by} and could not be applied; nothing was changed. A person can read the reason: `{show}`"
            )
        }
        Status::Unknown => format!("is unknown: {outcome}"),
        Status::Pending | Status::Approved => return Ok(()),
    };
    let text = format!("The change {} ({}) that you asked for {what}.", row.id, row.kind);
    let text = lookalike::neutralise(&text);
    match inbox::notify(tx, &session, &text, &record.wrapping, &record.sealer) {
        Ok(_) => Ok(()),
        // A conversation whose key does not open gets no notice, and delays no other change.
        Err(Error::Key(error)) => {
            tracing::error!(session = %session.id, change = %row.id, %error, "no notice was sent about the outcome of a change");
            Entry::new(LedgerEvent::ChangeNotNotified).session(session.id).with("change", row.id).append(tx)?;
            Ok(())
        }
        Err(error) => Err(error),
    }
}
