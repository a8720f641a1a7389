//! Trust groups: the agents that may send messages to each other, and the tools that they may ask each other to use.
//!
//! Never sends a message, and gives no agent a tool: a member uses at a request only tools that it has itself.

use ironclaw_operator::{Bound, DenialCode};
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::{Denied, Refusal};

pub use ironclaw_store::tables::groups::{Group, all, find, shared_tools};

/// Groups of the host.
const GROUPS_MAX: usize = 64;

/// Refuses one more group than the host may have.
pub fn check_room(tx: &ReadTx<'_>, name: &str) -> Result<(), Denied> {
    let held = all(tx)?;
    if held.len() < GROUPS_MAX || held.iter().any(|group| group.name == name) {
        return Ok(());
    }
    let bound = Bound::new("groups of this host", GROUPS_MAX, held.len(), "remove one: `ironctl group remove NAME`");
    Err(Refusal::over(DenialCode::GroupTooMany, bound).into())
}
