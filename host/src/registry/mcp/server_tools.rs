//! The tools of MCP servers that an agent has, computed once for each text of a listing.
//!
//! Each thread of the record keeps the tools of the servers that its transactions read. Its key is the content: a changed listing or a
//! changed manifest never gets the tools of another one, and each call reads the grant itself.

use super::listing::Listing;
use super::{Place, SERVERS_MAX, Server, find, grants_of, own_text, tools};
use crate::registry::skills;
use crate::registry::tools::catalogue::ServerTool;
use crate::registry::tools::levels;
use ironclaw_contract::ids::AgentId;
use ironclaw_judge::manifest::server::schema_for_model;
use ironclaw_state::ReadTx;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Bytes of the listings whose tools one thread keeps.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// The tools of one server, by their names on the server.
type Tools = Arc<BTreeMap<String, Arc<ServerTool>>>;

thread_local! {
    /// The tools of the servers that the transactions of this thread read.
    static KEPT: RefCell<Kept> = RefCell::default();
}

/// What the tools of a server follow from, beside its name.
#[derive(PartialEq, Eq)]
struct Texts {
    confirmed: String,
    seen: Option<String>,
    manifest: Option<String>,
    /// Whether an argument may leave this machine.
    has_network: bool,
}

impl Texts {
    /// Returns the texts of a server; `None` if people confirmed no listing.
    fn from_server(server: Server) -> Option<Self> {
        let has_network = Place::for_description(&server.described).has_network();
        let (confirmed, _) = server.confirmed?;
        Some(Self { confirmed, seen: server.seen.map(|(text, _)| text), manifest: server.manifest, has_network })
    }

    fn bytes(&self) -> usize {
        self.confirmed.len() + [&self.seen, &self.manifest].into_iter().flatten().map(String::len).sum::<usize>()
    }

    /// Computes the tools in the confirmed listing; none if the manifests do not fit it.
    fn tools(&self, server: &str) -> Result<BTreeMap<String, Arc<ServerTool>>, ironclaw_state::Error> {
        let confirmed = Listing::read(&self.confirmed)?;
        let seen = self.seen.as_deref().map(Listing::read).transpose()?.unwrap_or_default();
        let Ok(tools) = tools(server, &confirmed, self.manifest.as_deref()) else { return Ok(BTreeMap::new()) };
        let (listed, seen_tools) = (confirmed.by_name(), seen.by_name());
        let floored: Arc<[String]> = tools.floored_names().map(str::to_owned).collect();
        let has_results = tools.manifests.values().any(|manifest| !manifest.results.is_empty());
        let arguments = has_results.then(|| Arc::new(tools.arguments().collect::<BTreeSet<_>>()));
        let has_own = tools.manifests.values().any(|manifest| !manifest.mine.is_empty());
        let reading = has_own.then(|| Arc::new(tools.reading_arguments()));
        let tools = tools.for_network(self.has_network).manifests.into_iter().filter_map(|(tool, manifest)| {
            let one = listed.get(tool.as_str())?;
            let pin = confirmed.pin_of(one);
            let known = ServerTool {
                server: server.to_owned(),
                tool: tool.clone(),
                description: levels::harmless(Listing::description_of(one)),
                parameters: levels::harmless_schema(schema_for_model(&one["inputSchema"]).ok()?),
                manifest,
                floored: Arc::clone(&floored),
                arguments: arguments.clone(),
                reading: reading.clone(),
                is_current: seen_tools.get(tool.as_str()).is_some_and(|now| seen.pin_of(now) == pin),
                pin,
            };
            Some((tool, Arc::new(known)))
        });
        Ok(tools.collect())
    }
}

/// The tools of servers, by the name of the server.
#[derive(Default)]
struct Kept {
    servers: HashMap<String, (Texts, Tools)>,
    bytes: usize,
}

impl Kept {
    /// Returns the tools of a server with these texts.
    fn tools(&mut self, server: &str, texts: Texts) -> Result<Tools, ironclaw_state::Error> {
        if let Some((known, tools)) = self.servers.get(server)
            && *known == texts
        {
            return Ok(Arc::clone(tools));
        }
        let tools = Arc::new(texts.tools(server)?);
        if let Some((old, _)) = self.servers.remove(server) {
            self.bytes -= old.bytes();
        }
        if self.servers.len() >= SERVERS_MAX as usize || self.bytes + texts.bytes() > KEPT_BYTES_MAX {
            *self = Self::default();
        }
        self.bytes += texts.bytes();
        self.servers.insert(server.to_owned(), (texts, Arc::clone(&tools)));
        Ok(tools)
    }
}

/// Returns the reason why declarations that texts of a server are a person's have no effect.
pub fn lost_declarations(tx: &ReadTx<'_>, server: &Server) -> Result<Option<own_text::Lost>, ironclaw_state::Error> {
    let texts = Texts::from_server(server.clone());
    let tools = texts.map(|texts| KEPT.with_borrow_mut(|kept| kept.tools(server.name(), texts))).transpose()?;
    match tools.iter().flat_map(|tools| tools.values()).find_map(|tool| tool.reading.clone()) {
        Some(reading) => own_text::lost(tx, server, &reading),
        None => Ok(Some(own_text::Lost::Unfit)),
    }
}

/// Returns the tool with a manifest by which every call needs a person.
fn tightened(tool: &ServerTool) -> ServerTool {
    let mut tool = tool.clone();
    tool.manifest.always_ask = true;
    tool
}

/// Returns the tool of an agent with a name for a model.
pub fn tool_of(tx: &ReadTx<'_>, agent: AgentId, name: &str) -> Result<Option<Arc<ServerTool>>, ironclaw_state::Error> {
    Ok(tools_of(tx, agent)?.into_iter().find(|tool| tool.manifest.name == name))
}

/// Returns the tools of MCP servers that an agent has. A skill of the agent can only tighten a manifest.
pub(super) fn tools_of(tx: &ReadTx<'_>, agent: AgentId) -> Result<Vec<Arc<ServerTool>>, ironclaw_state::Error> {
    let grants = grants_of(tx, agent)?;
    if grants.is_empty() {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    let asked = skills::always_asked(tx, agent)?;
    for grant in grants {
        let Some(texts) = find(tx, &grant.server)?.and_then(Texts::from_server) else { continue };
        let tools = KEPT.with_borrow_mut(|kept| kept.tools(&grant.server, texts))?;
        all.extend(grant.tools.iter().filter_map(|tool| tools.get(tool)).map(|tool| {
            match asked.contains(&(grant.server.clone(), tool.tool.clone())) && !tool.manifest.always_ask {
                true => Arc::new(tightened(tool)),
                false => Arc::clone(tool),
            }
        }));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn texts(description: &str, seen: &str) -> Texts {
        let listing = |description: &str| {
            let tool = json!({ "name": "send", "description": description, "inputSchema": { "type": "object" } });
            Listing { era: "session".to_owned(), tools: vec![tool], ..Listing::default() }.text()
        };
        Texts { confirmed: listing(description), seen: Some(listing(seen)), manifest: None, has_network: false }
    }

    #[test]
    fn equal_texts_have_one_computation_and_changed_ones_another() {
        let mut kept = Kept::default();
        let first = kept.tools("s", texts("d", "d")).expect("valid");
        assert!(Arc::ptr_eq(&first, &kept.tools("s", texts("d", "d")).expect("valid")));
        assert_eq!((first["send"].is_current, first["send"].description.as_str()), (true, "d"));
        assert!(!kept.tools("s", texts("d", "other")).expect("valid")["send"].is_current);
        assert_eq!(kept.tools("s", texts("e", "e")).expect("valid")["send"].description, "e");
        assert_eq!(kept.tools("t", texts("d", "d")).expect("valid")["send"].manifest.name, "t__send");
        assert_eq!(kept.bytes, 2 * texts("d", "d").bytes());
    }

    #[test]
    fn kept_tools_have_bounds_in_number_and_bytes() {
        let mut kept = Kept::default();
        for number in 0..=SERVERS_MAX {
            kept.tools(&format!("s{number}"), texts("d", "d")).expect("valid");
        }
        assert_eq!((kept.servers.len(), kept.bytes), (1, texts("d", "d").bytes()));
        let long = "x".repeat(KEPT_BYTES_MAX / 3);
        kept.tools("long", texts(&long, &long)).expect("valid");
        kept.tools("longer", texts(&long, &long)).expect("valid");
        assert_eq!(kept.servers.len(), 1);
    }
}
