//! The rules of a script: a TOML file with one `[[rule]]` table for each rule, in order.
//!
//! Never guesses: an unknown key, an invalid pattern or an unknown placeholder refuses the whole file. See
//! [`crate::scripted::template`] for the placeholders.

use super::pattern::Pattern;
use super::template::{self, Argument, Template};
use serde::Deserialize;
use std::time::Duration;

/// Placeholders for the results of calls.
const OF_RESULTS: [&str; 3] = ["result", "ok", "error"];
/// The single key of a table that the JSON in its text replaces.
const JSON: &str = "@json";
/// Rules in one file.
const RULES_MAX: usize = 1024;
/// Longest time that a rule may give to an output.
const WAIT_MS_MAX: u64 = 600_000;
/// The default of `reply_error`.
const REPLY_ERROR: &str = "That did not work: {error}";

#[derive(Debug)]
pub(super) struct Rule {
    /// Pattern of the last words of the person.
    pub(super) when: Pattern,
    /// The calls of each step. A step follows the results of the one before.
    steps: Vec<Vec<Call>>,
    /// The answer after a failed call.
    pub(super) reply_error: Template,
    /// End of the rule, after the steps.
    pub(super) ending: Ending,
    /// Time that each output of the rule takes.
    pub(super) wait: Duration,
}

/// A call that a rule requests.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) tool: Template,
    /// Its arguments: an object.
    pub(super) arguments: Argument,
}

/// End of a rule, after its steps.
#[derive(Debug)]
pub(super) enum Ending {
    Reply(Template),
    /// A reply that depends on earlier words.
    Recall(Recall),
    /// The same steps again, for ever.
    Loop,
    /// No output: the endpoint fails with this message.
    Fail(String),
    /// An output without words and calls.
    Empty,
    /// Exactly this text, without a preface.
    Raw(String),
}

/// A search for earlier words.
#[derive(Debug)]
pub(super) struct Recall {
    /// The kind of part to search.
    pub(super) over: Over,
    /// Pattern of the earlier words.
    pub(super) when: Pattern,
    /// Groups that must be equal in both matches, ignoring case.
    pub(super) same: Vec<String>,
    /// The answer with the newest words that fit.
    pub(super) reply: Template,
    /// The answer if no words fit.
    pub(super) otherwise: Template,
}

impl Rule {
    /// Returns the calls of the next step after `done` steps, if there is one.
    pub(super) fn step(&self, done: usize) -> Option<&[Call]> {
        let at = match self.ending {
            Ending::Loop => done % self.steps.len(),
            _ => done,
        };
        self.steps.get(at).map(Vec::as_slice)
    }
}

/// The reason that a script is not valid.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not TOML, or has a key other than `builtin` and `rule`.
    #[error("a script is TOML with builtin and [[rule]]")]
    File(#[source] Box<toml::de::Error>),
    /// The script has too many rules.
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
    #[error("rule {rule}: {field} is not a regular expression")]
    Pattern {
        /// Number and name.
        rule: String,
        field: &'static str,
        /// The regular expression's error.
        source: regex::Error,
    },
    /// A text with an unknown placeholder or a single brace.
    #[error("rule {rule}: {field} has {source}")]
    Template {
        /// Number and name.
        rule: String,
        field: &'static str,
        source: template::Error,
    },
    /// A combination of keys or values that is not allowed.
    #[error("rule {rule}: {problem}")]
    Shape {
        /// Number and name.
        rule: String,
        problem: &'static str,
    },
}

/// The author of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A file of the operator: each pattern is compiled now, and refused if it is invalid.
    Operator,
    /// This program: a test compiled each pattern.
    BuiltIn,
}

/// Parses a script. Returns its rules, and whether the built-in ones follow.
pub(super) fn parse(text: &str, origin: Origin) -> Result<(Vec<Rule>, bool), Error> {
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
        Check { rule, origin }.rule(written)
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

/// The kind of part that a recall searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Over {
    /// Words that the person typed.
    Person,
    /// Words of a summary.
    Summary,
}

/// The check of one rule; every error names the rule.
struct Check {
    rule: String,
    origin: Origin,
}

impl Check {
    fn rule(&self, written: WrittenRule) -> Result<Rule, Error> {
        if written.wait_ms > WAIT_MS_MAX {
            return self.refuse("wait_ms is over the limit of 600000");
        }
        let when = self.pattern("when", &written.when)?;
        let captures = when.group_names();
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
        Ok(Call { tool: self.template("tool", &written.tool, known)?, arguments })
    }

    fn argument(&self, value: toml::Value, known: &[&str]) -> Result<Argument, Error> {
        Ok(match value {
            toml::Value::String(text) => Argument::Text(self.template("arguments", &text, known)?),
            toml::Value::Integer(number) => Argument::Fixed(number.into()),
            toml::Value::Boolean(flag) => Argument::Fixed(flag.into()),
            toml::Value::Float(number) if number.is_finite() => Argument::Fixed(number.into()),
            toml::Value::Float(_) => return self.refuse("arguments hold a number that JSON does not have"),
            // JSON has no dates, so a date becomes its text.
            toml::Value::Datetime(date) => Argument::Fixed(date.to_string().into()),
            toml::Value::Array(entries) => {
                Argument::List(entries.into_iter().map(|entry| self.argument(entry, known)).collect::<Result<_, _>>()?)
            }
            toml::Value::Table(entries) if entries.contains_key(JSON) => match entries.get(JSON) {
                Some(toml::Value::String(text)) if entries.len() == 1 => {
                    Argument::Json(self.template("arguments", text, known)?)
                }
                _ => return self.refuse("@json must be the only key, with a text as its value"),
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
        let captures = when.group_names();
        if written.same.iter().any(|name| !captures.contains(&name.as_str()) || !known.contains(&name.as_str())) {
            return self.refuse("recall.same names a group that is not in both patterns");
        }
        let reply = self.template("recall.reply", &written.reply, &[captures.as_slice(), known].concat())?;
        let otherwise = self.template("recall.otherwise", &written.otherwise, known)?;
        Ok(Recall { over: written.over, when, same: written.same, reply, otherwise })
    }

    fn pattern(&self, field: &'static str, text: &str) -> Result<Pattern, Error> {
        let pattern = match self.origin {
            Origin::BuiltIn => Pattern::assumed(text),
            Origin::Operator => {
                Pattern::checked(text).map_err(|source| Error::Pattern { rule: self.rule.clone(), field, source })?
            }
        };
        if pattern.group_names().iter().any(|name| OF_RESULTS.contains(name)) {
            return self.refuse("a group must not be named result, ok or error");
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
