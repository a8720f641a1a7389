//! The change that a command submits if the policy requires more people than the caller.
//!
//! Never approves a change. See [`crate::commands::review`] and [`crate::commands::change`].

use super::At;
use crate::client::Client;
use crate::failure::Error;
use ironclaw_contract::operator::{ChangeKind, DenialCode, NewChange, Payload};
use serde_json::Value;

/// Submits a change if the host refused because the policy requires more people; returns the failure of the command.
pub async fn instead(
    at: &At,
    client: &Client,
    refused: Error,
    kind: ChangeKind,
    agent: Option<&str>,
    payload: Value,
) -> Error {
    let Error::Refused(failure) = &refused else { return refused };
    if failure.error.code != DenialCode::PolicyAsksForMore.name() {
        return refused;
    }
    let Ok(payload) = Payload::try_from(payload) else { return refused };
    let new = NewChange { kind, agent: agent.map(str::to_owned), payload, reason: String::new() };
    match client.submit_change(&new).await {
        Ok(submitted) => waits(&submitted.id.to_string()),
        // The first refusal names the command, so it is returned; the second failure is printed.
        Err(error) => {
            at.out.failure(&error);
            refused
        }
    }
}

/// Creates the failure for a setting that waits for a decision.
pub fn waits(id: &str) -> Error {
    let message =
        format!("nothing was changed yet: the policy requires more than one person, so {id} waits for approval");
    Error::failed("change_pending", message).hinting(format!("ironctl inbox, or: ironctl approve {id}"))
}
