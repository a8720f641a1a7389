//! People with their roles and their identities on the wire.
//!
//! Never the text of a token, and never a name in place of an id. See [`crate::tokens`].

use super::tokens::{Token, TokenId};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{ChangeId, PersonId};
use serde::{Deserialize, Serialize};

ironclaw_contract::words! {
    /// The role of a person on this host, most rights first. Each role includes the rights of the roles after it.
    pub enum Role {
        /// Manages people and tokens.
        Owner = "owner",
        /// Manages agents and sessions.
        Admin = "admin",
        Member = "member",
    }
}

impl Role {
    /// Returns whether this role includes the rights of `needed`.
    pub const fn covers(self, needed: Self) -> bool {
        match (self, needed) {
            (Self::Owner, _) => true,
            (Self::Admin, Self::Admin | Self::Member) => true,
            (Self::Admin, Self::Owner) => false,
            (Self::Member, Self::Member) => true,
            (Self::Member, Self::Owner | Self::Admin) => false,
        }
    }
}

/// `POST /v1/people`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewPerson {
    /// 1–64 characters without `:` and without control characters; it must not look like the name of another person.
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
    /// The digest of the page of `POST /v1/people/{person}/role/review`; needed for a higher role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Digest>,
}

/// `POST /v1/people/{person}/notify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewPlace {
    /// A channel on which the person has one identity, an identity of the person as `channel:id`, or `none`.
    pub notify: String,
}

/// `POST /v1/people/{person}/identities`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewIdentity {
    /// `channel:id`. The first colon separates the two; the id may have further colons.
    pub identity: String,
    /// The digest of the page of `POST /v1/people/{person}/identities/review`; needed for a new identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Digest>,
}

/// The page of a step that is no change: a new identity or another role of a person, or a directory that may be granted to agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PersonPage {
    /// Lines of printable characters, each ended by a line feed.
    pub shown: String,
    /// SHA-256 of `shown`, 64 hex characters.
    pub shown_digest: Digest,
}

/// A person: the answer of `GET /v1/people/{person}` and of each change of a person, and an entry of `GET /v1/people`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Person {
    /// `per_…`.
    pub id: PersonId,
    /// Their name.
    pub name: String,
    /// Warnings about confusable characters of the name; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<String>,
    /// Their role.
    pub role: Role,
    /// RFC 3339.
    pub created_at: String,
    /// The identity at which the person is told about requests and incidents, `channel:id`; null for none.
    #[serde(default)]
    pub notify: Option<String>,
    /// Their accounts on channels.
    pub identities: Vec<Identity>,
    /// Their tokens, without the text.
    pub tokens: Vec<Token>,
}

/// An account of a person on a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Identity {
    /// `channel:id`.
    pub identity: String,
    /// Warnings about confusable characters, e.g. `looks like chat:alice of Bob (per_…)`; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<String>,
}

/// `GET /v1/whoami`: the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Whoami {
    /// `per_…`.
    pub id: PersonId,
    /// Their name.
    pub name: String,
    /// Their role.
    pub role: Role,
    /// Their accounts on channels, each `channel:id`.
    pub identities: Vec<String>,
    /// The identity at which the caller is told about requests and incidents, `channel:id`; null for none.
    #[serde(default)]
    pub notify: Option<String>,
    /// The token of the request, without the text.
    pub token: Token,
}

/// The answer of `DELETE /v1/people/{person}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RemovedPerson {
    /// `per_…`; no other person gets this id.
    pub id: PersonId,
    /// Their name, which another person may get now.
    pub name: String,
    /// Their role.
    pub role: Role,
    /// Their tokens that were live, now revoked.
    pub tokens: Vec<TokenId>,
    /// Their accounts on channels, now unlinked, each `channel:id`.
    pub identities: Vec<String>,
    /// The names of the agents at which they had a role.
    pub agents: Vec<String>,
    /// The open changes on their behalf, now withdrawn.
    pub changes: Vec<ChangeId>,
    /// The number of their sessions, now erased.
    pub sessions: u64,
    /// The data with their id that stays in the record.
    pub kept: KeptOfPerson,
}

/// The data of a removed person that stays in the record, beside the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KeptOfPerson {
    /// The changes that they asked for or decided.
    pub changes: u64,
    /// The notes of agents that were kept on their behalf.
    pub notes: u64,
}
