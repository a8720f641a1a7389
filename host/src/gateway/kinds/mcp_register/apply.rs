//! Puts a server into the catalogue, or takes it out.

use super::super::{Apply, Preparation, Prepared};
use crate::gateway::decide::proof::Approved;
use crate::refusal::Denied;
use crate::registry::mcp;
use ironclaw_contract::seam::change::McpRegister;
use ironclaw_state::WriteTx;

impl Apply for McpRegister {
    fn preparation(&self) -> Preparation<'_> {
        Preparation::Nothing
    }

    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let losing = mcp::register(tx, approved, self)?;
        let lost = lost(losing);
        if self.remove {
            return Ok(format!("MCP server {} is removed{lost}", self.name));
        }
        Ok(format!(
            "MCP server {} is in the catalogue{lost}; `ironctl mcp test {}` asks it for its tools",
            self.name, self.name
        ))
    }
}

/// Returns the end of an outcome: the number of agents that lost tools.
pub(in super::super) fn lost(losing: usize) -> String {
    match losing {
        0 => String::new(),
        1 => "; one agent lost tools of it".to_owned(),
        count => format!("; {count} agents lost tools of it"),
    }
}
