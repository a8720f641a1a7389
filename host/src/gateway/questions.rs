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

pub use crate::store::tables::questions::{Row, Status, list, waiting_count};
pub use ask::{Asking, ask};
pub use decide::{Given, known, may_answer, may_read, unknown};
pub use due::QuestionWorker;
pub use ending::{doubt_all, end_of_person, end_of_turn};

use crate::channels::inbound::inbox::Recorded;
use crate::registry::Person;
use crate::registry::live_settings::Live;
use crate::sessions::store;
use crate::store::error::Error;
use crate::store::record::Record;
use crate::store::refusal::{Decide, Denied};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::QuestionId;
use ironclaw_state::{ReadTx, failpoint, keys};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::sync::Notify;

/// The text of a question as the agent wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Body {
    pub question: String,
    /// The answers to choose from.
    pub options: Vec<String>,
    /// True if the person may type an answer.
    pub free_text: bool,
}

impl Body {
    /// Returns the digest of the text.
    pub fn digest(&self) -> Digest {
        Digest::of(canonical::to_string(self).as_bytes())
    }
}

/// Returns the text of a question.
///
/// # Errors
/// Errors of the record and of the key, and a damaged text.
pub fn body(tx: &ReadTx<'_>, record: &Record, row: &Row) -> Result<Body, Error> {
    let damaged = || ironclaw_state::Error::Stored(format!("{}: its text", row.id));
    let session = store::find(tx, row.session)?.ok_or_else(damaged)?;
    let key = session.content_key(&record.wrapping)?;
    let text = key.open(row.id.item(), &row.sealed_text)?;
    let text = String::from_utf8(text).map_err(|_| Error::from(keys::Error::Sealed("the text of a question")))?;
    Ok(serde_json::from_str(&text).map_err(|_| damaged())?)
}

/// The questions of this host.
pub struct Questions {
    pub record: Arc<Record>,
    /// Have the time for an answer, and the quotas.
    pub settings: Arc<Live>,
    pub bell: Notify,
}

impl Questions {
    /// Makes the questions of a host.
    pub fn new(record: Arc<Record>, settings: Arc<Live>) -> Self {
        Self { record, settings, bell: Notify::new() }
    }

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
