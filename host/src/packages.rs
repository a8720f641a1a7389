//! Software in an agent's jail: fetched by the machine's own clients in a jail of their own, pinned by its digest, read-only.
//!
//! Never runs a script of a package, and never keeps a file that could reach out of the layer. Next: `packages::layer`.

use serde::Deserialize;

/// `[packages]`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}
