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
