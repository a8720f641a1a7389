//! The end of what waits or is approved, and the words of the host about it to the agent that asked.
//!
//! Opens no turn: the session gets a notice, which its next turn shows. See [`crate::channels::inbound::inbox::notify`].

use super::gateway::Gateway;
use super::steps::{entry, words_of};
use super::words::{Step, Words};
use crate::channels::inbound::inbox;
use crate::channels::notifications;
use crate::registry;
use crate::sessions::store as sessions;
use ironclaw_contract::ids::ItemId;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::tables::approvals;
use ironclaw_store::tables::waiting::{self, Ending, Scope, Status, Waiting, WaitingId};
use ironclaw_text::lookalike;

/// Ends what waits or is approved, voids its approvals, and makes the effects of the end. Returns whether it did.
pub fn end(tx: &mut WriteTx<'_>, all: &Gateway, of: &Waiting, ending: &Ending<'_>) -> Result<bool, Error> {
    let has_ended = close(tx, of, ending)?;
    if has_ended {
        all.kind(of.id).end(tx, all, of, ending)?;
    }
    Ok(has_ended)
}

/// Ends what has this id, unless it ended already.
pub fn end_active(tx: &mut WriteTx<'_>, all: &Gateway, id: WaitingId, ending: &Ending<'_>) -> Result<bool, Error> {
    waiting::find(tx, id)?.map_or(Ok(false), |of| end(tx, all, &of, ending))
}

/// Ends what waits or is approved, without the effects of the end. Returns whether it did.
pub(in crate::gateway) fn close(
    tx: &mut WriteTx<'_>,
    of: &Waiting,
    ending: &Ending<'_>,
) -> Result<bool, ironclaw_state::Error> {
    if !waiting::end(tx, of.id, ending)? {
        return Ok(false);
    }
    approvals::void_for_subject(tx, of.id)?;
    notifications::withdraw(tx, of.id)?;
    let mut ended = entry(of, Step::Ended(ending.status));
    if let Some(by) = ending.by {
        ended = ended.with("by", by.person).with("face", by.face);
    }
    // Words of people, and those about an effect that failed, can have anything in them.
    let reason = match (ending.status, ending.by) {
        (Status::Done, _) => "",
        (Status::Failed, _) => "its effect failed",
        (_, Some(_)) => "a person ended it",
        (_, None) => ending.outcome,
    };
    if reason.is_empty() {
        ended.append(tx)?
    } else {
        ended.reason(reason).append(tx)?
    };
    Ok(true)
}

/// Returns what became of it, for a sentence of the host to the agent that asked.
pub(in crate::gateway) fn outcome(
    tx: &ReadTx<'_>,
    of: &Waiting,
    ending: &Ending<'_>,
) -> Result<String, ironclaw_state::Error> {
    let Words { decision, without_effect, .. } = *words_of(of.id);
    let why = ending.outcome;
    let by = ending.by.map(|by| registry::person_name(tx, by.person)).transpose()?;
    let by = by.map_or_else(String::new, |name| format!(" by {name}"));
    let verb = match ending.status {
        Status::Expired => return Ok(format!("was not {decision} in time; {without_effect}")),
        Status::Doubtful => return Ok(format!("is in doubt: {why}; {without_effect}")),
        Status::Withdrawn if ending.by.is_none() => {
            return Ok(format!("can no longer be {decision}: {why}; {without_effect}"));
        }
        Status::Withdrawn => "withdrawn",
        _ => "rejected",
    };
    let reason = if why.is_empty() { String::new() } else { format!(". The given reason: {why:?}") };
    Ok(format!("was {verb}{by}; {without_effect}{reason}"))
}

/// Gives the session of what waited a notice of the host, and returns its item. A removed session gets none, and neither does one whose key
/// does not open: it delays nothing else.
pub fn inform(tx: &mut WriteTx<'_>, record: &Record, of: &Waiting, text: &str) -> Result<Option<ItemId>, Error> {
    let found = of.session.map(|session| sessions::find(tx, session)).transpose()?.flatten();
    let Some(session) = found.filter(|session| session.wrapped.is_some()) else { return Ok(None) };
    match inbox::notify(tx, &session, &lookalike::neutralise(text), &record.wrapping, &record.sealer) {
        Ok(notice) => Ok(Some(notice.item())),
        Err(Error::Key(error)) => {
            tracing::error!(session = %session.id, of = %of.id, %error, "no notice was sent about an outcome");
            let key = words_of(of.id).key;
            Entry::new(LedgerEvent::ChangeNotNotified).session(session.id).with(key, of.id).append(tx)?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Ends and erases what a conversation asked for, or what concerns an agent, except for `but`. The ledger keeps digests. Returns the ids.
pub fn erase(
    tx: &mut WriteTx<'_>,
    scope: Scope,
    why: &str,
    but: Option<WaitingId>,
) -> Result<Vec<WaitingId>, ironclaw_state::Error> {
    for of in waiting::active(tx, scope)?.into_iter().filter(|of| Some(of.id) != but) {
        close(tx, &of, &Ending { status: Status::Withdrawn, by: None, outcome: why })?;
    }
    waiting::delete(tx, scope, but)
}

/// What became of everything that waited in a restored record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Doubted {
    /// The number of those that people have to check.
    pub doubtful: usize,
    /// The number of those that were withdrawn.
    pub withdrawn: usize,
}

/// Treats everything that waits or is approved as of another history: it may have been decided or carried out there. No earlier approval
/// stays valid.
pub fn doubt_all(tx: &mut WriteTx<'_>, all: &Gateway, generation: u64) -> Result<Doubted, Error> {
    let outcome = "the record was put back to an earlier state: this may have been decided or carried out since";
    approvals::void_all(tx)?;
    let mut doubted = Doubted::default();
    for of in waiting::every_active(tx)? {
        let status = words_of(of.id).restored;
        let ending = Ending { status, by: None, outcome };
        if status != Status::Doubtful {
            end(tx, all, &of, &ending)?;
            doubted.withdrawn += 1;
            continue;
        }
        waiting::mark_doubtful(tx, of.id, generation, outcome)?;
        doubted.doubtful += 1;
        // An earlier restore put it in doubt already, and told the agent.
        if of.status != Status::Doubtful {
            entry(&of, Step::Ended(status)).append(tx)?;
            all.kind(of.id).end(tx, all, &of, &ending)?;
        }
    }
    Ok(doubted)
}
