//! The check of a sandbox's report, and the quote that replaces an invalid report under a lowered guard.
//!
//! Never accepts a sandbox's word for the outcome of an action. See [`crate::calls::model_socket::requests`].

use crate::registry::Mode;
use crate::registry::tools::Runs;
use crate::turns::calls::{self, CallState, ResultTarget};
use crate::turns::items::{NewItem, Recorded};
use ironclaw_contract::ids::{CallId, ItemId, SessionId};
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_judge::provenance::{Labelled, Provenance};
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;

/// Returns the recorded call of a report, or the reason why the report is invalid.
pub(crate) fn reportable(call_id: CallId, found: Option<calls::CallRow>) -> Result<calls::CallRow, String> {
    match found {
        None => Err(format!("{call_id} is not a recorded call of the turn")),
        Some(call) if call.runs != Some(Runs::Local) => Err(format!("{call_id} does not run in the sandbox")),
        Some(call) if call.state != CallState::Permitted => {
            Err(format!("{call_id} already has its result, or never ran"))
        }
        Some(call) => Ok(call),
    }
}

/// Records a part that passed without a seal in the mode `dangerous_warn`.
pub(crate) fn record_unsealed(tx: &mut WriteTx<'_>, session: SessionId, mode: Mode, why: &str) -> Result<(), Error> {
    let entry = Entry::new(LedgerEvent::ContextUnsealed).session(session).with("mode", mode.name());
    entry.with("passed", "as quoted text").reason(why).append(tx)?;
    Ok(())
}

/// Records an unexpected result in a dangerous mode as a quote, never as a result.
pub(crate) fn quote(tx: &mut WriteTx<'_>, target: &ResultTarget<'_>, text: &str) -> Result<Recorded, Error> {
    let ResultTarget { session, turn, key, sealer } = *target;
    let spans = vec![Span { author: Author::Quoted, bytes: text.len() }];
    let text = Labelled::new(text, Provenance::Sandbox);
    let new = NewItem::new(ItemId::new(), ItemKind::Message, text, spans, key)?;
    Ok(new.turn(turn).record(tx, session, sealer)?)
}
