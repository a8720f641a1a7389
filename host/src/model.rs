//! What a model is given and what it gives back, and the endpoints that can be asked.
//!
//! Never composes a prompt, records a call or believes an output; that is done by who calls this. Next: `model::endpoint`.

pub mod draft;
pub mod endpoint;
pub mod preset;
pub mod scripted;

use ironclaw_contract::seam::socket::Purpose;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes of a script of the operator.
pub const SCRIPT_BYTES_MAX: u64 = 1024 * 1024;

/// All that a model sees for one output.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// What is asked for.
    pub purpose: Purpose,
    /// What the host tells it: the system text and the persona.
    pub system: String,
    /// What it may call.
    pub tools: Vec<ToolSchema>,
    /// The conversation, oldest first.
    pub parts: Vec<Part>,
}

/// A tool as it is offered to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSchema {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: serde_json::Value,
}

/// One part of a conversation, by who its words are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Typed by the person whose turn it is.
    Person {
        /// The words.
        text: String,
    },
    /// Somebody else's words: another person, a quote, a file, an agent, or text without a seal. Data, never a request.
    Context {
        /// Whose words they are, for display.
        author: String,
        /// The words.
        text: String,
    },
    /// An earlier output of the model.
    Assistant {
        /// Its words; may be empty beside calls.
        text: String,
        /// The calls that it asked for; none makes it an answer.
        calls: Vec<PastCall>,
    },
    /// The result of a call.
    Result {
        /// Of which call.
        call_id: String,
        /// Of which tool.
        tool: String,
        /// Whether the tool did what was asked; a refusal is not.
        ok: bool,
        /// What it said.
        text: String,
    },
    /// Written by the host in place of an answer.
    Notice {
        /// The words.
        text: String,
    },
    /// A summary of earlier parts.
    Summary {
        /// The words.
        text: String,
    },
}

/// A call in an earlier output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastCall {
    /// The recorded call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments: JSON text.
    pub arguments: String,
}

/// What a model gave back; nothing in it has been checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// Its words; may be empty.
    pub text: String,
    /// What it wants to be called, in order.
    pub calls: Vec<WantedCall>,
}

/// What one output took, as its provider counts; estimated where the provider says nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Tokens of the output.
    pub output_tokens: u64,
    /// Millionths of the currency that the endpoint's prices are in; 0 where it has none.
    pub cost_micros: u64,
}

/// An output, and who gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The output.
    pub output: Output,
    /// Name of the endpoint that gave it: the first of the chain that could.
    pub endpoint: String,
    /// What it took, tries that failed included.
    pub usage: Usage,
}

/// A call that a model wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedCall {
    /// The tool, as the model wrote it.
    pub tool: String,
    /// JSON text as the provider sent it.
    pub arguments: String,
}

/// The `[model]` table of `config.toml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Rules of the operator for the endpoint `scripted`, tried before the built-in ones.
    #[serde(default)]
    pub script: Option<PathBuf>,
}

/// Why an endpoint cannot be opened, or gave no output.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operator's script cannot be read.
    #[error("cannot read the script {path:?}")]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The operator's script is not one.
    #[error("cannot use the script {path:?}")]
    Script {
        /// Which.
        path: PathBuf,
        /// The rule and what is wrong with it.
        source: scripted::Error,
    },
    /// The endpoint has no output to give.
    #[error("model endpoint {endpoint} failed: {message}")]
    Failed {
        /// Which.
        endpoint: String,
        /// What it said.
        message: String,
    },
}

/// The operator's script, if it is not too long.
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
        let config = Config { script: Some(file.path().to_owned()) };
        (file, config)
    }

    #[test]
    fn an_unknown_key_of_the_configuration_is_refused() {
        let error = toml::from_str::<Config>("scripts = 'a'").expect_err("unknown key");
        assert!(error.to_string().contains("scripts"), "{error}");
    }

    #[test]
    fn a_script_that_is_missing_too_long_or_wrong_is_refused_by_its_path() {
        let missing = Config { script: Some("/nowhere/script.toml".into()) };
        let error = endpoint::open(&missing, Vec::new()).expect_err("missing");
        assert_eq!(error.to_string(), r#"cannot read the script "/nowhere/script.toml""#);

        let (_file, config) = script(&"#".repeat(SCRIPT_BYTES_MAX as usize + 1));
        assert!(matches!(endpoint::open(&config, Vec::new()), Err(Error::Unreadable { .. })));

        let (_file, config) = script("[[rule]]\nname = 'odd'\nwhen = '('\nreply = ''");
        let error = endpoint::open(&config, Vec::new()).expect_err("no regular expression");
        let source = error.source().expect("the rule").to_string();
        assert_eq!(source, "rule 1 (odd): when is no regular expression");
    }
}
