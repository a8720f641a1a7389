//! The requests about schedules.
//!
//! Adds and changes none: see `commands::schedule`, which submits a change.

use super::{Client, REQUEST_TIMEOUT, parse, segment};
use crate::failure::Error;
use hyper::Method;
use ironclaw_contract::operator::{DryRun, Occurrence, ScheduleView};
use serde_json::json;

impl Client {
    /// Returns the schedules that the caller may see, optionally of one agent.
    pub async fn schedules(&self, agent: Option<&str>) -> Result<Vec<ScheduleView>, Error> {
        let agent = agent.map(|agent| format!("?agent={}", segment(agent))).unwrap_or_default();
        self.get(&format!("schedules{agent}")).await
    }

    /// Returns one schedule.
    pub async fn schedule(&self, id: &str) -> Result<ScheduleView, Error> {
        self.get(&format!("schedules/{}", segment(id))).await
    }

    /// Returns the occurrences of a schedule, oldest first.
    pub async fn occurrences(&self, id: &str) -> Result<Vec<Occurrence>, Error> {
        self.get(&format!("schedules/{}/occurrences", segment(id))).await
    }

    /// Returns the next times of a schedule. Starts nothing.
    pub async fn next_runs(&self, id: &str) -> Result<DryRun, Error> {
        self.get(&format!("schedules/{}/next", segment(id))).await
    }

    /// Starts a run now.
    pub async fn run_schedule(&self, id: &str) -> Result<Occurrence, Error> {
        self.post(&format!("schedules/{}/run", segment(id)), &json!({})).await
    }

    /// Pauses or resumes a schedule: `verb` is `pause` or `resume`.
    pub async fn set_schedule(&self, id: &str, verb: &str) -> Result<ScheduleView, Error> {
        self.post(&format!("schedules/{}/{verb}", segment(id)), &json!({})).await
    }

    /// Removes a schedule.
    pub async fn remove_schedule(&self, id: &str) -> Result<ScheduleView, Error> {
        let path = format!("schedules/{}", segment(id));
        parse(&self.ask(Method::DELETE, &path, None, REQUEST_TIMEOUT).await?)
    }
}
