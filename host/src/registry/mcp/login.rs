//! The logins of people at MCP servers: the tokens, wrapped by the master key, and the end of a login.
//!
//! Never contacts an issuer, and gives tokens only to the code that sends them. See [`crate::reach::mcp::oauth`].

use crate::registry::mcp::issuer::ApprovedIssuer;
use crate::registry::secrets::SecretName;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::change::{McpOauth, McpRegister};
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::keys::{self, SecretText, WrappingKey};
use ironclaw_state::{Error, WriteTx};
use ironclaw_store::tables::mcp as table;
use serde::{Deserialize, Serialize};
use url::Url;

pub use table::{Login, login as find, logins as all};

/// The tokens of a login, and the data for their renewal.
pub struct Tokens {
    /// The token of each request.
    pub access: SecretText,
    /// The token for the next renewal.
    pub refresh: Option<SecretText>,
    /// The host as a client of the issuer.
    pub client: IssuerClient,
}

/// The host as a client of an issuer.
pub struct IssuerClient {
    pub id: String,
    /// Its secret, if it has one.
    pub secret: Option<ClientSecret>,
    /// The address at which the issuer gives tokens.
    pub token_endpoint: Url,
    /// The address at which it revokes them, if it has one.
    pub revocation_endpoint: Option<Url>,
}

/// The secret of the host as a client of an issuer.
pub struct ClientSecret {
    /// The source of its value.
    pub value: ClientSecretValue,
    /// Whether it is sent in a header, and not in the form.
    pub in_header: bool,
}

pub enum ClientSecretValue {
    /// The value that the issuer gave at the registration.
    Issued(SecretText),
    /// The secret of the operator that people named; its value is read for each request.
    Named(SecretName),
}

/// The times of tokens, in milliseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The time of the answer of the issuer.
    pub made_at: i64,
    /// The end of the access token.
    pub expires_at: Option<i64>,
    /// The time to renew the tokens.
    pub renew_at: Option<i64>,
}

/// The stored form of tokens.
#[derive(Serialize, Deserialize)]
struct Stored {
    access: String,
    refresh: Option<String>,
    client_id: String,
    token_endpoint: String,
    revocation_endpoint: Option<String>,
    client_secret: Option<StoredSecret>,
}

#[derive(Serialize, Deserialize)]
struct StoredSecret {
    /// The value that the issuer gave. Excludes `name`.
    text: Option<String>,
    /// The name of a secret of the operator.
    name: Option<String>,
    in_header: bool,
}

/// Returns the name under which the tokens of a server are wrapped. No secret of the operator has such a name.
fn wrapped_name(server: &str) -> String {
    format!("mcp login {server}")
}

fn unopened(server: &str, error: &keys::Error) -> Error {
    Error::Stored(format!("the login at MCP server {server}: {error}"))
}

/// Opens the tokens of a login; `None` after its end.
pub fn tokens(wrapping: &WrappingKey, login: &Login) -> Result<Option<Tokens>, Error> {
    let Some(wrapped) = &login.wrapped else { return Ok(None) };
    let opened = wrapping.secret(&wrapped_name(&login.server), wrapped);
    let opened = opened.map_err(|error| unopened(&login.server, &error))?;
    let unreadable = || Error::Stored(format!("the login at MCP server {} is not readable", login.server));
    let stored: Stored = serde_json::from_str(opened.expose()).map_err(|_| unreadable())?;
    let parse = |text: &str| text.parse::<Url>().map_err(|_| unreadable());
    let token_endpoint = parse(&stored.token_endpoint)?;
    let revocation_endpoint = stored.revocation_endpoint.as_deref().map(parse).transpose()?;
    let secret = stored.client_secret.map(|StoredSecret { text, name, in_header }| {
        let named = || name.and_then(|name| name.parse().ok()).map(ClientSecretValue::Named);
        let value = text.map(|text| ClientSecretValue::Issued(SecretText::new(text))).or_else(named);
        value.map(|value| ClientSecret { value, in_header }).ok_or_else(unreadable)
    });
    let secret = secret.transpose()?;
    let client = IssuerClient { id: stored.client_id, secret, token_endpoint, revocation_endpoint };
    let (access, refresh) = (SecretText::new(stored.access), stored.refresh.map(SecretText::new));
    Ok(Some(Tokens { access, refresh, client }))
}

/// Stores the tokens of a login, in the place of earlier ones. `begun_at` is the time at which the person logged in.
pub fn put(
    tx: &mut WriteTx<'_>,
    wrapping: &WrappingKey,
    server: &str,
    tokens: &Tokens,
    times: Times,
    begun_at: i64,
) -> Result<(), Error> {
    let client = &tokens.client;
    let stored = Stored {
        access: tokens.access.expose().to_owned(),
        refresh: tokens.refresh.as_ref().map(|refresh| refresh.expose().to_owned()),
        client_id: client.id.clone(),
        token_endpoint: client.token_endpoint.to_string(),
        revocation_endpoint: client.revocation_endpoint.as_ref().map(Url::to_string),
        client_secret: client.secret.as_ref().map(|ClientSecret { value, in_header }| {
            let (text, name) = match value {
                ClientSecretValue::Issued(text) => (Some(text.expose().to_owned()), None),
                ClientSecretValue::Named(name) => (None, Some(name.as_str().to_owned())),
            };
            StoredSecret { text, name, in_header: *in_header }
        }),
    };
    let text = SecretText::new(serde_json::to_string(&stored).expect("texts and a flag are JSON"));
    drop((SecretText::new(stored.access), stored.refresh.map(SecretText::new)));
    drop(stored.client_secret.and_then(|secret| secret.text).map(SecretText::new));
    let wrapped = wrapping.wrap_secret(&wrapped_name(server), &text).map_err(|error| unopened(server, &error))?;
    let Times { made_at, expires_at, renew_at } = times;
    let server = server.to_owned();
    table::put_login(
        tx,
        &Login { server, wrapped: Some(wrapped), reason: None, begun_at, made_at, expires_at, renew_at },
    )
}

/// Sets the time of the next renewal.
pub fn renew_at(tx: &mut WriteTx<'_>, login: Login, at: i64) -> Result<(), Error> {
    table::put_login(tx, &Login { renew_at: Some(at), ..login })
}

/// Notes that a renewal got no answer of use, and sets the time of the next one. The login stays.
pub fn unrenewed(tx: &mut WriteTx<'_>, login: Login, reason: &str, next_at: i64) -> Result<(), Error> {
    table::put_login(tx, &Login { reason: Some(reason.to_owned()), renew_at: Some(next_at), ..login })
}

/// Ends a login by itself. A person has to log in again.
pub fn end(tx: &mut WriteTx<'_>, login: Login, reason: &str) -> Result<(), Error> {
    Entry::new(LedgerEvent::McpLoginEnded)
        .with("server", login.server.clone())
        .with("reason", reason.to_owned())
        .append(tx)?;
    table::put_login(tx, &Login { wrapped: None, reason: Some(reason.to_owned()), renew_at: None, ..login })
}

pub fn remove(tx: &mut WriteTx<'_>, login: Login, by: PersonId) -> Result<(), Error> {
    table::delete_login(tx, &login.server)?;
    Entry::new(LedgerEvent::McpLoggedOut).with("server", login.server).with("by", by).append(tx)?;
    Ok(())
}

/// Removes the login at a server that is registered with another address or another issuer, because people approved the old ones.
pub fn remove_unless_same(tx: &mut WriteTx<'_>, was: &McpRegister, becomes: &McpRegister) -> Result<(), Error> {
    match was.url == becomes.url && is_same(was.oauth.as_deref(), becomes.oauth.as_deref()) {
        true => Ok(()),
        false => table::delete_login(tx, &was.name),
    }
}

/// Returns whether two registrations have the same login, with the issuer in any form of its name.
fn is_same(was: Option<&McpOauth>, becomes: Option<&McpOauth>) -> bool {
    let (Some(was), Some(becomes)) = (was, becomes) else { return was.is_none() && becomes.is_none() };
    let issuers = [was, becomes].map(|oauth| ApprovedIssuer::parse(&oauth.issuer).ok());
    let rest = |oauth: &McpOauth| McpOauth { issuer: String::new(), ..oauth.clone() };
    issuers[0].is_some() && issuers[0] == issuers[1] && rest(was) == rest(becomes)
}

/// Wraps the tokens of each login under another key.
pub fn rewrap(tx: &mut WriteTx<'_>, old: &WrappingKey, new: &WrappingKey) -> Result<(), Error> {
    for login in all(tx)? {
        let Some(wrapped) = &login.wrapped else { continue };
        let passed = old.rewrap_secret(new, &wrapped_name(&login.server), wrapped);
        let wrapped = Some(passed.map_err(|error| unopened(&login.server, &error))?);
        table::put_login(tx, &Login { wrapped, ..login })?;
    }
    Ok(())
}
