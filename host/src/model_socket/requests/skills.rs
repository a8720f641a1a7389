//! The resolution of named skills, between the output of a model and the judgement of its calls.
//!
//! Never proposes a change: the row of the sandbox does. See [`crate::skills`].

use super::generate::Prepared;
use crate::error::Error;
use crate::model_socket::Server;
use crate::refusal::{Denied, Refusal};
use crate::registry::skills;
use crate::skills::Wanted;
use crate::tools::{REQUEST_CHANGE, SKILL_INSTALL};
use crate::turns::calls;
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::action::{Action, SkillInstall};
use ironclaw_model::WantedCall;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::timeout;

/// The first calls of an output among which skills are resolved.
const SKILLS_MAX: usize = 4;

/// The longest time of one resolution, within the time of the turn.
const RESOLVED_WITHIN: Duration = Duration::from_secs(30);

impl Server {
    /// Resolves the skill of each call that asks for one. Adds the refusals by the position of the call.
    pub(super) async fn resolve_skills(
        &self,
        prepared: &Prepared,
        calls: &[WantedCall],
        refusals: &mut HashMap<usize, Refusal>,
    ) -> Result<(), Error> {
        for (position, call) in calls.iter().enumerate() {
            let tool = call.tool.as_str();
            if ![SKILL_INSTALL, REQUEST_CHANGE].contains(&tool) || prepared.facts.catalogue.missing(tool).is_some() {
                continue;
            }
            // A call that is no valid action is refused by the judgement.
            let Ok(Action::SkillInstall { skill, .. }) = calls::action_in(tool, &call.arguments) else { continue };
            if position >= SKILLS_MAX {
                let words = format!("an output asks for skills in its first {SKILLS_MAX} calls only");
                refusals.insert(position, Refusal::new(DenialCode::SkillsTooMany, words));
                continue;
            }
            match self.resolve_skill(&skill).await {
                Ok(()) => {}
                Err(Denied::Refused(refusal)) => drop(refusals.insert(position, refusal)),
                Err(Denied::Failed(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// Resolves one skill by its name.
    ///
    /// # Errors
    /// Refuses a skill that does not resolve, or not in time.
    async fn resolve_skill(&self, SkillInstall { skill, version }: &SkillInstall) -> Result<(), Denied<Error>> {
        let (name, wanted) = (skills::named(skill)?, Wanted::parse(Some(version))?);
        let resolver = &self.shared.executor.skills;
        match timeout(RESOLVED_WITHIN, resolver.resolve(&name, &wanted)).await {
            Ok(resolved) => resolved.map(drop),
            Err(_) => {
                let words = format!("the sources gave skill {name} not within {} seconds", RESOLVED_WITHIN.as_secs());
                Err(Refusal::new(DenialCode::SkillSourceFailed, words).into())
            }
        }
    }
}
