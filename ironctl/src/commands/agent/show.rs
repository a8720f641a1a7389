//! `ironctl agent show`: an agent and everything that it can do, in groups.
//!
//! Shows each right that the host sent. See [`crate::commands::agent`].

use super::connection;
use crate::clock;
use crate::commands::allowance;
use crate::commands::schedule::state_in_words;
use crate::commands::usage;
use crate::failure::Error;
use crate::output::{Output, joined};
use ironclaw_operator::{
    Agent, AgentAbilities, AgentBudget, AgentGroup, AgentMcp, AgentMember, AgentMount, AgentPackages, AgentScope,
    Allowance, AllowanceStatus, Commands, Destination, DestinationState, EgressGrant, InstalledSkill, OwnSource,
    Principal, ScheduleView, SkillTrust,
};

/// The rows of the page: the name of a group in its first row, and a text.
#[derive(Default)]
struct Page {
    rows: Vec<[String; 2]>,
}

impl Page {
    /// Adds a group, if it has texts.
    fn add(&mut self, group: &str, texts: impl IntoIterator<Item = String>) {
        let rows = texts.into_iter().filter(|text| !text.is_empty());
        for (at, text) in rows.enumerate() {
            self.rows.push([if at == 0 { group.to_owned() } else { String::new() }, text]);
        }
    }
}

/// Prints an agent. A member gets only its settings.
pub fn print(out: Output, agent: &Agent) -> Result<(), Error> {
    let mut page = Page::default();
    let default = if agent.follows_default { " (the default)" } else { "" };
    page.add("model", [format!("{}{default}", agent.model)]);
    page.add("persona", [agent.persona.clone()]);
    let guard = agent.abilities.as_ref().map(|abilities| abilities.mode.to_string());
    page.add("guard mode", guard);
    page.add("tools", [agent.enabled_tools.join(" ")]);
    page.add("always asked", [agent.always_asked.join(" ")]);
    if let Some(abilities) = &agent.abilities {
        page.add("by itself", [abilities.automatic_tools.join(" ")]);
    }
    page.add("MCP tools", agent.mcp.iter().map(|AgentMcp { server, tools }| format!("{server}: {}", tools.join(" "))));
    page.add("directories", agent.mounts.iter().map(mount));
    page.add("packages", agent.packages.iter().flat_map(packages));
    if let Some(abilities) = &agent.abilities {
        add_abilities(&mut page, &agent.name, abilities);
    }
    let roles = agent.roles.iter().map(|AgentMember { name, role, .. }| format!("{name} is {role}"));
    let access = if agent.roles.is_empty() { None } else { Some(roles.collect::<Vec<_>>().join(", ")) };
    page.add("access", [agent.access.to_string()].into_iter().chain(access));
    page.add(
        "channels",
        agent.wirings.iter().map(|wiring| format!("{}: {}", wiring.channel, connection::rules(wiring))),
    );
    let added = clock::to_the_minute(&agent.created_at);
    page.add("id", [format!("{}, sessions: {}, added {added}", agent.id, agent.sessions)]);
    out.table(["AGENT", agent.name.as_str()], page.rows)
}

fn add_abilities(page: &mut Page, agent: &str, abilities: &AgentAbilities) {
    let AgentAbilities { hosts, destinations, groups, skills, schedules, allowances, ceilings, scopes, .. } = abilities;
    page.add("hosts", hosts.iter().map(host));
    page.add("sends to", destinations.iter().map(destination));
    page.add("groups", groups.iter().map(|found| group(agent, found)));
    page.add("skills", [skills.iter().map(skill).collect::<Vec<_>>().join(", ")]);
    page.add("schedules", schedules.iter().map(schedule));
    page.add("allowances", allowances.iter().filter(|one| one.status == AllowanceStatus::Active).map(allowance));
    page.add("ceilings", [budget(ceilings)]);
    page.add("asked by", scopes.iter().filter_map(scope));
}

fn mount(AgentMount { source, target, read_only, mine }: &AgentMount) -> String {
    let access = if *read_only { "read only" } else { "writable" };
    let own = match mine {
        None => String::new(),
        Some(OwnSource { person, lost: None }) => format!(", text of {person}"),
        Some(OwnSource { person, lost: Some(why) }) => format!(", no longer text of {person}: {why}"),
    };
    format!("{source} at {target}, {access}{own}")
}

fn packages(AgentPackages { apt, npm, pypi, made_at, .. }: &AgentPackages) -> Vec<String> {
    let named = [("apt", apt), ("npm", npm), ("pypi", pypi)];
    let mut lines: Vec<String> = named
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(of, names)| format!("{of}: {}", names.join(" ")))
        .collect();
    lines.push(format!("built {}", clock::to_the_minute(made_at)));
    lines
}

/// Formats a granted host: methods, paths, secret, and the use by commands.
fn host(grant: &EgressGrant) -> String {
    let EgressGrant { host, port, methods, paths, secret, commands, .. } = grant;
    let place = port.map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
    let paths = match (commands, paths.is_empty()) {
        (Some(Commands::Tunnel), _) => "paths not limited".to_owned(),
        (_, true) => "typed addresses".to_owned(),
        (_, false) => paths.join(" "),
    };
    let mut parts = vec![format!("{place} {}", methods.join(" ")).trim_end().to_owned(), paths];
    parts.extend(secret.as_ref().map(|secret| format!("secret:{secret}")));
    parts.extend(commands.map(|commands| format!("commands: {commands}")));
    if pushes(grant) {
        parts.push("push".to_owned());
    }
    parts.join(", ")
}

/// Returns whether commands may push to a repository of a host.
fn pushes(grant: &EgressGrant) -> bool {
    grant.commands.is_some() && grant.paths.iter().any(|path| path.ends_with("/git-receive-pack"))
}

fn destination(found: &Destination) -> String {
    let Destination { name, channel, address, thread, person, to_agent, state, .. } = found;
    let place = match (to_agent, thread) {
        (Some(agent), _) => format!("agent {agent}"),
        (None, Some(thread)) => format!("{channel}:{address}#{thread}"),
        (None, None) => format!("{channel}:{address}"),
    };
    let person = if person.is_empty() { String::new() } else { format!(" ({person})") };
    let state = if *state == DestinationState::Active { String::new() } else { format!(", {state}") };
    format!("{name}: {place}{person}{state}")
}

fn group(agent: &str, AgentGroup { name, agents, tools }: &AgentGroup) -> String {
    let others: Vec<&str> = agents.iter().map(String::as_str).filter(|other| *other != agent).collect();
    let tools = if tools.is_empty() { String::new() } else { format!("; at their request: {}", tools.join(" ")) };
    format!("{name}, with {}{tools}", others.join(" "))
}

fn skill(InstalledSkill { name, version, state, pinned, .. }: &InstalledSkill) -> String {
    let state = if *state == SkillTrust::Trusted { String::new() } else { format!(" ({state})") };
    format!("{name} {version}{}{state}", if *pinned { " (pinned)" } else { "" })
}

fn schedule(found: &ScheduleView) -> String {
    let ScheduleView { id, name, recurrence, may, flows, reply_to, .. } = found;
    let state = state_in_words(found);
    let may = if may.is_empty() { "read".to_owned() } else { format!("read {}", may.join(" ")) };
    let from = |from: &[String]| if from.is_empty() { "no directory".to_owned() } else { from.join(" ") };
    let sends: String =
        flows.iter().map(|flow| format!(", sends text of {} to {}", from(&flow.from), flow.to)).collect();
    format!("{name} ({id}) {recurrence}, {state}, may {may}, to {reply_to}{sends}")
}

fn allowance(one: &Allowance) -> String {
    let until = clock::to_the_minute(&one.expires_at);
    let tools = allowance::tools(one);
    format!("{}: {tools} for {}, {} of {} calls until {until}", one.id, one.person, one.used, one.count)
}

fn budget(AgentBudget { tokens_per_day, cost_per_day_micros }: &AgentBudget) -> String {
    let tokens = tokens_per_day.map(|tokens| format!("tokens a day {tokens}"));
    let cost = cost_per_day_micros.map(|cost| format!("cost a day {}", usage::money(cost)));
    tokens.into_iter().chain(cost).collect::<Vec<_>>().join(", ")
}

/// Formats the classes that a kind of principal may ask for; `None` for a text without a seal, which no person sent.
fn scope(AgentScope { principal, may, unasked }: &AgentScope) -> Option<String> {
    let by_word = joined(may.iter().filter(|class| !unasked.contains(class)), " ");
    let more = if by_word.is_empty() { String::new() } else { format!("; by their words {by_word}") };
    match principal {
        Principal::Unsigned => None,
        Principal::Agent if may.is_empty() => Some("an agent: nothing but the tools of its group".to_owned()),
        Principal::Agent => Some(format!("an agent: {}{more}; and the tools of its group", joined(unasked, " "))),
        Principal::Schedule => Some(format!("a schedule: {}{more}; and its list", joined(unasked, " "))),
        Principal::Person | Principal::Guest if may.is_empty() => Some(format!("a {principal}: nothing")),
        Principal::Person | Principal::Guest => Some(format!("a {principal}: {}{more}", joined(unasked, " "))),
    }
}
