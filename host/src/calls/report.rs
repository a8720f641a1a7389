//! The report about the calls and the requests of a time, with the changes that would have saved most requests.
//!
//! Changes nothing and makes no call. [`savings`] judges calls of the record again, with the functions that judge real calls.

mod candidates;
mod counts;
mod savings;

use crate::gateway::waiting::Gateway;
use crate::registry;
use ironclaw_ledger::rfc3339;
use ironclaw_operator::{LeftOut, LeftOutOfReport, Report};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::tables::turns::recent::{self, Whose};

/// The bound on the turns of a report.
const TURNS_MAX: u32 = 20_000;

/// Returns the report about the time since `since`, milliseconds since the epoch.
pub fn report(tx: &ReadTx<'_>, all: &Gateway, since: i64, whose: Whose) -> Result<Report, Error> {
    let turns = recent::since(tx, since, whose, TURNS_MAX)?;
    let requests = counts::reported(tx, &turns)?;
    let savings = savings::find(tx, all, &turns, requests.len() as u64)?;
    let incomplete = recent::incomplete(tx, &turns)?;
    let lost = [
        (LeftOutOfReport::ConversationsRemoved, incomplete.removed),
        (LeftOutOfReport::ConversationsShortened, incomplete.shortened),
    ];
    let left_out = lost.into_iter().chain(savings.left_out).filter(|(_, count)| *count > 0);
    Ok(Report {
        since: rfc3339(turns.since),
        until: rfc3339(tx.wall()),
        begins_later: turns.since > since,
        person: whose.person.map(|person| registry::person_name(tx, person)).transpose()?,
        agent: whose.agent.map(|agent| registry::agent_name(tx, agent)).transpose()?,
        tasks: recent::tasks(tx, &turns)?,
        calls: counts::calls(&recent::calls(tx, &turns)?),
        requests: counts::requests(&requests),
        changes: savings.changes,
        left_out: left_out.map(|(part, count)| LeftOut { part, count }).collect(),
    })
}
