//! The listing of an MCP server: what it says about itself and about its tools, and the pins of both.
//!
//! Pure. Nothing in a listing carries authority: people confirm it. See [`ironclaw_judge::manifest::server`] for the manifests.

use ironclaw_contract::canonical::Digest;
use ironclaw_judge::manifest::server::Tools;
use ironclaw_operator::McpListed;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The listing of an MCP server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// The form of its protocol: `session` or `stateless`.
    pub era: String,
    /// Its instructions to clients, which no model gets.
    pub instructions: Option<String>,
    /// Its tools, each with all fields that the server lists. An entry can be anything, and two can have one name.
    pub tools: Vec<Value>,
    /// Remarks of the host about the listing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

impl Listing {
    /// Reads the text of a record.
    ///
    /// # Errors
    /// Another text than [`Listing::text`] writes.
    pub fn read(text: &str) -> Result<Self, ironclaw_state::Error> {
        serde_json::from_str(text).map_err(|_| ironclaw_state::Error::Stored("the listing of an MCP server".to_owned()))
    }

    /// Returns its text with sorted keys, so that equal listings have equal texts.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("JSON with text as keys")
    }

    /// Returns the digest that a person confirms.
    pub fn digest(&self) -> Digest {
        Digest::of(self.text().as_bytes())
    }

    /// Returns the tool of this name; `None` if it is not listed, or listed twice.
    pub fn tool(&self, name: &str) -> Option<&Value> {
        let mut named = self.tools.iter().filter(|tool| tool["name"] == name);
        let first = named.next()?;
        named.next().is_none().then_some(first)
    }

    /// Returns whether it has an entry of this name.
    pub fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool["name"] == name)
    }

    /// Returns the names of its tools, each once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let mut all = BTreeSet::new();
        self.tools.iter().filter_map(|tool| tool["name"].as_str()).filter(move |name| all.insert(*name))
    }

    /// Returns its tools by name, without those of a name that is listed twice.
    pub fn by_name(&self) -> BTreeMap<&str, &Value> {
        let mut all: BTreeMap<&str, Option<&Value>> = BTreeMap::new();
        for tool in &self.tools {
            if let Some(name) = tool["name"].as_str() {
                all.entry(name).and_modify(|known| *known = None).or_insert(Some(tool));
            }
        }
        all.into_iter().filter_map(|(name, tool)| Some((name, tool?))).collect()
    }

    /// Returns the tools that agents of a server of this name can get, with the strictest manifests, and the others.
    pub fn strictest(&self, server: &str) -> Tools {
        Tools::strictest(server, &self.tools)
    }

    /// Returns the description of the tool of this name; empty if there is no such tool.
    pub fn description(&self, name: &str) -> &str {
        self.tool(name).map(Self::description_of).unwrap_or_default()
    }

    /// Returns the description of a listed tool.
    pub fn description_of(tool: &Value) -> &str {
        tool["description"].as_str().unwrap_or_default()
    }

    /// Returns how a tool of this listing compares with a confirmed one.
    pub fn beside(&self, confirmed: Option<&Self>, name: &str) -> McpListed {
        match confirmed.and_then(|confirmed| confirmed.pin(name)) {
            None => McpListed::New,
            Some(pin) if self.pin(name) == Some(pin) => McpListed::Same,
            Some(_) => McpListed::Changed,
        }
    }

    /// Returns whether it differs from a confirmed listing in the instructions at most, which no model gets.
    pub fn has_tools_of(&self, confirmed: &Self) -> bool {
        (&self.era, &self.tools, &self.remarks) == (&confirmed.era, &confirmed.tools, &confirmed.remarks)
    }

    /// Returns the pin of a tool: everything that the server says about it. `None` if it does not list the tool.
    pub fn pin(&self, name: &str) -> Option<Digest> {
        self.tool(name).map(|tool| self.pin_of(tool))
    }

    /// Returns the pin of a listed tool.
    pub fn pin_of(&self, tool: &Value) -> Digest {
        // Null is in the place of the instructions, so that pins of a server without them are as before.
        let parts = serde_json::json!([self.era, null, tool]);
        Digest::of(parts.to_string().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn listing() -> Listing {
        let tool = |name: &str| json!({"name": name, "description": "d", "inputSchema": {"type": "object"}});
        Listing { era: "session".to_owned(), tools: vec![tool("a"), tool("b")], ..Listing::default() }
    }

    #[test]
    fn pin_covers_each_field_of_its_tool_and_the_era() {
        let was = listing();
        let differs = |change: fn(&mut Listing)| {
            let mut now = listing();
            change(&mut now);
            (now.pin("a") != was.pin("a"), now.pin("b") != was.pin("b"), now.digest() != was.digest())
        };
        assert_eq!(differs(|now| now.tools[0]["description"] = "other".into()), (true, false, true));
        assert_eq!(differs(|now| now.tools[0]["inputSchema"]["title"] = "other".into()), (true, false, true));
        assert_eq!(differs(|now| now.tools[0]["annotations"] = json!({"readOnlyHint": true})), (true, false, true));
        assert_eq!(differs(|now| now.instructions = Some("do".into())), (false, false, true), "no model gets them");
        assert_eq!(differs(|now| now.era = "stateless".into()), (true, true, true));
        assert_eq!(differs(|now| drop(now.tools.remove(0))), (true, false, true));
        assert_eq!(differs(|now| now.tools.push(now.tools[0].clone())), (true, false, true));
        assert_eq!(differs(|now| now.remarks.push("page 2 is missing".to_owned())), (false, false, true));
        assert_eq!(Listing::read(&was.text()).expect("reads back"), was);
    }

    #[test]
    fn odd_entries_are_no_tools_of_others() {
        let mut odd = listing();
        odd.tools.extend([json!(3), json!({"name": 4}), json!({"name": "b", "description": "other"})]);
        assert_eq!(odd.names().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((odd.tool("b"), odd.has("b"), odd.by_name().len()), (None, true, 1));
        assert_eq!(odd.beside(Some(&listing()), "b"), McpListed::Changed);
        assert_eq!(odd.beside(Some(&listing()), "a"), McpListed::Same);
        assert_eq!((odd.description("b"), Listing::description_of(&json!({}))), ("", ""));
    }
}
