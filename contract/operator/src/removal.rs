//! The list of an uninstallation.
//!
//! Plain data of the offline command `ironclaw-host uninstall`, which `ironctl uninstall` reads. See [`crate`].

use serde::{Deserialize, Serialize};

/// The files of a host that an uninstallation removes, and those that it leaves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removal {
    /// The home, without links in its path.
    pub home: String,
    /// The paths to remove; the home is the last one.
    pub remove: Vec<RemovalPath>,
    /// The paths to leave, each with the reason.
    pub keep: Vec<RemovalPath>,
}

/// A path with its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovalPath {
    /// The path.
    pub path: String,
    /// A few words for the operator.
    pub what: String,
}
