//! Asks a host about changes of agents, and tells it what a person decided.
//!
//! Never decides about anything but a text whose digest it names. See `commands::inbox`.

use super::{Client, PATIENCE, POLL_MAX, parse, segment};
use crate::failure::Error;
use hyper::Method;
use ironclaw_contract::operator::{Change, Changes, Decision, Digest, NewChange, Rejection, SubmittedChange};
use std::time::Duration;

impl Client {
    /// Returns the changes of a status (several with commas, `all`; without one, what waits), and of an agent if one is named.
    pub async fn changes(&self, status: Option<&str>, agent: Option<&str>, limit: usize) -> Result<Changes, Error> {
        let status = status.map(|status| format!("&status={}", segment(status))).unwrap_or_default();
        let agent = agent.map(|agent| format!("&agent={}", segment(agent))).unwrap_or_default();
        self.get(&format!("changes?limit={limit}{status}{agent}")).await
    }

    /// Returns one change with the text that a person decides about; waits up to `wait` while an approved one is not applied.
    pub async fn change(&self, id: &str, wait: Duration) -> Result<Change, Error> {
        let wait = wait.min(POLL_MAX);
        let path = format!("changes/{}?wait_ms={}", segment(id), wait.as_millis());
        parse(&self.ask(Method::GET, &path, None, wait + PATIENCE).await?)
    }

    /// Asks for a change.
    pub async fn submit_change(&self, change: &NewChange) -> Result<SubmittedChange, Error> {
        self.post("changes", change).await
    }

    /// Says yes to exactly what was shown.
    pub async fn approve(&self, id: &str, shown: Digest) -> Result<Change, Error> {
        self.post(&format!("changes/{}/approve", segment(id)), &Decision { shown }).await
    }

    /// Says no.
    pub async fn reject(&self, id: &str, reason: String) -> Result<Change, Error> {
        self.post(&format!("changes/{}/reject", segment(id)), &Rejection { reason }).await
    }
}
