//! What the prompt of a schedule asks for, beside what its runs may do.
//!
//! Finds words only and decides nothing: the page warns, and a person reads the prompt. See [`ironclaw_judge::scope`].

use super::words;
use crate::registry::tools::{self, RUN_COMMAND, SEND_FILE, SEND_MESSAGE};
use crate::registry::{Agent, destinations, mcp};
use ironclaw_contract::seam::change::{Schedule, WrittenBy};
use ironclaw_judge::provenance::spans::Span;
use ironclaw_judge::{Class, Classes, scope};
use ironclaw_state::ReadTx;
use std::collections::BTreeSet;

/// The part of the name of a tool between its server and the rest.
const OF_SERVER: &str = "__";

/// Returns the tools that a prompt names and the agent does not have, and `send_message` if the prompt asks to send something and the
/// agent has no destination.
pub(super) fn lacking(tx: &ReadTx<'_>, agent: &Agent, prompt: &str) -> Result<BTreeSet<String>, ironclaw_state::Error> {
    let catalogue = mcp::catalogue(tx, agent)?;
    let is_tool = |word: &&str| tools::find(word).is_some() || word.contains(OF_SERVER);
    let named = tool_words(prompt).filter(is_tool).chain(classes(prompt).has(Class::Send).then_some(SEND_MESSAGE));
    Ok(named.filter(|tool| catalogue.missing(tool).is_some()).map(str::to_owned).collect())
}

/// Returns the classes that the prompt of a schedule asks for in words that need no scope in a chat: programs, if the agent runs some,
/// and a text for the creator or for a destination of the agent.
pub(super) fn beside(tx: &ReadTx<'_>, agent: &Agent, schedule: &Schedule) -> Result<Classes, ironclaw_state::Error> {
    let prompt = schedule.prompt.as_deref().unwrap_or_default();
    let held = destinations::list_for_agent(tx, agent.id)?;
    let is_meant = |held: &destinations::Destination| {
        let is_own = held.person.is_some() && held.person == schedule.creator;
        is_own && words::sends_to_author(prompt) || words::sends_to_name(prompt, &held.name)
    };
    let sends = held.iter().any(is_meant).then_some(Class::Send);
    let has_commands = agent.enabled_tools.iter().any(|tool| tool == RUN_COMMAND);
    let runs = (has_commands && words::runs_programs(prompt)).then_some(Class::Exec);
    Ok(sends.into_iter().chain(runs).collect())
}

/// Returns the classes that the prompt of a schedule asks for and that its runs may not use, with those of [`beside`].
pub(super) fn beyond(schedule: &Schedule, beside: Classes) -> Classes {
    let prompt = schedule.prompt.as_deref().unwrap_or_default();
    let may = schedule.may.as_deref().unwrap_or_default();
    let has = |class: Class| may.iter().any(|entry| entry == class.name() || classes_of_tool(entry).has(class));
    let named = tool_words(prompt).map(classes_of_tool).fold(Classes::NONE, Classes::or);
    let asked = classes(prompt).or(named).or(beside);
    // A reply to another conversation, and a flow, send as well.
    let sends = schedule.flows.as_ref().is_some_and(|flows| !flows.is_empty())
        || schedule.reply_to.as_ref().is_some_and(|reply_to| reply_to.channel != crate::registry::LOOPBACK);
    [Class::Write, Class::Send, Class::Exec]
        .into_iter()
        .filter(|class| asked.has(*class) && !has(*class) && !(sends && *class == Class::Send))
        .collect()
}

/// Returns the classes that typed text asks for. A prompt that a model wrote is compared in the same way.
fn classes(prompt: &str) -> Classes {
    let spans = [Span { text: prompt, typed: true }];
    let Ok(found) = scope::scope(&spans) else { return Classes::NONE };
    if found.evidence.len() == scope::EVIDENCE_MAX {
        return found.classes;
    }
    let is_work = |evidence: &&scope::Evidence| {
        let words = prompt.get(evidence.bytes.clone()).unwrap_or_default();
        evidence.class != Class::Write || !words::is_reminder(words)
    };
    found.evidence.iter().filter(is_work).map(|evidence| evidence.class).collect()
}

fn classes_of_tool(name: &str) -> Classes {
    // Words such as `recall` are usual words, and these tools read.
    tools::manifest(name).map_or(Classes::NONE, |manifest| manifest.classes())
}

fn tool_words(prompt: &str) -> impl Iterator<Item = &str> {
    let is_in_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    prompt.split(move |letter: char| !is_in_name(letter)).filter(|word| word.contains('_'))
}

/// Returns whether a list lets a run send in a way that text of others ends.
pub(super) fn may_send(schedule: &Schedule) -> bool {
    let may = schedule.may.as_deref().unwrap_or_default();
    may.iter().any(|entry| [Class::Send.name(), SEND_MESSAGE, SEND_FILE].contains(&entry.as_str()))
}

/// Returns whether a person wrote the prompt.
pub(super) fn is_typed(schedule: &Schedule) -> bool {
    schedule.written_by == Some(WrittenBy::Person)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::seam::change::{Flow, ReplyTo};

    fn schedule(prompt: &str, may: &[&str]) -> Schedule {
        let may = may.iter().map(|&entry| entry.to_owned()).collect();
        Schedule { prompt: Some(prompt.to_owned()), may: Some(may), ..Schedule::default() }
    }

    #[test]
    fn prompt_that_asks_for_more_than_its_list_is_found() {
        let none = Classes::NONE;
        let (send, exec) = (Classes::new(&[Class::Send]), Classes::new(&[Class::Exec]));
        for (prompt, may, beyond_list) in [
            ("Summarise the notes and send them to Ana.", &[][..], send),
            ("Summarise the notes and send them to Ana.", &["send"], none),
            ("Summarise the notes and send them to Ana.", &["send_message"], none),
            ("Fasse die Notizen zusammen und schicke sie an Ana.", &["write"], send),
            ("Count the files with run_command.", &[], exec),
            ("Count the files with run_command.", &["run_command"], none),
            ("Count the files.", &[], none),
            ("Remind me to water the plants.", &[], none),
            ("Erinnere mich an die Blumen.", &[], none),
            ("Remind me to water the plants, and delete the file old.md.", &[], Classes::new(&[Class::Write])),
        ] {
            assert_eq!(beyond(&schedule(prompt, may), none), beyond_list, "{prompt} {may:?}");
        }
        for (may, beyond_list) in [(&[][..], send.or(exec)), (&["send"], exec), (&["run_command"], send)] {
            assert_eq!(beyond(&schedule("Count the files.", may), send.or(exec)), beyond_list, "{may:?}");
        }
        let asks = schedule("Send the notes to Ana.", &[]);
        let flow = Flow { to: "me".to_owned(), ..Flow::default() };
        assert_eq!(beyond(&Schedule { flows: Some(vec![flow]), ..asks.clone() }, none), none);
        let reply_to = ReplyTo { channel: "desk".to_owned(), address: "7".to_owned(), thread: None };
        assert_eq!(beyond(&Schedule { reply_to: Some(reply_to), ..asks }, none), none);
    }
}
