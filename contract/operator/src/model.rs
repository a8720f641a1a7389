//! Model endpoints, and the endpoint of an agent: `/v1/models`, `/v1/agents/{agent}/model`.
//!
//! Never holds a stored key: an endpoint names the secret. See [`crate::Secret`].

use super::secret::SecretValue;
use ironclaw_contract::ids::{MessageId, SessionId, TurnId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The word for the default endpoint of the host, used in place of a name.
pub const DEFAULT_MODEL: &str = "default";

ironclaw_contract::words! {
    /// The protocol of a model endpoint.
    pub enum ModelKind {
        /// Chat Completions with tools: OpenAI, OpenRouter, Ollama, vLLM, llama.cpp.
        Openai = "openai",
        /// Messages with tools: Anthropic.
        Anthropic = "anthropic",
        /// Rules instead of a model: no network, no cost, and deterministic answers.
        Scripted = "scripted",
    }
}

/// What an operator sets for one endpoint, in place of the settings of the host and of the profile of its provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct EndpointSettings {
    /// Most tokens of one output; absent for `model.output_tokens_max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens_max: Option<u32>,
    /// Tokens that its model reads: prompt and output together. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Most bytes of the definitions of tools of MCP servers in a request; with more, the agent gets `find_tools`. Absent for the setting
    /// of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_definitions_bytes_max: Option<u64>,
    /// Name of the profile of its provider; absent for the one that its URL shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Values that replace those of the profile of its provider, by name of the quirk.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quirks: BTreeMap<String, String>,
}

impl EndpointSettings {
    /// Returns whether nothing is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

ironclaw_contract::words! {
    /// A setting of an endpoint that can be cleared, beside its quirks.
    pub enum EndpointSetting {
        Output = "output_tokens_max",
        Context = "context_tokens",
        ToolDefinitions = "tool_definitions_bytes_max",
        Profile = "profile",
    }
}

/// `PATCH /v1/models/{model}`: other settings of an endpoint. The rest of the endpoint stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SettingsOfModel {
    /// The settings that get a new value. A setting that is absent here stays, and so does a quirk.
    #[serde(default, skip_serializing_if = "EndpointSettings::is_default")]
    pub set: EndpointSettings,
    /// Settings and quirks that are set no longer, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clear: Vec<String>,
    /// True if the host forgets what it learned from answers of the endpoint.
    #[serde(default)]
    pub forget: bool,
}

/// A quirk of an endpoint: a way in which its server differs from others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ModelQuirk {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The origin of the value: `operator learned profile default`.
    pub source: String,
    /// RFC 3339; only for a learned value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned_at: Option<String>,
    /// The time from which a learned value no longer counts, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// All of one endpoint: `GET /v1/models/{model}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ModelDetails {
    /// The endpoint, as in the list.
    #[serde(flatten)]
    pub model: Model,
    /// Name of the profile of its provider; absent if the host does not know the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Its quirks.
    #[serde(default)]
    pub quirks: Vec<ModelQuirk>,
    /// What the host learned about the size of its context; absent if that is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub small_context: Option<SmallContext>,
    /// Its last words when it gave no answer, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_words: Vec<EndpointWords>,
}

/// A model endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Model {
    /// Its name.
    pub name: String,
    /// Its protocol.
    pub kind: ModelKind,
    /// Its base URL; absent for `scripted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The provider's name of the model; empty for `scripted`.
    pub model: String,
    /// The secret with its key, `secret:NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The endpoints that the host tries in this order if this one cannot answer.
    pub fallbacks: Vec<String>,
    /// Millionths of a currency for a million tokens of prompts.
    pub input_price_micros: u64,
    /// Millionths of a currency for a million tokens of outputs.
    pub output_price_micros: u64,
    /// True if the host requests streams from it.
    pub streams: bool,
    /// True if its model takes images.
    #[serde(default)]
    pub images: bool,
    /// What an operator set for it.
    #[serde(default, skip_serializing_if = "EndpointSettings::is_default")]
    pub settings: EndpointSettings,
    /// True if it is the default of the host.
    pub default: bool,
    /// Names of the agents that use it.
    pub agents: Vec<String>,
    /// The reason why the host cannot use it; absent if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// The time of its addition, RFC 3339; absent for the built-in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
}

/// The words of an endpoint that gave no answer: of its provider, or of the connection to it. They are not the host's, and they have no
/// key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EndpointWords {
    /// Name of the endpoint.
    pub endpoint: String,
    /// RFC 3339.
    pub at: String,
    /// The code of its fault: `bad_request`, `key_refused` …
    pub code: String,
    /// The session of the request.
    pub session_id: SessionId,
    /// The turn of the request.
    pub turn_id: TurnId,
    /// At most 500 characters, without those that control a terminal.
    pub words: String,
}

/// `POST /v1/models`: a new endpoint. The host tests it before it keeps it.
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
    /// The secret with its key, `secret:NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The text of that secret, if it is not stored yet. The host stores it together with the endpoint, not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_value: Option<SecretValue>,
    /// The endpoints that the host tries in this order if this one cannot answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<String>,
    /// Millionths of a currency for a million tokens of prompts.
    #[serde(default)]
    pub input_price_micros: u64,
    /// Millionths of a currency for a million tokens of outputs.
    #[serde(default)]
    pub output_price_micros: u64,
    /// True if the host requests streams from it.
    #[serde(default = "yes")]
    pub streams: bool,
    /// True if its model takes images.
    #[serde(default)]
    pub images: bool,
    /// What is set for it.
    #[serde(default, skip_serializing_if = "EndpointSettings::is_default")]
    pub settings: EndpointSettings,
    /// True if it becomes the default.
    #[serde(default)]
    pub default: bool,
    /// True if it replaces the endpoint of this name.
    #[serde(default)]
    pub replace: bool,
    /// True if the host first requests one small output, and keeps the endpoint only if it gets one.
    #[serde(default = "yes")]
    pub test: bool,
}

const fn yes() -> bool {
    true
}

/// The answer of `POST /v1/models` and `POST /v1/models/{model}/default`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KeptModel {
    /// The endpoint.
    pub model: Model,
    /// The result of its test; absent without a test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tested: Option<TestedModel>,
    /// The place at which its server stated the tokens that its model reads; absent if the host did not ask or got no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_stated_at: Option<String>,
    /// Names of the agents that switched to it because they follow the default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<String>,
}

/// The result of one small request to an endpoint: `POST /v1/models/{model}/test`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TestedModel {
    /// Name of the endpoint.
    pub name: String,
    /// Its duration in milliseconds.
    pub took_ms: u64,
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Tokens of the output.
    pub output_tokens: u64,
    /// The beginning of the output.
    pub said: String,
}

/// What the host learned from the answers of a model endpoint about the size of its context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SmallContext {
    /// Name of the endpoint.
    pub model: String,
    /// Tokens that its model reads: prompt and output together.
    pub tokens: u64,
    /// The reason to believe it, and the commands and settings that change it.
    pub sentence: String,
    /// The time of the answer, RFC 3339.
    pub learned_at: String,
}

/// `POST /v1/agents/{agent}/model`, and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AgentModel {
    /// Name of the endpoint. With `default` the agent follows the default of the host.
    pub model: String,
}

/// A well-known provider or local server: `GET /v1/presets`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ModelPreset {
    /// Its name.
    pub name: String,
    /// Its protocol: `openai` or `anthropic`.
    pub kind: ModelKind,
    /// Its base URL.
    pub base_url: String,
    /// The environment variable that usually holds its key; absent for a server without a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_variable: Option<String>,
    /// A model for a first use; absent if the server has no fixed models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// `GET /v1/messages/{id}/reasoning`; the id `last` means the newest message of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Reasoning {
    /// The message.
    pub message_id: MessageId,
    /// The thoughts of the model beside each output of its turn, oldest first. They are no part of the answer.
    pub thoughts: Vec<String>,
}

/// The reason why a request to a model failed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ModelFailure {
    /// A stable word: `late`, `unreachable`, `key_refused`, `budget` …
    pub code: String,
    /// The failure and the remedy, in the host's words.
    pub message: String,
}
