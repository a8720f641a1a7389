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
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::operator::DenialCode;
use ironclaw_skill::Manifest;
use ironclaw_store::record::Record;
use ironclaw_store::refusal::Refusal;
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
    /// The agents with a skill that an index revoked.
    revoked: UnboundedSender<AgentId>,
    /// Their receiver, until the daemon takes it.
    receiver: Mutex<Option<UnboundedReceiver<AgentId>>>,
}

impl Skills {
    /// Makes a resolver that has fetched nothing.
    pub fn new(record: Arc<Record>, settings: Arc<Live>, fetchers: Arc<Fetchers>, shelf: Arc<Shelf>) -> Self {
        let (at_once, for_agents) = (Semaphore::new(FETCHES_MAX), Semaphore::new(1));
        let (revoked, receiver) = unbounded_channel();
        let receiver = Mutex::new(Some(receiver));
        Self { record, settings, fetchers, shelf, at_once, for_agents, revoked, receiver }
    }

    /// Returns the agents whose sessions are to begin anew, because an index revoked one of their skills; once.
    pub fn take_revoked(&self) -> Option<UnboundedReceiver<AgentId>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns a text among the files of a resolved package; `None` for any other path, a long file, and one that is no text.
    pub async fn text(&self, digest: Digest, manifest: &Manifest, path: String) -> Option<String> {
        let shelf = manifest.files.contains_key(&path).then(|| Arc::clone(&self.shelf))?;
        let read = tokio::task::spawn_blocking(move || shelf.text(&digest, &path)).await;
        read.expect("reading a file does not panic")
    }
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
