//! The trust groups of agents.
//!
//! Never sets one: the change goes through the gateway. See [`crate::registry::groups`].

use super::handler::{Api, Reply};
use crate::registry::groups;
use axum::Json;
use axum::extract::State;
use ironclaw_operator::AgentGroup;
use ironclaw_store::error::Error;

/// `GET /v1/groups`
pub async fn all(State(api): State<Api>) -> Reply<Vec<AgentGroup>> {
    let all = api.state().read(|tx| groups::all(tx).map_err(Error::from)).await?;
    Ok(Json(all.into_iter().map(shown).collect()))
}

pub(super) fn shown(groups::Group { name, agents, tools }: groups::Group) -> AgentGroup {
    AgentGroup { name, agents, tools }
}
