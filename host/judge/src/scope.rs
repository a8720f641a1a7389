//! The scope of a request: the classes that a person declares, or that a lexicon finds in typed text.
//!
//! Reads typed spans only, and never decides whether a call may run. See [`declared`] and [`reading`].

mod clauses;
pub mod declared;
pub mod lexicon;
pub mod reading;
pub mod recorded;
pub mod report;
mod withholding;
mod words;

use crate::class::{Class, Classes};
use crate::provenance::spans::{self, Span, Telling};
use declared::{DeclarationError, Declared};
use lexicon::Lexicon;
use serde::Serialize;
use std::ops::Range;

ironclaw_contract::words! {
    /// The origin of a scope.
    pub enum Source {
        /// The person wrote `/allow` with the whole scope.
        Declared = "declared",
        /// The person added classes to what the lexicon found, or to the default: `/allow +CLASS`.
        Added = "added",
        /// It is the scope of an earlier turn, whose task the message continues.
        Carried = "carried",
        /// The lexicon found a request in typed text.
        Lexicon = "lexicon",
        /// The message declares nothing, and the lexicon found nothing. The receiver policy decides alone.
        Default = "default",
    }
}

/// The words that gave a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    pub class: Class,
    /// The index of the span.
    pub span: usize,
    /// The range of bytes in the text of the span.
    pub bytes: Range<usize>,
}

/// The classes that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Scope {
    /// The classes; none if the source is [`Source::Default`].
    pub classes: Classes,
    pub source: Source,
    /// The words that gave them, at most [`EVIDENCE_MAX`], in the order of the text.
    pub evidence: Vec<Evidence>,
}

/// Pieces of evidence that a scope keeps.
pub const EVIDENCE_MAX: usize = 16;

/// Returns the scope of a message: its declaration, otherwise the finding of the lexicon, or both if the declaration adds.
pub fn scope(spans: &[Span<'_>]) -> Result<Scope, DeclarationError> {
    Ok(match declared::declared(spans)? {
        Some(declared) if declared.declaration.adds => added_scope(spans, &declared),
        Some(declared) => declared_scope(&declared),
        None => lexicon_scope(spans, Lexicon::embedded()),
    })
}

fn declared_scope(declared: &Declared<'_>) -> Scope {
    let evidence = evidence_of(declared).take(EVIDENCE_MAX).collect();
    Scope { classes: declared.declaration.classes, source: Source::Declared, evidence }
}

/// Returns the words of a declaration.
fn evidence_of(declared: &Declared<'_>) -> impl Iterator<Item = Evidence> {
    let span = declared.span;
    declared.words.iter().map(move |(class, bytes)| Evidence { class: *class, span, bytes: bytes.clone() })
}

/// Returns the classes of a declaration that adds, with those of the text after it.
fn added_scope(spans: &[Span<'_>], declared: &Declared<'_>) -> Scope {
    let cut = spans[declared.span].text.len() - declared.rest.len();
    let found = lexicon_scope(&without(spans, declared), Lexicon::embedded());
    let moved = |mut found: Evidence| {
        if found.span == declared.span {
            found.bytes = found.bytes.start + cut..found.bytes.end + cut;
        }
        found
    };
    let evidence = evidence_of(declared).chain(found.evidence.into_iter().map(moved)).take(EVIDENCE_MAX).collect();
    Scope { classes: declared.declaration.classes.or(found.classes), source: Source::Added, evidence }
}

/// Returns the spans without the declaration, whose words are no request.
fn without<'a>(spans: &[Span<'a>], declared: &Declared<'a>) -> Vec<Span<'a>> {
    let mut spans = spans.to_vec();
    spans[declared.span].text = declared.rest;
    spans
}

fn lexicon_scope(spans: &[Span<'_>], lexicon: &Lexicon) -> Scope {
    let mut evidence = Vec::new();
    let mut withheld = false;
    for typed in spans::typed(spans, Telling::Typed) {
        let (span, read) = (typed.index, reading::read(&typed, lexicon));
        withheld |= read.withheld;
        evidence.extend(read.found.into_iter().map(|found| Evidence { class: found.class, span, bytes: found.bytes }));
    }
    evidence.retain(|found| !(withheld && found.class == Class::Send));
    let classes: Classes = evidence.iter().map(|found| found.class).collect();
    evidence.truncate(EVIDENCE_MAX);
    let source = if classes.is_empty() { Source::Default } else { Source::Lexicon };
    Scope { classes, source, evidence }
}

#[cfg(test)]
mod tests;
