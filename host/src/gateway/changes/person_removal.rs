//! The removal of a person from the record: their changes are withdrawn, their approvals no longer count, and then the person is removed.
//!
//! The sessions of the person are erased before. See [`crate::registry::person_removal`] for tokens, identities and roles.

use crate::gateway::waiting::{self, Ending, Gateway, Scope, Status, WaitingId};
use crate::registry::person_removal::{self, LostAccess};
use crate::registry::{self, Person};
use ironclaw_contract::ids::{ChangeId, PersonId};
use ironclaw_operator::DenialCode;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables;

pub(crate) struct Removal {
    pub(crate) person: Person,
    pub(crate) access: LostAccess,
    /// The names of the agents for which they had a role.
    pub(crate) agents: Vec<String>,
    /// The changes that were withdrawn.
    pub(crate) withdrawn: Vec<ChangeId>,
    /// The number of kept changes that they asked for or decided.
    pub(crate) kept_changes: u64,
    /// The number of kept notes on their behalf.
    pub(crate) kept_notes: u64,
}

/// Refuses a person with sessions.
pub(crate) fn check_no_sessions(tx: &ReadTx<'_>, person: &Person) -> Result<(), Denied> {
    let count = tables::sessions::count_of_person(tx, person.id)?;
    if count == 0 {
        return Ok(());
    }
    let sessions = if count == 1 { "1 session".to_owned() } else { format!("{count} sessions") };
    let refusal = Refusal::new(DenialCode::PersonInUse, format!("{} has {sessions}", person.name));
    let is_plain = person.name.starts_with(char::is_alphanumeric)
        && person.name.chars().all(|character| character.is_alphanumeric() || matches!(character, '-' | '_' | '.'));
    let named = registry::name_or_id(is_plain.then(|| person.name.clone()), person.id);
    let hint = format!(
        "`ironctl session list --person {named}` shows them; `ironctl person remove {named} --erase` also erases them"
    );
    Err(refusal.hint(hint).into())
}

impl Gateway {
    /// Removes a person without sessions. Withdraws the open changes on their behalf, and takes back their approvals of changes that wait; an
    /// approved change that needs one fails when it is applied.
    ///
    /// # Errors
    /// Refuses as [`person_removal::check`] and [`check_no_sessions`] do, and a person who is gone.
    pub(crate) fn remove_person(
        &self,
        tx: &mut WriteTx<'_>,
        by: &Person,
        person: PersonId,
    ) -> Result<Removal, Denied<Error>> {
        let gone = || Refusal::new(DenialCode::PersonUnknown, format!("{person} was removed already"));
        let person = registry::person_by_id(tx, person)?.ok_or_else(gone)?;
        person_removal::check(tx, &person, by.id)?;
        check_no_sessions(tx, &person)?;
        let mut withdrawn = Vec::new();
        let ending = Ending { status: Status::Withdrawn, by: None, outcome: "the requester was removed" };
        for of in tables::waiting::active(tx, Scope::Person(person.id))? {
            waiting::end(tx, self, &of, &ending)?;
            if let WaitingId::Change(id) = of.id {
                withdrawn.push(id);
            }
        }
        let access = person_removal::end_access(tx, &person, by.id)?;
        let agents = person_removal::remove(tx, &person, by.id)?;
        waiting::decide::recount(tx, self)?;
        let kept_changes = tables::waiting::changes::count_for_person(tx, person.id)?;
        let kept_notes = tables::memories::count_of_person(tx, person.id)?;
        Ok(Removal { person, access, agents, withdrawn, kept_changes, kept_notes })
    }
}
