//! Approved calls for which no open turn waits: the worker that runs them, and the way of a result to its model.
//!
//! A call belongs to the task of its message, and not to a turn that may be closed. If the message waits for another attempt, the result
//! becomes a result of the interrupted attempt, and the next one begins with it: see [`requests::is_any_due`]. Otherwise the model knows
//! that the call waited, and the result opens a follow-up turn with the principal and the scope of the turn that asked. See
//! [`ironclaw_store::worker`] for the loop.

use super::{Executor, Place, When};
use crate::gateway::requests::{self, Row};
use crate::registry::tools;
use crate::sessions::store::Session;
use crate::sessions::{Wake, store};
use crate::turns::calls::{self, CallOutcome, CallRow, CallState, ResultBody};
use crate::turns::items::NewItem;
use crate::turns::turn;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{CallId, MessageId};
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_judge::Principal;
use ironclaw_judge::provenance::{Labelled, Provenance};
use ironclaw_judge::scope::recorded::Recorded;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{Committed, ReadTx, WriteTx, failpoint};
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::shutdown::Shutdown;
use ironclaw_store::tables::{deliveries, messages, turns};
use ironclaw_store::worker::{self, Due, Wait};
use ironclaw_text::lookalike;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// The bound on the follow-up turns that descend from one message. People approved the call of each of them.
pub(super) const FOLLOW_UPS_MAX: u64 = 20;

/// The bound on calls that one pass runs.
const AT_ONCE_MAX: usize = 64;

/// The time that a late request may take.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(60);

/// The worker that runs approved calls whose turn does not wait.
pub struct LateCalls {
    executor: Arc<Executor>,
    wake: Arc<dyn Wake>,
    /// The entries of the ledger, while an approved call has an open turn: the end of the turn may leave the call to this worker.
    closings: Option<Receiver<Arc<Committed>>>,
    /// The calls that were due in the last pass.
    due: Vec<CallId>,
}

/// The approved requests.
struct Work {
    /// Those whose call no open turn waits for.
    due: Vec<Row>,
    /// Whether there are others, whose turn runs them.
    has_others: bool,
}

impl LateCalls {
    pub fn new(executor: Arc<Executor>, wake: Arc<dyn Wake>) -> Self {
        Self { executor, wake, closings: None, due: Vec::new() }
    }

    /// Runs approved calls, until the host stops.
    pub async fn run(self, shutdown: Shutdown) {
        let gateway = Arc::clone(&self.executor.gateway);
        worker::run(self, &gateway.bells.calls, &shutdown).await;
    }
}

impl Due for LateCalls {
    const FAILED: &'static str = "approved calls wait for a retry after an error of the host";
    const RETRY_AFTER: Duration = Duration::from_secs(30);
    const PAUSE_MAX: Duration = Duration::from_secs(3600);

    async fn process_due(&mut self) -> Result<Wait, Error> {
        if self.executor.latch.is_shut() {
            return Ok(Wait::Bell);
        }
        let work = self.executor.record.state.read(read_due).await?;
        let mut failed = None;
        // An equal call of an open turn may have taken over a request meanwhile, so the record is read again once.
        let due: Vec<CallId> = work.due.iter().map(|due| due.call).collect();
        let is_new = !due.is_empty() && due != self.due;
        self.due = due;
        for (row, key) in self.with_keys(work.due).await? {
            let session = row.session;
            let place = Place { session, turn: row.turn, call: row.call, key };
            let made = match tools::is_made_again(&row.tool) {
                true => self.executor.release(place).await,
                false => self.executor.run(place, When::Late, REQUEST_TIME_MAX, std::future::pending()).await,
            };
            if let Err(error) = made {
                // The other calls do not wait for a damaged one.
                failed = Some(error);
                continue;
            }
            failpoint::reach("call_followed_up");
            self.wake.wake(session);
        }
        if let Some(error) = failed {
            return Err(error);
        }
        if self.rewatch(work.has_others) || is_new {
            // A turn may have ended before the watch began.
            return Ok(Wait::AtMost(Duration::ZERO));
        }
        Ok(Wait::Bell)
    }

    /// Waits for the end of a turn, while an approved call has an open one.
    async fn finish_one(&mut self) -> Option<()> {
        let closings = self.closings.as_mut()?;
        loop {
            match closings.recv().await {
                Ok(entry) if entry.event == LedgerEvent::TurnClosed => return Some(()),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => return Some(()),
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

impl LateCalls {
    /// Watches the ends of turns only while an approved call has an open one. Returns whether the watch begins.
    fn rewatch(&mut self, has_others: bool) -> bool {
        let begins = has_others && self.closings.is_none();
        if begins {
            self.closings = Some(self.executor.record.state.events());
        } else if !has_others {
            self.closings = None;
        }
        begins
    }

    async fn with_keys(&self, due: Vec<Row>) -> Result<Vec<(Row, Arc<ironclaw_state::keys::ContentKey>)>, Error> {
        let record = Arc::clone(&self.executor.record);
        let read = self.executor.record.state.read(move |tx| {
            let mut all = Vec::with_capacity(due.len());
            for row in due {
                let Some(session) = store::find(tx, row.session)?.filter(|session| session.wrapped.is_some()) else {
                    continue;
                };
                let key = session.content_key(&record.wrapping)?;
                all.push((row, Arc::new(key)));
            }
            Ok::<_, Error>(all)
        });
        read.await
    }
}

impl Executor {
    /// Marks the calls that ran when the host ended as unknown, and informs their sessions. None of them runs again. To be called before
    /// any turn, so that no call of this host is running yet.
    pub async fn lose_interrupted(&self) -> Result<(), Error> {
        let record = Arc::clone(&self.record);
        let settle = self.record.state.write(move |tx| {
            requests::allowance::end_outdated(tx)?;
            for row in requests::running(tx)? {
                lose(tx, &record, &row, "the host ended")?;
            }
            Ok::<_, Error>(())
        });
        settle.await
    }
}

/// Marks a call that was running as unknown, and tells its person and its model.
pub(super) fn lose(tx: &mut WriteTx<'_>, record: &Record, row: &Row, when: &str) -> Result<(), Error> {
    turns::end_late_call(tx, row.call, CallState::Unknown)?;
    requests::finish(tx, row.call, CallOutcome::Unknown)?;
    let lost = Entry::new(LedgerEvent::CallLost).session(row.session).turn(row.turn).with("call", row.call);
    lost.with("tool", row.tool.clone()).with("outcome", CallOutcome::Unknown.name()).reason(when).append(tx)?;
    requests::notify_unknown(tx, record, row)
}

/// Reads the approved requests.
fn read_due(tx: &ReadTx<'_>) -> Result<Work, Error> {
    let mut work = Work { due: Vec::new(), has_others: false };
    for row in requests::approved(tx, AT_ONCE_MAX)? {
        // A void call is released: its model makes it again.
        let Some(call) = calls::find(tx, row.call)?.filter(|call| call.state != CallState::Void) else { continue };
        let is_told = call.result.is_some();
        let is_open = turn::find(tx, row.turn)?.is_some_and(|turn| turn.open);
        if is_told || !is_open {
            work.due.push(row);
        } else {
            work.has_others = true;
        }
    }
    Ok(work)
}

/// Records the result of a late call: of the interrupted attempt whose message waits for the next one, or as the message that opens the
/// follow-up turn.
pub(super) fn settle(
    executor: &Executor,
    tx: &mut WriteTx<'_>,
    place: &Place,
    result: &ResultBody,
) -> Result<(), Error> {
    let Some(call) = calls::find(tx, place.call)?.filter(|call| call.state == CallState::Running) else {
        return Ok(requests::finish(tx, place.call, CallOutcome::Unknown)?);
    };
    let found = requests::find_by_call(tx, call.id)?;
    let session = store::find(tx, place.session)?.filter(|session| session.wrapped.is_some());
    let (Some(row), Some(session)) = (found, session) else {
        turns::end_late_call(tx, call.id, result.outcome.state())?;
        return Ok(requests::finish(tx, call.id, result.outcome)?);
    };
    if result.outcome == CallOutcome::Unknown {
        requests::record_unknown(tx, &row)?;
    }
    if call.result.is_none() && messages::is_requeued(tx, place.turn)? {
        let digest = executor.record_ended(tx, place, &call, result)?;
        return super::ran(tx, place, &call, result, digest);
    }
    follow_up(executor, tx, &Late { place, call: &call, row: &row, session: &session }, result)
}

/// A late call with its request and its session.
pub(super) struct Late<'a> {
    pub(super) place: &'a Place,
    pub(super) call: &'a CallRow,
    pub(super) row: &'a Row,
    pub(super) session: &'a Session,
}

/// Records the result of a late call as a message, and the message that opens the follow-up turn.
fn follow_up(executor: &Executor, tx: &mut WriteTx<'_>, late: &Late<'_>, result: &ResultBody) -> Result<(), Error> {
    let Late { place, call, row, session } = late;
    let record = &executor.record;
    turns::end_late_call(tx, call.id, result.outcome.state())?;
    requests::finish(tx, call.id, result.outcome)?;
    let digest = record_result(tx, record, place, row, result)?;
    deliveries::set_state_of_call(tx, call.id)?;
    super::ran(tx, place, call, result, digest)?;
    if messages::follow_ups_of(tx, row.root)? >= FOLLOW_UPS_MAX {
        return requests::notify_stopped(tx, record, session, row, FOLLOW_UPS_MAX);
    }
    let words = format!(
        "Your call of {} that waited as {} was approved and {}; its result is above. Continue the task that needed it.",
        row.tool,
        row.id,
        in_words(result.outcome)
    );
    open_follow_up(executor, tx, late, &words)
}

/// Records the message that opens the follow-up turn of a call, with the words of the host.
pub(super) fn open_follow_up(
    executor: &Executor,
    tx: &mut WriteTx<'_>,
    late: &Late<'_>,
    words: &str,
) -> Result<(), Error> {
    let Late { place, row, .. } = late;
    let record = &executor.record;
    // The scope of the turn that asked, exactly: a follow-up never has more.
    let scope = Recorded::continuing(row.own.scope, false).to_string();
    let item = follow_item(place, Labelled::new(words, Provenance::Host), Author::Host, scope.clone())?;
    let (id, digest) = (item.id().message(), item.digest());
    let item = item.record(tx, place.session, &record.sealer)?;
    let kind = turn::find(tx, row.turn)?.map_or(Principal::Unsigned, |turn| turn.principal_kind);
    messages::insert_follow_up(tx, id, place.session, item.tuple.seq, row.principal, kind, row.root)?;
    store::touch(tx, place.session)?;
    Entry::new(LedgerEvent::MessageRecorded)
        .session(place.session)
        .message(id)
        .with("person", row.principal)
        .with("principal_kind", kind.name())
        .with("channel", "host")
        .with("digest", digest)
        .with("asks", true)
        .with("scope", scope)
        .append(tx)?;
    Ok(())
}

/// Returns the end of a call for its model.
const fn in_words(outcome: CallOutcome) -> &'static str {
    match outcome {
        CallOutcome::Done => "was made",
        CallOutcome::Failed => "was made and failed",
        CallOutcome::Queued => "was made, and its message waits for its delivery",
        CallOutcome::Unknown => "was made, and it is unknown if it had its effect: do not make it again",
    }
}

/// Records the attempts of a server during a late call that was given up.
pub(super) fn keep_tried(
    tx: &mut WriteTx<'_>,
    record: &Record,
    place: &Place,
    tried: Option<&ResultBody>,
) -> Result<(), Error> {
    let is_kept = store::find(tx, place.session)?.is_some_and(|session| session.wrapped.is_some());
    if let (Some(tried), Some(row), true) = (tried, requests::find_by_call(tx, place.call)?, is_kept) {
        record_result(tx, record, place, &row, tried)?;
    }
    Ok(())
}

/// Records the result of a late call as a message, and returns its digest.
fn record_result(
    tx: &mut WriteTx<'_>,
    record: &Record,
    place: &Place,
    row: &Row,
    result: &ResultBody,
) -> Result<Digest, Error> {
    let text = lookalike::neutralise(&result.text);
    let shown = format!("The result of {} ({}):\n{text}", row.tool, row.id);
    let author = Author::Tool { tool: row.tool.clone() };
    let item = follow_item(place, Labelled::new(&shown, Provenance::Tool), author, String::new())?;
    let (message, digest) = (item.id().message(), item.digest());
    let item = item.record(tx, place.session, &record.sealer)?;
    messages::insert_of_host(tx, message, place.session, item.tuple.seq)?;
    turns::set_late_result(tx, place.call, item.tuple.item)?;
    Ok(digest)
}

fn follow_item(place: &Place, text: Labelled<&str>, author: Author, scope: String) -> Result<NewItem, Error> {
    let spans = vec![Span { author, bytes: text.value.len() }];
    let item = NewItem::new(MessageId::new().item(), ItemKind::Message, text, spans, &place.key);
    Ok(item?.scope(scope))
}
