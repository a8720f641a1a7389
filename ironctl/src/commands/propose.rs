//! A setting that a command would make at once, proposed in its place where the policy asks for more than this one person.
//!
//! Never approves anything. See [`crate::commands::review`] and [`crate::commands::change`].

use super::At;
use crate::client::Client;
use crate::failure::Error;
use ironclaw_contract::operator::{ChangeKind, DenialCode, NewChange, Payload};
use serde_json::Value;

/// Asks more people where the host left it to them; returns the failure with which the command ends.
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
        // The host's first refusal names the command; the reason for the second failure comes with it.
        Err(error) => {
            at.out.failure(&error);
            refused
        }
    }
}

/// Makes the failure that says that nothing was set yet: people decide.
pub fn waits(id: &str) -> Error {
    let message = format!("nothing is changed yet: the policy asks for more than one person, and {id} waits for them");
    Error::failed("change_pending", message).hinting(format!("ironctl inbox, or: ironctl approve {id}"))
}
