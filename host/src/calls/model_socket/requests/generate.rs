//! The request `generate`: checks and counts it, asks the model, judges the calls, and records the output.
//!
//! Never asks a model before the request is counted. See [`crate::calls::model_socket::request_budget`] and [`crate::turns::context`].

use super::judged::{Asks, record_no_room};
use super::output::{output_body, record_sealed, recorded_text};
use super::prepared::{Covers, Prepared, Ready};
use super::{Answer, earlier_answer, open_turn, pushes, refuse};
use crate::calls::executor::facts::{self, Judging};
use crate::calls::model_socket::report::record_unsealed;
use crate::calls::model_socket::request_budget::{self, Failed};
use crate::calls::model_socket::request_sizes::{Size, can_shrink};
use crate::calls::model_socket::{Server, endpoints};
use crate::registry::Agent;
use crate::sessions::store::{self, Origin, ScheduleRuns};
use crate::turns::calls::{self, ReadCall, ResultTarget};
use crate::turns::context::{self, Reader, Unanswered};
use crate::turns::endpoint_words;
use crate::turns::items::{self, NewItem};
use crate::turns::memories::{self, Matches};
use crate::turns::open_turns::OpenTurns;
use crate::turns::open_turns::streaming::ActiveRequest;
use crate::turns::rests_on::{self, Ranges};
use crate::turns::turn::{self, Turn};
use ironclaw_contract::canonical;
use ironclaw_contract::ids::{ItemId, SessionId, TurnId};
use ironclaw_contract::seam::limits::{BODY_BYTES_MAX, OUTPUT_CALLS_MAX};
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_contract::seam::socket::{Context, Purpose, RefusalCode, Response};
use ironclaw_judge::provenance::{Labelled, Labels};
use ironclaw_ledger::Entry;
use ironclaw_model::endpoint::{self, Bounds};
use ironclaw_model::streaming;
use ironclaw_model::{Answered, Prompt};
use ironclaw_operator::LedgerEvent;
use ironclaw_state::failpoint;
use ironclaw_state::keys::ContentKey;
use ironclaw_state::seal::Sealer;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The rest of a turn after the time of its model: enough for the sandbox to report the failure and for the host to accept the report.
const AFTER_MODEL: Duration = Duration::from_secs(5);

/// The largest share of a turn for that rest, as a divisor.
const AFTER_MODEL_SHARE: u32 = 10;

impl Server {
    /// Answers with one output of the model over sealed items.
    pub(crate) async fn generate(&self, turn: TurnId, purpose: Purpose, refs: Vec<Context>) -> Answer {
        if purpose == Purpose::Plan {
            return refuse(RefusalCode::Unavailable, format!("purpose {purpose} is not available yet"));
        }
        if self.shared.latch.is_shut() {
            return refuse(RefusalCode::Unavailable, "the emergency stop is active".to_owned());
        }
        if purpose == Purpose::Compact && self.has_fresh_runs().await? {
            // No party is at fault: an awake sandbox knows items of earlier runs. Without a summary it names the newest ones.
            let message = "a run sees no item of an earlier one, so there is nothing to summarise".to_owned();
            return Ok(Response::Refused { code: RefusalCode::Unavailable, message });
        }
        let (mut prepared, working) = match self.prepare(turn, purpose, refs).await? {
            Ready::Asks(prepared, working) => (*prepared, working),
            Ready::TooLong(refused) => return Ok(refused),
            Ready::Answered(response, named) => {
                failpoint::reach("output_sealed");
                let answer = Ok(response);
                self.remember(&answer, named);
                return answer;
            }
        };
        self.read_images(&mut prepared).await;
        let asked = self.ask_model(&mut prepared, working).await;
        if let Ok(Some(answered)) = &asked {
            self.record_count(turn, &prepared, answered).await?;
        }
        match (asked, prepared.covers.take()) {
            (Ok(Some(answered)), None) => {
                let answer = self.record_output(turn, prepared, answered).await;
                self.keep_versions(turn, &answer).await;
                answer
            }
            (Ok(Some(answered)), Some(covers)) => self.record_summary(turn, prepared, covers, answered).await,
            // The turn was closed during the request. No party is at fault, so the ledger gets no refusal.
            (Ok(None), _) => Ok(Response::Refused { code: RefusalCode::Turn, message: format!("{turn} is closed") }),
            (Err(mut failed), _) => {
                if failed.is_slow() && is_time_of_model_over(&self.shared.turns, self.session, turn) {
                    failed.words = late_words(&failed.model, self.shared.turns.config().seconds_max);
                }
                let again = match failed.too_long.take() {
                    Some(too_long) => self.record_too_long(turn, &prepared, too_long).await?,
                    None => None,
                };
                let answer = self.record_failure(turn, &prepared.agent, prepared.booked, failed).await;
                again.unwrap_or(answer)
            }
        }
    }

    /// Returns whether each run in this session has a context of its own.
    async fn has_fresh_runs(&self) -> Result<bool, Error> {
        let session = self.session;
        let found = self.state().read(move |tx| store::find(tx, session)).await.map_err(Error::from)?;
        Ok(found.is_some_and(|session| session.origin.runs == ScheduleRuns::Fresh))
    }

    /// Checks and counts a request before it is sent, because a failed request may cost just as much. A request whose answer an
    /// interrupted attempt has recorded is answered at once.
    async fn prepare(&self, turn: TurnId, purpose: Purpose, refs: Vec<Context>) -> Result<Ready, Unanswered<Error>> {
        let (shared, session, key) = (Arc::clone(&self.shared), self.session, Arc::clone(&self.key));
        let (cache, sizes) = (Arc::clone(&self.cache), Arc::clone(&self.sizes));
        self.decide(move |tx| {
            let open = open_turn(tx, &shared.turns.deadlines, session, turn)?;
            let limits = shared.turns.config();
            requests_left(&open, &limits)?;
            let agent = store::agent_of(tx, session)?;
            let own: Vec<ItemId> = turn::messages_of(tx, turn)?.into_iter().map(|message| message.item()).collect();
            let cache = &mut *cache.lock();
            let sealer = &shared.record().sealer;
            let asked = Asked { session, open: &open, agent: &agent, own: &own, purpose };
            let checked = asked.check(tx, &refs, limits.context_bytes_max, sealer, cache)?;
            // The next request can name all of them by ranges.
            let named = context::items(&checked);
            let is_shrinkable = can_shrink(purpose, &open, &own, &checked);
            let origin = store::find(tx, session)?.map(|session| session.origin);
            let checked = context::seen(tx, turn, origin.as_ref(), checked)?;
            let prompted = Ranges::new(context::item_numbers(&checked).into_iter().map(|(_, number)| number));
            let (count, labels) = (checked.len(), labels(tx, &open, origin.as_ref(), &checked)?);
            let chain = shared.models.current().chain(&agent.model);
            let is_script = chain.first().is_some_and(|first| first.spec.kind == endpoint::Kind::Scripted);
            let reads = context::reading::by_first(tx, &chain)?;
            let limits = limits.reading(reads.map(|reads| reads.bytes_max(0)));
            let policy = &shared.settings.now().host_policy;
            let bound = chain.first().and_then(|first| first.spec.settings.tool_definitions_bytes_max);
            let (loopback, room) = (policy.egress.loopback(), limits.room(bound));
            let reader =
                Reader { agent: &agent, turn: &open, is_script, zone: policy.zone.zone.rules(), loopback, room };
            let (prompt, covers) = compose(tx, &reader, purpose, checked, limits.context_bytes_max, &key, cache)?;
            let size = Size::new(&prompt, is_shrinkable, reads, &open, &limits);
            if let Some(refused) = sizes.check(turn, size)? {
                return Ok(Ready::TooLong(refused));
            }
            turn::count_model_call(tx, turn)?;
            let request = earlier_answer::Request {
                turn: &open,
                prompt: &prompt,
                chain: &chain,
                named: &named,
                own: &own,
                prompted: &prompted,
            };
            if let Some(answered) = earlier_answer::again(tx, &request, labels, &key, &shared.record().sealer)? {
                return Ok(Ready::Answered(answered, named));
            }
            let (booked, allowance) = request_budget::book(tx, &policy.budget, session, turn, &agent, &prompt, &chain)?;
            record_asked(tx, session, turn, &agent, purpose, count)?;
            let bounds = Bounds { until: time_of_model(&shared.turns, session, turn), allowance };
            // Before the commit announces the entry, because a client that follows the message then looks for its text.
            let working = shared.turns.partial_outputs.begin(session, turn);
            let judging = Judging { labels, call: None };
            let facts = facts::for_turn(tx, &shared.settings, &open, &agent, judging, &key)?;
            let request = None;
            let prepared =
                Prepared { agent, prompt, named, prompted, chain, facts, covers, booked, bounds, size, request };
            Ok(Ready::Asks(Box::new(prepared), working))
        })
        .await
    }

    /// Reads the images of the prompt outside of a transaction, if an endpoint of the chain takes images.
    async fn read_images(&self, prepared: &mut Prepared) {
        let takes_images = prepared.chain.iter().any(|endpoint| endpoint.spec.takes_images);
        if !takes_images || prepared.prompt.images() == 0 {
            return;
        }
        let (mut prompt, place) = (prepared.prompt.clone(), self.shared.home.session(self.session));
        let read = tokio::task::spawn_blocking(move || {
            context::images::read_all(&mut prompt, &place);
            prompt
        });
        match read.await {
            Ok(prompt) => prepared.prompt = prompt,
            // An image that was not read is left out with a remark.
            Err(error) => tracing::error!(%error, "cannot read the images of a prompt"),
        }
    }

    /// Asks the agent's model until the turn ends. Returns `None` if the turn ended before an output. A request without a waiter is
    /// dropped together with its connection.
    async fn ask_model(&self, prepared: &mut Prepared, mut working: ActiveRequest) -> Result<Option<Answered>, Failed> {
        let Prepared { agent, prompt, bounds, .. } = &*prepared;
        let chain = prepared.chain.clone();
        if chain.is_empty() {
            return Err(Failed::unasked(format!("there is no model endpoint `{}`", agent.model), &agent.model));
        }
        let unasked = |words| Failed::unasked(words, &agent.model);
        let candidates = endpoints::ready(self.shared.record(), chain).await.map_err(unasked)?;
        // No client follows the text of a summary.
        let draft = if prepared.covers.is_some() { streaming::PartialAnswer::default() } else { working.draft.clone() };
        let measured = self.state().metrics().ask(&agent.model);
        // The digest is made while the model works.
        let digest = async { prompt.digest(&prepared.chain) };
        let asking = async { tokio::join!(endpoint::generate(&candidates, prompt, *bounds, &draft), digest) };
        let (asked, request) = tokio::select! {
            biased;
            asked = asking => asked,
            () = working.over() => return Ok(None),
        };
        self.shared.models.keep_observed(self.shared.record(), &prepared.chain).await;
        let answered = asked.map_err(|error| Failed::from_error(&error, &agent.model))?;
        measured.answered(&answered.endpoint, answered.usage.input_tokens, answered.usage.output_tokens);
        let output = &answered.output;
        let calls: usize = output.calls.iter().map(|call| call.tool.len() + call.arguments.len()).sum();
        let (bytes, count) = (output.text.len() + calls, output.calls.len());
        let too_much = |words: String| {
            let words = format!("the model endpoint `{}` gave {words}", answered.endpoint);
            Failed::new("too_large", words, answered.endpoint.clone(), answered.usage)
        };
        if bytes > BODY_BYTES_MAX {
            return Err(too_much(format!("an output of {bytes} bytes, over the limit of {BODY_BYTES_MAX}")));
        }
        if count > OUTPUT_CALLS_MAX {
            return Err(too_much(format!("an output with {count} calls, over the limit of {OUTPUT_CALLS_MAX}")));
        }
        prepared.request = Some(request);
        Ok(Some(answered))
    }

    async fn record_output(&self, turn: TurnId, mut prepared: Prepared, mut answered: Answered) -> Answer {
        // First, because the host writes them next.
        let mut wanted: Vec<ReadCall> = answered.output.calls.drain(..).map(ReadCall::read).collect();
        let left_out: Vec<_> = wanted.iter_mut().map(ReadCall::remove_host_arguments).collect();
        let (refused, mut copies) = self.prepare_calls(turn, &mut prepared, &mut wanted).await?;
        let found = self.search_notes(&prepared, &wanted).await?;
        let text = recorded_text(&answered.output);
        let (is_answer, called) = (wanted.is_empty() && !text.is_empty(), !wanted.is_empty());
        let (shared, session, key) = (Arc::clone(&self.shared), self.session, Arc::clone(&self.key));
        let named = std::mem::take(&mut prepared.named);
        let prompt: Vec<ItemId> = named.iter().map(|item| item.tuple.item).collect();
        let response = self
            .decide(move |tx| {
                request_budget::settle(tx, &prepared.booked, &answered)?;
                let open = open_turn(tx, &shared.turns.deadlines, session, turn)?;
                turn::clear_failure(tx, turn)?;
                let Prepared { agent, mut facts, request, prompted, .. } = prepared;
                endpoint_words::note(tx, session, turn, &answered.failures, &key)?;
                let Answered { output, endpoint, usage, .. } = answered;
                let limits = shared.turns.config();
                let room = limits.tool_calls_max.saturating_sub(open.tool_calls) as usize;
                let mut judged = Vec::with_capacity(wanted.len());
                for (n, wanted) in wanted.into_iter().enumerate() {
                    let call = calls::judge(&agent, &facts, wanted, n < room);
                    facts.use_handles(&call);
                    judged.push(call);
                }
                record_no_room(&mut judged, &limits, open.tool_calls);
                pushes::refuse(&mut judged, refused);
                let calls: Vec<_> = judged.iter().map(|judged| judged.call.clone()).collect();
                let body = output_body(text, calls, left_out, &output);
                let bytes = body.context_bytes();
                let json = canonical::to_string(&body);
                let spans = vec![Span { author: Author::Model, bytes: json.len() }];
                let json = Labelled { value: &*json, labels: facts.labels };
                let new = NewItem::new(ItemId::new(), ItemKind::Output, json, spans, &key)?;
                let by = shared.models.current().get(&endpoint).map(|endpoint| endpoint.spec.kind);
                let scripted = by == Some(endpoint::Kind::Scripted);
                let new = new.answers(request.filter(|_| is_answer)).reasoning(&output.reasoning, &key)?;
                let item = new.turn(turn).scripted(scripted).record(tx, session, &shared.record().sealer)?;
                turn::count_tool_calls(tx, turn, judged.len())?;
                rests_on::record(tx, item.tuple.item, &prompted)?;
                record_sealed(tx, session, turn, &item.tuple, endpoint, usage)?;
                let target = ResultTarget { session, turn, key: &key, sealer: &shared.record().sealer };
                let mut answered = Vec::with_capacity(judged.len());
                let (shared, agent, facts) = (&*shared, &agent, &facts);
                let asks = Asks { shared, turn: &open, agent, prompt: &prompt, facts, key: &key };
                for (position, judged) in judged.iter_mut().enumerate() {
                    asks.record(tx, item.tuple.item, position, judged, copies.remove(&position))?;
                    answered.push(asks.answer(tx, &target, judged, found.get(&position))?);
                }
                Ok(Response::Output { item: item.seal(&shared.record().sealer), bytes, calls: answered })
            })
            .await;
        failpoint::reach(if called { "call_recorded" } else { "output_sealed" });
        self.remember(&response, named);
        response
    }

    /// Keeps the items of an answered request, so that the next request can name them by ranges.
    fn remember(&self, answer: &Answer, named: Vec<Arc<context::Item>>) {
        if let Ok(Response::Output { item, .. }) = answer {
            self.cache.lock().answer(item.item, named);
            self.shared.caches.record_answer(&self.cache);
        }
    }

    /// Searches the notes for the `recall` calls of an output. Returns the results by the position of the call. All searches share one
    /// time limit.
    async fn search_notes(&self, prepared: &Prepared, calls: &[ReadCall]) -> Result<HashMap<usize, Matches>, Error> {
        let until = Instant::now() + memories::SEARCH_TIME_MAX;
        let mut all = HashMap::new();
        for (position, call) in calls.iter().take(self.shared.turns.config().tool_calls_max as usize).enumerate() {
            let Some((query, limit)) = calls::recall_query(&prepared.agent, &prepared.facts, call) else { continue };
            let (agent, left) = (prepared.agent.id, until.saturating_duration_since(Instant::now()));
            let search = self.state().search(left, move |tx| memories::search(tx, agent, &query, limit));
            all.insert(position, search.await?);
        }
        Ok(all)
    }

    /// Seals a summary and replaces its items by it.
    async fn record_summary(&self, turn: TurnId, prepared: Prepared, covers: Covers, answered: Answered) -> Answer {
        let Some(text) = context::summary::text(&answered.output, covers.bytes_max) else {
            let words = format!("the model endpoint `{}` gave no summary", answered.endpoint);
            let failed = Failed::new("empty", words, answered.endpoint, answered.usage);
            return self.record_failure(turn, &prepared.agent, prepared.booked, failed).await;
        };
        let (shared, session, key) = (Arc::clone(&self.shared), self.session, Arc::clone(&self.key));
        self.decide(move |tx| {
            request_budget::settle(tx, &prepared.booked, &answered)?;
            open_turn(tx, &shared.turns.deadlines, session, turn)?;
            endpoint_words::note(tx, session, turn, &answered.failures, &key)?;
            // Another request may have summarised them in the meantime.
            context::summary::check_uncovered(tx, session, &covers.items)?;
            let spans = vec![Span { author: Author::Model, bytes: text.len() }];
            let text = Labelled { value: &*text, labels: prepared.facts.labels };
            let new = NewItem::new(ItemId::new(), ItemKind::Summary, text, spans, &key)?;
            let item = new.turn(turn).record(tx, session, &shared.record().sealer)?;
            items::summary::cover(tx, session, item.tuple.item, &covers.items, covers.ordinal)?;
            Entry::new(LedgerEvent::SummarySealed)
                .session(session)
                .turn(turn)
                .with("item", item.tuple.item)
                .with("digest", item.tuple.digest)
                .with("items", covers.items.len())
                .with("model", answered.endpoint)
                .append(tx)?;
            let (item, bytes) = (item.seal(&shared.record().sealer), item.bytes);
            Ok(Response::Output { item, bytes, calls: Vec::new() })
        })
        .await
    }
}

/// A request before its refs are checked.
struct Asked<'a> {
    session: SessionId,
    open: &'a Turn,
    agent: &'a Agent,
    /// The messages of the turn.
    own: &'a [ItemId],
    purpose: Purpose,
}

impl Asked<'_> {
    /// Checks the refs of the request, and records the warnings of a mode that weakens the guard.
    fn check(
        &self,
        tx: &mut WriteTx<'_>,
        refs: &[Context],
        bytes_max: u64,
        sealer: &Sealer,
        cache: &mut context::ItemCache,
    ) -> Result<Vec<context::Checked>, Unanswered<Error>> {
        let Self { session, open, agent, own, purpose } = *self;
        if open.model_calls == 0 {
            cache.forget_positions(own);
        }
        let required: &[ItemId] = if purpose == Purpose::Compact { &[] } else { own };
        let (checked, warnings) = context::check(tx, session, required, refs, agent.mode, bytes_max, sealer, cache)?;
        if purpose == Purpose::Compact {
            context::summary::check(tx, open, own, &checked)?;
        }
        for warning in warnings {
            record_unsealed(tx, session, agent.mode, &warning)?;
        }
        Ok(checked)
    }
}

/// Returns the end of the time of a turn's model.
fn time_of_model(turns: &OpenTurns, session: SessionId, turn: TurnId) -> Instant {
    let kept = after_model(turns.config().seconds_max);
    Instant::now() + turns.deadlines.left(session, turn).saturating_sub(kept)
}

/// Returns whether the time of a turn's model is over.
fn is_time_of_model_over(turns: &OpenTurns, session: SessionId, turn: TurnId) -> bool {
    turns.deadlines.left(session, turn) <= after_model(turns.config().seconds_max)
}

/// Returns the words about a model that was still at work when the time of its turn was over.
fn late_words(endpoint: &str, seconds_max: u32) -> String {
    format!(
        "the model endpoint `{endpoint}` had not answered when the {seconds_max} seconds of this turn were over: raise turn.seconds_max \
         in config.toml, or use a faster model"
    )
}

/// Returns the time between the end of the model's time and the end of a turn of this length.
fn after_model(seconds_max: u32) -> Duration {
    AFTER_MODEL.min(Duration::from_secs(u64::from(seconds_max)) / AFTER_MODEL_SHARE)
}

/// Returns the labels of an output over these items in a turn of a session with this origin.
fn labels(
    tx: &ReadTx<'_>,
    open: &Turn,
    origin: Option<&Origin>,
    checked: &[context::Checked],
) -> Result<Labels, Error> {
    let is_shared = origin.is_some_and(|origin| origin.kind.is_shared());
    let others = if is_shared { context::Others::read(tx, open, checked)? } else { context::Others::default() };
    Ok(context::output_labels(checked, &open.principal, &others))
}

/// Refuses a request if the turn has used all its requests to the model.
fn requests_left(open: &Turn, limits: &turn::Config) -> Result<(), Unanswered<Error>> {
    if open.model_calls < limits.model_calls_max {
        return Ok(());
    }
    let message = format!("the turn has used its {} requests to the model", limits.model_calls_max);
    refuse(RefusalCode::Budget, message)
}

/// Records a request to a model with the number of its items.
fn record_asked(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    turn: TurnId,
    agent: &Agent,
    purpose: Purpose,
    items: usize,
) -> Result<(), Error> {
    Entry::new(LedgerEvent::ModelAsked)
        .session(session)
        .turn(turn)
        .with("model", agent.model.clone())
        .with("purpose", purpose.name())
        .with("items", items)
        .append(tx)?;
    Ok(())
}

/// Composes the prompt of checked items. For a summary, also returns the items that it replaces.
fn compose(
    tx: &ReadTx<'_>,
    reader: &Reader<'_>,
    purpose: Purpose,
    checked: Vec<context::Checked>,
    bytes_max: u64,
    key: &ContentKey,
    cache: &mut context::ItemCache,
) -> Result<(Prompt, Option<Covers>), Error> {
    if purpose != Purpose::Compact {
        return Ok((context::compose(tx, reader, checked, key, cache)?, None));
    }
    let items = context::item_numbers(&checked);
    let bytes_max = context::summary::bytes_max(bytes_max);
    let (prompt, ordinal) = context::summary::compose(tx, reader, checked, bytes_max, key, cache)?;
    Ok((prompt, Some(Covers { items, ordinal, bytes_max })))
}
