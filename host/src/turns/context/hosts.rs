//! The paragraph about the hosts of the network that an agent has, for its model: methods, paths, and the tool for each.
//!
//! Never names a secret. Bounded, and the same in each prompt until a grant changes. See [`crate::registry::egress`].

use crate::registry::egress;
use crate::registry::tools::catalogue::Catalogue;
use crate::registry::tools::{GIT_PUSH, HTTP_FETCH, NETWORK_COMMAND};
use ironclaw_contract::ids::AgentId;
use ironclaw_judge::egress::{Commands, Grant, Loopback, PLAIN};
use ironclaw_state::ReadTx;
use std::collections::BTreeMap;

/// Bytes of the lines about all hosts.
const LINES_BYTES_MAX: usize = 2 * 1024;

/// Paths of one host in its line.
const PATHS_SHOWN_MAX: usize = 8;

/// The port that a line leaves out.
const HTTPS_PORT: u16 = 443;

/// Ends of the addresses of a repository of git; the third one is for pushes.
const GIT_SERVICES: [&str; 4] = [
    "/info/refs?service=git-upload-pack",
    "/git-upload-pack",
    "/git-receive-pack",
    "/info/refs?service=git-receive-pack",
];
const GIT_RECEIVES: &str = GIT_SERVICES[2];

/// Returns the paragraph; `None` if no tool of the agent reaches a host.
pub(super) fn paragraph(
    tx: &ReadTx<'_>,
    agent: AgentId,
    loopback: Loopback,
    catalogue: &Catalogue,
) -> Result<Option<String>, ironclaw_state::Error> {
    let reaches = |tool: &str| catalogue.missing(tool).is_none();
    if !reaches(HTTP_FETCH) && !reaches(NETWORK_COMMAND) {
        return Ok(None);
    }
    let grants = egress::grants_of(tx, agent, loopback)?;
    let lines: Vec<String> = grants.iter().filter_map(|grant| line(grant, reaches)).collect();
    if lines.is_empty() {
        return Ok(None);
    }
    let mut said = "Hosts of the network that people granted to you:".to_owned();
    for (at, line) in lines.iter().enumerate() {
        if said.len() + line.len() > LINES_BYTES_MAX {
            said.push_str(&format!("\n- and {} more", lines.len() - at));
            break;
        }
        said.push_str(line);
    }
    Ok(Some(said))
}

/// Returns the line of a host; `None` if no tool of the agent reaches it.
fn line(grant: &Grant, reaches: impl Fn(&str) -> bool) -> Option<String> {
    let by_commands = grant.commands().is_some() && reaches(NETWORK_COMMAND);
    let by_requests = !grant.is_tunnel() && reaches(HTTP_FETCH);
    let tools = [(by_requests, HTTP_FETCH), (by_commands, NETWORK_COMMAND)];
    let tools: Vec<&str> = tools.into_iter().filter(|(has, _)| *has).map(|(_, tool)| tool).collect();
    if tools.is_empty() {
        return None;
    }
    let shown = if grant.is_plain() { format!("{PLAIN}{}", grant.host()) } else { grant.host().to_string() };
    let port = if grant.port() == HTTPS_PORT { String::new() } else { format!(":{}", grant.port()) };
    let mut line = format!("\n- {shown}{port} with {}: ", tools.join(" and "));
    line.push_str(&match grant.commands() {
        Some(Commands::Tunnel) => "TLS connections of commands".to_owned(),
        Some(Commands::Git) => repositories(grant, by_commands && reaches(GIT_PUSH)),
        Some(Commands::Npm | Commands::Pip | Commands::Other) | None => requests(grant),
    });
    Some(line)
}

/// Returns the methods and paths of a grant.
fn requests(grant: &Grant) -> String {
    let methods: Vec<String> = grant.methods().iter().map(ToString::to_string).collect();
    let paths: Vec<String> = grant.paths().iter().map(ToString::to_string).collect();
    match paths.is_empty() {
        true => format!("{} of whole addresses that a person typed", methods.join(" ")),
        false => format!("{} of {}", methods.join(" "), shortened(&paths)),
    }
}

/// Returns the repositories of a grant for git, each with the tool that pushes to it.
fn repositories(grant: &Grant, pushes: bool) -> String {
    // Whether a push to it is granted.
    let mut found: BTreeMap<String, bool> = BTreeMap::new();
    for path in grant.paths().iter().map(ToString::to_string) {
        let Some((repository, service)) =
            GIT_SERVICES.into_iter().find_map(|service| Some((path.strip_suffix(service)?, service)))
        else {
            return requests(grant);
        };
        *found.entry(repository.to_owned()).or_default() |= service == GIT_RECEIVES;
    }
    let shown: Vec<String> = found
        .into_iter()
        .map(|(repository, receives)| match receives && pushes {
            true => format!("{repository} (also {GIT_PUSH})"),
            false => repository,
        })
        .collect();
    format!("git repositories {}", shortened(&shown))
}

fn shortened(all: &[String]) -> String {
    match all.len().checked_sub(PATHS_SHOWN_MAX) {
        Some(more @ 1..) => format!("{}, and {more} more", all[..PATHS_SHOWN_MAX].join(", ")),
        Some(0) | None => all.join(", "),
    }
}
