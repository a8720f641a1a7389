//! Replaces the directories of an agent.

use super::super::kind::{Apply, Prepared, concerned, incomplete, listed};
use crate::gateway::decide::proof::Approved;
use crate::gateway::writers;
use crate::registry::mounts;
use ironclaw_contract::seam::change::Mount;
use ironclaw_state::WriteTx;
use ironclaw_store::refusal::Denied;
use std::path::PathBuf;

impl Apply for Vec<Mount> {
    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let agent = concerned(tx, approved)?;
        let mounts = self.iter().map(mount).collect::<Result<Vec<_>, Denied>>()?;
        writers::mounts::set(tx, approved, agent.id, &mounts)?;
        let targets: Vec<String> = mounts.into_iter().map(|mount| mount.target).collect();
        Ok(format!("agent {} has {} in its jail", agent.name, listed(&targets, "no directory of this machine")))
    }
}

fn mount(wanted: &Mount) -> Result<mounts::Mount, Denied> {
    let (Some(target), Some(read_only)) = (wanted.target.clone(), wanted.read_only) else {
        return Err(incomplete().into());
    };
    Ok(mounts::Mount { source: PathBuf::from(&wanted.source), target, read_only })
}
