//! The list of the tools of a server.
//!
//! Never leaves out a field of a tool, so that a pin can cover it. See [`crate::Client::list`].

use crate::server::ServerInfo;
use crate::{Error, Limits};
use serde_json::Value;
use std::collections::HashSet;

/// Bytes of the name of a tool.
const NAME_BYTES_MAX: usize = 128;
const PAGES_MAX: usize = 100;

/// One tool as the server lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool {
    /// The name: 1 to 128 bytes.
    pub name: String,
    /// The whole object of the server, with all fields, also those that this client does not know.
    pub listed: Value,
}

/// The tools of a server, of all pages, in the server's order. No name is twice in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    pub server: ServerInfo,
    pub tools: Vec<ListedTool>,
}

impl ListedTool {
    /// Returns the description, or an empty text.
    pub fn description(&self) -> &str {
        self.listed.get("description").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the schema of the arguments, which is an object.
    pub fn input_schema(&self) -> &Value {
        &self.listed["inputSchema"]
    }

    fn read(listed: Value) -> Result<Self, Error> {
        let name = listed.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let why = format!("the tool {name} has a name that is empty or over {NAME_BYTES_MAX} bytes");
            return Err(Error::Protocol(why));
        }
        if !listed.get("inputSchema").is_some_and(Value::is_object) {
            return Err(Error::Protocol(format!("the tool {name} has no object as inputSchema")));
        }
        Ok(Self { name, listed })
    }
}

/// The pages that were read.
pub(crate) struct Pages<'a> {
    limits: &'a Limits,
    tools: Vec<ListedTool>,
    names: HashSet<String>,
    bytes: usize,
    pages: usize,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(limits: &'a Limits) -> Self {
        Self { limits, tools: Vec::new(), names: HashSet::new(), bytes: 0, pages: 0 }
    }

    /// Adds a page, and returns the cursor of the next one.
    pub(crate) fn add(&mut self, mut page: Value) -> Result<Option<String>, Error> {
        self.pages += 1;
        self.bytes += page.to_string().len();
        if self.bytes > self.limits.listing_bytes_max {
            return Err(Error::TooLarge { bytes_max: self.limits.listing_bytes_max });
        }
        let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) else {
            return Err(Error::protocol("a page of the listing has no array of tools"));
        };
        let too_many = Error::TooManyTools { tools_max: self.limits.tools_max };
        if self.tools.len() + tools.len() > self.limits.tools_max {
            return Err(too_many);
        }
        for tool in tools {
            let tool = ListedTool::read(tool)?;
            if !self.names.insert(tool.name.clone()) {
                return Err(Error::DuplicateTool(tool.name));
            }
            self.tools.push(tool);
        }
        let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        if next.is_some() && self.pages >= PAGES_MAX { Err(too_many) } else { Ok(next) }
    }

    pub(crate) fn finish(self, server: ServerInfo) -> Listing {
        Listing { server, tools: self.tools }
    }
}
