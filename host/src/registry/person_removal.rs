//! The removal of a person: the tokens end, the identities are unlinked, and every role is lost.
//!
//! Never gives the id to another person, so a person of the same name has none of the rights and approvals. Erases no session; see
//! `crate::gateway::changes` for the order.

use super::people::{Identity, Person, Role, person_by_id};
use super::places::ending::{self, identity_entry};
use super::{allowances, roles, tokens};
use ironclaw_contract::ids::PersonId;
use ironclaw_ledger::Entry;
use ironclaw_operator::{DenialCode, LedgerEvent, TokenId};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables;

#[derive(Debug, Default)]
pub struct LostAccess {
    /// The tokens that were live.
    pub tokens: Vec<TokenId>,
    /// The identities, without the person's own one on this host.
    pub identities: Vec<Identity>,
}

/// Checks that this person may be removed by `by`.
///
/// # Errors
/// Refuses a requester who is no owner any longer, a removal of oneself, and one of the last owner.
pub fn check(tx: &ReadTx<'_>, person: &Person, by: PersonId) -> Result<(), Denied> {
    let name = &person.name;
    // Read again: the role may have been revoked while the request was in flight.
    if person_by_id(tx, by)?.is_none_or(|by| by.role != Role::Owner) {
        let refusal = Refusal::new(DenialCode::RoleTooLow, format!("{name} can be removed by an owner only"));
        return Err(refusal.into());
    }
    if person.id == by {
        let refusal = Refusal::new(DenialCode::PersonSelf, format!("{name} cannot remove themselves"));
        return Err(refusal.hint("ask another owner: `ironctl person list` shows the owners").into());
    }
    if person.role == Role::Owner && tables::people::count_owners(tx)? <= 1 {
        let refusal = Refusal::new(DenialCode::LastOwner, format!("{name} is the last owner"));
        return Err(refusal
            .hint("make another person an owner first: `ironctl person set PERSON --role owner`")
            .into());
    }
    Ok(())
}

/// Revokes the tokens of a person and unlinks the identities, so that no further message of theirs arrives. A second call changes nothing.
pub fn end_access(tx: &mut WriteTx<'_>, person: &Person, by: PersonId) -> Result<LostAccess, ironclaw_state::Error> {
    let tokens = tokens::revoke_all(tx, person.id, by)?;
    allowances::end_of_person(tx, person.id)?;
    let mut identities = tables::people::identities_of(tx, person.id)?;
    identities.retain(|identity| *identity != Identity::own(person.id));
    for identity in &identities {
        ending::end_of_identity(tx, person.id, identity, by)?;
        tables::people::delete_identity(tx, person.id, identity)?;
        identity_entry(LedgerEvent::IdentityUnlinked, person.id, identity, by).append(tx)?;
    }
    Ok(LostAccess { tokens, identities })
}

/// Removes a person whose access ended, and returns the names of the agents for which the person had a role.
pub fn remove(tx: &mut WriteTx<'_>, person: &Person, by: PersonId) -> Result<Vec<String>, ironclaw_state::Error> {
    let agents = roles::end_all(tx, person.id, by)?;
    tables::people::delete_person(tx, person.id)?;
    Entry::new(LedgerEvent::PersonRemoved)
        .with("person", person.id)
        .with("role", person.role.name())
        .with("by", by)
        .append(tx)?;
    Ok(agents)
}
