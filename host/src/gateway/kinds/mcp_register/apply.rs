//! Puts a server into the catalogue, or takes it out.

use super::super::kind::{Apply, Preparation, Prepared};
use super::super::local_network::addresses;
use super::super::packages;
use crate::gateway::decide::proof::Approved;
use crate::gateway::writers;
use ironclaw_contract::seam::change::McpRegister;
use ironclaw_operator::DenialCode;
use ironclaw_state::WriteTx;
use ironclaw_store::refusal::{Denied, Refusal};

impl Apply for McpRegister {
    fn preparation(&self) -> Preparation<'_> {
        if self.packages.is_empty() { Preparation::Nothing } else { Preparation::ServerLayer(self) }
    }

    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, prepared: &Prepared) -> Result<String, Denied> {
        let layer = match (self.packages.is_empty(), prepared) {
            (true, _) => None,
            (false, Prepared::Layer(layer)) => Some(layer),
            (false, Prepared::Nothing | Prepared::ConversationsErased) => {
                let message = format!("the software of MCP server {} was not fetched", self.name);
                return Err(Refusal::new(DenialCode::PackagesNotFetched, message).into());
            }
        };
        let losing =
            writers::mcp::register(tx, approved, self, layer.map(|layer| layer.digest), &addresses(approved.facts()))?;
        let lost = lost(losing);
        if self.remove {
            return Ok(format!("MCP server {} is removed{lost}", self.name));
        }
        let names: Vec<String> = self.packages.names().cloned().collect();
        let fetched = layer.map(|layer| packages::fetched(layer, &names)).unwrap_or_default();
        Ok(format!(
            "MCP server {} is in the catalogue{fetched}{lost}; `ironctl mcp test {}` asks it for its tools",
            self.name, self.name
        ))
    }
}

/// Returns the end of an outcome: the number of agents that lost tools.
pub fn lost(losing: usize) -> String {
    match losing {
        0 => String::new(),
        1 => "; one agent lost tools of it".to_owned(),
        count => format!("; {count} agents lost tools of it"),
    }
}
