//! The bounds of a manifest. Those of a grant are the bounds of the change that gives it.

use super::{ENTRIES_MAX, Manifest, McpGrant, PERSONA_BYTES_MAX};
use crate::plain;
use ironclaw_contract::seam::change::{Change, EnabledTools, Schedule};
use ironclaw_contract::seam::egress::{Commands, Egress};

/// Bytes of the name of a server, a tool or a program.
const NAME_BYTES_MAX: usize = 128;
/// The tools that ask for skills: a skill that grants one would spread.
const INSTALL_SKILLS: [&str; 2] = ["skill_install", "request_capability_change"];

/// Checks all but the paths of the files.
pub(super) fn check(manifest: &Manifest) -> Result<(), String> {
    let grants = &manifest.grants;
    if let Some(persona) = &grants.persona {
        if persona.trim().is_empty() || persona.len() > PERSONA_BYTES_MAX {
            return Err(format!("grants.persona must have 1 to {PERSONA_BYTES_MAX} bytes"));
        }
        plain::check_lines(persona).map_err(|what| format!("grants.persona: {what}"))?;
    }
    names("grants.tools", &grants.tools)?;
    if let Some(tool) = grants.tools.iter().find(|tool| INSTALL_SKILLS.contains(&tool.as_str())) {
        return Err(format!("grants.tools: no skill may grant {tool}"));
    }
    count("grants.mcp", grants.mcp.len())?;
    once("grants.mcp", grants.mcp.iter().map(|mcp| &mcp.server))?;
    grants.mcp.iter().try_for_each(mcp)?;
    count("grants.egress", grants.egress.len())?;
    once("grants.egress", grants.egress.iter().map(|egress| (&egress.host, egress.port.unwrap_or(443))))?;
    grants.egress.iter().try_for_each(egress)?;
    count("grants.mounts", grants.mounts.len())?;
    once("grants.mounts", grants.mounts.iter().map(|mount| &mount.source))?;
    for mount in &grants.mounts {
        line("grants.mounts: source", &mount.source)?;
        line("grants.mounts: target", mount.target.as_deref().unwrap_or_default())?;
        if !mount.source.starts_with('/') || mount.source.split('/').any(|part| part == "..") {
            return Err("grants.mounts: source must be an absolute path without ..".to_owned());
        }
    }
    for (field, list) in [
        ("grants.packages.apt", &grants.packages.apt),
        ("grants.packages.npm", &grants.packages.npm),
        ("grants.packages.pypi", &grants.packages.pypi),
        ("needs.programs", &manifest.needs.programs),
    ] {
        names(field, list)?;
    }
    count("grants.schedules", grants.schedules.len())?;
    grants.schedules.iter().try_for_each(schedule)?;
    changes(manifest).into_iter().try_for_each(within_bounds)
}

/// Returns the changes that give its grants.
fn changes(manifest: &Manifest) -> Vec<Change> {
    let grants = manifest.grants.clone();
    let mut changes = vec![
        Change::EnabledTools(EnabledTools::All(grants.tools)),
        Change::Mounts(grants.mounts),
        Change::Packages(grants.packages),
    ];
    changes.extend(grants.egress.into_iter().map(Change::Egress));
    changes.extend(grants.schedules.into_iter().map(Change::Schedule));
    changes
}

fn within_bounds(change: Change) -> Result<(), String> {
    match Change::parse(change.kind(), &change.payload()) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("grants: {error}")),
    }
}

fn mcp(grant: &McpGrant) -> Result<(), String> {
    name("grants.mcp: server", &grant.server)?;
    if grant.tools.is_empty() {
        return Err(format!("grants.mcp: {:?} has no tools: name each tool", grant.server));
    }
    names("grants.mcp: tools", &grant.tools)?;
    names("grants.mcp: always_ask", &grant.always_ask)?;
    match grant.always_ask.iter().find(|tool| !grant.tools.contains(tool)) {
        Some(tool) => Err(format!("grants.mcp: always_ask names {tool:?}, which is not among its tools")),
        None => Ok(()),
    }
}

fn egress(egress: &Egress) -> Result<(), String> {
    line("grants.egress: host", &egress.host)?;
    for text in egress.methods.iter().chain(&egress.paths) {
        line("grants.egress: a method or path", text)?;
    }
    if egress.secret.is_some() {
        return Err("grants.egress: a skill names no secret: leave secret out".to_owned());
    }
    if egress.commands == Some(Commands::Tunnel) {
        return Err("grants.egress: a skill gets no tunnel: name methods and paths".to_owned());
    }
    if egress.removes() { Err("grants.egress: methods is empty: name each method".to_owned()) } else { Ok(()) }
}

fn schedule(schedule: &Schedule) -> Result<(), String> {
    let Schedule { id, name, prompt, cron, every, at, zone, may, flows, reply_to, from, creator, written_by, .. } =
        schedule;
    let given = [
        ("id", id.is_some()),
        // A flow is for the text of the person who adds it.
        ("flows", flows.is_some()),
        ("reply_to", reply_to.is_some()),
        ("from", from.is_some()),
        ("creator", creator.is_some()),
        ("written_by", written_by.is_some()),
    ];
    if let Some((field, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        return Err(format!("grants.schedules: a skill sets no {field}: leave it out"));
    }
    plain::check_lines(prompt.as_deref().unwrap_or_default())
        .map_err(|what| format!("grants.schedules: prompt: {what}"))?;
    for text in [name, cron, every, at, zone].into_iter().flatten() {
        line("grants.schedules: a name or time", text)?;
    }
    names("grants.schedules: may", may.as_deref().unwrap_or_default())
}

fn count(field: &str, entries: usize) -> Result<(), String> {
    if entries > ENTRIES_MAX { Err(format!("{field} has more than {ENTRIES_MAX} entries")) } else { Ok(()) }
}

fn once<T: Ord>(field: &str, entries: impl Iterator<Item = T>) -> Result<(), String> {
    let mut seen = std::collections::BTreeSet::new();
    for entry in entries {
        if !seen.insert(entry) {
            return Err(format!("{field} has an entry twice"));
        }
    }
    Ok(())
}

fn names(field: &str, list: &[String]) -> Result<(), String> {
    count(field, list.len())?;
    once(field, list.iter())?;
    list.iter().try_for_each(|entry| name(field, entry))
}

/// A name has no space, so that a page can show a list of names on one line.
fn name(field: &str, name: &str) -> Result<(), String> {
    line(field, name)?;
    match (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains(char::is_whitespace) {
        true => Ok(()),
        false => Err(format!("{field}: a name has 1 to {NAME_BYTES_MAX} bytes without spaces")),
    }
}

fn line(field: &str, text: &str) -> Result<(), String> {
    plain::check_line(text).map_err(|what| format!("{field}: {what}"))
}
