//! The destinations of agents: addresses to which they may send messages.
//!
//! Never sets one: the change goes through the gateway. See [`crate::registry::destinations`].

use super::handler::{Api, Caller, Reply};
use crate::registry::{self, destinations};
use axum::Json;
use axum::extract::{Path, State};
use ironclaw_operator::Destination;
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::Denied;

/// `GET /v1/destinations`
pub async fn all(State(api): State<Api>) -> Reply<Vec<Destination>> {
    let look = |tx: &ReadTx<'_>| named(tx, destinations::all(tx)?);
    Ok(Json(api.state().read(look).await?))
}

/// `GET /v1/agents/{agent}/destinations`
pub async fn list_for_agent(Caller { api, person, .. }: Caller, Path(agent): Path<String>) -> Reply<Vec<Destination>> {
    let look = api.state().read(move |tx| {
        let agent = registry::named_agent(tx, &person, &agent).map_err(Denied::<Error>::from)?;
        let held = destinations::list_for_agent(tx, agent.id).map_err(Error::from)?;
        Ok::<_, Denied<Error>>(named(tx, held)?)
    });
    Ok(Json(look.await?))
}

/// Returns destinations with the names of their people.
pub(super) fn named(tx: &ReadTx<'_>, held: Vec<destinations::Destination>) -> Result<Vec<Destination>, Error> {
    let shown = held.into_iter().map(|held| {
        Ok(Destination {
            agent: held.agent_name,
            name: held.name,
            channel: held.channel,
            address: held.address,
            thread: Some(held.thread).filter(|thread| !thread.is_empty()),
            person: held.person.map_or(Ok(String::new()), |person| registry::person_name(tx, person))?,
            to_agent: held.to_agent.map(|_| held.to_agent_name),
            state: held.state,
        })
    });
    shown.collect()
}
