//! The input and output of a model, and the endpoints that answer.
//!
//! Never composes a prompt, records a call or trusts an output; the caller does that. See [`crate::endpoint`].

#![forbid(unsafe_code)]
// The crates of this workspace alone read this one, so only what a name does not say is documented.
#![allow(missing_docs)]

mod anthropic;
mod api_url;
mod assembly;
mod attached;
mod attempt;
mod bad_call;
mod breaker;
mod call_pieces;
mod complaints;
pub mod context_size;
mod draft;
mod end;
pub mod endpoint;
pub mod endpoint_quirks;
mod error_body;
mod failed_attempt;
pub mod fault;
mod growing_text;
mod http;
pub mod image;
mod json;
mod openai;
mod output_bound;
mod prices;
pub mod profile;
pub mod quirks;
mod reading;
mod reasoning;
mod remote;
mod render;
mod request_digest;
mod role_order;
pub mod scripted;
mod server_errors;
mod size;
mod spec;
pub mod stated_context;
pub mod streaming;
mod thoughts;
mod token_counts;
mod written_calls;

pub use attached::Attached;
pub use reasoning::REASONING_BYTES_MAX;
pub use size::tokens_estimated;

use image::ImageContent;
use ironclaw_contract::seam::socket::Purpose;
use ironclaw_operator::settings::Bounds;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A setting that is a wait: up to an hour.
const WAIT: Bounds = Bounds::Range(1, 3_600_000, "milliseconds");
/// Attempts for one output, over all endpoints.
const TRIES_MAX: u32 = 8;
/// Tokens that are booked for an output before it arrives.
pub const OUTPUT_TOKENS_BOOKED: u64 = 1024;
/// Bytes of an operator's script.
pub const SCRIPT_BYTES_MAX: u64 = 1024 * 1024;

/// The whole input of a model for one output.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// Purpose of the request.
    pub purpose: Purpose,
    /// Instructions of the host: the system text and the persona.
    pub system: String,
    /// Tools that the model may call.
    pub tools: Vec<ToolSchema>,
    /// The conversation, oldest first.
    pub parts: Vec<Part>,
}

/// A tool as it is offered to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSchema {
    pub name: String,
    /// Description of its purpose.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: serde_json::Value,
}

/// One part of a conversation, by author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Typed by the principal of the turn.
    Person { text: String },
    /// The prompt of a schedule that a model wrote and people approved. A request without the authority of a person's words.
    Task { text: String },
    /// A message of another agent. It may ask for something, without any authority.
    Agent {
        /// Name of the agent.
        agent: String,
        /// `true` if it answers a message of this conversation.
        answers: bool,
        text: String,
    },
    /// Words of another author: another person, a quote, a file, an agent, or text without a seal. Data, never a request.
    Context {
        /// Author of the words, for display.
        author: String,
        text: String,
    },
    /// An image that a person sent; its file is in the workspace.
    Image {
        /// Path of the file in the workspace.
        path: String,
        content: ImageContent,
    },
    /// An earlier output of the model.
    Assistant {
        /// Its words; may be empty beside calls.
        text: String,
        /// The calls of the output; without any, the output is an answer.
        calls: Vec<PastCall>,
        /// The state that its provider attached.
        attached: Option<Arc<Attached>>,
    },
    /// The result of a call.
    Result {
        call_id: String,
        /// Name of the tool.
        tool: String,
        /// `true` if the tool succeeded; a refused call is a failure.
        ok: bool,
        /// Text of the model.
        text: String,
    },
    /// Written by the host in place of an answer.
    Notice { text: String },
    /// Information from the host that answers no message: the outcome of a change. It may quote the reason of a person.
    HostNotice { text: String },
    /// The time of a turn, in fixed words of the host. Requests that differ only in it count as the same request.
    Time {
        /// The words, on one line.
        text: String,
    },
    /// A short remark in fixed words of the host, such as a note about omitted parts.
    Remark {
        /// The words, on one line.
        text: String,
    },
    /// A remark in place of the notice about a failed model. As a notice, it leaves the prompt after the next answer.
    Failure {
        /// The words, on one line.
        text: String,
    },
    /// A summary of earlier parts.
    Summary { text: String },
}

impl Part {
    /// Returns whether later prompts leave it out: a notice in place of an answer concerns only the turns up to the next answer.
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Notice { .. } | Self::Failure { .. } => true,
            Self::Person { .. }
            | Self::Task { .. }
            | Self::Agent { .. }
            | Self::Context { .. }
            | Self::Image { .. }
            | Self::Assistant { .. }
            | Self::Result { .. }
            | Self::HostNotice { .. }
            | Self::Time { .. }
            | Self::Remark { .. }
            | Self::Summary { .. } => false,
        }
    }
}

/// A call in an earlier output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastCall {
    pub call_id: String,
    pub tool: String,
    /// Its arguments: JSON text.
    pub arguments: String,
}

/// Output of a model; nothing in it has been checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// Its words; may be empty.
    pub text: String,
    /// Calls that the model requests, in order.
    pub calls: Vec<WantedCall>,
    /// The reason why its words are not the whole answer.
    pub cut: Option<Cut>,
    /// The state that its provider attached and needs back.
    pub attached: Option<Arc<Attached>>,
    /// The thoughts of the model, for display; empty without any.
    pub reasoning: String,
    /// True if its words are, or end with, a call of a tool, which its server should have read. It is not run. Without words, its
    /// thoughts count.
    pub has_written_call: bool,
    /// True if its text began with a thought that has an end and no beginning, which is no part of its words.
    pub begins_in_thought: bool,
}

impl Output {
    /// Makes an output of words alone.
    pub fn new(text: String, cut: Option<Cut>) -> Self {
        Self { text, cut, ..Self::default() }
    }

    /// Returns its words, or its thoughts if it has no words.
    pub(crate) fn shown_or_thought(&self) -> &str {
        if self.text.is_empty() { &self.reasoning } else { &self.text }
    }
}

/// The reason why an answer has no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// It reached the limit of tokens.
    Length,
    /// Its time was over.
    Time,
    /// The provider withheld the rest.
    Withheld,
}

impl Cut {
    /// Returns the line of the host below the answer, for the person.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Length => "\n[The model reached its limit of tokens here. Say `continue` for the rest.]",
            Self::Time => "\n[The time for this answer was over here. Say `continue` for the rest.]",
            Self::Withheld => "\n[The provider withheld the rest of this answer.]",
        }
    }

    /// Returns the remark of the host behind the answer, for the model.
    pub const fn remark(self) -> &'static str {
        match self {
            Self::Length | Self::Time => {
                "your answer was cut off there. If you are asked to continue, write only the rest, from the last word on."
            }
            Self::Withheld => "the provider withheld the rest of this answer.",
        }
    }
}

/// Usage of one output, as the provider counts it, or an estimate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Cost in millionths of the currency of the endpoint's prices; 0 without prices.
    pub cost_micros: u64,
}

/// An output and its endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub output: Output,
    /// Name of the endpoint that answered: the first of the chain that could.
    pub endpoint: String,
    /// The failures of the endpoints before it.
    pub failures: Vec<fault::Failure>,
    /// Usage, failed attempts included.
    pub usage: Usage,
    /// The tokens of the prompt, as the provider counted them for this output.
    pub counted: Option<u64>,
    /// What the endpoint showed about the size of its context before or with this output.
    pub context: Option<context_size::ContextSign>,
}

/// Upper bound on the usage of one output, failed attempts included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Tokens of prompts and outputs.
    pub tokens: u64,
    /// Millionths of a currency.
    pub cost_micros: u64,
}

impl Allowance {
    /// An allowance without a ceiling.
    pub const NONE: Self = Self { tokens: u64::MAX, cost_micros: u64::MAX };

    /// Returns whether the allowance covers `used` and `next` together. A ceiling is ignored if `next` adds nothing to it.
    pub const fn has_room(self, used: Usage, next: Usage) -> bool {
        let sum = used.plus(next);
        let has_tokens = next.tokens() == 0 || sum.tokens() <= self.tokens;
        has_tokens && (next.cost_micros == 0 || sum.cost_micros <= self.cost_micros)
    }
}

/// A call that a model requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedCall {
    /// The tool, as the model wrote it.
    pub tool: String,
    /// JSON text as the provider sent it.
    pub arguments: String,
}

impl Usage {
    /// Returns the tokens of prompt and output together.
    pub const fn tokens(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Returns the sum of both.
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cost_micros: self.cost_micros.saturating_add(other.cost_micros),
        }
    }
}

ironclaw_operator::settings! {
    /// `[model]`
    pub struct Config for model {
        /// Rules of the scripted model, tried before the built-in ones.
        script: Option<PathBuf> = None, Optional {
            rule: "the path of a TOML file", instead: "the built-in rules alone", example: "\"/path/to/rules.toml\"",
        }, Restart;
        /// The longest time until a stream begins.
        first_byte_ms: u32 = 120_000, WAIT, Restart;
        /// The longest pause of a stream.
        idle_ms: u32 = 60_000, WAIT, Restart;
        /// The longest time of an answer that is not streamed.
        whole_ms: u32 = 240_000, WAIT, Restart;
        /// The longest time of a whole stream.
        stream_ms: u32 = 600_000, WAIT, Restart;
        /// The most tokens of one output.
        output_tokens_max: u32 = anthropic::OUTPUT_TOKENS_MAX, Range(1, 1_000_000, "tokens"), Restart;
        /// The most attempts at an endpoint without a fallback left; other endpoints get at most 2.
        tries_max: u32 = 4, Range(1, TRIES_MAX as u64, "attempts"), Restart;
        /// The pause before the second attempt; it doubles before each further one.
        backoff_ms: u32 = 500, WAIT, Restart;
        /// After this number of failures in a row the host asks the fallbacks of an endpoint first.
        failures_max: u32 = 5, Range(1, 1000, "failures"), Restart;
        /// The time after which the host asks such an endpoint first again.
        rest_ms: u32 = 30_000, WAIT, Restart;
    }
}

/// The reason that an endpoint cannot be opened or gave no output.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operator's script cannot be read.
    #[error("cannot read the script {path:?}")]
    Unreadable { path: PathBuf, source: io::Error },
    /// The operator's script is not valid.
    #[error("cannot use the script {path:?}")]
    Script {
        path: PathBuf,
        /// The invalid rule and its problem.
        source: scripted::Error,
    },
    /// The settings of an endpoint are not valid.
    #[error("cannot open the model endpoint `{name}`: {why}")]
    Spec { name: String, why: String },
    /// No endpoint of the chain gave an output.
    #[error("{0}")]
    Failed(fault::Failed),
}

impl Error {
    /// Returns the error and its remedy, for people, logs and the ledger. It never has the words of a provider.
    pub fn sentence(&self) -> String {
        match self {
            Self::Failed(failed) => failed.sentence(),
            Self::Unreadable { .. } | Self::Script { .. } | Self::Spec { .. } => self.to_string(),
        }
    }
}

/// Returns the request bodies for a prompt, to endpoints that take images: for Chat Completions, then for Messages.
pub fn requests(prompt: &Prompt) -> [serde_json::Value; 2] {
    let options = openai::RequestOptions {
        streams: false,
        asks_usage: false,
        short_ids: false,
        takes_images: true,
        limit_field: "max_tokens",
        empty_content: false,
        splits_calls: false,
        needs_thought_field: false,
        thoughts: None,
        state: None,
        system_role: None,
        output_tokens_max: 1024,
    };
    [openai::request(prompt, "model", options), anthropic::request(prompt, "model", options)]
}

/// Reads the operator's script; refuses one over the limit.
fn read_script(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(SCRIPT_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > SCRIPT_BYTES_MAX {
        let message = format!("it is over the limit of {SCRIPT_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;
    use std::io::Write;

    fn script(text: &str) -> (tempfile::NamedTempFile, Config) {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(text.as_bytes()).expect("written");
        let config = Config { script: Some(file.path().to_owned()), ..Config::default() };
        (file, config)
    }

    #[test]
    fn an_unknown_key_of_the_configuration_is_refused() {
        let error = toml::from_str::<Config>("scripts = 'a'").expect_err("unknown key");
        assert!(error.to_string().contains("scripts"), "{error}");
    }

    #[test]
    fn missing_long_or_malformed_script_is_refused_with_its_path() {
        let missing = Config { script: Some("/nowhere/script.toml".into()), ..Config::default() };
        let error = endpoint::open(&missing, Vec::new()).expect_err("missing");
        assert_eq!(error.to_string(), r#"cannot read the script "/nowhere/script.toml""#);

        let (_file, config) = script(&"#".repeat(SCRIPT_BYTES_MAX as usize + 1));
        assert!(matches!(endpoint::open(&config, Vec::new()), Err(Error::Unreadable { .. })));

        let (_file, config) = script("[[rule]]\nname = 'odd'\nwhen = '('\nreply = ''");
        let error = endpoint::open(&config, Vec::new()).expect_err("no regular expression");
        let source = error.source().expect("the rule").to_string();
        assert_eq!(source, "rule 1 (odd): when is not a regular expression");
    }
}
