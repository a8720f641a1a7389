//! The ledger of a host, with its entries by the objects that they name.
//!
//! Contains no tests. See [`super::invariants`].

use crate::e2e::schedule_faults::clocked::ms;
use crate::support::host_fixture::TestHost;
use serde_json::Value;
use std::collections::HashMap;

/// The data of all entries, in their order.
pub(super) struct Ledger {
    data: Vec<Value>,
    /// The entries about an object, by the name of the field and its text.
    by_object: HashMap<(&'static str, String), Vec<usize>>,
}

/// The fields by which entries are found.
const FIELDS: [&str; 5] = ["what", "schedule", "question", "delivery", "message"];

impl Ledger {
    pub(super) fn of(host: &TestHost) -> Self {
        let data: Vec<Value> = host.ledger().into_iter().map(|mut entry| entry["data"].take()).collect();
        let mut by_object = HashMap::<_, Vec<_>>::new();
        for (at, entry) in data.iter().enumerate() {
            for field in FIELDS {
                if let Some(text) = entry[field].as_str() {
                    by_object.entry((field, text.to_owned())).or_default().push(at);
                }
            }
        }
        Self { data, by_object }
    }

    /// Returns the entries whose field has this text, in their order.
    pub(super) fn with(&self, field: &'static str, text: &str) -> impl Iterator<Item = &Value> {
        let found = self.by_object.get(&(field, text.to_owned()));
        found.into_iter().flatten().map(|at| &self.data[*at])
    }
    pub(super) fn events(&self, what: &str) -> impl Iterator<Item = &Value> {
        self.with("what", what)
    }
    pub(super) fn count(&self, what: &str, field: &'static str, text: &str) -> usize {
        self.with(field, text).filter(|entry| entry["what"] == what).count()
    }

    /// Returns the entries after the last one with this event.
    pub(super) fn since(&self, what: &str) -> &[Value] {
        let last = self.by_object.get(&("what", what.to_owned())).and_then(|found| found.last());
        last.map_or(&[], |last| &self.data[*last..])
    }

    /// Returns the entries about one time of a schedule.
    pub(super) fn of_time(&self, schedule: &str, due: i64) -> Vec<&Value> {
        let is_due = |entry: &&Value| entry["due"].as_str().is_some_and(|text| ms(text) == due);
        self.with("schedule", schedule).filter(is_due).collect()
    }
}
pub(super) fn word<'a>(entry: &'a Value, field: &str) -> &'a str {
    entry[field].as_str().unwrap_or_default()
}
