//! The answer of a person to a question of an agent.
//!
//! The page of the host quotes the words of the agent. See [`super::ask`] for a person at a terminal, and [`crate::commands::answer`] for
//! a script.

use super::Asked;
use crate::client::Client;
use crate::commands::review;
use crate::failure::Error;
use crate::output::Output;
use ironclaw_operator::{Decision, Details, NewAnswer, QuestionDetails, Recorded, Waiting};

/// Returns what only a question has.
pub fn details(waiting: &Waiting) -> Option<&QuestionDetails> {
    match &waiting.entry.details {
        Some(Details::Question(question)) => Some(question),
        _ => None,
    }
}

/// Returns the message with the answer.
pub fn recorded(answered: &Waiting) -> Option<Recorded> {
    let message_id = details(answered)?.answer?;
    let session_id = answered.entry.origin.as_ref()?.session;
    Some(Recorded { message_id, session_id, message: None })
}

/// Returns the answer of a typed line: the number of an option, or a text.
pub fn read(options: usize, line: &str, is_text: bool) -> NewAnswer {
    match line.trim().parse::<u32>() {
        Ok(number) if options > 0 && !is_text => NewAnswer { option: Some(number), text: None },
        Ok(_) | Err(_) => NewAnswer { option: None, text: Some(line.to_owned()) },
    }
}

/// Shows a question and takes the answer of the person. A line that the question does not take is asked for again.
pub(super) async fn ask(
    out: Output,
    client: &Client,
    waiting: &Waiting,
    asked: &QuestionDetails,
) -> Result<Asked, Error> {
    review::show(out, &waiting.into())?;
    loop {
        let Some(line) = review::read_answer(out, &prompt(asked)).await? else { return Ok(Asked::Quit) };
        if line.trim().is_empty() {
            return Ok(Asked::Left);
        }
        let answer = Decision::Answer(read(asked.options.len(), &line, false));
        match super::decide(client, waiting.entry.id, answer).await {
            Ok(answered) => return Ok(Asked::Decided(Box::new(answered))),
            Err(Error::Refused(failure)) if is_about_line(&failure.error.code) => {
                out.failure(&Error::Refused(failure));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns whether a refusal is about the typed line alone.
fn is_about_line(code: &str) -> bool {
    matches!(code, "question_option" | "question_free_text" | "question_answer_invalid")
}

fn prompt(asked: &QuestionDetails) -> String {
    let numbers = match asked.options.len() {
        0 => None,
        1 => Some("1".to_owned()),
        many => Some(format!("1 to {many}")),
    };
    let text = asked.free_text.then(|| "text".to_owned());
    let ways: Vec<String> = [numbers, text].into_iter().flatten().collect();
    format!("answer ({}; an empty line leaves it): ", ways.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_an_option_only_where_there_are_options() {
        assert_eq!(read(2, " 2 ", false), NewAnswer { option: Some(2), text: None });
        for (options, line, is_text) in [(2, "2", true), (2, "two", false), (0, "2", false)] {
            assert_eq!(read(options, line, is_text), NewAnswer { option: None, text: Some(line.to_owned()) });
        }
    }

    #[test]
    fn prompt_names_the_ways_to_answer() {
        let asked = |options: &[&str], free_text| {
            let options = options.iter().map(|&option| option.to_owned()).collect();
            prompt(&QuestionDetails { options, free_text, answer: None })
        };
        assert_eq!(asked(&["a", "b"], false), "answer (1 to 2; an empty line leaves it): ");
        assert_eq!(asked(&["a"], true), "answer (1 or text; an empty line leaves it): ");
        assert_eq!(asked(&[], true), "answer (text; an empty line leaves it): ");
    }
}
