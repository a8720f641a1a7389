//! Samples, their medians, and the table of one run.
//!
//! Throws no sample away, and judges none. Next: `main`.

use serde_json::{Map, Value, json};
use std::ops::Range;

/// Seconds that something took, in the order in which they were taken.
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

/// What one run found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    lines: Vec<String>,
    json: Map<String, Value>,
}

impl Report {
    /// A row of the table with times.
    pub(crate) fn times(&mut self, key: &str, what: &str, samples: &Samples) {
        let [p50, p99, mean] = [samples.p50(), samples.quantile(0.99), samples.mean()].map(|s| s * 1e3);
        let line =
            format!("{what:<52} {p50:>9.2} ms p50 {p99:>9.2} ms p99 {mean:>9.2} ms mean  ({} times)", samples.len());
        self.line(line);
        let times = json!({ "p50_ms": p50, "p99_ms": p99, "mean_ms": mean, "count": samples.len() });
        self.json.insert(key.to_owned(), times);
    }

    /// A row with a rate.
    #[allow(dead_code)] // each bench uses its own part of the table
    pub(crate) fn rate(&mut self, key: &str, what: &str, rate: f64) {
        self.line(format!("{what:<52} {rate:>9.0} /s"));
        self.json.insert(key.to_owned(), json!(rate));
    }

    /// A row with one time.
    #[allow(dead_code)]
    pub(crate) fn milliseconds(&mut self, key: &str, what: &str, seconds: f64) {
        self.line(format!("{what:<52} {:>9.2} ms", seconds * 1e3));
        self.json.insert(key.to_owned(), json!(seconds * 1e3));
    }

    /// A row with a ratio.
    pub(crate) fn ratio(&mut self, key: &str, what: &str, ratio: f64) {
        self.line(format!("{what:<52} {ratio:>9.2} ×"));
        self.json.insert(key.to_owned(), json!(ratio));
    }

    /// A row with kibibytes.
    pub(crate) fn kibibytes(&mut self, key: &str, what: &str, kibibytes: u64) {
        self.line(format!("{what:<52} {:>9.2} MiB", kibibytes as f64 / 1024.0));
        self.json.insert(key.to_owned(), json!(kibibytes));
    }

    /// A row that says why there is no figure.
    pub(crate) fn missing(&mut self, key: &str, what: &str, why: &str) {
        self.line(format!("{what:<52} {why}"));
        self.json.insert(key.to_owned(), Value::Null);
    }

    /// The median of a row, if it is there already, in seconds.
    pub(crate) fn p50(&self, key: &str) -> Option<f64> {
        Some(self.json.get(key)?["p50_ms"].as_f64()? / 1e3)
    }

    /// The table again, and all of it as one line of JSON.
    pub(crate) fn print(self) {
        println!("\n{}\n\n{}", self.lines.join("\n"), Value::Object(self.json));
    }

    fn line(&mut self, line: String) {
        eprintln!("{line}");
        self.lines.push(line);
    }
}
