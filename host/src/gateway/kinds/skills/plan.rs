//! The changes that a version of a skill makes at an agent: the grants that it adds, and those of the version before that end.
//!
//! Pure over the record. A grant that the agent has for another reason stays, and is never counted as the skill's own.

use super::super::kind::incomplete;
use crate::registry::skills::{self, Brought, Installed};
use crate::registry::{Agent, egress, mcp, mounts, software};
use ironclaw_contract::ids::ScheduleId;
use ironclaw_contract::seam::change::{
    Change, Egress, EnabledTools, McpAccess, Mount, Packages, Schedule, ToolDifference,
};
use ironclaw_judge::egress::{Grant, HostName, Loopback};
use ironclaw_operator::DenialCode;
use ironclaw_skill::Grants;
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::{Denied, Refusal};
use std::collections::{BTreeMap, BTreeSet};

/// The changes, in the order of their application, and the schedules that end.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub parts: Vec<Change>,
    pub ends: Vec<ScheduleId>,
    /// The grants that the agent has because of the skill afterwards. New schedules have no row yet.
    pub brought: Brought,
    pub new_schedules: Vec<Schedule>,
}

/// What one agent has because of skills.
struct State {
    had: Brought,
    /// The grants that the present version asks for.
    asked: Grants,
    /// The grants that other skills ask for.
    others: Vec<Grants>,
    /// The grants that the agent has because of other skills. One that this skill asks for too is then its own as well.
    of_others: Vec<Brought>,
}

/// Returns the changes from the present version of a skill to these grants; none removes the skill.
///
/// # Errors
/// Refuses a grant that would replace one that the agent has for another reason.
pub(super) fn plan(
    tx: &ReadTx<'_>,
    agent: &Agent,
    held: Option<&Installed>,
    name: &str,
    wanted: &Grants,
) -> Result<Plan, Denied> {
    let all = skills::list_for_agent(tx, agent.id)?;
    let others = || all.iter().filter(|skill| skill.package.name != name);
    let state = State {
        had: held.map(|held| held.brought.clone()).unwrap_or_default(),
        asked: held
            .map(|held| skills::manifest(&held.package))
            .transpose()?
            .map(|manifest| manifest.grants)
            .unwrap_or_default(),
        others: others().map(|skill| Ok(skills::manifest(&skill.package)?.grants)).collect::<Result<_, Denied>>()?,
        of_others: others().map(|skill| skill.brought.clone()).collect(),
    };
    check_hosts(wanted)?;
    let mut plan = Plan::default();
    packages(tx, agent, &state, wanted, &mut plan)?;
    directories(tx, agent, &state, wanted, &mut plan)?;
    tools(agent, &state, wanted, &mut plan);
    servers(tx, agent, &state, wanted, &mut plan)?;
    hosts(tx, agent, &state, wanted, &mut plan)?;
    schedules(&state, wanted, &mut plan);
    Ok(plan)
}

/// Returns the entries that the skill has brought after a change, those to add, and those to take.
///
/// `of_others` are the entries that other skills ask for, and `owned` those that the agent has because of them.
fn difference(
    has: &BTreeSet<String>,
    had: &BTreeSet<String>,
    wanted: &BTreeSet<String>,
    of_others: &BTreeSet<String>,
    owned: &BTreeSet<String>,
) -> (BTreeSet<String>, BTreeSet<String>, BTreeSet<String>) {
    let add: BTreeSet<String> = wanted.difference(has).cloned().collect();
    let is_over = |entry: &&String| has.contains(*entry) && !wanted.contains(*entry) && !of_others.contains(*entry);
    let take: BTreeSet<String> = had.iter().filter(is_over).cloned().collect();
    let kept = had.union(owned).filter(|entry| wanted.contains(*entry) && has.contains(*entry)).cloned();
    (kept.chain(add.iter().cloned()).collect(), add, take)
}

fn set<'a>(names: impl IntoIterator<Item = &'a String>) -> BTreeSet<String> {
    names.into_iter().cloned().collect()
}

fn tools(agent: &Agent, state: &State, wanted: &Grants, plan: &mut Plan) {
    let of_others = set(state.others.iter().flat_map(|grants| &grants.tools));
    let owned = set(state.of_others.iter().flat_map(|brought| &brought.tools));
    let (brought, add, take) =
        difference(&set(&agent.enabled_tools), &state.had.tools, &set(&wanted.tools), &of_others, &owned);
    plan.brought.tools = brought;
    if !add.is_empty() || !take.is_empty() {
        let changed = ToolDifference { add: add.into_iter().collect(), remove: take.into_iter().collect() };
        plan.parts.push(Change::EnabledTools(EnabledTools::Difference(changed)));
    }
}

fn servers(tx: &ReadTx<'_>, agent: &Agent, state: &State, wanted: &Grants, plan: &mut Plan) -> Result<(), Denied> {
    let of = |grants: &Grants, server: &str| -> BTreeSet<String> {
        set(grants.mcp.iter().filter(|grant| grant.server == server).flat_map(|grant| &grant.tools))
    };
    let has: BTreeMap<String, BTreeSet<String>> =
        mcp::grants_of(tx, agent.id)?.into_iter().map(|grant| (grant.server, set(&grant.tools))).collect();
    let named = set(wanted.mcp.iter().map(|grant| &grant.server));
    for server in named.into_iter().chain(state.had.mcp.keys().cloned()).collect::<BTreeSet<_>>() {
        let has = has.get(&server).cloned().unwrap_or_default();
        let had = state.had.mcp.get(&server).cloned().unwrap_or_default();
        let of_others = state.others.iter().flat_map(|grants| of(grants, &server)).collect();
        let owned = set(state.of_others.iter().filter_map(|brought| brought.mcp.get(&server)).flatten());
        let (brought, add, take) = difference(&has, &had, &of(wanted, &server), &of_others, &owned);
        if !brought.is_empty() {
            plan.brought.mcp.insert(server.clone(), brought);
        }
        if !add.is_empty() || !take.is_empty() {
            let tools = has.union(&add).filter(|tool| !take.contains(*tool)).cloned().collect();
            plan.parts.push(Change::McpAccess(McpAccess { server, tools: Some(tools) }));
        }
    }
    Ok(())
}

fn hosts(tx: &ReadTx<'_>, agent: &Agent, state: &State, wanted: &Grants, plan: &mut Plan) -> Result<(), Denied> {
    let has = egress::egress_of(tx, agent.id)?;
    let present = |host: &str| has.iter().find(|grant| grant.host == host).map(|grant| &grant.granted);
    // A grant that people changed meanwhile is theirs.
    let is_as_asked = |host: &str| {
        let of_skills = std::iter::once(&state.asked).chain(&state.others).flat_map(|grants| &grants.egress);
        present(host).is_some_and(|held| of_skills.into_iter().any(|asked| completed(asked).as_ref() == Some(held)))
    };
    let is_brought = |host: &str| {
        let all = std::iter::once(&state.had).chain(&state.of_others);
        all.into_iter().any(|brought| brought.egress.contains(host)) && is_as_asked(host)
    };
    for grant in &wanted.egress {
        let host = canonical(&grant.host);
        match present(&host) {
            Some(held) if completed(grant).as_ref() == Some(held) => {
                if is_brought(&host) {
                    plan.brought.egress.insert(host);
                }
            }
            Some(_) if !(state.had.egress.contains(&host) && is_as_asked(&host)) => {
                let why = format!("the host {host} of the network is granted to agent {} on other terms", agent.name);
                return Err(conflict(why).into());
            }
            Some(_) | None => {
                plan.brought.egress.insert(host);
                plan.parts.push(Change::Egress(grant.clone()));
            }
        }
    }
    let is_wanted = |host: &str, grants: &Grants| grants.egress.iter().any(|grant| canonical(&grant.host) == host);
    for host in &state.had.egress {
        let is_needed = is_wanted(host, wanted) || state.others.iter().any(|grants| is_wanted(host, grants));
        if !is_needed && is_as_asked(host) {
            let gone = Egress {
                host: host.clone(),
                port: None,
                methods: Vec::new(),
                paths: Vec::new(),
                secret: None,
                upload_bytes_max: None,
                commands: None,
            };
            plan.parts.push(Change::Egress(gone));
        }
    }
    Ok(())
}

/// Returns the one form of the name of a host. A name that is none is refused by the check of its part.
pub(super) fn canonical(host: &str) -> String {
    HostName::parse(host, Loopback::DangerousAllowed).map_or_else(|_| host.to_owned(), |host| host.to_string())
}

/// Returns a grant of a host with the defaults of the host, as the record has it.
pub(super) fn completed(wanted: &Egress) -> Option<Egress> {
    let grant = Grant::check(&egress::text(wanted), Loopback::DangerousAllowed).ok()?;
    Some(egress::payload(grant.text()))
}

/// Refuses two grants of one host: the second would replace the first.
fn check_hosts(wanted: &Grants) -> Result<(), Refusal> {
    let mut hosts = BTreeSet::new();
    match wanted.egress.iter().map(|grant| canonical(&grant.host)).find(|host| !hosts.insert(host.clone())) {
        Some(host) => Err(Refusal::new(
            DenialCode::SkillManifest,
            format!("the skill asks for the host {host} of the network twice"),
        )),
        None => Ok(()),
    }
}

fn directories(tx: &ReadTx<'_>, agent: &Agent, state: &State, wanted: &Grants, plan: &mut Plan) -> Result<(), Denied> {
    if let Some(mount) = wanted.mounts.iter().find(|mount| mount.mine.is_some()) {
        return Err(super::super::mounts::refuse(&mount.source, "a skill asks for it").into());
    }
    let has = mounts::list_for_agent(tx, agent.id)?;
    // A directory that people changed meanwhile is theirs.
    let is_as_asked = |held: &Mount| {
        let of_skills = std::iter::once(&state.asked).chain(&state.others).flat_map(|grants| &grants.mounts);
        of_skills.map(completed_mount).any(|asked| asked == *held)
    };
    let is_brought = |target: &String| {
        let of_skills = std::iter::once(&state.had).chain(&state.of_others);
        let is_held = has.iter().any(|mount| mount.target == *target && is_as_asked(&written(mount)));
        is_held && of_skills.into_iter().any(|brought| brought.mounts.contains(target))
    };
    let needed = |target: &str, grants: &Grants| grants.mounts.iter().any(|mount| target_of(mount) == target);
    let (mut after, mut is_changed): (Vec<Mount>, bool) = (Vec::new(), false);
    for mount in &has {
        let is_own = state.had.mounts.contains(&mount.target);
        let is_needed =
            needed(&mount.target, wanted) || state.others.iter().any(|grants| needed(&mount.target, grants));
        if is_own && !is_needed {
            is_changed = true;
        } else {
            after.push(written(mount));
        }
    }
    for mount in wanted.mounts.iter().map(completed_mount) {
        let target = target_of(&mount);
        let is_own = is_brought(&target);
        match after.iter().position(|held| target_of(held) == target) {
            Some(at) if after[at] == mount => {}
            Some(at) if is_own && state.had.mounts.contains(&target) => {
                after[at] = mount;
                is_changed = true;
            }
            Some(_) => return Err(conflict(format!("agent {} has another directory at {target}", agent.name)).into()),
            None => {
                after.push(mount);
                plan.brought.mounts.insert(target.clone());
                is_changed = true;
            }
        }
        if is_own {
            plan.brought.mounts.insert(target);
        }
    }
    if is_changed {
        plan.parts.push(Change::Mounts(after));
    }
    Ok(())
}

/// Returns a directory of the record as the payload of a change.
pub(super) fn written(mount: &mounts::Mount) -> Mount {
    Mount {
        source: mount.source.display().to_string(),
        target: Some(mount.target.clone()),
        read_only: Some(mount.read_only),
        mine: mount.mine.map(|_| true),
    }
}

/// Returns a directory with the defaults of the host, as the record has it.
pub(super) fn completed_mount(wanted: &Mount) -> Mount {
    Mount {
        target: Some(target_of(wanted)),
        read_only: Some(wanted.read_only.unwrap_or(true)),
        source: wanted.source.clone(),
        mine: None,
    }
}

/// Returns the place of a directory in the jail.
fn target_of(mount: &Mount) -> String {
    let last = || format!("/{}", mount.source.rsplit('/').next().unwrap_or_default());
    mount.target.clone().unwrap_or_else(last)
}

fn packages(tx: &ReadTx<'_>, agent: &Agent, state: &State, wanted: &Grants, plan: &mut Plan) -> Result<(), Denied> {
    let has = software::for_agent(tx, agent.id)?.map(|software| software.packages).unwrap_or_default();
    let mut after = has.clone();
    type List = fn(&mut Packages) -> &mut Vec<String>;
    let lists: [List; 3] = [|all| &mut all.apt, |all| &mut all.npm, |all| &mut all.pypi];
    for list in lists {
        let of = |packages: &Packages| set(&*list(&mut packages.clone()));
        let of_others = state.others.iter().flat_map(|grants| of(&grants.packages)).collect();
        let owned = state.of_others.iter().flat_map(|brought| of(&brought.packages)).collect();
        let (brought, add, take) =
            difference(&of(&has), &of(&state.had.packages), &of(&wanted.packages), &of_others, &owned);
        *list(&mut plan.brought.packages) = brought.into_iter().collect();
        let held = list(&mut after);
        held.retain(|name| !take.contains(name));
        held.extend(add);
    }
    if after != has {
        plan.parts.push(Change::Packages(after));
    }
    Ok(())
}

fn schedules(state: &State, wanted: &Grants, plan: &mut Plan) {
    for (asked, id) in &state.had.schedules {
        match wanted.schedules.contains(asked) {
            true => plan.brought.schedules.push((asked.clone(), *id)),
            false => plan.ends.push(*id),
        }
    }
    let held: Vec<Schedule> = plan.brought.schedules.iter().map(|(asked, _)| asked.clone()).collect();
    for asked in wanted.schedules.iter().filter(|asked| !held.contains(asked)) {
        plan.new_schedules.push(asked.clone());
        plan.parts.push(Change::Schedule(asked.clone()));
    }
}

fn conflict(why: String) -> Refusal {
    Refusal::new(DenialCode::SkillConflict, why).hint("take that grant away first, or use another skill")
}

/// Returns the verified package that a change names.
///
/// # Errors
/// Refuses a package that is not recorded, or whose signature no longer counts.
pub(super) fn package(
    tx: &ReadTx<'_>,
    skill: &ironclaw_contract::seam::change::Skill,
) -> Result<skills::Package, Denied> {
    let digest = skill.digest.ok_or_else(incomplete)?;
    let found = skills::package_by_digest(tx, digest)?;
    let found = found.filter(|found| found.name == skill.name && Some(&found.version) == skill.version.as_ref());
    let package = found.ok_or_else(|| {
        let message = format!("the package of skill {} is not in the record", skill.name);
        let refusal = Refusal::new(DenialCode::SkillDirect, message);
        Denied::from(refusal.hint("name the skill, and the host resolves it: `ironctl skill add NAME --agent AGENT`"))
    })?;
    skills::check_trust(tx, &package)?;
    Ok(package)
}
