//! Changes that install or remove a skill. A request names it; the host resolves it and fills in the rest.

use super::Submitted;
use crate::gateway::waiting::Gateway;
use crate::gateway::waiting::decide::{check_reason, present};
use crate::gateway::{Proposed, Requester};
use crate::reach::skills::{self, Skills, Wanted};
use crate::registry::skills::Asker;
use crate::registry::{self, Agent, Person};
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::change::{Change, ChangeKind, Skill};
use ironclaw_judge::provenance::Labels;
use ironclaw_skill::Name;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use std::sync::Arc;

/// A skill to install, as a person asks for it.
pub struct Installation {
    /// An agent by name or id.
    pub agent: String,
    pub name: Name,
    pub version: Wanted,
    /// Whether it may return to an older version.
    pub back: bool,
    pub reason: String,
}

impl Gateway {
    /// Resolves a skill and submits its installation, or with `back` also the return to an older version.
    ///
    /// # Errors
    /// Refuses a person without the role for it, a skill that does not resolve, and a change that fails a check.
    pub async fn install_skill(
        self: &Arc<Self>,
        resolver: &Skills,
        by: &Person,
        installation: Installation,
    ) -> Result<Submitted, Denied<Error>> {
        let Installation { agent, name, version, back, reason } = installation;
        let (person, of) = (by.clone(), agent.clone());
        // First, because a person without the role must not make the host reach a source.
        self.record
            .state
            .read(move |tx| -> Result<(), Denied<Error>> {
                let agent = registry::named_agent(tx, &person, &of)?;
                Ok(super::check_requester(tx, &person, ChangeKind::Skills, Some(&agent))?)
            })
            .await?;
        let package = match resolver.resolve(&name, &version).await {
            Err(Denied::Refused(refusal)) => return Err(self.record_refused(by.id, &name, &version, refusal).await),
            resolved => resolved?,
        };
        self.submit_skill(by, agent, reason, move |tx, agent| skills::named(tx, agent, package, back)).await
    }

    /// Records the refusal of a skill that did not resolve, and returns it.
    async fn record_refused(&self, by: PersonId, name: &Name, wanted: &Wanted, refusal: Refusal) -> Denied<Error> {
        let (name, version, code) = (name.to_string(), wanted.to_string(), refusal.code);
        let note = move |tx: &mut WriteTx<'_>| {
            Ok::<_, Error>(registry::skills::record_refused(tx, &name, &version, code, Asker::Person(by))?)
        };
        match self.record.state.write(note).await {
            Ok(()) => refusal.into(),
            Err(error) => error.into(),
        }
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
        check_reason(&reason)?;
        let (all, by) = (Arc::clone(self), by.clone());
        let submit = move |tx: &mut WriteTx<'_>| -> Result<Submitted, Denied<Error>> {
            let by = present(tx, &by)?;
            let agent = registry::named_agent(tx, &by, &agent)?;
            super::check_requester(tx, &by, ChangeKind::Skills, Some(&agent))?;
            let change = Change::Skills(skill(tx, &agent)?);
            let requester = Requester::Person(by.id);
            let proposed = Proposed { change, agent: Some(agent.id), requester, reason, labels: Labels::NONE };
            all.propose(tx, proposed)
        };
        self.record.state.decide(submit).await
    }
}
