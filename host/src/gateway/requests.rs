//! Approval requests: calls that wait for people, from the request to the use of the approvals.
//!
//! Never runs a call: [`crate::calls::executor`] does, and it uses the approvals up in the transaction that marks the call as running. An
//! approval is bound to the page that was shown, like that of a change. See [`crate::gateway::approval`].
//!
//! ```text
//! asked ──▶ Pending ──people──▶ Approved ──executor──▶ Running ──▶ Done | Failed | Queued | Unknown
//!              └──▶ Rejected | Expired | Withdrawn
//! ```

mod again;
pub mod allowance;
mod ask;
pub mod bounds;
mod decide;
mod decider_notices;
mod ending;
pub mod facts;
mod host_requests;
mod notice;
mod page;
mod presence;
mod reasons;
mod using;

pub use ask::{Asked, Asking, Needing, answer_at_once, ask, follow_equal};
pub use decide::{known, may_decide, may_read, may_reject, unknown};
pub use decider_notices::expires_soon;
pub use ending::{end, end_all, end_of_sender, end_of_task, withdraw_approved};
pub use host_requests::Requests;
pub use ironclaw_store::tables::requests::{
    Row, Status, ended, find_by_call, finish, is_any_due, list, list_for_task, list_for_turn, next_end, next_reminder,
    pending_count, record_notified, running,
};
pub use notice::{notify_stopped, notify_unknown, record_unknown};
pub use page::{Shown, arguments, show_or_damage};
pub use presence::Presence;
pub use reasons::{StoredReason, codes, is_for_grant, origin_view};
pub use using::{Permitted, Running, use_approvals};

use crate::registry::Person;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::RequestId;
use ironclaw_state::failpoint;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied};
use std::sync::Arc;

impl Requests {
    /// Records the approval of a person for the page with this digest. `proof` is the id of the token that they used.
    ///
    /// # Errors
    /// Refuses as [`decide::approve`] does.
    pub async fn approve(
        self: &Arc<Self>,
        by: &Person,
        proof: String,
        id: RequestId,
        shown: Digest,
    ) -> Result<(), Denied<Error>> {
        let (requests, by) = (Arc::clone(self), by.clone());
        let approved =
            self.record.state.decide(move |tx| decide::approve(tx, &requests, &by, &proof, id, &shown)).await;
        failpoint::reach("request_approved");
        self.announce();
        approved
    }

    /// Records the rejection by a person.
    ///
    /// # Errors
    /// Refuses as [`decide::reject`] does.
    pub async fn reject(self: &Arc<Self>, by: &Person, id: RequestId, reason: String) -> Result<(), Denied<Error>> {
        let (requests, by) = (Arc::clone(self), by.clone());
        let rejected = self.record.state.decide(move |tx| decide::reject(tx, &requests, &by, id, &reason)).await;
        self.announce();
        rejected
    }
}
