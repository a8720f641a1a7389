//! The resolution of named skills, between the output of a model and the judgement of its calls.
//!
//! Never proposes a change: the row of the sandbox does. See [`crate::reach::skills`].

use super::prepared::Prepared;
use crate::calls::model_socket::Server;
use crate::reach::skills::Wanted;
use crate::registry::skills::{self, Asker};
use crate::registry::tools::{REQUEST_CHANGE, SKILL_INSTALL};
use crate::turns::calls::{Action, ReadCall, SkillInstall};
use ironclaw_contract::ids::TurnId;
use ironclaw_operator::{Bound, DenialCode};
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The first calls of an output among which skills are resolved.
const SKILLS_MAX: usize = 4;

/// The longest time of the resolutions of one output, within the time of the turn.
const RESOLVED_WITHIN: Duration = Duration::from_secs(30);

impl Server {
    /// Resolves the skill of each call that asks for one, and writes its exact version into the arguments. Adds the refusals by the position
    /// of the call.
    pub(super) async fn resolve_skills(
        &self,
        turn: TurnId,
        prepared: &Prepared,
        calls: &mut [ReadCall],
        refusals: &mut HashMap<usize, Refusal>,
    ) -> Result<(), Error> {
        let until = prepared.bounds.until.min(Instant::now() + RESOLVED_WITHIN);
        for (position, call) in calls.iter_mut().enumerate() {
            let tool = call.tool.as_str();
            if ![SKILL_INSTALL, REQUEST_CHANGE].contains(&tool) || prepared.facts.catalogue.missing(tool).is_some() {
                continue;
            }
            // A call that is no valid action is refused by the judgement.
            let Ok(Action::Install { skill, .. }) = Action::read(tool, call.arguments().cloned().unwrap_or_default())
            else {
                continue;
            };
            let resolved = match position < SKILLS_MAX {
                true => self.resolve_skill(&skill, until).await,
                false => {
                    let remedy = "ask for the others in the next output";
                    let bound = Bound::new("calls of one output that ask for skills", SKILLS_MAX, position + 1, remedy);
                    Err(Refusal::over(DenialCode::SkillsTooMany, bound).into())
                }
            };
            match resolved {
                Ok(version) => write_version(call, &version),
                Err(Denied::Failed(error)) => return Err(error),
                Err(Denied::Refused(refusal)) => {
                    let (session, code) = (self.session, refusal.code);
                    let note = move |tx: &mut WriteTx<'_>| {
                        let by = Asker::Turn(session, turn);
                        Ok::<_, Error>(skills::record_refused(tx, &skill.skill, &skill.version, code, by)?)
                    };
                    self.state().write(note).await?;
                    refusals.insert(position, refusal);
                }
            }
        }
        Ok(())
    }

    /// Resolves one skill by its name, and returns its version.
    ///
    /// # Errors
    /// Refuses a skill that does not resolve, or not in time.
    async fn resolve_skill(&self, wanted: &SkillInstall, until: Instant) -> Result<String, Denied<Error>> {
        let (name, version) = (skills::named(&wanted.skill)?, Wanted::parse(Some(&wanted.version))?);
        let resolver = &self.shared.executor.skills;
        match timeout_at(until, resolver.resolve_for_agent(&name, &version)).await {
            Ok(resolved) => Ok(resolved?.version),
            Err(_) => {
                let words = format!("the sources did not give skill {name} in the time of the turn");
                Err(Refusal::new(DenialCode::SkillSourceFailed, words).into())
            }
        }
    }
}

/// Writes the version that was resolved into the arguments of a call, so that the call names exactly this package.
fn write_version(call: &mut ReadCall, version: &str) {
    if let Ok(arguments) = call.arguments_mut()
        && let Some(payload) = arguments.get_mut("payload").and_then(Value::as_object_mut)
    {
        payload.insert("version".to_owned(), version.into());
    }
}
