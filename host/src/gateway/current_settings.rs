//! The current settings behind a change, for the review page and for the comparison when the change is applied.
//!
//! Only reads, and returns the same for the same state: a different result later invalidates the change. See
//! [`crate::gateway::kinds`].

use super::{CurrentSettings, kinds};
use crate::registry::Agent;
use crate::registry::live_settings::HostPolicy;
use crate::registry::policy::{Policy, Rule};
use ironclaw_contract::seam::change::Change;
use ironclaw_state::ReadTx;

/// Returns the current setting and the meaning of the names in a change; `agent` is its current row.
///
/// The current setting has the shape of the payload. It is null for a new agent, for a server that is not in the catalogue, and
/// for a removed agent.
pub fn read(
    tx: &ReadTx<'_>,
    host_policy: &HostPolicy,
    change: &Change,
    agent: Option<&Agent>,
) -> Result<CurrentSettings, ironclaw_state::Error> {
    let (before, facts) = kinds::current(tx, host_policy, change, agent)?;
    Ok(CurrentSettings { before, facts })
}

/// Returns the current rule for a change of an agent.
pub fn rule_now(
    tx: &ReadTx<'_>,
    policy: &Policy,
    host_policy: &HostPolicy,
    change: &Change,
    agent: &Agent,
) -> Result<Rule, ironclaw_state::Error> {
    let CurrentSettings { before, facts } = read(tx, host_policy, change, Some(agent))?;
    Ok(kinds::rule(policy, change, &before, &facts))
}
