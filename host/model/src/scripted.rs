//! The endpoint `scripted`, which answers by rules: for a trial of IronClaw without a provider, and for deterministic tests.
//!
//! Uses only the prompt and no randomness, and never pretends to be an AI model. See [`crate::scripted::rules`] for the format of the
//! rules, and `scripted.toml` for the built-in ones.

mod pattern;
mod rules;
mod template;

pub use rules::Error;

use super::{Output, Part, Prompt, WantedCall};
use ironclaw_contract::seam::limits::BODY_BYTES_MAX;
use ironclaw_contract::seam::socket::Purpose;
use rules::{Call, Ending, Origin, Over, Recall, Rule};
use std::time::Duration;
use template::Values;

/// The name of this endpoint.
pub const NAME: &str = "scripted";
/// Prefix of the first answer of a conversation.
pub const PREFACE: &str = "(This is IronClaw's script, not an AI model: it answers by fixed rules.)";
/// The answer if the principal of the turn has typed nothing new.
pub const UNPROMPTED: &str = "Noted. I am a script and only act on what a person types to me.";
/// Appended to an answer that exceeds the limit of a body.
const CUT: &str = "\n(The rest is too long for a message.)";

const BUILTIN: &str = include_str!("scripted.toml");

/// The reason that the script gives no output: the text of a `fail` rule, or that no rule fits.
#[derive(Debug, PartialEq, Eq)]
pub struct Unanswered(pub String);

/// The rules of a script, in order.
#[derive(Debug)]
pub struct Scripted {
    rules: Vec<Rule>,
}

impl Scripted {
    /// Returns the built-in rules alone.
    pub fn builtin() -> Self {
        let (rules, _) =
            rules::parse(BUILTIN, Origin::BuiltIn).expect("a test of this module reads the built-in rules");
        Self { rules }
    }

    /// Parses the rules of a text, and appends the built-in ones unless the text has `builtin = false`.
    ///
    /// # Errors
    /// An unknown key, an invalid regular expression, an unknown placeholder, or not exactly one ending. The error has the number and
    /// the name of the rule.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (mut rules, with_builtin) = rules::parse(text, Origin::Operator)?;
        if with_builtin {
            rules.extend(Self::builtin().rules);
        }
        Ok(Self { rules })
    }

    /// Returns the time that the output for this prompt takes.
    pub fn wait(&self, prompt: &Prompt) -> Duration {
        let rule = Request::read(&prompt.parts).and_then(|request| Some(self.rule(&request)?.0.wait));
        rule.unwrap_or_default()
    }

    /// Returns the first rule that fits the request.
    fn rule<'a>(&self, request: &Request<'a>) -> Option<(&Rule, regex::Captures<'a>)> {
        self.rules.iter().find_map(|rule| Some((rule, rule.when.captures(request.asked)?)))
    }

    /// Returns the output of the first rule that fits the last words of the person.
    ///
    /// # Errors
    /// [`Unanswered`] if the rule fails on purpose, or no rule fits.
    pub fn generate(&self, prompt: &Prompt) -> Result<Output, Unanswered> {
        if prompt.purpose == Purpose::Compact {
            return Ok(Output { text: summary(&prompt.parts), ..Output::default() });
        }
        let Some(request) = Request::read(&prompt.parts) else {
            let continued = followed_up(&prompt.parts).or_else(|| chosen(&prompt.parts));
            return Ok(answer(prompt, continued.unwrap_or_else(|| UNPROMPTED.to_owned())));
        };
        let Some((rule, captures)) = self.rule(&request) else {
            return Err(Unanswered("no rule fits what was said".to_owned()));
        };
        let mut values = Values::default();
        values.add(rule.when.group_names(), &captures);
        request.add_results(&mut values);

        if let Some(step) = rule.step(request.steps)
            && (request.error.is_none() || matches!(rule.ending, Ending::Loop))
        {
            let calls = step.iter().map(|call| wanted(call, &values)).collect();
            return Ok(Output { calls, ..Output::default() });
        }
        if request.error.is_some() {
            return Ok(answer(prompt, rule.reply_error.render(&values)));
        }
        match &rule.ending {
            Ending::Reply(reply) => Ok(answer(prompt, reply.render(&values))),
            Ending::Recall(recall) => Ok(answer(prompt, recalled_answer(recall, request.earlier, values))),
            Ending::Raw(text) => Ok(Output { text: text.clone(), ..Output::default() }),
            Ending::Empty | Ending::Loop => Ok(Output::default()),
            Ending::Fail(message) => Err(Unanswered(message.clone())),
        }
    }
}

/// The current request of the person, and its progress.
struct Request<'a> {
    /// The last words of the person.
    asked: &'a str,
    /// Parts before the request.
    earlier: &'a [Part],
    /// Number of outputs with calls since the request.
    steps: usize,
    /// The last result of the last step.
    result: &'a str,
    /// The first failed result of the last step, if any.
    error: Option<&'a str>,
}

impl<'a> Request<'a> {
    /// Reads the request. `None` if there is none, or if the last request was answered and only words of others follow it.
    fn read(parts: &'a [Part]) -> Option<Self> {
        let (at, asked) = parts.iter().enumerate().rev().find_map(|(at, part)| match part {
            Part::Person { text } | Part::Task { text } | Part::Agent { text, .. } => Some((at, text)),
            _ => None,
        })?;
        let mut request = Self {
            asked: &asked[..asked.floor_char_boundary(BODY_BYTES_MAX)],
            earlier: &parts[..at],
            steps: 0,
            result: "",
            error: None,
        };
        let mut missing = 0;
        for part in &parts[at + 1..] {
            match part {
                Part::Assistant { calls, .. } if calls.is_empty() => return None,
                // Words of others are added only at the start of a turn, so these belong to a later turn.
                Part::Context { .. } if request.steps > 0 => return None,
                Part::Assistant { calls, .. } => {
                    request.steps += 1;
                    missing = calls.len();
                    (request.result, request.error) = ("", None);
                }
                Part::Result { ok, text, .. } => {
                    missing = missing.saturating_sub(1);
                    request.result = text;
                    if !ok {
                        request.error = request.error.or(Some(text));
                    }
                }
                Part::Person { .. }
                | Part::Task { .. }
                | Part::Agent { .. }
                | Part::Context { .. }
                | Part::Image { .. }
                | Part::Notice { .. }
                | Part::HostNotice { .. }
                | Part::Time { .. }
                | Part::Remark { .. }
                | Part::Failure { .. }
                | Part::Summary { .. } => {}
            }
        }
        if missing > 0 {
            request.error = request.error.or(Some("no result came back"));
        }
        Some(request)
    }

    fn add_results(&self, values: &mut Values<'a>) {
        values.set("result", self.result);
        values.set("ok", if self.error.is_none() { "true" } else { "false" });
        values.set("error", self.error.unwrap_or_default());
    }
}

/// Returns the answer to a follow-up of the host: the result of a call that waited, in the part before the host's words.
fn followed_up(parts: &[Part]) -> Option<String> {
    match parts.iter().rev().find(|part| !matches!(part, Part::Time { .. } | Part::Remark { .. })) {
        Some(Part::HostNotice { .. }) => {}
        _ => return None,
    }
    let result = parts
        .iter()
        .rev()
        .take_while(|part| !matches!(part, Part::Assistant { .. } | Part::Person { .. } | Part::Task { .. }));
    let mut results = result.filter_map(|part| match part {
        Part::Context { author, text } if author.starts_with("tool ") => Some(text.as_str()),
        _ => None,
    });
    results.next().map(|text| format!("The call that waited has ended. {text}"))
}

/// Returns the answer to a chosen option of a question: the option, in the part behind the host's words.
fn chosen(parts: &[Part]) -> Option<String> {
    let last =
        parts.iter().rposition(|part| !matches!(part, Part::Time { .. } | Part::Remark { .. })).map_or(0, |at| at + 1);
    match &parts[..last] {
        [.., Part::HostNotice { text: how }, Part::Context { text, .. }]
            if how.starts_with("The person chose option") =>
        {
            Some(format!("You chose: {text}"))
        }
        _ => None,
    }
}

fn wanted(call: &Call, values: &Values) -> WantedCall {
    let arguments = call.arguments.render(values).unwrap_or_else(|| serde_json::json!({}));
    WantedCall { tool: call.tool.render(values), arguments: arguments.to_string() }
}

/// Returns the reply with the newest earlier words that fit, or the reply `otherwise`.
fn recalled_answer<'a>(recall: &'a Recall, earlier: &'a [Part], mut values: Values<'a>) -> String {
    let found = earlier.iter().rev().find_map(|part| {
        let text = match (part, recall.over) {
            (Part::Person { text }, Over::Person) | (Part::Summary { text }, Over::Summary) => text,
            _ => return None,
        };
        let captures = recall.when.captures(&text[..text.floor_char_boundary(BODY_BYTES_MAX)])?;
        let is_same = recall.same.iter().all(|name| {
            let told = captures.name(name).map_or("", |found| found.as_str());
            told.trim().to_lowercase() == values.get(name).trim().to_lowercase()
        });
        is_same.then_some(captures)
    });
    match found {
        Some(captures) => {
            values.add(recall.when.group_names(), &captures);
            recall.reply.render(&values)
        }
        None => recall.otherwise.render(&values),
    }
}

/// Makes a summary of a conversation: the first line of each part, up to a limit.
fn summary(parts: &[Part]) -> String {
    const LINE_BYTES_MAX: usize = 120;
    const BYTES_MAX: usize = 4096;
    let mut summary = String::new();
    for part in parts {
        let Part::Context { author, text } = part else { continue };
        let line = text.lines().next().unwrap_or_default();
        let line = format!("{author}: {}\n", &line[..line.floor_char_boundary(LINE_BYTES_MAX)]);
        if summary.len() + line.len() > BYTES_MAX {
            break;
        }
        summary.push_str(&line);
    }
    summary
}

/// Makes an answer. The first answer of a conversation says that it is from a script.
fn answer(prompt: &Prompt, text: String) -> Output {
    let is_first = !prompt.parts.iter().any(|part| matches!(part, Part::Assistant { text, .. } if !text.is_empty()));
    let mut text = if is_first && !text.is_empty() { format!("{PREFACE} {text}") } else { text };
    if text.len() > BODY_BYTES_MAX {
        text.truncate(text.floor_char_boundary(BODY_BYTES_MAX - CUT.len()));
        text.push_str(CUT);
    }
    Output { text, ..Output::default() }
}

#[cfg(test)]
mod tests;
