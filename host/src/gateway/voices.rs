//! Whether a yes is a voice of its own, or that of whoever gave its role or its token after the change was asked for.
//!
//! Without it one owner is any number of people: they make a person, or a token for a person, and answer again. Next:
//! `gateway::decide`.

use super::kinds::is_of_agent;
use super::policy::Rule;
use super::store::Row;
use crate::registry::{self, Giver, Person, TokenId};
use crate::tables;
use crate::tables::people::Provenance;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::operator::DenialCode;
use ironclaw_state::ReadTx;
use std::collections::BTreeSet;

/// The code of a yes that is the voice of somebody who counts already, or who does not count.
pub const NOT_INDEPENDENT: DenialCode = DenialCode::ApproverNotIndependent;

/// People that are looked at behind one yes; a longer chain of givers counts as unknown.
const BEHIND_MAX: usize = 64;

/// Who is behind a yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behind {
    /// The person who said it, and everybody who gave them their role or their token after the change was asked for.
    People(BTreeSet<PersonId>),
    /// It cannot be told: the token that was used is not in the record any more, or the host itself gave it.
    Unknown,
}

impl Behind {
    /// Whether the person alone is behind it.
    pub fn is_direct(&self) -> bool {
        matches!(self, Self::People(people) if people.len() == 1)
    }
}

/// Why a yes is no voice of its own, if so: `counted` are the people behind those that count already.
pub fn depends(behind: &Behind, counted: &BTreeSet<PersonId>, row: &Row, rule: &Rule) -> Option<Dependence> {
    match behind {
        // One yes of anybody with a role is enough: whose it is does not matter.
        _ if rule.is_one_alone() => None,
        Behind::Unknown => Some(Dependence::Unknown),
        Behind::People(people) if !rule.requester_may_approve && people.contains(&row.principal()) => {
            Some(Dependence::OfRequester(row.principal()))
        }
        Behind::People(people) => people.intersection(counted).next().copied().map(Dependence::OfApprover),
    }
}

/// What a yes depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependence {
    /// The role or the token comes from whoever asked, who does not count.
    OfRequester(PersonId),
    /// The role or the token comes from a person who approves too.
    OfApprover(PersonId),
    /// Where the role or the token comes from is not known.
    Unknown,
}

impl Dependence {
    /// What is wrong with the yes, to be read behind the name of whoever said it.
    pub fn words(self, tx: &ReadTx<'_>) -> Result<String, ironclaw_state::Error> {
        let name = |person: PersonId| registry::person_name(tx, person);
        Ok(match self {
            Self::OfRequester(person) => format!(
                "the role or the token came from {}, who asked and does not count, after it was asked for",
                name(person)?
            ),
            Self::OfApprover(person) => {
                format!("the role or the token came from {}, who approves too, after it was asked for", name(person)?)
            }
            Self::Unknown => {
                "the role or the token was given after it was asked for, and the record does not say by whom".to_owned()
            }
        })
    }
}

/// Who is behind the yes that this person says with this token.
pub fn behind(
    tx: &ReadTx<'_>,
    row: &Row,
    rule: &Rule,
    by: PersonId,
    proof: &str,
) -> Result<Behind, ironclaw_state::Error> {
    let mut people = BTreeSet::new();
    let mut seen: Vec<Giver> = Vec::new();
    let mut next = vec![Giver { person: by, token: proof.parse::<TokenId>().ok() }];
    while let Some(giver) = next.pop() {
        if seen.contains(&giver) {
            continue;
        }
        if seen.len() == BEHIND_MAX {
            return Ok(Behind::Unknown);
        }
        people.insert(giver.person);
        let Some(came) = came_by(tx, row, rule, &giver)? else { return Ok(Behind::Unknown) };
        for given in came.into_iter().filter(|given| given.seq > row.asked_seq) {
            if given.by.is_empty() {
                return Ok(Behind::Unknown);
            }
            next.extend(given.by);
        }
        seen.push(giver);
    }
    Ok(Behind::People(people))
}

/// What a person needs to decide, each as it was given: the role and the token. None where one of them is not in the record.
fn came_by(
    tx: &ReadTx<'_>,
    row: &Row,
    rule: &Rule,
    giver: &Giver,
) -> Result<Option<Vec<Provenance>>, ironclaw_state::Error> {
    let Some(token) = giver.token.as_ref().map(|token| tables::people::token_given(tx, token)).transpose()?.flatten()
    else {
        return Ok(None);
    };
    let Some(person) = registry::person_by_id(tx, giver.person)? else { return Ok(None) };
    let Some(role) = tables::people::role_given(tx, giver.person)? else { return Ok(None) };
    let mut came = vec![token, role];
    if let (Some(agent), false) = (row.agent.filter(|_| is_of_agent(row.kind)), decides_by_host_role(rule, &person)) {
        came.extend(tables::agents::role_given(tx, agent, giver.person)?);
    }
    Ok(Some(came))
}

fn decides_by_host_role(rule: &Rule, person: &Person) -> bool {
    rule.admits(person.role)
}
