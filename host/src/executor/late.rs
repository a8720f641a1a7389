//! Calls that people decide after their turn: the worker that runs them and ends requests in time, and the follow-up turn.
//!
//! A follow-up has the principal and the scope of the turn that asked. Its first item is the result, with its own labels; the second one is
//! a sentence of the host. At most three follow-up turns descend from one message. See [`crate::worker`] for the loop.

use super::{Executor, Place, When};
use crate::error::Error;
use crate::record::Record;
use crate::requests::{self, Row, Status};
use crate::session::{Wake, store};
use crate::shutdown::Shutdown;
use crate::tables::{messages, turns};
use crate::turns::calls::{self, CallState, ResultBody};
use crate::turns::items::{BodyError, NewItem};
use crate::turns::turn;
use crate::worker::{self, Due, Wait};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::MessageId;
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::seal::{ItemKind, Label};
use ironclaw_judge::Principal;
use ironclaw_ledger::Entry;
use ironclaw_state::{ReadTx, WriteTx, failpoint};
use ironclaw_text::lookalike;
use std::sync::Arc;
use std::time::Duration;

/// The bound on the follow-up turns that descend from one message.
const FOLLOW_UPS_MAX: u64 = 3;

/// The bound on requests that one pass ends or runs.
const AT_ONCE_MAX: usize = 64;

/// The time that a late request may take.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(60);

/// The worker of requests: it runs approved calls whose turn does not wait, and ends requests whose time is over.
pub struct LateCalls {
    executor: Arc<Executor>,
    wake: Arc<dyn Wake>,
}

impl LateCalls {
    /// Makes the worker.
    pub fn new(executor: Arc<Executor>, wake: Arc<dyn Wake>) -> Self {
        Self { executor, wake }
    }

    /// Runs approved calls and ends requests, until the host stops.
    pub async fn run(self, shutdown: Shutdown) {
        let requests = Arc::clone(&self.executor.requests);
        worker::run(self, &requests.bell, &shutdown).await;
    }
}

impl Due for LateCalls {
    const FAILED: &'static str = "approved calls wait for a retry after an error of the host";
    const RETRY_AFTER: Duration = Duration::from_secs(30);
    const PAUSE_MAX: Duration = Duration::from_secs(3600);

    async fn process_due(&mut self) -> Result<Wait, Error> {
        let record = Arc::clone(&self.executor.record);
        let settings = self.executor.settings.now();
        let end = self.executor.record.state.write(move |tx| {
            let ended = requests::ended(tx, tx.wall(), AT_ONCE_MAX)?;
            for row in &ended {
                let words = if row.status == Status::Approved {
                    "its approvals were not used in time"
                } else {
                    "no decision in time"
                };
                requests::end(tx, &record, row, Status::Expired, None, words)?;
            }
            requests::expires_soon(tx, &settings.policy)?;
            Ok::<_, Error>(ended.into_iter().map(|row| row.session).collect::<Vec<_>>())
        });
        for session in end.await? {
            self.executor.requests.announce_end();
            self.wake.nudge(session);
        }
        if self.executor.latch.is_shut() {
            return Ok(Wait::Bell);
        }
        let (due, next) = self
            .executor
            .record
            .state
            .read(|tx| {
                let next = [requests::next_end(tx)?, requests::next_reminder(tx)?].into_iter().flatten().min();
                Ok::<_, Error>((due(tx)?, next.map(|at| at - tx.wall())))
            })
            .await?;
        let mut failed = None;
        for (row, key) in self.with_keys(due).await? {
            let session = row.session;
            let place = Place { session, turn: row.turn, call: row.call, key };
            if let Err(error) = self.executor.run(place, When::Late, REQUEST_TIME_MAX, std::future::pending()).await {
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
        Ok(next.map_or(Wait::Bell, |ms| Wait::AtMost(Duration::from_millis(u64::try_from(ms).unwrap_or(0) + 1))))
    }
}

impl LateCalls {
    async fn with_keys(&self, due: Vec<Row>) -> Result<Vec<(Row, Arc<ironclaw_state::keys::ContentKey>)>, Error> {
        let record = Arc::clone(&self.executor.record);
        let read = self.executor.record.state.read(move |tx| {
            let mut all = Vec::with_capacity(due.len());
            for row in due {
                let Some(session) = store::find(tx, row.session)?.filter(|session| session.wrapped.is_some()) else {
                    continue;
                };
                let key = session.content_key(&record.wrapping).map_err(BodyError::from)?;
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
    ///
    /// # Errors
    /// Errors of the record.
    pub async fn settle_interrupted(&self) -> Result<(), Error> {
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

/// Marks a call that was running as unknown, and informs its session.
pub(super) fn lose(tx: &mut WriteTx<'_>, record: &Record, row: &Row, when: &str) -> Result<(), Error> {
    turns::end_late_call(tx, row.call, CallState::Unknown)?;
    requests::finish(tx, row.call, false)?;
    let words = format!("was running when {when}, so its outcome is unknown; it does not run again");
    requests::inform(tx, record, row, &format!("Your approved call of {} ({}) {words}.", row.tool, row.id))
}

/// Returns the approved requests whose call no open turn waits for.
fn due(tx: &ReadTx<'_>) -> Result<Vec<Row>, ironclaw_state::Error> {
    let mut due = Vec::new();
    for row in requests::list(tx, &[Status::Approved], AT_ONCE_MAX)? {
        let Some(call) = calls::find(tx, row.call)? else { continue };
        let is_told = call.result.is_some();
        let is_open = turn::find(tx, row.turn)?.is_some_and(|turn| turn.open);
        // A message that is tried again makes an equal call, which uses the approvals.
        let is_retried = messages::find(tx, row.root)?.is_some_and(|root| root.waits_for_an_answer());
        if is_told || !(is_open || is_retried) {
            due.push(row);
        }
    }
    Ok(due)
}

/// Records the result of a late call, and the message that opens the follow-up turn.
pub(super) fn settle(tx: &mut WriteTx<'_>, record: &Record, place: &Place, result: &ResultBody) -> Result<(), Error> {
    let Some(call) = calls::find(tx, place.call)?.filter(|call| call.state == CallState::Running) else {
        return Ok(requests::finish(tx, place.call, false)?);
    };
    turns::end_late_call(tx, call.id, CallState::Done)?;
    requests::finish(tx, call.id, true)?;
    let Some(row) = requests::of_call(tx, call.id)? else { return Ok(()) };
    let Some(session) = store::find(tx, place.session)?.filter(|session| session.wrapped.is_some()) else {
        return Ok(());
    };
    let digest = record_result(tx, record, place, &row, result)?;
    Entry::new(LedgerEvent::CallRan)
        .session(place.session)
        .turn(place.turn)
        .with("call", call.id)
        .with("tool", row.tool.clone())
        .with("ok", result.ok)
        .with("digest", digest)
        .append(tx)?;
    let outcome = if result.ok { "ran" } else { "was made and failed, or its outcome is unknown" };
    let words = format!(
        "Your call of {} that waited as {} was approved and {outcome}; its result is above. Continue the task that needed it.",
        row.tool, row.id
    );
    if messages::follow_ups_of(tx, row.root)? >= FOLLOW_UPS_MAX {
        crate::inbound::inbox::notify(tx, &session, &words, &record.wrapping, &record.sealer)?;
        return Ok(());
    }
    // The scope of the turn that asked, exactly: a follow-up never has more.
    let scope = format!("declared:{}", row.scope);
    let item = follow_item(place, &words, Author::Host, Vec::new(), scope.clone())?;
    let (id, digest) = (item.id().message(), item.digest());
    let item = item.record(tx, place.session, &record.sealer)?;
    let kind = turn::find(tx, row.turn)?.map_or(Principal::Unsigned, |turn| turn.principal_kind);
    messages::insert_follow_up(tx, (id, place.session, item.tuple.seq), (row.principal, kind), row.root)?;
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

/// Records the attempts of a server during a late call that was given up.
pub(super) fn keep_tried(
    tx: &mut WriteTx<'_>,
    record: &Record,
    place: &Place,
    tried: Option<&ResultBody>,
) -> Result<(), Error> {
    let is_kept = store::find(tx, place.session)?.is_some_and(|session| session.wrapped.is_some());
    if let (Some(tried), Some(row), true) = (tried, requests::of_call(tx, place.call)?, is_kept) {
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
    let item = follow_item(place, &shown, author, vec![Label::External], String::new())?;
    let (message, digest) = (item.id().message(), item.digest());
    let item = item.record(tx, place.session, &record.sealer)?;
    messages::insert_of_host(tx, message, place.session, item.tuple.seq)?;
    turns::set_late_result(tx, place.call, item.tuple.item)?;
    Ok(digest)
}

fn follow_item(place: &Place, text: &str, author: Author, labels: Vec<Label>, scope: String) -> Result<NewItem, Error> {
    let spans = vec![Span { author, bytes: text.len() }];
    let item = NewItem::new(MessageId::new().item(), ItemKind::Message, text, spans, labels, &place.key);
    Ok(item.map_err(BodyError::from)?.scope(scope))
}
