//! The places of software in a home: the layers of agents and of MCP servers, and the directories that servers write.
//!
//! Makes no directory. See [`super::Home`].

use super::{Home, Own};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::AgentId;
use std::path::PathBuf;

/// The owner of a layer of software.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LayerOwner {
    Agent(AgentId),
    /// The MCP server of this name.
    Server(String),
}

impl Home {
    /// Returns the directory of the layer of an owner with this digest; its `usr` is mounted over the machine's `/usr`.
    pub fn layer(&self, owner: &LayerOwner, digest: &Digest) -> PathBuf {
        self.layers_of(owner).join("layers").join(digest.to_string())
    }

    /// Returns the directory with the layers of an owner.
    pub fn layers_of(&self, owner: &LayerOwner) -> PathBuf {
        match owner {
            LayerOwner::Agent(agent) => self.agent(*agent),
            LayerOwner::Server(name) => self.mcp().join(name),
        }
    }

    /// Returns the directory of MCP servers. A backup has only the layers in it.
    pub fn mcp(&self) -> PathBuf {
        self.own(Own::Mcp)
    }

    /// Returns the directory of verified skills.
    pub fn skills(&self) -> PathBuf {
        self.own(Own::Skills)
    }

    /// Returns the directory that a process of an MCP server may write: one for each server and user.
    pub fn mcp_state(&self, server: &str, user: &str) -> PathBuf {
        self.mcp().join(server).join(user)
    }
}
