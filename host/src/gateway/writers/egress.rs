//! The grants of hosts of the network.

use super::changed_entry;
use crate::gateway::decide::proof::Approved;
use crate::registry::egress::egress_of;
use ironclaw_contract::canonical;
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::Egress;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::tables::agents as table;
use std::net::IpAddr;

/// Sets the grant of a host to an agent with the addresses of the local network that people read, or removes it.
pub fn set(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: AgentId,
    egress: &Egress,
    addresses: &[IpAddr],
) -> Result<(), ironclaw_state::Error> {
    let had = egress_of(tx, agent)?.into_iter().find(|grant| grant.host == egress.host);
    let before = had.map(|grant| canonical::to_string(&grant.granted)).unwrap_or_default();
    let after = if egress.removes() { String::new() } else { canonical::to_string(egress) };
    if egress.removes() {
        table::delete_egress(tx, agent, &egress.host)?;
    } else {
        table::put_egress(tx, agent, egress, addresses)?;
    }
    changed_entry(LedgerEvent::EgressGranted, approved, agent, before.as_bytes(), after.as_bytes())
        .with("host", egress.host.clone())
        .append(tx)?;
    Ok(())
}
