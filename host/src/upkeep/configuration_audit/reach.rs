//! The findings about what each agent reaches: directories, hosts, commands, destinations, channels, skills, and its ceilings.
//!
//! Looks at each agent alone. Rights without a use are in [`super::unused`].

use super::{NewerSkill, Outside};
use crate::registry::tools::RUN_COMMAND;
use crate::registry::{self, Agent, Mode, destinations, egress, mcp, mounts, skills};
use crate::turns::budget::{self, book};
use ironclaw_contract::seam::change::{Egress, UnknownSenders};
use ironclaw_operator::{Commands, Finding, SkillTrust};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::tables::channels;
use std::net::IpAddr;

/// The methods that change nothing at a server.
const READING: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

/// Adds the findings about every agent.
pub(super) fn find(tx: &ReadTx<'_>, outside: &Outside<'_>, all: &mut Vec<Finding>) -> Result<(), Error> {
    for server in mcp::servers(tx)? {
        all.extend(in_local_network(None, server.name(), &server.addresses));
        if !server.mine.is_empty() && mcp::lost_declarations(tx, &server)?.is_none() {
            all.push(Finding::AnswersOwn {
                server: server.name().to_owned(),
                tools: server.mine.keys().cloned().collect(),
            });
        }
    }
    for channel in channels::all(tx)? {
        for own in channels::own_senders(tx, &channel.name)? {
            let person = registry::people::person_name(tx, own.person)?;
            all.push(Finding::SenderOwn { sender: format!("{}:{}", own.channel, own.sender), person });
        }
    }
    for agent in registry::agents(tx)? {
        find_reach(tx, &agent, all)?;
        find_skills(tx, &agent, outside.newer, all)?;
        let limits = budget::limits(&outside.settings.host_policy.budget, book::own(tx, agent.id)?);
        if !limits.iter().any(|limit| limit.ceiling.is_daily()) {
            all.push(Finding::CeilingMissing { agent: agent.name.clone() });
        }
    }
    Ok(())
}

fn find_reach(tx: &ReadTx<'_>, agent: &Agent, all: &mut Vec<Finding>) -> Result<(), ironclaw_state::Error> {
    let name = || agent.name.clone();
    if agent.mode != Mode::Enforce {
        all.push(Finding::ModeLowered { agent: name(), mode: agent.mode });
    }
    for channel in channels::heard_by(tx, agent.id)? {
        if channel.rules.unknown == UnknownSenders::Public {
            let sharing = channel.rules.sharing;
            all.push(Finding::StrangersHeard { agent: name(), channel: channel.name, sharing });
        }
    }
    let written = mounts::own::written(tx)?;
    for mount in mounts::list_for_agent(tx, agent.id)? {
        let directory = mount.source.display().to_string();
        if !mount.read_only {
            all.push(Finding::DirectoryWritable { agent: name(), directory });
        } else if mount.mine.is_some() && mounts::own::lost(&mount, &written).is_none() {
            all.push(Finding::DirectoryOwn { agent: name(), directory });
        }
    }
    for held in egress::egress_of(tx, agent.id)? {
        find_host(&agent.name, &held.granted, all);
        all.extend(in_local_network(Some(&agent.name), &held.host, &held.addresses));
    }
    if agent.enabled_tools.iter().any(|tool| tool == RUN_COMMAND) {
        all.push(Finding::CommandsEnabled { agent: name() });
    }
    for held in destinations::list_for_agent(tx, agent.id)? {
        let to = match held.to_agent {
            Some(_) => format!("agent {}", held.to_agent_name),
            None => held.recipient(),
        };
        all.push(Finding::DestinationHeld { agent: name(), name: held.name, to });
    }
    Ok(())
}

/// Returns the finding about a grant or an MCP server with addresses of the local network.
fn in_local_network(agent: Option<&str>, host: &str, addresses: &[IpAddr]) -> Option<Finding> {
    let (agent, host) = (agent.map(str::to_owned), host.to_owned());
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    (!addresses.is_empty()).then_some(Finding::LocalNetworkReached { agent, host, addresses })
}

/// Adds the widest finding about a granted host.
fn find_host(agent: &str, granted: &Egress, all: &mut Vec<Finding>) {
    let (agent, host) = (agent.to_owned(), granted.host.clone());
    let writing: Vec<String> =
        granted.methods.iter().filter(|method| !READING.contains(&method.as_str())).cloned().collect();
    let has_pushes = granted.paths.iter().any(|path| path.ends_with("/git-receive-pack"));
    let wide = granted.paths.iter().find(|path| is_wide(path));
    all.extend(match (granted.commands, wide) {
        (Some(Commands::Tunnel), _) => Some(Finding::TunnelOpen { agent, host }),
        (Some(Commands::Git), _) if has_pushes => Some(Finding::PushGranted { agent, host }),
        // The paths of package registries and repositories are those of the protocol.
        (Some(purpose @ (Commands::Git | Commands::Npm | Commands::Pip)), _) => {
            Some(Finding::CommandsReachHost { agent, host, purpose })
        }
        (_, _) if !writing.is_empty() => Some(Finding::HostWritable { agent, host, methods: writing }),
        (_, Some(path)) => Some(Finding::HostWide { agent, host, path: path.clone() }),
        (Some(purpose @ Commands::Other), None) => Some(Finding::CommandsReachHost { agent, host, purpose }),
        (None, None) => None,
    });
}

/// Returns whether most segments of a path are slots.
fn is_wide(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    let (slots, fixed): (Vec<&str>, Vec<&str>) =
        segments.partition(|segment| segment.starts_with('{') && segment.ends_with('}'));
    slots.len() > fixed.len()
}

fn find_skills(
    tx: &ReadTx<'_>,
    agent: &Agent,
    newer: &[NewerSkill],
    all: &mut Vec<Finding>,
) -> Result<(), ironclaw_state::Error> {
    for held in skills::list_for_agent(tx, agent.id)? {
        let (name, skill) = (agent.name.clone(), held.package.name.clone());
        let state = skills::trust(tx, &held.package)?;
        let newest = newer.iter().find(|newer| newer.agent == agent.id && newer.skill == skill);
        all.extend(match (state, newest) {
            (SkillTrust::Revoked | SkillTrust::KeyRevoked, _) => {
                Some(Finding::SkillUntrusted { agent: name, skill, state })
            }
            (SkillTrust::Trusted, Some(newest)) => Some(Finding::SkillOutdated {
                agent: name,
                skill,
                version: held.package.version,
                newest: newest.version.clone(),
                pinned: held.is_pinned,
            }),
            (SkillTrust::Trusted, None) => None,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns the finding about a grant, with the others of its fields in place.
    fn found(methods: &[&str], paths: &[&str], commands: Option<&str>) -> Option<String> {
        let payload = json!({ "host": "h.example", "methods": methods, "paths": paths, "commands": commands });
        let granted: Egress = serde_json::from_value(payload).expect("a grant");
        let mut all = Vec::new();
        find_host("a", &granted, &mut all);
        assert!(all.len() <= 1, "{all:?}");
        all.first().map(|finding| json!(finding)["finding"].as_str().expect("a word").to_owned())
    }

    #[test]
    fn widest_part_of_a_grant_is_its_finding() {
        for (methods, paths, commands, expected) in [
            (&["GET"][..], &["/notes/{id}"][..], None, None),
            (&["GET", "HEAD"], &[], None, None),
            (&["GET", "POST"], &["/notes"], None, Some("host_writable")),
            (&["DELETE"], &["/{id}"], None, Some("host_writable")),
            (&["GET"], &["/{crate}"], None, Some("host_wide")),
            (&["GET"], &["/docs/{page}", "/{a}/{b}?page={page}"], None, Some("host_wide")),
            (&["GET"], &["/"], None, None),
            (&[], &[], Some("tunnel"), Some("tunnel_open")),
            (&["GET", "POST"], &["/o/r/git-upload-pack", "/o/r/git-receive-pack"], Some("git"), Some("push_granted")),
            (&["GET", "POST"], &["/o/r/git-upload-pack"], Some("git"), Some("commands_reach_host")),
            (&["GET"], &["/{package}"], Some("npm"), Some("commands_reach_host")),
            (&["GET"], &["/simple"], Some("pip"), Some("commands_reach_host")),
            (&["GET"], &["/status"], Some("other"), Some("commands_reach_host")),
            (&["PUT"], &["/status"], Some("other"), Some("host_writable")),
        ] {
            assert_eq!(found(methods, paths, commands).as_deref(), expected, "{methods:?} {paths:?} {commands:?}");
        }
    }
}
