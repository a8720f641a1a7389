//! Gives an agent a version of a skill with its grants, or takes both away, in one transaction.

use super::super::kind::{Apply, Preparation, Prepared, concerned};
use super::super::kind_of;
use super::plan::{Plan, package, plan};
use crate::gateway::decide::proof::Approved;
use crate::gateway::writers;
use crate::registry::Agent;
use crate::registry::schedules::{self, By, State};
use crate::registry::skills::{self, Brought};
use ironclaw_contract::seam::change::{Schedule, Skill};
use ironclaw_skill::Grants;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::Denied;

impl Apply for Skill {
    fn preparation(&self) -> Preparation<'_> {
        let of_parts = self.parts.iter().map(|part| kind_of(part.change()).preparation());
        of_parts.into_iter().find(|one| !matches!(one, Preparation::Nothing)).unwrap_or(Preparation::Nothing)
    }

    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, prepared: &Prepared) -> Result<String, Denied> {
        let agent = concerned(tx, approved)?;
        let held = skills::find(tx, agent.id, &self.name)?;
        let (new, grants) = match self.removes() {
            true => (None, Grants::default()),
            false => {
                let package = package(tx, self)?;
                let grants = skills::manifest(&package)?.grants;
                (Some(package), grants)
            }
        };
        // The gateway has compared the present settings with those at the request, so the plan is the one that people saw.
        let Plan { mut brought, new_schedules, .. } = plan(tx, &agent, held.as_ref(), &self.name, &grants)?;
        for (at, part) in self.parts.iter().enumerate() {
            let own = approved.part(part.change(), approved.facts()["parts"][at].clone());
            kind_of(part.change()).apply(tx, &own, prepared)?;
        }
        record_schedules(tx, approved, &agent, new_schedules, &mut brought)?;
        for id in &self.ends {
            if let Some(row) = schedules::find(tx, *id)?.filter(|row| row.state != State::Removed) {
                schedules::remove(tx, &row, By::Host)?;
            }
        }
        match (new, held) {
            (Some(package), _) => {
                writers::skills::install(tx, approved, agent.id, &package, &brought)?;
                let parts = if self.parts.is_empty() { "" } else { ", with the grants that were shown" };
                Ok(format!("agent {} has skill {} {}{parts}", agent.name, self.name, package.version))
            }
            (None, Some(held)) => {
                writers::skills::remove(tx, approved, agent.id, &held)?;
                Ok(format!("agent {} no longer has skill {}", agent.name, self.name))
            }
            (None, None) => Err(skills::missing(&agent.name, &self.name).into()),
        }
    }
}

/// Notes the rows of the schedules that the parts added, in their order.
fn record_schedules(
    tx: &ReadTx<'_>,
    approved: &Approved,
    agent: &Agent,
    asked: Vec<Schedule>,
    brought: &mut Brought,
) -> Result<(), ironclaw_state::Error> {
    let rows = schedules::added_by_change(tx, agent.id, approved.id())?;
    brought.schedules.extend(asked.into_iter().zip(rows));
    Ok(())
}
