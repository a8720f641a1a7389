//! Suggests an agent where the host knows none of the name that was typed.
//!
//! Only from the list that the host gives to the caller: others are not theirs to hear of. See [`crate::nearest`].

use super::{Client, PATIENCE, parse};
use crate::nearest::nearest;
use hyper::Method;
use ironclaw_contract::operator::{Agent, Failure, NewChange};
use tokio::time::Instant;

/// Least likeness between the name that was typed and a suggested one, from 0 to 1.
const LIKENESS_MIN: f64 = 0.8;

/// Returns the agent that a question names: in its path, as `agent=`, or in a change that is submitted.
pub(super) fn agent(path: &str, body: Option<&[u8]>) -> Option<String> {
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
    /// Returns a refusal, with a suggestion if it says that there is no agent of this name.
    pub(super) async fn suggesting(&self, mut failure: Failure, named: Option<String>) -> Failure {
        if failure.error.code != "agent_unknown" {
            return failure;
        }
        let agents = self.visible_agents().await;
        let names = agents.iter().flatten().map(|agent| agent.name.as_str());
        if let Some(name) = named.and_then(|named| nearest(&named, names, LIKENESS_MIN)) {
            failure.error.hint = format!("did you mean {name}? {}", failure.error.hint);
        }
        failure
    }

    /// Returns the agents that the caller may talk to; nothing if the host does not say, because only a suggestion depends on it.
    async fn visible_agents(&self) -> Option<Vec<Agent>> {
        let until = Instant::now() + PATIENCE;
        let response = self.request(Method::GET, "agents", None, PATIENCE).await.ok()?;
        parse(&self.whole(response.into_body(), until).await.ok()?).ok()
    }
}
