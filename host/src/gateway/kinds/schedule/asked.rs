//! What the prompt of a schedule asks for, beside what its runs may do.
//!
//! Finds words only and decides nothing: the page warns, and a person reads the prompt. See [`ironclaw_judge::scope`].

use crate::registry::tools::{self, SEND_FILE, SEND_MESSAGE};
use crate::registry::{Agent, mcp};
use ironclaw_contract::seam::change::{Schedule, WrittenBy};
use ironclaw_judge::spans::Span;
use ironclaw_judge::{Class, Classes, manifest, scope};
use ironclaw_state::ReadTx;
use std::collections::BTreeSet;

/// The part of the name of a tool between its server and the rest.
const OF_SERVER: &str = "__";

/// Returns the tools that a prompt names and the agent does not have, and `send_message` if the prompt asks to send something and the
/// agent has no destination.
pub(super) fn lacking(tx: &ReadTx<'_>, agent: &Agent, prompt: &str) -> Result<BTreeSet<String>, ironclaw_state::Error> {
    let catalogue = mcp::catalogue(tx, agent)?;
    let is_tool = |word: &&str| tools::find(word).is_some() || word.contains(OF_SERVER);
    let named = words(prompt).filter(is_tool).chain(classes(prompt).has(Class::Send).then_some(SEND_MESSAGE));
    Ok(named.filter(|tool| catalogue.missing(tool).is_some()).map(str::to_owned).collect())
}

/// Returns the classes that the prompt of a schedule asks for and that its runs may not use.
pub(super) fn beyond(schedule: &Schedule) -> Classes {
    let prompt = schedule.prompt.as_deref().unwrap_or_default();
    let may = schedule.may.as_deref().unwrap_or_default();
    let has = |class: Class| may.iter().any(|entry| entry == class.name() || classes_of_tool(entry).has(class));
    let named = words(prompt).map(classes_of_tool).fold(Classes::NONE, Classes::or);
    let asked = classes(prompt).or(named);
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
    scope::scope(&spans).map_or(Classes::NONE, |found| found.classes)
}

fn classes_of_tool(name: &str) -> Classes {
    // Words such as `recall` are usual words, and these tools read.
    manifest::built_in(name).map_or(Classes::NONE, |manifest| manifest.classes())
}

fn words(prompt: &str) -> impl Iterator<Item = &str> {
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
        ] {
            assert_eq!(beyond(&schedule(prompt, may)), beyond_list, "{prompt} {may:?}");
        }
        let asks = schedule("Send the notes to Ana.", &[]);
        let flow = Flow { to: "me".to_owned(), ..Flow::default() };
        assert_eq!(beyond(&Schedule { flows: Some(vec![flow]), ..asks.clone() }), none);
        let reply_to = ReplyTo { channel: "desk".to_owned(), address: "7".to_owned(), thread: None };
        assert_eq!(beyond(&Schedule { reply_to: Some(reply_to), ..asks }), none);
    }
}
