//! The renewal of tokens ahead of their end, by a worker and before a connection.
//!
//! Never asks twice at a time for one server. The new tokens are in the record before a request has them. A renewal that the issuer refuses
//! ends the login, once. See [`ironclaw_store::worker`] for the loop.

use super::Logins;
use super::token::Failed;
use crate::channels::notifications::{self, About, Notification};
use crate::registry::mcp::login::{Login, Tokens};
use crate::registry::mcp::{self, login};
use ironclaw_contract::seam::change::McpRegister;
use ironclaw_net::backoff::Backoff;
use ironclaw_store::error::Error;
use ironclaw_store::shutdown::Shutdown;
use ironclaw_store::worker::{self, Due, Wait};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex;

/// The greatest step of the clock of the machine that moves no renewal.
const CLOCK_STEP_MS: i64 = 60_000;

/// The pauses after an issuer that does not answer, or not as an issuer.
const RETRY: Backoff = Backoff { first: Duration::from_secs(60), factor: 2, longest: Duration::from_secs(3600) };

/// The longest pause of the worker.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// The renewals in a row that an issuer did not answer.
#[derive(Default)]
pub(super) struct Unanswered {
    failures: u32,
    /// The time before which the host does not ask again, in milliseconds since the epoch.
    next_at: i64,
}

impl Logins {
    pub(super) fn token_lock(&self, server: &str) -> Arc<Mutex<()>> {
        let mut locks = self.token_locks.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(locks.entry(server.to_owned()).or_default())
    }

    /// Waits for the renewals in progress.
    pub async fn wait_for_renewals(&self) {
        let locks: Vec<_> =
            self.token_locks.lock().unwrap_or_else(PoisonError::into_inner).values().map(Arc::clone).collect();
        for lock in locks {
            drop(lock.lock().await);
        }
    }

    /// Renews the tokens of a server if it is time to. A caller that gives up does not end a renewal that has begun, because the issuer may
    /// have replaced the tokens already.
    ///
    /// # Errors
    /// Errors of the record. A renewal that fails is no error.
    pub async fn renew_if_due(self: &Arc<Self>, server: &str) -> Result<(), ironclaw_state::Error> {
        let held = self.token_lock(server).lock_owned().await;
        let (named, now, record) = (server.to_owned(), ironclaw_state::wall_clock(), Arc::clone(&self.record));
        let look = move |tx: &ironclaw_state::ReadTx<'_>| {
            let login = login::find(tx, &named)?.filter(|login| is_due(login, now));
            let Some((login, server)) = login.zip(mcp::find(tx, &named)?) else { return Ok(None) };
            let tokens = login::tokens(&record.wrapping, &login)?;
            Ok::<_, ironclaw_state::Error>(tokens.map(|tokens| (login, tokens, server.described)))
        };
        let Some((login, tokens, described)) = self.record.state.read(look).await? else { return Ok(()) };
        let (logins, server) = (Arc::clone(self), server.to_owned());
        let renewal = tokio::spawn(async move {
            let renewed = logins.renew(&server, &login, tokens, &described).await;
            drop(held);
            renewed
        });
        renewal.await.unwrap_or(Err(ironclaw_state::Error::Closed))
    }

    async fn renew(
        &self,
        server: &str,
        login: &Login,
        tokens: Tokens,
        described: &McpRegister,
    ) -> Result<(), ironclaw_state::Error> {
        // A server that people replaced meanwhile has no login, and an emergency stop lets the login wait.
        let Ok((url, http)) = self.http(described) else { return Ok(()) };
        let made_at = login.made_at;
        let outcome = match &tokens.refresh {
            Some(refresh) => {
                let form =
                    [("grant_type", "refresh_token"), ("refresh_token", refresh.expose()), ("resource", url.as_str())];
                self.ask(&http, &tokens.client, &form).await
            }
            None => Err(Failed::Expired),
        };
        let next_at = self.record_renewal(server, outcome.as_ref().err());
        let (record, named) = (Arc::clone(&self.record), server.to_owned());
        let settle = move |tx: &mut ironclaw_state::WriteTx<'_>| {
            let Some(login) = login::find(tx, &named)?.filter(|login| login.made_at == made_at) else { return Ok(()) };
            match outcome {
                Ok(issued) => {
                    let (tokens, times) = issued.tokens(tokens.refresh, tokens.client);
                    login::put(tx, &record.wrapping, &named, &tokens, times, login.begun_at)
                }
                Err(failed @ (Failed::Refused(_) | Failed::Expired)) => {
                    login::end(tx, login, &failed.to_string())?;
                    let now = tx.wall();
                    notifications::add_for_operators(tx, &Notification::new(About::LoginEnded, &named), now)
                }
                Err(failed @ (Failed::Broken(_) | Failed::Unasked(_))) => {
                    tracing::warn!(server = named, %failed, "the login at an MCP server was not renewed");
                    login::unrenewed(tx, login, &failed.to_string(), next_at)
                }
            }
        };
        self.record.state.write(settle).await
    }

    /// Notes the end of a renewal, and returns the time of the next one after a failure that may pass.
    pub(super) fn record_renewal(&self, server: &str, failed: Option<&Failed>) -> i64 {
        let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        let after = |failures: u32| {
            let pause_ms = i64::try_from(RETRY.pause(failures).as_millis()).unwrap_or(i64::MAX);
            ironclaw_state::wall_clock().saturating_add(pause_ms)
        };
        if !matches!(failed, Some(Failed::Broken(_))) {
            unanswered.remove(server);
            return after(0);
        }
        let Unanswered { failures, next_at } = unanswered.entry(server.to_owned()).or_default();
        *failures = failures.saturating_add(1);
        *next_at = after(*failures);
        *next_at
    }

    /// Makes a renewal due, because the server refused the token. An issuer that did not answer gets its pause.
    pub async fn refused(&self, server: &str) -> Result<(), ironclaw_state::Error> {
        let now = ironclaw_state::wall_clock();
        let waits = |server: &str| {
            let unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
            unanswered.get(server).is_some_and(|one| one.next_at > now)
        };
        if waits(server) {
            return Ok(());
        }
        let named = server.to_owned();
        let due = self.record.state.write(move |tx| match login::find(tx, &named)? {
            Some(login) if login.wrapped.is_some() => login::renew_at(tx, login, ironclaw_state::wall_clock()),
            _ => Ok(()),
        });
        due.await?;
        self.bell.notify_one();
        Ok(())
    }
}

/// Returns whether it is time to renew the tokens. The time of tokens from a clock that was ahead would come late.
fn is_due(login: &Login, now: i64) -> bool {
    login.renew_at.is_some_and(|at| at <= now || (at > login.made_at && login.made_at - now > CLOCK_STEP_MS))
}

/// The worker that renews tokens.
pub struct LoginRenewal {
    pub logins: Arc<Logins>,
    /// The shutdown. No renewal begins after it.
    pub shutdown: Shutdown,
}

impl LoginRenewal {
    /// Runs until the host stops.
    pub async fn run(self) {
        let (logins, shutdown) = (Arc::clone(&self.logins), self.shutdown.clone());
        worker::run(self, &logins.bell, &shutdown).await;
    }
}

impl Due for LoginRenewal {
    const FAILED: &'static str = "logins at MCP servers were not renewed";
    const RETRY_AFTER: Duration = Duration::from_secs(60);
    const PAUSE_MAX: Duration = PAUSE_MAX;

    async fn process_due(&mut self) -> Result<Wait, Error> {
        if self.logins.latch.is_shut() {
            return Ok(Wait::AtMost(Self::RETRY_AFTER));
        }
        let state = &self.logins.record.state;
        for login in state.read(login::all).await? {
            if self.shutdown.is_stopping() {
                return Ok(Wait::AtMost(Self::RETRY_AFTER));
            }
            self.logins.renew_if_due(&login.server).await?;
        }
        let next = state.read(login::all).await?.into_iter().filter_map(|login| login.renew_at).min();
        Ok(next.map_or(Wait::Bell, |at| Wait::until(at, ironclaw_state::wall_clock())))
    }
}
