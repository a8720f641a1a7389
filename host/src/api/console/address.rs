//! The address of the console: an origin of its own for each home.
//!
//! Cookies belong to a host name and not to a port. The name `LABEL.localhost` is random, so that another service on this machine gets no
//! cookie of the console, and browsers resolve it to loopback. Opens no port. See [`super::Console`].

use crate::registry::tokens;
use crate::registry::{self, Face, TokenState};
use ironclaw_contract::ids::PersonId;
use ironclaw_state::{ReadTx, WriteTx, bad, keys};
use ironclaw_store::error::Error;
use ironclaw_store::tables::facts::{self, Fact};
use serde::{Deserialize, Serialize};

/// The end of the name of a host that browsers resolve to loopback (RFC 6761, 6.3).
const LOOPBACK_ZONE: &str = "localhost";

/// The characters of a label.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Characters of a label, five random bits each.
const LABEL_CHARACTERS: usize = 26;

/// The address of the console of a home, as the record has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Address {
    /// The random part of the host name.
    pub label: String,
    /// The last port, which a restart takes again; 0 before the first one.
    pub port: u16,
}

impl Address {
    fn random() -> Result<Self, keys::Error> {
        let bytes: [u8; LABEL_CHARACTERS] = keys::random()?;
        Ok(Self { label: bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect(), port: 0 })
    }

    /// Returns the origin, as a browser writes it.
    pub fn origin(&self) -> String {
        format!("http://{}.{LOOPBACK_ZONE}:{}", self.label, self.port)
    }
}

/// Returns the address of the record, if it has one.
pub fn find(tx: &ReadTx<'_>) -> Result<Option<Address>, ironclaw_state::Error> {
    let found = facts::get(tx, Fact::ConsoleOrigin)?;
    found.map(|text| serde_json::from_str(&text).map_err(|_| bad("the origin of the console").into())).transpose()
}

/// Returns the address with this port, and records it. The first one gets its label here, and so does one whose port changed: another
/// program may have the old port by now, and a browser would send it the cookies of that name.
pub fn keep(tx: &mut WriteTx<'_>, port: u16) -> Result<Address, Error> {
    match find(tx)? {
        Some(before) if before.port == port => Ok(before),
        _ => begin(tx, port, None),
    }
}

/// Replaces the label and ends every session of the console. Returns the new address.
pub fn replace(tx: &mut WriteTx<'_>, by: PersonId) -> Result<Address, Error> {
    let port = find(tx)?.map_or(0, |before| before.port);
    begin(tx, port, Some(by))
}

/// Records a new address. The sessions of an earlier one end.
fn begin(tx: &mut WriteTx<'_>, port: u16, by: Option<PersonId>) -> Result<Address, Error> {
    let address = Address { port, ..Address::random()? };
    facts::set(tx, Fact::ConsoleOrigin, serde_json::to_string(&address).expect("plain fields"))?;
    tokens::end_sessions(tx, by)?;
    Ok(address)
}

/// Returns whether a browser has a session.
pub fn has_session(tx: &ReadTx<'_>) -> Result<bool, ironclaw_state::Error> {
    let tokens = registry::tokens(tx)?;
    Ok(tokens.iter().any(|token| token.face == Face::Console && token.state == TokenState::Live))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_is_a_random_name_below_localhost() {
        let (one, other) = (Address::random().expect("random bytes"), Address::random().expect("random bytes"));
        assert_ne!(one.label, other.label);
        let origin = Address { port: 8799, ..one.clone() }.origin();
        assert_eq!(origin, format!("http://{}.localhost:8799", one.label));
        assert!(one.label.len() == LABEL_CHARACTERS && one.label.bytes().all(|byte| ALPHABET.contains(&byte)));
    }
}
