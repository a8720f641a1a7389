//! A remote endpoint: one request, its retries, and their deadline.
//!
//! Never retries a request that cannot succeed, and never waits beyond the deadline of the caller. See [`crate::http`] for the
//! connections, [`crate::openai`] and [`crate::anthropic`] for the two formats.

use super::api_url::api_url;
use super::assembly::{Assembly, TokenCounts};
use super::attached::endpoint_digest;
use super::attempt::{AttemptBudget, AttemptLimits};
use super::bad_call;
use super::breaker::Breaker;
use super::complaints::Carried;
use super::context_size::{ContextSign, is_end_of_context, rounded};
use super::endpoint_quirks::EndpointQuirks;
use super::error_body::Complaint;
use super::failed_attempt::FailedAttempt;
use super::fault::{Detail, Failure, Fault};
use super::http::{Answer, Connections, HttpRequest, Timeouts};
use super::openai::{self, RequestOptions};
use super::output_bound::{OutputBound, Smaller};
use super::prices::Prices;
use super::quirks::{KeyHeader, Values};
use super::reading::{self, Protocol};
use super::server_errors::{self, Meaning, ServerErrors};
use super::spec::{Kind, Spec};
use super::stated_context::Question;
use super::{Config, Cut, Output, Prompt, Usage, anthropic, json, render, tokens_estimated, written_calls};
use ironclaw_contract::seam::socket::Purpose;
use ironclaw_net::backoff::{Backoff, Jitter};
use ironclaw_text::secret::SecretText;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use url::Url;

/// The longest backoff between two attempts.
const BACKOFF_MAX: Duration = Duration::from_secs(20);
/// Longest wait that an endpoint may ask for. A person waits for the answer, so a longer one ends in a notice at once.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
/// The longest requested wait that the host obeys if it can ask another endpoint instead.
const WAIT_BESIDE_OTHERS: Duration = Duration::from_secs(2);
/// Highest count of tokens for one request that the host accepts.
const TOKENS_MAX: u64 = 1_000_000_000;
/// An output at the end of the context that has fewer bytes is no answer.
const FEW_WORDS_BYTES: usize = 200;
/// Models in a listing.
const MODELS_MAX: usize = 1000;

/// A remote endpoint with its quirks and its breaker.
#[derive(Debug)]
pub struct Remote {
    protocol: Protocol,
    url: Url,
    models: Url,
    pub quirks: EndpointQuirks,
    output_bound: OutputBound,
    server_errors: ServerErrors,
    /// Lines of its answers that were no part of them.
    skipped_lines: AtomicU64,
    connections: Arc<Connections>,
    config: Arc<Config>,
    pub breaker: Breaker,
}

struct Completed {
    output: Output,
    took: Usage,
    /// The tokens of the prompt, as the server counted them.
    counted: Option<u64>,
    context: Option<ContextSign>,
    /// `false` if the output reached the deadline.
    is_whole: bool,
}

/// The options of one request after refusals of others.
struct Adapted {
    values: Values,
    smaller: Option<Smaller>,
    output_tokens_max: u32,
    /// The estimate of the tokens of its prompt.
    prompt_tokens: u64,
}

impl Remote {
    /// Makes the endpoint of a spec at its checked base URL; `None` for a script.
    pub fn new(spec: &Spec, base: &Url, connections: Arc<Connections>, config: Arc<Config>) -> Option<Self> {
        let (protocol, action) = match spec.kind {
            Kind::Openai => (Protocol::Chat, "chat/completions"),
            Kind::Anthropic => (Protocol::Messages, "messages"),
            Kind::Scripted => return None,
        };
        let rest = Duration::from_millis(u64::from(config.rest_ms));
        Some(Self {
            protocol,
            url: api_url(base, protocol, action),
            models: api_url(base, protocol, "models"),
            quirks: EndpointQuirks::new(spec),
            output_bound: OutputBound::default(),
            server_errors: ServerErrors::default(),
            skipped_lines: AtomicU64::new(0),
            connections,
            breaker: Breaker::new(config.failures_max, rest),
            config,
        })
    }

    /// Requests one output, with as many attempts as limits and budget allow.
    pub async fn ask(
        &self,
        spec: &Spec,
        key: Option<&SecretText>,
        prompt: &Prompt,
        budget: &mut AttemptBudget<'_>,
        limits: AttemptLimits,
    ) -> Result<Output, Failure> {
        let request = server_errors::Request::new(prompt);
        let prompt_tokens = tokens_estimated(prompt.bytes());
        let output_tokens_max = self.output_bound.at_most(limits.output_tokens_max, prompt_tokens, Instant::now());
        let mut adapted = Adapted { values: Values::default(), smaller: None, output_tokens_max, prompt_tokens };
        let (mut prompt, mut tries, mut internal_errors) = (Cow::Borrowed(prompt), 0, 0);
        loop {
            tries += 1;
            budget.tries_left = budget.tries_left.saturating_sub(1);
            budget.draft.begin();
            let asked = self.options(spec, &adapted);
            let broken = match self.attempt(spec, key, &prompt, budget, limits, asked).await {
                Ok(completed) => {
                    if completed.is_whole {
                        self.quirks.answered(&adapted.values, |quirk| carried(spec, &prompt, asked).has_place(quirk));
                    }
                    return Ok(self.completed(completed, &adapted, request, budget));
                }
                Err(broken) => broken,
            };
            budget.usage = budget.usage.plus(broken.took);
            self.adapt(&mut adapted, &broken);
            if self.options(spec, &adapted) != asked {
                // A refusal of an option does not count as an attempt, because the next request has another one.
                (tries, budget.tries_left) = (tries - 1, budget.tries_left + 1);
                continue;
            }
            internal_errors += u32::from(is_internal(broken.fault));
            let (fault, is_repeated) = self.meaning(broken.fault, internal_errors, request);
            if fault.is_endpoint_failure() {
                self.breaker.failed(Instant::now());
            }
            let detail = Detail::new(&broken.words, key.map(SecretText::expose));
            let is_first_bad_call = fault == Fault::BadCall && matches!(prompt, Cow::Borrowed(_));
            let wait = match is_first_bad_call {
                true => Some(Duration::ZERO).filter(|_| budget.tries_left > 0 && Instant::now() < budget.until),
                false => self.wait(fault, self.pause(tries), budget, limits),
            };
            let wait = wait.filter(|_| tries < limits.tries && !is_repeated && !broken.is_final);
            // Each attempt is a request that may cost money.
            let wait = wait.filter(|_| budget.has_room(spec.estimate(&prompt)));
            let Some(wait) = wait else {
                if is_internal(broken.fault) || matches!(broken.fault, Fault::BadRequest(_)) {
                    self.server_errors.failed(request);
                }
                return Err(failure(spec, fault, tries, detail));
            };
            if is_first_bad_call {
                prompt = Cow::Owned(bad_call::with_reason(&prompt, &detail));
            }
            sleep(wait).await;
        }
    }

    fn options(&self, spec: &Spec, adapted: &Adapted) -> RequestOptions {
        self.quirks.options(spec, adapted.values, adapted.output_tokens_max)
    }

    /// Replaces an option that the server refused for the rest of a request.
    fn adapt(&self, adapted: &mut Adapted, broken: &FailedAttempt) {
        self.quirks.turn(broken.complaint, &mut adapted.values);
        let Adapted { output_tokens_max: asked, prompt_tokens, smaller, .. } = *adapted;
        let first = || Smaller::after(broken.fault, broken.complaint, &broken.words, asked, prompt_tokens);
        let next = smaller.map_or_else(first, |smaller| smaller.again(broken.complaint));
        if let Some(next) = next {
            (adapted.smaller, adapted.output_tokens_max) = (Some(next), next.tokens);
        }
    }

    fn completed(
        &self,
        completed: Completed,
        adapted: &Adapted,
        request: server_errors::Request,
        budget: &mut AttemptBudget<'_>,
    ) -> Output {
        let Completed { output, took, counted, context, is_whole } = completed;
        budget.context = context.or(adapted.smaller.and_then(Smaller::context));
        // An output that reached the deadline does not prove that the endpoint works.
        if is_whole {
            let Adapted { output_tokens_max, prompt_tokens, smaller, .. } = *adapted;
            self.output_bound.answered(output_tokens_max, prompt_tokens, smaller, Instant::now());
            self.quirks.began(&output);
            self.breaker.succeeded();
            self.server_errors.passed(request);
        }
        (budget.usage, budget.counted) = (budget.usage.plus(took), counted);
        output
    }

    /// Returns the fault after this number of internal errors in one request, and whether more attempts are of no use. A server that
    /// refuses this conversation, and accepts a shorter one or another, has no fault of its own.
    fn meaning(&self, fault: Fault, internal_errors: u32, request: server_errors::Request) -> (Fault, bool) {
        if let Fault::BadRequest(status) = fault
            && self.server_errors.meaning(request) == Meaning::Conversation
        {
            return (Fault::ConversationFails { status }, true);
        }
        if !is_internal(fault) || internal_errors < 2 {
            return (fault, false);
        }
        match self.server_errors.meaning(request) {
            Meaning::Server => (fault, false),
            Meaning::Repeated => (fault, true),
            Meaning::Conversation => (Fault::ConversationFails { status: server_errors::INTERNAL }, true),
        }
    }

    /// Requests the names of the models of the server.
    pub async fn models(&self, spec: &Spec, key: Option<&SecretText>, until: Instant) -> Result<Vec<String>, Failure> {
        let question = Question { method: Method::GET, url: self.models.clone(), body: Vec::new() };
        let body = self.question(spec, key, question, until).await?;
        let Some(data) = body["data"].as_array() else {
            return Err(failure(spec, Fault::Malformed, 1, Detail::default()));
        };
        let names = data.iter().filter_map(|model| model["id"].as_str()).take(MODELS_MAX);
        Ok(names.map(str::to_owned).collect())
    }

    /// Asks the server for something beside an output, once.
    pub async fn question(
        &self,
        spec: &Spec,
        key: Option<&SecretText>,
        question: Question,
        until: Instant,
    ) -> Result<serde_json::Value, Failure> {
        let Question { method, url, body } = question;
        let asked = async {
            let headers = self.headers(spec, key)?;
            let timeouts = Timeouts { begin: until, idle: self.idle(), until };
            let ask = HttpRequest { method, url: &url, headers, body, timeouts };
            let sent = self.connections.send(ask).await;
            let mut answer = sent.map_err(|(fault, words)| FailedAttempt::new(fault, words))?;
            if answer.status() != 200 {
                return Err(FailedAttempt::read(answer, key.is_some()).await);
            }
            let body = answer.whole().await.map_err(FailedAttempt::without_detail)?;
            json::read_long(body, json::LISTING_VALUES_MAX)
                .await
                .map_err(|(fault, _)| FailedAttempt::without_detail(fault))
        };
        asked.await.map_err(|broken: FailedAttempt| {
            let detail = Detail::new(&broken.words, key.map(SecretText::expose));
            failure(spec, broken.fault, 1, detail)
        })
    }

    /// Returns the backoff after this number of attempts, for an endpoint that requests no wait.
    fn pause(&self, tries: u32) -> Duration {
        let first = Duration::from_millis(u64::from(self.config.backoff_ms));
        // A longer first pause from the settings is not shortened.
        let backoff = Backoff { first, factor: 2, longest: BACKOFF_MAX.max(first) };
        // Without random bytes there is no jitter, and the retries still work.
        backoff.jittered(tries, Jitter::Above, getrandom::u32().unwrap_or(0))
    }

    /// Returns the wait before the next attempt; `None` if there is no next attempt.
    fn wait(
        &self,
        fault: Fault,
        pause: Duration,
        budget: &AttemptBudget<'_>,
        limits: AttemptLimits,
    ) -> Option<Duration> {
        let asked = fault.retry_after().unwrap_or_default();
        let is_too_long = asked > RETRY_AFTER_MAX || (limits.has_others && asked > WAIT_BESIDE_OTHERS);
        let wait = asked.max(pause);
        let is_in_time = Instant::now() + wait < budget.until;
        (fault.is_transient() && budget.tries_left > 0 && !is_too_long && is_in_time).then_some(wait)
    }

    async fn attempt(
        &self,
        spec: &Spec,
        key: Option<&SecretText>,
        prompt: &Prompt,
        budget: &AttemptBudget<'_>,
        limits: AttemptLimits,
        options: RequestOptions,
    ) -> Result<Completed, FailedAttempt> {
        let (answer, sent) = self.request(spec, key, prompt, budget, limits, options).await?;
        let assembly = Assembly::new(budget.draft).waiting_for_thought(self.quirks.waits_for_thought());
        let mut assembly = assembly.bound_to(spec).offering(&prompt.tools);
        let mut skipped = 0;
        let read = reading::read(answer, self.protocol, &mut assembly, key.is_some(), &mut skipped).await;
        self.record_skipped(&spec.name, skipped);
        let (has_begun, counted, received) = (assembly.has_begun(), assembly.counted, assembly.bytes());
        let has_ended = assembly.has_ended();
        let took = usage(spec.prices, counted, sent, received);
        let broken = |(fault, words)| {
            let took = match (has_begun, has_ended) {
                (true, true) => took,
                // A count before the end may be incomplete.
                (true, false) => usage(spec.prices, counted.at_least(sent, received), sent, received),
                (false, _) => usage_without_answer(fault, prompt, spec),
            };
            FailedAttempt { took, ..FailedAttempt::new(fault, words) }
        };
        if let Err((Fault::Late, _)) = read
            && !limits.has_others
            && prompt.purpose == Purpose::Reply
        {
            let took = usage(spec.prices, counted.at_least(sent, received), sent, received);
            return assembly
                .unfinished()
                .map(|output| Completed { output, took, counted: None, context: None, is_whole: false })
                .ok_or_else(|| broken((Fault::Late, String::new())));
        }
        read.map_err(|refused| broken(refused).for_request(|| carried(spec, prompt, options)))?;
        let [input, made] = [counted.input, counted.output].map(|count| count.unwrap_or_default().min(TOKENS_MAX));
        let is_full = is_end_of_context(input, made, u64::from(options.output_tokens_max));
        let mut output = assembly.finish().map_err(|fault| {
            let fault = if fault == Fault::Truncated && is_full { Fault::ContextTooLong } else { fault };
            broken((fault, String::new()))
        })?;
        let is_full = is_full && output.cut == Some(Cut::Length);
        if is_full && output.text.trim().len() < FEW_WORDS_BYTES {
            return Err(broken((Fault::ContextTooLong, String::new())));
        }
        let context = is_full.then(|| ContextSign::Ended(rounded(input + made)));
        output.has_written_call =
            output.calls.is_empty() && written_calls::is_in(output.shown_or_thought(), &prompt.tools);
        Ok(Completed { output, took, counted: counted.input, context, is_whole: true })
    }

    /// Counts skipped lines, and logs the first ones. The log has no word of them.
    fn record_skipped(&self, name: &str, lines: u64) {
        if lines > 0 && self.skipped_lines.fetch_add(lines, Ordering::Relaxed) == 0 {
            tracing::info!(
                model = name,
                lines,
                "an answer of a model had lines that are no part of it; this is logged once"
            );
        }
    }

    /// Sends one request. Returns its successful answer before the body is read, and the number of bytes for an estimate of the tokens sent.
    async fn request(
        &self,
        spec: &Spec,
        key: Option<&SecretText>,
        prompt: &Prompt,
        budget: &AttemptBudget<'_>,
        limits: AttemptLimits,
        options: RequestOptions,
    ) -> Result<(Answer, usize), FailedAttempt> {
        let headers = self.headers(spec, key)?;
        let endpoint = Some(endpoint_digest(spec));
        let body = match self.protocol {
            Protocol::Chat => openai::request_text(prompt, &spec.model, options, endpoint),
            Protocol::Messages => {
                anthropic::request_to(prompt, &spec.model, options, endpoint).to_string().into_bytes()
            }
        };
        let sent = prompt.counted_bytes(body.len(), spec.takes_images);
        let timeouts = self.timeouts(spec, budget, limits);
        let ask = HttpRequest { method: Method::POST, url: &self.url, headers, body, timeouts };
        if Instant::now() >= budget.until {
            return Err(FailedAttempt::without_detail(Fault::Silent));
        }
        let answer = self.connections.send(ask).await.map_err(|(fault, words)| {
            let took = usage_without_answer(fault, prompt, spec);
            FailedAttempt { took, ..FailedAttempt::new(fault, words) }
        })?;
        if (200..300).contains(&answer.status()) {
            return Ok((answer, sent));
        }
        let mut broken = FailedAttempt::read(answer, key.is_some()).await;
        broken.complaint = broken.complaint.filter(|complaint| match (complaint, self.protocol) {
            (Complaint::LimitSize, Protocol::Chat | Protocol::Messages) => true,
            (_, Protocol::Messages) => false,
            (Complaint::Usage, Protocol::Chat) => spec.streams,
            (_, Protocol::Chat) => true,
        });
        Err(broken.for_request(|| carried(spec, prompt, options)))
    }

    fn idle(&self) -> Duration {
        Duration::from_millis(u64::from(self.config.idle_ms))
    }

    fn timeouts(&self, spec: &Spec, budget: &AttemptBudget<'_>, limits: AttemptLimits) -> Timeouts {
        let now = Instant::now();
        let begin_ms = if spec.streams { self.config.first_byte_ms } else { self.config.whole_ms };
        let begin = now + Duration::from_millis(u64::from(begin_ms));
        // The next endpoint of the chain needs time too.
        let half = now + budget.until.saturating_duration_since(now) / 2;
        let all_ms = if spec.streams { self.config.stream_ms } else { self.config.whole_ms };
        let until = budget.until.min(now + Duration::from_millis(u64::from(all_ms)));
        let until = if limits.has_others { until.min(half) } else { until };
        Timeouts { begin: begin.min(until), idle: self.idle(), until }
    }

    fn headers(&self, spec: &Spec, key: Option<&SecretText>) -> Result<HeaderMap, FailedAttempt> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Protocol::Messages = self.protocol {
            headers.insert("anthropic-version", HeaderValue::from_static(anthropic::VERSION));
        }
        let key = match key {
            Some(key) => key.expose(),
            None if spec.key.is_some() => return Err(FailedAttempt::without_detail(Fault::NoKey)),
            None => return Ok(headers),
        };
        let (name, value) = match self.quirks.values().key_header {
            Some(KeyHeader::Bearer) | None => (AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {key}"))),
            Some(header) => (HeaderName::from_static(header.name()), HeaderValue::from_str(key)),
        };
        let mut value = value.map_err(|_| FailedAttempt::without_detail(Fault::KeyUnusable))?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(headers)
    }
}

/// Returns what a request has of the state of earlier outputs.
fn carried(spec: &Spec, prompt: &Prompt, options: RequestOptions) -> Carried {
    let rendered = render::messages(prompt, spec.takes_images);
    Carried::read(&rendered, Some(endpoint_digest(spec)), options.rules())
}

/// Returns whether the server had an internal error without a better name, and requested no wait.
fn is_internal(fault: Fault) -> bool {
    fault == Fault::ServerError { status: server_errors::INTERNAL, retry_after: None }
}

/// Estimates the usage of an attempt without an answer: a silent endpoint may still have worked.
fn usage_without_answer(fault: Fault, prompt: &Prompt, spec: &Spec) -> Usage {
    if fault.may_have_cost() { prompt.estimate(spec.prices, spec.takes_images) } else { Usage::default() }
}

/// Makes the failure of an endpoint.
pub fn failure(spec: &Spec, fault: Fault, tries: u32, detail: Detail) -> Failure {
    let (endpoint, model, key) = (spec.name.clone(), spec.model.clone(), spec.key.clone());
    Failure { endpoint, model, key, fault, tries, detail }
}

/// Returns the tokens and their cost, as the provider counted them; missing counts are estimated.
pub fn usage(prices: Prices, counted: TokenCounts, sent: usize, received: usize) -> Usage {
    let count = |count: Option<u64>, bytes: usize| {
        let count = count.filter(|tokens| *tokens > 0).unwrap_or_else(|| tokens_estimated(bytes));
        count.min(TOKENS_MAX)
    };
    let (input_tokens, output_tokens) = (count(counted.input, sent), count(counted.output, received));
    Usage { input_tokens, output_tokens, cost_micros: prices.cost(input_tokens, output_tokens) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_usage_is_estimated_and_prices_round_up() {
        let prices = Prices { input: 3_000_000, output: 15_000_000 };
        let counted = TokenCounts { input: Some(10), output: Some(2) };
        let took = usage(prices, counted, 1000, 1000);
        assert_eq!((took.input_tokens, took.output_tokens, took.cost_micros), (10, 2, 60));
        let took = usage(Prices { input: 1, output: 0 }, TokenCounts::default(), 9, 4);
        assert_eq!((took.input_tokens, took.output_tokens, took.cost_micros), (3, 1, 1));
        let counted = TokenCounts { input: Some(u64::MAX), output: Some(u64::MAX) };
        assert_eq!(usage(prices, counted, 0, 0).input_tokens, TOKENS_MAX);
    }
}
