//! The endpoints that there are, what each is made from, and asking one chain of them.
//!
//! Never looks up a secret: whoever asks brings the key of each candidate. Next: `model::scripted`.

use super::draft::Draft;
use super::scripted::{self, Scripted};
use super::{Answered, Config, Error, Output, Prompt, Usage, read_script};
use crate::custody::SecretText;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::Instant;
use url::Url;

/// What an endpoint speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Rules instead of a model; no network, no cost, the same answer every time.
    Scripted,
    /// Chat Completions with tools: OpenAI, OpenRouter, Ollama, vLLM, llama.cpp.
    Openai,
    /// Messages with tools.
    Anthropic,
}

/// Millionths of a currency for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Prices {
    /// Of prompts.
    pub input: u64,
    /// Of outputs.
    pub output: u64,
}

/// What an endpoint is made from, as the operator gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Its name here.
    pub name: String,
    /// What it speaks.
    pub kind: Kind,
    /// Where it listens; `None` for `scripted`.
    pub base_url: Option<Url>,
    /// The provider's name of the model; empty for `scripted`.
    pub model: String,
    /// Name of the secret that holds its key.
    pub key: Option<String>,
    /// Endpoints that are asked when this one cannot answer, in order.
    pub fallbacks: Vec<String>,
    /// What its tokens cost.
    pub prices: Prices,
    /// Whether it is asked for streams.
    pub streams: bool,
}

/// Something that generates outputs.
#[derive(Debug)]
pub struct Endpoint {
    /// What it was made from.
    pub spec: Spec,
    speaks: Speaks,
}

#[derive(Debug)]
enum Speaks {
    Scripted(Scripted),
}

/// An endpoint that may be asked, with its key.
#[derive(Debug)]
pub struct Candidate {
    /// The endpoint.
    pub endpoint: Arc<Endpoint>,
    /// Its key, if it has one.
    pub key: Option<SecretText>,
}

/// The endpoints that are configured, by name.
#[derive(Debug)]
pub struct Endpoints {
    by_name: BTreeMap<String, Arc<Endpoint>>,
}

/// Opens every endpoint; `scripted` is always there.
///
/// # Errors
/// [`Error::Unreadable`] and [`Error::Script`] for the operator's script.
pub fn open(config: &Config, specs: Vec<Spec>) -> Result<Endpoints, Error> {
    let script = match &config.script {
        None => Scripted::builtin(),
        Some(path) => {
            let text = read_script(path).map_err(|source| Error::Unreadable { path: path.clone(), source })?;
            Scripted::parse(&text).map_err(|source| Error::Script { path: path.clone(), source })?
        }
    };
    let spec = Spec {
        name: scripted::NAME.to_owned(),
        kind: Kind::Scripted,
        base_url: None,
        model: String::new(),
        key: None,
        fallbacks: Vec::new(),
        prices: Prices::default(),
        streams: false,
    };
    let scripted = Endpoint { spec, speaks: Speaks::Scripted(script) };
    let _ = specs;
    Ok(Endpoints { by_name: BTreeMap::from([(scripted::NAME.to_owned(), Arc::new(scripted))]) })
}

impl Endpoints {
    /// The endpoint of exactly this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Endpoint>> {
        self.by_name.get(name)
    }

    /// Names of all of them, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The endpoint of this name and its fallbacks, in the order in which they are asked; empty when there is none.
    pub fn chain(&self, name: &str) -> Vec<Arc<Endpoint>> {
        self.get(name).cloned().into_iter().collect()
    }
}

/// Asks the candidates in their order for one output over this prompt, until one gives it or `until` has come.
/// Words are put into the draft as they come.
///
/// # Errors
/// [`Error::Failed`] when none has an output to give; the prompt may be sent again.
pub async fn generate(
    candidates: &[Candidate],
    prompt: &Prompt,
    until: Instant,
    draft: &Draft,
) -> Result<Answered, Error> {
    let _ = until;
    let Some(candidate) = candidates.first() else {
        let failed = Error::Failed { endpoint: String::new(), message: "there is no endpoint".to_owned() };
        return Err(failed);
    };
    let Speaks::Scripted(script) = &candidate.endpoint.speaks;
    let wait = script.wait(prompt);
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
    draft.begin();
    let output: Output = script.generate(prompt)?;
    draft.push(&output.text);
    Ok(Answered { output, endpoint: candidate.endpoint.spec.name.clone(), usage: Usage::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Part;
    use ironclaw_contract::seam::socket::Purpose;
    use std::io::Write;
    use std::time::Duration;

    #[tokio::test]
    async fn the_scripted_endpoint_is_always_there() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(b"[[rule]]\nwhen = '^ping$'\nreply = 'pong'").expect("written");
        let config = Config { script: Some(file.path().to_owned()) };
        for (config, asked, answer) in [(Config::default(), "echo a", "a"), (config, "ping", "pong")] {
            let endpoints = open(&config, Vec::new()).expect("opens");
            assert_eq!(endpoints.names().collect::<Vec<_>>(), ["scripted"]);
            assert!(endpoints.get("Scripted").is_none() && endpoints.chain("Scripted").is_empty());
            let parts = vec![Part::Person { text: asked.to_owned() }];
            let prompt = Prompt { purpose: Purpose::Reply, system: String::new(), tools: Vec::new(), parts };
            let candidates: Vec<Candidate> =
                endpoints.chain("scripted").into_iter().map(|endpoint| Candidate { endpoint, key: None }).collect();
            let (until, draft) = (Instant::now() + Duration::from_secs(60), Draft::default());
            let answered = generate(&candidates, &prompt, until, &draft).await.expect("an output");
            assert_eq!(answered.output.text, format!("{} {answer}", scripted::PREFACE));
            assert_eq!(draft.watch().borrow().text, answered.output.text);
        }
    }
}
