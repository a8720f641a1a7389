//! The rules of a script: a TOML file with a `[[rule]]` table each, tried in their order.
//!
//! Never guesses: an unknown key, a pattern that is none or a placeholder that nothing fills refuses the whole file. See
//! [`crate::scripted::template`] for the placeholders.

use super::template::{self, Argument, Template};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use std::time::Duration;

/// The placeholders that the results of calls fill.
const OF_RESULTS: [&str; 3] = ["result", "ok", "error"];
/// The only key of a table that is replaced by the JSON in its text.
const JSON: &str = "@json";
/// Rules in one file.
const RULES_MAX: usize = 1024;
/// The longest that an output may be made to take.
const WAIT_MS_MAX: u64 = 600_000;
/// Default of a rule without `reply_error`.
const REPLY_ERROR: &str = "That did not work: {error}";

/// One rule, checked.
#[derive(Debug)]
pub(super) struct Rule {
    /// Pattern of the last words of the person.
    pub(super) when: Regex,
    /// The calls of each step; a step is asked for when the results of the one before are there.
    steps: Vec<Vec<Call>>,
    /// The answer when a step had a result that was none.
    pub(super) reply_error: Template,
    /// End of the rule, after the steps.
    pub(super) ending: Ending,
    /// Time that each of its outputs takes.
    pub(super) wait: Duration,
}

/// A call to ask for.
#[derive(Debug)]
pub(super) struct Call {
    /// The tool.
    pub(super) tool: String,
    /// Its arguments: an object.
    pub(super) arguments: Argument,
}

/// End of a rule, after its steps.
#[derive(Debug)]
pub(super) enum Ending {
    /// Words.
    Reply(Template),
    /// Words that depend on what the person said before.
    Recall(Recall),
    /// The steps again, for ever.
    Loop,
    /// No output: the endpoint fails with this message.
    Fail(String),
    /// An output without words and calls.
    Empty,
    /// Exactly these words, without a preface.
    Raw(String),
}

/// Looks for earlier words.
#[derive(Debug)]
pub(super) struct Recall {
    /// Author of the recalled words.
    pub(super) over: Over,
    /// Pattern that they must match.
    pub(super) when: Regex,
    /// Groups that must read the same there and in the rule's own match, but for case.
    pub(super) same: Vec<String>,
    /// The answer with the newest that fit.
    pub(super) reply: Template,
    /// The answer if none do.
    pub(super) otherwise: Template,
}

impl Rule {
    /// Returns the calls to ask for after so many steps, if any are left.
    pub(super) fn step(&self, done: usize) -> Option<&[Call]> {
        let at = match self.ending {
            Ending::Loop => done % self.steps.len(),
            _ => done,
        };
        self.steps.get(at).map(Vec::as_slice)
    }
}

/// The reason that a file is no script.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not TOML, or a key beside `builtin` and `rule`.
    #[error("a script is TOML with builtin and [[rule]]")]
    File(#[source] Box<toml::de::Error>),
    /// More rules than a script may have.
    #[error("{0} rules are over the limit of {RULES_MAX}")]
    TooMany(usize),
    /// A key that is missing, unknown or of the wrong type.
    #[error("rule {rule}: a key is missing, unknown or of the wrong type")]
    Keys {
        /// Number and name.
        rule: String,
        /// The parser's error, which names the key.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// A pattern that cannot be compiled.
    #[error("rule {rule}: {field} is no regular expression")]
    Pattern {
        /// Number and name.
        rule: String,
        /// The field with the error.
        field: &'static str,
        /// The regular expression's error.
        source: regex::Error,
    },
    /// A text with a placeholder that nothing fills, or a brace without its partner.
    #[error("rule {rule}: {field} has {source}")]
    Template {
        /// Number and name.
        rule: String,
        /// The field with the error.
        field: &'static str,
        /// The template's error.
        source: template::Error,
    },
    /// Keys that do not go together.
    #[error("rule {rule}: {problem}")]
    Shape {
        /// Number and name.
        rule: String,
        /// The problem.
        problem: &'static str,
    },
}

/// Reads a script: its rules, and whether the built-in ones come after them.
pub(super) fn parse(text: &str) -> Result<(Vec<Rule>, bool), Error> {
    let script: Script = toml::from_str(text).map_err(|error| Error::File(Box::new(error)))?;
    if script.rule.len() > RULES_MAX {
        return Err(Error::TooMany(script.rule.len()));
    }
    let rules = script.rule.into_iter().enumerate().map(|(at, table)| {
        let rule = match table.get("name").and_then(toml::Value::as_str) {
            Some(name) => format!("{} ({name})", at + 1),
            None => format!("{}", at + 1),
        };
        let written: WrittenRule =
            table.try_into().map_err(|error| Error::Keys { rule: rule.clone(), source: Box::new(error) })?;
        Check { rule }.rule(written)
    });
    Ok((rules.collect::<Result<_, _>>()?, script.builtin))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    #[serde(default = "yes")]
    builtin: bool,
    #[serde(default)]
    rule: Vec<toml::Table>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    #[serde(default, rename = "name")]
    _name: Option<String>,
    when: String,
    #[serde(default)]
    calls: Vec<WrittenCall>,
    #[serde(default)]
    then: Vec<Vec<WrittenCall>>,
    reply: Option<String>,
    reply_error: Option<String>,
    recall: Option<WrittenRecall>,
    #[serde(default, rename = "loop")]
    repeat: bool,
    fail: Option<String>,
    #[serde(default)]
    empty: bool,
    say_raw: Option<String>,
    #[serde(default)]
    wait_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCall {
    tool: String,
    #[serde(default)]
    arguments: toml::Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRecall {
    when: String,
    over: Over,
    #[serde(default)]
    same: Vec<String>,
    reply: String,
    otherwise: String,
}

/// Author of recalled words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Over {
    /// Words that the person typed.
    Person,
    /// Words of a summary.
    Summary,
}

/// Check of one rule; every error names it.
struct Check {
    rule: String,
}

impl Check {
    fn rule(&self, written: WrittenRule) -> Result<Rule, Error> {
        if written.wait_ms > WAIT_MS_MAX {
            return self.refuse("wait_ms is over the limit of 600000");
        }
        let when = self.pattern("when", &written.when)?;
        let captures: Vec<&str> = when.capture_names().flatten().collect();
        let with_results = [captures.as_slice(), &OF_RESULTS].concat();
        let has_calls = !written.calls.is_empty();
        if !has_calls && (written.repeat || written.reply_error.is_some() || !written.then.is_empty()) {
            return self.refuse("loop, then and reply_error need calls");
        }
        if written.then.iter().any(Vec::is_empty) {
            return self.refuse("a step of then has no calls");
        }

        let mut steps = Vec::new();
        for (at, calls) in
            std::iter::once(written.calls).chain(written.then).filter(|calls| !calls.is_empty()).enumerate()
        {
            let known = if at == 0 && !written.repeat { &captures } else { &with_results };
            steps.push(calls.into_iter().map(|call| self.call(call, known)).collect::<Result<_, _>>()?);
        }
        let known = if has_calls { &with_results } else { &captures };
        let mut endings = Vec::new();
        if let Some(reply) = &written.reply {
            endings.push(Ending::Reply(self.template("reply", reply, known)?));
        }
        if let Some(recall) = written.recall {
            endings.push(Ending::Recall(self.recall(recall, known)?));
        }
        endings.extend(written.fail.map(Ending::Fail));
        endings.extend(written.say_raw.map(Ending::Raw));
        endings.extend(written.repeat.then_some(Ending::Loop));
        endings.extend(written.empty.then_some(Ending::Empty));
        let (Some(ending), true) = (endings.pop(), endings.is_empty()) else {
            return self.refuse("it needs exactly one of reply, recall, loop, fail, empty and say_raw");
        };
        let reply_error = written.reply_error.as_deref().unwrap_or(REPLY_ERROR);
        let reply_error = self.template("reply_error", reply_error, &with_results)?;
        Ok(Rule { when, steps, reply_error, ending, wait: Duration::from_millis(written.wait_ms) })
    }

    fn call(&self, written: WrittenCall, known: &[&str]) -> Result<Call, Error> {
        let arguments = self.argument(toml::Value::Table(written.arguments), known)?;
        Ok(Call { tool: written.tool, arguments })
    }

    fn argument(&self, value: toml::Value, known: &[&str]) -> Result<Argument, Error> {
        Ok(match value {
            toml::Value::String(text) => Argument::Text(self.template("arguments", &text, known)?),
            toml::Value::Integer(number) => Argument::Fixed(number.into()),
            toml::Value::Boolean(flag) => Argument::Fixed(flag.into()),
            toml::Value::Float(number) if number.is_finite() => Argument::Fixed(number.into()),
            toml::Value::Float(_) => return self.refuse("arguments hold a number that JSON does not have"),
            // JSON has no dates; a date is its text, as `toml` itself gives it in most places.
            toml::Value::Datetime(date) => Argument::Fixed(date.to_string().into()),
            toml::Value::Array(entries) => {
                Argument::List(entries.into_iter().map(|entry| self.argument(entry, known)).collect::<Result<_, _>>()?)
            }
            toml::Value::Table(entries) if entries.contains_key(JSON) => match entries.get(JSON) {
                Some(toml::Value::String(text)) if entries.len() == 1 => {
                    Argument::Json(self.template("arguments", text, known)?)
                }
                _ => return self.refuse("@json stands alone, before a text"),
            },
            toml::Value::Table(entries) => Argument::Object(
                entries
                    .into_iter()
                    .map(|(key, entry)| Ok((key, self.argument(entry, known)?)))
                    .collect::<Result<_, Error>>()?,
            ),
        })
    }

    fn recall(&self, written: WrittenRecall, known: &[&str]) -> Result<Recall, Error> {
        let when = self.pattern("recall.when", &written.when)?;
        let captures: Vec<&str> = when.capture_names().flatten().collect();
        if written.same.iter().any(|name| !captures.contains(&name.as_str()) || !known.contains(&name.as_str())) {
            return self.refuse("recall.same names a group that is not in both patterns");
        }
        let reply = self.template("recall.reply", &written.reply, &[captures.as_slice(), known].concat())?;
        let otherwise = self.template("recall.otherwise", &written.otherwise, known)?;
        Ok(Recall { over: written.over, when, same: written.same, reply, otherwise })
    }

    fn pattern(&self, field: &'static str, text: &str) -> Result<Regex, Error> {
        let pattern = RegexBuilder::new(text).case_insensitive(true).build().map_err(|source| Error::Pattern {
            rule: self.rule.clone(),
            field,
            source,
        })?;
        if pattern.capture_names().flatten().any(|name| OF_RESULTS.contains(&name)) {
            return self.refuse("result, ok and error are no names for a group");
        }
        Ok(pattern)
    }

    fn template(&self, field: &'static str, text: &str, known: &[&str]) -> Result<Template, Error> {
        Template::parse(text, known).map_err(|source| Error::Template { rule: self.rule.clone(), field, source })
    }

    fn refuse<T>(&self, problem: &'static str) -> Result<T, Error> {
        Err(Error::Shape { rule: self.rule.clone(), problem })
    }
}
