//! The creation of a question, in the transaction that takes the row of its call.
//!
//! An equal call for the same message is the same question, also in a later try. Bounds keep an agent from asking too often.

use super::page::Body;
use crate::gateway::waiting::{self, Gateway, Status, Waiting};
use crate::registry;
use crate::registry::tools::QUESTION_OPTIONS_MAX;
use crate::sessions::store::Session;
use crate::turns::calls::{self, AskUserQuestion, CallRow, ResultBody};
use crate::turns::turn::{self, Turn};
use ironclaw_contract::canonical;
use ironclaw_contract::ids::{MessageId, QuestionId};
use ironclaw_judge::Principal;
use ironclaw_judge::provenance::Labels;
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent};
use ironclaw_state::keys::ContentKey;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::tables::waiting::questions::{self, Own, Row};
use ironclaw_store::tables::{facts, messages};
use ironclaw_store::times::HOUR_MS;

/// Bytes of a question.
const QUESTION_BYTES_MAX: usize = 2000;

/// Bytes of an option.
const OPTION_BYTES_MAX: usize = 200;

/// The bound on the questions of a session that wait.
const WAITING_OF_SESSION_MAX: usize = 3;

/// The call that asks, with its turn.
pub struct Asking<'a> {
    pub session: &'a Session,
    pub key: &'a ContentKey,
    pub turn: &'a Turn,
    pub call: &'a CallRow,
    /// The labels of the output that calls.
    pub labels: Labels,
    pub question: &'a AskUserQuestion,
}

/// Records the question of a call, or finds that of an equal call. Returns the result for the model, and the code if there is no question.
pub fn ask(
    tx: &mut WriteTx<'_>,
    all: &Gateway,
    asking: &Asking<'_>,
) -> Result<(ResultBody, Option<DenialCode>), Error> {
    let refused = |code: DenialCode| (calls::refusal(code, ""), Some(code));
    let AskUserQuestion { question, options, .. } = asking.question;
    if !fits(question, options) {
        let detail = format!(
            "at most {QUESTION_BYTES_MAX} bytes, and {QUESTION_OPTIONS_MAX} options of {OPTION_BYTES_MAX} bytes"
        );
        return Ok((calls::refusal(DenialCode::QuestionTooLong, &detail), Some(DenialCode::QuestionTooLong)));
    }
    let Asking { session, turn, call, .. } = asking;
    let principal = turn.person()?;
    let is_asked = matches!(turn.principal_kind, Principal::Person | Principal::Schedule | Principal::Agent);
    if !is_asked || registry::person_by_id(tx, principal)?.is_none() {
        return Ok(refused(DenialCode::QuestionNoPerson));
    }
    let message = turn::newest_message(tx, turn.id)?;
    if let Some(equal) = questions::equal(tx, session.id, message, call.digest)? {
        return Ok((already(&equal), None));
    }
    if let Some(bound) = waiting_bound(tx, session)? {
        let result = calls::refusal_over(DenialCode::QuestionsTooMany, &bound);
        return Ok((result, Some(DenialCode::QuestionsTooMany)));
    }
    let id = record(tx, all, asking, message)?;
    waiting::asked(tx, all, id.into())?;
    Ok((ResultBody::done(waits(id)), None))
}

/// Records a question with its ledger entry.
fn record(
    tx: &mut WriteTx<'_>,
    all: &Gateway,
    Asking { session, key, turn, call, labels, question }: &Asking<'_>,
    message: MessageId,
) -> Result<QuestionId, Error> {
    let (id, now, principal) = (QuestionId::new(), tx.wall(), turn.person()?);
    let rest = i64::from(all.now().approval.question_hours) * HOUR_MS;
    let expires_at = now + rest;
    let asked_seq = Entry::new(LedgerEvent::QuestionAsked)
        .session(session.id)
        .turn(turn.id)
        .with("call", call.id)
        .with("question", id)
        .with("digest", call.digest)
        .with("principal", principal)
        .with("scope", turn.scope.to_string())
        .with("expires", expires_at)
        .append(tx)?;
    let new = Waiting {
        subject: call.tool.clone(),
        agent: Some(session.agent),
        session: Some(session.id),
        turn: Some(turn.id),
        call: Some(call.id),
        message: Some(message),
        root: Some(messages::root_of(tx, message)?),
        digest: call.digest,
        labels: *labels,
        own: canonical::to_string(&Own { principal_kind: turn.principal_kind, scope: turn.scope }),
        generation: facts::generation(tx)?,
        remind_at: Some(now + rest / 2),
        asked_seq,
        ..Waiting::pending(id, principal, now, expires_at)
    };
    // A question without options can only be answered with a text.
    let free_text = question.allow_freeform || question.options.is_empty();
    let body = Body { question: question.question.clone(), options: question.options.clone(), free_text };
    questions::insert(tx, &new, &key.seal(id.item(), body.to_json().as_bytes())?)?;
    Ok(id)
}

/// Returns the bound on the questions of a session that wait, if it is reached.
fn waiting_bound(tx: &ReadTx<'_>, session: &Session) -> Result<Option<Bound>, ironclaw_state::Error> {
    let waiting = questions::pending_in_session(tx, session.id)?;
    if waiting.len() < WAITING_OF_SESSION_MAX {
        return Ok(None);
    }
    let remedy = "the person answers one: `ironctl inbox`";
    let bound = Bound::new("questions of this session wait", WAITING_OF_SESSION_MAX, waiting.len(), remedy);
    let ends_at = waiting.iter().map(|row| row.expires_at).min().map(ironclaw_ledger::rfc3339);
    Ok(Some(Bound { ends_at, ..bound }))
}

/// Returns whether a question is within its bounds.
fn fits(question: &str, options: &[String]) -> bool {
    let within = |text: &str, most: usize| !text.trim().is_empty() && text.len() <= most;
    within(question, QUESTION_BYTES_MAX)
        && options.len() <= QUESTION_OPTIONS_MAX
        && options.iter().all(|option| within(option, OPTION_BYTES_MAX))
}

fn waits(id: QuestionId) -> String {
    format!(
        "waits as {id}: the person has not answered yet. Say so and end your turn; the answer comes as a later message."
    )
}

/// Returns the result of a call whose question was asked before.
fn already(row: &Row) -> ResultBody {
    let id = row.id;
    let (ok, text) = match row.status {
        Status::Pending => (true, waits(id)),
        Status::Done => (true, format!("was answered as {id}: the answer comes as a later message.")),
        Status::Expired => (false, format!("{id} was not answered in time.")),
        Status::Doubtful => (false, format!("{id} can no longer be answered: the record was restored.")),
        _ => (false, format!("{id} was cancelled: the person gives no answer. Do not ask it again.")),
    };
    ResultBody::new(ok, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_out_of_its_bounds_does_not_fit() {
        let of = |bytes: usize| "x".repeat(bytes);
        let options = |count: usize, bytes: usize| vec![of(bytes); count];
        assert!(fits(&of(QUESTION_BYTES_MAX), &options(QUESTION_OPTIONS_MAX, OPTION_BYTES_MAX)));
        assert!(fits("q", &[]));
        for (question, options) in [
            (of(0), options(0, 0)),
            (" \n".to_owned(), options(0, 0)),
            (of(QUESTION_BYTES_MAX + 1), options(0, 0)),
            (of(1), options(QUESTION_OPTIONS_MAX + 1, 1)),
            (of(1), options(1, OPTION_BYTES_MAX + 1)),
            (of(1), options(1, 0)),
        ] {
            assert!(!fits(&question, &options), "{} {}", question.len(), options.len());
        }
    }
}
