//! The names on a page. A name that looks like another one gets a mark.

use ironclaw_text::visible;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Display;

/// Bound on the names that are compared; a person cannot compare more either.
const NAMES_MAX: usize = 1024;

/// Characters of a name; a longer string is a text.
const NAME_CHARACTERS_MAX: usize = 64;

/// Characters of a text that a page has once. A shorter one is a name, which each sentence about it needs.
const ONCE_CHARACTERS_MIN: usize = 41;

/// Returns whether a text is too long for a name, so that a page has it once.
pub(super) fn is_long(text: &str) -> bool {
    text.chars().count() >= ONCE_CHARACTERS_MIN
}

/// Every name on a page.
pub(super) struct Names<'a> {
    known: Vec<Known<'a>>,
    /// The long texts that are on the page.
    noted: RefCell<BTreeSet<String>>,
}

struct Known<'a> {
    text: &'a str,
    looks: [String; 2],
    /// The id of its owner, if the host knows one.
    of: Option<String>,
}

impl<'a> Names<'a> {
    /// Collects these names, each with its id, and the names in the values.
    pub(super) fn collect(named: Vec<(&'a str, String)>, values: [&'a Value; 3]) -> Self {
        let mut names = Self { known: Vec::new(), noted: RefCell::default() };
        for (name, id) in named {
            names.add(name, Some(id));
        }
        for value in values {
            names.add_leaves(value);
        }
        names
    }

    fn add(&mut self, text: &'a str, of: Option<String>) {
        let is_known = self.known.iter().any(|known| known.text == text);
        if !is_known && self.known.len() < NAMES_MAX && text.chars().count() <= NAME_CHARACTERS_MAX {
            self.known.push(Known { text, looks: visible::appearances(text), of });
        }
    }

    fn add_leaves(&mut self, value: &'a Value) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => self.add(text, None),
            Value::Array(entries) => entries.iter().for_each(|entry| self.add_leaves(entry)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.add(key, None);
                    self.add_leaves(value);
                }
            }
        }
    }

    /// Returns a name as the page shows it: safe, in quotes, and with a mark if it looks like another one.
    pub(super) fn show(&self, text: &str) -> String {
        let mut shown = visible::name(text);
        let looks = visible::appearances(text);
        let alike = |known: &&Known<'_>| known.text != text && (0..2).any(|at| known.looks[at] == looks[at]);
        if let Some(known) = self.known.iter().find(alike) {
            let other =
                known.of.as_deref().map_or("another name on this page".to_owned(), |of| format!("the name of {of}"));
            shown.push_str(&format!(" {}looks like {other}{}", visible::OPEN, visible::CLOSE));
        }
        shown
    }

    /// Notes a text that is on the page.
    pub(super) fn note(&self, text: &str) {
        if is_long(text) {
            self.noted.borrow_mut().insert(text.to_owned());
        }
    }

    /// Notes each text of a value that is on the page.
    pub(super) fn note_leaves(&self, value: &Value) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => self.note(text),
            Value::Array(entries) => entries.iter().for_each(|entry| self.note_leaves(entry)),
            Value::Object(fields) => fields.values().for_each(|value| self.note_leaves(value)),
        }
    }

    /// Returns whether this text is on the page already, and too long for a name.
    pub(super) fn is_noted(&self, text: &str) -> bool {
        self.noted.borrow().contains(text)
    }

    pub(super) fn named(&self, id: impl Display, name: &str) -> String {
        format!("{} ({id})", self.show(name))
    }
}
