//! `ironctl question`: lists and shows the questions of agents, and asks a person on a terminal for an answer.
//!
//! The text of a question is the agent's own: each of its lines is marked, and unsafe characters are escaped. See
//! [`crate::commands::answer`] for a script, [`crate::commands::inbox`] for everything that waits.

use super::mcp::{prose, quotation};
use super::named_agent::NamedAgent;
use super::review;
use crate::at::At;
use crate::client::Client;
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use clap::Subcommand;
use ironclaw_operator::{InboxEntry, NewAnswer, Recorded, routes};
use serde_json::json;

/// The first characters of the id of a question.
pub const QUESTION_PREFIX: &str = "qst_";

/// The verbs of `ironctl question`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List questions, by default those that wait
    #[command(
        after_help = "Example:\n  ironctl question list\n  ironctl question list --status all\n  ironctl question list --agent assistant"
    )]
    List {
        /// Status: waiting, answered, cancelled, expired, unknown, or all [default: waiting,unknown]
        #[arg(long)]
        status: Option<String>,
        #[command(flatten)]
        of: NamedAgent,
    },
    /// Show a question with its options
    #[command(after_help = "Example:\n  ironctl question show qst_01j9zq4w0v2m6n8p0r2t4v6x8z")]
    Show {
        /// Id of the question
        id: String,
    },
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
        Action::List { status, of } => {
            let query = json!({ "status": status, "agent": of.name() });
            let found = at.client()?.query(routes::QUESTIONS, [], query).await?;
            let row = |one: InboxEntry| {
                let agent = one.agent.clone().unwrap_or_default();
                [one.id.to_string(), one.status.clone(), agent, clock::to_the_minute(&one.expires_at), in_a_line(&one)]
            };
            let more = found.more;
            at.out.list(found.entries, "no question waits", ["ID", "STATUS", "AGENT", "UNTIL", "QUESTION"], row)?;
            if more { at.out.remark("there are more questions: use --status or --agent") } else { Ok(()) }
        }
        Action::Show { id } => {
            let found = at.client()?.call(routes::QUESTION, [&id]).await?;
            at.out.json(&found)?;
            print(at.out, &found)
        }
    }
}

/// Returns the text of a question in one line.
pub fn in_a_line(question: &InboxEntry) -> String {
    let text = question.question.as_deref().unwrap_or("(its text cannot be read)");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Prints a question and its options in the words of the agent.
pub fn print(out: Output, question: &InboxEntry) -> Result<(), Error> {
    let until = clock::date_and_time(&question.expires_at);
    out.line(format!("question {} ({}), until {until}", question.id, question.status))?;
    out.line(format!("agent {} asks in its own words:", question.agent.as_deref().unwrap_or_default()))?;
    let text = question.question.as_deref().unwrap_or("(its text cannot be read)");
    quotation(out, text).into_iter().try_for_each(|line| out.line(line))?;
    for (index, option) in question.options.iter().flatten().enumerate() {
        out.line(format!("  {}  {}", index + 1, prose(option)))?;
    }
    Ok(())
}

/// Returns the answer of a typed line: the number of an option, or a text.
pub fn read(question: &InboxEntry, line: &str, is_text: bool) -> NewAnswer {
    let has_options = question.options.as_ref().is_some_and(|options| !options.is_empty());
    match line.trim().parse::<u32>() {
        Ok(number) if has_options && !is_text => NewAnswer { option: Some(number), text: None },
        Ok(_) | Err(_) => NewAnswer { option: None, text: Some(line.to_owned()) },
    }
}

/// The end of a question at a terminal.
pub enum Asked {
    /// The person answered with this message.
    Answered(Recorded),
    /// An empty line: the question still waits.
    Left,
    /// The end of the input.
    Quit,
}

/// Shows a question and takes the answer of the person. A line that the question does not take is asked for again.
pub async fn ask(out: Output, client: &Client, question: &InboxEntry) -> Result<Asked, Error> {
    print(out, question)?;
    loop {
        let Some(line) = review::read_answer(out, &prompt(question)).await? else { return Ok(Asked::Quit) };
        if line.trim().is_empty() {
            return Ok(Asked::Left);
        }
        let answer = read(question, &line, false);
        match client.post(routes::ANSWER_QUESTION, [&question.id], &answer).await {
            Ok(recorded) => return Ok(Asked::Answered(recorded)),
            Err(Error::Refused(failure)) if is_of_line(&failure.error.code) => {
                out.failure(&Error::Refused(failure));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns whether a refusal is about the typed line alone.
fn is_of_line(code: &str) -> bool {
    matches!(code, "question_option" | "question_free_text" | "question_answer_invalid")
}

fn prompt(question: &InboxEntry) -> String {
    let options = question.options.as_ref().map_or(0, Vec::len);
    let numbers = match options {
        0 => None,
        1 => Some("1".to_owned()),
        many => Some(format!("1 to {many}")),
    };
    let text = question.free_text.unwrap_or_default().then(|| "text".to_owned());
    let ways: Vec<String> = [numbers, text].into_iter().flatten().collect();
    format!("answer ({}; an empty line leaves it): ", ways.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(options: &[&str], free_text: bool) -> InboxEntry {
        serde_json::from_value(json!({
            "id": "qst_00000000000000000000000001", "type": "question", "agent": "a", "status": "waiting", "effect": "asks",
            "arguments": null, "origins": [], "reasons": [], "shown_digest": "0".repeat(64), "created_at": "t",
            "expires_at": "t", "told": [], "yours": true, "question": "q\n1", "options": options, "free_text": free_text
        }))
        .expect("the shape of a question")
    }

    #[test]
    fn number_is_an_option_only_where_there_are_options() {
        let (choice, open) = (question(&["a", "b"], true), question(&[], true));
        assert_eq!(read(&choice, " 2 ", false), NewAnswer { option: Some(2), text: None });
        assert_eq!(read(&choice, "2", true).text.as_deref(), Some("2"));
        assert_eq!(read(&choice, "two", false).text.as_deref(), Some("two"));
        assert_eq!(read(&open, "2", false).text.as_deref(), Some("2"));
    }

    #[test]
    fn prompt_names_the_ways_to_answer() {
        assert_eq!(prompt(&question(&["a", "b"], false)), "answer (1 to 2; an empty line leaves it): ");
        assert_eq!(prompt(&question(&["a"], true)), "answer (1 or text; an empty line leaves it): ");
        assert_eq!(prompt(&question(&[], true)), "answer (text; an empty line leaves it): ");
    }
}
