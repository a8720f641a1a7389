//! The body of an output for the record, and its entry in the ledger.
//!
//! Judges no call. See [`super::generate`].

use crate::turns::calls::{self, LeftOut};
use crate::turns::context::OutputBody;
use ironclaw_contract::ids::{SessionId, TurnId};
use ironclaw_contract::seam::limits::BODY_BYTES_MAX;
use ironclaw_contract::seam::seal::Tuple;
use ironclaw_ledger::Entry;
use ironclaw_model::{Output, Usage};
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use ironclaw_text::lookalike;

/// Returns the body of an output with this text and these judged calls.
pub(super) fn output_body(
    text: String,
    calls: Vec<calls::Call>,
    left_out: Vec<Vec<String>>,
    output: &Output,
) -> OutputBody {
    OutputBody {
        left_out: LeftOut::list(&calls, left_out),
        cut: output.cut,
        attached: output.attached.as_deref().cloned(),
        has_written_call: output.has_written_call,
        ..OutputBody::new(text, calls)
    }
}

/// Records that an output was sealed.
pub(super) fn record_sealed(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    turn: TurnId,
    tuple: &Tuple,
    endpoint: String,
    usage: Usage,
) -> Result<(), Error> {
    Entry::new(LedgerEvent::OutputSealed)
        .session(session)
        .turn(turn)
        .with("item", tuple.item)
        .with("digest", tuple.digest)
        .with("model", endpoint)
        .with("input_tokens", usage.input_tokens)
        .with("output_tokens", usage.output_tokens)
        .append(tx)?;
    Ok(())
}

/// Returns the text of an output for the record. The line of the host about a call in it fits behind it.
pub(super) fn recorded_text(output: &Output) -> String {
    let mut text = lookalike::neutralise(&output.text).into_owned();
    if output.has_written_call {
        let marks = calls::WRITTEN_CALL_MARK.len() + output.cut.map_or(0, |cut| cut.mark().len());
        text.truncate(text.floor_char_boundary(BODY_BYTES_MAX - marks));
    }
    text
}
