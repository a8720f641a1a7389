//! Tokens on the wire: which there are, and the one moment in which the text of one is told.
//!
//! Never the digest of a token, and its text only in the answer that made it. See [`crate::operator::people`].

use crate::ids::PersonId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The name of a token: `tok_` and 16 characters of hex. It opens nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenId(String);

impl TokenId {
    /// Returns the id of these random bytes.
    pub fn of(random: [u8; 8]) -> Self {
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

/// `POST /v1/tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewToken {
    /// Name or id of the person who will speak with it.
    pub person: String,
    /// What it is for, up to 64 characters; empty when that is not said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// When it ends: a duration such as `30d` from now, or RFC 3339. Without it, it does not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// A token as it is listed; never its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Token {
    /// `tok_…`, which names a token and is none.
    pub id: TokenId,
    /// Whose it is, `per_…`.
    pub person: PersonId,
    /// That person's name.
    pub person_name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `live expired revoked`.
    pub state: String,
    /// RFC 3339.
    pub created_at: String,
    /// When it ends by itself, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// When it ended, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Whether the request that asked came with this one.
    #[serde(default)]
    pub current: bool,
}

/// A token that was made now: the answer of `POST /v1/tokens` and `POST /v1/tokens/{id}/rotate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct IssuedToken {
    /// The token.
    pub token: Token,
    /// Its text, told this once; absent when the host put it into its own file instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The file of the home that holds it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_to: Option<String>,
}
