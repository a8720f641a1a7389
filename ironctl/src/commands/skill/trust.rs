//! The sources of skills, and the keys whose signatures count.

use crate::at::At;
use crate::failure::Error;
use crate::local_file;
use clap::Subcommand;
use ironclaw_operator::{NewSkillKey, SkillKey, SkillSource, SkillVersion, routes};
use std::path::PathBuf;

/// Bytes of the file of a public key.
const KEY_BYTES_MAX: usize = 4 * 1024;

/// The verbs of `ironctl skill source`.
#[derive(Debug, Subcommand)]
pub enum SourceAction {
    /// Add a source of skills
    #[command(
        after_help = "Example:\n  ironctl skill source add own /srv/skills\n  ironctl skill source add team https://skills.example/"
    )]
    Add {
        /// Name of the source
        name: String,
        /// A directory of the host's machine, or an https URL of a directory with index.json
        location: String,
    },
    /// List the sources
    #[command(after_help = "Example:\n  ironctl skill source list")]
    List,
    /// Remove a source; skills that came from it stay
    #[command(after_help = "Example:\n  ironctl skill source remove team")]
    Remove {
        /// Name of the source
        name: String,
    },
}

/// The verbs of `ironctl skill key`.
#[derive(Debug, Subcommand)]
pub enum KeyAction {
    /// Trust a key of minisign
    #[command(
        after_help = "Example:\n  ironctl skill key add own ~/.config/ironclaw/skill.pub\n  ironctl skill key add ana ana.pub --skill weather,meeting-notes"
    )]
    Add {
        /// Name of the key
        name: String,
        /// The public key: a file such as minisign.pub
        file: PathBuf,
        /// The skills that it may sign [default: all]
        #[arg(long, value_delimiter = ',', value_name = "SKILL")]
        skill: Vec<String>,
    },
    /// List the keys
    #[command(after_help = "Example:\n  ironctl skill key list")]
    List,
    /// Remove a key that no installed skill needs
    #[command(after_help = "Example:\n  ironctl skill key remove ana")]
    Remove {
        /// Name or id of the key
        key: String,
    },
    /// Revoke a key for good; agents no longer use the skills that it signed
    #[command(after_help = "Example:\n  ironctl skill key revoke ana")]
    Revoke {
        /// Name or id of the key
        key: String,
    },
}

/// A version that is not used from now on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl skill revoke weather@1.2.0")]
pub struct Revoke {
    /// Name and version of the skill
    #[arg(value_name = "NAME@VERSION")]
    skill: String,
}

pub async fn source(at: &At, action: SourceAction) -> Result<(), Error> {
    let client = at.client()?;
    let sources = match action {
        SourceAction::Add { name, location } => {
            client.post(routes::ADD_SKILL_SOURCE, [], &SkillSource { name, location }).await?
        }
        SourceAction::Remove { name } => client.call(routes::REMOVE_SKILL_SOURCE, [&name]).await?,
        SourceAction::List => client.call(routes::SKILL_SOURCES, []).await?,
    };
    at.out.list(sources, "no sources", ["NAME", "LOCATION"], |source| [source.name, source.location])
}

pub async fn key(at: &At, action: KeyAction) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        KeyAction::Add { name, file, skill } => {
            let key = String::from_utf8_lossy(&local_file::read_regular(&file, KEY_BYTES_MAX)?).into_owned();
            let key = client.post(routes::ADD_SKILL_KEY, [], &NewSkillKey { name, key, skills: skill }).await?;
            at.out.result(&key, format!("signatures of the key {} ({}) count", key.name, key.id))
        }
        KeyAction::List => list_keys(at, client.call(routes::SKILL_KEYS, []).await?),
        KeyAction::Remove { key } => {
            let key = client.call(routes::REMOVE_SKILL_KEY, [&key]).await?;
            at.out.result(&key, format!("removed the key {} ({})", key.name, key.id))
        }
        KeyAction::Revoke { key } => {
            let key = client.call(routes::REVOKE_SKILL_KEY, [&key]).await?;
            at.out.result(&key, format!("revoked the key {} ({})", key.name, key.id))
        }
    }
}

fn list_keys(at: &At, keys: Vec<SkillKey>) -> Result<(), Error> {
    let row = |key: SkillKey| {
        let skills = if key.skills.is_empty() { "all".to_owned() } else { key.skills.join(", ") };
        let state = if key.revoked { "revoked" } else { "trusted" };
        [key.name, key.id, skills, state.to_owned()]
    };
    at.out.list(keys, "no keys", ["NAME", "ID", "SKILLS", "STATE"], row)
}

pub async fn revoke(at: &At, Revoke { skill }: Revoke) -> Result<(), Error> {
    let Some((skill, version)) = skill.split_once('@') else {
        return Err(Error::usage("the version is missing", "name the skill with its version: NAME@VERSION"));
    };
    let revoked = at
        .client()?
        .post(routes::REVOKE_SKILL, [], &SkillVersion { skill: skill.to_owned(), version: version.to_owned() })
        .await?;
    at.out.result(&revoked, format!("revoked skill {} {}", revoked.skill, revoked.version))
}
