//! The requests about tools and the judgement of their calls.
//!
//! Runs no call. See `commands::tool` and `commands::why`.

use super::{Client, segment};
use crate::failure::Error;
use ironclaw_contract::operator::{
    AgentGroup, CallWhy, Destination, EgressGrant, TestCall, TestScope, TestedCall, TestedScope, Tool,
};
use serde_json::Value;

impl Client {
    /// Returns the judgement of a call, and its outcome.
    pub async fn why_call(&self, id: &str) -> Result<CallWhy, Error> {
        self.get(&format!("calls/{}/why", segment(id))).await
    }

    /// Returns every tool with its manifest.
    pub async fn tools(&self) -> Result<Vec<Tool>, Error> {
        self.get("tools").await
    }

    /// Returns the JSON Schema of manifests of tools.
    pub async fn manifest_schema(&self) -> Result<Value, Error> {
        self.get("tools/schema").await
    }

    /// Measures the lexicon over labelled requests.
    pub async fn test_scope(&self, cases: &TestScope) -> Result<TestedScope, Error> {
        self.post("scope/test", cases).await
    }

    /// Returns the granted hosts of every agent.
    pub async fn egress(&self) -> Result<Vec<EgressGrant>, Error> {
        self.get("egress").await
    }

    /// Returns the granted hosts of an agent.
    pub async fn egress_of(&self, agent: &str) -> Result<Vec<EgressGrant>, Error> {
        self.get(&format!("agents/{}/egress", segment(agent))).await
    }

    /// Returns the destinations of every agent.
    pub async fn destinations(&self) -> Result<Vec<Destination>, Error> {
        self.get("destinations").await
    }

    /// Returns the destinations of an agent.
    pub async fn destinations_of(&self, agent: &str) -> Result<Vec<Destination>, Error> {
        self.get(&format!("agents/{}/destinations", segment(agent))).await
    }

    /// Returns the trust groups of agents.
    pub async fn groups(&self) -> Result<Vec<AgentGroup>, Error> {
        self.get("groups").await
    }

    /// Judges a call without making it.
    pub async fn test_call(&self, tool: &str, call: &TestCall) -> Result<TestedCall, Error> {
        self.post(&format!("tools/{}/test", segment(tool)), call).await
    }
}
