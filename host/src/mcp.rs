//! The connections to MCP servers: opened for a look or a call, listed again in time, and recorded for the comparison with what people
//! confirmed.
//!
//! Never decides about a call, and never sends one that nothing judged: the executor brings a judged call. A connection that failed is
//! tried again after a pause that grows. See [`crate::registry::mcp`] for the pins, and [`crate::mcp_jail`] for servers on this machine.

mod answer;
mod connect;

pub use answer::not_reached;

use crate::gateway::live_settings::Live;
use crate::latch::Latch;
use crate::mcp_jail::{DemoLayer, McpJails};
use crate::packages::VerifiedLayers;
use crate::record::Record;
use crate::refusal::{Denied, Refusal};
use crate::registry::mcp::{self, listing::Listing};
use crate::turns::calls::ResultBody;
use connect::{Connected, Failed};
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::{McpRegister, McpTool};
use ironclaw_mcp::CallLimits;
use ironclaw_model::backoff::Backoff;
use ironclaw_state::ReadTx;
use ironclaw_state::home::Home;
use ironclaw_state::keys::SecretText;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The longest time between a listing and a call that relies on it.
const LISTING_AGE_MAX_MS: i64 = 300_000;

/// The pauses between attempts to reach a server that failed.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), factor: 2, longest: Duration::from_secs(300) };

/// The user of a connection: a server at a URL has one for all agents, and a process is of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    server: String,
    agent: Option<AgentId>,
}

/// The connection of one key, and its failures in a row.
#[derive(Default)]
struct Slot {
    open: Option<Arc<Open>>,
    failures: u32,
    failed: Option<(String, Instant)>,
}

impl Slot {
    /// Ends the connection. A process has ended when this returns.
    async fn end(&mut self) {
        if let Some(open) = self.open.take() {
            open.connected.end().await;
        }
    }
}

/// An open connection with the listing that it gave.
pub struct Open {
    connected: Connected,
    described: McpRegister,
    listed_at: AtomicI64,
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
    /// The connections by their users.
    pub slots: Slots,
}

/// The connections of the servers, each behind a lock of its own.
#[derive(Default)]
pub struct Slots(Mutex<HashMap<Key, Arc<tokio::sync::Mutex<Slot>>>>);

impl Servers {
    /// Asks a server for its listing over a new connection, and records it.
    ///
    /// # Errors
    /// Refuses an unknown server, one that cannot be reached, and one that does not list the tools of its registration.
    pub async fn look(&self, name: &str) -> Result<(), Denied> {
        let described = self.described(name).await?;
        let slot = self.slot(&Key { server: name.to_owned(), agent: None });
        let mut slot = slot.lock().await;
        slot.end().await;
        let opened = self.open(&described, None).await;
        match note(&mut slot, opened) {
            Ok(_) => {
                // No agent uses the process of a look.
                if described.url.is_none() {
                    slot.end().await;
                }
                drop(slot);
                self.forget_failures(name);
                Ok(())
            }
            Err(words) => {
                let message = format!("MCP server {name} cannot be used: {words}");
                let refusal = Refusal::new(DenialCode::McpUnreachable, message);
                Err(refusal
                    .hint(format!(
                        "`ironctl mcp test {name}` tries again; `ironctl mcp show {name}` has its command or address"
                    ))
                    .into())
            }
        }
    }

    /// Returns a connection for a call of an agent, listed not long ago. A listing that changed is in the record before this returns.
    ///
    /// # Errors
    /// The reason why the server cannot be reached, in words. Nothing was sent then.
    pub async fn ready(&self, name: &str, agent: AgentId) -> Result<Arc<Open>, String> {
        let described = self.described(name).await.map_err(|_| format!("MCP server {name} is not in the catalogue"))?;
        let agent = described.url.is_none().then_some(agent);
        let slot = self.slot(&Key { server: name.to_owned(), agent });
        let mut slot = slot.lock().await;
        match slot.open.clone().filter(|open| open.is_usable(&described)) {
            Some(open) if open.is_fresh() => return Ok(open),
            // Over the same connection, because a second process would have the same directory.
            Some(open) => match self.list_again(&open).await {
                Ok(()) => return Ok(open),
                Err(failed) => {
                    slot.end().await;
                    return note(&mut slot, Err(failed));
                }
            },
            None => slot.end().await,
        }
        if let Some((words, at)) = &slot.failed {
            let left = BACKOFF.pause(slot.failures).saturating_sub(at.elapsed());
            if !left.is_zero() {
                return Err(format!("{words}; the host tries again in {} s", left.as_secs() + 1));
            }
        }
        let opened = self.open(&described, agent).await;
        note(&mut slot, opened)
    }

    /// Returns the last failure of each server in words, by name.
    pub async fn failures(&self) -> HashMap<String, String> {
        let slots: Vec<_> = {
            let all = self.slots.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.iter().map(|(key, slot)| (key.server.clone(), Arc::clone(slot))).collect()
        };
        let mut failures = HashMap::new();
        for (server, slot) in slots {
            if let Ok(slot) = slot.try_lock()
                && let Some((words, _)) = &slot.failed
            {
                failures.insert(server, words.clone());
            }
        }
        failures
    }

    /// Ends the processes and connections of servers that are no longer in the catalogue as they were, and of agents without a grant. A
    /// call that runs keeps its connection until its end.
    ///
    /// # Errors
    /// Errors of the record.
    pub async fn close_unused(&self) -> Result<(), ironclaw_state::Error> {
        let look = |tx: &ReadTx<'_>| {
            let mut used = HashSet::new();
            for server in mcp::servers(tx)? {
                let holders = mcp::holders(tx, server.name())?.into_iter().map(|held| Some(held.agent));
                let agents: Vec<_> = if server.described.url.is_some() { vec![None] } else { holders.collect() };
                let name = server.name().to_owned();
                used.extend(agents.into_iter().map(|agent| Key { server: name.clone(), agent }));
            }
            Ok::<_, ironclaw_state::Error>(used)
        };
        let used = self.record.state.read(look).await?;
        self.slots.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|key, _| used.contains(key));
        Ok(())
    }

    /// Lets the next call of each agent try a server at once, because the server answered.
    fn forget_failures(&self, name: &str) {
        let all = self.slots.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, slot) in all.iter().filter(|(key, _)| key.server == name) {
            // A locked slot is in an attempt of its own.
            if let Ok(mut slot) = slot.try_lock() {
                (slot.failures, slot.failed) = (0, None);
            }
        }
    }

    async fn described(&self, name: &str) -> Result<McpRegister, Denied> {
        let named = name.to_owned();
        let found = self.record.state.read(move |tx| mcp::find(tx, &named)).await?;
        Ok(found.ok_or_else(|| mcp::unknown(name))?.described)
    }

    fn slot(&self, key: &Key) -> Arc<tokio::sync::Mutex<Slot>> {
        let mut all = self.slots.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(key.clone()).or_default())
    }

    /// Connects, lists, and records the listing.
    async fn open(&self, described: &McpRegister, agent: Option<AgentId>) -> Result<Open, Failed> {
        if self.latch.is_shut() {
            return Err(Failed::words("the emergency stop is active".to_owned()));
        }
        let (connected, listing) = connect::connect(self, described, agent).await?;
        let open = Open { connected, described: described.clone(), listed_at: AtomicI64::new(i64::MIN) };
        self.note_listing(&open, listing).await?;
        Ok(open)
    }

    async fn list_again(&self, open: &Open) -> Result<(), Failed> {
        let listing = open.connected.list(&open.described).await?;
        self.note_listing(open, listing).await
    }

    async fn note_listing(&self, open: &Open, listing: Listing) -> Result<(), Failed> {
        let name = open.described.name.clone();
        self.record.state.write(move |tx| mcp::note_listing(tx, &name, &listing)).await?;
        // The clock of the machine, because the other one stops while the machine sleeps.
        open.listed_at.store(ironclaw_state::wall_clock(), Ordering::Relaxed);
        Ok(())
    }
}

/// Notes the outcome of an attempt in its slot.
fn note(slot: &mut Slot, opened: Result<Open, Failed>) -> Result<Arc<Open>, String> {
    match opened {
        Ok(open) => {
            let open = Arc::new(open);
            *slot = Slot { open: Some(Arc::clone(&open)), ..Slot::default() };
            Ok(open)
        }
        Err(failed) => {
            let words = failed.to_string();
            slot.failures = slot.failures.saturating_add(1);
            slot.failed = Some((words.clone(), Instant::now()));
            Err(words)
        }
    }
}

impl Open {
    fn is_usable(&self, described: &McpRegister) -> bool {
        !self.connected.client.is_closed() && self.described == *described
    }

    fn is_fresh(&self) -> bool {
        let age_ms = ironclaw_state::wall_clock().saturating_sub(self.listed_at.load(Ordering::Relaxed));
        !self.connected.client.has_changed() && (0..LISTING_AGE_MAX_MS).contains(&age_ms)
    }

    /// Calls a tool, once, and returns the result without the secrets of the connection.
    pub async fn call(&self, tool: &str, arguments: Map<String, Value>, left: Duration) -> ResultBody {
        let limits = CallLimits::default();
        let limits = CallLimits { whole: limits.whole.min(left), ..limits };
        let Connected { client, secrets, .. } = &self.connected;
        let (ok, words) = match client.call(tool, arguments, limits).await {
            Ok(answered) => answer::answer(&self.described.name, answered),
            Err(failed) => answer::no_answer(&self.described.name, &failed),
        };
        // Before the words are changed and cut, so that a cut leaves no part of a secret.
        answer::body(ok, &connect::without_secrets(words, secrets))
    }
}

/// Returns the listing of the record in the form of a server's answer. Refuses one with a secret of the connection, because people and
/// models read it.
fn listing_of(
    described: &McpRegister,
    listed: ironclaw_mcp::Listing,
    secrets: &[SecretText],
) -> Result<Listing, Failed> {
    let era = match listed.server.era {
        ironclaw_mcp::Era::Session => "session",
        ironclaw_mcp::Era::Stateless => "stateless",
    };
    let mut tools: Vec<Value> = listed.tools.into_iter().map(|tool| tool.listed).collect();
    if !described.tools.is_empty() {
        let wanted: Vec<&str> = described.tools.iter().map(|McpTool { name, .. }| name.as_str()).collect();
        if let Some(missing) = wanted.iter().find(|name| !tools.iter().any(|tool| tool["name"] == **name)) {
            return Err(Failed::words(format!("it does not list the tool {missing}")));
        }
        tools.retain(|tool| wanted.iter().any(|name| tool["name"] == *name));
    }
    if tools.is_empty() {
        return Err(Failed::words("it lists no tools".to_owned()));
    }
    tools.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
    let listing = Listing { era: era.to_owned(), instructions: listed.server.instructions, tools };
    let text = listing.text();
    match secrets.iter().any(|secret| ironclaw_model::fetch::without_secret(&text, secret) != text) {
        true => Err(Failed::words("its listing contains a secret that this host gave it".to_owned())),
        false => Ok(listing),
    }
}
