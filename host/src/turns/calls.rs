//! The rows of tool calls: each call of a model output is recorded with what was judged, and has at most one result.
//!
//! A call that is not recorded here does not exist, and none is judged here. Next: `turns::calls::judge`.

mod judge;
mod run;
mod schedule;

pub use crate::tables::turns::{CallRow, CallState};
pub use crate::tables::turns::{find_call as find, set_call_refusal as set_refusal, settle_call as settle};
pub use judge::{Judged, Judgement, action_of, digest, judge};
pub use run::{HostResult, recall_query, run};

use crate::tables::turns::{self, NewCall};
use crate::tools;
use crate::turns::items::{BodyError, NewItem, Recorded};
use crate::turns::turn;
use ironclaw_contract::canonical;
use ironclaw_contract::ids::{CallId, ItemId, SessionId, TurnId};
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::seal::{ItemKind, Label};
use ironclaw_ledger::Entry;
use ironclaw_state::WriteTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_state::seal::Sealer;
use serde::{Deserialize, Serialize};

/// A call as an output's body has it: the arguments are exactly the canonical bytes that were hashed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Its id, minted by the host.
    pub call_id: CallId,
    /// The tool, as the model named it.
    pub tool: String,
    /// Canonical JSON text.
    pub arguments: String,
}

/// Records a judged call, in its output's order.
pub fn record(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    turn: TurnId,
    output: ItemId,
    position: usize,
    judged: &Judged,
) -> Result<(), ironclaw_state::Error> {
    let (class, runs, state) = match &judged.judgement {
        Judgement::Permitted { class, runs } => (class.name(), Some(*runs), CallState::Permitted),
        Judgement::Refused { .. } => ("", None, CallState::Refused),
    };
    let call = &judged.call;
    let new = NewCall {
        id: call.call_id,
        session,
        turn,
        output,
        position,
        tool: &call.tool,
        class,
        runs,
        digest: judged.digest,
        state,
    };
    turns::insert_call(tx, &new)?;
    let entry = |entry: Entry| {
        entry
            .session(session)
            .turn(turn)
            .with("call", call.call_id)
            .with("tool", known_name(&call.tool))
            .with("arguments_digest", judged.digest)
    };
    match &judged.judgement {
        Judgement::Permitted { class, .. } => {
            entry(Entry::new(LedgerEvent::CallRecorded)).with("class", class.name()).append(tx)?
        }
        Judgement::Refused { reason, .. } => entry(Entry::new(LedgerEvent::CallRefused)).reason(reason).append(tx)?,
    };
    Ok(())
}

/// Returns the name of a tool that there is; no ledger has one that a model made up.
fn known_name(tool: &str) -> &'static str {
    tools::find(tool).map_or("(unknown)", |tool| tool.name)
}

/// The body of a result item.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultBody {
    /// Whether the tool did what was asked.
    pub ok: bool,
    /// What it says.
    pub text: String,
}

/// Where a result belongs, and what seals it.
pub struct ResultTarget<'a> {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// Encrypts its body.
    pub key: &'a ContentKey,
    /// Seals it.
    pub sealer: &'a Sealer,
}

/// Records a result of a call. Any author makes it `External`: a result never carries authority by itself.
pub fn record_result(
    tx: &mut WriteTx<'_>,
    target: &ResultTarget<'_>,
    call: CallId,
    tool: &str,
    author: Author,
    result: &ResultBody,
) -> Result<Recorded, BodyError> {
    record_labelled_result(tx, target, call, tool, author, vec![Label::External], result)
}

/// Records a result that the host made of its own record, with the labels of what it is made of.
pub fn record_labelled_result(
    tx: &mut WriteTx<'_>,
    target: &ResultTarget<'_>,
    call: CallId,
    tool: &str,
    author: Author,
    labels: Vec<Label>,
    result: &ResultBody,
) -> Result<Recorded, BodyError> {
    let body = canonical::to_string(result);
    let spans = vec![Span { author, bytes: body.len() }];
    let draft = NewItem::new(ItemId::new(), ItemKind::Result, &body, spans, labels, target.key)?;
    turn::count_result(tx, target.turn, result.text.len())?;
    Ok(draft.turn(target.turn).call(call, tool).record(tx, target.session, target.sealer)?)
}
