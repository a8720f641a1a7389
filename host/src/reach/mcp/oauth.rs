//! Logins at MCP servers with OAuth: a person logs in at the issuer that people approved, and the host keeps and renews the tokens.
//!
//! Never follows a redirect, never contacts another issuer, and sends S256 with each login. An address that a server or an issuer names
//! is reached under the rules of requests for agents. See [`crate::registry::mcp::login`] for the tokens, and [`attempt`] for the answer of
//! a browser.

mod attempt;
mod client;
mod command;
mod discovery;
pub mod renewal;
mod token;

use crate::reach::jail_network::Fetchers;
use crate::registry::latch::Latch;
use crate::registry::mcp::issuer::{ApprovedIssuer, IssuerName};
use crate::registry::mcp::login::{ClientSecret, ClientSecretValue, IssuerClient};
use crate::registry::mcp::{self, address, login};
use crate::registry::secrets::{self, SecretName};
use attempt::{Attempt, Pair, failed};
use axum::http::HeaderMap;
use client::Proof;
use discovery::{Http, Named, Unfit, shown};
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::change::{McpOauth, McpRegister};
use ironclaw_judge::egress::Loopback;
use ironclaw_ledger::Entry;
use ironclaw_mcp::{Client, Limits};
use ironclaw_operator::{DenialCode, LedgerEvent};
use ironclaw_state::keys::SecretText;
use ironclaw_store::record::Record;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use renewal::Unanswered;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use token::{Failed, Issued};
use tokio::sync::Notify;
use url::Url;

/// The longest time between the begin of a login and its answer.
const ATTEMPT_MS_MAX: i64 = 600_000;

/// A login that waits for a person.
pub struct Begun {
    /// The issuer that people approved.
    pub issuer: String,
    /// Its page, for a browser.
    pub url: Url,
    /// The end of the wait, in milliseconds since the epoch.
    pub until: i64,
}

/// A login that the host removed.
pub struct Removed {
    described: McpRegister,
    /// Its tokens, which may be valid at the issuer.
    tokens: Option<login::Tokens>,
}

/// The logins of one host.
pub struct Logins {
    record: Arc<Record>,
    latch: Arc<Latch>,
    /// The logins that wait, by server. A restart forgets them.
    attempts: Mutex<HashMap<String, Attempt>>,
    /// The locks of tokens, by server: one request for tokens at a time.
    token_locks: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    /// The issuers that did not answer, by server. A restart forgets them.
    unanswered: Mutex<HashMap<String, Unanswered>>,
    fetchers: Arc<Fetchers>,
    /// Wakes the renewal after a login.
    bell: Notify,
}

impl Logins {
    pub fn new(record: Arc<Record>, latch: Arc<Latch>, fetchers: Arc<Fetchers>) -> Self {
        let (attempts, token_locks, unanswered) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { record, latch, attempts, token_locks, unanswered, fetchers, bell: Notify::new() }
    }

    /// Begins a login at a server. It replaces a login there that waits.
    ///
    /// # Errors
    /// Refuses a server without an approved issuer, another issuer than the approved one, and one that does not announce S256.
    pub async fn begin(&self, server: &str, redirect_uri: &str, by: PersonId) -> Result<Begun, Denied> {
        attempt::check_redirect(redirect_uri)?;
        let described = self.described(server).await?;
        let (url, http) = self.http(&described)?;
        let challenge = challenge(&url).await;
        let resource = discovery::resource(&http, &url, challenge.as_deref()).await;
        let Some(oauth) = described.oauth.clone() else {
            return Err(unapproved(&described, resource).into());
        };
        let secret = oauth.client_secret.as_deref().map(secrets::named).transpose()?;
        if let Some(name) = &secret {
            self.secret(name).await.map_err(|why| failed(server, &why))?;
        }
        let Named { issuers, .. } = resource.map_err(|why| failed(server, &why))?;
        let issuer = ApprovedIssuer::parse(&oauth.issuer).map_err(|why| unsupported(&oauth.issuer, why))?;
        if !issuers.iter().any(|named| IssuerName::parse(named).as_ref() == Ok(&issuer.name)) {
            return Err(other_issuer(server, &issuer.name, &issuers).into());
        }
        let found = discovery::issuer(&http, &issuer).await.map_err(|unfit| match unfit {
            Unfit::Unannounced => unannounced(&described, &issuer),
            Unfit::Other(why) => unsupported(issuer.name.as_str(), &why),
        })?;
        let client = match oauth.client_id {
            Some(id) => client::approved(&found, id, secret),
            None => client::register(&http, &found, redirect_uri).await,
        };
        let client = client.map_err(|why| unsupported(issuer.name.as_str(), &why))?;
        let Pair { verifier, challenge } = Pair::new();
        let until = ironclaw_state::wall_clock().saturating_add(ATTEMPT_MS_MAX);
        let attempt = Attempt {
            by,
            described,
            names_issuer: found.names_issuer,
            state: attempt::random(),
            verifier,
            redirect_uri: redirect_uri.to_owned(),
            client,
            until,
        };
        let page = attempt.page(found.authorization, &oauth.scopes, &url, &challenge);
        self.waiting().insert(server.to_owned(), attempt);
        Ok(Begun { issuer: issuer.name.to_string(), url: page, until })
    }

    /// Completes a login with the address to which the issuer sent the browser. A code is used once.
    ///
    /// # Errors
    /// Refuses an address of another login, of another issuer or of another person, and passes the refusal of the issuer on.
    pub async fn finish(&self, server: &str, address: &str, by: PersonId) -> Result<(), Denied> {
        let lock = self.token_lock(server);
        let _held = lock.lock().await;
        let (code, attempt) = self.take(server, address, by)?;
        let (url, http) = self.http(&attempt.described)?;
        let form = [
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("redirect_uri", &attempt.redirect_uri),
            ("code_verifier", &attempt.verifier),
            ("resource", url.as_str()),
        ];
        let issued = self.ask(&http, &attempt.client, &form).await;
        let issued = issued.map_err(|error| failed(server, &error.to_string()))?;
        let attempted = server.to_owned();
        let (record, server) = (Arc::clone(&self.record), server.to_owned());
        let finish = self.record.state.decide(move |tx| {
            let Attempt { by, described, client, .. } = attempt;
            if mcp::find(tx, &server)?.is_none_or(|now| now.described != described) {
                return Err(Denied::from(attempt::unknown(&server)));
            }
            let (tokens, times) = issued.tokens(None, client);
            let begun_at = tx.now();
            login::put(tx, &record.wrapping, &server, &tokens, times, begun_at)?;
            let issuer = ApprovedIssuer::for_login(described.oauth.as_deref());
            let issuer = issuer.map(|issuer| issuer.name.to_string()).unwrap_or_default();
            let entry = Entry::new(LedgerEvent::McpLoggedIn).with("server", server).with("issuer", issuer);
            entry.with("by", by).append(tx)?;
            Ok::<_, Denied>(())
        });
        finish.await?;
        self.record_renewal(&attempted, None);
        self.bell.notify_one();
        Ok(())
    }

    /// Removes the login at a server, and one that waits. Returns the login if there was one, to revoke its tokens at the issuer.
    ///
    /// Waits for a login or a renewal in progress: the new tokens must be revoked, not those before it.
    ///
    /// # Errors
    /// Refuses an unknown server.
    pub async fn remove(&self, server: &str, by: PersonId) -> Result<Option<Removed>, Denied> {
        let lock = self.token_lock(server);
        let _held = lock.lock().await;
        let described = self.described(server).await?;
        self.waiting().remove(server);
        let (record, server) = (Arc::clone(&self.record), server.to_owned());
        let remove = move |tx: &mut ironclaw_state::WriteTx<'_>| {
            let Some(found) = login::find(tx, &server)? else { return Ok(None) };
            // Tokens that do not open are removed too.
            let tokens = login::tokens(&record.wrapping, &found).unwrap_or_default();
            login::remove(tx, found, by)?;
            Ok::<_, ironclaw_state::Error>(Some(Removed { described, tokens }))
        };
        Ok(self.record.state.write(remove).await?)
    }

    /// Asks the issuer, once, to revoke the tokens of a login that the host removed. Does nothing if it revokes none.
    ///
    /// # Errors
    /// Refuses if the issuer does not answer that it revoked them.
    pub async fn revoke(&self, removed: Removed) -> Result<(), Refusal> {
        let Removed { described, tokens: Some(tokens) } = removed else { return Ok(()) };
        let Some(endpoint) = &tokens.client.revocation_endpoint else { return Ok(()) };
        let failed = |why: String| {
            let message = format!(
                "the host removed its tokens for MCP server {}, and the issuer did not revoke them: {why}",
                described.name
            );
            let refusal = Refusal::new(DenialCode::McpLogin, message);
            refusal.hint("they stay valid until their end; the page of the issuer may end them sooner")
        };
        let (_, http) = self.http(&described).map_err(|refusal| failed(refusal.message))?;
        let (token, kind) = match &tokens.refresh {
            Some(refresh) => (refresh, "refresh_token"),
            None => (&tokens.access, "access_token"),
        };
        let form = [("token", token.expose()), ("token_type_hint", kind)];
        let proof = self.proof(&tokens.client).await.map_err(&failed)?;
        match client::post(&http, endpoint, &tokens.client, proof.as_ref(), &form).await.map_err(&failed)? {
            (200, _) => Ok(()),
            (status, _) => Err(failed(format!("its answer has HTTP status {status}"))),
        }
    }

    /// Sends a request for tokens, once.
    async fn ask(&self, http: &Http<'_>, client: &IssuerClient, form: &[(&str, &str)]) -> Result<Issued, Failed> {
        let proof = self.proof(client).await.map_err(Failed::Unasked)?;
        let answer = client::post(http, &client.token_endpoint, client, proof.as_ref(), form).await;
        let (status, answer) = answer.map_err(Failed::Broken)?;
        token::read(status, answer)
    }

    /// Returns the secret of a client for one request.
    async fn proof(&self, client: &IssuerClient) -> Result<Option<Proof>, String> {
        let Some(ClientSecret { value, in_header }) = &client.secret else { return Ok(None) };
        let text = match value {
            ClientSecretValue::Issued(text) => SecretText::new(text.expose().to_owned()),
            ClientSecretValue::Named(name) => self.secret(name).await?,
        };
        Ok(Some(Proof { text, in_header: *in_header }))
    }

    /// Returns the present value of a secret of the operator.
    async fn secret(&self, name: &SecretName) -> Result<SecretText, String> {
        let (record, named) = (Arc::clone(&self.record), name.clone());
        let read = self.record.state.read(move |tx| secrets::get(tx, &record.wrapping, &named));
        let missing = || format!("the secret of its client, {name}, is missing: ironctl secret set {}", name.as_str());
        read.await.map_err(|error| error.to_string())?.ok_or_else(missing)
    }

    /// Uses up the attempt that an address answers.
    fn take(&self, server: &str, address: &str, by: PersonId) -> Result<(String, Attempt), Refusal> {
        let mut waiting = self.waiting();
        let Some(attempt) = waiting.get(server).filter(|attempt| attempt.by == by) else {
            return Err(attempt::unknown(server));
        };
        let read = attempt.code(address, ironclaw_state::wall_clock());
        if read.as_ref().is_err_and(|refusal| !attempt::waits_after(refusal)) {
            waiting.remove(server);
        }
        let code = read?;
        let attempt = waiting.remove(server).ok_or_else(|| attempt::unknown(server))?;
        Ok((code, attempt))
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<String, Attempt>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn described(&self, server: &str) -> Result<McpRegister, Denied> {
        let named = server.to_owned();
        let found = self.record.state.read(move |tx| mcp::find(tx, &named)).await?;
        Ok(found.ok_or_else(|| mcp::unknown(server))?.described)
    }

    /// Returns the address of a server, and the requests that its login may make.
    fn http(&self, described: &McpRegister) -> Result<(Url, Http<'_>), Refusal> {
        let name = &described.name;
        if self.latch.is_shut() {
            return Err(failed(name, "the emergency stop is active"));
        }
        let Some(url) = described.url.as_deref().and_then(|url| address::parse(url).ok()) else {
            let refusal = Refusal::new(DenialCode::McpOauth, format!("MCP server {name} is a command"));
            return Err(refusal.hint("only a server at a URL has a login"));
        };
        let is_near = address::is_near(&url);
        let fetcher = self.fetchers.for_loopback(if is_near { Loopback::DangerousAllowed } else { Loopback::Refused });
        Ok((url, Http { fetcher, is_near }))
    }
}

/// Returns the header of the refusal of a server without a login.
async fn challenge(url: &Url) -> Option<String> {
    let http = ironclaw_net::client_for(url).ok()?;
    match Client::over_http(url.clone(), HeaderMap::new(), http, Limits::default()).await {
        Err(ironclaw_mcp::Error::Refused { www_authenticate, .. }) => www_authenticate,
        _ => None,
    }
}

fn unsupported(issuer: &str, why: &str) -> Refusal {
    Refusal::new(DenialCode::McpOauth, format!("the issuer {} cannot be used: {why}", shown(issuer)))
}

/// Refuses an issuer that does not announce S256. The hint accepts it, on the page of the registration.
fn unannounced(described: &McpRegister, issuer: &ApprovedIssuer) -> Refusal {
    let message = format!(
        "the issuer {} cannot be used: it does not announce S256, which keeps a stolen code from being used by another program",
        issuer.name
    );
    let refusal = Refusal::new(DenialCode::McpOauth, message);
    let accepted = ApprovedIssuer { accepts_unannounced: true, ..issuer.clone() };
    let mut accepting = described.clone();
    if let Some(oauth) = &mut accepting.oauth {
        oauth.issuer = accepted.to_string();
    }
    let ask = "ask the operator of the issuer to announce it";
    refusal.hint(match command::adding(&accepting) {
        Some(command) => format!("{ask}; if you accept that it does not: {command}"),
        None => format!("{ask}; if you accept that it does not, add the server again with --accept-unannounced-s256"),
    })
}

/// Refuses a login without an approved issuer. The hint adds the one that the server names.
fn unapproved(described: &McpRegister, named: Result<Named, String>) -> Refusal {
    let message = format!("people approved no issuer for MCP server {}", described.name);
    let refusal = Refusal::new(DenialCode::McpOauth, message);
    let (issuers, scopes) = match named {
        Ok(Named { issuers, scopes }) => (issuers, scopes),
        Err(why) => return refusal.hint(format!("{why}; the server may take a secret in a header")),
    };
    let Some(issuer) = issuers.first() else {
        return refusal.hint("the server names no issuer either; it may take a secret in a header");
    };
    let oauth = McpOauth { issuer: issuer.clone(), scopes, ..McpOauth::default() };
    let with_login = McpRegister { oauth: Some(Box::new(oauth)), ..described.clone() };
    match command::adding(&with_login).filter(|_| IssuerName::parse(issuer).is_ok()) {
        Some(command) => refusal.hint(format!("the server names {issuer}; if you trust it: {command}")),
        None => refusal.hint(format!("the server names {}, and no command can have its words", shown(issuer))),
    }
}

fn other_issuer(server: &str, approved: &IssuerName, issuers: &[String]) -> Refusal {
    let named: Vec<String> = issuers.iter().map(|issuer| shown(issuer)).collect();
    let message = format!(
        "MCP server {server} names the issuer {}, and people approved {approved}",
        if named.is_empty() { "of no login".to_owned() } else { named.join(", ") },
    );
    Refusal::new(DenialCode::McpIssuer, message)
        .hint("ask the operator of the server; if the new issuer is right, add the server again with --oauth")
}
