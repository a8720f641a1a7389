//! The start of a run: the rights of its creator, the state of its conversation, and its message.
//!
//! A run that may not start is skipped with its reason. If its creator lost a right, the schedule is paused too.

use super::{Context, outcome};
use crate::channels::inbound::channel::Received;
use crate::channels::inbound::identity::{self, PromptOrigin};
use crate::channels::inbound::{inbox, routing};
use crate::gateway::kinds::lost_right;
use crate::registry::schedules::{self, Occurrence, OccurrenceState, Schedule, flows};
use crate::registry::{self, Identity};
use crate::sessions::store::{self, SessionState};
use ironclaw_contract::ids::SessionId;
use ironclaw_contract::seam::change::RunContext;
use ironclaw_judge::provenance::spans::Telling;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{Error, ReadTx, WriteTx};
use ironclaw_store::refusal::Denied;
use ironclaw_store::tables::messages::Kind;
use ironclaw_store::tables::schedules as table;
use ironclaw_store::tables::sessions;

/// The reason why a run may not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// One word for the history.
    pub reason: &'static str,
    /// True if no later run may start either, until a person acts.
    pub pauses: bool,
}

impl Refused {
    const fn once(reason: &'static str) -> Self {
        Self { reason, pauses: false }
    }

    const fn for_good(reason: &'static str) -> Self {
        Self { reason, pauses: true }
    }
}

/// Whether a run may start.
enum Readiness {
    /// It may, with this identity.
    Ready(Identity),
    /// It may not.
    Refused(Refused),
}

/// Returns the reason why a run of the schedule may not start now.
pub fn refused_now(tx: &ReadTx<'_>, context: &Context<'_>, row: &Schedule) -> Result<Option<Refused>, Error> {
    Ok(match readiness(tx, context, row)? {
        Readiness::Ready(_) => None,
        Readiness::Refused(refused) => Some(refused),
    })
}

fn readiness(tx: &ReadTx<'_>, context: &Context<'_>, row: &Schedule) -> Result<Readiness, Error> {
    let once = |reason| Ok(Readiness::Refused(Refused::once(reason)));
    let for_good = |reason| Ok(Readiness::Refused(Refused::for_good(reason)));
    if context.is_stopped {
        return once("emergency_stop");
    }
    let Some(creator) = schedules::creator(tx, row)? else { return for_good("creator_removed") };
    let Some(agent) = registry::agent_by_id(tx, row.agent)? else { return for_good("agent_removed") };
    let used: Vec<String> = row.may.iter().cloned().chain(flows::tools(&row.flows)).collect();
    if let Some(lost) = lost_right(tx, &context.settings.policy, &creator, &agent, &used)? {
        return for_good(lost.name());
    }
    let Some(identity) = schedules::identity(tx, row)? else { return for_good("creator_identity") };
    if let Some(lost) = flows::lost_of(tx, row)? {
        return for_good(lost.name());
    }
    match store::find_by_origin(tx, agent.id, &schedules::origin(row))?.map(|session| session.standing) {
        Some(SessionState::Parked) => once("session_parked"),
        Some(SessionState::Quarantined) => once("session_quarantined"),
        Some(SessionState::Active | SessionState::Removed) | None => Ok(Readiness::Ready(identity)),
    }
}

/// Starts an occurrence that waits: records its message. Returns its session; `None` if it was settled instead.
pub(super) fn start(
    tx: &mut WriteTx<'_>,
    context: &Context<'_>,
    row: &Schedule,
    waiting: &Occurrence,
) -> Result<Option<SessionId>, ironclaw_store::error::Error> {
    let identity = match readiness(tx, context, row)? {
        Readiness::Ready(identity) => identity,
        Readiness::Refused(Refused { reason, pauses }) => {
            outcome::settle(tx, row, waiting, OccurrenceState::Skipped, Some(reason), None)?;
            if pauses {
                outcome::pause(tx, row, reason)?;
            }
            return Ok(None);
        }
    };
    match record(tx, context, row, identity) {
        Ok(recorded) => {
            table::start(tx, waiting.ordinal, recorded.message)?;
            // Without a session, as every entry about schedules: the worker watches for those.
            let entry = Entry::new(LedgerEvent::ScheduleRun)
                .message(recorded.message)
                .with("schedule", row.id)
                .with("due", ironclaw_ledger::rfc3339(waiting.due));
            match waiting.by {
                Some(by) => entry.with("by", by).append(tx)?,
                None => entry.append(tx)?,
            };
            Ok(Some(recorded.session))
        }
        Err(Denied::Refused(refusal)) => {
            outcome::settle(tx, row, waiting, OccurrenceState::Failed, Some(refusal.code.name()), None)?;
            Ok(None)
        }
        Err(Denied::Failed(error)) => Err(error),
    }
}

/// Takes the prompt through the stages of an inbound message, on behalf of the creator.
fn record(
    tx: &mut WriteTx<'_>,
    context: &Context<'_>,
    row: &Schedule,
    identity: Identity,
) -> Result<inbox::Recorded, Denied<ironclaw_store::error::Error>> {
    let received = Received {
        channel: row.channel.clone(),
        kind: Kind::Task,
        platform_id: row.platform_id.clone(),
        thread_id: row.thread_id.clone(),
        sender: identity.sender,
        speaker: Some(row.creator),
        event_id: None,
        event_digest: None,
        agent: row.agent.to_string(),
        text: row.prompt.clone(),
        files: Vec::new(),
        group: None,
        mentions: Vec::new(),
        quoted: Vec::new(),
        allow: None,
        telling: Telling::Typed,
    };
    let quota = &context.settings.quota;
    inbox::check(&received)?;
    quota.admit_message(tx, row.creator, &received.channel, inbox::bytes(&received) as u64)?;
    let prompt = PromptOrigin { written_by: row.written_by, runs: schedules::origin(row).runs };
    let authenticated = identity::from_schedule(tx, received, prompt)?;
    let numbers = context.sessions_max;
    let routed = routing::route(tx, authenticated, quota, numbers, &context.record.wrapping)?;
    if row.context == RunContext::Fresh {
        // The run does not see them, so its sandbox need not read them.
        sessions::settle_all(tx, routed.session().id)?;
    }
    inbox::record(tx, &routed, &context.record.wrapping, &context.record.sealer)
}
