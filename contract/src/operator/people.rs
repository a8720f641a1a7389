//! People and their identities on the wire: who there is, what each may do, and by which accounts each is known.
//!
//! Never a token's text, and never a name in the place of an id. See [`crate::operator::tokens`].

use super::Token;
use crate::ids::PersonId;
use serde::{Deserialize, Serialize};

/// `POST /v1/people`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewPerson {
    /// 1–64 characters, no `:` and nothing that steers a terminal; no other person's name looks like it.
    pub name: String,
    /// `owner admin member`.
    pub role: String,
}

/// `POST /v1/people/{person}/role`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewRole {
    /// `owner admin member`.
    pub role: String,
}

/// `POST /v1/people/{person}/identities`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewIdentity {
    /// `channel:id`, split at the first colon; the rest is kept whole.
    pub identity: String,
}

/// A person: `GET /v1/people/{person}`, one of `GET /v1/people`, and what each change of one answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Person {
    /// `per_…`.
    pub id: PersonId,
    /// Their name.
    pub name: String,
    /// What is odd about the name; empty when nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<String>,
    /// `owner admin member`.
    pub role: String,
    /// RFC 3339.
    pub created_at: String,
    /// By which accounts they are known.
    pub identities: Vec<Identity>,
    /// Their tokens, without the text.
    pub tokens: Vec<Token>,
}

/// One account of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Identity {
    /// `channel:id`, whole.
    pub identity: String,
    /// What is odd about it, e.g. `looks like chat:alice of Bob (per_…)`; empty when nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<String>,
}
