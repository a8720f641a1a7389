//! The person who makes a decision, as its proof and the ledger name them.
//!
//! Checks nothing. See `crate::gateway::waiting::decide`.

use super::{Face, Person, TokenId};

/// The person who makes a decision, with their token and the face on which they were shown its object.
#[derive(Debug, Clone)]
pub struct Signer {
    pub person: Person,
    /// The token of their request; `None` if it is unknown.
    pub token: Option<TokenId>,
    pub face: Face,
}

impl Signer {
    /// Returns the proof of an approval: the id of the token.
    pub fn proof(&self) -> String {
        self.token.as_ref().map(ToString::to_string).unwrap_or_default()
    }
}
