//! Model endpoints, and which of them an agent uses: `/v1/models`, `/v1/agents/{agent}/model`.
//!
//! Holds no key: an endpoint names the secret that does.

use super::SecretValue;
use serde::{Deserialize, Serialize};

/// Word for the endpoint that is the default, wherever an agent's endpoint is named.
pub const DEFAULT_MODEL: &str = "default";

/// A model endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Model {
    /// Its name.
    pub name: String,
    /// What it speaks: `openai anthropic scripted`.
    pub kind: String,
    /// Where it listens; absent for `scripted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The provider's name of the model; empty for `scripted`.
    pub model: String,
    /// The secret that holds its key, `secret:NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Endpoints that are asked when this one cannot answer, in order.
    pub fallbacks: Vec<String>,
    /// Millionths of a currency for a million tokens of prompts.
    pub input_price_micros: u64,
    /// Millionths of a currency for a million tokens of outputs.
    pub output_price_micros: u64,
    /// Whether it is asked for streams.
    pub streams: bool,
    /// Whether new agents get it.
    pub default: bool,
    /// Names of the agents that use it.
    pub agents: Vec<String>,
    /// Why it cannot be asked as it stands in the record; absent for one that can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// When it was added, RFC 3339; absent for the built-in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
}

/// `POST /v1/models`: a new endpoint, tested before it is kept.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewModel {
    /// 1–64 characters of `a-z 0-9 - _`, starting with a letter or a digit; not `default`, not `scripted`.
    pub name: String,
    /// `openai anthropic scripted`.
    pub kind: String,
    /// `https`, or `http` to a loopback or private address; absent for `scripted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The provider's name of the model; absent for `scripted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The secret that holds its key, `secret:NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The text of that secret, if it is not stored yet; it is stored when the endpoint is, and not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_value: Option<SecretValue>,
    /// Endpoints that are asked when this one cannot answer, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<String>,
    /// Millionths of a currency for a million tokens of prompts.
    #[serde(default)]
    pub input_price_micros: u64,
    /// Millionths of a currency for a million tokens of outputs.
    #[serde(default)]
    pub output_price_micros: u64,
    /// Whether it is asked for streams.
    #[serde(default = "yes")]
    pub streams: bool,
    /// Whether it becomes the default.
    #[serde(default)]
    pub default: bool,
    /// Whether it takes the place of the endpoint of this name.
    #[serde(default)]
    pub replace: bool,
    /// Whether it is asked for one small output first, without which it is not kept.
    #[serde(default = "yes")]
    pub test: bool,
}

const fn yes() -> bool {
    true
}

/// What `POST /v1/models` and `POST /v1/models/{model}/default` answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KeptModel {
    /// The endpoint.
    pub model: Model,
    /// What its test gave; absent when there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tested: Option<TestedModel>,
    /// Names of the agents that went over to it, because they follow the default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<String>,
}

/// What one small request to an endpoint gave: `POST /v1/models/{model}/test`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TestedModel {
    /// Name of the endpoint.
    pub name: String,
    /// How long it took, milliseconds.
    pub took_ms: u64,
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Tokens of the output.
    pub output_tokens: u64,
    /// The beginning of what it said.
    pub said: String,
}

/// `POST /v1/agents/{agent}/model`, and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AgentModel {
    /// Name of the endpoint; `default` for whatever is the default, also later.
    pub model: String,
}

/// A well-known provider or local server: `GET /v1/presets`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ModelPreset {
    /// What it is called.
    pub name: String,
    /// What it speaks: `openai anthropic`.
    pub kind: String,
    /// Where it listens.
    pub base_url: String,
    /// The environment variable in which its users keep its key; absent for a server that asks for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_variable: Option<String>,
    /// A model to begin with; absent where it depends on what is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}
