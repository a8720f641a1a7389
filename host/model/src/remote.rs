//! An endpoint behind a network: one request, its retries and their time limit.
//!
//! Never retries what cannot succeed, and never waits beyond the caller's deadline. See [`crate::http`] for the
//! connections, [`crate::openai`] and [`crate::anthropic`] for the two formats.

use super::assembly::{Assembly, Counted};
use super::attempt::{AttemptBudget, AttemptLimits};
use super::backoff::{Backoff, Jitter};
use super::breaker::Breaker;
use super::endpoint::{Kind, Prices, Spec};
use super::events::Events;
use super::fault::{Detail, Failure, Fault};
use super::http::{Answer, Ask, Connections, STREAM_BYTES_MAX, Waits};
use super::manners::Manners;
use super::openai::{self, Habits, Step};
use super::refused::{About, Said, retry_after};
use super::{Config, Output, Prompt, Usage, anthropic, json, tokens_estimated};
use ironclaw_contract::seam::socket::Purpose;
use ironclaw_text::secret::SecretText;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use url::Url;

/// The longest pause between two attempts that the endpoint did not ask for.
const BACKOFF_MAX: Duration = Duration::from_secs(20);
/// The longest wait that is kept while another endpoint can be asked instead.
const WAIT_BESIDE_OTHERS: Duration = Duration::from_secs(2);
/// Longest wait for the usage after the end of a stream, from servers that do not close it.
const USAGE_WAIT: Duration = Duration::from_secs(2);
/// Longest wait for the end of the body after the last event; then the connection is not used again.
const CLOSE_WAIT: Duration = Duration::from_millis(100);
/// Tokens of one request that are believed.
const TOKENS_MAX: u64 = 1_000_000_000;
/// Models that a listing gives.
const MODELS_MAX: usize = 1000;
/// Host name of the API that wants ids of nine characters.
const SHORT_IDS: &str = "mistral.ai";

/// Address of an endpoint, and how it has behaved.
#[derive(Debug)]
pub struct Remote {
    speaks: Speaks,
    url: Url,
    models: Url,
    short_ids: bool,
    manners: Manners,
    connections: Arc<Connections>,
    config: Arc<Config>,
    /// Whether it should be asked.
    pub breaker: Breaker,
}

#[derive(Debug, Clone, Copy)]
enum Speaks {
    Chat,
    Messages,
}

/// An output that one try made.
struct Made {
    output: Output,
    took: Usage,
    /// Whether it ended by itself in time.
    is_whole: bool,
}

/// One try that came to nothing.
struct Broken {
    fault: Fault,
    words: String,
    took: Usage,
    about: Option<About>,
}

impl From<(Fault, String)> for Broken {
    fn from((fault, words): (Fault, String)) -> Self {
        Self { fault, words, took: Usage::default(), about: None }
    }
}

impl Remote {
    /// Makes an endpoint of this kind at a base URL that was checked; `None` for a script.
    pub fn new(kind: Kind, base: &Url, connections: Arc<Connections>, config: Arc<Config>) -> Option<Self> {
        let (speaks, action) = match kind {
            Kind::Openai => (Speaks::Chat, "chat/completions"),
            Kind::Anthropic => (Speaks::Messages, "messages"),
            Kind::Scripted => return None,
        };
        let rest = Duration::from_millis(u64::from(config.rest_ms));
        Some(Self {
            speaks,
            url: below(base, speaks, action),
            models: below(base, speaks, "models"),
            short_ids: base.host_str().is_some_and(|host| host.ends_with(SHORT_IDS)),
            manners: Manners::default(),
            connections,
            breaker: Breaker::new(config.failures_max, rest),
            config,
        })
    }

    /// Asks for one output, as often as limits and budget allow.
    pub async fn ask(
        &self,
        spec: &Spec,
        key: Option<&SecretText>,
        prompt: &Prompt,
        budget: &mut AttemptBudget<'_>,
        limits: AttemptLimits,
    ) -> Result<Output, Failure> {
        let (mut tries, mut output_tokens_max) = (0, limits.output_tokens_max);
        loop {
            tries += 1;
            budget.tries_left = budget.tries_left.saturating_sub(1);
            budget.draft.begin();
            let habits = |bound| self.manners.habits(spec.streams, self.short_ids, bound);
            let asked = habits(output_tokens_max);
            let broken = match self.attempt(spec, key, prompt, budget, limits, asked).await {
                Ok(Made { output, took, is_whole }) => {
                    // One that ran out of time does not say that the endpoint is well.
                    if is_whole {
                        self.breaker.well();
                    }
                    budget.usage = budget.usage.plus(took);
                    return Ok(output);
                }
                Err(broken) => broken,
            };
            budget.usage = budget.usage.plus(broken.took);
            self.manners.learn(broken.about, &mut output_tokens_max);
            if broken.about.is_some() && habits(output_tokens_max) != asked {
                // A refusal of this kind does not count as an attempt: it says how to ask.
                (tries, budget.tries_left) = (tries - 1, budget.tries_left + 1);
                continue;
            }
            let fault = broken.fault;
            if fault.is_illness() {
                self.breaker.failed(Instant::now());
            }
            let wait = self.wait(fault, self.pause(tries), budget, limits).filter(|_| tries < limits.tries);
            // Each try is a request that may have its price.
            let wait = wait.filter(|_| budget.has_room(prompt, spec.prices));
            let Some(wait) = wait else {
                let detail = Detail::new(&broken.words, key.map(SecretText::expose));
                return Err(failure(spec, fault, tries, detail));
            };
            sleep(wait).await;
        }
    }

    /// Asks for the names of the models that it has, as far as it tells.
    pub async fn models(&self, spec: &Spec, key: Option<&SecretText>, until: Instant) -> Result<Vec<String>, Failure> {
        let listed = async {
            let headers = self.headers(spec, key)?;
            let waits = Waits { begin: until, idle: self.idle(), until };
            let ask = Ask { method: Method::GET, url: &self.models, headers, body: Vec::new(), waits };
            let mut answer = self.connections.send(ask).await?;
            if answer.status() != 200 {
                return Err(refused(answer, key.is_some()).await);
            }
            let body = answer.whole().await.map_err(nothing_said)?;
            let body =
                json::read_long(body, json::LISTING_VALUES_MAX).await.map_err(|(fault, _)| nothing_said(fault))?;
            let data = body["data"].as_array().ok_or_else(|| nothing_said(Fault::Malformed))?;
            let names = data.iter().filter_map(|model| model["id"].as_str()).take(MODELS_MAX);
            Ok(names.map(str::to_owned).collect())
        };
        listed.await.map_err(|broken: Broken| {
            let detail = Detail::new(&broken.words, key.map(SecretText::expose));
            failure(spec, broken.fault, 1, detail)
        })
    }

    /// Returns the pause after this many tries, where the endpoint asks for none.
    fn pause(&self, tries: u32) -> Duration {
        let first = Duration::from_millis(u64::from(self.config.backoff_ms));
        // A first pause that the operator made longer is not shortened.
        let backoff = Backoff { first, factor: 2, longest: BACKOFF_MAX.max(first) };
        // Without random bytes many come back at once; they come back all the same.
        backoff.jittered(tries, Jitter::Above, getrandom::u32().unwrap_or(0))
    }

    /// Returns how long to wait before the next try; `None` when there shall be none.
    fn wait(
        &self,
        fault: Fault,
        pause: Duration,
        budget: &AttemptBudget<'_>,
        limits: AttemptLimits,
    ) -> Option<Duration> {
        let asked = fault.retry_after().unwrap_or_default();
        let is_too_long = asked > Duration::from_millis(u64::from(self.config.retry_after_ms_max))
            || (limits.has_others && asked > WAIT_BESIDE_OTHERS);
        let wait = asked.max(pause);
        let is_in_time = Instant::now() + wait < budget.until;
        (fault.may_pass() && budget.tries_left > 0 && !is_too_long && is_in_time).then_some(wait)
    }

    async fn attempt(
        &self,
        spec: &Spec,
        key: Option<&SecretText>,
        prompt: &Prompt,
        budget: &AttemptBudget<'_>,
        limits: AttemptLimits,
        habits: Habits,
    ) -> Result<Made, Broken> {
        let (answer, sent) = self.request(spec, key, prompt, budget, limits, habits).await?;
        let mut assembly = Assembly::new(budget.draft);
        let read = if answer.is_stream() {
            self.read_stream(answer, &mut assembly, key.is_some()).await
        } else {
            self.read_whole(answer, &mut assembly, key.is_some()).await
        };
        let (has_begun, counted, received) = (assembly.has_begun(), assembly.counted, assembly.bytes());
        let has_ended = assembly.has_ended();
        let took = usage(spec.prices, counted, sent, received);
        let broken = |(fault, words)| {
            let took = match (has_begun, has_ended) {
                (true, true) => took,
                // A count from before the end may be incomplete.
                (true, false) => usage(spec.prices, counted.at_least(sent, received), sent, received),
                (false, _) => unheard(fault, prompt, spec.prices),
            };
            Broken { took, ..Broken::from((fault, words)) }
        };
        if let Err((Fault::Late, _)) = read
            && !limits.has_others
            && prompt.purpose == Purpose::Reply
        {
            let took = usage(spec.prices, counted.at_least(sent, received), sent, received);
            return assembly
                .unfinished()
                .map(|output| Made { output, took, is_whole: false })
                .ok_or_else(|| broken((Fault::Late, String::new())));
        }
        read.map_err(broken)?;
        let output = assembly.finish().map_err(|fault| broken((fault, String::new())))?;
        Ok(Made { output, took, is_whole: true })
    }

    /// Sends one request; gives the answer, which has begun well, and the bytes that were sent.
    async fn request(
        &self,
        spec: &Spec,
        key: Option<&SecretText>,
        prompt: &Prompt,
        budget: &AttemptBudget<'_>,
        limits: AttemptLimits,
        habits: Habits,
    ) -> Result<(Answer, usize), Broken> {
        let headers = self.headers(spec, key)?;
        let body = match self.speaks {
            Speaks::Chat => openai::request(prompt, &spec.model, habits),
            Speaks::Messages => anthropic::request(prompt, &spec.model, spec.streams, limits.output_tokens_max),
        };
        let body = body.to_string().into_bytes();
        let sent = body.len();
        let waits = self.waits(spec, budget, limits);
        let ask = Ask { method: Method::POST, url: &self.url, headers, body, waits };
        if Instant::now() >= budget.until {
            return Err(nothing_said(Fault::Silent));
        }
        let answer = self.connections.send(ask).await.map_err(|(fault, words)| {
            let took = unheard(fault, prompt, spec.prices);
            Broken { took, ..Broken::from((fault, words)) }
        })?;
        if (200..300).contains(&answer.status()) {
            return Ok((answer, sent));
        }
        let mut broken = refused(answer, key.is_some()).await;
        broken.about = broken.about.filter(|about| match (about, self.speaks) {
            (_, Speaks::Messages) => false,
            (About::Usage, Speaks::Chat) => spec.streams,
            (About::LimitField | About::LimitSize, Speaks::Chat) => true,
        });
        Err(broken)
    }

    async fn read_whole(
        &self,
        mut answer: Answer,
        assembly: &mut Assembly<'_>,
        has_key: bool,
    ) -> Result<(), (Fault, String)> {
        let unsaid = |fault| (fault, String::new());
        let body = answer.whole().await.map_err(unsaid)?;
        let body = json::read_long(body, json::ANSWER_VALUES_MAX).await?;
        if let Some(said) = Said::in_answer(&body) {
            return Err((said.fault_inside(has_key), said.words));
        }
        let read = match self.speaks {
            Speaks::Chat => openai::whole(&body, assembly),
            Speaks::Messages => anthropic::whole(&body, assembly),
        };
        read.map_err(unsaid)
    }

    async fn read_stream(
        &self,
        mut answer: Answer,
        assembly: &mut Assembly<'_>,
        has_key: bool,
    ) -> Result<(), (Fault, String)> {
        let unsaid = |fault| (fault, String::new());
        let mut events = Events::default();
        loop {
            while let Some(data) = events.next() {
                if self.take_event(&data, assembly, has_key)? == Step::Done {
                    // A body that was read to its end leaves the connection usable.
                    let _ = timeout(CLOSE_WAIT, answer.piece(STREAM_BYTES_MAX)).await;
                    return Ok(());
                }
            }
            if assembly.has_ended() {
                answer.wait_at_most(USAGE_WAIT);
            }
            let taken = match answer.piece(STREAM_BYTES_MAX).await {
                Ok(Some(piece)) => events.push(&piece),
                Ok(None) => return Ok(()),
                Err(fault) => Err(fault),
            };
            match taken {
                Ok(()) => {}
                // It is whole; only the usage is missing.
                Err(_) if assembly.has_ended() => return Ok(()),
                Err(fault) => return Err(unsaid(fault)),
            }
        }
    }

    /// Takes one event, which is read once: it may be an error, or the next piece of the answer.
    fn take_event(&self, data: &str, assembly: &mut Assembly<'_>, has_key: bool) -> Result<Step, (Fault, String)> {
        let unsaid = |fault| (fault, String::new());
        if let Speaks::Chat = self.speaks
            && openai::is_last(data, assembly)
        {
            return Ok(Step::Done);
        }
        let body = json::read(data.as_bytes(), json::ANSWER_VALUES_MAX).map_err(|(fault, _)| unsaid(fault))?;
        if let Some(said) = Said::in_answer(&body) {
            return Err((said.fault_inside(has_key), said.words));
        }
        let step = match self.speaks {
            Speaks::Chat => openai::event(&body, assembly),
            Speaks::Messages => anthropic::event(&body, assembly),
        };
        step.map_err(unsaid)
    }

    fn idle(&self) -> Duration {
        Duration::from_millis(u64::from(self.config.idle_ms))
    }

    fn waits(&self, spec: &Spec, budget: &AttemptBudget<'_>, limits: AttemptLimits) -> Waits {
        let now = Instant::now();
        let begin_ms = if spec.streams { self.config.first_byte_ms } else { self.config.whole_ms };
        let begin = now + Duration::from_millis(u64::from(begin_ms));
        // The next endpoint needs time as well.
        let half = now + budget.until.saturating_duration_since(now) / 2;
        let all_ms = if spec.streams { self.config.stream_ms } else { self.config.whole_ms };
        let until = budget.until.min(now + Duration::from_millis(u64::from(all_ms)));
        let until = if limits.has_others { until.min(half) } else { until };
        Waits { begin: begin.min(until), idle: self.idle(), until }
    }

    fn headers(&self, spec: &Spec, key: Option<&SecretText>) -> Result<HeaderMap, Broken> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Speaks::Messages = self.speaks {
            headers.insert("anthropic-version", HeaderValue::from_static(anthropic::VERSION));
        }
        let key = match key {
            Some(key) => key.expose(),
            None if spec.key.is_some() => return Err(nothing_said(Fault::NoKey)),
            None => return Ok(headers),
        };
        let (name, value) = match self.speaks {
            Speaks::Chat => (AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {key}"))),
            Speaks::Messages => (HeaderName::from_static("x-api-key"), HeaderValue::from_str(key)),
        };
        let mut value = value.map_err(|_| nothing_said(Fault::KeyUnusable))?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(headers)
    }
}

fn nothing_said(fault: Fault) -> Broken {
    Broken::from((fault, String::new()))
}

/// Estimates the usage of a try without an answer: an endpoint that says nothing may have worked all the same.
fn unheard(fault: Fault, prompt: &Prompt, prices: Prices) -> Usage {
    if fault.may_have_worked() { prompt.estimate(prices) } else { Usage::default() }
}

async fn refused(answer: Answer, has_key: bool) -> Broken {
    let status = answer.status();
    let wait = retry_after(answer.headers(), jiff::Timestamp::now());
    let said = Said::read(&answer.error().await);
    let usage = said.is_about_usage().then_some(About::Usage);
    let about = usage.or_else(|| said.about_limit()).filter(|_| matches!(status, 400 | 422));
    let fault = said.fault(status, wait, has_key);
    Broken { about, ..Broken::from((fault, said.words)) }
}

/// Makes the failure of an endpoint that had no output to give.
pub fn failure(spec: &Spec, fault: Fault, tries: u32, detail: Detail) -> Failure {
    let (endpoint, model, key) = (spec.name.clone(), spec.model.clone(), spec.key.clone());
    Failure { endpoint, model, key, fault, tries, detail }
}

/// Returns tokens as the provider counted them, estimated where it did not, and what they cost.
pub fn usage(prices: Prices, counted: Counted, sent: usize, received: usize) -> Usage {
    let told = |told: Option<u64>, bytes: usize| {
        let told = told.filter(|tokens| *tokens > 0).unwrap_or_else(|| tokens_estimated(bytes));
        told.min(TOKENS_MAX)
    };
    let (input_tokens, output_tokens) = (told(counted.input, sent), told(counted.output, received));
    Usage { input_tokens, output_tokens, cost_micros: prices.cost(input_tokens, output_tokens) }
}

/// Returns a path of the API below a base, however much of it the base holds already.
fn below(base: &Url, speaks: Speaks, action: &str) -> Url {
    let mut url = base.clone();
    let path = base.path().trim_end_matches('/');
    let path = match speaks {
        Speaks::Chat => {
            let path = path.strip_suffix("/chat/completions").unwrap_or(path);
            if path.is_empty() { "/v1" } else { path }.to_owned()
        }
        Speaks::Messages => {
            let path = path.strip_suffix("/messages").unwrap_or(path);
            format!("{}/v1", path.strip_suffix("/v1").unwrap_or(path))
        }
    };
    url.set_path(&format!("{path}/{action}"));
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_may_hold_more_or_less_of_the_path() {
        let path = |base: &str, speaks, action| below(&Url::parse(base).expect(base), speaks, action).to_string();
        for base in ["http://[::1]:80", "http://[::1]/v1", "http://[::1]/v1/", "http://[::1]/v1/chat/completions"] {
            assert_eq!(path(base, Speaks::Chat, "chat/completions"), "http://[::1]/v1/chat/completions", "{base}");
        }
        let gateway = path("https://a.example/openai/v1", Speaks::Chat, "models");
        assert_eq!(gateway, "https://a.example/openai/v1/models");
        for base in ["https://a.example", "https://a.example/v1", "https://a.example/v1/messages"] {
            assert_eq!(path(base, Speaks::Messages, "messages"), "https://a.example/v1/messages", "{base}");
        }
    }

    #[test]
    fn missing_usage_is_estimated_and_prices_round_up() {
        let prices = Prices { input: 3_000_000, output: 15_000_000 };
        let counted = Counted { input: Some(10), output: Some(2) };
        let took = usage(prices, counted, 1000, 1000);
        assert_eq!((took.input_tokens, took.output_tokens, took.cost_micros), (10, 2, 60));
        let took = usage(Prices { input: 1, output: 0 }, Counted::default(), 9, 4);
        assert_eq!((took.input_tokens, took.output_tokens, took.cost_micros), (3, 1, 1));
        let counted = Counted { input: Some(u64::MAX), output: Some(u64::MAX) };
        assert_eq!(usage(prices, counted, 0, 0).input_tokens, TOKENS_MAX);
    }
}
