//! What is counted of a running host, and how Prometheus reads it.
//!
//! Never holds an id, a name of a person or a text: every label is one of the host's own words or the name of a model endpoint.
//! Counted where it is committed and read when somebody asks, so that an idle host does nothing. Next: `api::health`.

use ironclaw_contract::operator::LedgerEvent;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bounds of the time that a commit takes, in seconds.
const COMMIT_SECONDS: [f64; 10] = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0];

/// Bounds of the time that a model takes, in seconds.
const MODEL_SECONDS: [f64; 11] = [0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// Endpoints that have figures of their own; those beyond are counted together, as operators may rename theirs for ever.
const ENDPOINTS_MAX: usize = 64;

/// The name under which they are.
const OTHER_ENDPOINTS: &str = "other";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Entries {
    what: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refused {
    code: &'static str,
    via: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asks {
    endpoint: String,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Tokens {
    endpoint: String,
    direction: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Endpoint {
    endpoint: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Version {
    version: &'static str,
    fingerprint: String,
}

/// The counters of one host; clones share them.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Counted>);

struct Counted {
    entries: Family<Entries, Counter>,
    messages: Family<Outcome, Counter>,
    turns_opened: Counter,
    turns_closed: Family<Outcome, Counter>,
    deliveries: Family<Outcome, Counter>,
    refused: Family<Refused, Counter>,
    asks: Family<Asks, Counter>,
    ask_seconds: Family<Endpoint, Histogram>,
    tokens: Family<Tokens, Counter>,
    endpoints: std::sync::Mutex<std::collections::BTreeSet<String>>,
    changes: Counter,
    commits: Family<Outcome, Counter>,
    commit_seconds: Histogram,
    last_failures: AtomicU64,
    /// Since when the group of changes runs that runs now.
    group: std::sync::Mutex<Option<Instant>>,
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            entries: Family::default(),
            messages: Family::default(),
            turns_opened: Counter::default(),
            turns_closed: Family::default(),
            deliveries: Family::default(),
            refused: Family::default(),
            asks: Family::default(),
            ask_seconds: Family::new_with_constructor(|| Histogram::new(MODEL_SECONDS)),
            tokens: Family::default(),
            endpoints: std::sync::Mutex::default(),
            changes: Counter::default(),
            commits: Family::default(),
            commit_seconds: Histogram::new(COMMIT_SECONDS),
            last_failures: AtomicU64::new(0),
            group: std::sync::Mutex::default(),
        }
    }
}

/// What is true at the moment of asking.
#[derive(Debug, Clone, Default)]
pub struct Now {
    /// The contract's fingerprint.
    pub fingerprint: String,
    /// When the host started, seconds since the epoch.
    pub started_at: i64,
    /// Places that are taken.
    pub awake: usize,
    /// Places that there are.
    pub awake_max: usize,
    /// Sessions that wait for a place.
    pub waiting: usize,
    /// Sessions in the record, by standing.
    pub sessions: BTreeMap<String, u64>,
    /// Messages that wait for their turn.
    pub messages_waiting: u64,
    /// Turns that are open.
    pub turns_open: u64,
    /// Deliveries without an end, by state.
    pub deliveries_open: BTreeMap<String, u64>,
    /// Number of the newest entry of the ledger.
    pub ledger_seq: u64,
    /// Seconds since the newest head that is kept outside was signed; none where none is.
    pub head_age_seconds: Option<u64>,
    /// Whether everything is stopped.
    pub panicked: bool,
    /// Whether the host is ready.
    pub ready: bool,
    /// Jobs that wait for the writing thread.
    pub write_queue: usize,
    /// Bytes of the state and of its log.
    pub state_bytes: u64,
    /// Bytes that are free where the home lies.
    pub home_free_bytes: Option<u64>,
}

impl Metrics {
    /// An entry of the ledger is on disk; `refuses` when it is a refusal or withdrawal.
    pub fn entry(&self, event: LedgerEvent, refuses: bool) {
        let counted = &self.0;
        counted.entries.get_or_create(&Entries { what: event.name() }).inc();
        let one = |family: &Family<Outcome, Counter>, outcome| {
            family.get_or_create(&Outcome { outcome }).inc();
        };
        match event {
            LedgerEvent::MessageRecorded => one(&counted.messages, "recorded"),
            LedgerEvent::TurnOpened => {
                counted.turns_opened.inc();
            }
            LedgerEvent::TurnClosed => one(&counted.turns_closed, if refuses { "unanswered" } else { "answered" }),
            _ => {
                if let Some(outcome) = event.name().strip_prefix("delivery.") {
                    one(&counted.deliveries, outcome);
                }
            }
        }
    }

    /// The writing thread begins a group of changes.
    pub fn group_begins(&self) {
        *self.0.group.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(Instant::now());
    }

    /// And is done with it.
    pub fn group_ends(&self) {
        *self.0.group.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
    }

    /// How long the group of changes runs that runs now, if one does.
    pub fn group_runs_for(&self) -> Option<Duration> {
        self.0.group.lock().unwrap_or_else(std::sync::PoisonError::into_inner).map(|since| since.elapsed())
    }

    /// A group of changes was committed, or not. Only one that `wrote` proves that the record can be written: an empty one writes
    /// no page.
    pub fn commit(&self, changes: usize, took: Duration, is_on_disk: bool, wrote: bool) {
        let outcome = if is_on_disk { "done" } else { "failed" };
        self.0.commits.get_or_create(&Outcome { outcome }).inc();
        self.0.commit_seconds.observe(took.as_secs_f64());
        if is_on_disk {
            self.0.changes.inc_by(changes as u64);
            if wrote {
                self.0.last_failures.store(0, Ordering::Relaxed);
            }
        } else {
            self.0.last_failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Commits that failed since one last wrote something.
    pub fn failing_commits(&self) -> u64 {
        self.0.last_failures.load(Ordering::Relaxed)
    }

    /// The API let somebody not in.
    pub fn refused(&self, code: &'static str, via: &'static str) {
        self.0.refused.get_or_create(&Refused { code, via }).inc();
    }

    /// A request to this endpoint begins.
    pub fn ask(&self, endpoint: &str) -> Ask {
        Ask { metrics: self.clone(), endpoint: endpoint.to_owned(), since: Instant::now(), result: "failed" }
    }

    fn named(&self, endpoint: &str) -> String {
        let mut known = self.0.endpoints.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if known.contains(endpoint) || (known.len() < ENDPOINTS_MAX && known.insert(endpoint.to_owned())) {
            return endpoint.to_owned();
        }
        OTHER_ENDPOINTS.to_owned()
    }

    /// Everything in the OpenMetrics text format.
    pub fn text(&self, now: &Now) -> String {
        let counted = &self.0;
        let mut all = Registry::with_prefix("ironclaw");
        all.register("ledger_entries", "Entries of the ledger since the start", counted.entries.clone());
        all.register("messages", "Messages since the start, by what became of them first", counted.messages.clone());
        all.register("turns_opened", "Turns that were opened since the start", counted.turns_opened.clone());
        all.register("turns_closed", "Turns that were closed since the start", counted.turns_closed.clone());
        all.register("deliveries", "Steps of deliveries since the start", counted.deliveries.clone());
        all.register("api_refused", "Requests that the API refused since the start", counted.refused.clone());
        all.register("model_requests", "Requests to models since the start", counted.asks.clone());
        let seconds = Unit::Seconds;
        all.register_with_unit("model_request", "Time of a request to a model", seconds, counted.ask_seconds.clone());
        all.register("model_tokens", "Tokens of requests that were answered", counted.tokens.clone());
        all.register("state_changes", "Changes of the record since the start", counted.changes.clone());
        all.register("state_commits", "Commits of the record since the start", counted.commits.clone());
        let seconds = Unit::Seconds;
        all.register_with_unit("state_commit", "Time of a commit", seconds, counted.commit_seconds.clone());
        let build = Family::<Version, Gauge>::default();
        build
            .get_or_create(&Version { version: env!("CARGO_PKG_VERSION"), fingerprint: now.fingerprint.clone() })
            .set(1);
        all.register("build", "This host's version and contract", build);
        let mut gauge = |name: &str, help: &str, value: u64| {
            let gauge = Gauge::<i64>::default();
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
            all.register(name, help, gauge);
        };
        gauge("started_at_seconds", "When the host started", now.started_at.unsigned_abs());
        gauge("ready", "1 when the host takes messages and works on them", u64::from(now.ready));
        gauge("panicked", "1 while everything is stopped", u64::from(now.panicked));
        gauge("sessions_awake", "Sessions that hold a place", now.awake as u64);
        gauge("sessions_awake_max", "Places that there are", now.awake_max as u64);
        gauge("sessions_waiting", "Sessions that wait for a place", now.waiting as u64);
        gauge("messages_waiting", "Messages that wait for their turn", now.messages_waiting);
        gauge("turns_open", "Turns that are open", now.turns_open);
        gauge("ledger_seq", "Number of the newest entry of the ledger", now.ledger_seq);
        gauge("state_write_queue", "Changes that wait for the writing thread", now.write_queue as u64);
        gauge("state_bytes", "Bytes of the record and of its log", now.state_bytes);
        if let Some(age) = now.head_age_seconds {
            gauge("ledger_head_age_seconds", "Seconds since the newest head kept outside was signed", age);
        }
        if let Some(free) = now.home_free_bytes {
            gauge("home_free_bytes", "Bytes that are free where the home lies", free);
        }
        for (name, help, label, values) in [
            ("sessions", "Sessions in the record", "standing", &now.sessions),
            ("deliveries_open", "Deliveries that have not arrived, or may not have", "state", &now.deliveries_open),
        ] {
            let family = Family::<Vec<(String, String)>, Gauge>::default();
            for (word, count) in values {
                let labels = vec![(label.to_owned(), word.clone())];
                family.get_or_create(&labels).set(i64::try_from(*count).unwrap_or(i64::MAX));
            }
            all.register(name, help, family);
        }
        let mut text = String::new();
        encode(&mut text, &all).expect("writing to a string does not fail");
        text
    }
}

/// A request to a model; it failed unless somebody says otherwise.
pub struct Ask {
    metrics: Metrics,
    endpoint: String,
    since: Instant,
    result: &'static str,
}

impl Ask {
    /// It was answered, by this endpoint in the end.
    pub fn answered(mut self, endpoint: &str, input_tokens: u64, output_tokens: u64) {
        self.result = if self.endpoint == endpoint { "answered" } else { "answered_by_fallback" };
        self.endpoint = self.metrics.named(endpoint);
        for (direction, count) in [("input", input_tokens), ("output", output_tokens)] {
            let labels = Tokens { endpoint: self.endpoint.clone(), direction };
            self.metrics.0.tokens.get_or_create(&labels).inc_by(count);
        }
    }
}

impl Drop for Ask {
    fn drop(&mut self) {
        let endpoint = self.metrics.named(&self.endpoint);
        let counted = &self.metrics.0;
        counted
            .ask_seconds
            .get_or_create(&Endpoint { endpoint: endpoint.clone() })
            .observe(self.since.elapsed().as_secs_f64());
        counted.asks.get_or_create(&Asks { endpoint, result: self.result }).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_an_endpoint_makes_no_more_rows_than_the_bound() {
        let metrics = Metrics::default();
        for number in 0..ENDPOINTS_MAX * 3 {
            drop(metrics.ask(&format!("endpoint-{number}")));
        }
        let text = metrics.text(&Now::default());
        let rows = text.lines().filter(|line| line.starts_with("ironclaw_model_requests_total{")).count();
        assert_eq!(rows, ENDPOINTS_MAX + 1);
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn only_a_commit_that_wrote_something_ends_a_row_of_failures() {
        let metrics = Metrics::default();
        metrics.commit(1, Duration::ZERO, false, true);
        metrics.commit(1, Duration::ZERO, true, false);
        assert_eq!(metrics.failing_commits(), 1, "an empty commit proves nothing");
        metrics.commit(1, Duration::ZERO, true, true);
        assert_eq!(metrics.failing_commits(), 0);
    }

    #[test]
    fn request_without_a_reported_answer_counts_as_failed() {
        let metrics = Metrics::default();
        drop(metrics.ask("a"));
        metrics.ask("a").answered("a", 7, 11);
        metrics.ask("a").answered("b", 1, 2);
        let text = metrics.text(&Now::default());
        for line in [
            "ironclaw_model_requests_total{endpoint=\"a\",result=\"failed\"} 1",
            "ironclaw_model_requests_total{endpoint=\"a\",result=\"answered\"} 1",
            "ironclaw_model_requests_total{endpoint=\"b\",result=\"answered_by_fallback\"} 1",
            "ironclaw_model_tokens_total{endpoint=\"a\",direction=\"output\"} 11",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
        }
    }
}
