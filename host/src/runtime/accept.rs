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
use crate::turns::calls::{self, CallState, ResultBody, ResultTarget};
use crate::turns::context::OutputBody;
use crate::turns::items;
use crate::turns::turn::TurnEnd;
use crate::turns::turn::{self, Close, Turn};
use ironclaw_contract::canonical::{self, Digest, Limits};
use ironclaw_contract::ids::{self, CallId, ItemId, MessageId, TurnId};
use ironclaw_contract::seam::action::{self, Action};
use ironclaw_contract::seam::change::Change;
use ironclaw_contract::seam::limits::{ROW_BYTES_MAX, UNDRAINED_ROWS_MAX};
use ironclaw_contract::seam::message::{Author, Kind};
use ironclaw_contract::seam::outbound::{Chat, EndReason, RawRow};
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
    id: MessageId,
    seq: u64,
    digest: Digest,
    /// `None` if the row names no turn.
    turn: Option<TurnId>,
    /// The answered message, if any; `Err` for a malformed id.
    in_reply_to: Option<Result<MessageId, ids::ParseError>>,
    address: [Option<String>; 3],
    content: Content,
}

enum Content {
    Reply(ItemId),
    End(EndReason),
    Action { call: Option<String>, action: Box<Action> },
    Nothing(&'static str),
}

fn parse(row: RawRow) -> Result<Outbound, &'static str> {
    let digest = row.digest();
    let id = row.id.parse().map_err(|_| "a row has no id of a message")?;
    let limits = Limits::bytes(ROW_BYTES_MAX);
    // The reasons are the host's own words: people see them as such, and the refused text is from a stranger.
    let content = match row.kind.parse::<Kind>() {
        Ok(Kind::Chat) => match canonical::from_slice::<Chat>(row.content.as_bytes(), limits) {
            Ok(Chat::Reply(item)) => Content::Reply(item),
            Ok(Chat::End(reason)) => Content::End(reason),
            Err(_) => Content::Nothing("it is no reply and no end"),
        },
        Ok(Kind::System) => match Action::parse(&row.content) {
            Ok(action) => Content::Action { call: row.call_id, action: Box::new(action) },
            Err(action::Error::Unknown(_)) => Content::Nothing("it names an unknown action"),
            Err(action::Error::Malformed(_)) => Content::Nothing("it holds no action of the contract"),
            Err(action::Error::Change(_)) => Content::Nothing("its payload is not of its kind of change"),
            Err(action::Error::Bounds { .. }) => Content::Nothing("a field of its action is empty or too long"),
        },
        Ok(Kind::Task | Kind::Webhook) => Content::Nothing("rows of its kind come from the host only"),
        Err(_) => Content::Nothing("its kind is unknown"),
    };
    let address = [row.channel_type, row.platform_id, row.thread_id];
    let in_reply_to = row.in_reply_to.map(|message| message.parse());
    Ok(Outbound { id, seq: row.seq, digest, turn: row.turn.parse().ok(), in_reply_to, address, content })
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
    pub fn accept(
        &self,
        tx: &mut WriteTx<'_>,
        row: Untrusted<RawRow>,
    ) -> Result<(Accepted, u64), ironclaw_store::error::Error> {
        match row.check(parse) {
            Ok(row) => {
                let cursor = row.seq;
                Ok((self.judge(tx, row)?, cursor))
            }
            // A violation ends the session's launch, and the next launch reads the cursor from the record.
            Err(what) => Ok((Accepted::Violation(what), 0)),
        }
    }

    fn judge(&self, tx: &mut WriteTx<'_>, row: Outbound) -> Result<Accepted, ironclaw_store::error::Error> {
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
        if let Some(why) = misaddressed(tx, session, &open, &row)? {
            return self.refuse(tx, &row, Some(&open), why);
        }
        match &row.content {
            Content::Reply(item) => self.reply(tx, &open, &row, *item),
            Content::End(reason) => {
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
            Content::Action { call, action } => self.run_call(tx, &open, &row, call.as_deref(), action),
            Content::Nothing(why) => self.refuse(tx, &row, Some(&open), why),
        }
    }

    fn reply(
        &self,
        tx: &mut WriteTx<'_>,
        open: &Turn,
        row: &Outbound,
        item: ItemId,
    ) -> Result<Accepted, ironclaw_store::error::Error> {
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
        let delivery = delivery::intend_reply(tx, session, Some(open.id), item, Some(row.id), self.receives_here)?;
        turn::close(tx, open, Close::Answered, TurnEnd::Replied)?;
        items::enforce_before(tx, session.id, &self.record().retention, seq)?;
        store::reset_failures(tx, session.id)?;
        self.closed(tx, delivery)
    }

    fn closed(&self, tx: &ReadTx<'_>, delivery: Delivery) -> Result<Accepted, ironclaw_store::error::Error> {
        let is_waiting = turn::has_next(tx, self.session.id)?;
        Ok(Accepted::Closed { delivery: Box::new(delivery), is_waiting })
    }

    fn run_call(
        &self,
        tx: &mut WriteTx<'_>,
        open: &Turn,
        row: &Outbound,
        call: Option<&str>,
        action: &Action,
    ) -> Result<Accepted, ironclaw_store::error::Error> {
        let Self { session, key, .. } = *self;
        let recorded = match call.and_then(|call| call.parse::<CallId>().ok()) {
            Some(call) => calls::find(tx, call)?,
            None => None,
        };
        let Some(recorded) = recorded.filter(|call| call.session == session.id && call.turn == open.id) else {
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
        let wanted = body.calls.iter().find(|wanted| wanted.call_id == recorded.id);
        let same = wanted.is_some_and(|wanted| {
            calls::digest(&wanted.tool, &wanted.arguments) == recorded.digest
                && calls::action_of(wanted).ok().as_ref() == Some(action)
        });
        if !same {
            return self.refuse(tx, row, Some(open), "it asks for something else than its recorded call");
        }
        let place = ResultTarget { session: session.id, turn: open.id, key, sealer: &self.record().sealer };
        let (result, refused) = self.result_of(tx, open, &recorded, &output, action)?;
        let provenance = match action {
            Action::AskUserQuestion(_) => Provenance::HostAbout { output: Labels::recorded(&output.tuple.labels) },
            Action::Change { .. } | Action::SkillInstall { .. } | Action::ScheduleTask(_) => Provenance::Tool,
        };
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

    /// Runs the action of a call. Returns its result, and the reason if it was refused.
    fn result_of(
        &self,
        tx: &mut WriteTx<'_>,
        open: &Turn,
        call: &calls::CallRow,
        output: &items::Recorded,
        action: &Action,
    ) -> Result<(ResultBody, Option<&'static str>), ironclaw_store::error::Error> {
        let Self { session, key, .. } = *self;
        Ok(match action {
            Action::Change { change, reason } => {
                let proposed = self.proposed(tx, open, call, output, change.clone())?;
                let proposed = Proposed { reason: reason.clone(), ..proposed };
                // `submit` already records a refusal in the ledger.
                (proposal_result(self.gateway.propose(tx, proposed))?, None)
            }
            Action::SkillInstall { skill: skill_named, reason } => {
                let skill = registry::known_agent(tx, session.agent)
                    .and_then(|agent| skills::resolved(tx, &agent, &skill_named.skill, &skill_named.version));
                match skill {
                    Ok(skill) => {
                        let proposed = self.proposed(tx, open, call, output, Change::Skills(skill))?;
                        let proposed = Proposed { reason: reason.clone(), ..proposed };
                        (proposal_result(self.gateway.propose(tx, proposed))?, None)
                    }
                    Err(Denied::Refused(refusal)) => {
                        let by = Asker::Turn(session.id, open.id);
                        let (name, version) = (&skill_named.skill, &skill_named.version);
                        registry::skills::record_refused(tx, name, version, refusal.code, by)?;
                        (proposal_result(Err(refusal.into()))?, None)
                    }
                    Err(failed) => (proposal_result(Err(failed.widen()))?, None),
                }
            }
            Action::AskUserQuestion(question) => {
                let labels = Labels::recorded(&output.tuple.labels);
                let asking = questions::Asking { session, key, turn: open, call, labels, question };
                let (result, refused) = questions::ask(tx, self.gateway, &asking)?;
                (result, refused.map(DenialCode::meaning))
            }
            Action::ScheduleTask(task) => {
                let proposed = self.proposed(tx, open, call, output, calls::scheduled(task))?;
                (proposal_result(self.gateway.propose(tx, proposed))?, None)
            }
        })
    }

    /// Returns a change that the agent proposes with a call, without a reason.
    fn proposed(
        &self,
        tx: &ReadTx<'_>,
        open: &Turn,
        call: &calls::CallRow,
        output: &items::Recorded,
        change: Change,
    ) -> Result<Proposed, ironclaw_store::error::Error> {
        let message = turn::messages_of(tx, open.id)?.first().copied();
        let origin = Origin { session: self.session.id, turn: open.id, message, call: call.id };
        Ok(Proposed {
            change,
            agent: Some(self.session.agent),
            requester: Requester::Agent { principal: open.person()?, origin },
            reason: String::new(),
            labels: Labels::recorded(&output.tuple.labels),
        })
    }

    fn refuse(
        &self,
        tx: &mut WriteTx<'_>,
        row: &Outbound,
        open: Option<&Turn>,
        why: &'static str,
    ) -> Result<Accepted, ironclaw_store::error::Error> {
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

/// Returns the error of a row that names another address than the session's origin, or answers a message outside of its turn.
fn misaddressed(
    tx: &ReadTx<'_>,
    session: &Session,
    open: &Turn,
    row: &Outbound,
) -> Result<Option<&'static str>, ironclaw_state::Error> {
    let origin = &session.origin;
    let thread = Some(origin.thread_id.clone()).filter(|thread| !thread.is_empty());
    let routing = [Some(origin.channel.clone()), Some(origin.platform_id.clone()), thread];
    if row.address.iter().any(Option::is_some) && row.address != routing {
        return Ok(Some("it is addressed to another place than its session's origin"));
    }
    if let Some(answered) = &row.in_reply_to {
        let messages = turn::messages_of(tx, open.id)?;
        if !answered.as_ref().is_ok_and(|answered| messages.contains(answered)) {
            return Ok(Some("it answers a message that is not of its turn"));
        }
    }
    Ok(None)
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
) -> Result<Delivery, ironclaw_store::error::Error> {
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
) -> Result<Delivery, ironclaw_store::error::Error> {
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
