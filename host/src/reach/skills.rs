//! Skills: fetched from the sources of the operator, verified, kept in the home, and shown to agents read-only.
//!
//! Never decides whether an agent gets a skill: the gateway does, and people. Runs nothing of a skill, and follows no redirect. A caller
//! can only name a skill: [`resolve`](Skills::resolve) is the only way from a name to a verified package.
//!
//! ```text
//! name ──source──▶ archive, signature ──verify──▶ Package row, directory ──gateway──▶ skill of an agent
//! ```

mod named;
mod resolve;
mod shelf;
mod source;
mod stock;
mod trust;

pub use named::{Wanted, named, resolved};
pub use shelf::Shelf;

use crate::reach::jail_network::Fetchers;
use crate::registry::live_settings::Live;
use crate::registry::{self, skills};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::AgentId;
use ironclaw_operator::{DamagedSkill, DenialCode};
use ironclaw_skill::Manifest;
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::refusal::Refusal;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Packages that are fetched at the same time.
const FETCHES_MAX: usize = 2;

/// Resolves names of skills to verified packages.
pub struct Skills {
    record: Arc<Record>,
    settings: Arc<Live>,
    fetchers: Arc<Fetchers>,
    /// The directories of verified packages.
    shelf: Arc<Shelf>,
    at_once: Semaphore,
    /// Agents wait for each other, and never keep a person from resolving.
    for_agents: Semaphore,
    /// The agents whose sessions a change of a package concerns.
    changed: UnboundedSender<Changed>,
    /// Their receiver, until the daemon takes it.
    receiver: Mutex<Option<UnboundedReceiver<Changed>>>,
}

/// An agent with a skill whose package changed on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// An index revoked it: the sessions begin anew without it.
    Revoked(AgentId),
    /// It was damaged and is whole again: the sessions that wait for it continue.
    Mended(AgentId),
}

impl Skills {
    /// Makes a resolver that has fetched nothing.
    pub fn new(record: Arc<Record>, settings: Arc<Live>, fetchers: Arc<Fetchers>, shelf: Arc<Shelf>) -> Self {
        let (at_once, for_agents) = (Semaphore::new(FETCHES_MAX), Semaphore::new(1));
        let (changed, receiver) = unbounded_channel();
        let receiver = Mutex::new(Some(receiver));
        Self { record, settings, fetchers, shelf, at_once, for_agents, changed, receiver }
    }

    /// Returns the agents whose sessions are to begin anew or to continue; once.
    pub fn take_changed(&self) -> Option<UnboundedReceiver<Changed>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Verifies the packages of all agents, and reports the agents whose skills are whole.
    pub async fn look_at_all(&self) -> Result<(), Error> {
        let (packages, agents) = self.record.state.read(in_use).await?;
        let shelf = Arc::clone(&self.shelf);
        let damaged = tokio::task::spawn_blocking(move || {
            shelf.refresh_damaged(&packages);
            shelf.damaged()
        });
        let damaged = damaged.await.expect("verifying a skill does not panic");
        for (agent, digests) in agents {
            if damaged.is_disjoint(&digests) {
                // The receiver ends with the host alone.
                let _ = self.changed.send(Changed::Mended(agent));
            }
        }
        Ok(())
    }

    /// Returns the damaged packages that agents have.
    pub async fn damaged(&self) -> Result<Vec<DamagedSkill>, Error> {
        let damaged = self.shelf.damaged();
        if damaged.is_empty() {
            return Ok(Vec::new());
        }
        let described = move |tx: &ReadTx<'_>| {
            let mut found = Vec::new();
            for digest in damaged {
                let Some(package) = skills::package_by_digest(tx, digest)? else { continue };
                let of = skills::agents_of_version(tx, &package.name, &package.version)?;
                let agents = of.into_iter().filter_map(|id| registry::agent_by_id(tx, id).transpose());
                let agents = agents.map(|agent| agent.map(|agent| agent.name)).collect::<Result<Vec<_>, _>>()?;
                if !agents.is_empty() {
                    found.push(DamagedSkill { name: package.name, version: package.version, agents });
                }
            }
            Ok(found)
        };
        self.record.state.read(described).await
    }

    /// Returns a text among the files of a resolved package; `None` for any other path, a long file, and one that is no text.
    pub async fn text(&self, digest: Digest, manifest: &Manifest, path: String) -> Option<String> {
        let shelf = manifest.files.contains_key(&path).then(|| Arc::clone(&self.shelf))?;
        let read = tokio::task::spawn_blocking(move || shelf.text(&digest, &path)).await;
        read.expect("reading a file does not panic")
    }
}

/// The packages that agents use, and the agents with the digests of their packages.
type InUse = (Vec<(Digest, Manifest)>, BTreeMap<AgentId, BTreeSet<Digest>>);

/// Returns the packages that agents use. One whose signature no longer counts is in no jail.
fn in_use(tx: &ReadTx<'_>) -> Result<InUse, Error> {
    let (mut packages, mut agents) = (Vec::new(), BTreeMap::<_, BTreeSet<_>>::new());
    for digest in skills::used(tx)? {
        let Some(package) = skills::package_by_digest(tx, digest)? else { continue };
        if skills::trust(tx, &package)? != skills::Trust::Trusted {
            continue;
        }
        for agent in skills::agents_of_version(tx, &package.name, &package.version)? {
            agents.entry(agent).or_default().insert(digest);
        }
        packages.push((digest, skills::manifest(&package)?));
    }
    Ok((packages, agents))
}

/// Converts the fault of a package into a refusal. `what` names the package in the host's words.
fn refused(what: &str, error: ironclaw_skill::Error) -> Refusal {
    use ironclaw_skill::Error;
    let code = match &error {
        Error::Manifest { .. } => DenialCode::SkillManifest,
        Error::Path { .. } => DenialCode::SkillPath,
        Error::File { .. } => DenialCode::SkillFile,
        Error::TooLarge(_) => DenialCode::SkillTooLarge,
        Error::Unsigned(_) => DenialCode::SkillUnsigned,
        Error::Signature(_) => DenialCode::SkillSignature,
        Error::Comment { .. } => DenialCode::SkillComment,
        Error::Io { .. } => DenialCode::SkillSourceFailed,
    };
    let message = match &error {
        // A path of the home is for the log alone.
        Error::Io { source, .. } => {
            tracing::error!(%error, "a package of a skill could not be read or stored");
            format!("{what}: it could not be read or stored: {source}")
        }
        error => format!("{what}: {error}"),
    };
    Refusal::new(code, message)
}
