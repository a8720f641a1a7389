//! The answer of a person to a question. Only the person concerned answers.
//!
//! Every check comes before the first row that is written. See [`crate::gateway::waiting::decide`] for the rest of its life.

use super::page::{Body, body};
use crate::channels::inbound::inbox::{Recorded, answer};
use crate::channels::inbound::routing;
use crate::channels::notifications;
use crate::gateway::waiting::decide::{Open, unknown};
use crate::gateway::waiting::{Ending, Gateway, Status};
use crate::registry::{self, Person, Signer};
use crate::sessions::store::{self, Session};
use crate::turns::turn;
use ironclaw_contract::ids::QuestionId;
use ironclaw_ledger::Entry;
use ironclaw_operator::{DenialCode, LedgerEvent, NewAnswer};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::waiting as table;
use ironclaw_store::tables::waiting::questions::{self, Row};

/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 8000;

/// An answer as a person gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// The number of an option, from 1.
    Option(u32),
    Text(String),
}

impl TryFrom<NewAnswer> for Given {
    type Error = Refusal;

    /// Reads an answer.
    ///
    /// # Errors
    /// Refuses an answer that is empty or too long, or that has both or neither of an option and a text.
    fn try_from(new: NewAnswer) -> Result<Self, Refusal> {
        let invalid = |words: String| Err(Refusal::new(DenialCode::QuestionAnswerInvalid, words));
        match new {
            NewAnswer { option: Some(number), text: None } => Ok(Self::Option(number)),
            NewAnswer { option: None, text: Some(text) } if text.trim().is_empty() => {
                invalid("the answer is empty: give a text, or reject the question".to_owned())
            }
            NewAnswer { option: None, text: Some(text) } if text.len() > ANSWER_BYTES_MAX => {
                invalid(format!("the answer is {} bytes; at most {ANSWER_BYTES_MAX} fit", text.len()))
            }
            NewAnswer { option: None, text: Some(text) } => Ok(Self::Text(text)),
            NewAnswer { .. } => invalid("an answer has either `option` or `text`".to_owned()),
        }
    }
}

/// Records the answer of a person as a message of the session, and ends the question.
///
/// # Errors
/// Refuses another person than the one concerned, a question that does not wait, and an answer that it does not take.
pub(super) fn answer(
    tx: &mut WriteTx<'_>,
    all: &Gateway,
    by: &Signer,
    id: QuestionId,
    given: &Given,
) -> Result<Recorded, Denied<Error>> {
    let open = Open::find(tx, all, by, id.into())?;
    let Some(row) = questions::find(tx, id)? else { return Err(unknown(id.into()).into()) };
    if open.by.id != row.principal {
        return Err(open.not_theirs(tx, all)?);
    }
    open.check_waits(tx, all)?;
    if row.status == Status::Doubtful {
        let refusal =
            Refusal::new(DenialCode::QuestionEnded, format!("{id} is in doubt since the record was restored"));
        return Err(refusal.hint("it may have been answered before: ask the agent again").into());
    }
    let session = talking(tx, &row, &open.by)?;
    let body = body(tx, all, &row)?;
    let choice = match chosen(&row, &body, given) {
        Ok(choice) => choice,
        Err(refusal) => return Err(open.refuse(tx, refusal, "the question does not take this answer")?),
    };
    let new = answer::Answer {
        question: row.id,
        asked: &body.question,
        choice,
        session: &session,
        person: open.by.id,
        principal_kind: row.own.principal_kind,
        scope: row.own.scope,
        binds_contained: turn::binds_contained(tx, row.turn)?,
        labels: row.labels,
        root: row.root,
    };
    all.now().quota.admit_message(tx, open.by.id, registry::LOOPBACK, new.bytes() as u64)?;
    let recorded = answer::record(tx, &new, &all.record.wrapping, &all.record.sealer)?;
    // The answer is a message of its own, so this end has no other effect.
    questions::set_answer(tx, id, recorded.message)?;
    let outcome = format!("answered with {}", recorded.message);
    table::end(tx, id.into(), &Ending { status: Status::Done, by: Some(open.decided_by()), outcome: &outcome })?;
    notifications::withdraw(tx, id)?;
    Entry::new(LedgerEvent::QuestionAnswered)
        .session(row.session)
        .with("question", id)
        .with("message", recorded.message)
        .with("by", open.by.id)
        .with("face", open.face)
        .append(tx)?;
    Ok(recorded)
}

/// Returns the session of a question whose person may still talk to its agent.
fn talking(tx: &ReadTx<'_>, row: &Row, by: &Person) -> Result<Session, Denied<Error>> {
    let session = store::find(tx, row.session)?.filter(|session| session.wrapped.is_some());
    let agent = registry::agent_by_id(tx, row.agent)?;
    let (Some(session), Some(agent)) = (session, agent) else { return Err(unknown(row.id.into()).into()) };
    match registry::roles::role_for(tx, by, &agent)?.may_talk() {
        true => Ok(session),
        false => Err(routing::not_yours(&agent).into()),
    }
}

/// Returns the answer that a person chose or typed.
fn chosen<'a>(row: &Row, body: &'a Body, given: &'a Given) -> Result<answer::Choice<'a>, Refusal> {
    let count = body.options.len();
    match given {
        Given::Option(number) => {
            let index = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
            let option = index.and_then(|index| body.options.get(index));
            option.map(|text| answer::Choice::Option { number: *number, text }).ok_or_else(|| {
                let words = format!("{} has no option {number}: it has {count}", row.id);
                let hint = if count == 0 { "answer it with a text" } else { "answer it with the number of an option" };
                Refusal::new(DenialCode::QuestionOption, words).hint(hint)
            })
        }
        Given::Text(text) if body.free_text => Ok(answer::Choice::Text(text)),
        Given::Text(_) => {
            let words = format!("{} takes the number of an option, from 1 to {count}, and no text", row.id);
            Err(Refusal::new(DenialCode::QuestionFreeText, words))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(option: Option<u32>, text: Option<&str>) -> Option<DenialCode> {
        Given::try_from(NewAnswer { option, text: text.map(str::to_owned) }).err().map(|refusal| refusal.code)
    }

    #[test]
    fn empty_long_or_double_answer_is_refused() {
        let long = "x".repeat(ANSWER_BYTES_MAX + 1);
        for (option, text) in
            [(None, None), (Some(1), Some("a")), (None, Some("")), (None, Some(" \n")), (None, Some(long.as_str()))]
        {
            assert_eq!(code(option, text), Some(DenialCode::QuestionAnswerInvalid), "{option:?}");
        }
        assert_eq!((code(Some(1), None), code(None, Some(&long[1..]))), (None, None));
    }
}
