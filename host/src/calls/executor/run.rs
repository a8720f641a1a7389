//! The run of one call: judged again, marked as running, made once, and settled.
//!
//! See [`super::late`] for the results that no turn waits for.

use super::effect::Effect;
use super::facts::Judging;
use super::{Executor, Place, When, entry, facts, late, ran, recorded, returned};
use crate::channels::agent_messages::{Keys, denied};
use crate::channels::outbound::delivery::sent_files;
use crate::gateway::requests;
use crate::gateway::waiting::Status;
use crate::registry::{Agent, egress};
use crate::sessions::store;
use crate::turns::calls::{self, Call, CallOutcome, CallRow, CallState, Judged, ReadCall, ResultBody, Runs, TurnFacts};
use crate::turns::items;
use crate::turns::turn::{self, Position, Turn};
use ironclaw_contract::ids::{AgentId, CallId};
use ironclaw_contract::seam::message::Author;
use ironclaw_judge::Class;
use ironclaw_judge::inputs::Severity;
use ironclaw_judge::provenance::{Labelled, Provenance};
use ironclaw_operator::{DenialCode, LedgerEvent};
use ironclaw_state::{ReadTx, WriteTx, failpoint};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::{messages, turns};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The end of a call that was started.
enum Outcome {
    Known(ResultBody),
    /// The host gave it up. The attempts of a server during the call are a result all the same.
    Unknown(Option<ResultBody>),
}

/// A recorded call that was judged again for its start.
struct Rejudged<'a> {
    turn: &'a Turn,
    agent: &'a Agent,
    facts: &'a TurnFacts,
    call: &'a Labelled<Call>,
    row: &'a CallRow,
    judged: &'a Judged,
}

impl Executor {
    /// Runs a permitted or approved call, unless it ran already. Afterwards the record has its result, or the refusal. `left` is the
    /// time that the request may take. A call that runs at the end of `over`, or at an emergency stop, is given up, and its outcome is
    /// unknown.
    pub async fn run(
        self: &Arc<Self>,
        place: Place,
        when: When,
        left: Duration,
        over: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error> {
        let begun = Instant::now();
        let connection = self.connection(&place, left).await?;
        let left = left.saturating_sub(begun.elapsed());
        let (executor, place_of_start) = (Arc::clone(self), place.clone());
        let started = self.record.state.write(move |tx| executor.start(tx, &place_of_start, when)).await?;
        let Some(started) = started else {
            // People may be asked about it again, until a new end.
            self.gateway.bells.ends.notify_one();
            self.gateway.announce_end();
            return Ok(());
        };
        failpoint::reach("call_started");
        // In a task of its own, so that its outcome is recorded also if the sandbox goes away.
        let executor = Arc::clone(self);
        let sent = tokio::spawn(async move {
            let open = connection.open().cloned();
            // Dropping the request of a call cancels it at its server.
            let result = tokio::select! {
                result = executor.act(&place, &started, connection, left) => Some(result),
                () = over => None,
                () = executor.latch.shut() => None,
            };
            let given_up = || Outcome::Unknown(open.and_then(|open| open.given_up()));
            let outcome = result.map_or_else(given_up, Outcome::Known);
            failpoint::reach("call_sent");
            let settled = executor.settle_started(place, when, outcome).await;
            executor.gateway.announce();
            settled
        });
        match sent.await {
            Ok(settled) => settled,
            Err(_) => Err(Error::Stopping),
        }
    }

    /// Records the outcome of a call that was started.
    async fn settle_started(self: &Arc<Self>, place: Place, when: When, outcome: Outcome) -> Result<(), Error> {
        let executor = Arc::clone(self);
        let settle = move |tx: &mut WriteTx<'_>| match outcome {
            Outcome::Known(result) => {
                let before = calls::find(tx, place.call)?.and_then(|row| row.result);
                // A result is recorded whatever is wrong with the values in it.
                let lost = |error: &dyn Display| tracing::error!(call = %place.call, %error, "cannot keep the values of an answer");
                let returned =
                    executor.take_returned(tx, &place, &result).inspect_err(|error| lost(error)).ok().flatten();
                match when {
                    When::InTurn => executor.settle(tx, &place, &result)?,
                    When::Late => late::settle(&executor, tx, &place, &result)?,
                }
                let item = calls::find(tx, place.call)?.and_then(|row| row.result).filter(|item| Some(*item) != before);
                if let Some((returned, item)) = returned.zip(item) {
                    let kept = items::set_returned(tx, item, &returned, &place.key);
                    kept.unwrap_or_else(|error| lost(&error));
                }
                Ok(())
            }
            Outcome::Unknown(tried) => match when {
                When::InTurn => executor.lose(tx, &place, tried.as_ref()),
                When::Late => executor.lose_late(tx, &place, tried.as_ref()),
            },
        };
        self.record.state.write(settle).await
    }

    /// Records that a late call was given up, with the attempts of its server.
    fn lose_late(&self, tx: &mut WriteTx<'_>, place: &Place, tried: Option<&ResultBody>) -> Result<(), Error> {
        match requests::find_by_call(tx, place.call)? {
            Some(row) => {
                late::lose(tx, &self.record, &row, "everything was stopped")?;
                late::keep_tried(tx, &self.record, place, tried)
            }
            None => Ok(requests::finish(tx, place.call, CallOutcome::Unknown)?),
        }
    }

    /// Judges a call again, uses its approvals up, and marks it as running. Returns `None` if it does not run.
    fn start(&self, tx: &mut WriteTx<'_>, place: &Place, when: When) -> Result<Option<Effect>, Error> {
        let Some(row) = runnable(tx, place)? else {
            self.withdraw_approved(tx, place, "its call has an outcome already")?;
            return Ok(None);
        };
        let Some(open) = turn::find(tx, place.turn)?.filter(|turn| turn.open || when == When::Late) else {
            return Ok(None);
        };
        let call = recorded(tx, &row, &place.key)?;
        let agent = store::agent_of(tx, place.session)?;
        let judging = Judging { labels: call.labels, call: Some(row.id) };
        let facts = facts::for_turn(tx, &self.settings, &open, &agent, judging, &place.key)?;
        let wanted = ReadCall::recorded(call.value.clone());
        // The approvals are for the recorded arguments. The judgement changes a copy of its own.
        let arguments = wanted.arguments().cloned().unwrap_or_default();
        let judged = calls::judge(&agent, &facts, wanted, true);
        let permitted = match calls::may_have_happened(tx, &row)? || is_of_other_history(tx, &row)? {
            true => Err(Refusal::new(DenialCode::CallRepeated, String::new()).into()),
            false => {
                let (turn, agent, call) = (&open, agent.id, &call.value);
                let running = requests::Running { turn, agent, call, arguments: &arguments, row: &row };
                requests::use_approvals(tx, &self.gateway, &running, &judged.by_stages)
            }
        };
        match permitted {
            Ok(permitted) => {
                let effect = self.mark_running(tx, &permitted, place, &row, agent.id, facts.position.as_ref())?;
                if let Effect::Mcp(server_call) = &effect {
                    // A mode lets a reference pass that fits no field: its value counts as one of the model.
                    let is_bound = judged.inputs.findings.iter().all(|found| found.severity == Severity::Asks);
                    let bound = if is_bound { call.value.inputs.as_slice() } else { &[] };
                    returned::record_sent(tx, server_call, bound)?;
                }
                Ok(Some(effect))
            }
            Err(Denied::Refused(refusal)) if refusal.code == DenialCode::ShownDiffers && waits_again(tx, row.id)? => {
                Ok(None)
            }
            Err(Denied::Refused(refusal)) => {
                let judged =
                    Rejudged { turn: &open, agent: &agent, facts: &facts, call: &call, row: &row, judged: &judged };
                self.refuse_start(tx, place, &judged, &refusal).map(|()| None)
            }
            Err(Denied::Failed(error)) => Err(error),
        }
    }

    /// Records the refusal of a call at its start, informs the agent that asked for it, and gives the model a result.
    fn refuse_start(
        &self,
        tx: &mut WriteTx<'_>,
        place: &Place,
        rejudged: &Rejudged<'_>,
        refusal: &Refusal,
    ) -> Result<(), Error> {
        let Rejudged { turn, agent, facts, call, row, judged } = *rejudged;
        let code = judged.judgement.refusal_code().unwrap_or(refusal.code);
        // The end of its request may have refused the call already, with an entry.
        if calls::refuse_before_result(tx, row.id, code)? {
            entry(LedgerEvent::CallRefused, place, row).reason(code.name()).append(tx)?;
        }
        self.withdraw_approved(tx, place, code.meaning())?;
        let keys = Keys { wrapping: &self.record.wrapping, sealer: &self.record.sealer };
        denied::notify(tx, turn, facts.position.as_ref(), agent, &call.value, code, keys)?;
        sent_files::end(tx, row.id)?;
        let shown = match calls::find(tx, row.id)?.and_then(|row| row.result) {
            Some(earlier) => earlier,
            None => {
                let (target, result) = (self.target(place), calls::refusal(code, &refusal.message));
                let result = Labelled::new(&result, Provenance::HostAbout { output: call.labels });
                calls::record_result(tx, &target, row.id, &row.tool, Author::Host, result)?.tuple.item
            }
        };
        Ok(calls::refuse(tx, row.id, code, &calls::stages(&judged.by_stages.trace), shown)?)
    }

    /// Marks a permitted call as running, with its entry in the ledger, and returns its effect.
    fn mark_running(
        &self,
        tx: &mut WriteTx<'_>,
        permitted: &requests::Permitted,
        place: &Place,
        row: &CallRow,
        agent: AgentId,
        position: Option<&Position>,
    ) -> Result<Effect, Error> {
        let mut started = Effect::from_permitted(self, tx, permitted, place, agent)?;
        calls::start(tx, row.id)?;
        for host in started.requested_hosts() {
            egress::record_use(tx, agent, &host)?;
        }
        if let Effect::Send(order) = &mut started {
            order.intend(tx, self, place, position)?;
        }
        let begun = entry(LedgerEvent::CallStarted, place, row);
        started.with_hosts(begun.with("arguments_digest", row.digest)).append(tx)?;
        Ok(started)
    }

    /// Ends the approved request of a call that does not run. Otherwise it would be due again at once.
    fn withdraw_approved(&self, tx: &mut WriteTx<'_>, place: &Place, why: &str) -> Result<(), Error> {
        match requests::find_by_call(tx, place.call)? {
            Some(row) if row.status == Status::Approved => requests::withdraw(tx, &self.gateway, &row, why),
            _ => Ok(()),
        }
    }

    /// Records the result of a call for its turn.
    fn settle(&self, tx: &mut WriteTx<'_>, place: &Place, result: &ResultBody) -> Result<(), Error> {
        let found = calls::find(tx, place.call)?;
        let Some(row) = found.filter(|row| row.state == CallState::Running) else {
            // The turn ended meanwhile, and said that the outcome is unknown.
            return Ok(requests::finish(tx, place.call, CallOutcome::Unknown)?);
        };
        if result.outcome == CallOutcome::Unknown
            && let Some(request) = requests::find_by_call(tx, place.call)?
        {
            requests::record_unknown(tx, &request)?;
        }
        let digest = self.record_ended(tx, place, &row, result)?;
        ran(tx, place, &row, result, digest)
    }

    /// Records the attempts of a server during a call that was given up. The end of its turn marks the call as unknown.
    fn lose(&self, tx: &mut WriteTx<'_>, place: &Place, tried: Option<&ResultBody>) -> Result<(), Error> {
        let is_lost = |row: &CallRow| matches!(row.state, CallState::Running | CallState::Unknown);
        if let Some(tried) = tried
            && let Some(row) = calls::find(tx, place.call)?.filter(|row| is_lost(row) && row.result.is_none())
        {
            let author = Author::Tool { tool: row.tool.clone() };
            let item = calls::record_result(
                tx,
                &self.target(place),
                row.id,
                &row.tool,
                author,
                Labelled::new(tried, Provenance::Tool),
            )?;
            turns::set_late_result(tx, row.id, item.tuple.item)?;
        }
        if let Some(request) = requests::find_by_call(tx, place.call)?.filter(|row| row.status == Status::Running) {
            requests::notify_unknown(tx, &self.record, &request)?;
        }
        Ok(requests::finish(tx, place.call, CallOutcome::Unknown)?)
    }
}

/// Returns the call if it is one that the host still has to run.
fn runnable(tx: &ReadTx<'_>, place: &Place) -> Result<Option<CallRow>, ironclaw_state::Error> {
    let found = calls::find(tx, place.call)?.filter(|row| row.session == place.session && row.turn == place.turn);
    let waits = |row: &CallRow| matches!(row.state, CallState::Permitted | CallState::Asked);
    Ok(found.filter(|row| row.runs == Some(Runs::Await) && waits(row)))
}

/// Returns whether people are asked again about a call, because it would do something else than they approved.
fn waits_again(tx: &ReadTx<'_>, call: CallId) -> Result<bool, ironclaw_state::Error> {
    Ok(requests::find_by_call(tx, call)?.is_some_and(|request| request.status == Status::Pending))
}

/// Returns whether a call may have had its effect in the history that a restore of the record replaced. A person who approved it
/// decided after the restore, which withdraws all earlier requests.
fn is_of_other_history(tx: &ReadTx<'_>, row: &CallRow) -> Result<bool, ironclaw_state::Error> {
    let is_read = calls::judgement_of(tx, row.id)?.is_some_and(|judged| judged.class == Some(Class::Read));
    if is_read || requests::find_by_call(tx, row.id)?.is_some_and(|request| request.status == Status::Approved) {
        return Ok(false);
    }
    messages::is_of_earlier_generation(tx, row.turn)
}
