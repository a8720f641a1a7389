//! Calls as a kind of what waits: the approval request, from the call that needs people to the use of the approvals.
//!
//! Never runs a call: [`crate::calls::executor`] does, and it uses the approvals up in the transaction that marks the call as running. An
//! approval is bound to the page that was shown, like that of a change. See [`crate::gateway::approval`].

mod again;
pub mod allowance;
mod ask;
pub mod bounds;
mod decide;
mod ending;
pub mod facts;
mod notice;
mod page;
mod reads;
mod reasons;
mod sheet;
pub mod together;
mod using;
pub(in crate::gateway) mod words;

pub use ask::{Asked, Asking, Needing, answer_at_once, ask, follow_equal};
pub use ending::{end_all, end_of_sender, end_of_task, withdraw, withdraw_approved};
pub use ironclaw_store::tables::waiting::requests::{
    Row, approved, find_by_call, finish, is_any_due, list_for_task, list_for_turn, running,
};
pub use notice::{notify_stopped, notify_unknown, record_unknown};
pub use page::{arguments, effect};
pub use reasons::{codes, is_for_grant};
pub use using::{Permitted, Running, use_approvals};

use crate::gateway::waiting::{Ballot, Ending, Gateway, Kind, Rights, Shown, Sight, ValidApproval, Waiting};
use crate::registry::{Person, Role};
use decide::Open;
use ironclaw_judge::Class;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::Denied;
use ironclaw_store::tables::waiting::requests as table;

/// Calls as a kind of what waits.
pub struct Calls;

/// Returns the row of a call that waits.
fn row(tx: &ReadTx<'_>, of: &Waiting) -> Result<Row, ironclaw_state::Error> {
    let found = table::find(tx, of.id)?;
    found.ok_or_else(|| ironclaw_state::Error::Stored(format!("{} is no call", of.id)))
}

impl Kind for Calls {
    fn rights(&self, tx: &ReadTx<'_>, all: &Gateway, by: &Person, of: &Waiting) -> Result<Rights, Error> {
        let decides = Open::from(row(tx, of)?).admits(&all.now().policy, by);
        let may_read = decides || by.id == of.principal || by.role.covers(Role::Admin);
        // A rejection permits nothing.
        Ok(Rights { sight: may_read.then_some(Sight::Whole), decides, rejects: may_read })
    }

    fn show(&self, tx: &ReadTx<'_>, all: &Gateway, of: &Waiting) -> Result<Shown, Error> {
        page::show_or_damage(tx, all, &row(tx, of)?)
    }

    fn why_stale(&self, tx: &ReadTx<'_>, _: &Gateway, of: &Waiting) -> Result<Option<String>, Error> {
        Ok(decide::why_stale(tx, &row(tx, of)?)?)
    }

    fn is_grave(&self, tx: &ReadTx<'_>, of: &Waiting) -> Result<bool, Error> {
        let row = row(tx, of)?;
        Ok(match row.own.class {
            Class::Exec | Class::Trade => true,
            Class::Read | Class::Write | Class::Send | Class::Ask => {
                reasons::codes(&row).into_iter().any(reasons::is_for_grant)
            }
        })
    }

    fn deciders(&self, tx: &ReadTx<'_>, all: &Gateway, of: &Waiting) -> Result<String, Error> {
        let open = Open::from(row(tx, of)?);
        let person = crate::registry::person_name(tx, of.principal)?;
        Ok(page::deciders(&open.row.own.reasons, open.rule(&all.now().policy), &person))
    }

    fn approvals_needed(&self, tx: &ReadTx<'_>, all: &Gateway, of: &Waiting) -> Result<u32, Error> {
        let open = Open::from(row(tx, of)?);
        Ok(if open.needs_policy() { open.rule(&all.now().policy).approvals } else { 1 })
    }

    fn ballot(&self, tx: &ReadTx<'_>, all: &Gateway, of: &Waiting, shown: &Shown) -> Result<Ballot, Denied<Error>> {
        let row = row(tx, of)?;
        if shown.facts.is_none() {
            // No approval fits the page of a damaged request: its error is the answer.
            page::show(tx, all, &row)?;
        }
        Ok(Open::from(row).ballot(tx, &all.now().policy, shown)?)
    }

    fn is_approved(
        &self,
        tx: &ReadTx<'_>,
        of: &Waiting,
        ballot: &Ballot,
        valid: &[ValidApproval],
    ) -> Result<bool, ironclaw_state::Error> {
        Open::from(row(tx, of)?).is_approved(tx, &ballot.rule, valid)
    }

    fn end(&self, tx: &mut WriteTx<'_>, all: &Gateway, of: &Waiting, ending: &Ending<'_>) -> Result<(), Error> {
        ending::end(tx, &all.record, of, &row(tx, of)?, ending)
    }
}
