//! Writes down what is asked for, and tells the conversation that asked what came of it.
//!
//! Decides about no change. Next: `gateway::store`.

use crate::gateway::policy::Policy;
use crate::gateway::store::{self, Row, Status, Submitted};
use crate::gateway::{Grounds, Proposed, Requester, checks};
use crate::inbound::inbox;
use crate::record::Record;
use crate::refusal::Denied;
use crate::registry;
use crate::session::store as sessions;
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_ledger::Entry;
use ironclaw_state::WriteTx;
use ironclaw_text::lookalike;
use std::sync::Arc;

/// What proposals are checked by, and the record that they are written to.
pub struct Proposals {
    /// Is told to the conversations that asked.
    pub record: Arc<Record>,
    /// Who may decide about what.
    pub policy: Policy,
    /// What the operator set.
    pub grounds: Arc<Grounds>,
}

impl Proposals {
    /// Checks a proposal and writes it down.
    ///
    /// # Errors
    /// Refuses what does not pass; the ledger has the refusal.
    pub(crate) fn submit(&self, tx: &mut WriteTx<'_>, proposed: Proposed) -> Result<Submitted, Denied> {
        let (kind, requester) = (proposed.change.kind(), proposed.requester.clone());
        let proposed =
            checks::check(tx, &self.grounds, proposed).and_then(|checked| store::propose(tx, &self.policy, checked));
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
        Ok(submitted)
    }
}

/// Tells the conversation that asked what came of it: as the host's word, which opens no turn.
pub(crate) fn notify(tx: &mut WriteTx<'_>, record: &Record, row: &Row) -> Result<(), ironclaw_state::Error> {
    let Some(session) = row.session() else { return Ok(()) };
    let Some(session) = sessions::find(tx, session)?.filter(|session| session.wrapped.is_some()) else { return Ok(()) };
    let by = match row.decided_by {
        Some(person) => {
            registry::person_by_id(tx, person)?.map_or_else(String::new, |person| format!(" by {}", person.name))
        }
        None => String::new(),
    };
    let said = row.outcome.as_deref().unwrap_or_default();
    let what = match row.status {
        Status::Applied => format!("was approved{by} and is applied: {said}"),
        Status::Rejected if said.is_empty() => format!("was rejected{by}; nothing was changed"),
        Status::Rejected => format!("was rejected{by}; nothing was changed. The reason that was given: {said:?}"),
        Status::Expired => "has expired: nobody decided in time; nothing was changed".to_owned(),
        Status::Withdrawn => format!("is withdrawn: {said}; nothing was changed"),
        // Why may be a stranger's words, or name places of the host: that is for whoever is shown the change.
        Status::Failed => {
            let show = format!("ironctl change show {}", row.id);
            format!("was approved{by}, and could not be done; nothing was changed. Why is shown to people: `{show}`")
        }
        Status::Unknown => format!("is unknown: {said}"),
        Status::Pending | Status::Approved => return Ok(()),
    };
    let text = format!("The change {} ({}) that you asked for {what}.", row.id, row.kind);
    let text = lookalike::neutralise(&text);
    match inbox::tell(tx, &session, &text, &record.wrapping, &record.sealer) {
        Ok(_) => Ok(()),
        Err(inbox::Error::State(error)) => Err(error),
        // A conversation whose key does not open hears nothing, and holds up nobody else's change.
        Err(inbox::Error::Key(error)) => {
            tracing::error!(session = %session.id, change = %row.id, %error, "what came of a change was not told");
            Entry::new(LedgerEvent::ChangeUntold).session(session.id).with("change", row.id).append(tx)?;
            Ok(())
        }
        Err(inbox::Error::Full) => Err(ironclaw_state::Error::Stored("a message took a uid".to_owned())),
    }
}
