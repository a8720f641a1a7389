//! What an approval must be for, and an approval that is valid.

use crate::gateway::approval::Subject;
use crate::gateway::independence::{Asked, Backers};
use crate::registry::policy::Rule;
use ironclaw_contract::ids::PersonId;
use ironclaw_store::tables::approvals::Approval;

/// What an approval must be for now, and whose approvals count.
pub struct Ballot {
    /// The subject of each approval, as it must be now.
    pub subject: Subject,
    /// The request for approvals.
    pub asked: Asked,
    /// The rule of the policy.
    pub rule: Rule,
    /// True if the approval of the requester counts.
    pub own_counts: bool,
    /// True if some reasons are for the requester alone to remove.
    pub has_own_reasons: bool,
    /// The end of an approval that is given now, milliseconds since the epoch.
    pub valid_until: i64,
    /// The end of the approvals once there are enough, milliseconds since the epoch; `None` if they are used whenever its effect is made.
    pub use_until: Option<i64>,
}

/// A valid approval with its backers.
pub struct ValidApproval {
    pub given: Approval,
    /// The token that the approver used.
    pub proof: String,
    pub(super) backers: Backers,
}

impl ValidApproval {
    /// Returns the people behind it.
    pub fn people(&self) -> impl Iterator<Item = PersonId> {
        match &self.backers {
            Backers::People(people) => people.iter().copied().collect::<Vec<_>>(),
            Backers::Unknown => vec![self.given.person],
        }
        .into_iter()
    }
}
