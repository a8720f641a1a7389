//! The settings that a change would alter, as the person who decides sees them and as they are compared when it is applied.
//!
//! Only reads, and gives the same result for the same state: another result later makes it another change. See
//! [`crate::gateway::kinds`].

use super::policy::{Policy, Rule};
use super::{Grounds, Standing, kinds};
use crate::registry::Agent;
use ironclaw_contract::seam::change::Change;
use ironclaw_state::ReadTx;

/// Returns how things stand now; `agent` is as it stands in the record.
///
/// The present setting has the shape of the payload, and is null where there is none: for a new agent, for a server that is not
/// in the catalogue, and where the agent is gone.
///
/// # Errors
/// Those of the record.
pub fn look(
    tx: &ReadTx<'_>,
    grounds: &Grounds,
    change: &Change,
    agent: Option<&Agent>,
) -> Result<Standing, ironclaw_state::Error> {
    let (before, facts) = kinds::current(tx, grounds, change, agent)?;
    Ok(Standing { before, facts })
}

/// Returns the rule for a change of an agent as everything stands now.
///
/// # Errors
/// Those of the record.
pub fn rule_now(
    tx: &ReadTx<'_>,
    policy: &Policy,
    grounds: &Grounds,
    change: &Change,
    agent: &Agent,
) -> Result<Rule, ironclaw_state::Error> {
    let Standing { before, facts } = look(tx, grounds, change, Some(agent))?;
    Ok(kinds::rule(policy, change, &before, &facts))
}
