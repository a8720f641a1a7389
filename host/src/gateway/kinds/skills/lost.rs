//! Forgets that a skill brought a grant once the agent lost it: when a person gives it again, it is not the grant of the skill.
//!
//! Never changes a grant.

use super::plan::{canonical, completed, completed_mount, written};
use crate::registry::skills::{self, Brought};
use crate::registry::{Agent, egress, mcp, mounts, software};
use ironclaw_contract::seam::change::{Egress, Mount, Packages};
use ironclaw_skill::Grants;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::Denied;
use std::collections::{BTreeMap, BTreeSet};

/// The present grants of an agent.
struct Present {
    tools: Vec<String>,
    mcp: BTreeMap<String, Vec<String>>,
    egress: Vec<Egress>,
    mounts: Vec<Mount>,
    packages: Packages,
}

impl Present {
    fn read(tx: &ReadTx<'_>, agent: &Agent) -> Result<Self, ironclaw_state::Error> {
        Ok(Self {
            tools: agent.enabled_tools.clone(),
            mcp: mcp::grants_of(tx, agent.id)?.into_iter().map(|grant| (grant.server, grant.tools)).collect(),
            egress: egress::egress_of(tx, agent.id)?.into_iter().map(|grant| grant.granted).collect(),
            mounts: mounts::list_for_agent(tx, agent.id)?.iter().map(written).collect(),
            packages: software::for_agent(tx, agent.id)?.map(|software| software.packages).unwrap_or_default(),
        })
    }

    /// Returns the brought grants that the agent still has, on the terms for which some skill asks.
    fn still(&self, brought: &Brought, asked: &[Grants]) -> Brought {
        let has_host = |host: &&String| {
            let of_skills = asked.iter().flat_map(|grants| &grants.egress);
            let mut terms = of_skills.filter(|grant| canonical(&grant.host) == **host).filter_map(completed);
            terms.any(|terms| self.egress.contains(&terms))
        };
        let has_mount = |target: &&String| {
            let of_skills = asked.iter().flat_map(|grants| &grants.mounts).map(completed_mount);
            of_skills.into_iter().any(|mount| mount.target.as_ref() == Some(*target) && self.mounts.contains(&mount))
        };
        let of_server = |(server, tools): (&String, &BTreeSet<String>)| {
            let present = self.mcp.get(server)?;
            let kept: BTreeSet<String> = tools.iter().filter(|tool| present.contains(tool)).cloned().collect();
            (!kept.is_empty()).then(|| (server.clone(), kept))
        };
        let both = |one: &[String], other: &[String]| -> Vec<String> {
            one.iter().filter(|name| other.contains(name)).cloned().collect()
        };
        Brought {
            tools: brought.tools.iter().filter(|tool| self.tools.contains(tool)).cloned().collect(),
            mcp: brought.mcp.iter().filter_map(of_server).collect(),
            egress: brought.egress.iter().filter(has_host).cloned().collect(),
            mounts: brought.mounts.iter().filter(has_mount).cloned().collect(),
            packages: Packages {
                apt: both(&brought.packages.apt, &self.packages.apt),
                npm: both(&brought.packages.npm, &self.packages.npm),
                pypi: both(&brought.packages.pypi, &self.packages.pypi),
            },
            schedules: brought.schedules.clone(),
        }
    }
}

/// Forgets the lost grants of all skills of an agent. Call it before a person's grant is applied.
pub fn forget_lost(tx: &mut WriteTx<'_>, agent: &Agent) -> Result<(), Denied> {
    let held = skills::list_for_agent(tx, agent.id)?;
    if held.is_empty() {
        return Ok(());
    }
    let asked =
        held.iter().map(|skill| Ok(skills::manifest(&skill.package)?.grants)).collect::<Result<Vec<_>, Denied>>()?;
    let present = Present::read(tx, agent)?;
    for skill in held {
        let still = present.still(&skill.brought, &asked);
        if still != skill.brought {
            skills::set_brought(tx, agent.id, &skill.package.name, &still)?;
        }
    }
    Ok(())
}
