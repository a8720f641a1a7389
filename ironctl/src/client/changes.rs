//! The requests about changes and the decisions on them.
//!
//! Approves only with the digest of the review page. See `commands::inbox`.

use super::{Client, POLL_MAX, REQUEST_TIMEOUT, parse, segment};
use crate::failure::Error;
use hyper::Method;
use ironclaw_contract::operator::{Change, Changes, Decision, Digest, NewChange, Rejection, SubmittedChange};
use std::time::Duration;

impl Client {
    /// Returns changes by status (several with commas, or `all`; default: pending), optionally of one agent.
    pub async fn changes(&self, status: Option<&str>, agent: Option<&str>, limit: usize) -> Result<Changes, Error> {
        let status = status.map(|status| format!("&status={}", segment(status))).unwrap_or_default();
        let agent = agent.map(|agent| format!("&agent={}", segment(agent))).unwrap_or_default();
        self.get(&format!("changes?limit={limit}{status}{agent}")).await
    }

    /// Returns the changes that the caller asked for, in person or through an agent; without a status, those that wait.
    pub async fn own_changes(&self, status: Option<&str>, agent: Option<&str>, limit: usize) -> Result<Changes, Error> {
        let status = status.map(|status| format!("&status={}", segment(status))).unwrap_or_default();
        let agent = agent.map(|agent| format!("&agent={}", segment(agent))).unwrap_or_default();
        self.get(&format!("changes?own=true&limit={limit}{status}{agent}")).await
    }

    /// Returns a change with its review page; waits up to `wait` for the result of an approved change.
    pub async fn change(&self, id: &str, wait: Duration) -> Result<Change, Error> {
        let wait = wait.min(POLL_MAX);
        let path = format!("changes/{}?wait_ms={}", segment(id), wait.as_millis());
        parse(&self.ask(Method::GET, &path, None, wait + REQUEST_TIMEOUT).await?)
    }

    /// Submits a change.
    pub async fn submit_change(&self, change: &NewChange) -> Result<SubmittedChange, Error> {
        self.post("changes", change).await
    }

    /// Approves the review page of this digest.
    pub async fn approve(&self, id: &str, shown: Digest) -> Result<Change, Error> {
        self.post(&format!("changes/{}/approve", segment(id)), &Decision { shown }).await
    }

    /// Rejects a change.
    pub async fn reject(&self, id: &str, reason: String) -> Result<Change, Error> {
        self.post(&format!("changes/{}/reject", segment(id)), &Rejection { reason }).await
    }
}
