//! The release of an approved call that runs where its output is judged: in the jail of the session, or with the record of its output.
//!
//! Never runs a call. The host informs the model that people approved the call, and the model makes it again: in the turn that waits, in the
//! next attempt at its message, or in a follow-up turn. The equal call uses the approvals up, so it runs once. See
//! [`crate::gateway::requests::use_approvals`].

use super::late::{FOLLOW_UPS_MAX, Late, open_follow_up};
use super::{Executor, Place, recorded};
use crate::gateway::requests::{self, Row};
use crate::gateway::waiting::Status;
use crate::sessions::store;
use crate::turns::calls::{self, CallRow, CallState, ResultBody};
use crate::turns::turn;
use ironclaw_contract::seam::message::Author;
use ironclaw_judge::provenance::{Labelled, Provenance};
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use ironclaw_store::tables::{messages, turns};
use std::sync::Arc;

impl Executor {
    /// Has the model of an approved call make it again. Does nothing for a call that was released or refused.
    pub async fn release(self: &Arc<Self>, place: Place) -> Result<(), Error> {
        let executor = Arc::clone(self);
        self.record.state.write(move |tx| executor.release_in(tx, &place)).await?;
        self.gateway.announce_end();
        Ok(())
    }

    fn release_in(&self, tx: &mut WriteTx<'_>, place: &Place) -> Result<(), Error> {
        let found = requests::find_by_call(tx, place.call)?.filter(|row| row.status == Status::Approved);
        let Some(row) = found else { return Ok(()) };
        let call = calls::find(tx, place.call)?.filter(|call| call.state == CallState::Asked);
        let session = store::find(tx, place.session)?.filter(|session| session.wrapped.is_some());
        let (Some(call), Some(session)) = (call, session) else {
            return self.end_unreleased(tx, &row, "its call has an outcome already");
        };
        let is_open = turn::find(tx, place.turn)?.is_some_and(|turn| turn.open);
        if call.result.is_none() && (is_open || messages::is_requeued(tx, place.turn)?) {
            return self.release_in_turn(tx, place, &call, &row);
        }
        if messages::follow_ups_of(tx, row.root)? >= FOLLOW_UPS_MAX {
            let why =
                format!("its task had {FOLLOW_UPS_MAX} turns after approvals, the most that one message may have");
            return self.end_unreleased(tx, &row, &why);
        }
        turns::release_call(tx, call.id)?;
        let late = Late { place, call: &call, row: &row, session: &session };
        open_follow_up(self, tx, &late, &words(&row))
    }

    /// Gives a call that its turn waits for, or the next attempt at its message, the result that it is approved.
    fn release_in_turn(&self, tx: &mut WriteTx<'_>, place: &Place, call: &CallRow, row: &Row) -> Result<(), Error> {
        let labels = recorded(tx, call, &place.key)?.labels;
        let result = ResultBody::failed(words(row));
        let result = Labelled::new(&result, Provenance::HostAbout { output: labels });
        let item = calls::record_result(tx, &self.target(place), call.id, &call.tool, Author::Host, result)?;
        turns::set_pending_result(tx, call.id, item.tuple.item)?;
        turns::release_call(tx, call.id)?;
        Ok(())
    }

    fn end_unreleased(&self, tx: &mut WriteTx<'_>, row: &Row, why: &str) -> Result<(), Error> {
        requests::withdraw(tx, &self.gateway, row, why)
    }
}

/// Returns the words of the host to the model of a released call.
fn words(row: &Row) -> String {
    format!(
        "Your call of {} that waited as {} was approved, and it has not run yet. Make exactly this call again now, with the same \
         arguments: it then runs, once. After that continue the task that needed it.",
        row.tool, row.id
    )
}
