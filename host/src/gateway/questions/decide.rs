//! Answers and rejections of people.
//!
//! Only the person concerned answers. This person and owners cancel. Every check comes before the first row that is written.

use super::ending;
use super::host_questions::{Body, Questions, body};
use crate::channels::inbound::inbox::{Recorded, answer};
use crate::channels::inbound::routing;
use crate::channels::notifications;
use crate::registry::{self, Person, Role};
use crate::sessions::store::{self, Session};
use crate::turns::turn;
use ironclaw_contract::ids::QuestionId;
use ironclaw_contract::seam::limits::REASON_BYTES_MAX;
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent, NewAnswer};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::questions::{self, Row, Status};

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

/// Returns the question of this id.
///
/// # Errors
/// Refuses an id that no question has.
pub fn known(tx: &ReadTx<'_>, id: QuestionId) -> Result<Row, Denied<Error>> {
    questions::find(tx, id)?.ok_or_else(|| unknown(id).into())
}

/// Returns the refusal of an id that no question has. It is the same for a question that a person may not see.
pub fn unknown(id: QuestionId) -> Refusal {
    Refusal::new(DenialCode::QuestionUnknown, format!("there is no question {id}"))
        .hint("`ironctl inbox` shows the questions that wait for you")
}

/// Returns whether this person may see a question: the person concerned, admins and owners.
pub fn may_read(by: &Person, row: &Row) -> bool {
    by.id == row.principal || matches!(by.role, Role::Owner | Role::Admin)
}

/// Returns whether this person can answer a question now.
pub fn may_answer(by: &Person, row: &Row) -> bool {
    by.id == row.principal && row.status == Status::Waiting
}

/// Returns a question that a person may see, and the person with their present role.
fn seen(tx: &ReadTx<'_>, by: &Person, id: QuestionId) -> Result<(Row, Person), Denied<Error>> {
    let row = known(tx, id)?;
    // Read again: the role may have been revoked while the request was in flight.
    let Some(by) = registry::person_by_id(tx, by.id)? else {
        return Err(Refusal::new(DenialCode::PersonUnknown, "the answering person no longer exists").into());
    };
    if !may_read(&by, &row) {
        return Err(unknown(id).into());
    }
    Ok((row, by))
}

/// Records the answer of a person as a message of the session, and ends the question.
///
/// # Errors
/// Refuses another person than the one concerned, a question that does not wait, and an answer that it does not take.
pub(super) fn answer(
    tx: &mut WriteTx<'_>,
    all: &Questions,
    by: &Person,
    id: QuestionId,
    given: &Given,
) -> Result<Recorded, Denied<Error>> {
    let (row, by) = seen(tx, by, id)?;
    if by.id != row.principal {
        let message = format!("{id} is for another person, who alone answers it");
        return Err(refuse(tx, &row, &by, Refusal::new(DenialCode::QuestionNotYours, message))?.into());
    }
    if row.status == Status::Waiting && row.expires_at <= tx.wall() {
        ending::end(tx, &all.record, &row, Status::Expired, None, "")?;
        return Err(ended(&row, Status::Expired).into());
    }
    if row.status != Status::Waiting {
        return Err(refuse(tx, &row, &by, ended(&row, row.status))?.into());
    }
    let session = talking(tx, &row, &by)?;
    let body = body(tx, &all.record, &row)?;
    let choice = match chosen(&row, &body, given) {
        Ok(choice) => choice,
        Err(refusal) => return Err(refuse(tx, &row, &by, refusal)?.into()),
    };
    let new = answer::Answer {
        question: row.id,
        asked: &body.question,
        choice,
        session: &session,
        person: by.id,
        principal_kind: row.principal_kind,
        scope: row.scope,
        binds_contained: turn::binds_contained(tx, row.turn)?,
        labels: row.labels,
        root: row.root,
    };
    let quota = &all.settings.now().quota;
    quota.admit_message(tx, by.id, registry::LOOPBACK, new.bytes() as u64)?;
    let recorded = answer::record(tx, &new, &all.record.wrapping, &all.record.sealer)?;
    questions::mark_answered(tx, id, by.id, recorded.message)?;
    notifications::withdraw(tx, id)?;
    Entry::new(LedgerEvent::QuestionAnswered)
        .session(row.session)
        .with("question", id)
        .with("message", recorded.message)
        .with("by", by.id)
        .append(tx)?;
    Ok(recorded)
}

/// Returns the session of a question whose person may still talk to its agent.
fn talking(tx: &ReadTx<'_>, row: &Row, by: &Person) -> Result<Session, Denied<Error>> {
    let session = store::find(tx, row.session)?.filter(|session| session.wrapped.is_some());
    let agent = registry::agent_by_id(tx, row.agent)?;
    let (Some(session), Some(agent)) = (session, agent) else { return Err(unknown(row.id).into()) };
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

fn ended(row: &Row, status: Status) -> Refusal {
    let refusal = Refusal::new(DenialCode::QuestionEnded, format!("{} is {status} already", row.id));
    match status {
        Status::Unknown => {
            refusal.hint("the record was restored, so it may have been answered before: ask the agent again")
        }
        Status::Waiting | Status::Answered | Status::Cancelled | Status::Expired => {
            refusal.hint("write to the agent: `ironctl chat`")
        }
    }
}

/// Records the refusal of an answer, and returns it.
fn refuse(tx: &mut WriteTx<'_>, row: &Row, by: &Person, refusal: Refusal) -> Result<Refusal, ironclaw_state::Error> {
    let entry = Entry::new(LedgerEvent::QuestionAnswerRefused).session(row.session).with("question", row.id);
    entry.with("by", by.id).with("code", refusal.code).append(tx)?;
    Ok(refusal)
}

/// Cancels a question for a person.
///
/// # Errors
/// Refuses people other than the one concerned and owners, a question that has ended, and a reason that is too long.
pub(super) fn reject(
    tx: &mut WriteTx<'_>,
    all: &Questions,
    by: &Person,
    id: QuestionId,
    reason: &str,
) -> Result<(), Denied<Error>> {
    if reason.len() > REASON_BYTES_MAX {
        let bound = Bound::new("bytes of a reason", REASON_BYTES_MAX, reason.len(), "write a shorter reason");
        return Err(Refusal::over(DenialCode::ReasonTooLong, bound).into());
    }
    let (row, by) = seen(tx, by, id)?;
    if by.id != row.principal && by.role != Role::Owner {
        let message = format!("{id} is for another person: this person and owners can reject it");
        return Err(refuse(tx, &row, &by, Refusal::new(DenialCode::QuestionNotYours, message))?.into());
    }
    if !matches!(row.status, Status::Waiting | Status::Unknown) {
        return Err(ended(&row, row.status).into());
    }
    Ok(ending::end(tx, &all.record, &row, Status::Cancelled, Some(by.id), reason)?)
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
