//! The identities that a change names, and the people behind them.

use super::kind::gone;
use crate::registry::{self, Identity, Person};
use ironclaw_contract::ids::PersonId;
use ironclaw_operator::DenialCode;
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_text::confusable;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Returns the person behind each identity.
///
/// # Errors
/// Refuses an identity without a person, and two identities of one person: they could contradict each other.
pub(super) fn each_once<'a>(
    tx: &ReadTx<'_>,
    identities: impl Iterator<Item = &'a String>,
) -> Result<Vec<Person>, Denied> {
    let mut people: Vec<Person> = Vec::new();
    for identity in identities {
        let parsed: Identity = identity.parse()?;
        let Some(person) = registry::person_behind(tx, &parsed)? else {
            let refusal = Refusal::new(DenialCode::IdentityUnlinked, format!("{parsed} is linked to no person"));
            return Err(refusal.hint("an owner links it first: `ironctl person link`").into());
        };
        if people.iter().any(|other| other.id == person.id) {
            // The message does not name the person: a requesting agent need not know.
            let message = format!("{parsed} belongs to a person that the change already names");
            return Err(Refusal::new(DenialCode::PersonTwice, message).hint("name each person once").into());
        }
        people.push(person);
    }
    Ok(people)
}

/// Returns the person who is linked to an identity; none if the text is not an identity.
pub(super) fn find(tx: &ReadTx<'_>, identity: &str) -> Result<Option<Person>, ironclaw_state::Error> {
    match identity.parse::<Identity>() {
        Ok(identity) => registry::person_behind(tx, &identity),
        Err(_) => Ok(None),
    }
}

/// Returns the person who is linked to a checked identity.
///
/// # Errors
/// Refuses an identity that was unlinked since.
pub(super) fn person(tx: &ReadTx<'_>, identity: &str) -> Result<Person, Denied> {
    let found = registry::person_behind(tx, &identity.parse()?)?;
    found.ok_or_else(|| gone("a named person".to_owned()).into())
}

/// Returns the current person behind each identity, with the identities that it resembles.
pub(super) fn facts<'a>(
    tx: &ReadTx<'_>,
    identities: impl Iterator<Item = &'a str>,
) -> Result<Map<String, Value>, ironclaw_state::Error> {
    let names: HashMap<PersonId, String> =
        registry::people(tx)?.into_iter().map(|person| (person.id, person.name)).collect();
    let known: Vec<(String, &str)> = registry::identities(tx)?
        .into_iter()
        .map(|(identity, person)| (identity.to_string(), names.get(&person).map_or("", String::as_str)))
        .collect();
    let mut found = Map::new();
    for identity in identities {
        let others = known.iter().map(|(other, whose)| (other.as_str(), *whose));
        let marks = confusable::warnings(identity, others);
        let person = find(tx, identity)?;
        let person = person.map(|person| match marks.is_empty() {
            true => json!({ "person": person.id, "name": person.name }),
            false => json!({ "person": person.id, "name": person.name, "look twice": marks }),
        });
        found.insert(identity.to_owned(), person.unwrap_or(Value::Null));
    }
    Ok(found)
}
