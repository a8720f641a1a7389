//! `ironctl whoami`: shows the person whose token the command uses, and the host that it asks.
//!
//! Never prints the text of a token. See [`crate::access`] for the choice of token and host.

use crate::at::At;
use crate::clock;
use crate::failure::Error;
use ironclaw_operator::{Whoami, routes};
use serde::Serialize;

/// The JSON of the caller.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    caller: &'a Whoami,
    /// The home of the host; null for a host that the caller names by its port.
    home: Option<String>,
    /// The URL of the port, or the path of the socket.
    api: String,
}

/// Prints the caller, their identities, the token in use and the host.
pub async fn run(at: &At) -> Result<(), Error> {
    let client = at.client()?;
    let caller = client.call(routes::WHOAMI, []).await?;
    let home = match at.access.port()? {
        Some(_) => None,
        None => Some(at.home.path().display().to_string()),
    };
    let shown = Shown { caller: &caller, home, api: client.address() };
    at.out.json(&shown)?;
    let token = &caller.token;
    let name = if token.name.is_empty() { String::new() } else { format!(" ({})", token.name) };
    let expiry = token.expires_at.as_deref().map_or("never".to_owned(), clock::date_and_time);
    let mut rows = vec![["id".to_owned(), caller.id.to_string()], ["role".to_owned(), caller.role.to_string()]];
    rows.extend(caller.identities.iter().map(|identity| ["identity".to_owned(), identity.clone()]));
    rows.push(["token".to_owned(), format!("{}{name}", token.id)]);
    rows.push(["token expires".to_owned(), expiry]);
    rows.extend(shown.home.iter().map(|home| ["home".to_owned(), home.clone()]));
    rows.push(["api".to_owned(), shown.api]);
    at.out.table(["PERSON", caller.name.as_str()], rows)
}
