//! Software in an agent's jail: fetched by the machine's own clients in a jail of their own, pinned by its digest, read-only.
//!
//! Never runs a script of a package, and never keeps a file that could reach out of the layer. Next: `packages::layer`.

use crate::refusal::Refusal;
use ironclaw_contract::seam::change::Packages;
use serde::Deserialize;

/// `[packages]`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

/// Why software of these names is not fetched, if it is not.
pub fn refused(_config: &Config, _wanted: &Packages) -> Option<Refusal> {
    None
}

/// A layer.
#[derive(Debug)]
pub struct Layer {
    /// Its digest.
    pub digest: ironclaw_contract::canonical::Digest,
}

/// Fetches it.
pub async fn make(
    _launcher: &crate::launcher::Launcher,
    _home: &crate::home::Home,
    _config: &Config,
    _uids: Option<(u32, u32)>,
    _agent: ironclaw_contract::ids::AgentId,
    _change: ironclaw_contract::ids::ChangeId,
    _wanted: &Packages,
) -> Result<Layer, std::io::Error> {
    todo!("packages")
}
