//! One turn: ask the model, settle its calls, ask again, until there is an answer or a bound is reached.
//!
//! A turn ends with exactly one row, or with none if the host closed it meanwhile. A refused request is never repeated. See
//! [`crate::tools`].

use super::context::{Entry, KnownItems, TooMuch};
use super::model;
use super::named::NamedItems;
use super::outbox::now_ms;
use super::{Agent, Stop};
use ironclaw_contract::ids::{CallId, ItemId};
use ironclaw_contract::seam::inbound::Turn;
use ironclaw_contract::seam::link::TurnLimits;
use ironclaw_contract::seam::outbound::{Content, EndReason};
use ironclaw_contract::seam::seal::{ItemKind, Ref};
use ironclaw_contract::seam::socket::{Call, Purpose, RefusalCode, Request, Response, Verdict};
use std::time::{Duration, Instant};

/// Works on a turn until it ends.
pub(super) fn run(agent: &mut Agent, turn: &Turn) -> Result<(), Stop> {
    let own = turn.messages.iter().map(|message| message.item()).collect();
    // The machine's clock is read only once, so that a change of the clock cannot end a turn.
    let left_ms = u64::try_from(turn.deadline.saturating_sub(now_ms())).unwrap_or(0);
    let until = Instant::now().checked_add(Duration::from_millis(left_ms));
    let deadline = turn.deadline;
    let bytes_max = agent.limits.context_bytes_max;
    let mut work = Work { agent, turn, until, deadline, own, spent: Spent::default(), compacts: true, bytes_max };
    let content = match work.until_answer() {
        Ok(item) => Content::Reply(item),
        Err(Leave::End(reason)) => Content::End(reason),
        Err(Leave::Closed) => return Ok(()),
        Err(Leave::Stop(stop)) => return Err(stop),
    };
    if !work.is_open()? {
        return Ok(());
    }
    agent.outbox.answer(turn, &content)?;
    Ok(agent.link.ring()?)
}

/// The reason why a turn ends before its reply.
enum Leave {
    /// A bound was reached or a step failed; the host words the notice.
    End(EndReason),
    /// The host closed the turn, so no row follows.
    Closed,
    /// The whole process ends.
    Stop(Stop),
}

impl From<EndReason> for Leave {
    fn from(reason: EndReason) -> Self {
        Self::End(reason)
    }
}

impl From<TooMuch> for Leave {
    fn from(TooMuch: TooMuch) -> Self {
        Self::End(EndReason::Bytes)
    }
}

impl<T: Into<Stop>> From<T> for Leave {
    fn from(stop: T) -> Self {
        Self::Stop(stop.into())
    }
}

/// The part of its bounds that a turn has used.
#[derive(Default)]
struct Spent {
    model_calls: u32,
    tool_calls: u32,
    result_bytes: u64,
}

impl Spent {
    fn model_call(&mut self, limits: TurnLimits) -> Result<(), EndReason> {
        self.model_calls += 1;
        if self.model_calls > limits.model_calls_max { Err(EndReason::ModelCalls) } else { Ok(()) }
    }

    /// Counts all calls of an output together: to run only half of them is useless, because no result is read then.
    fn calls(&mut self, calls: usize, limits: TurnLimits) -> Result<(), EndReason> {
        self.tool_calls = self.tool_calls.saturating_add(u32::try_from(calls).unwrap_or(u32::MAX));
        if self.tool_calls > limits.tool_calls_max { Err(EndReason::ToolCalls) } else { Ok(()) }
    }

    fn result(&mut self, bytes: u64, limits: TurnLimits) -> Result<(), EndReason> {
        self.result_bytes = self.result_bytes.saturating_add(bytes);
        if self.result_bytes > limits.result_bytes_max { Err(EndReason::Bytes) } else { Ok(()) }
    }
}

struct Work<'a> {
    agent: &'a mut Agent,
    turn: &'a Turn,
    /// Its deadline by the monotonic clock; `None` if that is too far away.
    until: Option<Instant>,
    /// Its deadline in the queue, as last read.
    deadline: i64,
    own: Vec<ItemId>,
    spent: Spent,
    /// False after a summary failed; the next turn asks again.
    compacts: bool,
    /// Bytes of the earlier items of a request: the limit, or fewer after the host refused a longer request, because the model reads less.
    bytes_max: u64,
}

impl Work<'_> {
    /// Returns the output that answers the turn.
    fn until_answer(&mut self) -> Result<ItemId, Leave> {
        let limits = self.agent.limits;
        self.gather()?;
        loop {
            self.check()?;
            self.compact()?;
            self.spent.model_call(limits)?;
            let (item, bytes, calls) = self.generate()?;
            let output = item.item;
            self.add(item, bytes);
            if calls.is_empty() {
                return if bytes == 0 { Err(EndReason::Empty.into()) } else { Ok(output) };
            }
            let first = self.spent.tool_calls == 0;
            self.spent.calls(calls.len(), limits)?;
            // A row of a call records the work too.
            if first && calls.iter().all(|call| call.verdict != Verdict::Row) {
                self.agent.outbox.record_work(self.turn)?;
            }
            for call in calls {
                self.check()?;
                let (item, bytes) = self.settle(call)?;
                self.add(item, bytes);
                self.spent.result(bytes, limits)?;
            }
        }
    }

    /// Requests one output of the model. If the host has dropped a named item, or forgot the earlier request, the list of items is
    /// requested again, once. If the model reads less, the request becomes shorter.
    fn generate(&mut self) -> Result<(Ref, u64, Vec<Call>), Leave> {
        let mut listed_again = false;
        loop {
            let refs = self.agent.known.choose(&self.own, self.turn.turn, self.room())?;
            let parts = self.agent.named.parts(&refs);
            let request = Request::Generate { turn: self.turn.turn, purpose: Purpose::Reply, refs: parts };
            match self.agent.model.ask(&request, &self.agent.link) {
                Ok(Response::Output { item, bytes, calls }) => {
                    self.agent.named = NamedItems::new(item.item, &refs);
                    return Ok((item, bytes, calls));
                }
                Ok(Response::Refused { code: RefusalCode::Unknown, .. }) if !listed_again => {
                    listed_again = true;
                    self.agent.known = KnownItems::default();
                    self.agent.named = NamedItems::default();
                    self.agent.complete_upto = None;
                    self.gather()?;
                }
                Ok(Response::Refused { code: RefusalCode::Frame, .. }) if self.shrink(&refs) => self.compact()?,
                Ok(Response::Refused { code, .. }) => return Err(on_refusal(code, &request)),
                Ok(Response::Sealed { .. } | Response::Items { .. }) => return Err(EndReason::Failed.into()),
                Err(model::Error::Gone(gone)) => return Err(gone.into()),
                Err(model::Error::Io | model::Error::Malformed) => return Err(EndReason::Failed.into()),
            }
        }
    }

    /// Returns the bytes of a request: those of the turn itself always fit, up to the limit.
    fn room(&self) -> u64 {
        let turn = self.agent.known.turn_bytes(&self.own, self.turn.turn);
        self.bytes_max.max(turn).min(self.agent.limits.context_bytes_max)
    }

    /// Makes later requests of this turn a quarter shorter than one that the host refused because of its size. Returns false if it names
    /// nothing but the turn itself.
    fn shrink(&mut self, refs: &[Ref]) -> bool {
        let known = &self.agent.known;
        let named = known.bytes(refs);
        let can_shrink = named > known.turn_bytes(&self.own, self.turn.turn);
        if can_shrink {
            self.bytes_max = shorter(named);
        }
        can_shrink
    }

    /// Asks the host to replace the oldest items with a summary, while not all items fit into one request.
    ///
    /// Without a summary the oldest items are left out, so a failed summary ends no turn.
    fn compact(&mut self) -> Result<(), Leave> {
        let limits = self.agent.limits;
        let mut covered_max = self.room();
        // The last request is reserved for the answer.
        while self.compacts && self.spent.model_calls + 1 < limits.model_calls_max {
            let Agent { known, named, .. } = &*self.agent;
            let covered = known.items_to_summarize(&self.own, self.turn.turn, self.room(), covered_max);
            if covered.is_empty() {
                return Ok(());
            }
            let refs = named.parts(&covered);
            let request = Request::Generate { turn: self.turn.turn, purpose: Purpose::Compact, refs };
            match self.agent.model.ask(&request, &self.agent.link) {
                // A summary of fewer items; the next one covers it and the rest.
                Ok(Response::Refused { code: RefusalCode::Frame, .. }) if covered.len() > 1 => {
                    covered_max = shorter(self.agent.known.bytes(&covered));
                    continue;
                }
                Ok(Response::Output { item, bytes, .. }) if item.kind == ItemKind::Summary => {
                    self.agent.known.replace(&covered, item, bytes);
                }
                Ok(Response::Refused { code: RefusalCode::Turn, .. }) => return Err(Leave::Closed),
                Ok(_) | Err(model::Error::Io | model::Error::Malformed) => self.compacts = false,
                Err(model::Error::Gone(gone)) => return Err(gone.into()),
            }
            self.spent.model_call(limits)?;
        }
        Ok(())
    }

    /// Adds the items since the last turn: the messages from the queue, and the others from the host, if there are any.
    fn gather(&mut self) -> Result<(), Leave> {
        let Agent { inbox, known, complete_upto, .. } = &mut *self.agent;
        inbox.gather(known, &self.own)?;
        if let Some(upto) = complete_upto.and_then(|upto| known.complete_after(upto)) {
            *complete_upto = Some(upto);
        } else {
            self.list()?;
        }
        if self.agent.known.hold_all(&self.own) { Ok(()) } else { Err(EndReason::Failed.into()) }
    }

    /// Adds the items that the host lists.
    fn list(&mut self) -> Result<(), Leave> {
        loop {
            let after_seq = self.agent.complete_upto.unwrap_or(0);
            let Response::Items { items, more } = self.ask(&Request::Items { after_seq })? else {
                return Err(EndReason::Failed.into());
            };
            let mut upto = after_seq;
            for item in items {
                upto = upto.max(item.reference.seq);
                self.agent.known.add(Entry { reference: item.reference, bytes: item.bytes, turn: item.turn });
            }
            self.agent.complete_upto = Some(upto);
            self.agent.known.drop_oldest(&self.own);
            // A page without a newer item would be requested again and again.
            if !more || upto == after_seq {
                return Ok(());
            }
        }
    }

    /// Settles one call; returns its sealed result.
    fn settle(&mut self, call: Call) -> Result<(Ref, u64), Leave> {
        let Call { call_id, tool, arguments, verdict } = call;
        match verdict {
            Verdict::Refused { item, bytes } | Verdict::Done { item, bytes } => Ok((item, bytes)),
            Verdict::Await => self.sealed(&Request::Result { turn: self.turn.turn, call_id }),
            Verdict::Local => {
                let outcome = match tool.as_str() {
                    "run_command" => self.agent.tools.command(&arguments, &self.agent.link)?,
                    _ => self.agent.tools.run(&tool, &arguments),
                };
                self.report(call_id, outcome.ok, outcome.body)
            }
            Verdict::Row => {
                self.agent.outbox.call(self.turn, call_id)?;
                self.agent.link.ring()?;
                self.sealed(&Request::Result { turn: self.turn.turn, call_id })
            }
        }
    }

    fn report(&mut self, call_id: CallId, ok: bool, body: String) -> Result<(Ref, u64), Leave> {
        self.sealed(&Request::Report { turn: self.turn.turn, call_id, ok, body })
    }

    fn sealed(&mut self, request: &Request) -> Result<(Ref, u64), Leave> {
        match self.ask(request)? {
            Response::Sealed { item, bytes } => Ok((item, bytes)),
            Response::Output { .. } | Response::Items { .. } | Response::Refused { .. } => {
                Err(EndReason::Failed.into())
            }
        }
    }

    /// Sends one request; a refusal ends the turn, with or without a row.
    fn ask(&mut self, request: &Request) -> Result<Response, Leave> {
        match self.agent.model.ask(request, &self.agent.link) {
            Ok(Response::Refused { code, .. }) => Err(on_refusal(code, request)),
            Ok(answer) => Ok(answer),
            Err(model::Error::Gone(gone)) => Err(gone.into()),
            Err(model::Error::Io | model::Error::Malformed) => Err(EndReason::Failed.into()),
        }
    }

    /// Checks that the turn is open and its deadline has not passed.
    fn check(&mut self) -> Result<(), Leave> {
        if !self.is_open()? {
            return Err(Leave::Closed);
        }
        if self.is_over() {
            self.follow_deadline()?;
        }
        if self.is_over() { Err(EndReason::Time.into()) } else { Ok(()) }
    }

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() > until)
    }

    /// Reads the deadline again: the host moves it by the time that a call waited for a person.
    fn follow_deadline(&mut self) -> Result<(), Stop> {
        let Some(open) = self.agent.inbox.open_turn()? else { return Ok(()) };
        if open.turn == self.turn.turn && open.deadline > self.deadline {
            let moved_ms = u64::try_from(open.deadline - self.deadline).unwrap_or(0);
            self.until = self.until.and_then(|until| until.checked_add(Duration::from_millis(moved_ms)));
            self.deadline = open.deadline;
        }
        Ok(())
    }

    fn is_open(&self) -> Result<bool, Stop> {
        self.agent.link.rung()?;
        Ok(self.agent.inbox.open_turn()?.is_some_and(|open| open.turn == self.turn.turn))
    }

    fn add(&mut self, reference: Ref, bytes: u64) {
        self.agent.known.add(Entry { reference, bytes, turn: Some(self.turn.turn) });
    }
}

/// Returns the bytes of a request that is a quarter shorter than a refused one.
const fn shorter(bytes: u64) -> u64 {
    bytes / 4 * 3
}

fn on_refusal(code: RefusalCode, request: &Request) -> Leave {
    match code {
        RefusalCode::Turn => Leave::Closed,
        RefusalCode::Model => EndReason::Model.into(),
        RefusalCode::Budget => match request {
            Request::Generate { .. } => EndReason::ModelCalls.into(),
            Request::Report { .. } | Request::Result { .. } => EndReason::Bytes.into(),
            // It asked too often.
            Request::Items { .. } => EndReason::Failed.into(),
        },
        RefusalCode::Frame
        | RefusalCode::Seal
        | RefusalCode::Unknown
        | RefusalCode::Unsealed
        | RefusalCode::Order
        | RefusalCode::Call
        | RefusalCode::Unavailable => EndReason::Failed.into(),
    }
}
