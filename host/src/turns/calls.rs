//! The rows of tool calls: each call of a model output is recorded with what was judged, and has at most one result.
//!
//! A call that is not recorded here does not exist, and none is judged here. Next: `turns::calls::judge`.

mod judge;
mod run;
mod schedule;

pub use judge::{Judged, Judgement, action_of, digest, judge};
pub use run::{Ran, run, wanted};

use crate::tools::{self, Runs};
use crate::turns::items::{BodyError, Draft, Recorded};
use crate::turns::turn;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{CallId, ItemId, SessionId, TurnId};
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::seal::{ItemKind, Label};
use ironclaw_ledger::Entry;
use ironclaw_state::keys::ContentKey;
use ironclaw_state::seal::Sealer;
use ironclaw_state::{ReadTx, WriteTx};
use rusqlite::{OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

/// A call as it stands in an output's body: the arguments are exactly the canonical bytes that were hashed.
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
        Judgement::Permitted { class, runs } => (class.name(), runs_name(*runs), CallState::Permitted),
        Judgement::Refused { .. } => ("", "", CallState::Refused),
    };
    let call = &judged.call;
    tx.db()
        .prepare_cached(
            "INSERT INTO calls (id, session_id, turn_id, output_item, position, tool, class, runs, digest, state) \
             VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)",
        )?
        .execute(params![
            call.call_id,
            session,
            turn,
            output,
            position as i64,
            call.tool,
            class,
            runs,
            judged.digest,
            state.name()
        ])?;
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

/// The name of a tool that there is; what a model made up stands in no ledger.
fn known_name(tool: &str) -> &'static str {
    tools::find(tool).map_or("(unknown)", |tool| tool.name)
}

const fn runs_name(runs: Runs) -> &'static str {
    match runs {
        Runs::Local => "local",
        Runs::Row => "row",
        Runs::Host => "host",
    }
}

/// Where a recorded call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallState {
    /// It may have its one result.
    Permitted,
    /// It was refused.
    Refused,
    /// It has its result.
    Done,
    /// It had left the sandbox when its turn ended.
    Unknown,
    /// Its turn ended before it was used.
    Void,
}

impl CallState {
    /// As stored.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Permitted => "permitted",
            Self::Refused => "refused",
            Self::Done => "done",
            Self::Unknown => "unknown",
            Self::Void => "void",
        }
    }
}

impl std::str::FromStr for CallState {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::Permitted, Self::Refused, Self::Done, Self::Unknown, Self::Void]
            .into_iter()
            .find(|s| s.name() == text)
            .ok_or(())
    }
}

ironclaw_state::stored_by_name!(CallState);

/// A recorded call's row.
#[derive(Debug, Clone)]
pub struct CallRow {
    /// Its id.
    pub id: CallId,
    /// Its session.
    pub session: SessionId,
    /// Its turn.
    pub turn: TurnId,
    /// The output that it stands in.
    pub output: ItemId,
    /// The tool.
    pub tool: String,
    /// Where it runs; refused calls nowhere.
    pub runs: Option<Runs>,
    /// Of its arguments.
    pub digest: Digest,
    /// Where it stands.
    pub state: CallState,
    /// Its result, once there is one.
    pub result: Option<ItemId>,
}

fn call_row(row: &Row<'_>) -> rusqlite::Result<CallRow> {
    Ok(CallRow {
        id: row.get("id")?,
        session: row.get("session_id")?,
        turn: row.get("turn_id")?,
        output: row.get("output_item")?,
        tool: row.get("tool")?,
        runs: [Runs::Local, Runs::Row, Runs::Host]
            .into_iter()
            .find(|runs| row.get_ref("runs").is_ok_and(|text| text.as_str() == Ok(runs_name(*runs)))),
        digest: row.get("digest")?,
        state: row.get("state")?,
        result: row.get("result_item")?,
    })
}

/// The call of this id.
pub fn find(tx: &ReadTx<'_>, id: CallId) -> Result<Option<CallRow>, ironclaw_state::Error> {
    Ok(tx.db().prepare_cached("SELECT * FROM calls WHERE id = ?1")?.query_row([id], call_row).optional()?)
}

/// Gives a permitted call its one result.
///
/// Returns false when the call has one already or is no longer good for one: then nothing changed.
pub fn settle(tx: &mut WriteTx<'_>, id: CallId, result: ItemId) -> Result<bool, ironclaw_state::Error> {
    let sql = "UPDATE calls SET state = 'done', result_item = ?2 WHERE id = ?1 AND state = 'permitted' AND result_item IS NULL";
    Ok(tx.db().prepare_cached(sql)?.execute(params![id, result])? == 1)
}

/// Notes the sealed refusal of a refused call.
pub fn set_refusal(tx: &mut WriteTx<'_>, id: CallId, result: ItemId) -> Result<(), ironclaw_state::Error> {
    tx.db()
        .prepare_cached("UPDATE calls SET result_item = ?2 WHERE id = ?1 AND state = 'refused'")?
        .execute(params![id, result])?;
    Ok(())
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
pub struct Place<'a> {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// Encrypts its body.
    pub key: &'a ContentKey,
    /// Seals it.
    pub sealer: &'a Sealer,
}

/// Records a result of a call. Whoever says it, it is `External`: a result never carries authority by itself.
pub fn record_result(
    tx: &mut WriteTx<'_>,
    place: &Place<'_>,
    call: CallId,
    tool: &str,
    author: Author,
    result: &ResultBody,
) -> Result<Recorded, BodyError> {
    record_labelled_result(tx, place, call, tool, author, vec![Label::External], result)
}

/// Records a result that the host made of its own record, with the labels of what it is made of.
pub fn record_labelled_result(
    tx: &mut WriteTx<'_>,
    place: &Place<'_>,
    call: CallId,
    tool: &str,
    author: Author,
    labels: Vec<Label>,
    result: &ResultBody,
) -> Result<Recorded, BodyError> {
    let body = canonical::to_string(result);
    let spans = vec![Span { author, bytes: body.len() }];
    let draft = Draft::new(ItemId::new(), ItemKind::Result, &body, spans, labels, place.key)?;
    turn::count_result(tx, place.turn, result.text.len())?;
    Ok(draft.turn(place.turn).call(call, tool).record(tx, place.session, place.sealer)?)
}
