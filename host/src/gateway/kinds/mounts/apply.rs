//! Replaces the directories of an agent.

use super::super::kind::{Apply, Prepared, concerned, incomplete, listed, proposer};
use super::own_directory::held_by;
use crate::gateway::decide::proof::Approved;
use crate::gateway::writers;
use crate::registry::mounts;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::change::Mount;
use ironclaw_state::WriteTx;
use ironclaw_store::refusal::Denied;
use std::path::PathBuf;

impl Apply for Vec<Mount> {
    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let agent = concerned(tx, approved)?;
        let had = mounts::list_for_agent(tx, agent.id)?;
        let proposer = proposer(tx, approved)?;
        let mounts = self.iter().map(|wanted| mount(wanted, &had, proposer)).collect::<Result<Vec<_>, Denied>>()?;
        writers::mounts::set(tx, approved, agent.id, &mounts)?;
        let targets: Vec<String> = mounts.into_iter().map(|mount| mount.target).collect();
        Ok(format!("agent {} has {} in its jail", agent.name, listed(&targets, "no directory of this machine")))
    }
}

/// Returns the directory as it will be recorded. A declaration stays that of its person while the directory stays.
fn mount(wanted: &Mount, had: &[mounts::Mount], proposer: Option<PersonId>) -> Result<mounts::Mount, Denied> {
    let (Some(target), Some(read_only)) = (wanted.target.clone(), wanted.read_only) else {
        return Err(incomplete().into());
    };
    let source = PathBuf::from(&wanted.source);
    let mine = match wanted.mine {
        Some(true) => held_by(&source, had).or(proposer),
        Some(false) | None => None,
    };
    Ok(mounts::Mount { source, target, read_only, mine })
}
