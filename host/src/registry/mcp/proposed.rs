//! The manifests that the host proposes for the last listing of a server.
//!
//! Permits nothing: people confirm them. A tool that the server did not change keeps the manifest that people confirmed. See
//! [`ironclaw_judge::manifest::proposal`] and [`ironclaw_judge::manifest::template`].

use super::place::{Place, url_origin};
use crate::registry::software::registry_names;
use ironclaw_contract::seam::change::McpRegister;
use ironclaw_judge::manifest::proposal::{Proposal, Reason, Surroundings, propose};
use ironclaw_judge::manifest::server::{Loosening, Tools, fitting_manifests};
use ironclaw_judge::manifest::template::{self, Identity, Template};
use ironclaw_judge::manifest::{Manifest, text};
use ironclaw_operator::McpListed;
use ironclaw_store::tables::mcp::Server;
use ironclaw_store::tables::mcp::listing::Listing;
use serde_json::Value;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::slice;

/// The proposed manifests, by the names of the tools on the server.
pub struct Proposed<'a> {
    pub manifests: BTreeMap<String, Manifest>,
    known: Known<'a>,
    reasons: BTreeMap<String, Vec<Reason>>,
    /// The names of the tools that the server lists as people confirmed them.
    held: BTreeSet<String>,
}

/// The relation of a server to the templates.
#[derive(Debug, Clone, Copy)]
pub enum Likeness {
    /// It is the server of this template, by its package or its origin.
    Known(&'static Template),
    /// It lists tools of this template, and is another server: it gets the strictest rules.
    LooksLike(&'static Template),
    Unknown,
}

impl Proposed<'_> {
    /// Returns the manifests as TOML; empty if the server lists no tool that an agent can get.
    pub fn text(&self) -> String {
        text::to_toml(&self.manifests)
    }

    /// Returns the relation of the server to the templates.
    pub fn likeness(&self) -> Likeness {
        self.known.likeness()
    }

    /// Returns whether a tool and its manifest are those that people confirmed.
    pub fn is_held(&self, tool: &str, manifest: &Manifest) -> bool {
        self.held.contains(tool) && self.manifests.get(tool) == Some(manifest)
    }

    /// Returns why a part of the manifest of a tool is looser than in the strictest one; `None` if the proposal does not have this part.
    pub fn reason(&self, tool: &str, part: &Loosening) -> Option<&str> {
        let reason = self.reasons.get(tool)?.iter().find(|reason| reason.part == *part)?;
        Some(&reason.because)
    }
}

/// Returns the proposal for the listing that the host saw last.
pub fn proposed<'a>(server: &'a Server, seen: &'a Listing, confirmed: Option<&Listing>) -> Proposed<'a> {
    let strict = Tools::strictest(server.name(), &seen.tools).manifests;
    let then = confirmed.map(|confirmed| confirmed.tools.as_slice()).unwrap_or_default();
    let mut held = fitting_manifests(server.name(), then, server.manifest.as_deref()).manifests;
    let entries = seen.by_name();
    let known = Known::new(&server.described, seen);
    let mut all = Proposed { manifests: BTreeMap::new(), known, reasons: BTreeMap::new(), held: BTreeSet::new() };
    for (tool, strict) in strict {
        let is_same = seen.beside(confirmed, &tool) == McpListed::Same;
        if let Some(manifest) = held.remove(&tool).filter(|_| is_same) {
            all.held.insert(tool.clone());
            all.manifests.insert(tool, manifest);
            continue;
        }
        match entries.get(tool.as_str()).and_then(|entry| all.known.propose(&strict, entry)) {
            Some(Proposal { manifest, reasons }) => {
                all.reasons.insert(tool.clone(), reasons);
                all.manifests.insert(tool, manifest);
            }
            None => drop(all.manifests.insert(tool, strict)),
        }
    }
    all
}

/// Returns the manifest that the host proposes for one tool of a listing, as if people had confirmed none; `None` for a tool that no agent
/// can get, and for a server that only looks like one of a template.
pub(super) fn anew(server: &Server, listing: &Listing, tool: &str) -> Option<Manifest> {
    let entry = *listing.by_name().get(tool)?;
    let strict = Tools::strictest(server.name(), slice::from_ref(entry)).manifests.remove(tool)?;
    Known::new(&server.described, listing).propose(&strict, entry).map(|proposal| proposal.manifest)
}

/// What a proposal reads about a server, each part found when a tool needs it.
struct Known<'a> {
    described: &'a McpRegister,
    listing: &'a Listing,
    likeness: OnceCell<Likeness>,
}

impl<'a> Known<'a> {
    const fn new(described: &'a McpRegister, listing: &'a Listing) -> Self {
        Self { described, listing, likeness: OnceCell::new() }
    }

    fn likeness(&self) -> Likeness {
        *self.likeness.get_or_init(|| match template_of(self.described) {
            Some(known) => Likeness::Known(known),
            None => template::resembled(&self.listing.tools).map_or(Likeness::Unknown, Likeness::LooksLike),
        })
    }

    /// Returns the proposal for a tool; `None` if the server only looks like one of a template.
    fn propose(&self, strict: &Manifest, entry: &Value) -> Option<Proposal> {
        let template = match self.likeness() {
            Likeness::Known(template) => Some(template),
            Likeness::Unknown => None,
            Likeness::LooksLike(_) => return None,
        };
        Some(propose(strict, entry, surroundings(self.described), template))
    }
}

/// Returns the surroundings of a server. A credential of people says that it acts on an account of them.
fn surroundings(described: &McpRegister) -> Surroundings {
    let has_secret = described.environment.iter().any(|variable| variable.secret.is_some());
    let has_credential = !described.headers.is_empty() || described.oauth.is_some() || has_secret;
    match (Place::for_description(described).has_network(), has_credential) {
        (false, _) => Surroundings::Jail,
        (true, true) => Surroundings::Account,
        (true, false) => Surroundings::Public,
    }
}

/// Returns the template of a registered server.
fn template_of(described: &McpRegister) -> Option<&'static Template> {
    let packages = registry_names(&described.packages);
    let variables: Vec<String> = described.environment.iter().map(|one| one.variable.clone()).collect();
    let origin = described.url.as_deref().map(url_origin);
    let program = described.command.first().map(String::as_str);
    template::known(&Identity { packages: &packages, program, variables: &variables, origin: origin.as_deref() })
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
            mine: BTreeMap::new(),
        }
    }

    const LISTED: &str = r#"[{"name":"list_notes","inputSchema":{"type":"object","properties":{"limit":{"type":"integer"}}}},
        {"name":"send_note","inputSchema":{"type":"object","properties":{"to":{"type":"string"}}}}]"#;

    #[test]
    fn template_is_found_by_the_package_in_each_form() {
        let template = |packages: Value, program: &str| {
            let described = json!({ "name": "n", "command": [program], "packages": packages });
            let described: McpRegister = serde_json::from_value(described).expect("a server");
            template_of(&described).map(Template::name)
        };
        for text in ["mcp-server-git", "mcp-server-time[extra]==1.0", "mcp-server-times", "mcp-server-time @ http://x"]
        {
            assert_ne!(template(json!({ "pypi": [text] }), "mcp-server-git"), Some("time"), "{text}");
        }
        for text in
            ["@other/context7-mcp", "@upstash/context7-mcp-x@1.0.0", "context7-mcp", "x@npm:@upstash/context7-mcp"]
        {
            assert_eq!(template(json!({ "npm": [text] }), "context7-mcp"), None, "{text}");
        }
        for text in ["@upstash/context7-mcp", "@upstash/context7-mcp@3.2.5", "@upstash/context7-mcp@latest"] {
            assert_eq!(template(json!({ "npm": [text] }), "context7-mcp"), Some("context7"), "{text}");
        }
        for text in ["mcp-server-time", "MCP_Server.time", "mcp-server-time==2026.1.1", "mcp-server-time[extra]==1.0"] {
            assert_eq!(template(json!({ "pypi": [text] }), "mcp-server-time"), Some("time"), "{text}");
        }
    }

    #[test]
    fn unchanged_tool_keeps_what_people_confirmed() {
        let (seen, described) = (listing(LISTED), json!({"name": "n", "url": "https://x/"}));
        let new = server(&described, None, None);
        let first = proposed(&new, &seen, None);
        assert_eq!(first.manifests["list_notes"].class, Class::Read);
        assert!(
            first.reason("list_notes", &Loosening::Class(Class::Read)).is_some()
                && first.reason("send_note", &Loosening::Class(Class::Send)).is_none()
        );
        // People chose the strictest rules for it.
        let kept = server(&described, None, Some(&seen));
        let strict = proposed(&kept, &seen, Some(&seen));
        assert_eq!(strict.manifests["list_notes"].class, Class::Send);
        assert!(strict.manifests.iter().all(|(tool, manifest)| strict.is_held(tool, manifest)));
        let mut changed = seen.clone();
        changed.tools[0]["description"] = json!("other");
        let again = proposed(&kept, &changed, Some(&seen));
        assert_eq!(again.manifests["list_notes"].class, Class::Read);
        assert!(!again.is_held("list_notes", &again.manifests["list_notes"]));
        assert!(again.is_held("send_note", &again.manifests["send_note"]));
        assert!(strict.known.likeness.get().is_none() && again.known.likeness.get().is_some(), "only at need");
        assert!(matches!(again.likeness(), Likeness::Unknown));
    }
}
