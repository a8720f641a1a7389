//! Calls that the host runs when the sandbox asks for their results: requests to hosts of the network.
//!
//! A call is judged again at the moment of its effect, marked as running with its ledger entry in one transaction, and runs once. A
//! crash after that leaves an unknown outcome, and never a second request. See [`crate::turns::calls::http`].

use super::{agent_of, facts, open_turn, refuse};
use crate::error::Error;
use crate::model_socket::Server;
use crate::secrets::{self, SecretName};
use crate::tools::Runs;
use crate::turns::calls::{self, Call, CallRow, CallState, Judgement, ResultBody, ResultTarget, http};
use crate::turns::context::{OutputBody, Unanswered};
use crate::turns::items;
use ironclaw_contract::ids::{CallId, SessionId, TurnId};
use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use ironclaw_contract::seam::message::Author;
use ironclaw_contract::seam::seal::Label;
use ironclaw_contract::seam::socket::RefusalCode;
use ironclaw_judge::egress::{Grant, Request};
use ironclaw_ledger::Entry;
use ironclaw_model::WantedCall;
use ironclaw_model::fetch::{Credential, Form, Limits};
use ironclaw_state::keys::{ContentKey, SecretText};
use ironclaw_state::{ReadTx, failpoint};
use std::sync::Arc;
use std::time::Duration;

/// The part of a turn's rest that stays for its answer, after a request.
const AFTER_REQUEST: Duration = Duration::from_secs(5);

/// A request that is marked as running.
struct Started {
    call: CallId,
    request: Request,
    body: Option<String>,
    host: String,
    port: u16,
    secret: Option<SecretText>,
}

impl Server {
    /// Runs a permitted call of this sort, unless it ran already. Its result is in the record afterwards.
    pub(super) async fn run_awaited(&self, turn: TurnId, call_id: CallId) -> Result<(), Unanswered<Error>> {
        if self.shared.latch.is_shut() {
            return refuse(RefusalCode::Unavailable, "the emergency stop is active".to_owned());
        }
        let (shared, session, key) = (Arc::clone(&self.shared), self.session, Arc::clone(&self.key));
        let started = self
            .decide(move |tx| {
                let open = open_turn(tx, &shared.turns.deadlines, session, turn)?;
                let Some(row) = runnable(tx, (session, turn), call_id)? else { return Ok(None) };
                let (call, labels) = recorded(tx, &row, &key)?;
                let agent = agent_of(tx, session)?;
                let facts = facts::of_turn(tx, &shared, (&open, &agent), &labels, &key)?;
                let wanted = WantedCall { tool: call.tool.clone(), arguments: call.arguments.clone() };
                let judged = calls::judge(&agent, &facts, &wanted, true);
                let repeated = Judgement::Refused { code: DenialCode::CallRepeated, detail: String::new() };
                let judgement = if calls::may_have_happened(tx, &row)? { repeated } else { judged.judgement };
                if let Judgement::Refused { code, detail } = &judgement {
                    let target = ResultTarget { session, turn, key: &key, sealer: &shared.record().sealer };
                    let result = calls::refusal(*code, detail);
                    let item =
                        calls::record_labelled_result(tx, &target, row.id, &row.tool, Author::Host, labels, &result)?;
                    calls::refuse(tx, row.id, *code, &calls::stages(&judged.stages), item.tuple.item)?;
                    entry(LedgerEvent::CallRefused, (session, turn), &row).reason(code.name()).append(tx)?;
                    return Ok(None);
                }
                let started = prepare(tx, &shared.record().wrapping, call_id, &call, &facts.network)?;
                calls::start(tx, row.id)?;
                let begun = entry(LedgerEvent::CallStarted, (session, turn), &row);
                begun.with("arguments_digest", row.digest).with("host", started.host.clone()).append(tx)?;
                Ok(Some(started))
            })
            .await?;
        let Some(started) = started else { return Ok(()) };
        failpoint::reach("call_started");
        self.send(turn, started).await
    }

    /// Sends a request in a task of its own, so that its outcome is recorded also if the sandbox goes away.
    async fn send(&self, turn: TurnId, started: Started) -> Result<(), Unanswered<Error>> {
        let (shared, session, key) = (Arc::clone(&self.shared), self.session, Arc::clone(&self.key));
        let left = shared.turns.deadlines.left(session, turn).saturating_sub(AFTER_REQUEST);
        let servers = Arc::clone(&shared);
        let sent = tokio::spawn(async move {
            let call_id = started.call;
            let result = fetch(&shared, started, left).await;
            failpoint::reach("call_sent");
            let record = Arc::clone(shared.record());
            let settled = record.state.write(move |tx| {
                let Some(row) = calls::find(tx, call_id)?.filter(|row| row.state == CallState::Running) else {
                    return Ok(());
                };
                let target = ResultTarget { session, turn, key: &key, sealer: &shared.record().sealer };
                let author = Author::Tool { tool: row.tool.clone() };
                let item = calls::record_result(tx, &target, row.id, &row.tool, author, &result)?;
                calls::settle(tx, row.id, item.tuple.item)?;
                let ran = entry(LedgerEvent::CallRan, (session, turn), &row);
                ran.with("ok", result.ok).with("digest", item.tuple.digest).append(tx)?;
                Ok::<_, Error>(())
            });
            let settled = settled.await;
            servers.ran.send_modify(|count| *count += 1);
            settled
        });
        match sent.await {
            Ok(settled) => Ok(settled?),
            Err(_) => refuse(RefusalCode::Unavailable, "the host stops".to_owned()),
        }
    }
}

/// Returns the call if it is one that the host still has to run.
fn runnable(
    tx: &ReadTx<'_>,
    (session, turn): (SessionId, TurnId),
    call: CallId,
) -> Result<Option<CallRow>, ironclaw_state::Error> {
    let found = calls::find(tx, call)?.filter(|row| row.session == session && row.turn == turn);
    Ok(found.filter(|row| row.runs == Some(Runs::Await) && row.state == CallState::Permitted))
}

/// Returns the recorded arguments of a call, exactly those that were hashed, and the labels of its output.
fn recorded(tx: &ReadTx<'_>, row: &CallRow, key: &ContentKey) -> Result<(Call, Vec<Label>), Error> {
    let damaged = || ironclaw_state::Error::Stored(format!("the output of {} is damaged", row.id));
    let output = items::find(tx, row.output)?.ok_or_else(damaged)?;
    let body: OutputBody = serde_json::from_str(&items::body(tx, &output, key)?).map_err(|_| damaged())?;
    let call = body.calls.into_iter().find(|call| call.call_id == row.id).ok_or_else(damaged)?;
    if calls::digest(&call.tool, &call.arguments) != row.digest {
        return Err(damaged().into());
    }
    Ok((call, output.tuple.labels))
}

/// Reads the request of a judged call, and the secret of its grant.
fn prepare(
    tx: &ReadTx<'_>,
    wrapping: &ironclaw_state::keys::WrappingKey,
    call: CallId,
    recorded: &Call,
    network: &http::Network,
) -> Result<Started, Error> {
    let changed = || ironclaw_state::Error::Stored(format!("{call} changed after its judgement"));
    let arguments: serde_json::Value = serde_json::from_str(&recorded.arguments).map_err(|_| changed())?;
    let arguments = arguments.as_object().ok_or_else(changed)?;
    let (request, body) = http::request(arguments, network).map_err(|_| changed())?;
    let grant: Grant = http::allowed(&request, network).map_err(|_| changed())?.grant().clone();
    let secret = match grant.secret() {
        Some(name) => {
            let name: SecretName = name.as_str().parse().map_err(|_| changed())?;
            Some(secrets::get(tx, wrapping, &name).map_err(|_| changed())?.ok_or_else(changed)?)
        }
        None => None,
    };
    Ok(Started { call, host: grant.host().to_string(), port: grant.port(), request, body, secret })
}

async fn fetch(shared: &crate::model_socket::ModelServers, started: Started, left: Duration) -> ResultBody {
    let Started { request, body, host, port, secret, .. } = started;
    let credential = secret.as_ref().map(|secret| Credential { host: &host, port, form: Form::Bearer, secret });
    let method = request.method().to_string().parse().expect("a method of the closed list");
    let sent = ironclaw_model::fetch::Request {
        method,
        url: request.url().as_str(),
        headers: request.headers().map(|(header, value)| (header.name(), value)).collect(),
        body: body.map(String::into_bytes),
        credential,
    };
    let limits = Limits::default();
    let limits =
        Limits { begin: limits.begin.min(left), whole: limits.whole.min(left), body_bytes_max: http::PAGE_BYTES_MAX };
    match shared.fetchers.of(shared.settings.now().host_policy.egress.loopback()).fetch(sent, limits).await {
        Ok(fetched) => http::answer(&fetched),
        Err(error) => http::no_answer(&error),
    }
}

fn entry(event: LedgerEvent, (session, turn): (SessionId, TurnId), row: &CallRow) -> Entry {
    Entry::new(event).session(session).turn(turn).with("call", row.id).with("tool", row.tool.clone())
}
