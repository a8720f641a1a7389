//! The model endpoints, their specs, and requests to a chain of them.
//!
//! Never looks up a secret: the caller provides the key of each candidate. See [`crate::remote`] and
//! [`crate::scripted`].

use super::attempt::{AttemptBudget, AttemptLimits};
use super::breaker::Availability;
use super::context_size;
use super::endpoint_quirks::{Change, InUse, Observation};
use super::fault::{Detail, Failed, Failure, Fault};
use super::http::Connections;
use super::quirks::Values;
use super::remote::{Remote, failure, usage};
use super::scripted::{self, Scripted};
use super::stated_context::{self, StatedContext};
use super::streaming::PartialAnswer;
use super::{Allowance, Answered, Config, Error, Output, Part, Prompt, ToolSchema, Usage, read_script};
use ironclaw_contract::seam::socket::Purpose;
use ironclaw_net::check_url;
use ironclaw_text::secret::SecretText;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

pub use super::prices::Prices;
pub use super::spec::{EndpointSettings, Kind, Spec};

const CHAIN_MAX: usize = 8;
/// Attempts at an endpoint that others follow in the chain.
const TRIES_BESIDE_OTHERS: u32 = 2;
/// Longest time of a test; a local server may need to load its model first.
const PROBE_SECONDS_MAX: u64 = 120;
/// Most tokens of the answer to a test.
const PROBE_TOKENS_MAX: u32 = 32;
/// Longest time of a request for the list of models.
const MODELS_SECONDS_MAX: u64 = 15;
/// Longest time of the question how many tokens a model reads.
const CONTEXT_SECONDS_MAX: u64 = 10;

#[derive(Debug)]
pub struct Endpoint {
    pub spec: Spec,
    backend: Backend,
    tries_max: u32,
    output_tokens_max: u32,
}

#[derive(Debug)]
enum Backend {
    Scripted(Arc<Scripted>),
    Remote(Box<Remote>),
    /// The spec in the record is not valid, for this reason.
    Broken(String),
    /// Its key is stored and cannot be read.
    Locked,
}

/// An endpoint of a chain with its key.
#[derive(Debug)]
pub struct Candidate {
    pub endpoint: Arc<Endpoint>,
    /// Its key, if it has one.
    pub key: Option<SecretText>,
    /// The tokens that its model reads, if its answers showed it.
    pub context_tokens: Option<u64>,
}

/// Result of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The answer; it is not checked.
    pub output: Output,
    /// Usage of the test.
    pub usage: Usage,
    /// Duration of the test.
    pub took: Duration,
}

/// The configured endpoints, by name.
#[derive(Debug)]
pub struct Endpoints {
    by_name: BTreeMap<String, Arc<Endpoint>>,
}

/// Opens every endpoint; `scripted` is always one of them.
///
/// # Errors
/// [`Error::Unreadable`] and [`Error::Script`] for the operator's script, [`Error::Spec`] for an invalid spec.
pub fn open(config: &Config, specs: Vec<Spec>) -> Result<Endpoints, Error> {
    let opener = Opener::new(config)?;
    let mut endpoints = Endpoints { by_name: BTreeMap::new() };
    for spec in std::iter::once(Spec::builtin()).chain(specs) {
        let backend = opener.open(&spec).map_err(|why| Error::Spec { name: spec.name.clone(), why })?;
        endpoints.put(opener.endpoint(spec, backend));
    }
    Ok(endpoints)
}

/// Opens the endpoints of the record. One that cannot be opened keeps its name and fails at each request, so that the others still
/// work. A caller that already knows why a spec is invalid passes the reason.
///
/// # Errors
/// [`Error::Unreadable`] and [`Error::Script`] for the operator's script.
pub fn open_stored(config: &Config, stored: Vec<(Spec, Option<String>)>) -> Result<Endpoints, Error> {
    let opener = Opener::new(config)?;
    let mut endpoints = Endpoints { by_name: BTreeMap::new() };
    for (spec, why) in stored {
        let opened = why.map_or_else(|| opener.open(&spec), Err);
        let backend = opened.unwrap_or_else(|why| {
            tracing::error!(model = spec.name, why, "a model endpoint cannot be opened");
            Backend::Broken(why)
        });
        endpoints.put(opener.endpoint(spec, backend));
    }
    // Last, because no stored endpoint may replace it.
    endpoints.put(opener.endpoint(Spec::builtin(), Backend::Scripted(Arc::clone(&opener.script))));
    Ok(endpoints)
}

/// Parts that all endpoints share.
struct Opener {
    script: Arc<Scripted>,
    config: Arc<Config>,
    connections: Arc<Connections>,
}

impl Opener {
    fn new(config: &Config) -> Result<Self, Error> {
        let script = match &config.script {
            None => Scripted::builtin(),
            Some(path) => {
                let text = read_script(path).map_err(|source| Error::Unreadable { path: path.clone(), source })?;
                Scripted::parse(&text).map_err(|source| Error::Script { path: path.clone(), source })?
            }
        };
        let config = Arc::new(config.clone());
        Ok(Self { script: Arc::new(script), connections: Arc::new(Connections::new()), config })
    }

    /// Returns the backend of an endpoint with this spec.
    ///
    /// # Errors
    /// The reason that the spec is invalid.
    fn open(&self, spec: &Spec) -> Result<Backend, String> {
        match (&spec.base_url, spec.kind) {
            (_, Kind::Scripted) => Ok(Backend::Scripted(Arc::clone(&self.script))),
            (_, Kind::Openai | Kind::Anthropic) if spec.name == scripted::NAME => {
                Err("this name belongs to the built-in script".to_owned())
            }
            (None, Kind::Openai | Kind::Anthropic) => Err("it has no base URL".to_owned()),
            (Some(base), Kind::Openai | Kind::Anthropic) => {
                check_url(base)?;
                Values::read(&spec.settings.quirks, spec.kind).map_err(|refused| refused.why)?;
                let remote = Remote::new(spec, base, Arc::clone(&self.connections), Arc::clone(&self.config));
                Ok(Backend::Remote(Box::new(remote.ok_or("its kind has no network")?)))
            }
        }
    }

    fn endpoint(&self, spec: Spec, backend: Backend) -> Endpoint {
        let tries_max = self.config.tries_max;
        let output_tokens_max = spec.settings.output_tokens_max.unwrap_or(self.config.output_tokens_max);
        Endpoint { spec, backend, tries_max, output_tokens_max }
    }
}

impl Endpoints {
    fn put(&mut self, endpoint: Endpoint) {
        self.by_name.insert(endpoint.spec.name.clone(), Arc::new(endpoint));
    }

    /// Returns the names of the endpoints that cannot be used, with the reasons.
    pub fn broken(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_name.values().filter_map(|endpoint| match &endpoint.backend {
            Backend::Broken(why) => Some((endpoint.spec.name.as_str(), why.as_str())),
            Backend::Scripted(_) | Backend::Remote(_) | Backend::Locked => None,
        })
    }

    /// Returns the endpoint with exactly this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Endpoint>> {
        self.by_name.get(name)
    }

    /// Returns the names of all endpoints, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Returns the endpoint with this name and its fallbacks, in the order of requests; empty if there is no such endpoint. Its own
    /// fallbacks precede their fallbacks, and no endpoint is in the chain twice.
    pub fn chain(&self, name: &str) -> Vec<Arc<Endpoint>> {
        let mut chain: Vec<Arc<Endpoint>> = self.get(name).cloned().into_iter().collect();
        let mut at = 0;
        while let Some(endpoint) = chain.get(at).cloned() {
            for fallback in endpoint.spec.fallbacks.iter().filter_map(|name| self.get(name)) {
                if chain.len() < CHAIN_MAX && !chain.iter().any(|known| known.spec.name == fallback.spec.name) {
                    chain.push(Arc::clone(fallback));
                }
            }
            at += 1;
        }
        chain
    }
}

impl Endpoint {
    /// Returns this endpoint for a request whose stored key cannot be read.
    pub fn locked(&self) -> Self {
        Self { spec: self.spec.clone(), backend: Backend::Locked, ..*self }
    }

    /// Makes one small real request, without retries. It offers a tool, as requests of agents do.
    ///
    /// # Errors
    /// [`Error::Failed`] with one failure, which has the words of the provider for the operator.
    pub async fn probe(candidate: &Candidate) -> Result<Probe, Error> {
        let parameters = serde_json::json!({ "type": "object", "properties": {}, "additionalProperties": false });
        let tool = ToolSchema {
            name: "say_ready".to_owned(),
            description: "Does nothing. There is no need to call it.".to_owned(),
            parameters,
        };
        let prompt = Prompt {
            purpose: Purpose::Reply,
            system: "This is a test of the connection.".to_owned(),
            tools: vec![tool],
            parts: vec![Part::Person { text: "Reply with the single word: ready".to_owned() }],
        };
        let (begun, draft) = (Instant::now(), PartialAnswer::default());
        let until = begun + Duration::from_secs(PROBE_SECONDS_MAX);
        let allowance = Allowance::NONE;
        let mut budget = AttemptBudget { tries_left: 1, ..AttemptBudget::new(until, allowance, &draft) };
        let limits = AttemptLimits { tries: 1, has_others: false, output_tokens_max: PROBE_TOKENS_MAX };
        match candidate.ask(&prompt, &mut budget, limits).await {
            Ok(output) => Ok(Probe { output, usage: budget.usage, took: begun.elapsed() }),
            // The test bounds the answer, so a truncated one is a success.
            Err(failure) if failure.fault == Fault::Truncated => {
                Ok(Probe { output: Output::default(), usage: budget.usage, took: begun.elapsed() })
            }
            Err(failure) => Err(Error::Failed(Failed { failures: vec![failure], usage: budget.usage })),
        }
    }

    /// Requests the names of the models of the server; a script has none.
    ///
    /// # Errors
    /// As [`Self::probe`].
    pub async fn models(candidate: &Candidate) -> Result<Vec<String>, Error> {
        let Endpoint { spec, backend, .. } = &*candidate.endpoint;
        let Backend::Remote(remote) = backend else { return Ok(Vec::new()) };
        let until = Instant::now() + Duration::from_secs(MODELS_SECONDS_MAX);
        let failed = |failure| Error::Failed(Failed { failures: vec![failure], usage: Usage::default() });
        remote.models(spec, candidate.key.as_ref(), until).await.map_err(failed)
    }

    /// Asks the server how many tokens its model reads; `None` if it does not say it at the places of its profile.
    pub async fn stated_context(candidate: &Candidate) -> Option<StatedContext> {
        let Endpoint { spec, backend, .. } = &*candidate.endpoint;
        let Backend::Remote(remote) = backend else { return None };
        let until = Instant::now() + Duration::from_secs(CONTEXT_SECONDS_MAX);
        for (place, question) in stated_context::questions(spec) {
            if let Ok(answer) = remote.question(spec, candidate.key.as_ref(), question, until).await
                && let Some(stated) = stated_context::read(place, &answer, &spec.model)
            {
                return Some(stated);
            }
        }
        None
    }

    /// Returns its quirks with their values; none if it has no server.
    pub fn quirks(&self) -> Vec<InUse> {
        self.remote().map(|remote| remote.quirks.in_use()).unwrap_or_default()
    }

    /// Takes over what the record has about its answers.
    pub fn recall(&self, observed: Vec<Observation>) {
        if let Some(remote) = self.remote() {
            remote.quirks.recall(observed);
        }
    }

    /// Returns what its answers showed and the record does not have yet. A later call does not return it again.
    pub fn take_changes(&self) -> Vec<Change> {
        self.remote().map(|remote| remote.quirks.take_changes()).unwrap_or_default()
    }

    /// Returns the most tokens of one output: its own bound, or the one of the host and at most a part of what its model reads. What
    /// answers showed leaves half of it for the prompt, whatever the operator set.
    pub fn output_tokens_max(&self, learned: Option<u64>) -> u32 {
        let (bound, settings) = (self.output_tokens_max, &self.spec.settings);
        let tokens = settings.context_tokens.into_iter().chain(learned).min();
        match (settings.output_tokens_max, tokens) {
            (None, Some(tokens)) => context_size::output_tokens_max(tokens, bound),
            (Some(_), _) => learned.map_or(bound, |tokens| context_size::output_tokens_max(tokens * 2, bound)),
            (None, None) => bound,
        }
    }

    /// Returns whether the host asks the others of a chain first, after repeated failures.
    pub fn is_resting(&self) -> bool {
        self.remote().is_some_and(|remote| remote.breaker.is_resting(Instant::now()))
    }

    fn remote(&self) -> Option<&Remote> {
        match &self.backend {
            Backend::Remote(remote) => Some(remote),
            Backend::Scripted(_) | Backend::Broken(_) | Backend::Locked => None,
        }
    }

    fn availability(&self) -> Availability {
        match &self.backend {
            Backend::Scripted(_) | Backend::Broken(_) | Backend::Locked => Availability::Ready,
            Backend::Remote(remote) => remote.breaker.availability(Instant::now()),
        }
    }
}

impl Candidate {
    async fn ask(
        &self,
        prompt: &Prompt,
        budget: &mut AttemptBudget<'_>,
        limits: AttemptLimits,
    ) -> Result<Output, Failure> {
        let Endpoint { spec, backend, .. } = &*self.endpoint;
        let script = match backend {
            Backend::Remote(remote) => return remote.ask(spec, self.key.as_ref(), prompt, budget, limits).await,
            Backend::Broken(why) => return Err(failure(spec, Fault::Broken, 0, Detail::new(why, None))),
            Backend::Locked => return Err(failure(spec, Fault::KeyUnreadable, 0, Detail::default())),
            Backend::Scripted(script) => script,
        };
        budget.draft.begin();
        let wait = script.wait(prompt);
        let done = Instant::now() + wait;
        // A timer rounds its time up to the next millisecond.
        if !wait.is_zero() {
            sleep_until(done.min(budget.until)).await;
        }
        if done > budget.until {
            budget.usage = budget.usage.plus(spec.estimate(prompt));
            return Err(failure(spec, Fault::Late, 1, Detail::default()));
        }
        let output =
            script.generate(prompt).map_err(|why| failure(spec, Fault::Script, 1, Detail::new(&why.0, None)))?;
        budget.draft.push(&output.text);
        let received = output.text.len() + output.calls.iter().map(|call| call.arguments.len()).sum::<usize>();
        if spec.counts_tokens() {
            budget.usage = budget.usage.plus(usage(spec.prices, Default::default(), prompt.bytes(), received));
        }
        Ok(output)
    }
}

/// Bounds of one output.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub until: Instant,
    /// Bound on tokens and cost.
    pub allowance: Allowance,
}

/// Asks the candidates in order for one output, until one answers or a bound is reached. After the first attempt, it makes an attempt
/// only if the rest of the allowance covers it. Words go to the draft as they arrive.
///
/// A candidate that rests after repeated failures is asked after all others, and only once unless it is the last.
///
/// # Errors
/// [`Error::Failed`] if no candidate answers; the caller may send the prompt again.
pub async fn generate(
    candidates: &[Candidate],
    prompt: &Prompt,
    bounds: Bounds,
    draft: &PartialAnswer,
) -> Result<Answered, Error> {
    let Bounds { until, allowance } = bounds;
    let mut budget = AttemptBudget::new(until, allowance, draft);
    let mut failures: Vec<Failure> = Vec::new();
    let mut resting: Vec<&Candidate> = Vec::new();
    let mut waiting = candidates.iter();
    loop {
        let (candidate, availability) = match waiting.next() {
            Some(candidate) => (candidate, candidate.endpoint.availability()),
            None if resting.is_empty() => break,
            None => (resting.remove(0), Availability::Trial),
        };
        let tries_max = candidate.endpoint.tries_max;
        let others = waiting.len() + resting.len();
        let has_others = others > 0;
        let tries = match availability {
            Availability::Resting => {
                resting.push(candidate);
                continue;
            }
            Availability::Trial if has_others => 1,
            Availability::Ready if has_others => tries_max.min(TRIES_BESIDE_OTHERS),
            // The last endpoint gets all attempts, despite its earlier failures.
            Availability::Ready | Availability::Trial => tries_max,
        };
        let spec = &candidate.endpoint.spec;
        if budget.usage != Usage::default() && !budget.has_room(spec.estimate(prompt)) {
            failures.push(failure(spec, Fault::OverCeiling, 0, Detail::default()));
            continue;
        }
        // Even in a long chain, each following endpoint keeps one attempt.
        let left = u32::try_from(others).map_or(0, |others| budget.tries_left.saturating_sub(others));
        let tries = tries.min(left.max(1));
        let output_tokens_max = candidate.endpoint.output_tokens_max(candidate.context_tokens);
        let limits = AttemptLimits { tries, has_others, output_tokens_max };
        match candidate.ask(prompt, &mut budget, limits).await {
            Ok(output) => {
                let endpoint = candidate.endpoint.spec.name.clone();
                let AttemptBudget { usage, counted, context, .. } = budget;
                return Ok(Answered { output, endpoint, failures, usage, counted, context });
            }
            Err(failure) => failures.push(failure),
        }
        if budget.tries_left == 0 || Instant::now() >= until {
            break;
        }
    }
    Err(Error::Failed(Failed { failures, usage: budget.usage }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[tokio::test]
    async fn unopenable_endpoint_keeps_its_name_and_blocks_no_other() {
        let far = |name: &str| Spec {
            name: name.to_owned(),
            kind: Kind::Openai,
            base_url: Some("http://8.8.8.8/v1".parse().expect("a URL")),
            fallbacks: vec!["well".to_owned()],
            ..Spec::builtin()
        };
        let stored = vec![
            (far("far"), None),
            (far("odd"), Some("column kind".to_owned())),
            (far(scripted::NAME), None),
            (Spec { name: "well".to_owned(), ..Spec::builtin() }, None),
        ];
        let endpoints = open_stored(&Config::default(), stored).expect("opens");
        assert_eq!(endpoints.broken().map(|(name, _)| name).collect::<Vec<_>>(), ["far", "odd"]);
        let parts = vec![Part::Person { text: "echo a".to_owned() }];
        let prompt = Prompt { purpose: Purpose::Reply, system: String::new(), tools: Vec::new(), parts };
        let bounds = Bounds { until: Instant::now() + Duration::from_secs(60), allowance: Allowance::NONE };
        let candidate = |endpoint| Candidate { endpoint, key: None, context_tokens: None };
        let mut chain: Vec<Candidate> = endpoints.chain("odd").into_iter().map(candidate).collect();
        let answered = generate(&chain, &prompt, bounds, &PartialAnswer::default()).await.expect("an output");
        assert_eq!(answered.endpoint, "well");
        chain.truncate(1);
        let Err(Error::Failed(failed)) = generate(&chain, &prompt, bounds, &PartialAnswer::default()).await else {
            panic!("it answered")
        };
        assert!(failed.sentence().contains("`ironctl model remove odd`"), "{failed}");
    }

    #[tokio::test]
    async fn the_scripted_endpoint_is_always_there() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(b"[[rule]]\nwhen = '^ping$'\nreply = 'pong'").expect("written");
        let config = Config { script: Some(file.path().to_owned()), ..Config::default() };
        for (config, asked, answer) in [(Config::default(), "echo a", "a"), (config, "ping", "pong")] {
            let endpoints = open(&config, Vec::new()).expect("opens");
            assert_eq!(endpoints.names().collect::<Vec<_>>(), ["scripted"]);
            assert!(endpoints.get("Scripted").is_none() && endpoints.chain("Scripted").is_empty());
            let parts = vec![Part::Person { text: asked.to_owned() }];
            let prompt = Prompt { purpose: Purpose::Reply, system: String::new(), tools: Vec::new(), parts };
            let candidate = |endpoint| Candidate { endpoint, key: None, context_tokens: None };
            let candidates: Vec<Candidate> = endpoints.chain("scripted").into_iter().map(candidate).collect();
            let (until, draft) = (Instant::now() + Duration::from_secs(60), PartialAnswer::default());
            let answered = generate(&candidates, &prompt, Bounds { until, allowance: Allowance::NONE }, &draft)
                .await
                .expect("an output");
            assert_eq!(answered.output.text, format!("{} {answer}", scripted::PREFACE));
            assert_eq!(draft.watch().borrow().text, answered.output.text);
            assert_eq!(answered.usage, Usage::default(), "words of the script are no tokens");
        }
    }
}
