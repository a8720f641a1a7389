//! Questions of agents to the people of their turns, as a kind of what waits: from the call to the answer.
//!
//! An answer gives no authority: it is never read for a declaration of scope, and its turn has the scope of the turn that asked. Never
//! opens a turn without an answer. See [`crate::channels::inbound::inbox::answer`] for the message.

mod answer;
mod ask;
mod page;
pub(in crate::gateway) mod words;

pub use answer::Given;
pub use ask::{Asking, ask};

use crate::channels::inbound::inbox::Recorded;
use crate::gateway::waiting::{self, Ballot, Ending, Gateway, Kind, Rights, Shown, Sight, Status, Waiting};
use crate::registry::{self, Person, Role, Signer};
use crate::turns::turn::Turn;
use ironclaw_contract::ids::QuestionId;
use ironclaw_operator::DenialCode;
use ironclaw_state::{ReadTx, WriteTx, failpoint};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use ironclaw_store::tables::waiting::questions::{self as table, Row};
use std::sync::Arc;

/// Questions as a kind of what waits.
pub struct Questions;

/// Returns the row of a question that waits.
fn row(tx: &ReadTx<'_>, of: &Waiting) -> Result<Row, ironclaw_state::Error> {
    let found = table::find(tx, of.id)?;
    found.ok_or_else(|| ironclaw_state::Error::Stored(format!("{} is no question", of.id)))
}

impl Kind for Questions {
    fn rights(&self, _: &ReadTx<'_>, _: &Gateway, by: &Person, of: &Waiting) -> Result<Rights, Error> {
        let is_own = by.id == of.principal;
        let may_read = is_own || by.role.covers(Role::Admin);
        // After a restore it takes no answer: it may have had one.
        let decides = is_own && of.status != Status::Doubtful;
        Ok(Rights { sight: may_read.then_some(Sight::Whole), decides, rejects: is_own || by.role == Role::Owner })
    }

    fn show(&self, tx: &ReadTx<'_>, all: &Gateway, of: &Waiting) -> Result<Shown, Error> {
        page::show(tx, all, &row(tx, of)?)
    }

    fn why_stale(&self, _: &ReadTx<'_>, _: &Gateway, _: &Waiting) -> Result<Option<String>, Error> {
        Ok(None)
    }

    fn is_grave(&self, _: &ReadTx<'_>, _: &Waiting) -> Result<bool, Error> {
        Ok(false)
    }

    fn deciders(&self, tx: &ReadTx<'_>, _: &Gateway, of: &Waiting) -> Result<String, Error> {
        Ok(registry::person_name(tx, of.principal)?)
    }

    fn approvals_needed(&self, _: &ReadTx<'_>, _: &Gateway, _: &Waiting) -> Result<u32, Error> {
        Ok(0)
    }

    fn ballot(&self, _: &ReadTx<'_>, _: &Gateway, of: &Waiting, _: &Shown) -> Result<Ballot, Denied<Error>> {
        let message = format!("{} is a question, which is answered and not approved", of.id);
        let refusal = Refusal::new(DenialCode::QuestionAnswerInvalid, message);
        Err(refusal.hint(format!("answer it: `ironctl answer {} TEXT`", of.id)).into())
    }

    fn end(&self, tx: &mut WriteTx<'_>, all: &Gateway, of: &Waiting, ending: &Ending<'_>) -> Result<(), Error> {
        let what = waiting::outcome(tx, of, ending)?;
        waiting::inform(tx, &all.record, of, &format!("Your question {} {what}.", of.id)).map(drop)
    }
}

impl Gateway {
    /// Records the answer of a person as a message, which opens a turn. The caller wakes its session.
    ///
    /// # Errors
    /// Refuses another person than the one concerned, a question that does not wait, and an answer that it does not take.
    pub async fn answer(
        self: &Arc<Self>,
        by: &Signer,
        id: QuestionId,
        given: Given,
    ) -> Result<Recorded, Denied<Error>> {
        let (all, by) = (Arc::clone(self), by.clone());
        let answered = self.record.state.decide(move |tx| answer::answer(tx, &all, &by, id, &given)).await;
        failpoint::reach("question_answered");
        self.announce();
        answered
    }
}

/// Withdraws the questions of a turn that wait.
pub fn end_of_turn(tx: &mut WriteTx<'_>, all: &Gateway, turn: &Turn) -> Result<(), Error> {
    let ending = Ending { status: Status::Withdrawn, by: None, outcome: "its turn was cancelled" };
    for row in table::pending_in_session(tx, turn.session)?.iter().filter(|row| row.turn == turn.id) {
        waiting::end_active(tx, all, row.id.into(), &ending)?;
    }
    Ok(())
}
