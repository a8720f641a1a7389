//! Samples, their medians, and the table of one run.
//!
//! Keeps every sample and judges none. See `main`.

use serde_json::{Map, Value, json};
use std::ops::Range;

/// Measured seconds in their order.
#[derive(Debug, Default, Clone)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn push(&mut self, seconds: f64) {
        self.0.push(seconds);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        Self(self.0[range].to_vec())
    }

    pub(crate) fn p50(&self) -> f64 {
        self.quantile(0.5)
    }

    pub(crate) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    fn quantile(&self, quantile: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[((sorted.len() - 1) as f64 * quantile).round() as usize]
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(seconds: I) -> Self {
        Self(seconds.into_iter().collect())
    }
}

/// The results of one run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    lines: Vec<String>,
    json: Map<String, Value>,
}

impl Report {
    /// Adds a row with times.
    pub(crate) fn times(&mut self, key: &str, what: &str, samples: &Samples) {
        let [p50, p99, mean] = [samples.p50(), samples.quantile(0.99), samples.mean()].map(|s| s * 1e3);
        let line =
            format!("{what:<52} {p50:>9.2} ms p50 {p99:>9.2} ms p99 {mean:>9.2} ms mean  ({} times)", samples.len());
        self.line(line);
        let times = json!({ "p50_ms": p50, "p99_ms": p99, "mean_ms": mean, "count": samples.len() });
        self.json.insert(key.to_owned(), times);
    }

    /// Adds a row with counts: the median and the least of all rounds.
    #[allow(dead_code)] // each bench uses its own part of the table
    pub(crate) fn counts(&mut self, key: &str, what: &str, samples: &Samples) {
        let [p50, least] = [samples.p50(), samples.quantile(0.0)];
        self.line(format!("{what:<76} {p50:>6.0} p50 {least:>6.0} least"));
        self.json.insert(key.to_owned(), json!({ "p50": p50, "least": least }));
    }

    /// Adds a row with short times.
    #[allow(dead_code)]
    pub(crate) fn microseconds(&mut self, key: &str, what: &str, samples: &Samples) {
        let [p50, p99] = [samples.p50(), samples.quantile(0.99)].map(|s| s * 1e6);
        self.line(format!("{what:<52} {p50:>9.2} µs p50 {p99:>9.2} µs p99  ({} times)", samples.len()));
        self.json.insert(key.to_owned(), json!({ "p50_us": p50, "p99_us": p99, "count": samples.len() }));
    }

    /// Adds a row with a rate.
    #[allow(dead_code)] // each bench uses its own part of the table
    pub(crate) fn rate(&mut self, key: &str, what: &str, rate: f64) {
        self.line(format!("{what:<52} {rate:>9.0} /s"));
        self.json.insert(key.to_owned(), json!(rate));
    }

    /// Adds a row with one time.
    #[allow(dead_code)]
    pub(crate) fn milliseconds(&mut self, key: &str, what: &str, seconds: f64) {
        self.line(format!("{what:<52} {:>9.2} ms", seconds * 1e3));
        self.json.insert(key.to_owned(), json!(seconds * 1e3));
    }

    /// Adds a row with a ratio.
    pub(crate) fn ratio(&mut self, key: &str, what: &str, ratio: f64) {
        self.line(format!("{what:<52} {ratio:>9.2} ×"));
        self.json.insert(key.to_owned(), json!(ratio));
    }

    /// Adds a row with kibibytes.
    pub(crate) fn kibibytes(&mut self, key: &str, what: &str, kibibytes: u64) {
        self.line(format!("{what:<52} {:>9.2} MiB", kibibytes as f64 / 1024.0));
        self.json.insert(key.to_owned(), json!(kibibytes));
    }

    /// Adds a row with the reason for a missing figure.
    pub(crate) fn missing(&mut self, key: &str, what: &str, why: &str) {
        self.line(format!("{what:<52} {why}"));
        self.json.insert(key.to_owned(), Value::Null);
    }

    /// Returns the median of a row in seconds, if it exists.
    pub(crate) fn p50(&self, key: &str) -> Option<f64> {
        Some(self.json.get(key)?["p50_ms"].as_f64()? / 1e3)
    }

    /// Prints the table again, and all of it as one line of JSON.
    pub(crate) fn print(self) {
        println!("\n{}\n\n{}", self.lines.join("\n"), Value::Object(self.json));
    }

    fn line(&mut self, line: String) {
        eprintln!("{line}");
        self.lines.push(line);
    }
}
