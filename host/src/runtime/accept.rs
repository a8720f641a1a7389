//! The acceptance of rows that a sandbox wrote: each row once, in one transaction with the cursor and its effects.
//!
//! Never trusts a row: the record decides. The session is notified of a refused row, and the ledger has it. See
//! [`crate::channels::outbound::delivery`] and [`crate::turns::calls`].

use crate::channels::inbound::inbox;
use crate::channels::outbound::delivery::{self, Delivery};
use crate::gateway::changes::Submitted;
use crate::gateway::questions;
use crate::gateway::requests;
use crate::gateway::waiting::Gateway;
use crate::gateway::{Origin, Proposed, Requester};
use crate::reach::skills;
use crate::registry::tools::Runs;
use crate::registry::{self, skills::Asker};
use crate::sessions::store::{self, Session};
use crate::turns::calls::{self, Action, CallState, ResultBody, ResultTarget, SkillInstall};
use crate::turns::context::OutputBody;
use crate::turns::items;
use crate::turns::turn::TurnEnd;
use crate::turns::turn::{self, Close, Turn};
use ironclaw_contract::canonical::{self, Digest, Limits};
use ironclaw_contract::ids::{CallId, ItemId, TurnId};
use ironclaw_contract::seam::change::Change;
use ironclaw_contract::seam::limits::{ROW_BYTES_MAX, UNDRAINED_ROWS_MAX};
use ironclaw_contract::seam::message::Author;
use ironclaw_contract::seam::outbound::{Content, EndReason, RawRow};
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_contract::seam::untrusted::Untrusted;
use ironclaw_judge::provenance::{Labelled, Labels, Provenance};
use ironclaw_ledger::Entry;
use ironclaw_operator::{DenialCode, Fault, LedgerEvent};
use ironclaw_state::keys::ContentKey;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::refusal::Denied;
use ironclaw_store::tables::sessions;
use ironclaw_text::lookalike;
use std::convert::Infallible;

/// The result of one row.
#[derive(Debug, Clone)]
pub enum Accepted {
    /// The open turn is closed with this delivery.
    Closed {
        /// The reply or the notice.
        delivery: Box<Delivery>,
        /// True if a message waits for the next turn.
        is_waiting: bool,
    },
    /// A call has its result.
    Called,
    /// The row was refused; the turn continues.
    Refused,
    /// A sandbox that follows the contract cannot have written this row.
    Violation(&'static str),
}

/// A row with well-formed parts. Made by [`parse`] alone.
struct Outbound {
    seq: u64,
    digest: Digest,
    /// `None` if the row names no turn.
    turn: Option<TurnId>,
    /// `None` if the row names no content of the contract.
    content: Option<Content>,
}

fn parse(row: RawRow) -> Result<Outbound, Infallible> {
    let digest = row.digest();
    let content = canonical::from_slice(row.content.as_bytes(), Limits::bytes(ROW_BYTES_MAX)).ok();
    Ok(Outbound { seq: row.seq, digest, turn: row.turn.parse().ok(), content })
}

/// The judge of the rows of one session.
pub struct Acceptance<'a> {
    /// Takes what agents ask of people, and has the record.
    pub gateway: &'a Gateway,
    pub limits: &'a turn::Config,
    pub session: &'a Session,
    /// Opens and seals the items of the session.
    pub key: &'a ContentKey,
    /// True if the caller records the receipt of a reply that stays on this host, in the same transaction.
    pub receives_here: bool,
}

impl Acceptance<'_> {
    fn record(&self) -> &Record {
        &self.gateway.record
    }

    /// Takes one row above the cursor: records its digest, moves the cursor, and applies the permitted effects. Returns the new cursor too.
    pub fn accept(&self, tx: &mut WriteTx<'_>, row: Untrusted<RawRow>) -> Result<(Accepted, u64), Error> {
        let Ok(row) = row.check(parse);
        let cursor = row.seq;
        Ok((self.judge(tx, row)?, cursor))
    }

    fn judge(&self, tx: &mut WriteTx<'_>, row: Outbound) -> Result<Accepted, Error> {
        let Self { session, key, .. } = *self;
        let cursor = sessions::cursor(tx, session.id)?;
        let numbers = cursor + 1..=cursor + SEQ_STEP_MAX;
        if !numbers.contains(&row.seq) || row.seq.is_multiple_of(2) {
            return Ok(Accepted::Violation("a row has a number that its queue could not have given it"));
        }
        let now = tx.wall();
        sessions::insert_outbound_row(tx, session.id, row.seq, row.digest, now)?;
        sessions::move_cursor(tx, session.id, row.seq, now)?;
        sessions::delete_outbound_rows_below(tx, session.id, row.seq as i64 - ROWS_KEPT)?;
        let open = turn::open_of(tx, session.id)?;
        let Some(open) = open.filter(|open| Some(open.id) == row.turn) else {
            return self.refuse(tx, &row, None, "it belongs to no open turn");
        };
        match &row.content {
            Some(Content::Reply(item)) => self.reply(tx, &open, &row, *item),
            Some(Content::End(reason)) => {
                // The sandbox only says that its model failed; the record has the reason.
                let why = if *reason == EndReason::Model { turn::failure(tx, open.id)? } else { None };
                let message = turn::newest_message(tx, open.id)?;
                let text = match (why, reason) {
                    (Some(why), _) => delivery::notice_of_model(&why, message),
                    (None, EndReason::Empty) => calls::empty_output::notice(tx, session.id, open.id, key)?,
                    (None, reason) => delivery::notice_for(*reason, self.limits, message),
                };
                let notice = close_with_notice(tx, self.record(), session, key, &open, &text, TurnEnd::Ended)?;
                self.closed(tx, notice)
            }
            Some(Content::Call(call)) => self.run_call(tx, &open, &row, *call),
            // The host's own words: people see them as such, and the refused text is from a stranger.
            None => self.refuse(tx, &row, Some(&open), "it names no reply, no end and no call"),
        }
    }

    fn reply(&self, tx: &mut WriteTx<'_>, open: &Turn, row: &Outbound, item: ItemId) -> Result<Accepted, Error> {
        let Self { session, key, .. } = *self;
        let found = items::find(tx, item)?;
        let seq = found.as_ref().map_or(0, |found| found.tuple.seq);
        let why = match found {
            None => Some("it names an output that is not in the record"),
            Some(found) if found.tuple.session != session.id || found.tuple.turn != Some(open.id) => {
                Some("it names an item of another turn")
            }
            Some(found) if found.tuple.kind != ItemKind::Output => Some("it names an item that is no output"),
            Some(found) => {
                let output: OutputBody = serde_json::from_str(&items::body(tx, &found, key)?)
                    .map_err(|_| ironclaw_state::Error::Stored(format!("{item} is no output")))?;
                match (output.calls.is_empty(), output.text.is_empty()) {
                    (false, _) => Some("it names an output that has calls"),
                    (true, true) => Some("it names an empty output"),
                    (true, false) => None,
                }
            }
        };
        if let Some(why) = why {
            return self.refuse(tx, row, Some(open), why);
        }
        let delivery = delivery::intend_reply(tx, session, Some(open.id), item, self.receives_here)?;
        turn::close(tx, open, Close::Answered, TurnEnd::Replied)?;
        items::enforce_before(tx, session.id, &self.record().retention, seq)?;
        store::reset_failures(tx, session.id)?;
        self.closed(tx, delivery)
    }

    fn closed(&self, tx: &ReadTx<'_>, delivery: Delivery) -> Result<Accepted, Error> {
        let is_waiting = turn::has_next(tx, self.session.id)?;
        Ok(Accepted::Closed { delivery: Box::new(delivery), is_waiting })
    }

    /// Acts on a recorded call, once.
    fn run_call(&self, tx: &mut WriteTx<'_>, open: &Turn, row: &Outbound, call: CallId) -> Result<Accepted, Error> {
        let Self { session, key, .. } = *self;
        let recorded = calls::find(tx, call)?.filter(|call| call.session == session.id && call.turn == open.id);
        let Some(recorded) = recorded else {
            return self.refuse(tx, row, Some(open), "it names no recorded call of the open turn");
        };
        if recorded.state != CallState::Permitted || recorded.runs != Some(Runs::Row) || recorded.result.is_some() {
            let why = "its call was already used, was refused, or does not go out as a row";
            return self.refuse(tx, row, Some(open), why);
        }
        let Some(output) = items::find(tx, recorded.output)? else {
            return self.refuse(tx, row, Some(open), "the output of its call is not in the record");
        };
        let body: OutputBody = serde_json::from_str(&items::body(tx, &output, key)?)
            .map_err(|_| ironclaw_state::Error::Stored("an output's body has another shape".to_owned()))?;
        let wanted = body.calls.into_iter().find(|wanted| wanted.call_id == recorded.id);
        let wanted = wanted.filter(|wanted| calls::digest(&wanted.tool, &wanted.arguments) == recorded.digest);
        let Some(Ok(action)) = wanted.map(Action::recorded) else {
            return self.refuse(tx, row, Some(open), "the recorded call makes no action");
        };
        let place = ResultTarget { session: session.id, turn: open.id, key, sealer: &self.record().sealer };
        let provenance = match &action {
            Action::Ask(_) => Provenance::HostAbout { output: Labels::recorded(&output.tuple.labels) },
            Action::Propose { .. } | Action::Install { .. } => Provenance::Tool,
        };
        let (result, refused) = self.act(tx, open, &recorded, &output, action)?;
        let (id, tool) = (recorded.id, &recorded.tool);
        let item = calls::record_result(tx, &place, id, tool, Author::Host, Labelled::new(&result, provenance))?;
        calls::settle(tx, recorded.id, item.tuple.item, result.outcome)?;
        requests::finish(tx, recorded.id, result.outcome)?;
        if let Some(why) = refused {
            Entry::new(LedgerEvent::ActionRefused)
                .session(session.id)
                .turn(open.id)
                .with("call", recorded.id)
                .with("tool", recorded.tool)
                .reason(why)
                .append(tx)?;
        }
        Ok(Accepted::Called)
    }

    /// Performs an action. Returns its result, and the reason if it was refused.
    fn act(
        &self,
        tx: &mut WriteTx<'_>,
        open: &Turn,
        call: &calls::CallRow,
        output: &items::Recorded,
        action: Action,
    ) -> Result<(ResultBody, Option<&'static str>), Error> {
        let Self { session, key, .. } = *self;
        let (change, reason) = match action {
            Action::Propose { change, reason } => (change, reason),
            Action::Install { skill: SkillInstall { skill, version }, reason } => {
                let resolved = registry::known_agent(tx, session.agent)
                    .and_then(|agent| skills::resolved(tx, &agent, &skill, &version));
                match resolved {
                    Ok(resolved) => (Change::Skills(resolved), reason),
                    Err(Denied::Refused(refusal)) => {
                        let by = Asker::Turn(session.id, open.id);
                        registry::skills::record_refused(tx, &skill, &version, refusal.code, by)?;
                        return Ok((proposal_result(Err(refusal.into()))?, None));
                    }
                    Err(failed) => return Ok((proposal_result(Err(failed.widen()))?, None)),
                }
            }
            Action::Ask(question) => {
                let labels = Labels::recorded(&output.tuple.labels);
                let asking = questions::Asking { session, key, turn: open, call, labels, question: &question };
                let (result, refused) = questions::ask(tx, self.gateway, &asking)?;
                return Ok((result, refused.map(DenialCode::meaning)));
            }
        };
        let message = turn::messages_of(tx, open.id)?.first().copied();
        let origin = Origin { session: session.id, turn: open.id, message, call: call.id };
        let proposed = Proposed {
            change,
            agent: Some(session.agent),
            requester: Requester::Agent { principal: open.person()?, origin },
            reason,
            labels: Labels::recorded(&output.tuple.labels),
        };
        // `submit` already records a refusal in the ledger.
        Ok((proposal_result(self.gateway.propose(tx, proposed))?, None))
    }

    fn refuse(
        &self,
        tx: &mut WriteTx<'_>,
        row: &Outbound,
        open: Option<&Turn>,
        why: &'static str,
    ) -> Result<Accepted, Error> {
        let Self { session, .. } = *self;
        let entry = Entry::new(LedgerEvent::RowRefused)
            .session(session.id)
            .fault(Fault::Sandbox)
            .with("row", row.seq)
            .with("row_digest", row.digest)
            .reason(why);
        match open {
            Some(open) => entry.turn(open.id).append(tx)?,
            None => entry.append(tx)?,
        };
        let text = format!("The host refused outbound row {}: {why}.", row.seq);
        inbox::notify(tx, session, &text, &self.record().wrapping, &self.record().sealer)?;
        Ok(Accepted::Refused)
    }
}

/// The most that a row's number may be above the cursor: the reach of the undrained rows, with a margin.
const SEQ_STEP_MAX: u64 = 8 * UNDRAINED_ROWS_MAX as u64;

/// Digests of taken rows are kept for this many numbers, to detect a changed row.
const ROWS_KEPT: i64 = 4096;

/// Compares rows with the digests from when they were taken: another digest means that the file was rewritten.
pub fn check_taken(
    tx: &ReadTx<'_>,
    session: &Session,
    taken: &[(u64, Digest)],
) -> Result<Option<&'static str>, ironclaw_state::Error> {
    for (seq, digest) in taken {
        let accepted = sessions::outbound_digest(tx, session.id, *seq)?;
        if accepted.as_deref() != Some(digest.to_string().as_str()) {
            return Ok(Some("a row was changed after it was taken"));
        }
    }
    Ok(None)
}

/// Closes a turn with a notice of the host.
pub fn close_with_notice(
    tx: &mut WriteTx<'_>,
    record: &Record,
    session: &Session,
    key: &ContentKey,
    open: &Turn,
    text: &str,
    end: TurnEnd,
) -> Result<Delivery, Error> {
    close_as(tx, record, session, key, open, text, Close::Answered, end)
}

/// Closes a turn with a notice of the host, and settles its calls as `how` says.
#[allow(clippy::too_many_arguments)]
pub fn close_as(
    tx: &mut WriteTx<'_>,
    record: &Record,
    session: &Session,
    key: &ContentKey,
    open: &Turn,
    text: &str,
    how: Close,
    end: TurnEnd,
) -> Result<Delivery, Error> {
    let delivery = delivery::notify(tx, session, Some(open.id), text, key, &record.sealer)?;
    turn::close(tx, open, how, end)?;
    items::enforce_retention(tx, session.id, &record.retention)?;
    Ok(delivery)
}

/// Returns the result of a proposed change for the model.
fn proposal_result(submitted: Result<Submitted, Denied<Error>>) -> Result<ResultBody, Error> {
    Ok(match submitted {
        Ok(Submitted { id, again: false, .. }) => ResultBody::done(format!(
            "pending as {id}: nothing is changed yet. A person decides, and you will get the outcome."
        )),
        Ok(Submitted { id, again: true, .. }) => ResultBody::done(format!(
            "already pending as {id}: the same change was proposed before, and a person decides."
        )),
        Err(Denied::Failed(error)) => return Err(error),
        Err(Denied::Refused(refusal)) => {
            // The sentence may quote the model's own text, so it is neutralised like any other text.
            let advice = refusal.bound.map_or_else(String::new, |bound| format!("; {}", bound.advice()));
            let text = format!("refused: {}{advice} ({})", refusal.message, refusal.code);
            ResultBody::failed(lookalike::neutralise(&text).into_owned())
        }
    })
}
