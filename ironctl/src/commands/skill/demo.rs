//! `ironctl skill demo`: installs the skill that comes with the program, with a key and a source of the operator's own.
//!
//! Takes the steps that are missing and no other: a second run makes no second key.

use super::{failure, installed, key, verify};
use crate::at::At;
use crate::commands::skill::pack;
use crate::failure::Error;
use directories::BaseDirs;
use ironclaw_operator::{NewSkillKey, SkillSource, routes};
use ironclaw_skill::Package;
use ironclaw_skill::author::{self, SecretKey, bundled};
use ironclaw_skill::signature::PublicKey;
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the key and of the source at the host.
const OWN: &str = "own";

/// The agent that gets the skill.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl skill demo --agent assistant")]
pub struct Demo {
    /// Name of the agent
    #[arg(long, default_value = "assistant")]
    agent: String,
    /// Approve the change without a question
    #[arg(long)]
    yes: bool,
}

pub async fn run(at: &At, Demo { agent, yes }: Demo) -> Result<(), Error> {
    let (client, base) = (at.client()?, base()?);
    let public = own_key(at, &base)?;
    let id = PublicKey::parse(&public).map_err(|cause| failure::about(Path::new("the public key"), cause))?.id;
    let (name, directory) = publish(at, &base)?;
    let keys = client.call(routes::SKILL_KEYS, []).await?;
    if !keys.iter().any(|key| key.id == id) {
        let name = free_name(keys.iter().map(|key| key.name.as_str()));
        let key = NewSkillKey { name: name.clone(), key: public, skills: Vec::new() };
        client.post(routes::ADD_SKILL_KEY, [], &key).await?;
        at.out.remark(format!("signatures of the key {id} count at this host, as {name}"))?;
    }
    let location = directory.to_string_lossy().into_owned();
    let sources = client.call(routes::SKILL_SOURCES, []).await?;
    if !sources.iter().any(|source| source.location == location) {
        let name = free_name(sources.iter().map(|source| source.name.as_str()));
        client.post(routes::ADD_SKILL_SOURCE, [], &SkillSource { name: name.clone(), location }).await?;
        at.out.remark(format!("{} is a source of skills, as {name}", directory.display()))?;
    }
    installed::add(at, installed::Add::newest(name, agent, yes)).await
}

/// Returns the name for what is added, with a number if the operator has used it for something else.
fn free_name<'a>(taken: impl Iterator<Item = &'a str>) -> String {
    let taken: Vec<&str> = taken.collect();
    let numbered = (2..).map(|number| format!("{OWN}-{number}"));
    let mut names = std::iter::once(OWN.to_owned()).chain(numbered);
    names.find(|name| !taken.contains(&name.as_str())).expect("a list of names ends")
}

fn base() -> Result<BaseDirs, Error> {
    let unknown = || Error::failed("home_unknown", "cannot find a directory for the key: $HOME is not set");
    BaseDirs::new().ok_or_else(unknown)
}

/// Returns the text of the operator's public key. Makes the pair without a password if it is missing.
fn own_key(at: &At, base: &BaseDirs) -> Result<String, Error> {
    let secret = base.config_dir().join("ironclaw/skill.key");
    let public = secret.with_extension("pub");
    if secret.symlink_metadata().is_err() {
        let pair = author::generate_key(None).map_err(|cause| failure::about(&secret, cause))?;
        make_directory(secret.parent().expect("it has a directory"))?;
        pack::write_private(&secret, pair.secret.as_bytes())?;
        pack::write(&public, pair.public.as_bytes(), true)?;
        at.out.remark(format!("made key {} without a password: {}", pair.id, secret.display()))?;
    }
    key::text(&public)
}

/// Packs and signs the bundled skill into a directory of the operator, unless it is there. Returns its name and the directory.
fn publish(at: &At, base: &BaseDirs) -> Result<(String, PathBuf), Error> {
    let directory = base.data_dir().join("ironclaw/skills");
    make_directory(&directory)?;
    let scratch = std::env::temp_dir().join(format!("ironctl-demo-{}", std::process::id()));
    let failed = |cause| failure::about(Path::new("the bundled skill"), cause);
    let packed = bundled::write(&scratch).and_then(|()| author::pack(&scratch));
    // The system removes the rest of its temporary directory.
    let _ = fs::remove_dir_all(&scratch);
    let packed = packed.map_err(failed)?;
    let package = Package::read_from(packed.as_slice()).map_err(failed)?;
    let name = package.manifest.name.to_string();
    let file = directory.join(format!("{name}-{}.skill", package.manifest.version));
    if !verify::signature_of(&file).exists() {
        pack::write(&file, &packed, true)?;
        let secret = base.config_dir().join("ironclaw/skill.key");
        let text = key::text(&secret)?;
        if SecretKey::needs_password(&text) {
            let message = format!("{} has a password", secret.display());
            let hint = format!("sign it yourself: ironctl skill sign {}", file.display());
            return Err(Error::failed("skill_key_password", message).hinting(hint));
        }
        let key = SecretKey::parse(&text, None).map_err(|cause| failure::about(&secret, cause))?;
        verify::sign_with(&file, &package, &key, false)?;
        at.out.remark(format!("packed and signed {}", file.display()))?;
    }
    Ok((name, directory))
}

fn make_directory(path: &Path) -> Result<(), Error> {
    let failed = |cause| Error::failed("skill_file", format!("cannot make {}", path.display())).because(cause);
    fs::create_dir_all(path).map_err(failed)
}
