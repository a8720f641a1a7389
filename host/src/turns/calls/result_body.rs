//! The body of a result item: how the call ended, and the text for the model.
//!
//! Never says more than is known: a call whose effect is in doubt is neither done nor failed.

use ironclaw_contract::canonical::Digest;
use ironclaw_store::tables::turns::CallOutcome;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The body of a result item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct ResultBody {
    /// The end of the call.
    pub outcome: CallOutcome,
    /// The text for the model.
    pub text: String,
    /// The answer of an MCP server, until the result is recorded.
    pub answer: Option<Box<ServerAnswer>>,
}

/// The answer of an MCP server to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAnswer {
    /// The structured content, or the text; `None` for an error, and for an answer with a secret.
    pub content: Option<Value>,
    /// The origin of the server.
    pub origin: String,
    /// The service to which the call was sent. See [`crate::registry::mcp::service`].
    pub service: Digest,
    /// The pin of the tool.
    pub pin: Digest,
}

/// The stored form of a body. A body of an earlier version has `ok` alone.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<CallOutcome>,
    text: String,
}

impl From<Stored> for ResultBody {
    fn from(Stored { ok, outcome, text }: Stored) -> Self {
        Self { outcome: outcome.unwrap_or_else(|| CallOutcome::by_success(ok)), text, answer: None }
    }
}

impl From<ResultBody> for Stored {
    fn from(body: ResultBody) -> Self {
        let outcome = match body.outcome {
            CallOutcome::Done | CallOutcome::Failed => None,
            CallOutcome::Queued | CallOutcome::Unknown => Some(body.outcome),
        };
        Self { ok: body.is_ok(), outcome, text: body.text }
    }
}

impl ResultBody {
    /// Makes the body of a call that is done if `ok`, and else failed.
    pub fn new(ok: bool, text: String) -> Self {
        Self::with_outcome(CallOutcome::by_success(ok), text)
    }

    /// Makes the body of a call with an outcome.
    pub fn with_outcome(outcome: CallOutcome, text: String) -> Self {
        Self { outcome, text, answer: None }
    }

    /// Makes the body of a call that did what it was made for.
    pub fn done(text: String) -> Self {
        Self::with_outcome(CallOutcome::Done, text)
    }

    /// Makes the body of a call that had no effect or ended with an error.
    pub fn failed(text: String) -> Self {
        Self::with_outcome(CallOutcome::Failed, text)
    }

    /// Makes the body of a call whose effect may have happened.
    pub fn unknown(text: String) -> Self {
        Self::with_outcome(CallOutcome::Unknown, text)
    }

    /// Returns whether the model may take the call for made: it is done, or it waits for its delivery.
    pub const fn is_ok(&self) -> bool {
        match self.outcome {
            CallOutcome::Done | CallOutcome::Queued => true,
            CallOutcome::Failed | CallOutcome::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_bodies_keep_their_outcome() {
        for (outcome, stored) in [
            (CallOutcome::Done, r#"{"ok":true,"text":"t"}"#),
            (CallOutcome::Failed, r#"{"ok":false,"text":"t"}"#),
            (CallOutcome::Unknown, r#"{"ok":false,"outcome":"unknown","text":"t"}"#),
            (CallOutcome::Queued, r#"{"ok":true,"outcome":"queued","text":"t"}"#),
        ] {
            let body = ResultBody::with_outcome(outcome, "t".to_owned());
            assert_eq!(ironclaw_contract::canonical::to_string(&body), stored);
            assert_eq!(serde_json::from_str::<ResultBody>(stored).expect("the stored form"), body);
        }
        assert!(serde_json::from_str::<ResultBody>(r#"{"ok":true,"outcome":"fine","text":"t"}"#).is_err());
    }
}
