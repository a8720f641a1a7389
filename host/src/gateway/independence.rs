//! Independence of approvals: finds the people who gave an approver a role or a token after the request.
//!
//! Without this check one owner could act as any number of people: they create a person, or a token for a person, and approve again.
//! See [`crate::gateway::decide`].

use super::kinds::is_of_agent;
use crate::registry::policy::Rule;
use crate::registry::{self, Giver, Person, TokenId};
use ironclaw_contract::ids::{AgentId, PersonId};
use ironclaw_operator::DenialCode;
use ironclaw_state::ReadTx;
use ironclaw_store::tables;
use ironclaw_store::tables::people::Provenance;
use ironclaw_store::tables::waiting::changes::Row;
use std::collections::BTreeSet;

/// The code of an approval that depends on a person who already counts, or who must not count.
pub const NOT_INDEPENDENT: DenialCode = DenialCode::ApproverNotIndependent;

/// The bound on the givers of one approval; the backers of a longer chain are unknown.
const GIVERS_MAX: usize = 64;

/// The request for approvals: its ledger entry, and the person on whose behalf it was made.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// The number of the ledger entry.
    pub seq: u64,
    pub principal: PersonId,
    /// The agent whose own admins may decide too.
    pub agent: Option<AgentId>,
}

impl From<&Row> for Asked {
    fn from(row: &Row) -> Self {
        let agent = row.agent.filter(|_| is_of_agent(row.kind));
        Self { seq: row.asked_seq, principal: row.requester.principal(), agent }
    }
}

/// The people behind one approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backers {
    /// The approver, and all people who gave them their role or their token after the request.
    People(BTreeSet<PersonId>),
    /// Not known: the used token is no longer in the record, or the host itself gave it.
    Unknown,
}

impl Backers {
    /// Returns whether the approver is the only backer.
    pub fn is_direct(&self) -> bool {
        matches!(self, Self::People(people) if people.len() == 1)
    }
}

/// Returns the dependence of an approval on another person, if it has one. `counted` are the backers of the approvals that already count.
pub fn dependence(backers: &Backers, counted: &BTreeSet<PersonId>, asked: Asked, rule: &Rule) -> Option<Dependence> {
    match backers {
        // One approval of any person with a role is enough, so its backers do not matter.
        _ if rule.is_one_alone() => None,
        Backers::Unknown => Some(Dependence::Unknown),
        Backers::People(people) if !rule.requester_may_approve && people.contains(&asked.principal) => {
            Some(Dependence::OfRequester(asked.principal))
        }
        Backers::People(people) => people.intersection(counted).next().copied().map(Dependence::OfApprover),
    }
}

/// Returns the dependence of the requester's own approval on another approver, if it has one.
pub fn own_dependence(backers: &Backers, counted: &BTreeSet<PersonId>) -> Option<Dependence> {
    match backers {
        Backers::Unknown => Some(Dependence::Unknown),
        Backers::People(people) => people.intersection(counted).next().copied().map(Dependence::OfApprover),
    }
}

/// The reason that an approval is not independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependence {
    /// The role or the token comes from the requester, who must not approve.
    OfRequester(PersonId),
    /// The role or the token comes from another approver.
    OfApprover(PersonId),
    /// The origin of the role or the token is not known.
    Unknown,
}

impl Dependence {
    /// Returns the reason as a clause, for a sentence that names the approver.
    pub fn words(self, tx: &ReadTx<'_>) -> Result<String, ironclaw_state::Error> {
        let name = |person: PersonId| registry::person_name(tx, person);
        Ok(match self {
            Self::OfRequester(person) => format!(
                "after the request, the role or the token came from {}, the requester, who must not approve",
                name(person)?
            ),
            Self::OfApprover(person) => {
                format!("after the request, the role or the token came from {}, another approver", name(person)?)
            }
            Self::Unknown => {
                "the role or the token was given after the request, and the record does not name the giver".to_owned()
            }
        })
    }
}

/// Returns the backers of an approval by this person with this token.
pub fn backers(
    tx: &ReadTx<'_>,
    asked: Asked,
    rule: &Rule,
    by: PersonId,
    proof: &str,
) -> Result<Backers, ironclaw_state::Error> {
    let mut people = BTreeSet::new();
    let mut seen: Vec<Giver> = Vec::new();
    let mut next = vec![Giver { person: by, token: proof.parse::<TokenId>().ok() }];
    while let Some(giver) = next.pop() {
        if seen.contains(&giver) {
            continue;
        }
        if seen.len() == GIVERS_MAX {
            return Ok(Backers::Unknown);
        }
        people.insert(giver.person);
        let Some(grants) = grants_of(tx, asked, rule, &giver)? else { return Ok(Backers::Unknown) };
        for given in grants.into_iter().filter(|given| given.seq > asked.seq) {
            if given.by.is_empty() {
                return Ok(Backers::Unknown);
            }
            next.extend(given.by);
        }
        seen.push(giver);
    }
    Ok(Backers::People(people))
}

/// Returns the grants by which a person may decide: the role and the token. Returns `None` if one of them is not in the record.
fn grants_of(
    tx: &ReadTx<'_>,
    asked: Asked,
    rule: &Rule,
    giver: &Giver,
) -> Result<Option<Vec<Provenance>>, ironclaw_state::Error> {
    let Some(token) = giver.token.as_ref().map(|token| tables::people::token_given(tx, token)).transpose()?.flatten()
    else {
        return Ok(None);
    };
    let Some(person) = registry::person_by_id(tx, giver.person)? else { return Ok(None) };
    let Some(role) = tables::people::role_given(tx, giver.person)? else { return Ok(None) };
    let mut grants = vec![token, role];
    if let (Some(agent), false) = (asked.agent, decides_by_host_role(rule, &person)) {
        grants.extend(tables::agents::role_given(tx, agent, giver.person)?);
    }
    Ok(Some(grants))
}

fn decides_by_host_role(rule: &Rule, person: &Person) -> bool {
    rule.admits(person.role)
}
