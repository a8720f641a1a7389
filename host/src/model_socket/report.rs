//! What a report of a sandbox may be about, and what stands for one that a lowered guard lets pass.
//!
//! Never takes a sandbox's word for what came of an action. Next: `model_socket::requests`.

use crate::error::Error;
use crate::registry::Mode;
use crate::tools::Runs;
use crate::turns::calls::{self, CallState};
use crate::turns::items::{BodyError, NewItem, Recorded};
use ironclaw_contract::ids::{CallId, ItemId, SessionId, TurnId};
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::seal::{ItemKind, Label};
use ironclaw_ledger::Entry;
use ironclaw_state::WriteTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_state::seal::Sealer;

/// What a model is told of a call for which its sandbox wrote no row.
pub(crate) const NO_ROW: &str = "refused: the call made no row, so nothing was asked of the host";

/// The recorded call that a report may be about, or why there is none. Of a call that goes out as a row only a failure.
pub(crate) fn reportable(call_id: CallId, found: Option<calls::CallRow>, ok: bool) -> Result<calls::CallRow, String> {
    match found {
        None => Err(format!("{call_id} is no recorded call of the turn")),
        Some(call) if call.runs != Some(Runs::Local) && (ok || call.runs != Some(Runs::Row)) => {
            Err(format!("{call_id} does not run in the sandbox"))
        }
        Some(call) if call.state != CallState::Permitted => {
            Err(format!("{call_id} has its result already, or never ran"))
        }
        Some(call) => Ok(call),
    }
}

/// In the mode `dangerous_warn`: notes what passed without a seal.
pub(crate) fn note_unsealed(tx: &mut WriteTx<'_>, session: SessionId, mode: Mode, why: &str) -> Result<(), Error> {
    let entry = Entry::new(LedgerEvent::ContextUnsealed).session(session).with("mode", mode.name());
    entry.with("passed", "as quoted text").reason(why).append(tx)?;
    Ok(())
}

/// In a dangerous mode: a result that nobody asked for stands as a quote, never as a result.
pub(crate) fn quote(
    tx: &mut WriteTx<'_>,
    sealer: &Sealer,
    (session, turn): (SessionId, TurnId),
    key: &ContentKey,
    text: &str,
) -> Result<Recorded, Error> {
    let spans = vec![Span { author: Author::Quoted, bytes: text.len() }];
    let labels = vec![Label::External];
    let draft = NewItem::new(ItemId::new(), ItemKind::Message, text, spans, labels, key).map_err(BodyError::from)?;
    Ok(draft.turn(turn).record(tx, session, sealer)?)
}
