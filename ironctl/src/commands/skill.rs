//! `ironctl skill`: installs skills for agents, manages sources and keys, and writes, checks, packs, signs and verifies skills.
//!
//! Never runs a script of a skill. The commands for authors need no host. See [`ironclaw_skill`].

mod demo;
mod failure;
mod import;
mod index;
mod installed;
mod key;
mod pack;
mod template;
mod trust;
mod verify;

use crate::at::At;
use crate::failure::Error;
use clap::Subcommand;
use std::path::PathBuf;

/// The verbs of `ironctl skill`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Propose to install a skill for an agent
    Add(installed::Add),
    /// Make a key, sign the skill that comes with ironctl, and install it for an agent
    Demo(demo::Demo),
    /// List the skills of all agents, or of one
    List(installed::List),
    /// Show a skill at the sources
    Show(installed::Show),
    /// Keep a skill of an agent at its version, or let it change
    Set(installed::Set),
    /// Propose another version of a skill, newer or with --to older
    Upgrade(installed::Upgrade),
    /// Propose to remove a skill with the grants that came with it
    Remove(installed::Remove),
    /// Add, list and remove sources
    #[command(subcommand, after_help = "Example:\n  ironctl skill source list")]
    Source(trust::SourceAction),
    /// Add, list, remove and revoke keys whose signatures count
    #[command(subcommand, after_help = "Example:\n  ironctl skill key list")]
    Key(trust::KeyAction),
    /// Revoke a version for good; agents no longer use it
    Revoke(trust::Revoke),
    /// Write the directory of a new skill
    #[command(after_help = "Example:\n  ironctl skill new meeting-notes")]
    New {
        /// Name of the skill: a-z, 0-9 and -
        name: String,
        /// Directory in which its directory is made [default: this one]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Look for errors and for text that people cannot see
    #[command(after_help = "Example:\n  ironctl skill lint meeting-notes")]
    Lint {
        /// Directory of the skill
        dir: PathBuf,
    },
    /// Pack a directory into one file; the same files always give the same bytes
    #[command(after_help = "Example:\n  ironctl skill pack meeting-notes --out meeting-notes-1.0.0.skill")]
    Pack {
        /// Directory of the skill
        dir: PathBuf,
        /// The file to write
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Replace the file
        #[arg(long)]
        force: bool,
    },
    /// Sign a package: writes FILE.minisig, which minisign can verify
    #[command(after_help = "Example:\n  ironctl skill sign meeting-notes-1.0.0.skill")]
    Sign {
        /// The package
        file: PathBuf,
        #[command(flatten)]
        key: key::Secret,
        /// Sign the bytes and not their hash, for verifiers before minisign 0.10
        #[arg(long)]
        legacy: bool,
    },
    /// Check a package, and its signature if --key names a public key
    #[command(
        after_help = "Example:\n  ironctl skill verify meeting-notes-1.0.0.skill --key skill.pub\n  ironctl skill verify meeting-notes-1.0.0.skill --json"
    )]
    Verify {
        /// The package; its signature is FILE.minisig
        file: PathBuf,
        /// File with the public key, or its line of base64
        #[arg(long, value_name = "PUB")]
        key: Option<String>,
    },
    /// Take over skills of others from a directory, a clone or an archive: pack and sign them as your own
    Import(import::Args),
    /// Make a key to sign skills with
    #[command(after_help = "Example:\n  ironctl skill keygen\n  ironctl skill keygen --out work.key --no-password")]
    Keygen {
        /// The file of the secret key; the public key gets the ending .pub [default: ~/.config/ironclaw/skill.key]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Do not encrypt the key
        #[arg(long)]
        no_password: bool,
    },
    /// Write and sign the index of a directory with packages, for publication
    Index(index::Args),
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
        Action::Add(add) => installed::add(at, add).await,
        Action::Demo(demo) => demo::run(at, demo).await,
        Action::List(list) => installed::list(at, list).await,
        Action::Show(show) => installed::show(at, show).await,
        Action::Set(set) => installed::set(at, set).await,
        Action::Upgrade(upgrade) => installed::upgrade(at, upgrade).await,
        Action::Remove(remove) => installed::remove(at, remove).await,
        Action::Source(action) => trust::source(at, action).await,
        Action::Key(action) => trust::key(at, action).await,
        Action::Revoke(revoke) => trust::revoke(at, revoke).await,
        Action::New { name, dir } => template::run(at, &name, dir),
        Action::Lint { dir } => pack::lint(at, &dir),
        Action::Pack { dir, out, force } => pack::run(at, &dir, &out, force),
        Action::Sign { file, key, legacy } => verify::sign(at, &file, &key, legacy),
        Action::Verify { file, key } => verify::run(at, &file, key.as_deref()),
        Action::Import(args) => import::run(at, &args),
        Action::Keygen { out, no_password } => key::generate(at, out, no_password),
        Action::Index(args) => index::run(at, &args),
    }
}
