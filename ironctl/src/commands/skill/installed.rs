//! The skills of an agent: proposing one, another version or a removal, and looking at them.
//!
//! Sends names alone: the host resolves and verifies each skill. See [`crate::commands::propose`].

use crate::at::At;
use crate::client::Client;
use crate::commands::named_agent::NamedAgent;
use crate::commands::propose;
use crate::failure::Error;
use ironclaw_operator::{InstallSkill, InstalledSkill, PinSkill, RemoveSkill, SkillPackage, SubmittedChange, routes};
use serde_json::json;
use std::time::Duration;

/// The longest wait until a skill is installed: software that it needs is fetched first.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// A skill and the agent that is to have it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl skill add meeting-notes --agent assistant\n  ironctl skill add meeting-notes@1.0.0 --agent assistant --yes"
)]
pub struct Add {
    /// Name of the skill, with @VERSION for one version [default: the newest]
    #[arg(value_name = "NAME[@VERSION]")]
    skill: String,
    /// Name of the agent
    #[arg(long)]
    agent: String,
    /// The reason, for the people who decide
    #[arg(long, default_value = "")]
    reason: String,
    /// Approve the change without a question
    #[arg(long)]
    yes: bool,
}

impl Add {
    /// Returns the command for the newest version.
    pub fn newest(skill: String, agent: String, yes: bool) -> Self {
        Self { skill, agent, reason: String::new(), yes }
    }
}

/// Another version of a skill.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl skill upgrade meeting-notes --agent assistant\n  ironctl skill upgrade meeting-notes --agent assistant --to 1.0.0"
)]
pub struct Upgrade {
    /// Name of the skill
    name: String,
    /// Name of the agent
    #[arg(long)]
    agent: String,
    /// The version, also an older one [default: the newest]
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
    /// Approve the change without a question
    #[arg(long)]
    yes: bool,
}

/// A skill of an agent to remove.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl skill remove meeting-notes --agent assistant")]
pub struct Remove {
    /// Name of the skill
    name: String,
    /// Name of the agent
    #[arg(long)]
    agent: String,
    /// Approve the change without a question
    #[arg(long)]
    yes: bool,
}

/// The settings of a skill of an agent.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl skill set meeting-notes --agent assistant --pin")]
pub struct Set {
    /// Name of the skill
    name: String,
    /// Name of the agent
    #[arg(long)]
    agent: String,
    /// Keep it at its version
    #[arg(long, conflicts_with = "unpin", required_unless_present = "unpin")]
    pin: bool,
    /// Let it change its version again
    #[arg(long)]
    unpin: bool,
}

/// The skills of all agents, or of one.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl skill list\n  ironctl skill list assistant\n  ironctl skill list --agent assistant --outdated"
)]
pub struct List {
    #[command(flatten)]
    of: NamedAgent,
    /// Ask the sources, and list only the skills with a newer version
    #[arg(long)]
    outdated: bool,
}

/// One skill at the sources.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl skill show meeting-notes\n  ironctl skill show meeting-notes --version 1.0.0 --file SKILL.md"
)]
pub struct Show {
    /// Name of the skill
    name: String,
    /// The version [default: the newest]
    #[arg(long)]
    version: Option<String>,
    /// A file of the skill to print: a text of at most 64 KiB, such as SKILL.md
    #[arg(long)]
    file: Option<String>,
}

pub async fn add(at: &At, Add { skill, agent, reason, yes }: Add) -> Result<(), Error> {
    let (skill, version) = match skill.split_once('@') {
        Some((skill, version)) => (skill.to_owned(), Some(version.to_owned())),
        None => (skill, None),
    };
    let submitted = at
        .client()?
        .post(routes::INSTALL_SKILL, [], &InstallSkill { agent, skill, version, back: false, reason })
        .await;
    decide(at, submitted, yes).await
}

pub async fn upgrade(at: &At, Upgrade { name, agent, to, yes }: Upgrade) -> Result<(), Error> {
    let (client, back) = (at.client()?, to.is_some());
    if !installed(&client, Some(&agent), false).await?.iter().any(|skill| skill.name == name) {
        let message = format!("agent {agent} has no skill {name}");
        return Err(Error::failed("skill_unknown", message)
            .hinting(format!("add it: ironctl skill add {name} --agent {agent}")));
    }
    let wanted = InstallSkill { agent, skill: name, version: to, back, reason: String::new() };
    decide(at, client.post(routes::INSTALL_SKILL, [], &wanted).await, yes).await
}

pub async fn remove(at: &At, Remove { name, agent, yes }: Remove) -> Result<(), Error> {
    let submitted =
        at.client()?.post(routes::REMOVE_SKILL, [], &RemoveSkill { agent, skill: name, reason: String::new() }).await;
    decide(at, submitted, yes).await
}

async fn decide(at: &At, submitted: Result<SubmittedChange, Error>, yes: bool) -> Result<(), Error> {
    let decided = propose::decide_submitted(at, &at.client()?, submitted, yes, INSTALL_TIMEOUT).await?;
    let shown = decided.map(
        |change| json!({ "change": change.entry.id, "status": change.entry.status, "outcome": change.entry.outcome }),
    );
    at.out.json(&shown.unwrap_or(json!({ "change": null })))
}

pub async fn set(at: &At, Set { name, agent, pin, .. }: Set) -> Result<(), Error> {
    let skill = at.client()?.post(routes::PIN_SKILL, [], &PinSkill { agent, skill: name, pinned: pin }).await?;
    at.out.json(&skill)?;
    let said = if skill.pinned { "stays at" } else { "may change from" };
    at.out.line(format!("skill {} {said} version {}", skill.name, skill.version))
}

pub async fn list(at: &At, List { of, outdated }: List) -> Result<(), Error> {
    let mut skills = installed(&at.client()?, of.name().as_deref(), outdated).await?;
    if outdated {
        skills.retain(|skill| skill.newest.is_some());
    }
    let row = |skill: InstalledSkill| {
        let pinned = if skill.pinned { "pinned" } else { "" };
        [
            skill.agent,
            skill.name,
            skill.version,
            skill.newest.unwrap_or_default(),
            skill.signer,
            skill.state.to_string(),
            pinned.to_owned(),
        ]
    };
    at.out.list(
        skills,
        if outdated { "no newer versions" } else { "no skills" },
        ["AGENT", "NAME", "VERSION", "NEWEST", "SIGNER", "STATE", "PINNED"],
        row,
    )
}

async fn installed(client: &Client, agent: Option<&str>, newest: bool) -> Result<Vec<InstalledSkill>, Error> {
    client.query(routes::SKILLS, [], json!({ "agent": agent, "newest": newest })).await
}

pub async fn show(at: &At, Show { name, version, file }: Show) -> Result<(), Error> {
    let package = at.client()?.query(routes::SKILL, [&name], json!({ "version": version, "file": file })).await?;
    at.out.json(&package)?;
    let SkillPackage { name, version, signer, digest, source, description, files, grants, versions, text } = package;
    if let Some(file) = file {
        let Some(text) = text else {
            let message = format!("skill {name} {version} has no file {file} that is a text of at most 64 KiB");
            return Err(
                Error::failed("skill_file", message).hinting(format!("ironctl skill show {name} lists its files"))
            );
        };
        return at.out.line(text);
    }
    at.out.line(format!("{name} {version}: {description}"))?;
    at.out.line(format!("signed with the key {signer}; from the source {source}; {digest}"))?;
    at.out.line(format!("versions: {}", versions.join(", ")))?;
    at.out.line(format!("grants: {grants}"))?;
    let files = files.as_object().cloned().unwrap_or_default();
    at.out.table(
        ["FILE", "DIGEST"],
        files.into_iter().map(|(path, digest)| [path, digest.as_str().unwrap_or_default().to_owned()]),
    )
}
