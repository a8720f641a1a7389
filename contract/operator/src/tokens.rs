//! Tokens on the wire: their list, and the one answer that has the text of a new token.
//!
//! Never the digest of a token, and its text only in the answer of the request that made it. See [`crate::people`].

use ironclaw_contract::ids::PersonId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The id of a token: `tok_` and 16 characters of hex. It grants no access.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenId(String);

impl TokenId {
    /// Makes an id from random bytes.
    pub fn from_random(random: [u8; 8]) -> Self {
        Self(format!("tok_{:016x}", u64::from_be_bytes(random)))
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for TokenId {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let hex = |rest: &str| rest.len() == 16 && rest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        match text.strip_prefix("tok_") {
            Some(rest) if hex(rest) => Ok(Self(text.to_owned())),
            _ => Err("not a token's id: expected `tok_` and 16 characters of 0-9 a-f".to_owned()),
        }
    }
}

impl Serialize for TokenId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TokenId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

ironclaw_contract::words! {
    /// The state of a token. It never returns to `Live`.
    pub enum TokenState {
        /// It gives access to the API.
        Live = "live",
        /// It expired, and the record has its end.
        Expired = "expired",
        /// A person revoked it.
        Revoked = "revoked",
    }
}

ironclaw_contract::words! {
    /// A face of the host, through which a person decides. A token is valid on one face only.
    pub enum Face {
        /// A program with a token: `ironctl`, or another client of the API.
        Program = "program",
        /// A page of the console, in a browser that has a session.
        Console = "console",
    }
}

/// `POST /v1/tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewToken {
    /// Name or id of the person who will use it.
    pub person: String,
    /// Its purpose, up to 64 characters; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its expiry: a duration from now such as `30d`, or RFC 3339. Without an expiry, the token does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// A token in a list, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Token {
    /// `tok_…`, which is not the text of the token.
    pub id: TokenId,
    /// Its owner, `per_…`.
    pub person: PersonId,
    /// The name of that person.
    pub person_name: String,
    /// Its purpose.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its face: a token for programs, or a session of the console.
    pub face: Face,
    /// Its state.
    pub state: TokenState,
    /// RFC 3339.
    pub created_at: String,
    /// The time of its expiry, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// The time at which it expired or was revoked, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// True if this request carried it.
    #[serde(default)]
    pub current: bool,
}

/// A new token: the answer of `POST /v1/tokens` and `POST /v1/tokens/{id}/rotate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct IssuedToken {
    /// The token.
    pub token: Token,
    /// Its text, only in this answer; absent if the host saved it to a file of the home instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The file of the home to which the host saved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_to: Option<String>,
}
