//! The effects of a change in sentences, with warnings apart.
//!
//! Never the whole change: the page has a diff of the setting. `gateway::kinds` adds the sentences.

use super::names::{Names, is_long};
use serde_json::Value;

/// The sentences about a change.
pub(in crate::gateway) struct Effects<'a> {
    /// The current setting, in the shape of the payload.
    pub before: &'a Value,
    /// The meaning of the names in the payload.
    pub facts: &'a Value,
    /// True if an agent asks.
    pub is_by_agent: bool,
    names: &'a Names<'a>,
    /// Effects, the main one first. Safe text.
    pub(super) sentences: Vec<String>,
    /// Effects that can do harm. Safe text.
    pub(super) warnings: Vec<String>,
    pub(super) sections: Vec<Section>,
}

/// A list of the effects that needs a section of its own.
pub(super) struct Section {
    pub(super) heading: &'static str,
    /// Safe text, with the depth of each row.
    pub(super) rows: Vec<Row>,
}

pub(super) struct Row {
    pub(super) depth: usize,
    pub(super) words: String,
}

impl<'a> Effects<'a> {
    pub(super) const fn new(before: &'a Value, facts: &'a Value, names: &'a Names<'a>, is_by_agent: bool) -> Self {
        Self { before, facts, is_by_agent, names, sentences: Vec::new(), warnings: Vec::new(), sections: Vec::new() }
    }

    /// Adds an effect. The first one of a kind names the agent and the object.
    pub(in crate::gateway) fn add(&mut self, sentence: String) {
        self.sentences.push(sentence);
    }

    /// Adds a warning: one sentence, the danger first.
    pub(in crate::gateway) fn warn(&mut self, sentence: String) {
        self.warnings.push(sentence);
    }

    /// Begins a section with this heading.
    pub(in crate::gateway) fn section(&mut self, heading: &'static str) {
        self.sections.push(Section { heading, rows: Vec::new() });
    }

    /// Adds a row to the last section.
    pub(in crate::gateway) fn row(&mut self, depth: usize, words: String) {
        if let Some(section) = self.sections.last_mut() {
            section.rows.push(Row { depth, words });
        }
    }

    /// Adds the sentences about a change that this one contains, over its own setting and names.
    pub(in crate::gateway) fn part(&mut self, before: &'a Value, facts: &'a Value, add: impl FnOnce(&mut Self)) {
        let own = (std::mem::replace(&mut self.before, before), std::mem::replace(&mut self.facts, facts));
        add(self);
        (self.before, self.facts) = own;
    }

    /// Returns a name as the page shows it: safe and in quotes.
    pub(in crate::gateway) fn show(&self, name: &str) -> String {
        self.names.note(name);
        self.names.show(name)
    }

    /// Returns a text of the payload for a sentence: whole if it is short. The changes below the effect have a long one.
    pub(in crate::gateway) fn brief(&self, text: &str) -> String {
        if is_long(text) { "below".to_owned() } else { self.show(text) }
    }

    pub(in crate::gateway) fn named(&self, id: &str, name: &str) -> String {
        self.names.named(id, name)
    }

    /// Returns the names in a list of the current setting or of the facts.
    pub(in crate::gateway) fn texts(list: &'a Value) -> Vec<&'a str> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Returns names, separated by commas.
    pub(in crate::gateway) fn list<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> String {
        let shown: Vec<String> = names.into_iter().map(|name| self.names.show(name)).collect();
        if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
    }
}
