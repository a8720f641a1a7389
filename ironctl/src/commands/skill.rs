//! `ironctl skill`: the skills of agents, their sources and keys, and the work of their authors.

mod installed;
mod trust;

use super::At;
use crate::failure::Error;
use clap::Subcommand;

/// The verbs of `ironctl skill`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Propose to install a skill for an agent
    Add(installed::Add),
    /// List the skills of an agent
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
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
        Action::Add(add) => installed::add(at, add).await,
        Action::List(list) => installed::list(at, list).await,
        Action::Show(show) => installed::show(at, show).await,
        Action::Set(set) => installed::set(at, set).await,
        Action::Upgrade(upgrade) => installed::upgrade(at, upgrade).await,
        Action::Remove(remove) => installed::remove(at, remove).await,
        Action::Source(action) => trust::source(at, action).await,
        Action::Key(action) => trust::key(at, action).await,
        Action::Revoke(revoke) => trust::revoke(at, revoke).await,
    }
}
