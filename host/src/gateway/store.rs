//! Stand-in: the shapes of what is recorded about changes.

use super::Requester;
use crate::state::{self, Tx};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, ChangeId, PersonId};
use ironclaw_contract::seam::change::{Change, ChangeKind};
use ironclaw_contract::seam::seal::Label;
use serde_json::Value;
use std::str::FromStr;

#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "a stand-in")]
pub struct Row {
    pub id: ChangeId,
    pub kind: ChangeKind,
    pub agent: Option<AgentId>,
    pub requester: Requester,
    pub change: Change,
    pub before: Value,
    pub facts: Value,
    pub reason: String,
    pub labels: Vec<Label>,
    pub generation: u64,
    pub status: Status,
    pub shown: Option<Digest>,
    pub created_at: i64,
    pub expires_at: i64,
    pub decided_by: Option<PersonId>,
    pub decided_at: Option<i64>,
    pub applied_at: Option<i64>,
    pub outcome: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "a stand-in")]
pub enum Status {
    Pending,
    Approved,
    Applied,
    Rejected,
    Expired,
    Withdrawn,
    Failed,
    Unknown,
}

impl Status {
    const ALL: [Self; 8] = [
        Self::Pending,
        Self::Approved,
        Self::Applied,
        Self::Rejected,
        Self::Expired,
        Self::Withdrawn,
        Self::Failed,
        Self::Unknown,
    ];

    /// As stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Applied => "applied",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

impl FromStr for Status {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|status| status.name() == text).ok_or_else(|| "no such status".to_owned())
    }
}

#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "a stand-in")]
pub struct Filter {
    pub statuses: Vec<Status>,
    pub agent: Option<AgentId>,
    pub limit: usize,
}

#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "a stand-in")]
pub struct Given {
    pub person: PersonId,
    pub at: i64,
    pub state: String,
}

/// One change.
///
/// # Errors
/// Those of the record.
pub fn find(_tx: &Tx<'_>, _id: &ChangeId) -> Result<Option<Row>, state::Error> {
    Ok(None)
}

/// Changes.
///
/// # Errors
/// Those of the record.
pub fn list(_tx: &Tx<'_>, _filter: &Filter) -> Result<Vec<Row>, state::Error> {
    Ok(Vec::new())
}

/// Changes that wait.
///
/// # Errors
/// Those of the record.
pub fn waiting(_tx: &Tx<'_>) -> Result<u64, state::Error> {
    Ok(0)
}

/// Who said yes.
///
/// # Errors
/// Those of the record.
pub fn approvals(_tx: &Tx<'_>, _id: ChangeId) -> Result<Vec<Given>, state::Error> {
    Ok(Vec::new())
}
