//! The names of schedules, which commands take in place of ids.
//!
//! Never renames one. A name is unique among the schedules of its creator with its agent, and never looks like an id.

use super::{Schedule, unknown};
use crate::registry::{Agent, Person, Role};
use ironclaw_contract::ids::{AgentId, PersonId, ScheduleId};
use ironclaw_operator::DenialCode;
use ironclaw_state::{Error, ReadTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::schedules as table;
use ironclaw_text::excerpt::quoted;

/// Words of a prompt in a default name.
const WORDS_MAX: usize = 4;

/// Characters of a name.
const CHARACTERS_MAX: usize = 40;

/// Characters of a default name before its number.
const WORDS_CHARACTERS_MAX: usize = 32;

/// The beginning of every id of a schedule.
const ID: &str = "sch_";

/// The name in the payload of a change.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    pub name: Option<&'a str>,
    /// True if the host completed the payload before. Another schedule may have the name since then: see [`free_now`].
    pub is_completed: bool,
}

/// Returns the name that a schedule gets: the given one, or the first words of its prompt. `place` has its agent, its creator and, if it
/// exists, the schedule itself.
///
/// # Errors
/// Refuses a given name that is too long, that looks like an id, or that another schedule has.
pub fn completed(
    tx: &ReadTx<'_>,
    place: (AgentId, PersonId, Option<ScheduleId>),
    given: Given<'_>,
    prompt: &str,
) -> Result<String, Denied> {
    let (agent, creator, own) = place;
    let taken = table::names(tx, agent, creator, own)?;
    let is_taken = |name: &str| taken.contains(name);
    let Some(name) = given.name else { return Ok(free(&from_words(prompt), is_taken)) };
    // The row of a schedule from before names has its id as its name.
    let is_own_id = own.is_some_and(|own| own.to_string() == name);
    let refuse = |why: &str| Err(Refusal::new(DenialCode::ScheduleName, format!("{} {why}", quoted(name))).into());
    match name {
        _ if !is_own_id && !is_fit(name) => {
            let words = format!("is no name of a schedule: use 1 to {CHARACTERS_MAX} letters, digits, - and _");
            refuse(&format!("{words}, and no id"))
        }
        _ if is_taken(name) && !given.is_completed => {
            refuse("is the name of another schedule of this agent: choose another one")
        }
        _ => Ok(name.to_owned()),
    }
}

/// Returns a name that is still free when an approved schedule is added.
pub fn free_now(tx: &ReadTx<'_>, agent: AgentId, creator: PersonId, wanted: &str) -> Result<String, Error> {
    let taken = table::names(tx, agent, creator, None)?;
    Ok(free(wanted, |name| taken.contains(name)))
}

/// Returns whether a person may give this name: it needs no quotation marks in a shell.
fn is_fit(name: &str) -> bool {
    let is_fit = |letter: char| letter.is_alphanumeric() || letter == '-' || letter == '_';
    (1..=CHARACTERS_MAX).contains(&name.chars().count())
        && name.chars().all(is_fit)
        && !name.starts_with(['-', '_'])
        && !name.starts_with(ID)
}

/// Returns the first words of a prompt as a name.
pub fn from_words(prompt: &str) -> String {
    let words = prompt.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = String::new();
    for word in words.take(WORDS_MAX).map(str::to_lowercase) {
        let begun = if name.is_empty() { word } else { format!("{name}-{word}") };
        if begun.chars().count() > WORDS_CHARACTERS_MAX {
            break;
        }
        name = begun;
    }
    if is_fit(&name) { name } else { "schedule".to_owned() }
}

/// Returns the name itself, or the first one with a number that is free.
fn free(wanted: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(wanted) {
        return wanted.to_owned();
    }
    (2_u32..).map(|number| format!("{wanted}-{number}")).find(|name| !is_taken(name)).expect("names have a bound")
}

/// Returns the schedule of this id or name, if the person may see it. A name means a schedule of their own before one of another person.
///
/// # Errors
/// Refuses an unknown schedule, one of another person, and a name that several schedules have.
pub fn known(tx: &ReadTx<'_>, by: &Person, named: &str) -> Result<Schedule, Denied> {
    if let Ok(id) = named.parse() {
        return super::known(tx, by, id);
    }
    let mut found = table::named(tx, named)?;
    found.retain(|row| row.creator == by.id || by.role.covers(Role::Admin));
    if found.iter().any(|row| row.creator == by.id) {
        found.retain(|row| row.creator == by.id);
    }
    only(found, named)
}

/// Returns the schedule of this id or name that an agent asked for on behalf of a person.
///
/// # Errors
/// Refuses any other schedule.
pub fn asked_for(tx: &ReadTx<'_>, agent: &Agent, person: PersonId, named: &str) -> Result<Schedule, Denied> {
    if let Ok(id) = named.parse() {
        return super::find_asked_for(tx, agent, person, id);
    }
    let found = table::named(tx, named)?.into_iter();
    let is_own = |row: &Schedule| row.agent == agent.id && row.creator == person && super::is_by_agent(row);
    only(found.filter(is_own).collect(), named)
}

/// Returns the only schedule of a name.
fn only(mut found: Vec<Schedule>, named: &str) -> Result<Schedule, Denied> {
    if found.len() > 1 {
        let ids: Vec<String> = found.iter().map(|row| format!("{}", row.id)).collect();
        let message = format!("{} schedules have the name {}", found.len(), quoted(named));
        let refusal = Refusal::new(DenialCode::ScheduleAmbiguous, message);
        return Err(refusal.hint(format!("use the id of one of them: {}", ids.join(", "))).into());
    }
    found.pop().ok_or_else(|| unknown(named).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_name_is_the_first_words_of_the_prompt() {
        for (prompt, name) in [
            ("Summarise the new issues and post them", "summarise-the-new-issues"),
            ("water", "water"),
            ("  /allow exec\nrun true", "allow-exec-run-true"),
            ("Blumen gießen!", "blumen-gießen"),
            ("¿…?", "schedule"),
            ("sch_01j9 again", "sch-01j9-again"),
        ] {
            assert_eq!(from_words(prompt), name, "{prompt}");
        }
        let long = "x".repeat(33);
        assert_eq!(from_words(&long), "schedule");
        assert_eq!(from_words(&format!("a {long} b")), "a", "a word is never cut");
        let taken = ["water", "water-2"];
        assert_eq!(free("water", |name| taken.contains(&name)), "water-3");
        assert_eq!(free("tea", |name| taken.contains(&name)), "tea");
    }

    #[test]
    fn name_that_a_shell_or_a_reader_could_mistake_is_refused() {
        for name in ["monday", "Monday_report", "7", "blumen-gießen"] {
            assert!(is_fit(name), "{name}");
        }
        let long = "x".repeat(41);
        for name in ["", " ", "two words", "-x", "_x", "a/b", "a:b", "a\nb", "sch_x", "$(x)", "a\u{202e}b", &long] {
            assert!(!is_fit(name), "{name:?}");
        }
    }
}
