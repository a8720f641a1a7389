//! Serves `model.sock` of one session: four requests, each checked against the record.
//!
//! A sandbox names items and gets sealed refs back; it never hands in words for a model, except as a tool's report. Next: `context`.

use super::{Core, Error};
use crate::calls::{self, Judgement};
use crate::context::{self, OutputBody, Refused, ResultBody};
use crate::custody::ContentKey;
use crate::failpoint;
use crate::integrity::lookalike;
use crate::items::{self, BodyError, Draft, Recorded};
use crate::ledger::Entry;
use crate::model::{Output, Prompt};
use crate::registry::{self, Agent, Mode};
use crate::session::store;
use crate::state::Tx;
use crate::tools::Runs;
use crate::turn::{self, Turn};
use ironclaw_contract::canonical;
use ironclaw_contract::ids::{CallId, ItemId, SessionId, TurnId};
use ironclaw_contract::seam::limits::{BODY_BYTES_MAX, ITEMS_MAX, OUTPUT_CALLS_MAX};
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::seal::{ItemKind, Label};
use ironclaw_contract::seam::socket::{
    Call, Context, Item, Purpose, RefusalCode, Request, Response, Verdict, frame, frame_length,
};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, watch};

/// What the server of one awake session works with.
pub struct Server {
    core: Arc<Core>,
    session: SessionId,
    key: Arc<ContentKey>,
    /// Changes whenever a call got its result.
    results: watch::Receiver<u64>,
    /// One request at a time: a second connection of the same sandbox gains nothing.
    one: Mutex<()>,
}

impl Server {
    /// A server for one awake session.
    pub fn new(core: Arc<Core>, session: SessionId, key: Arc<ContentKey>, results: watch::Receiver<u64>) -> Self {
        Self { core, session, key, results, one: Mutex::new(()) }
    }

    /// Accepts connections of the sandbox's own process, until it is dropped.
    pub async fn run(self: Arc<Self>, listener: UnixListener, sandbox: watch::Receiver<Option<u32>>) {
        while let Ok((stream, _)) = listener.accept().await {
            let peer = stream.peer_cred().ok().and_then(|peer| peer.pid());
            let known = *sandbox.borrow();
            if known.is_none() || peer != known.and_then(|pid| i32::try_from(pid).ok()) {
                tracing::warn!(session = %self.session, "a process that is not the sandbox connected to its model socket");
                continue;
            }
            let server = Arc::clone(&self);
            tokio::spawn(async move {
                if let Err(error) = server.serve(stream).await {
                    tracing::debug!(session = %server.session, %error, "a model connection ended");
                }
            });
        }
    }

    async fn serve(&self, mut stream: UnixStream) -> io::Result<()> {
        loop {
            let mut prefix = [0; 4];
            match stream.read_exact(&mut prefix).await {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                read => read?,
            };
            let length = match frame_length(prefix) {
                Ok(length) => length,
                Err(error) => {
                    // What follows cannot be told from the next frame, so the connection ends with the answer.
                    let refused =
                        self.refusal(Refused { code: RefusalCode::Frame, message: error.to_string() }, None).await;
                    return stream.write_all(&frame(&refused)?).await;
                }
            };
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await?;
            let response = self.answer(&body).await;
            stream.write_all(&frame(&response)?).await?;
        }
    }

    async fn answer(&self, body: &[u8]) -> Response {
        let _one = self.one.lock().await;
        let request: Request = match serde_json::from_slice(body) {
            Ok(request) => request,
            Err(error) => {
                let message = format!("no request of the contract: {error}");
                return self.refusal(Refused { code: RefusalCode::Frame, message }, None).await;
            }
        };
        let (turn, answer) = match request {
            Request::Generate { turn, purpose, refs } => (Some(turn), self.generate(turn, purpose, refs).await),
            Request::Report { turn, call_id, ok, body } => (Some(turn), self.report(turn, call_id, ok, body).await),
            Request::Result { turn, call_id } => (Some(turn), self.result(turn, call_id).await),
            Request::Items { after_seq } => (None, self.items(after_seq).await),
        };
        match answer {
            Ok(Ok(response)) => response,
            Ok(Err(refused)) => self.refusal(refused, turn).await,
            Err(error) => {
                tracing::error!(session = %self.session, %error, "a model request failed");
                Response::Refused { code: RefusalCode::Unavailable, message: "the host failed; see its log".to_owned() }
            }
        }
    }

    /// Puts a refusal into the ledger and makes it an answer.
    async fn refusal(&self, refused: Refused, turn: Option<TurnId>) -> Response {
        let (session, code, message) = (self.session, refused.code.name(), refused.message.clone());
        let noted = self
            .core
            .state
            .write(move |tx| {
                let entry = Entry::retract("model.refused").session(session).with("code", code).reason(&message);
                // A turn that is not this session's own is the sandbox's word and no place to file it under.
                let own = turn
                    .and_then(|id| turn::find(tx, id).transpose())
                    .transpose()?
                    .filter(|turn| turn.session == session);
                match own {
                    Some(own) => entry.turn(own.id).append(tx),
                    None => entry.append(tx),
                }
            })
            .await;
        if let Err(error) = noted {
            tracing::error!(session = %self.session, %error, "a refusal was not noted");
        }
        Response::Refused { code: refused.code, message: refused.message }
    }

    async fn generate(
        &self,
        turn: TurnId,
        purpose: Purpose,
        refs: Vec<Context>,
    ) -> Result<Result<Response, Refused>, Error> {
        match purpose {
            Purpose::Reply => {}
            Purpose::Plan | Purpose::Compact => {
                return Ok(Err(Refused {
                    code: RefusalCode::Unavailable,
                    message: format!("purpose {purpose} is not offered yet"),
                }));
            }
        }
        let (core, session, key) = (Arc::clone(&self.core), self.session, Arc::clone(&self.key));
        let prepared = self
            .core
            .state
            .read(move |tx| {
                let open = match open_turn(tx, session, turn)? {
                    Ok(open) => open,
                    Err(refused) => return Ok::<_, Error>(Err(refused)),
                };
                if let Err(refused) = within_budget(&open, &core.config.turn) {
                    return Ok(Err(refused));
                }
                let agent = agent_of(tx, session)?;
                let own: Vec<ItemId> = turn::messages_of(tx, turn)?.into_iter().map(|message| message.item()).collect();
                let (checked, warnings) = match context::check(tx, session, &own, &refs, agent.mode, &core.sealer)? {
                    Ok(checked) => checked,
                    Err(refused) => return Ok(Err(refused)),
                };
                let labels = context::joined_labels(&checked);
                let prompt = context::compose(tx, &agent, &open, checked, &key)?;
                Ok(Ok((agent, prompt, labels, warnings)))
            })
            .await?;
        let (agent, prompt, labels, warnings) = match prepared {
            Ok(prepared) => prepared,
            Err(refused) => return Ok(Err(refused)),
        };
        if !warnings.is_empty() {
            self.warn(turn, agent.mode, warnings).await?;
        }
        let output = match self.ask_model(&agent, &prompt).await {
            Ok(output) => output,
            Err(message) => return Ok(Err(Refused { code: RefusalCode::Model, message })),
        };
        self.record_output(turn, agent, output, labels).await
    }

    async fn ask_model(&self, agent: &Agent, prompt: &Prompt) -> Result<Output, String> {
        let endpoint = self
            .core
            .endpoints
            .get(&agent.model)
            .ok_or_else(|| format!("there is no model endpoint `{}`", agent.model))?;
        let output = endpoint.generate(prompt).await.map_err(|error| {
            // The cause may quote what was sent, so only its kind reaches the ledger.
            tracing::warn!(session = %self.session, model = agent.model, "the model's endpoint failed");
            let _ = &error;
            format!("the model endpoint `{}` failed", agent.model)
        })?;
        let whole =
            output.text.len() + output.calls.iter().map(|call| call.tool.len() + call.arguments.len()).sum::<usize>();
        if whole > BODY_BYTES_MAX {
            return Err(format!("the output of {whole} bytes is over the limit of {}", BODY_BYTES_MAX));
        }
        if output.calls.len() > OUTPUT_CALLS_MAX {
            return Err(format!("the output has {} calls, over the limit of {OUTPUT_CALLS_MAX}", output.calls.len()));
        }
        Ok(output)
    }

    async fn record_output(
        &self,
        turn: TurnId,
        agent: Agent,
        output: Output,
        labels: Vec<Label>,
    ) -> Result<Result<Response, Refused>, Error> {
        let judged: Vec<calls::Judged> = output.calls.iter().map(|wanted| calls::judge(&agent, wanted)).collect();
        let text = lookalike::neutralise(&output.text).into_owned();
        let body = OutputBody { text, calls: judged.iter().map(|judged| judged.call.clone()).collect() };
        let bytes = body.text.len() as u64;
        let (core, session, key) = (Arc::clone(&self.core), self.session, Arc::clone(&self.key));
        let called = !judged.is_empty();
        let response = self
            .core
            .state
            .write(move |tx| {
                let open = match open_turn(tx, session, turn)? {
                    Ok(open) => open,
                    Err(refused) => return Ok::<_, Error>(Err(refused)),
                };
                // Room for the last calls is checked again, as the answer may ask for several at once.
                let room = core.config.turn.tool_calls_max.saturating_sub(open.tool_calls) as usize;
                if judged.len() > room {
                    return Ok(Err(budget(format!("the turn has room for {room} more tool calls"))));
                }
                let json = canonical::to_string(&body);
                let spans = vec![Span { author: Author::Model, bytes: json.len() }];
                let draft = Draft::new(ItemId::new(), ItemKind::Output, &json, spans, labels, &key)
                    .map_err(BodyError::from)?
                    .turn(turn);
                let item = draft.record(tx, session, &core.sealer)?;
                turn::count(tx, turn, judged.len())?;
                Entry::claim("output.sealed")
                    .session(session)
                    .turn(turn)
                    .with("item", item.tuple.item.to_string())
                    .with("digest", item.tuple.digest.to_string())
                    .with("model", agent.model.clone())
                    .append(tx)?;
                let mut answered = Vec::with_capacity(judged.len());
                for (position, judged) in judged.iter().enumerate() {
                    calls::record(tx, session, turn, item.tuple.item, position, judged)?;
                    let verdict = match &judged.judgement {
                        Judgement::Permitted { runs: Runs::Local, .. } => Verdict::Local,
                        Judgement::Permitted { runs: Runs::Row, .. } => Verdict::Row,
                        Judgement::Refused { reason } => {
                            let text = format!("refused: {reason}");
                            let refusal = record_result(
                                tx,
                                &core,
                                session,
                                &key,
                                turn,
                                &judged.call,
                                false,
                                &text,
                                Author::Host,
                                Label::External,
                            )?;
                            calls::set_refusal(tx, judged.call.call_id, refusal.tuple.item)?;
                            Verdict::Refused { item: refusal.seal(&core.sealer), bytes: refusal.bytes }
                        }
                    };
                    let call = &judged.call;
                    answered.push(Call {
                        call_id: call.call_id,
                        tool: call.tool.clone(),
                        arguments: call.arguments.clone(),
                        verdict,
                    });
                }
                Ok(Ok(Response::Output { item: item.seal(&core.sealer), bytes, calls: answered }))
            })
            .await?;
        failpoint::reach(if called { "call_recorded" } else { "output_sealed" });
        Ok(response)
    }

    async fn report(
        &self,
        turn: TurnId,
        call_id: CallId,
        ok: bool,
        text: String,
    ) -> Result<Result<Response, Refused>, Error> {
        if text.len() > BODY_BYTES_MAX {
            let message = format!("a result of {} bytes is over the limit of {}", text.len(), BODY_BYTES_MAX);
            return Ok(Err(Refused { code: RefusalCode::Frame, message }));
        }
        let text = lookalike::neutralise(&text).into_owned();
        let (core, session, key) = (Arc::clone(&self.core), self.session, Arc::clone(&self.key));
        self.core
            .state
            .write(move |tx| {
                if let Err(refused) = open_turn(tx, session, turn)? {
                    return Ok::<_, Error>(Err(refused));
                }
                let found = calls::find(tx, call_id)?.filter(|call| call.session == session && call.turn == turn);
                let why = match &found {
                    None => Some(format!("{call_id} is no recorded call of the turn")),
                    Some(call) if call.runs != "local" => Some(format!("{call_id} does not run in the sandbox")),
                    Some(call) if call.state != "permitted" => {
                        Some(format!("{call_id} has its result already, or never ran"))
                    }
                    Some(_) => None,
                };
                let mode = agent_of(tx, session)?.mode;
                let call = match (found, why) {
                    (Some(call), None) => calls::Call { call_id: call.id, tool: call.tool, arguments: String::new() },
                    (_, why) => {
                        let message = why.unwrap_or_default();
                        return match mode {
                            Mode::Enforce => Ok(Err(Refused { code: RefusalCode::Call, message })),
                            Mode::DangerousWarn | Mode::DangerousOff => {
                                let quoted = record_unasked(tx, &core, session, &key, &text, mode, &message)?;
                                Ok(Ok(sealed(&quoted, &core)))
                            }
                        };
                    }
                };
                let author = Author::Tool { tool: call.tool.clone() };
                let item = record_result(tx, &core, session, &key, turn, &call, ok, &text, author, Label::External)?;
                calls::settle(tx, call_id, item.tuple.item)?;
                Entry::claim("call.reported")
                    .session(session)
                    .turn(turn)
                    .with("call", call_id.to_string())
                    .with("tool", call.tool)
                    .with("ok", ok)
                    .with("digest", item.tuple.digest.to_string())
                    .append(tx)?;
                Ok(Ok(sealed(&item, &core)))
            })
            .await
    }

    async fn result(&self, turn: TurnId, call_id: CallId) -> Result<Result<Response, Refused>, Error> {
        let mut results = self.results.clone();
        loop {
            results.mark_unchanged();
            let (core, session) = (Arc::clone(&self.core), self.session);
            let looked = self
                .core
                .state
                .read(move |tx| {
                    let open = match open_turn(tx, session, turn)? {
                        Ok(open) => open,
                        Err(refused) => return Ok::<_, Error>(Err(refused)),
                    };
                    let found = calls::find(tx, call_id)?
                        .filter(|call| call.session == session && call.turn == turn && call.runs == "row");
                    let Some(call) = found else {
                        let message = format!("{call_id} is no call of the turn that goes out as a row");
                        return Ok(Err(Refused { code: RefusalCode::Call, message }));
                    };
                    let Some(result) = call.result.map(|item| items::find(tx, item)).transpose()?.flatten() else {
                        return Ok(Ok(Err(open.deadline - tx.now())));
                    };
                    Ok(Ok(Ok(sealed(&result, &core))))
                })
                .await?;
            let left_ms = match looked {
                Err(refused) => return Ok(Err(refused)),
                Ok(Ok(response)) => return Ok(Ok(response)),
                Ok(Err(left_ms)) => left_ms,
            };
            let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or(0));
            match tokio::time::timeout(left, results.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => {
                    let message = "the turn ended before its call had a result".to_owned();
                    return Ok(Err(Refused { code: RefusalCode::Turn, message }));
                }
            }
        }
    }

    async fn items(&self, after_seq: u64) -> Result<Result<Response, Refused>, Error> {
        let (core, session) = (Arc::clone(&self.core), self.session);
        self.core
            .state
            .read(move |tx| {
                let mut found = items::after(tx, session, after_seq, ITEMS_MAX + 1)?;
                let more = found.len() > ITEMS_MAX;
                found.truncate(ITEMS_MAX);
                let item = |item: &Recorded| Item {
                    reference: item.seal(&core.sealer),
                    bytes: item.bytes,
                    turn: item.tuple.turn,
                };
                Ok::<_, Error>(Ok(Response::Items { items: found.iter().map(item).collect(), more }))
            })
            .await
    }

    async fn warn(&self, turn: TurnId, mode: Mode, warnings: Vec<String>) -> Result<(), Error> {
        let session = self.session;
        self.core
            .state
            .write(move |tx| {
                for warning in warnings {
                    let entry = Entry::retract("context.unsealed").session(session).turn(turn);
                    entry.with("mode", mode.name()).with("passed", "as quoted text").reason(&warning).append(tx)?;
                }
                Ok::<_, Error>(())
            })
            .await
    }
}

fn sealed(item: &Recorded, core: &Core) -> Response {
    Response::Sealed { item: item.seal(&core.sealer), bytes: item.bytes }
}

fn agent_of(tx: &Tx<'_>, session: SessionId) -> Result<Agent, Error> {
    let gone = || crate::state::Error::Stored(format!("{session} has no agent"));
    let session = store::find(tx, session)?.ok_or_else(gone)?;
    Ok(registry::find_agent(tx, &session.agent.to_string())?.ok_or_else(gone)?)
}

fn open_turn(tx: &Tx<'_>, session: SessionId, turn: TurnId) -> Result<Result<Turn, Refused>, Error> {
    let refuse = |message: String| Ok(Err(Refused { code: RefusalCode::Turn, message }));
    match turn::find(tx, turn)? {
        None => refuse(format!("{turn} does not stand in the record")),
        Some(found) if found.session != session => refuse(format!("{turn} belongs to another session")),
        Some(found) if !found.open => refuse(format!("{turn} is closed")),
        Some(found) if found.deadline <= tx.now() => refuse(format!("{turn} is past its deadline")),
        Some(found) => Ok(Ok(found)),
    }
}

const fn budget(message: String) -> Refused {
    Refused { code: RefusalCode::Budget, message }
}

fn within_budget(open: &Turn, limits: &turn::Config) -> Result<(), Refused> {
    if open.model_calls >= limits.model_calls_max {
        return Err(budget(format!("the turn has used its {} requests to the model", limits.model_calls_max)));
    }
    if open.tool_calls >= limits.tool_calls_max {
        return Err(budget(format!("the turn has used its {} tool calls", limits.tool_calls_max)));
    }
    Ok(())
}

#[allow(clippy::too_many_arguments)]
fn record_result(
    tx: &mut Tx<'_>,
    core: &Core,
    session: SessionId,
    key: &ContentKey,
    turn: TurnId,
    call: &calls::Call,
    ok: bool,
    text: &str,
    author: Author,
    label: Label,
) -> Result<Recorded, Error> {
    let body = canonical::to_string(&ResultBody { ok, text: text.to_owned() });
    let spans = vec![Span { author, bytes: body.len() }];
    let draft = Draft::new(ItemId::new(), ItemKind::Result, &body, spans, vec![label], key).map_err(BodyError::from)?;
    Ok(draft.turn(turn).call(call.call_id, &call.tool).record(tx, session, &core.sealer)?)
}

/// In a dangerous mode: a result that nobody asked for stands as a quote, never as a result.
fn record_unasked(
    tx: &mut Tx<'_>,
    core: &Core,
    session: SessionId,
    key: &ContentKey,
    text: &str,
    mode: Mode,
    why: &str,
) -> Result<Recorded, Error> {
    let spans = vec![Span { author: Author::Quoted, bytes: text.len() }];
    let draft = Draft::new(ItemId::new(), ItemKind::Message, text, spans, vec![Label::External], key)
        .map_err(BodyError::from)?;
    let item = draft.record(tx, session, &core.sealer)?;
    let entry = Entry::retract("context.unsealed").session(session).with("mode", mode.name());
    entry.with("passed", "as quoted text").reason(why).append(tx)?;
    Ok(item)
}
