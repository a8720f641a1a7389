//! The listing of an MCP server: what it says about itself and about its tools, and the pins of both.
//!
//! Pure. Nothing in a listing carries authority: people confirm it. See [`ironclaw_judge::manifest::server`] for the manifests.

use ironclaw_contract::canonical::Digest;
use ironclaw_contract::operator::McpListed;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Bytes of a description for a model.
const DESCRIPTION_BYTES_MAX: usize = 1024;

/// The listing of an MCP server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// The form of its protocol: `session` or `stateless`.
    pub era: String,
    /// Its instructions to clients, which no model gets.
    pub instructions: Option<String>,
    /// Its tools, each with all fields that the server lists.
    pub tools: Vec<Value>,
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

    pub fn tool(&self, name: &str) -> Option<&Value> {
        self.tools.iter().find(|tool| tool["name"] == name)
    }

    /// Returns the names of its tools.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().filter_map(|tool| tool["name"].as_str())
    }

    /// Returns its tools by name. Of two tools with one name it has the first.
    pub fn by_name(&self) -> BTreeMap<&str, &Value> {
        let mut all = BTreeMap::new();
        for tool in &self.tools {
            if let Some(name) = tool["name"].as_str() {
                all.entry(name).or_insert(tool);
            }
        }
        all
    }

    /// Returns the schemas of the arguments of its tools, by name.
    pub fn schemas(&self) -> BTreeMap<String, Value> {
        self.by_name().into_iter().map(|(name, tool)| (name.to_owned(), Self::schema_of(tool))).collect()
    }

    /// Returns the schema of the arguments of a listed tool; null if it has none.
    pub fn schema_of(tool: &Value) -> Value {
        tool["inputSchema"].clone()
    }

    /// Returns the description of the tool of this name, cut to its bound; empty if there is no such tool.
    pub fn description(&self, name: &str) -> String {
        self.tool(name).map(Self::description_of).unwrap_or_default().to_owned()
    }

    /// Returns the description of a listed tool, cut to its bound.
    pub fn description_of(tool: &Value) -> &str {
        let text = tool["description"].as_str().unwrap_or_default();
        &text[..text.floor_char_boundary(DESCRIPTION_BYTES_MAX)]
    }

    /// Returns how a tool of this listing compares with a confirmed one.
    pub fn beside(&self, confirmed: Option<&Self>, name: &str) -> McpListed {
        match confirmed.and_then(|confirmed| confirmed.pin(name)) {
            None => McpListed::New,
            Some(pin) if self.pin(name) == Some(pin) => McpListed::Same,
            Some(_) => McpListed::Changed,
        }
    }

    /// Returns the pin of a tool: everything that the server says about it, and about itself. `None` if it does not list the tool.
    pub fn pin(&self, name: &str) -> Option<Digest> {
        self.tool(name).map(|tool| self.pin_of(tool))
    }

    /// Returns the pin of a listed tool.
    pub fn pin_of(&self, tool: &Value) -> Digest {
        let parts = serde_json::json!([self.era, self.instructions, tool]);
        Digest::of(parts.to_string().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn listing() -> Listing {
        let tool = |name: &str| json!({"name": name, "description": "d", "inputSchema": {"type": "object"}});
        Listing { era: "session".to_owned(), instructions: None, tools: vec![tool("a"), tool("b")] }
    }

    #[test]
    fn pin_covers_each_field_of_its_tool_and_of_the_server() {
        let was = listing();
        let differs = |change: fn(&mut Listing)| {
            let mut now = listing();
            change(&mut now);
            (now.pin("a") != was.pin("a"), now.pin("b") != was.pin("b"), now.digest() != was.digest())
        };
        assert_eq!(differs(|now| now.tools[0]["description"] = "other".into()), (true, false, true));
        assert_eq!(differs(|now| now.tools[0]["inputSchema"]["title"] = "other".into()), (true, false, true));
        assert_eq!(differs(|now| now.tools[0]["annotations"] = json!({"readOnlyHint": true})), (true, false, true));
        assert_eq!(differs(|now| now.instructions = Some("do".into())), (true, true, true));
        assert_eq!(differs(|now| now.era = "stateless".into()), (true, true, true));
        assert_eq!(differs(|now| drop(now.tools.remove(0))), (true, false, true));
        assert_eq!(Listing::read(&was.text()).expect("reads back"), was);
    }

    #[test]
    fn long_description_is_cut_at_a_character() {
        let mut long = listing();
        long.tools[0]["description"] = "ä".repeat(DESCRIPTION_BYTES_MAX).into();
        assert!(Listing::description_of(&long.tools[0]).len() <= DESCRIPTION_BYTES_MAX);
        assert_eq!(Listing::description_of(&json!({})), "");
    }
}
