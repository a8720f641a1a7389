//! The hosts of the network that the host asks for an agent, and the settings about them.
//!
//! Never sends a request and never reads a secret. See [`ironclaw_judge::egress`] for the judgement of one request.

use crate::registry::secrets::SecretName;
use crate::registry::tools::catalogue::CommandReach;
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::Egress;
use ironclaw_judge::egress::{Commands, Grant, GrantText, Loopback};
use ironclaw_net::reach::lan::Range;
use ironclaw_operator::{Bound, DenialCode};
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::{Denied, Refusal};
use std::collections::BTreeSet;

pub use ironclaw_store::tables::agents::{EgressGrant, egress_of, egress_of_all, record_egress_use as record_use};

/// Grants of one agent.
const GRANTS_MAX: usize = 64;

ironclaw_operator::settings! {
    /// `[egress]`
    pub struct Config for egress {
        /// Let a change grant a host of this machine to an agent, with its port; for tests and local services.
        loopback: bool = false, Rule("true or false"), Live;
        /// Grants and MCP servers may reach these ranges of the local network, at the addresses that their pages show.
        lan: Vec<Range> = Vec::new(), Rule("ranges of a local network, such as 10.0.0.0/8"), Live;
    }
}

impl Config {
    /// Returns whether hosts of this machine may be granted.
    pub const fn loopback(&self) -> Loopback {
        if self.loopback { Loopback::DangerousAllowed } else { Loopback::Refused }
    }
}

/// Returns the grants of an agent. A grant that the settings no longer admit is left out.
pub fn grants_of(tx: &ReadTx<'_>, agent: AgentId, loopback: Loopback) -> Result<Vec<Grant>, ironclaw_state::Error> {
    let grants = egress_of(tx, agent)?.into_iter().filter_map(|held| {
        let grant = Grant::check(&text(&held.granted), loopback).ok()?.with_addresses(held.addresses);
        // Plain http leaves this machine for shown addresses only.
        (!grant.is_plain() || !grant.addresses().is_empty()).then_some(grant)
    });
    Ok(grants.collect())
}

/// Returns the hosts that commands of an agent may reach. A grant that the settings no longer admit counts too: the judgement of a request leaves it out.
pub fn command_reach(tx: &ReadTx<'_>, agent: AgentId) -> Result<CommandReach, ironclaw_state::Error> {
    let grants = egress_of(tx, agent)?;
    let has_hosts = grants.iter().any(|grant| grant.granted.commands.is_some());
    Ok(CommandReach::new(has_hosts, grants.iter().any(|grant| admits_pushes(&grant.granted))))
}

/// Returns whether a grant admits pushes to some repository.
fn admits_pushes(granted: &Egress) -> bool {
    granted.commands == Some(Commands::Git) && granted.paths.iter().any(|path| path.ends_with("/git-receive-pack"))
}

/// Returns the payload of a change as the text of a grant.
pub fn text(egress: &Egress) -> GrantText {
    let Egress { host, port, methods, paths, secret, upload_bytes_max, commands } = egress.clone();
    GrantText { host, port, methods, paths, secret, upload_bytes_max, commands }
}

/// Returns the text of a grant as the payload of a change.
pub fn payload(text: GrantText) -> Egress {
    let GrantText { host, port, methods, paths, secret, upload_bytes_max, commands } = text;
    Egress { host, port, methods, paths, secret, upload_bytes_max, commands }
}

/// Refuses more grants than an agent may have, before a change adds these hosts.
pub fn check_room(tx: &ReadTx<'_>, agent: AgentId, hosts: &BTreeSet<&str>) -> Result<(), Denied> {
    let held = egress_of(tx, agent)?;
    let new = hosts.iter().filter(|host| held.iter().all(|grant| grant.host != **host)).count();
    if new == 0 || held.len() + new <= GRANTS_MAX {
        return Ok(());
    }
    let remedy = "revoke one: `ironctl egress revoke AGENT HOST`";
    let bound = Bound::new("granted hosts of the agent", GRANTS_MAX, held.len(), remedy);
    Err(Refusal::over(DenialCode::EgressTooMany, bound).into())
}

/// Returns the agents with a grant that sends a secret, for people.
pub fn using_secret(tx: &ReadTx<'_>, name: &SecretName) -> Result<Vec<String>, ironclaw_state::Error> {
    let holds = |grant: &EgressGrant| {
        grant.granted.secret.as_ref().is_some_and(|secret| secret.parse::<SecretName>().is_ok_and(|held| held == *name))
    };
    let using = egress_of_all(tx)?.into_iter().filter(holds);
    Ok(using.map(|grant| format!("the grant of {} to agent {}", grant.host, grant.agent_name)).collect())
}
