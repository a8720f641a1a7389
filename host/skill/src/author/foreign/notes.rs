//! The remarks about one skill: a line for each part that changed or was left out.

use std::fmt;

/// Remarks of one skill that are kept.
const REMARKS_MAX: usize = 1_000;

/// A part of a skill that the import changed or left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    pub file: String,
    /// The line of the original, from 1.
    pub line: Option<usize>,
    pub what: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Notes(Vec<Remark>);

impl Notes {
    pub(super) fn add(&mut self, file: &str, line: Option<usize>, what: impl Into<String>) {
        let remark = Remark { file: file.to_owned(), line, what: what.into() };
        if self.0.len() < REMARKS_MAX && !self.0.contains(&remark) {
            self.0.push(remark);
        }
    }

    pub(super) fn into_remarks(self) -> Vec<Remark> {
        self.0
    }
}
