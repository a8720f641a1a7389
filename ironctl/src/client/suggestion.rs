//! The suggestion of a similar agent for a name that the host does not know.
//!
//! Suggests only agents that the host lists for the caller, so no other name leaks. See [`crate::nearest`].

use super::{Client, REQUEST_TIMEOUT, parse};
use crate::nearest::nearest;
use hyper::Method;
use ironclaw_contract::operator::{Agent, Failure, NewChange};
use tokio::time::Instant;

/// Least similarity of the typed and the suggested name, from 0 to 1.
const SIMILARITY_MIN: f64 = 0.8;

/// Returns the agent that a request names: in its path, as `agent=`, or in a submitted change.
pub(super) fn named_agent(path: &str, body: Option<&[u8]>) -> Option<String> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    if path == "changes"
        && let Some(body) = body
    {
        return serde_json::from_slice::<NewChange>(body).ok()?.agent;
    }
    let in_path = path.strip_prefix("agents/").and_then(|rest| rest.split('/').next());
    in_path.or_else(|| query.split('&').find_map(|pair| pair.strip_prefix("agent="))).map(str::to_owned)
}

impl Client {
    /// Adds a suggestion to the refusal of an unknown agent.
    pub(super) async fn with_suggestion(&self, mut failure: Failure, named: Option<String>) -> Failure {
        if failure.error.code != "agent_unknown" {
            return failure;
        }
        let agents = self.visible_agents().await;
        let names = agents.iter().flatten().map(|agent| agent.name.as_str());
        if let Some(name) = named.and_then(|named| nearest(&named, names, SIMILARITY_MIN)) {
            failure.error.hint = format!("did you mean {name}? {}", failure.error.hint);
        }
        failure
    }

    /// Returns the agents that the caller may talk to; `None` on any failure, because only a suggestion depends on it.
    async fn visible_agents(&self) -> Option<Vec<Agent>> {
        let until = Instant::now() + REQUEST_TIMEOUT;
        let response = self.request(Method::GET, "agents", None, REQUEST_TIMEOUT).await.ok()?;
        parse(&self.read_body(response.into_body(), until).await.ok()?).ok()
    }
}
