//! Turns: the choice of the messages that a turn answers, its limits, and its end.
//!
//! The host alone opens and closes a turn. A turn has exactly one principal, and the next turn inherits nothing. Never talks to a
//! sandbox. See [`crate::turns::context`] and [`crate::runtime::actor`].

mod position;

pub use position::Position;

pub use crate::registry::live_settings::turn::Config;

pub use ironclaw_store::tables::messages::for_turn as messages_of;
pub use ironclaw_store::tables::messages::{Waiting, attempts, mark_context_shown, refund_attempt, sessions_with_work};
pub use ironclaw_store::tables::turns::{
    Turn, TurnEnd, clear_failure, coded_failure, count_model_call, count_result, count_tool_calls, end_of, every_open,
    failure, find, open_of, record_model_failure, working_for,
};

use crate::registry::allowances;
use ironclaw_contract::ids::{MessageId, SessionId, TurnId};
use ironclaw_contract::ledger_entry::Kind;
use ironclaw_contract::seam::message::Status;
use ironclaw_judge::scope::recorded::Recorded;
use ironclaw_judge::{Classes, Principal};
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::tables::agent_messages::{self, AgentMessageKind};
use ironclaw_store::tables::agents;
use ironclaw_store::tables::items;
use ironclaw_store::tables::messages::{self, Message};
use ironclaw_store::tables::turns::{self, CallOutcome, CallState};
use ironclaw_store::tables::waiting::requests;
use std::collections::BTreeSet;

/// Messages that one turn answers at most; the rest waits for the next turn.
const TURN_MESSAGES_MAX: usize = 16;

/// Messages without a trigger that a turn shows as context; it shows no older ones.
pub const CONTEXT_MESSAGES_MAX: usize = 32;

/// Bytes of the messages without a trigger that wait for a turn; older ones are left out of it.
pub const CONTEXT_BYTES_MAX: u64 = 256 << 10;

/// Attempts at a message: the host gives up after this many turns that ended without an answer.
pub const MESSAGE_ATTEMPTS_MAX: u32 = 3;

/// Returns the messages that wait for a turn, oldest first: those that ask for one, and the newest of those that are only context.
/// Each kind has its own bound, so many messages of one kind do not hide the other.
pub fn waiting(tx: &ReadTx<'_>, session: SessionId) -> Result<Vec<Waiting>, ironclaw_state::Error> {
    messages::waiting(tx, session, 2 * TURN_MESSAGES_MAX, CONTEXT_MESSAGES_MAX)
}

/// Returns the waiting messages that the next turn answers: the oldest that asks, and its successors up to the first message of
/// another principal or with another address for the reply.
///
/// These are answered alone: a message from a failed turn, which may be the cause of the failure; a message of a schedule, whose list limits
/// the turn; a message of an agent, whose chain limits the turn and which has an answer of its own; an answer to a question, whose turn has
/// the scope of the turn that asked.
pub fn choose(waiting: &[Waiting]) -> Vec<&Waiting> {
    let mut asking = waiting.iter().filter(|message| message.trigger).peekable();
    let Some(first) = asking.peek().copied() else { return Vec::new() };
    let is_alone = match first.principal_kind {
        Principal::Schedule | Principal::Agent => true,
        Principal::Person | Principal::Guest | Principal::Unsigned => first.attempts > 0 || first.is_answer,
    };
    let count = if is_alone { 1 } else { TURN_MESSAGES_MAX };
    asking
        .take(count)
        .take_while(|message| {
            let is_same = message.principal == first.principal && message.principal_kind == first.principal_kind;
            let is_same = is_same && message.reply_to == first.reply_to;
            is_same && message.attempts == first.attempts && message.is_answer == first.is_answer
        })
        .collect()
}

/// Returns whether [`open_next`] would open a turn of a session that has none.
pub fn has_next(tx: &ReadTx<'_>, session: SessionId) -> Result<bool, ironclaw_state::Error> {
    Ok(!choose(&waiting(tx, session)?).is_empty())
}

/// Returns the classes that the messages of a turn ask for together, among those that their kind of principal may ask the agent for. The
/// bound of the host holds at each call.
fn scope_of(
    tx: &ReadTx<'_>,
    session: SessionId,
    kind: Principal,
    chosen: &[&Waiting],
) -> Result<Classes, ironclaw_state::Error> {
    let allowed = agents::receiver_of_session(tx, session)?.policy().allowed(kind);
    let mut classes = Classes::NONE;
    for message in chosen {
        let scope = items::find(tx, message.id.item())?.map(|item| item.tuple.scope).unwrap_or_default();
        classes = classes.or(allowed.asked(&scope));
    }
    Ok(classes)
}

/// Returns whether a person declared the scope of a message of the turn, so that it binds contained calls too.
pub fn binds_contained(tx: &ReadTx<'_>, turn: TurnId) -> Result<bool, ironclaw_state::Error> {
    for message in messages::that_asked(tx, turn)? {
        let scope = items::find(tx, message.item())?.and_then(|item| item.tuple.scope.parse::<Recorded>().ok());
        if scope.is_some_and(|scope| scope.binds_contained()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An opened turn with its messages.
#[derive(Debug, Clone)]
pub struct Opened {
    pub id: TurnId,
    /// Its deadline, milliseconds since the epoch.
    pub deadline: i64,
    /// The messages that it answers.
    pub messages: Vec<MessageId>,
    /// The messages that it shows as context.
    pub context: Vec<MessageId>,
}

/// Opens the next turn of a session that has none, if a message asks for one.
pub fn open_next(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    config: &Config,
) -> Result<Option<Opened>, ironclaw_state::Error> {
    if open_of(tx, session)?.is_some() {
        return Ok(None);
    }
    let waiting = waiting(tx, session)?;
    let chosen = choose(&waiting);
    let Some(first) = chosen.first() else { return Ok(None) };
    let id = TurnId::new();
    // For the sandbox, and for people who read the record. The host itself ends a turn by `turns::open_turns::deadlines`.
    let deadline = tx.now() + i64::from(config.seconds_max) * 1000;
    let kind = first.principal_kind;
    let scope = scope_of(tx, session, kind, &chosen)?;
    turns::insert(tx, id, session, &first.principal, kind, scope, deadline)?;
    for message in &chosen {
        messages::take(tx, message.id, id)?;
    }
    // Context that arrived before this turn is shown from this turn on and keeps this position.
    messages::position_context(tx, session, id)?;
    for message in &chosen {
        Entry::new(LedgerEvent::TurnOpened)
            .session(session)
            .turn(id)
            .message(message.id)
            .with("principal", first.principal.clone())
            .with("principal_kind", kind.name())
            .append(tx)?;
    }
    // A message that asks for a turn is first shown in its own turn. As context of another turn it would later change its position.
    let context = waiting.iter().filter(|message| !message.trigger).map(|message| message.id).collect();
    Ok(Some(Opened { id, deadline, messages: chosen.iter().map(|message| message.id).collect(), context }))
}

/// The way in which a turn ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// A reply or a notice answers its messages.
    Answered,
    /// Its sandbox went away: its messages wait for another turn.
    Requeued,
    /// A person or the host cancelled it, and a notice answers its messages. The outcome of calls that its sandbox may have begun is
    /// unknown.
    Cancelled,
}

/// Closes a turn. Its messages get their next status, its unused calls become void, and its calls in flight become unknown. Returns
/// the messages, or none if the turn was closed already.
pub fn close(
    tx: &mut WriteTx<'_>,
    turn: &Turn,
    how: Close,
    end: TurnEnd,
) -> Result<Vec<MessageId>, ironclaw_state::Error> {
    let id = turn.id;
    if !turns::close(tx, id, end)? {
        return Ok(Vec::new());
    }
    let local = match how {
        Close::Answered => CallState::Void,
        Close::Requeued | Close::Cancelled => CallState::Unknown,
    };
    requests::lose_unreported(tx, id)?;
    for lost in turns::end_calls(tx, id, local)? {
        let entry = Entry::new(LedgerEvent::CallLost).session(turn.session).turn(id).with("call", lost.id);
        entry.with("tool", lost.tool).with("outcome", CallOutcome::Unknown.name()).reason(end.name()).append(tx)?;
    }
    let messages = messages_of(tx, id)?;
    let Some(newest) = messages.last() else {
        return Err(ironclaw_state::Error::Stored(format!("{id} names none of its messages")));
    };
    // A yes for the calls of this turn permits none of a later one, nor of another attempt.
    allowances::end_of_answer(tx, messages::root_of(tx, *newest)?)?;
    let status = match how {
        Close::Answered | Close::Cancelled => Status::Completed,
        Close::Requeued => Status::Queued,
    };
    if how == Close::Requeued {
        // The items of this attempt follow its first message, which is retried first and alone. The other messages still wait, and
        // belong after that answer.
        messages::clear_positions_but_first(tx, id)?;
    }
    messages::leave(tx, id, status)?;
    let entry = match how {
        Close::Answered => Entry::new(LedgerEvent::TurnClosed),
        Close::Requeued | Close::Cancelled => Entry::with_kind(LedgerEvent::TurnClosed, Kind::Retract),
    };
    entry.session(turn.session).turn(turn.id).reason(end.name()).append(tx)?;
    Ok(messages)
}

/// Returns the turns that worked at a message, in their order: its attempts. Those that a rotation of the ledger archived are left out.
pub fn attempts_at(tx: &ReadTx<'_>, message: &Message) -> Result<Vec<TurnId>, ironclaw_state::Error> {
    let Some(last) = message.turn else { return Ok(Vec::new()) };
    if !messages::is_retried(tx, message.id)? {
        return Ok(vec![last]);
    }
    let named = ironclaw_ledger::turns_of(tx, message.id)?;
    let turns: BTreeSet<TurnId> = named.iter().filter_map(|turn| turn.parse().ok()).chain([last]).collect();
    Ok(turns.into_iter().collect())
}

/// The messages of the task of a turn, and the turns that worked on them.
#[derive(Debug, Clone, Default)]
pub struct Task {
    pub messages: BTreeSet<MessageId>,
    pub turns: BTreeSet<TurnId>,
}

impl Task {
    /// Returns the task of a turn: its own messages, those that they continue or answer, and every attempt at them.
    pub fn find(tx: &ReadTx<'_>, turn: TurnId) -> Result<Self, ironclaw_state::Error> {
        let mut task = Self { turns: BTreeSet::from([turn]), ..Self::default() };
        let mut left = messages::that_asked(tx, turn)?;
        while let Some(id) = left.pop() {
            if !task.messages.insert(id) {
                continue;
            }
            if let Some(message) = messages::find(tx, id)? {
                task.turns.extend(attempts_at(tx, &message)?);
            }
            left.push(messages::root_of(tx, id)?);
            let answered = agent_messages::find(tx, id)?.filter(|found| found.kind == AgentMessageKind::Answer);
            left.extend(answered.map(|answer| answer.source_message));
        }
        Ok(task)
    }
}

/// Returns the newest message that a turn answers.
///
/// # Errors
/// When the turn answers no message.
pub fn newest_message(tx: &ReadTx<'_>, turn: TurnId) -> Result<MessageId, ironclaw_state::Error> {
    let newest = messages_of(tx, turn)?.pop();
    newest.ok_or_else(|| ironclaw_state::Error::Stored(format!("{turn} answers no message")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(seq: u64, principal: &str, trigger: bool) -> Waiting {
        let (id, principal_kind) = (MessageId::new(), Principal::Person);
        let (principal, reply_to) = (principal.to_owned(), None);
        Waiting { id, seq, principal, principal_kind, trigger, attempts: 0, is_answer: false, reply_to }
    }

    #[test]
    fn answer_to_a_question_has_a_turn_of_its_own() {
        let mut waiting = [message(2, "ann", true), message(4, "ann", true), message(6, "ann", true)];
        waiting[1].is_answer = true;
        assert_eq!(choose(&waiting).len(), 1, "an answer is not added to the turn of a request");
        assert_eq!(choose(&waiting[1..]).len(), 1, "a request is not added to the turn of an answer");
        waiting[2].is_answer = true;
        assert_eq!(choose(&waiting[1..]).len(), 1, "nor is another answer");
    }

    #[test]
    fn a_turn_never_has_two_principals() {
        let waiting =
            [message(2, "ann", true), message(4, "ann", true), message(6, "bob", true), message(8, "ann", true)];
        let chosen: Vec<u64> = choose(&waiting).iter().map(|m| m.seq).collect();
        assert_eq!(chosen, [2, 4]);
        let mut waiting = [message(2, "ann", true), message(4, "ann", true), message(6, "ann", true)];
        waiting[1].principal_kind = Principal::Schedule;
        assert_eq!(choose(&waiting).len(), 1, "a schedule of a person is another principal than the person");
        waiting[0].principal_kind = Principal::Schedule;
        assert_eq!(choose(&waiting).len(), 1, "each run has a list of its own");
        waiting.iter_mut().for_each(|message| message.principal_kind = Principal::Agent);
        assert_eq!(choose(&waiting).len(), 1, "each request of an agent has an answer of its own");
        let mut waiting = [message(2, "ann", true), message(4, "ann", true)];
        waiting[1].reply_to = Some("another thread".to_owned());
        assert_eq!(choose(&waiting).len(), 1, "the reply of a turn has one address");
    }

    #[test]
    fn context_message_opens_no_turn() {
        assert!(choose(&[]).is_empty());
        assert!(choose(&[message(2, "host", false)]).is_empty());
        let waiting = [message(2, "host", false), message(4, "ann", true)];
        assert_eq!(choose(&waiting)[0].seq, 4);
        let waiting = [message(2, "ann", true), message(4, "host", false), message(6, "ann", true)];
        assert_eq!(choose(&waiting).len(), 2, "a context message separates nothing");
    }

    #[test]
    fn message_of_a_failed_turn_is_retried_alone() {
        let mut waiting = [message(2, "ann", true), message(4, "ann", true)];
        waiting[0].attempts = 1;
        assert_eq!(choose(&waiting).len(), 1);
        waiting[0].attempts = 0;
        waiting[1].attempts = 1;
        assert_eq!(choose(&waiting).len(), 1);
    }

    #[test]
    fn a_turn_has_a_bound_on_its_messages() {
        let waiting: Vec<Waiting> = (1..100).map(|n| message(2 * n, "ann", true)).collect();
        assert_eq!(choose(&waiting).len(), TURN_MESSAGES_MAX);
    }
}
