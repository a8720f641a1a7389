//! What a person is shown who decides: everything that would happen, each string made safe to look at, nothing left out.
//!
//! Injective: two changes that differ in anything are never shown alike. Next: `gateway::decide`, which binds its digest.

use super::policy::Rule;
use ironclaw_contract::ids::ChangeId;
use ironclaw_contract::seam::change::Change;
use serde_json::Value;

/// Everything that is shown.
#[derive(Debug, Clone)]
pub struct View<'a> {
    /// The change.
    pub id: ChangeId,
    /// To what.
    pub change: &'a Change,
    /// Whom it concerns: id and name.
    pub agent: Option<(String, &'a str)>,
    /// Who asks: a person, or an agent on behalf of one; ids with names.
    pub requester: Asker<'a>,
    /// Why, in the words of whoever asks.
    pub reason: &'a str,
    /// How it stands, in the shape of the payload.
    pub before: &'a Value,
    /// What the names in it mean.
    pub facts: &'a Value,
    /// Who decides.
    pub rule: &'a Rule,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub expires_at: String,
    /// Which generation of the record.
    pub generation: u64,
}

/// Who asks.
#[derive(Debug, Clone)]
pub enum Asker<'a> {
    /// A person: id and name.
    Person(String, &'a str),
    /// An agent.
    Agent {
        /// Id and name.
        agent: (String, &'a str),
        /// On whose behalf: id and name.
        principal: (String, &'a str),
        /// Which conversation.
        session: String,
        /// Which turn.
        turn: String,
        /// Which message.
        message: Option<String>,
        /// Which call.
        call: String,
    },
}

/// The exact text that a person is shown: lines of printable characters, each ended by a line feed.
pub fn render(_view: &View<'_>) -> String {
    todo!("shown")
}
