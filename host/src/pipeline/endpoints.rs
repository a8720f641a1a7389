//! Opens the model endpoints that stand in the record, gives each its key in the last moment, and tries one out.
//!
//! Never keeps a key: it is read when a request is about to be made, and gone when that is over. Next: `model::endpoint`,
//! `registry::models`.

use super::{Core, Error};
use crate::custody::SecretText;
use crate::model::draft::Draft;
use crate::model::endpoint::{self, Candidate, Endpoint, Spec};
use crate::model::{Answered, Part, Prompt, ToolSchema};
use crate::refusal::Refusal;
use crate::registry::models;
use crate::secrets::{self, SecretName};
use ironclaw_contract::seam::socket::Purpose;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long an endpoint may take over its test: a server on this machine may first have to load the model.
pub const TEST_TIME_MAX: Duration = Duration::from_secs(120);

/// Characters of what an endpoint said when it was tried out, or of why it could not.
const SAID_CHARACTERS_MAX: usize = 400;

/// What an endpoint gave when it was tried out.
#[derive(Debug)]
pub struct TriedOut {
    /// What it gave.
    pub answered: Answered,
    /// How long that took.
    pub took: Duration,
}

impl Core {
    /// Puts what the record says about model endpoints in the place of what is open.
    ///
    /// # Errors
    /// When the operator's script cannot be read; then everything stays as it was.
    pub async fn reopen_endpoints(&self) -> Result<(), Error> {
        let specs = self.state.read(|tx| models::specs(tx)).await?;
        let opened = Arc::new(endpoint::open(&self.config.model, specs)?);
        *self.endpoints.write().unwrap_or_else(PoisonError::into_inner) = opened;
        Ok(())
    }
}

/// The endpoints of a chain that can be asked, each with its key; one whose key cannot be had is left out.
///
/// # Errors
/// A sentence for the person when none is left.
pub(super) async fn with_keys(core: &Arc<Core>, chain: Vec<Arc<Endpoint>>) -> Result<Vec<Candidate>, String> {
    if chain.iter().all(|endpoint| endpoint.spec.key.is_none()) {
        return Ok(chain.into_iter().map(|endpoint| Candidate { endpoint, key: None }).collect());
    }
    let with_secrets = Arc::clone(core);
    let read = core.state.read(move |tx| {
        let mut candidates = Vec::with_capacity(chain.len());
        let mut missing = Vec::new();
        for endpoint in chain {
            let name = endpoint.spec.key.as_deref().map(str::parse::<SecretName>);
            let key = match name {
                None => Ok(None),
                Some(Err(refusal)) => Err(refusal.message),
                Some(Ok(name)) => match secrets::get(tx, &with_secrets.wrapping, &name) {
                    Ok(Some(key)) => Ok(Some(key)),
                    Ok(None) => Err(secrets::unknown(&name).message),
                    Err(secrets::Error::State(error)) => return Err(error),
                    Err(error) => Err(error.to_string()),
                },
            };
            match key {
                Ok(key) => candidates.push(Candidate { endpoint, key }),
                Err(why) => {
                    tracing::warn!(model = endpoint.spec.name, why, "a model endpoint has no key");
                    missing.push(format!("model endpoint `{}` has no key: {why}", endpoint.spec.name));
                }
            }
        }
        Ok::<_, crate::state::Error>(if candidates.is_empty() { Err(missing.join("; ")) } else { Ok(candidates) })
    });
    read.await.unwrap_or_else(|error| {
        tracing::error!(%error, "the keys of model endpoints cannot be read");
        Err("the host cannot read the keys of its model endpoints".to_owned())
    })
}

/// Makes one small request to an endpoint of this spec, whether or not it stands in the record.
///
/// # Errors
/// The inner error says why it gave nothing; the key stands in none of it.
pub async fn try_out(
    core: &Core,
    spec: Spec,
    key: Option<SecretText>,
) -> Result<Result<TriedOut, Refusal>, crate::model::Error> {
    let name = spec.name.clone();
    // Opened for itself, so that what went wrong lately with the one in use is not held against it.
    let opened = endpoint::open(&core.config.model, vec![spec])?;
    let Some(endpoint) = opened.get(&name).cloned() else {
        return Ok(Err(Refusal::host("model_unknown", format!("model endpoint {name} cannot be opened"))));
    };
    let secret = key.as_ref().map(|key| SecretText::new(key.expose().to_owned()));
    let candidates = [Candidate { endpoint, key }];
    let began = Instant::now();
    let answered = endpoint::generate(&candidates, &prompt(), began + TEST_TIME_MAX, &Draft::default()).await;
    Ok(match answered {
        Ok(answered) => Ok(TriedOut { answered, took: began.elapsed() }),
        Err(error) => Err(failed(&name, &error, secret.as_ref())),
    })
}

/// What every endpoint has to be able to answer: it offers a tool, because an agent without one is of no use.
fn prompt() -> Prompt {
    let parameters = serde_json::json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let tool =
        ToolSchema { name: "nothing".to_owned(), description: "Does nothing. Never call it.".to_owned(), parameters };
    Prompt {
        purpose: Purpose::Reply,
        system: "This is a test of the connection.".to_owned(),
        tools: vec![tool],
        parts: vec![Part::Person { text: "Answer with the word ok.".to_owned() }],
    }
}

fn failed(name: &str, error: &crate::model::Error, key: Option<&SecretText>) -> Refusal {
    let mut why = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(deeper) = cause {
        why.push_str(&format!(": {deeper}"));
        cause = deeper.source();
    }
    // A provider may quote what it was sent.
    if let Some(key) = key {
        why = why.replace(key.expose(), "[the key]");
    }
    let why: String = why.chars().take(SAID_CHARACTERS_MAX).collect();
    Refusal::operator("model_test_failed", format!("the test of model endpoint {name} failed: {why}"))
}

impl TriedOut {
    /// The beginning of what it said.
    pub fn said(&self) -> String {
        self.answered.output.text.trim().chars().take(SAID_CHARACTERS_MAX).collect()
    }
}
