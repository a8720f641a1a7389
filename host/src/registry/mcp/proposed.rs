//! The manifests that the host proposes for the last listing of a server.
//!
//! Permits nothing: people confirm them. A tool that the server did not change keeps the manifest that people confirmed. See
//! [`ironclaw_judge::manifest::proposal`].

use super::listing::Listing;
use super::{Place, Server};
use ironclaw_judge::manifest::proposal::{Proposal, Reason, propose};
use ironclaw_judge::manifest::server::{Tools, fitting_manifests};
use ironclaw_judge::manifest::{Manifest, text};
use ironclaw_operator::McpListed;
use std::collections::{BTreeMap, BTreeSet};

/// The proposed manifests, by the names of the tools on the server.
#[derive(Debug, Clone, Default)]
pub struct Proposed {
    pub manifests: BTreeMap<String, Manifest>,
    reasons: BTreeMap<String, Vec<Reason>>,
    /// The names of the tools that the server lists as people confirmed them.
    held: BTreeSet<String>,
}

impl Proposed {
    /// Returns the manifests as TOML; empty if the server lists no tool that an agent can get.
    pub fn text(&self) -> String {
        text::to_toml(&self.manifests)
    }

    /// Returns whether a tool and its manifest are those that people confirmed.
    pub fn is_held(&self, tool: &str, manifest: &Manifest) -> bool {
        self.held.contains(tool) && self.manifests.get(tool) == Some(manifest)
    }

    /// Returns why a part of the manifest of a tool is looser than in the strictest one; `None` if the proposal does not have this part.
    pub fn reason(&self, tool: &str, part: &str) -> Option<&str> {
        let reason = self.reasons.get(tool)?.iter().find(|reason| reason.part == part)?;
        Some(&reason.because)
    }
}

/// Returns the proposal for the listing that the host saw last.
pub fn proposed(server: &Server, seen: &Listing, confirmed: Option<&Listing>) -> Proposed {
    let has_network = Place::for_description(&server.described).has_network();
    let strict = Tools::strictest(server.name(), &seen.tools).manifests;
    let then = confirmed.map(|confirmed| confirmed.tools.as_slice()).unwrap_or_default();
    let mut held = fitting_manifests(server.name(), then, server.manifest.as_deref()).manifests;
    let entries = seen.by_name();
    let mut all = Proposed::default();
    for (tool, strict) in strict {
        let is_same = seen.beside(confirmed, &tool) == McpListed::Same;
        if let Some(manifest) = held.remove(&tool).filter(|_| is_same) {
            all.held.insert(tool.clone());
            all.manifests.insert(tool, manifest);
        } else if let Some(entry) = entries.get(tool.as_str()) {
            let Proposal { manifest, reasons } = propose(&strict, entry, has_network);
            all.reasons.insert(tool.clone(), reasons);
            all.manifests.insert(tool, manifest);
        }
    }
    all
}
