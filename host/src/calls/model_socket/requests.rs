//! The four requests on `model.sock`, each checked against the record.
//!
//! A sandbox names items and receives sealed refs. It never supplies text for a model, except as the report of a tool. See
//! [`crate::turns::context`].

mod earlier_answer;
mod generate;
mod judged;
mod learned_sizes;
mod output;
mod own_source;
mod prepared;
mod pushes;
mod sent_files;
mod skills;
mod waiting;

use crate::calls::model_socket::report::{quote, record_unsealed, reportable};
use crate::calls::model_socket::{ModelServers, Server};
use crate::gateway::requests;
use crate::registry::Mode;
use crate::registry::tools::Runs;
use crate::sessions::store;
use crate::turns::calls::{self, ResultBody, ResultTarget};
use crate::turns::context::{Refused, Unanswered};
use crate::turns::items::{self, Recorded};
use crate::turns::open_turns::deadlines::Deadlines;
use crate::turns::turn::{self, Turn};
use ironclaw_contract::ids::{CallId, SessionId, TurnId};
use ironclaw_contract::seam::limits::{BODY_BYTES_MAX, ITEMS_MAX};
use ironclaw_contract::seam::message::Author;
use ironclaw_contract::seam::socket::{Item, RefusalCode, Response};
use ironclaw_judge::provenance::{Labelled, Provenance};
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::failpoint;
use ironclaw_state::keys::ContentKey;
use ironclaw_state::seal::Sealer;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_text::lookalike;
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::time::Instant;

pub(crate) type Answer = Result<Response, Unanswered<Error>>;

impl<E: Into<Error>> From<E> for Unanswered<Error> {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Unanswered> for Unanswered<Error> {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Refused(refused) => Self::Refused(refused),
            Unanswered::Failed(error) => Self::Failed(error.into()),
        }
    }
}

pub(crate) fn refuse<T>(code: RefusalCode, message: String) -> Result<T, Unanswered<Error>> {
    Err(Refused { code, message }.into())
}

impl Server {
    /// Runs `decide` in its own transaction, which commits unless it fails. A refusal keeps the rows that were written before it.
    async fn decide<T, F>(&self, decide: F) -> Result<T, Unanswered<Error>>
    where
        T: Send + 'static,
        F: FnOnce(&mut WriteTx<'_>) -> Result<T, Unanswered<Error>> + Send + 'static,
    {
        let decided = self.state().write(move |tx| match decide(tx) {
            Ok(value) => Ok(Ok(value)),
            Err(Unanswered::Refused(refused)) => Ok(Err(refused)),
            Err(Unanswered::Failed(error)) => Err(error),
        });
        Ok(decided.await??)
    }

    /// Records the result of a local call. The host accepts it once, on the word of the sandbox. It reads a directory of a person itself,
    /// between two transactions.
    pub(crate) async fn report(&self, turn: TurnId, call_id: CallId, ok: bool, text: String) -> Answer {
        if text.len() > BODY_BYTES_MAX {
            let message = format!("a result of {} bytes is over the limit of {BODY_BYTES_MAX}", text.len());
            return refuse(RefusalCode::Frame, message);
        }
        let raw: Arc<str> = text.into();
        let text = lookalike::neutralise(&raw).into_owned();
        let report = Report { turn, call: call_id, ok, text };
        let mut read = None;
        let answer = loop {
            let (shared, session, key) = (Arc::clone(&self.shared), self.session, Arc::clone(&self.key));
            let (sent, own) = (report.clone(), read.take());
            let decided = self.decide(move |tx| record_report(tx, &shared, session, &key, sent, own.as_ref())).await;
            match decided {
                Ok(ControlFlow::Break(response)) => break Ok(response),
                Ok(ControlFlow::Continue(source)) => read = Some(source.read(report.ok, &raw).await),
                Err(unanswered) => break Err(unanswered),
            }
        };
        failpoint::reach("call_reported");
        answer
    }

    /// Waits for the result of a call that left the sandbox as a row, or that the host runs now.
    pub(crate) async fn result(&self, turn: TurnId, call_id: CallId) -> Answer {
        let (mut results, mut ran) = (self.results.clone(), self.shared.executor.gateway.watch());
        if self.shared.latch.is_shut() {
            return refuse(RefusalCode::Unavailable, "the emergency stop is active".to_owned());
        }
        self.run_awaited(turn, call_id).await?;
        loop {
            results.mark_unchanged();
            ran.mark_unchanged();
            let (shared, session) = (Arc::clone(&self.shared), self.session);
            let looked = self
                .state()
                .read(move |tx| {
                    open_turn(tx, &shared.turns.deadlines, session, turn)?;
                    let found = calls::find(tx, call_id)?
                        .filter(|call| call.session == session && call.turn == turn && has_result_later(call));
                    let Some(call) = found else {
                        let message = format!("{call_id} is not a call of the turn with a later result");
                        return refuse(RefusalCode::Call, message);
                    };
                    let result = call.result.map(|item| items::find(tx, item)).transpose()?.flatten();
                    Ok::<_, Unanswered<Error>>(match result {
                        Some(result) => ControlFlow::Break(sealed(&result, &shared.record().sealer)),
                        None => ControlFlow::Continue(shared.turns.deadlines.for_turn(session, turn)),
                    })
                })
                .await?;
            let until = match looked {
                ControlFlow::Break(response) => return Ok(response),
                ControlFlow::Continue(until) => until.unwrap_or_else(Instant::now),
            };
            let changed = async {
                tokio::select! {
                    changed = results.changed() => changed,
                    changed = ran.changed() => changed,
                }
            };
            match tokio::time::timeout_at(until, changed).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => {
                    return refuse(RefusalCode::Turn, "the turn ended before its call had a result".to_owned());
                }
            }
        }
    }

    /// Returns the session's own items with fresh seals, without those that a summary replaces.
    pub(crate) async fn items_after(&self, after_seq: u64) -> Answer {
        let (shared, session, cache) = (Arc::clone(&self.shared), self.session, Arc::clone(&self.cache));
        self.state()
            .write(move |tx| {
                // It reads the opened turn, whose commit is that of the request to the model.
                tx.defer();
                let mut found = items::live_after(tx, session, after_seq, ITEMS_MAX + 1)?;
                let more = found.len() > ITEMS_MAX;
                found.truncate(ITEMS_MAX);
                let mut seals = shared.record().sealer.for_session(session);
                // The next request to the model names most of these items.
                let cache = &mut *cache.lock();
                let item = |found: Recorded| {
                    let (reference, bytes, turn) = (seals.seal(&found.tuple), found.bytes, found.tuple.turn);
                    cache.learn(&reference, found);
                    Item { reference, bytes, turn }
                };
                Ok(Response::Items { items: found.into_iter().map(item).collect(), more })
            })
            .await
    }
}

/// A result as a sandbox reports it.
#[derive(Clone)]
struct Report {
    turn: TurnId,
    call: CallId,
    ok: bool,
    text: String,
}

/// Records a reported result, or returns the directory of a person that the host has to read first.
fn record_report(
    tx: &mut WriteTx<'_>,
    shared: &ModelServers,
    session: SessionId,
    key: &ContentKey,
    report: Report,
    own: Option<&own_source::Read>,
) -> Result<ControlFlow<Response, own_source::Source>, Unanswered<Error>> {
    let Report { turn, call: call_id, ok, text } = report;
    let open = open_turn(tx, &shared.turns.deadlines, session, turn)?;
    if open.result_bytes.saturating_add(text.len() as u64) > shared.turns.config().result_bytes_max {
        return refuse(RefusalCode::Budget, "the turn has used its bytes of results".to_owned());
    }
    let found = calls::find(tx, call_id)?.filter(|call| call.session == session && call.turn == turn);
    let target = ResultTarget { session, turn, key, sealer: &shared.record().sealer };
    let call = match reportable(call_id, found) {
        Ok(call) => call,
        Err(message) => {
            match store::agent_of(tx, session)?.mode {
                Mode::Enforce => return refuse(RefusalCode::Call, message),
                Mode::DangerousWarn => record_unsealed(tx, session, Mode::DangerousWarn, &message)?,
                Mode::DangerousOff => {}
            }
            return Ok(ControlFlow::Break(sealed(&quote(tx, &target, &text)?, target.sealer)));
        }
    };
    let provenance = match (own_source::find(tx, &open, &call, key)?, own) {
        (Some(source), None) => return Ok(ControlFlow::Continue(source)),
        (Some(source), Some(read)) => read.provenance(&source),
        (None, _) => Provenance::Tool,
    };
    let author = Author::Tool { tool: call.tool.clone() };
    let body = ResultBody::new(ok, text);
    let item = calls::record_result(tx, &target, call_id, &call.tool, author, Labelled::new(&body, provenance))?;
    calls::settle(tx, call_id, item.tuple.item, body.outcome)?;
    requests::finish(tx, call_id, body.outcome)?;
    Entry::new(LedgerEvent::CallReported)
        .session(session)
        .turn(turn)
        .with("call", call_id)
        .with("tool", call.tool)
        .with("ok", ok)
        .with("outcome", body.outcome.name())
        .with("digest", item.tuple.digest)
        .append(tx)?;
    Ok(ControlFlow::Break(sealed(&item, &shared.record().sealer)))
}

fn has_result_later(call: &calls::CallRow) -> bool {
    matches!(call.runs, Some(Runs::Row | Runs::Await))
}

fn sealed(item: &Recorded, sealer: &Sealer) -> Response {
    Response::Sealed { item: item.seal(sealer), bytes: item.bytes }
}

fn open_turn(
    tx: &ReadTx<'_>,
    deadlines: &Deadlines,
    session: SessionId,
    turn: TurnId,
) -> Result<Turn, Unanswered<Error>> {
    match turn::find(tx, turn)? {
        None => refuse(RefusalCode::Turn, format!("{turn} is not in the record")),
        Some(found) if found.session != session => {
            refuse(RefusalCode::Turn, format!("{turn} belongs to another session"))
        }
        Some(found) if !found.open => refuse(RefusalCode::Turn, format!("{turn} is closed")),
        Some(_) if deadlines.left(session, turn).is_zero() => {
            refuse(RefusalCode::Turn, format!("{turn} is past its deadline"))
        }
        Some(found) => Ok(found),
    }
}
