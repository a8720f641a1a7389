//! The explanation of a message: its stages, its failure, and the thoughts of the model.
//!
//! Never has a word of a provider except in [`EndpointWords`].

use super::{ChainLink, EndpointWords, MessageView, OccurrenceOf, Stage};
use crate::ids::MessageId;
use serde::{Deserialize, Serialize};

/// `GET /v1/messages/{id}/why`; the id `last` means the newest message of the caller.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Why {
    /// Its present status.
    pub message: MessageView,
    /// Its stages, oldest first.
    pub stages: Vec<Stage>,
    /// Statements of the agent's own process about its progress, without authority.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<String>,
    /// The failure of the last request to a model, if it is the reason why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ModelFailure>,
    /// The words of the endpoints that gave no answer in its turn, newest first; for owners and admins only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<EndpointWords>,
    /// The occurrence of a schedule that sent the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurrence: Option<OccurrenceOf>,
    /// The messages of its chain between agents, in order; empty if no agent sent one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<ChainLink>,
    /// True if the answer is, or ends with, a call of a tool that the model wrote as text; nothing ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_written_call: bool,
    /// A summary in one sentence.
    pub summary: String,
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
