//! The new question about a call that people approved for other facts than it has now.
//!
//! Never carries a yes over: the approvals of the old request end with it. See [`super::facts`].

use super::ask::wait_for_people;
use super::{ending, page};
use crate::gateway::waiting::Gateway;
use crate::sessions::store as sessions;
use ironclaw_contract::canonical;
use ironclaw_contract::ids::RequestId;
use ironclaw_judge::call::{Judgement, Verdict};
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use ironclaw_store::tables::waiting::requests::{Own, Row, StoredReason};

/// Withdraws the request of a call whose facts changed after its approval, and asks again if the call still needs people. Returns the
/// reason in the host's words.
pub(super) fn withdraw_and_ask(
    tx: &mut WriteTx<'_>,
    all: &Gateway,
    old: &Row,
    judgement: &Judgement,
) -> Result<String, Error> {
    let why = "the call would do something else than the approved page showed";
    let reasons: Vec<StoredReason> = match &judgement.verdict {
        Verdict::NeedsPerson(reasons) => reasons.iter().map(StoredReason::from).collect(),
        Verdict::Permitted(_) | Verdict::Denied(_) => Vec::new(),
    };
    let found = sessions::find(tx, old.session)?.filter(|session| session.wrapped.is_some());
    let (false, Some(session), Some(class)) = (reasons.is_empty(), found, judgement.class) else {
        ending::withdraw(tx, all, old, why)?;
        return Ok(why.to_owned());
    };
    let id = RequestId::new();
    let key = session.content_key(&all.record.wrapping)?;
    let arguments = canonical::to_string(&page::arguments(tx, &all.record, old)?);
    let new = Row {
        id,
        arguments: key.seal(id.item(), arguments.as_bytes())?,
        own: Own { class, reasons, ..old.own.clone() },
        ..old.clone()
    };
    let why = format!("{why}, and it waits as {id} now");
    // The record has one open request of a call.
    ending::end_before_another(tx, &all.record, old, &why)?;
    wait_for_people(tx, all, new)?;
    Ok(why)
}
