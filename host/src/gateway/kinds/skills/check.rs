//! Fills in a skill from its verified package, and checks each part by its own kind.

use super::super::kind::{Check, CheckContext, incomplete};
use super::super::kind_of;
use super::plan::{Plan, package, plan, written};
use crate::gateway::Requester;
use crate::registry::live_settings::HostPolicy;
use crate::registry::policy::{Policy, Rule};
use crate::registry::skills::{self, Installed};
use crate::registry::{Agent, egress, mcp, mounts, schedules};
use ironclaw_contract::seam::change::{
    Change, ChangeKind, EnabledTools, McpAccess, Mount, Part, Schedule, Skill, WrittenBy,
};
use ironclaw_judge::manifest::server;
use ironclaw_operator::{Bound, DenialCode};
use ironclaw_skill::{Grants, McpGrant};
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::{Denied, Refusal};
use serde_json::{Value, json};
use std::collections::BTreeSet;

impl Check for Skill {
    /// Ignores the parts of the request: they follow from the package and from the agent.
    fn complete(&self, tx: &ReadTx<'_>, context: &CheckContext<'_>) -> Result<Change, Denied> {
        let agent = context.agent.ok_or_else(incomplete)?;
        let held = skills::find(tx, agent.id, &self.name)?;
        if self.removes() {
            let held = held.ok_or_else(|| skills::missing(&agent.name, &self.name))?;
            let Plan { parts, ends, .. } = plan(tx, agent, Some(&held), &self.name, &Grants::default())?;
            let parts = complete_parts(tx, context, agent, parts, &self.parts)?;
            return Ok(Change::Skills(Self {
                name: self.name.clone(),
                remove: Some(true),
                parts,
                ends,
                ..Self::default()
            }));
        }
        let package = package(tx, self)?;
        check_version(tx, agent, held.as_ref(), &package)?;
        let grants = skills::manifest(&package)?.grants;
        let Plan { parts, ends, .. } = plan(tx, agent, held.as_ref(), &self.name, &grants)?;
        let parts = complete_parts(tx, context, agent, parts, &self.parts)?;
        Ok(Change::Skills(Self {
            name: self.name.clone(),
            version: Some(package.version),
            digest: Some(package.digest),
            signer: Some(package.signer),
            persona: grants.persona,
            parts,
            ends,
            remove: None,
        }))
    }

    fn current(&self, tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        let Some(agent) = agent else { return Ok(Value::Null) };
        let parts = self.parts.iter().map(|part| {
            let payload = kind_of(part.change()).current(tx, Some(agent))?;
            Ok(json!({ "kind": part.change().kind(), "payload": payload }))
        });
        let parts = parts.collect::<Result<Vec<_>, ironclaw_state::Error>>()?;
        let held = skills::find(tx, agent.id, &self.name)?;
        let grants = match &held {
            Some(held) => skills::manifest(&held.package)?.grants,
            None => Grants::default(),
        };
        let new = match self.digest.map(|digest| skills::package_by_digest(tx, digest)).transpose()?.flatten() {
            Some(package) => always_asked(&skills::manifest(&package)?.grants),
            None => Vec::new(),
        };
        let lost: Vec<String> = always_asked(&grants).into_iter().filter(|tool| !new.contains(tool)).collect();
        let (persona, package) = (grants.persona, held.map(|held| held.package));
        let mut before = json!({
            "version": package.as_ref().map(|package| package.version.clone()),
            "digest": package.as_ref().map(|package| package.digest),
            "signer": package.map(|package| package.signer),
            "persona": persona,
            "parts": parts,
        });
        if !lost.is_empty() {
            before["always_ask"] = json!(lost);
        }
        Ok(before)
    }

    /// Returns the author's words about the skill, its signer, its scripts and its other files, and the facts of each part.
    fn facts(&self, tx: &ReadTx<'_>, host_policy: &HostPolicy) -> Result<Value, ironclaw_state::Error> {
        let parts = self.parts.iter().map(|part| kind_of(part.change()).facts(tx, host_policy));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let mut ends = Vec::new();
        for id in &self.ends {
            ends.push(schedules::find(tx, *id)?.map_or(Value::Null, |row| json!({ "id": id, "prompt": row.prompt })));
        }
        let mut facts = json!({ "parts": parts, "ends": ends });
        let Some(package) = self.digest.map(|digest| skills::package_by_digest(tx, digest)).transpose()?.flatten()
        else {
            return Ok(facts);
        };
        let manifest = skills::manifest(&package)?;
        facts["description"] = json!(package.description);
        facts["source"] = json!(package.source);
        facts["key"] = json!(skills::key_by_id(tx, &package.signer)?.map(|key| key.name));
        facts["files"] = json!(manifest.files);
        facts["needs"] = json!(manifest.needs.programs);
        facts["always_ask"] = json!(always_asked(&manifest.grants));
        facts["trust"] = json!(skills::trust(tx, &package)?.name());
        Ok(facts)
    }

    fn after(&self, _payload: &Value, _agent: Option<&Agent>) -> Option<Value> {
        None
    }

    /// The strictest of the rules of all kinds that the skill contains.
    fn rule(&self, of_kind: Rule, policy: &Policy, _before: &Value, facts: &Value) -> Rule {
        let persona = self.persona.is_some().then(|| policy.rule(ChangeKind::Persona).clone());
        let parts = self.parts.iter().enumerate().map(|(at, part)| {
            let of_part = policy.rule(part.change().kind()).clone();
            kind_of(part.change()).rule(of_part, policy, &Value::Null, &facts["parts"][at])
        });
        persona.into_iter().chain(parts).fold(of_kind, |one, other| one.with(&other))
    }
}

/// Returns the tools of MCP servers whose calls wait for a person while the skill is installed, as a model sees their names.
fn always_asked(grants: &Grants) -> Vec<String> {
    let named = |grant: &McpGrant| -> Vec<String> {
        grant.always_ask.iter().map(|tool| server::name_for_model(&grant.server, tool)).collect()
    };
    grants.mcp.iter().flat_map(named).collect()
}

/// Refuses the version that the agent has, another version of a pinned skill, and one more skill than an agent may have.
fn check_version(
    tx: &ReadTx<'_>,
    agent: &Agent,
    held: Option<&Installed>,
    new: &skills::Package,
) -> Result<(), Denied> {
    match held {
        Some(held) if held.package.digest == new.digest => {
            let message = format!("agent {} has skill {} {} already", agent.name, new.name, new.version);
            Err(Refusal::new(DenialCode::ChangeEmpty, message).into())
        }
        Some(held) if held.is_pinned => {
            let message = format!("skill {} of agent {} is pinned at {}", new.name, agent.name, held.package.version);
            let hint = format!("`ironctl skill set {} --agent {} --unpin` lets it change", new.name, agent.name);
            Err(Refusal::new(DenialCode::SkillPinned, message).hint(hint).into())
        }
        None if skills::list_for_agent(tx, agent.id)?.len() >= skills::SKILLS_MAX => {
            let (name, most) = (format!("skills of agent {}", agent.name), skills::SKILLS_MAX);
            let remedy = format!("remove one: `ironctl skill remove NAME --agent {}`", agent.name);
            Err(Refusal::over(DenialCode::SkillsTooMany, Bound::new(name, most, most, remedy)).into())
        }
        Some(_) | None => check_personas(tx, agent, new),
    }
}

/// Bytes of the texts that all skills of an agent add to its prompt.
const PERSONAS_BYTES_MAX: usize = 8 * 1024;

/// Refuses a skill whose text does not fit into the prompt with those of the others.
fn check_personas(tx: &ReadTx<'_>, agent: &Agent, new: &skills::Package) -> Result<(), Denied> {
    let mut bytes = 0;
    let others =
        skills::list_for_agent(tx, agent.id)?.into_iter().map(|held| held.package).filter(|held| held.name != new.name);
    for package in others.chain([new.clone()]) {
        bytes += skills::manifest(&package)?.grants.persona.map_or(0, |persona| persona.len());
    }
    if bytes <= PERSONAS_BYTES_MAX {
        return Ok(());
    }
    let name = format!("bytes of the texts of all skills in the prompt of agent {}", agent.name);
    let remedy = format!("remove a skill with such a text: `ironctl skill remove NAME --agent {}`", agent.name);
    let bound = Bound::new(name, PERSONAS_BYTES_MAX, bytes, remedy);
    Err(Refusal::over(DenialCode::SkillsTooMany, bound).into())
}

/// Completes each part by the check of its kind. Schedules may use the tools that the skill adds. They keep the time of the request, which
/// the `asked` parts have once they are completed, and their prompts are never typed by a person of this host.
fn complete_parts(
    tx: &ReadTx<'_>,
    context: &CheckContext<'_>,
    agent: &Agent,
    parts: Vec<Change>,
    asked: &[Part],
) -> Result<Vec<Part>, Denied> {
    let mut agent = agent.clone();
    let mut completed = Vec::with_capacity(parts.len());
    for part in parts {
        let part = match part {
            Change::Schedule(schedule) => Change::Schedule(Schedule { from: time_of(&schedule, asked), ..schedule }),
            other => other,
        };
        let of_part =
            CheckContext { host_policy: context.host_policy, requester: context.requester, agent: Some(&agent) };
        let mut change = match only_takes(tx, &agent, &part)? {
            Some(completed) => completed,
            None => kind_of(&part).complete(tx, &of_part)?,
        };
        match &mut change {
            Change::EnabledTools(EnabledTools::All(tools)) => agent.enabled_tools.clone_from(tools),
            Change::Schedule(schedule) => schedule.written_by = Some(WrittenBy::Model),
            _ => {}
        }
        completed.push(Part::new(change).ok_or_else(incomplete)?);
    }
    check_room(tx, context, &agent, &completed)?;
    Ok(completed)
}

/// Refuses parts that are together over a bound that each alone is within.
fn check_room(tx: &ReadTx<'_>, context: &CheckContext<'_>, agent: &Agent, parts: &[Part]) -> Result<(), Denied> {
    let creator = match context.requester {
        Requester::Person(person) => *person,
        Requester::Agent { principal, .. } => *principal,
    };
    let (mut added, mut hosts) = (0, BTreeSet::new());
    for part in parts {
        match part.change() {
            Change::Schedule(schedule) if schedule.id.is_none() => added += 1,
            Change::Egress(grant) => drop(hosts.insert(grant.host.as_str())),
            _ => {}
        }
    }
    if added > 0 {
        schedules::check_room(tx, creator, added)?;
    }
    egress::check_room(tx, agent.id, &hosts)
}

/// Returns a completed part that gives nothing; `None` for any other part. The grants that stay were checked when people gave them, so a
/// skill can be removed when the settings no longer admit one of them.
fn only_takes(tx: &ReadTx<'_>, agent: &Agent, part: &Change) -> Result<Option<Change>, ironclaw_state::Error> {
    Ok(match part {
        Change::EnabledTools(EnabledTools::Difference(difference)) if difference.add.is_empty() => {
            let stays = |tool: &&String| !difference.remove.contains(tool);
            let mut tools: Vec<String> = agent.enabled_tools.iter().filter(stays).cloned().collect();
            tools.sort();
            Some(Change::EnabledTools(EnabledTools::All(tools)))
        }
        Change::McpAccess(McpAccess { server, tools: Some(tools) }) => {
            let held = mcp::grants_of(tx, agent.id)?.into_iter().find(|grant| grant.server == *server);
            let is_held = held.is_some_and(|grant| tools.iter().all(|tool| grant.tools.contains(tool)));
            is_held.then(|| part.clone())
        }
        Change::Mounts(mounts) => {
            let held: Vec<Mount> = mounts::list_for_agent(tx, agent.id)?.iter().map(written).collect();
            let mut sorted = mounts.clone();
            sorted.sort_by(|one, other| one.target.cmp(&other.target));
            sorted.iter().all(|mount| held.contains(mount)).then_some(Change::Mounts(sorted))
        }
        _ => None,
    })
}

/// Returns the time of the request of a schedule with this prompt.
fn time_of(schedule: &Schedule, asked: &[Part]) -> Option<String> {
    asked.iter().find_map(|part| match part.change() {
        Change::Schedule(held) if held.prompt == schedule.prompt => held.from.clone(),
        _ => None,
    })
}
