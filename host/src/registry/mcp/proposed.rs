//! The manifests that the host proposes for the last listing of a server.
//!
//! Permits nothing: people confirm them. A tool that the server did not change keeps the manifest that people confirmed. See
//! [`ironclaw_judge::manifest::proposal`] and [`ironclaw_judge::manifest::template`].

use ironclaw_contract::seam::change::McpRegister;
use ironclaw_judge::manifest::proposal::{Proposal, Reason, Surroundings, propose};
use ironclaw_judge::manifest::server::{Tools, fitting_manifests};
use ironclaw_judge::manifest::template::{self, Identity, Template};
use ironclaw_judge::manifest::{Manifest, text};
use ironclaw_operator::McpListed;
use ironclaw_store::tables::mcp::Server;
use ironclaw_store::tables::mcp::listing::Listing;
use std::collections::{BTreeMap, BTreeSet};

/// The proposed manifests, by the names of the tools on the server.
#[derive(Debug, Clone, Default)]
pub struct Proposed {
    pub manifests: BTreeMap<String, Manifest>,
    pub likeness: Likeness,
    reasons: BTreeMap<String, Vec<Reason>>,
    /// The names of the tools that the server lists as people confirmed them.
    held: BTreeSet<String>,
}

/// The relation of a server to the templates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Likeness {
    /// It is the server of this template, by its package or its origin.
    Known(&'static str),
    /// It lists tools of this template, and is another server: it gets the strictest rules.
    LooksLike(&'static str),
    #[default]
    Unknown,
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

/// Returns the proposal for the listing that the host saw last. `has_network` is true if the server reaches anything outside of its jail.
pub fn proposed(server: &Server, seen: &Listing, confirmed: Option<&Listing>, has_network: bool) -> Proposed {
    let known = template_of(&server.described);
    let likeness = match (known, template::resembled(&seen.tools)) {
        (Some(known), _) => Likeness::Known(known.name()),
        (None, Some(other)) => Likeness::LooksLike(other.name()),
        (None, None) => Likeness::Unknown,
    };
    let surroundings = surroundings(&server.described, has_network);
    let strict = Tools::strictest(server.name(), &seen.tools).manifests;
    let then = confirmed.map(|confirmed| confirmed.tools.as_slice()).unwrap_or_default();
    let mut held = fitting_manifests(server.name(), then, server.manifest.as_deref()).manifests;
    let entries = seen.by_name();
    let mut all = Proposed { likeness, ..Proposed::default() };
    for (tool, strict) in strict {
        let is_same = seen.beside(confirmed, &tool) == McpListed::Same;
        if let Some(manifest) = held.remove(&tool).filter(|_| is_same) {
            all.held.insert(tool.clone());
            all.manifests.insert(tool, manifest);
            continue;
        }
        let entry = entries.get(tool.as_str()).filter(|_| !matches!(likeness, Likeness::LooksLike(_)));
        let Some(entry) = entry else {
            all.manifests.insert(tool, strict);
            continue;
        };
        let Proposal { manifest, reasons } = propose(&strict, entry, surroundings, known);
        all.reasons.insert(tool.clone(), reasons);
        all.manifests.insert(tool, manifest);
    }
    all
}

/// Returns the surroundings of a server. A credential of people says that it acts on an account of them.
fn surroundings(described: &McpRegister, has_network: bool) -> Surroundings {
    let has_secret = described.environment.iter().any(|variable| variable.secret.is_some());
    let has_credential = !described.headers.is_empty() || described.oauth.is_some() || has_secret;
    match (has_network, has_credential) {
        (false, _) => Surroundings::Jail,
        (true, true) => Surroundings::Account,
        (true, false) => Surroundings::Public,
    }
}

/// Returns the template of a registered server.
fn template_of(described: &McpRegister) -> Option<&'static Template> {
    let named = |registry: &str, names: &[String]| -> Vec<String> {
        names.iter().map(|name| format!("{registry}:{}", without_version(name))).collect()
    };
    let software = &described.packages;
    let packages = [named("npm", &software.npm), named("pypi", &software.pypi), named("apt", &software.apt)].concat();
    let variables: Vec<String> = described.environment.iter().map(|one| one.variable.clone()).collect();
    let origin = described.url.as_ref().map(|url| url.split('/').take(3).collect::<Vec<_>>().join("/").to_lowercase());
    let program = described.command.first().map(String::as_str);
    template::known(&Identity { packages: &packages, program, variables: &variables, origin: origin.as_deref() })
}

/// Returns the name of a package without its version: `NAME@1.2.3`, `NAME==1.2.3` or `NAME=1.2.3`.
fn without_version(package: &str) -> &str {
    let name = package.split_once('=').map_or(package, |(name, _)| name);
    match name.rfind('@') {
        None | Some(0) => name,
        Some(at) => &name[..at],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_judge::Class;
    use serde_json::{Value, json};

    fn listing(text: &str) -> Listing {
        let tools: Vec<Value> = serde_json::from_str(text).expect("a listing");
        Listing { era: "session".to_owned(), tools, ..Listing::default() }
    }

    fn server(described: &Value, manifest: Option<&str>, confirmed: Option<&Listing>) -> Server {
        Server {
            described: serde_json::from_value(described.clone()).expect("a server"),
            layer: None,
            made_at: 0,
            seen: None,
            confirmed: confirmed.map(|listing| (listing.text(), 0)),
            manifest: manifest.map(str::to_owned),
            addresses: Vec::new(),
        }
    }

    const LISTED: &str = r#"[{"name":"list_notes","inputSchema":{"type":"object","properties":{"limit":{"type":"integer"}}}},
        {"name":"send_note","inputSchema":{"type":"object","properties":{"to":{"type":"string"}}}}]"#;

    #[test]
    fn versions_are_no_part_of_the_name_of_a_package() {
        for (package, name) in
            [("@a/b@1.2.3", "@a/b"), ("@a/b", "@a/b"), ("s@1", "s"), ("p==1.0", "p"), ("p", "p"), ("git=1:2.30", "git")]
        {
            assert_eq!(without_version(package), name);
        }
    }

    #[test]
    fn unchanged_tool_keeps_what_people_confirmed() {
        let (seen, described) = (listing(LISTED), json!({"name": "n", "url": "https://x/"}));
        let first = proposed(&server(&described, None, None), &seen, None, true);
        assert_eq!(first.manifests["list_notes"].class, Class::Read);
        assert!(
            first.reason("list_notes", "class read").is_some() && first.reason("send_note", "class send").is_none()
        );
        // People chose the strictest rules for it.
        let strict = proposed(&server(&described, None, Some(&seen)), &seen, Some(&seen), true);
        assert_eq!(strict.manifests["list_notes"].class, Class::Send);
        assert!(strict.manifests.iter().all(|(tool, manifest)| strict.is_held(tool, manifest)));
        let mut changed = seen.clone();
        changed.tools[0]["description"] = json!("other");
        let again = proposed(&server(&described, None, Some(&seen)), &changed, Some(&seen), true);
        assert_eq!(again.manifests["list_notes"].class, Class::Read);
        assert!(!again.is_held("list_notes", &again.manifests["list_notes"]));
        assert!(again.is_held("send_note", &again.manifests["send_note"]));
        assert_eq!(again.likeness, Likeness::Unknown);
    }
}
