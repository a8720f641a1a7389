//! The judged calls of one output: their requests to people, and their verdicts.
//!
//! Never judges a call. See [`crate::turns::calls`] and [`crate::gateway::requests`].

use crate::calls::model_socket::ModelServers;
use crate::channels::agent_messages::{Keys, denied};
use crate::channels::outbound::delivery::sent_files::{self, Copied};
use crate::gateway::requests::{self, Asked, Asking};
use crate::gateway::waiting::Status;
use crate::registry::Agent;
use crate::registry::tools::{self, Runs};
use crate::turns::calls::{self, CallRow, CallState, Judgement, ResultTarget, TurnFacts};
use crate::turns::memories::Matches;
use crate::turns::turn::{self, Turn};
use ironclaw_contract::ids::ItemId;
use ironclaw_contract::seam::message::Author;
use ironclaw_contract::seam::socket::{Call, Verdict};
use ironclaw_judge::provenance::{Labelled, Provenance};
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent};
use ironclaw_state::WriteTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::Denied;

/// Adds the bound to the calls for which the turn has no room.
pub(super) fn record_no_room(judged: &mut [calls::Judged], limits: &turn::Config, used: u32) {
    for judged in judged {
        if judged.judgement.refusal_code() == Some(DenialCode::CallNoRoom) {
            let remedy = "answer with what you have; the next message of the person begins a new count";
            let count = used.max(limits.tool_calls_max);
            let bound = Bound::new("tool calls of this turn", limits.tool_calls_max, count, remedy);
            judged.judgement = Judgement::over(DenialCode::CallNoRoom, bound.setting("turn.tool_calls_max"));
        }
    }
}

/// The output whose calls may need people.
pub(super) struct Asks<'a> {
    pub(super) shared: &'a ModelServers,
    pub(super) turn: &'a Turn,
    pub(super) agent: &'a Agent,
    /// The items of the prompt of the output.
    pub(super) prompt: &'a [ItemId],
    pub(super) facts: &'a TurnFacts,
    pub(super) key: &'a ContentKey,
}

impl Asks<'_> {
    /// Records a judged call, with its request or the use of the allowance that it needs. A call that is not refused keeps its copy of a
    /// file.
    pub(super) fn record(
        &self,
        tx: &mut WriteTx<'_>,
        output: ItemId,
        position: usize,
        judged: &mut calls::Judged,
        copied: Option<Copied>,
    ) -> Result<(), Error> {
        let allowance = self.ask(tx, output, judged)?;
        if let Some(code) = judged.judgement.refusal_code() {
            let record = self.shared.record();
            let keys = Keys { wrapping: &record.wrapping, sealer: &record.sealer };
            denied::notify(tx, self.turn, self.facts.position.as_ref(), self.agent, &judged.call, code, keys)?;
        }
        calls::record(tx, self.turn.session, self.turn.id, output, position, judged)?;
        if let Some(allowance) = allowance {
            calls::promise(tx, judged.call.call_id, allowance)?;
        }
        if let Some(copied) = copied.filter(|_| judged.judgement.refusal_code().is_none()) {
            sent_files::keep(tx, judged.call.call_id, self.turn.session, copied, self.key)?;
        }
        Ok(())
    }

    /// Records the request of a call that needs people. A call for which no person is asked becomes a refused one. A call that an
    /// allowance covers becomes a permitted one; returns the number of that allowance. A permitted call follows the request of an
    /// equal call of its task.
    fn ask(&self, tx: &mut WriteTx<'_>, output: ItemId, judged: &mut calls::Judged) -> Result<Option<i64>, Error> {
        let (class, reasons, detail) = match &judged.judgement {
            Judgement::NeedsPerson { class, reasons, detail } => (*class, reasons.clone(), detail.clone()),
            Judgement::Permitted { class, .. } => (*class, Vec::new(), String::new()),
            Judgement::Refused { .. } => return Ok(None),
        };
        let asking = Asking {
            turn: self.turn,
            agent: self.agent,
            output,
            prompt: self.prompt,
            labels: self.facts.labels,
            typed: &self.facts.network.typed,
            inputs: &judged.inputs,
            handles: &self.facts.handles,
            key: self.key,
            call: &judged.call,
            arguments: &judged.arguments,
            class,
            digest: judged.digest,
            reasons: &reasons,
            is_plain_read: judged.by_stages.is_plain_read,
        };
        let asked = match &judged.judgement {
            Judgement::NeedsPerson { .. } => Some(requests::ask(tx, &self.shared.executor.gateway, &asking)?),
            Judgement::Permitted { .. } | Judgement::Refused { .. } => requests::follow_equal(tx, &asking)?,
        };
        let (judgement, allowance) = match asked {
            None => return Ok(None),
            Some(Asked::Waits(_)) if tools::is_made_again(&judged.call.tool) => {
                (self.made_again(tx, output, judged, Judgement::NeedsPerson { class, reasons, detail })?, None)
            }
            Some(Asked::Waits(_)) => (Judgement::NeedsPerson { class, reasons, detail }, None),
            Some(Asked::Allowed(allowance)) => (Judgement::Permitted { class, runs: Runs::Await }, Some(allowance)),
            Some(Asked::Refused(DenialCode::CallNeedsPerson)) => (calls::needs_person(&reasons, &detail), None),
            Some(Asked::Refused(code)) => (Judgement::Refused { code, detail: String::new(), bound: None }, None),
            Some(Asked::Over(bound)) => (Judgement::over(DenialCode::CallAskedTooOften, *bound), None),
        };
        judged.judgement = judgement;
        Ok(allowance)
    }

    /// Uses up the approvals of a call that its model makes again after people approved it, so that it runs now. Returns `waits` for one
    /// that still waits for people.
    fn made_again(
        &self,
        tx: &mut WriteTx<'_>,
        output: ItemId,
        judged: &calls::Judged,
        waits: Judgement,
    ) -> Result<Judgement, Error> {
        let call = judged.call.call_id;
        let is = |tx: &WriteTx<'_>, status| {
            Ok::<_, Error>(requests::find_by_call(tx, call)?.is_some_and(|request| request.status == status))
        };
        if !is(tx, Status::Approved)? {
            return Ok(waits);
        }
        let (Some(class), Some(tool)) = (judged.by_stages.class, tools::find(&judged.call.tool)) else {
            return Ok(waits);
        };
        let row = CallRow {
            id: call,
            session: self.turn.session,
            turn: self.turn.id,
            output,
            tool: judged.call.tool.clone(),
            runs: Some(tool.runs()),
            digest: judged.digest,
            state: CallState::Permitted,
            result: None,
        };
        let (turn, agent, arguments) = (self.turn, self.agent.id, &judged.arguments);
        let running = requests::Running { turn, agent, call: &judged.call, arguments, row: &row };
        match requests::use_approvals(tx, &self.shared.executor.gateway, &running, &judged.by_stages) {
            // The approvals are used up for the run of this output.
            Ok(_) => Ok(Judgement::Permitted { class, runs: tool.runs() }),
            // What it would do changed after the approval, so it waits again.
            Err(Denied::Refused(_)) if is(tx, Status::Pending)? => Ok(waits),
            Err(Denied::Refused(refusal)) => {
                Ok(Judgement::Refused { code: refusal.code, detail: String::new(), bound: None })
            }
            Err(Denied::Failed(error)) => Err(error),
        }
    }

    /// Returns a recorded call with its verdict, for the sandbox.
    pub(super) fn answer(
        &self,
        tx: &mut WriteTx<'_>,
        target: &ResultTarget<'_>,
        judged: &calls::Judged,
        found: Option<&Matches>,
    ) -> Result<Call, Error> {
        let verdict = self.verdict(tx, target, judged, found)?;
        let call = &judged.call;
        Ok(Call { call_id: call.call_id, tool: call.tool.clone(), arguments: call.arguments.clone(), verdict })
    }

    /// Returns the verdict on a judged call. A call that concerns the host's own record alone runs here, with the labels of its output.
    fn verdict(
        &self,
        tx: &mut WriteTx<'_>,
        target: &ResultTarget<'_>,
        judged: &calls::Judged,
        found: Option<&Matches>,
    ) -> Result<Verdict, Error> {
        let Asks { agent, turn, facts, .. } = *self;
        let (code, detail, bound) = match &judged.judgement {
            Judgement::Permitted { runs: Runs::Local, .. } => return Ok(Verdict::Local),
            Judgement::Permitted { runs: Runs::Row, .. } => return Ok(Verdict::Row),
            Judgement::Permitted { runs: Runs::Await, .. } | Judgement::NeedsPerson { .. } => {
                return Ok(Verdict::Await);
            }
            Judgement::Permitted { runs: Runs::Host, .. } => {
                let (call, room) = (&judged.call, self.shared.room(agent));
                let ran = calls::run(tx, agent, turn, facts.labels, judged, found, room)?;
                let author = Author::Tool { tool: call.tool.clone() };
                let item = calls::record_result(tx, target, call.call_id, &call.tool, author, ran.as_ref())?;
                let body = ran.value;
                calls::settle(tx, call.call_id, item.tuple.item, body.outcome)?;
                requests::finish(tx, call.call_id, body.outcome)?;
                Entry::new(LedgerEvent::CallRan)
                    .session(target.session)
                    .turn(target.turn)
                    .with("call", call.call_id)
                    .with("tool", call.tool.clone())
                    .with("ok", body.is_ok())
                    .with("outcome", body.outcome.name())
                    .with("digest", item.tuple.digest)
                    .append(tx)?;
                return Ok(Verdict::Done { item: item.seal(target.sealer), bytes: item.bytes });
            }
            Judgement::Refused { code, detail, bound } => (*code, detail, bound),
        };
        let result = match bound {
            Some(bound) => calls::refusal_over(code, bound),
            None => calls::refusal(code, detail),
        };
        let call = &judged.call;
        let result = Labelled::new(&result, Provenance::HostAbout { output: facts.labels });
        let item = calls::record_result(tx, target, call.call_id, &call.tool, Author::Host, result)?;
        calls::set_refusal(tx, call.call_id, item.tuple.item)?;
        Ok(Verdict::Refused { item: item.seal(target.sealer), bytes: item.bytes })
    }
}
