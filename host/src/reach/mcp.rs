//! The connections to MCP servers: opened for a look or a call, listed again in time, and recorded for the comparison with what people
//! confirmed.
//!
//! Never decides about a call, and never sends one that nothing judged: the executor brings a judged call. A connection that failed is
//! tried again after a pause that grows. See [`crate::registry::mcp`] for the pins, and [`crate::reach::mcp_jail`] for servers on this machine.

mod answer;
mod connect;
pub mod oauth;
mod progress;
mod resolve;
mod servers;

pub use answer::not_reached;
pub use resolve::ResolvedCommand;
pub use servers::{Open, Resolving, Servers, Slots};

use crate::reach::jail_network::{Gateway, Traffic};
use crate::registry::mcp::{self, Registration, listing::Listing, login};
use crate::turns::calls::{CallOutcome, ResultBody};
use crate::turns::open_turns::progress::RunningCall;
use connect::Failed;
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::McpRegister;
use ironclaw_mcp::CallLimits;
use ironclaw_net::backoff::Backoff;
use ironclaw_operator::DenialCode;
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::{Denied, Refusal};
use serde_json::{Map, Value};
use servers::{Connected, Key, Slot};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The longest time between a listing and a call that relies on it.
const LISTING_AGE_MAX_MS: i64 = 300_000;

/// The pauses between attempts to reach a server that failed.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), factor: 2, longest: Duration::from_secs(300) };

impl Servers {
    /// Asks a server for its listing over a new connection, and records it.
    ///
    /// # Errors
    /// Refuses an unknown server, one that cannot be reached, and one that does not list the tools of its registration.
    pub async fn relist(&self, name: &str) -> Result<(), Denied> {
        let registration = self.registration(name).await?;
        let described = &registration.described;
        self.check_login(described).await?;
        let slot = self.slot(&Key { server: name.to_owned(), agent: None });
        let mut slot = slot.lock().await;
        slot.end().await;
        let opened = self.open(&registration, None).await;
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
                // The server refused the token, and the issuer its renewal.
                self.check_login(described).await?;
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
        let registration = self.registration(name).await;
        let registration = registration.map_err(|_| format!("MCP server {name} is not in the catalogue"))?;
        let described = &registration.described;
        let agent = described.url.is_none().then_some(agent);
        let slot = self.slot(&Key { server: name.to_owned(), agent });
        let mut slot = slot.lock().await;
        if slot.open.as_ref().is_some_and(|open| open.is_refused.load(Ordering::Relaxed)) {
            self.logins.refused(name).await.map_err(|error| Failed::from(error).to_string())?;
            slot.end().await;
        }
        let login = self.needed_login(described).await.map_err(|failed| failed.to_string())?;
        let is_admitted = self.fetchers.admits(&registration.addresses);
        match slot.open.clone().filter(|open| is_admitted && open.is_usable(&registration, login)) {
            Some(open) if open.is_fresh() => return Ok(open),
            // Over the same connection, because a second process would have the same directory.
            Some(open) => match self.list_again(&open).await {
                Ok(()) => return Ok(open),
                Err(failed) if failed.is_unauthorized => {
                    self.logins.refused(name).await.map_err(|error| Failed::from(error).to_string())?;
                    slot.end().await;
                }
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
        let opened = self.open(&registration, agent).await;
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

    /// Lets the next call of each agent try a server at once, because the server answered, or a person logged in.
    pub fn forget_failures(&self, name: &str) {
        let all = self.slots.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, slot) in all.iter().filter(|(key, _)| key.server == name) {
            // A locked slot is in an attempt of its own.
            if let Ok(mut slot) = slot.try_lock() {
                (slot.failures, slot.failed) = (0, None);
            }
        }
    }

    async fn registration(&self, name: &str) -> Result<Registration, Denied> {
        let named = name.to_owned();
        let found = self.record.state.read(move |tx| mcp::registration(tx, &named)).await?;
        Ok(found.ok_or_else(|| mcp::unknown(name))?)
    }

    /// Returns the time of the tokens for a server, after a renewal that is due; `None` without a login.
    async fn login(&self, server: &str) -> Result<Option<i64>, ironclaw_state::Error> {
        self.logins.renew_if_due(server).await?;
        let named = server.to_owned();
        let found = self.record.state.read(move |tx| login::find(tx, &named)).await?;
        Ok(found.filter(|login| login.wrapped.is_some()).map(|login| login.made_at))
    }

    /// Refuses a server that needs a login and has none.
    async fn check_login(&self, described: &McpRegister) -> Result<(), Denied> {
        let name = &described.name;
        if described.oauth.is_none() || self.login(name).await?.is_some() {
            return Ok(());
        }
        let refusal = Refusal::new(DenialCode::McpLoginNeeded, format!("a person has to log in at MCP server {name}"));
        Err(refusal.hint(format!("log in: ironctl mcp login {name}")).into())
    }

    /// Returns the time of the tokens for a server that needs a login; `None` for another server.
    async fn needed_login(&self, described: &McpRegister) -> Result<Option<i64>, Failed> {
        if described.oauth.is_none() {
            return Ok(None);
        }
        let login = self.login(&described.name).await?;
        login.map(Some).ok_or_else(|| Failed::login_needed(&described.name))
    }

    fn slot(&self, key: &Key) -> Arc<tokio::sync::Mutex<Slot>> {
        let mut all = self.slots.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(key.clone()).or_default())
    }

    /// Connects, lists, and records the listing. A refused token is renewed once before it fails.
    async fn open(&self, registration: &Registration, agent: Option<AgentId>) -> Result<Open, Failed> {
        if self.latch.is_shut() {
            return Err(Failed::words("the emergency stop is active".to_owned()));
        }
        let described = &registration.described;
        let mut login = self.needed_login(described).await?;
        let mut connected = connect::connect(self, described, agent).await;
        if connected.as_ref().is_err_and(|failed| failed.is_unauthorized) {
            self.logins.refused(&described.name).await?;
            let renewed = self.needed_login(described).await?;
            if renewed != login {
                login = renewed;
                connected = connect::connect(self, described, agent).await;
            }
        }
        let (connected, listing) = connected?;
        let open = Open {
            connected,
            registration: registration.clone(),
            listed_at: AtomicI64::new(i64::MIN),
            login,
            is_refused: AtomicBool::new(false),
        };
        self.record_listing(&open, listing).await?;
        Ok(open)
    }

    async fn list_again(&self, open: &Open) -> Result<(), Failed> {
        let listing = open.connected.list(&open.registration.described).await?;
        self.record_listing(open, listing).await
    }

    async fn record_listing(&self, open: &Open, listing: Listing) -> Result<(), Failed> {
        let name = open.registration.described.name.clone();
        self.record.state.write(move |tx| mcp::record_listing(tx, &name, &listing)).await?;
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

/// A call of a tool that is over.
pub struct Called {
    /// The result without the secrets of the connection.
    pub result: ResultBody,
    /// The answer as JSON, if it is one of the tool and has no secret.
    pub content: Option<serde_json::Value>,
    /// The requests of a server with a gateway since the call before.
    pub traffic: Option<Traffic>,
}

impl Open {
    fn is_usable(&self, registration: &Registration, login: Option<i64>) -> bool {
        !self.connected.client.is_closed() && self.is_with(registration) && self.login == login
    }

    /// Returns whether the server refused the token of this connection.
    pub fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    /// Returns whether another connection has another token.
    pub fn has_another_token(&self, other: &Self) -> bool {
        self.login != other.login
    }

    /// Returns whether it was made to a server with this registration, with the credentials that the server has in it.
    pub fn is_with(&self, registration: &Registration) -> bool {
        self.registration == *registration
    }

    fn is_fresh(&self) -> bool {
        let age_ms = ironclaw_state::wall_clock().saturating_sub(self.listed_at.load(Ordering::Relaxed));
        !self.connected.client.has_changed() && (0..LISTING_AGE_MAX_MS).contains(&age_ms)
    }

    /// Calls a tool, once, and reports its progress.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        left: Duration,
        running: &RunningCall<'_>,
    ) -> Called {
        let limits = CallLimits::default();
        let limits = CallLimits { whole: limits.whole.min(left), ..limits };
        let Connected { client, secrets, gateway, .. } = &self.connected;
        let newest = watch::Sender::new(None);
        let reports = newest.subscribe();
        let answer = client.call_watched(tool, arguments, limits, newest);
        let mut content = None;
        let (outcome, words) = match progress::reporting(answer, reports, running, secrets).await {
            Ok(answered) => {
                content = answer::content(&answered, secrets);
                let (ok, words) = answer::answer(&self.registration.described.name, answered, secrets);
                (CallOutcome::by_success(ok), words)
            }
            Err(failed) => {
                let is_refused = self.login.is_some() && connect::is_unauthorized(&failed.error);
                self.is_refused.fetch_or(is_refused, Ordering::Relaxed);
                let server = &self.registration.described.name;
                let (outcome, words) = answer::no_answer(server, &failed, secrets);
                (outcome, if is_refused { words + &connect::log_in_again(server) } else { words })
            }
        };
        let mut result = answer::body(outcome, &words);
        let traffic = gateway.as_ref().map(Gateway::take);
        if let Some(refusals) = traffic.as_ref().map(Traffic::refusals_shown).filter(|lines| !lines.is_empty()) {
            // The server wrote the names in them.
            let refusals = connect::without_secrets(refusals, secrets);
            result.text = format!("{}\n{}", result.text, refusals.trim_end());
        }
        Called { result, content, traffic }
    }

    /// Returns the result of a call whose future was dropped, if the server made requests during it.
    pub fn given_up(&self) -> Option<ResultBody> {
        let Connected { client, secrets, .. } = &self.connected;
        let refused = client.refused();
        (!refused.is_empty()).then(|| answer::given_up(&self.registration.described.name, &refused, secrets))
    }
}
