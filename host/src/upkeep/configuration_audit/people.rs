//! The findings about people: owners, tokens, places where the host notifies them, and the calls that repeat for them.

use crate::gateway::requests::allowance;
use crate::registry::tokens::FILE_TOKEN_NAME;
use crate::registry::{self, LOOPBACK, Person, Role, TokenState, allowances, identities, places, tokens};
use ironclaw_operator::{AllowanceStatus, Finding};
use ironclaw_state::{Error, ReadTx};

/// Adds the findings about every person.
pub(super) fn find(tx: &ReadTx<'_>, all: &mut Vec<Finding>) -> Result<(), Error> {
    let people = registry::people(tx)?;
    let owners: Vec<&Person> = people.iter().filter(|person| person.role == Role::Owner).collect();
    if let [owner] = owners[..] {
        let admin = people.iter().find(|person| person.role == Role::Admin).map(|admin| admin.name.clone());
        all.push(Finding::OwnerAlone { owner: owner.name.clone(), admin });
    }
    find_places(tx, &people, all)?;
    for token in tokens(tx)? {
        // The token of the home's own file never expires.
        if token.state == TokenState::Live && token.expires_at.is_none() && token.name != FILE_TOKEN_NAME {
            all.push(Finding::TokenWithoutExpiry { token: token.id, person: token.person.name });
        }
    }
    for held in allowances::allowances(tx)? {
        if allowance::status(&held, tx.wall()) != AllowanceStatus::Active {
            continue;
        }
        all.push(Finding::AllowanceOpen {
            allowance: u64::try_from(held.id).unwrap_or_default(),
            agent: registry::agent_name(tx, held.agent)?,
            person: registry::person_name(tx, held.person)?,
            tool: allowances::tools(&held),
            uses_left: held.uses_max.saturating_sub(held.uses),
        });
    }
    Ok(())
}

/// Finds the owners and admins without a place. If none has one, that is one finding.
fn find_places(tx: &ReadTx<'_>, people: &[Person], all: &mut Vec<Finding>) -> Result<(), Error> {
    let places = places::places(tx)?;
    let deciders = people.iter().filter(|person| person.role.covers(Role::Admin));
    let (with, without): (Vec<&Person>, Vec<&Person>) =
        deciders.partition(|person| places.iter().any(|place| place.0 == person.id));
    let identities = identities(tx)?;
    let channel = |person: &Person| {
        let mut own = identities.iter().filter(|linked| linked.1 == person.id).map(|linked| &linked.0.channel);
        own.find(|channel| *channel != LOOPBACK).cloned()
    };
    match (with.is_empty(), without.as_slice()) {
        (true, [first, ..]) => {
            all.push(Finding::DecidersWithoutPlace { person: first.name.clone(), channel: channel(first) });
        }
        (_, others) => {
            for person in others {
                all.push(Finding::PersonWithoutPlace { person: person.name.clone(), channel: channel(person) });
            }
        }
    }
    Ok(())
}
