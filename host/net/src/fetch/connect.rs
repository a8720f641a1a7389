//! Connections for the tunnels of commands: the same resolution and the same addresses as for a request, and nothing is sent.
//!
//! Never judges a host: the caller did so. See [`crate::reach`].

use super::outcome::{Failed, Failure, NotFetched, Refused};
use super::{CONNECT_TIME_MAX, Fetcher};
use crate::reach::AddressRefused;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

impl Fetcher {
    /// Opens a connection to a host by its name, at an address that a request over https may use. The name is resolved once.
    ///
    /// # Errors
    /// As [`Self::fetch`]; nothing was sent.
    pub async fn connect(&self, host: &str, port: u16, limit: Duration) -> Result<TcpStream, NotFetched> {
        let limit = limit.min(CONNECT_TIME_MAX);
        let failed = |failure, text| NotFetched::from(Failed { failure, may_have_arrived: false, text });
        let resolved = timeout(limit, self.resolver().addresses(host.to_owned())).await;
        let resolved = resolved.map_err(|_| failed(Failure::Late, String::new()))?;
        let found = resolved.map_err(|error| match error.downcast_ref::<AddressRefused>() {
            Some(refused) => Refused::Address(*refused).into(),
            None => failed(Failure::Unreachable, error.to_string()),
        })?;
        let each = limit / u32::try_from(found.len().max(1)).unwrap_or(u32::MAX);
        let mut text = String::new();
        for address in found {
            match timeout(each, TcpStream::connect((address.ip(), port))).await {
                Ok(Ok(stream)) => {
                    // A handshake waits for each small piece.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => text = error.to_string(),
                Err(_) => {}
            }
        }
        Err(failed(Failure::Unreachable, text))
    }
}
