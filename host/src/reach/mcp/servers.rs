//! The servers with their connections: one for each user, behind a lock of its own.
//!
//! Opens none. See [`crate::reach::mcp`].

use super::oauth::Logins;
use crate::reach::jail_network::{Fetchers, Gateway};
use crate::reach::mcp_jail::{DemoLayer, McpJails};
use crate::reach::packages::VerifiedLayers;
use crate::registry::latch::Latch;
use crate::registry::live_settings::Live;
use crate::registry::mcp::Registration;
use ironclaw_contract::ids::AgentId;
use ironclaw_jail::launcher::Jailed;
use ironclaw_mcp::Client;
use ironclaw_state::home::Home;
use ironclaw_state::keys::SecretText;
use ironclaw_store::record::Record;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

/// The user of a connection: a server at a URL has one for all agents, and a process is of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) server: String,
    pub(super) agent: Option<AgentId>,
}

/// The connection of one key, and its failures in a row.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) open: Option<Arc<Open>>,
    pub(super) failures: u32,
    pub(super) failed: Option<(String, Instant)>,
}

impl Slot {
    /// Ends the connection. A process has ended when this returns.
    pub(super) async fn end(&mut self) {
        if let Some(open) = self.open.take() {
            open.connected.end().await;
        }
    }
}

/// An open connection with the listing that it gave.
pub struct Open {
    pub(super) connected: Connected,
    pub(super) registration: Registration,
    pub(super) listed_at: AtomicI64,
    /// The time of the tokens of its requests.
    pub(super) login: Option<i64>,
    /// Whether the server refused the token.
    pub(super) is_refused: AtomicBool,
}

/// The connections to MCP servers.
pub struct Servers {
    /// The record of the catalogue.
    pub record: Arc<Record>,
    /// The directories of processes.
    pub home: Home,
    /// The emergency stop, during which no server is contacted.
    pub latch: Arc<Latch>,
    /// Make the jails of processes.
    pub jails: McpJails,
    /// Decide which directories may be mounted.
    pub settings: Arc<Live>,
    /// The layer of the bundled server.
    pub demo: DemoLayer,
    /// Layers of software that were verified since the host started.
    pub verified_layers: Arc<VerifiedLayers>,
    /// Send the requests of gateways.
    pub fetchers: Arc<Fetchers>,
    pub logins: Arc<Logins>,
    /// The connections by their users.
    pub slots: Slots,
    pub resolving: Resolving,
}

/// Lets one command at a time ask the registries of packages.
#[derive(Default)]
pub struct Resolving(pub(super) tokio::sync::Mutex<()>);

/// The connections of the servers, each behind a lock of its own.
#[derive(Default)]
pub struct Slots(pub(super) Mutex<HashMap<Key, Arc<tokio::sync::Mutex<Slot>>>>);

/// A connection, with the process that it keeps alive.
pub(super) struct Connected {
    pub(super) client: Client,
    pub(super) secrets: Vec<SecretText>,
    /// The network of its jail, if it has one.
    pub(super) gateway: Option<Gateway>,
    pub(super) jailed: Option<Jailed>,
}

impl Connected {
    /// Ends the process of the server, also under a call that runs.
    pub(super) async fn end(&self) {
        if let Some(jailed) = &self.jailed {
            jailed.kill();
            jailed.exited().await;
        }
    }
}
