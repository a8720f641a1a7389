//! Changes that install or remove a skill. A request names it; the host resolves it and fills in the rest.

use super::Changes;
use crate::error::Error;
use crate::gateway::store::Submitted;
use crate::gateway::{Proposed, Requester};
use crate::refusal::{Decide, Denied, Refusal};
use crate::registry::{self, Agent, Person, skills};
use crate::skills::{Skills, Wanted};
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::{Change, ChangeKind, Skill};
use ironclaw_skill::Name;
use ironclaw_state::{ReadTx, WriteTx};
use std::sync::Arc;

impl Changes {
    /// Resolves a skill and submits its installation, or with `back` also the return to an older version.
    ///
    /// # Errors
    /// Refuses a person without the role for it, a skill that does not resolve, and a change that fails a check.
    pub async fn install_skill(
        self: &Arc<Self>,
        skills: &Skills,
        by: &Person,
        (agent, name): (String, Name),
        (wanted, back): (Wanted, bool),
        reason: String,
    ) -> Result<Submitted, Denied<Error>> {
        let (person, of) = (by.clone(), agent.clone());
        // First, because a person without the role must not make the host reach a source.
        self.record()
            .state
            .read(move |tx| -> Result<(), Denied<Error>> {
                let agent = registry::named_agent(tx, &person, &of)?;
                Ok(super::check_requester(tx, &person, ChangeKind::Skills, Some(&agent))?)
            })
            .await?;
        let package = skills.resolve(&name, &wanted).await?;
        self.submit_skill(by, agent, reason, move |tx, agent| named(tx, agent, package, back)).await
    }

    /// Submits the removal of a skill of an agent with the grants that came with it.
    ///
    /// # Errors
    /// Refuses a person without the role for it, and a skill that the agent does not have.
    pub async fn remove_skill(
        self: &Arc<Self>,
        by: &Person,
        agent: String,
        name: Name,
        reason: String,
    ) -> Result<Submitted, Denied<Error>> {
        let removal = Skill { name: name.to_string(), remove: Some(true), ..Skill::default() };
        self.submit_skill(by, agent, reason, move |_, _| Ok(removal)).await
    }

    async fn submit_skill(
        self: &Arc<Self>,
        by: &Person,
        agent: String,
        reason: String,
        skill: impl FnOnce(&ReadTx<'_>, &Agent) -> Result<Skill, Denied> + Send + 'static,
    ) -> Result<Submitted, Denied<Error>> {
        super::check_reason(&reason)?;
        let (changes, by) = (Arc::clone(self), by.clone());
        let submit = move |tx: &mut WriteTx<'_>| -> Result<Submitted, Denied<Error>> {
            let by = super::present(tx, by.id)?;
            let agent = registry::named_agent(tx, &by, &agent)?;
            super::check_requester(tx, &by, ChangeKind::Skills, Some(&agent))?;
            let change = Change::Skills(skill(tx, &agent)?);
            let requester = Requester::Person(by.id);
            let proposed = Proposed { change, agent: Some(agent.id), requester, reason, labels: Vec::new() };
            changes.proposals.submit(tx, proposed).map_err(Denied::widen)
        };
        self.record().state.decide(submit).await
    }
}

/// Returns the change that names a resolved package.
///
/// # Errors
/// Refuses an older version than the agent has, unless the request says that it goes back.
pub(crate) fn named(tx: &ReadTx<'_>, agent: &Agent, package: skills::Package, back: bool) -> Result<Skill, Denied> {
    let skills::Package { name, version, digest, .. } = package;
    if let Some(held) = skills::find(tx, agent.id, &name)?.filter(|_| !back)
        && skills::version(&held.package.version)? > skills::version(&version)?
    {
        let message =
            format!("agent {} has skill {name} {}, which is newer than {version}", agent.name, held.package.version);
        let hint = format!("a person goes back: `ironctl skill upgrade {name} --agent {} --to {version}`", agent.name);
        return Err(Refusal::new(DenialCode::SkillDowngrade, message).hint(hint).into());
    }
    Ok(Skill { name, version: Some(version), digest: Some(digest), ..Skill::default() })
}

/// Returns the change for a skill that an agent names, from the packages that the host resolved before.
///
/// # Errors
/// Refuses a malformed name or version, a skill that was not resolved, and an older version than the agent has.
pub(crate) fn resolved(tx: &ReadTx<'_>, agent: &Agent, name: &str, version: &str) -> Result<Skill, Denied> {
    let name = skills::named(name)?;
    let package = match Wanted::parse(Some(version))? {
        Wanted::Exactly(version) => skills::package_of(tx, name.as_ref(), &version.to_string())?,
        Wanted::Newest => skills::newest(tx, name.as_ref())?,
    };
    let package =
        package.ok_or_else(|| Refusal::new(DenialCode::SkillUnknown, format!("skill {name} was not resolved")))?;
    named(tx, agent, package, false)
}
