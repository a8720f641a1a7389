//! What would happen, in sentences: those of each kind of change, and which of them are about what can do harm.
//!
//! Never the whole: what exactly is set has a section of its own. Next: `gateway::kinds`, which says them.

use super::names::Names;
use serde_json::Value;

/// One effect.
#[derive(Debug)]
pub(super) struct Sentence {
    /// Whether it is shown as one that can do harm.
    pub can_harm: bool,
    /// Safe text.
    pub words: String,
}

/// The sentences about a change, as far as they are said.
pub(in crate::gateway) struct Effects<'a> {
    /// The present setting, in the shape of the payload.
    pub before: &'a Value,
    /// What the names in the payload mean.
    pub facts: &'a Value,
    names: &'a Names<'a>,
    sentences: Vec<Sentence>,
}

impl<'a> Effects<'a> {
    pub(super) const fn new(before: &'a Value, facts: &'a Value, names: &'a Names<'a>) -> Self {
        Self { before, facts, names, sentences: Vec::new() }
    }

    /// Says an effect.
    pub(in crate::gateway) fn say(&mut self, words: String) {
        self.sentences.push(Sentence { can_harm: false, words });
    }

    /// Says an effect that can do harm.
    pub(in crate::gateway) fn warn(&mut self, words: String) {
        self.sentences.push(Sentence { can_harm: true, words });
    }

    /// Returns a name as it is shown: safe and in quotes.
    pub(in crate::gateway) fn show(&self, name: &str) -> String {
        self.names.show(name)
    }

    /// Returns a name and the id behind it.
    pub(in crate::gateway) fn named(&self, id: &str, name: &str) -> String {
        self.names.named(id, name)
    }

    /// Returns names in a row.
    pub(in crate::gateway) fn list<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> String {
        let shown: Vec<String> = names.into_iter().map(|name| self.names.show(name)).collect();
        if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
    }

    /// Returns every sentence; those about what can do harm come last.
    pub(super) fn finish(mut self) -> Vec<Sentence> {
        self.sentences.sort_by_key(|sentence| sentence.can_harm);
        self.sentences
    }
}
