//! The home, the output and the access with which a command runs.
//!
//! Never opens the home or asks a host by itself. See [`crate::client`] for the requests.

use crate::access::Access;
use crate::client::Client;
use crate::failure::Error;
use crate::home::Home;
use crate::output::Output;

/// Home, output and access of a command.
#[derive(Debug)]
pub struct At {
    /// The home of the host.
    pub home: Home,
    /// The output for a person or a script.
    pub out: Output,
    /// The transport and the token that the caller names.
    pub access: Access,
}

impl At {
    /// Returns a client for the host that the caller means. A host that does not answer fails the first request.
    pub fn client(&self) -> Result<Client, Error> {
        Client::with(&self.home, &self.access)
    }
}
