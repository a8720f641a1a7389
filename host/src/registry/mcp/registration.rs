//! A server as it is registered now, with its credentials by name and version: everything that decides where the arguments of a call go.
//!
//! Never reads the value of a secret. See [`crate::gateway::requests::facts`].

use super::{Place, find, login};
use crate::registry::secrets::{self, SecretName, Versioned};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::seam::change::McpRegister;
use ironclaw_state::{Error, ReadTx};
use serde::Serialize;
use std::net::IpAddr;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Registration {
    pub described: McpRegister,
    /// The layer with the software of its command.
    pub layer: Option<Digest>,
    /// The secrets that the server or its issuer gets.
    pub credentials: Vec<Credential>,
    /// The login of people at it.
    pub login: Login,
    /// The addresses of the local network that people read with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<IpAddr>,
}

/// A secret of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Credential {
    /// The header, the variable or the client that has it, in words.
    pub place: String,
    pub secret: Versioned,
}

/// The login of people at a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Login {
    None,
    /// A person logged in at this time, milliseconds since the epoch. A renewal of tokens keeps it.
    Since {
        /// The time.
        begun_at: i64,
    },
}

impl Registration {
    /// Returns the place where the server runs.
    pub fn place(&self) -> Place {
        Place::for_description(&self.described)
    }
}

/// Returns a server as it is registered now; `None` if there is none of this name.
pub fn registration(tx: &ReadTx<'_>, server: &str) -> Result<Option<Registration>, Error> {
    let Some(found) = find(tx, server)? else { return Ok(None) };
    let (described, layer, addresses) = (found.described, found.layer, found.addresses);
    let of_headers = described.headers.iter().map(|header| {
        let scheme = header.scheme.as_deref().map_or_else(String::new, |scheme| format!(" with the scheme {scheme}"));
        (format!("header {}{scheme}", header.name), header.secret.as_str())
    });
    let of_variables = described.environment.iter().filter_map(|one| {
        let secret = one.secret.as_deref()?;
        Some((format!("variable {}", one.variable), secret))
    });
    let of_client = described.oauth.iter().filter_map(|oauth| oauth.client_secret.as_deref());
    let of_client = of_client.map(|secret| ("client of the issuer".to_owned(), secret));
    let mut credentials = Vec::new();
    for (place, name) in of_headers.chain(of_variables).chain(of_client) {
        let wrong = |_| Error::Stored(format!("MCP server {server}: the name of a secret"));
        let name: SecretName = name.parse().map_err(wrong)?;
        credentials.push(Credential { place, secret: secrets::versioned(tx, name)? });
    }
    let login = login::find(tx, server)?.filter(|login| login.wrapped.is_some());
    let login = login.map_or(Login::None, |login| Login::Since { begun_at: login.begun_at });
    Ok(Some(Registration { described, layer, credentials, login, addresses }))
}
