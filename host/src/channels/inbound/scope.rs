//! The scope of a message: the classes of calls that its sender asks for.
//!
//! Pure. Only text that the sender typed counts; a declaration is cut off the text that a model gets. See [`ironclaw_judge::scope`].

use super::channel::Received;
use ironclaw_judge::place::Mistake;
use ironclaw_judge::provenance::spans::Span;
use ironclaw_judge::scope::declared;
use ironclaw_judge::scope::lexicon::Lexicon;
use ironclaw_judge::scope::recorded::Recorded;
use ironclaw_judge::scope::report::{self, Report};
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;

/// The scope of a message, and its text without the declaration.
pub struct DeclaredScope<'a> {
    /// The classes and their origin, for the record: `declared:read send`.
    pub recorded: String,
    /// The text of the sender after the declaration.
    pub text: &'a str,
}

/// Returns the scope of a received message.
///
/// # Errors
/// Refuses a declaration with an unknown class, without a class or a request, or beside another one.
pub fn find(received: &Received) -> Result<DeclaredScope<'_>, Refusal> {
    let malformed = |message: String| Refusal::new(DenialCode::ScopeMalformed, message);
    let quoted = received.quoted.iter().map(|text| Span { text, typed: false });
    let spans: Vec<Span<'_>> = std::iter::once(Span { text: &received.text, typed: true }).chain(quoted).collect();
    let declaration = declared::declared(&spans).map_err(|error| malformed(error.to_string()))?;
    if received.allow.is_some() && declaration.is_some() {
        let message = "the message declares a scope twice: leave out `allow` or the line `/allow`";
        return Err(malformed(message.to_owned()));
    }
    let text = declaration.as_ref().map_or(received.text.as_str(), |declared| declared.rest);
    if text.trim().is_empty() && received.files.is_empty() && received.quoted.is_empty() {
        let refusal = Refusal::new(DenialCode::MessageEmpty, "the message declares a scope, and asks for nothing");
        return Err(refusal.hint("write the request on the line after `/allow CLASS...` or `/allow +CLASS...`"));
    }
    let recorded = Recorded::new(&spans, received.allow, declaration.as_ref(), received.telling);
    Ok(DeclaredScope { recorded: recorded.to_string(), text })
}

/// Measures the lexicon over labelled requests: those of the text, or those of this version.
///
/// # Errors
/// The first mistake of the text, with its line and its field.
pub fn measure(cases: Option<&str>) -> Result<Report, Mistake> {
    report::report(cases.unwrap_or(report::EMBEDDED_CASES), Lexicon::embedded())
}

#[cfg(test)]
pub(crate) mod tests;
