//! The tools of one agent, from all sources: those built into the host, and those of MCP servers.
//!
//! Never runs a tool. See [`crate::registry::mcp`], which reads the tools of servers.

use super::{HTTP_FETCH, Runs, Tool, UNHANDLED, builtin, find, offered};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::operator::DenialCode;
use ironclaw_judge::manifest::{self, Manifest};
use serde_json::Value;
use std::borrow::Cow;

/// A tool of an MCP server that an agent has.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTool {
    /// Name of the server.
    pub server: String,
    /// Its name on the server.
    pub tool: String,
    /// The confirmed description, which the server wrote.
    pub description: String,
    /// The confirmed schema of its arguments.
    pub parameters: Value,
    /// The confirmed manifest; its name is that of the tool for a model.
    pub manifest: Manifest,
    /// The pin of the confirmed listing.
    pub pin: Digest,
    /// True if the server lists the tool as people confirmed it.
    pub is_current: bool,
}

/// The tools of one agent.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    enabled: Vec<String>,
    of_servers: Vec<ServerTool>,
}

/// A tool by its source.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// Built into the host.
    BuiltIn(&'static Tool),
    /// Of an MCP server.
    Server(&'a ServerTool),
}

impl Source<'_> {
    /// Returns the place of execution.
    pub const fn runs(self) -> Runs {
        match self {
            Self::BuiltIn(tool) => tool.runs,
            Self::Server(_) => Runs::Await,
        }
    }
}

/// The terms on which people approve the calls of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// The manifest of the tool.
    pub manifest: Cow<'static, Manifest>,
    /// For a tool of an MCP server, its confirmed form.
    pub of_server: Option<OfServer>,
}

/// The confirmed form of a tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfServer {
    /// Name of the server.
    pub server: String,
    /// Its name on the server.
    pub tool: String,
    /// The pin of the confirmed listing.
    pub pin: Digest,
}

impl Terms {
    /// Returns the terms of a built-in tool.
    pub fn of_built_in(tool: &str) -> Option<Self> {
        manifest::built_in(tool).map(|manifest| Self { manifest: Cow::Borrowed(manifest), of_server: None })
    }

    /// Returns the digest of the manifest, and for a tool of a server also of its confirmed form.
    pub fn digest(&self) -> Digest {
        match &self.of_server {
            None => Digest::of(&canonical::to_vec(&*self.manifest)),
            Some(OfServer { server, tool, pin }) => {
                Digest::of(&canonical::to_vec(&(&*self.manifest, server, tool, pin)))
            }
        }
    }
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Offered<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its description.
    pub description: &'a str,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

impl Catalogue {
    /// Returns the catalogue of an agent with these enabled tools and these tools of servers.
    pub fn new(enabled: &[String], of_servers: Vec<ServerTool>) -> Self {
        Self { enabled: enabled.to_vec(), of_servers }
    }

    /// Returns the tool of a name. A built-in tool is there even if the agent does not have it.
    pub fn find(&self, name: &str) -> Option<Source<'_>> {
        let of_servers = || self.of_servers.iter().find(|tool| tool.manifest.name == name).map(Source::Server);
        find(name).map(Source::BuiltIn).or_else(of_servers)
    }

    /// Returns the manifest of a tool.
    pub fn manifest(&self, name: &str) -> Option<&Manifest> {
        match self.find(name)? {
            Source::BuiltIn(tool) => manifest::built_in(tool.name),
            Source::Server(tool) => Some(&tool.manifest),
        }
    }

    /// Returns the terms of a tool.
    pub fn terms(&self, name: &str) -> Option<Terms> {
        match self.find(name)? {
            Source::BuiltIn(tool) => Terms::of_built_in(tool.name),
            Source::Server(ServerTool { server, tool, pin, manifest, .. }) => Some(Terms {
                manifest: Cow::Owned(manifest.clone()),
                of_server: Some(OfServer { server: server.clone(), tool: tool.clone(), pin: *pin }),
            }),
        }
    }

    /// Returns the reason why the agent does not have a tool, or may not call it now.
    pub fn missing(&self, name: &str) -> Option<DenialCode> {
        match self.find(name) {
            Some(Source::Server(tool)) if tool.is_current => None,
            Some(Source::Server(_)) => Some(DenialCode::CallServerChanged),
            Some(Source::BuiltIn(tool)) if offered(&self.enabled).any(|offered| offered.name == tool.name) => None,
            Some(Source::BuiltIn(_)) | None => Some(DenialCode::CallToolNotEnabled),
        }
    }

    /// Returns the tools that a model sees.
    pub fn offered(&self) -> impl Iterator<Item = Offered<'_>> {
        let built_in = offered(&self.enabled).map(|tool| Offered {
            name: tool.name,
            description: tool.description,
            parameters: tool.parameters_for_model(),
        });
        let of_servers = self.of_servers.iter().filter(|tool| tool.is_current).map(|tool| Offered {
            name: &tool.manifest.name,
            description: &tool.description,
            parameters: tool.parameters.clone(),
        });
        built_in.chain(of_servers)
    }

    /// Returns whether the agent has a tool with an effect outside of the session, so that typed values matter.
    pub fn has_outward(&self) -> bool {
        !self.of_servers.is_empty() || self.enabled.iter().any(|name| name == HTTP_FETCH)
    }

    /// Returns the names of the built-in tools that the agent could have and does not have.
    pub fn lacking(&self) -> impl Iterator<Item = &'static str> {
        let has = |name: &str| self.enabled.iter().any(|enabled| enabled == name);
        builtin().iter().map(|tool| tool.name).filter(move |name| !UNHANDLED.contains(name) && !has(name))
    }
}
