//! The metrics of a running host, in the format of Prometheus.
//!
//! Never holds an id, a name of a person or a text: every label is a word of the host or the name of a model endpoint. The host
//! counts at each commit and reads the gauges at each request, so an idle host does nothing. See `api::health` of the host.

use ironclaw_operator::LedgerEvent;
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

/// Histogram buckets of the time of a commit, in seconds.
const COMMIT_SECONDS: [f64; 10] = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0];

/// Histogram buckets of the time of a model request, in seconds.
const MODEL_SECONDS: [f64; 11] = [0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// Endpoints with their own series. Further endpoints share one series, because operators may rename endpoints without a bound.
const ENDPOINTS_MAX: usize = 64;

/// The label of the shared series.
const OTHER_ENDPOINTS: &str = "other";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EntryLabels {
    what: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    code: &'static str,
    via: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    endpoint: String,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    endpoint: String,
    direction: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndpointLabels {
    endpoint: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    version: &'static str,
    fingerprint: String,
}

/// The counters of one host; clones share them.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Counters>);

struct Counters {
    entries: Family<EntryLabels, Counter>,
    messages: Family<OutcomeLabels, Counter>,
    turns_opened: Counter,
    turns_closed: Family<OutcomeLabels, Counter>,
    deliveries: Family<OutcomeLabels, Counter>,
    refused: Family<RefusalLabels, Counter>,
    asks: Family<RequestLabels, Counter>,
    ask_seconds: Family<EndpointLabels, Histogram>,
    tokens: Family<TokenLabels, Counter>,
    endpoints: std::sync::Mutex<std::collections::BTreeSet<String>>,
    changes: Counter,
    commits: Family<OutcomeLabels, Counter>,
    commit_seconds: Histogram,
    last_failures: AtomicU64,
    /// Start of the group of changes that runs now.
    group: std::sync::Mutex<Option<Instant>>,
}

impl Default for Counters {
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

/// The values of the gauges at one moment.
#[derive(Debug, Clone, Default)]
pub struct Now {
    pub fingerprint: String,
    /// Start of the host, seconds since the epoch.
    pub started_at: i64,
    pub awake: usize,
    /// Number of slots.
    pub awake_max: usize,
    /// Sessions that wait for a slot.
    pub waiting: usize,
    /// Sessions in the record, by state.
    pub sessions: BTreeMap<String, u64>,
    /// Messages that wait for their turn.
    pub messages_waiting: u64,
    pub turns_open: u64,
    /// Deliveries without a final outcome, by state.
    pub deliveries_open: BTreeMap<String, u64>,
    /// Number of the newest entry of the ledger.
    pub ledger_seq: u64,
    /// Seconds since the newest head outside of the home was signed; `None` if there is no head.
    pub head_age_seconds: Option<u64>,
    /// Flag: the emergency stop is active.
    pub panicked: bool,
    /// Flag: the host accepts messages and works on them.
    pub ready: bool,
    /// Jobs that wait for the writing thread.
    pub write_queue: usize,
    /// Bytes of the record and of its log.
    pub state_bytes: u64,
    /// Free bytes on the file system of the home.
    pub home_free_bytes: Option<u64>,
}

impl Metrics {
    /// Counts a committed entry of the ledger; `refuses` if it is a refusal or withdrawal.
    pub fn entry(&self, event: LedgerEvent, refuses: bool) {
        let counters = &self.0;
        counters.entries.get_or_create(&EntryLabels { what: event.name() }).inc();
        let one = |family: &Family<OutcomeLabels, Counter>, outcome| {
            family.get_or_create(&OutcomeLabels { outcome }).inc();
        };
        match event {
            LedgerEvent::MessageRecorded => one(&counters.messages, "recorded"),
            LedgerEvent::TurnOpened => {
                counters.turns_opened.inc();
            }
            LedgerEvent::TurnClosed => one(&counters.turns_closed, if refuses { "unanswered" } else { "answered" }),
            _ => {
                if let Some(outcome) = event.name().strip_prefix("delivery.") {
                    one(&counters.deliveries, outcome);
                }
            }
        }
    }

    /// Records that the writing thread begins a group of changes.
    pub fn group_begins(&self) {
        *self.0.group.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(Instant::now());
    }

    /// Records that the writing thread has finished the group.
    pub fn group_ends(&self) {
        *self.0.group.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
    }

    /// Returns how long the current group of changes has run, if there is one.
    pub fn group_runs_for(&self) -> Option<Duration> {
        self.0.group.lock().unwrap_or_else(std::sync::PoisonError::into_inner).map(|since| since.elapsed())
    }

    /// Counts a commit of a group of changes, successful or not. Only a commit that `wrote` proves that the record is writable,
    /// because an empty commit writes no page.
    pub fn commit(&self, changes: usize, took: Duration, is_on_disk: bool, wrote: bool) {
        let outcome = if is_on_disk { "done" } else { "failed" };
        self.0.commits.get_or_create(&OutcomeLabels { outcome }).inc();
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

    /// Returns the number of failed commits since the last successful one that wrote a page.
    pub fn failing_commits(&self) -> u64 {
        self.0.last_failures.load(Ordering::Relaxed)
    }

    /// Counts a request that the API refused.
    pub fn refused(&self, code: &'static str, via: &'static str) {
        self.0.refused.get_or_create(&RefusalLabels { code, via }).inc();
    }

    /// Begins to measure a request to this endpoint.
    pub fn ask(&self, endpoint: &str) -> Ask {
        Ask { metrics: self.clone(), endpoint: endpoint.to_owned(), since: Instant::now(), result: "failed" }
    }

    fn endpoint_label(&self, endpoint: &str) -> String {
        let mut known = self.0.endpoints.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if known.contains(endpoint) || (known.len() < ENDPOINTS_MAX && known.insert(endpoint.to_owned())) {
            return endpoint.to_owned();
        }
        OTHER_ENDPOINTS.to_owned()
    }

    /// Returns all metrics in the OpenMetrics text format.
    pub fn text(&self, now: &Now) -> String {
        let counters = &self.0;
        let mut all = Registry::with_prefix("ironclaw");
        all.register("ledger_entries", "Entries of the ledger since the start", counters.entries.clone());
        all.register("messages", "Messages since the start, by their first outcome", counters.messages.clone());
        all.register("turns_opened", "Turns that were opened since the start", counters.turns_opened.clone());
        all.register("turns_closed", "Turns that were closed since the start", counters.turns_closed.clone());
        all.register("deliveries", "Steps of deliveries since the start", counters.deliveries.clone());
        all.register("api_refused", "Requests that the API refused since the start", counters.refused.clone());
        all.register("model_requests", "Requests to models since the start", counters.asks.clone());
        let seconds = Unit::Seconds;
        all.register_with_unit("model_request", "Time of a request to a model", seconds, counters.ask_seconds.clone());
        all.register("model_tokens", "Tokens of requests that were answered", counters.tokens.clone());
        all.register("state_changes", "Changes of the record since the start", counters.changes.clone());
        all.register("state_commits", "Commits of the record since the start", counters.commits.clone());
        let seconds = Unit::Seconds;
        all.register_with_unit("state_commit", "Time of a commit", seconds, counters.commit_seconds.clone());
        let build = Family::<BuildLabels, Gauge>::default();
        build
            .get_or_create(&BuildLabels { version: env!("CARGO_PKG_VERSION"), fingerprint: now.fingerprint.clone() })
            .set(1);
        all.register("build", "This host's version and contract", build);
        let mut gauge = |name: &str, help: &str, value: u64| {
            let gauge = Gauge::<i64>::default();
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
            all.register(name, help, gauge);
        };
        gauge("started_at_seconds", "Start of the host, in seconds since the epoch", now.started_at.unsigned_abs());
        gauge("ready", "1 if the host accepts messages and works on them", u64::from(now.ready));
        gauge("panicked", "1 during an emergency stop", u64::from(now.panicked));
        gauge("sessions_awake", "Sessions that hold a slot", now.awake as u64);
        gauge("sessions_awake_max", "Number of slots", now.awake_max as u64);
        gauge("sessions_waiting", "Sessions that wait for a slot", now.waiting as u64);
        gauge("messages_waiting", "Messages that wait for their turn", now.messages_waiting);
        gauge("turns_open", "Turns that are open", now.turns_open);
        gauge("ledger_seq", "Number of the newest entry of the ledger", now.ledger_seq);
        gauge("state_write_queue", "Changes that wait for the writing thread", now.write_queue as u64);
        gauge("state_bytes", "Bytes of the record and of its log", now.state_bytes);
        if let Some(age) = now.head_age_seconds {
            gauge("ledger_head_age_seconds", "Seconds since the newest head outside of the home was signed", age);
        }
        if let Some(free) = now.home_free_bytes {
            gauge("home_free_bytes", "Free bytes on the file system of the home", free);
        }
        for (name, help, label, values) in [
            ("sessions", "Sessions in the record", "standing", &now.sessions),
            ("deliveries_open", "Deliveries without a receipt", "state", &now.deliveries_open),
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

/// A measured request to a model. It counts as failed unless [`Ask::answered`] is called.
pub struct Ask {
    metrics: Metrics,
    endpoint: String,
    since: Instant,
    result: &'static str,
}

impl Ask {
    /// Records that this endpoint gave the answer.
    pub fn answered(mut self, endpoint: &str, input_tokens: u64, output_tokens: u64) {
        self.result = if self.endpoint == endpoint { "answered" } else { "answered_by_fallback" };
        self.endpoint = self.metrics.endpoint_label(endpoint);
        for (direction, count) in [("input", input_tokens), ("output", output_tokens)] {
            let labels = TokenLabels { endpoint: self.endpoint.clone(), direction };
            self.metrics.0.tokens.get_or_create(&labels).inc_by(count);
        }
    }
}

impl Drop for Ask {
    fn drop(&mut self) {
        let endpoint = self.metrics.endpoint_label(&self.endpoint);
        let counters = &self.metrics.0;
        counters
            .ask_seconds
            .get_or_create(&EndpointLabels { endpoint: endpoint.clone() })
            .observe(self.since.elapsed().as_secs_f64());
        counters.asks.get_or_create(&RequestLabels { endpoint, result: self.result }).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_beyond_the_bound_share_one_series() {
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
    fn only_a_commit_that_wrote_resets_the_failures() {
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
