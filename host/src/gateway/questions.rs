//! Questions of agents to the people of their turns, from the call to the answer.
//!
//! An answer gives no authority: it is never read for a declaration of scope, and its turn has the scope of the turn that asked. Never
//! opens a turn without an answer. See [`crate::channels::inbound::inbox::answer`] for the message, and [`crate::gateway::requests`] for calls that wait.
//!
//! ```text
//! asked ──▶ Waiting ──▶ Answered | Cancelled | Expired
//!              └──a restore──▶ Unknown ──▶ Cancelled
//! ```

mod ask;
mod decide;
mod due;
mod ending;
mod host_questions;

pub use ask::{Asking, ask};
pub use decide::{Given, known, may_answer, may_read, unknown};
pub use due::QuestionWorker;
pub use ending::{doubt_all, end_of_person, end_of_turn};
pub use host_questions::{Body, Questions, body};
pub use ironclaw_store::tables::questions::{Row, Status, list, waiting_count};

use crate::channels::inbound::inbox::Recorded;
use crate::registry::Person;
use ironclaw_contract::ids::QuestionId;
use ironclaw_state::failpoint;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied};
use std::sync::Arc;

impl Questions {
    /// Records the answer of a person as a message, which opens a turn. The caller wakes its session.
    ///
    /// # Errors
    /// Refuses another person than the one concerned, a question that does not wait, and an answer that it does not take.
    pub async fn answer(
        self: &Arc<Self>,
        by: &Person,
        id: QuestionId,
        given: Given,
    ) -> Result<Recorded, Denied<Error>> {
        let (questions, by) = (Arc::clone(self), by.clone());
        let answered = self.record.state.decide(move |tx| decide::answer(tx, &questions, &by, id, &given)).await;
        failpoint::reach("question_answered");
        answered
    }

    /// Cancels a question, with a reason for the agent.
    ///
    /// # Errors
    /// Refuses people other than the one concerned and owners, and a question that has ended.
    pub async fn reject(self: &Arc<Self>, by: &Person, id: QuestionId, reason: String) -> Result<(), Denied<Error>> {
        let (questions, by) = (Arc::clone(self), by.clone());
        self.record.state.decide(move |tx| decide::reject(tx, &questions, &by, id, &reason)).await
    }
}
