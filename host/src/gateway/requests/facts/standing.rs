//! The facts that all calls with the same control fields have in common: those that an allowance is bound to.

use super::read::reached_at;
use super::{Reached, RegisteredChannel};
use crate::registry::mcp::{self, Registration};
use crate::registry::tools::catalogue::Terms;
use crate::registry::tools::{HTTP_FETCH, SEND_FILE, SEND_MESSAGE};
use crate::registry::{channels, destinations};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::AgentId;
use ironclaw_judge::egress::Loopback;
use ironclaw_state::{Error, ReadTx};
use serde::Serialize;
use serde_json::{Map, Value};

/// What stays the same in the facts of all calls with the same control fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The grant of the host of a request, with its secret.
    Host(Option<Box<Reached>>),
    /// The channel of a message.
    Channel(Option<RegisteredChannel>),
    /// The server of a tool.
    Server(Option<Box<Registration>>),
    /// Nothing beside the manifest of the tool.
    Tool,
}

impl Standing {
    /// Reads the standing facts of calls of an agent with these control fields.
    pub fn read(tx: &ReadTx<'_>, agent: AgentId, terms: &Terms, fields: &Map<String, Value>) -> Result<Self, Error> {
        if let Some(of_server) = &terms.of_server {
            return Ok(Self::Server(mcp::registration(tx, &of_server.server)?.map(Box::new)));
        }
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        match terms.manifest.name.as_str() {
            HTTP_FETCH => {
                // The setting decides if a grant counts, and not what it says.
                let loopback = Loopback::DangerousAllowed;
                Ok(Self::Host(reached_at(tx, agent, text("url"), loopback)?.map(Box::new)))
            }
            SEND_MESSAGE | SEND_FILE => {
                let found = destinations::find(tx, agent, text("to"))?;
                let channel = found.map(|found| channels::find(tx, &found.channel)).transpose()?.flatten();
                Ok(Self::Channel(channel.map(RegisteredChannel::from)))
            }
            _ => Ok(Self::Tool),
        }
    }

    /// Returns the digest of these facts with the manifest of the tool.
    pub fn digest(&self, terms: &Terms) -> Digest {
        Digest::of(&canonical::to_vec(&(terms.digest(), self)))
    }
}
