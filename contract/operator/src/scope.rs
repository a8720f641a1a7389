//! The measure of the lexicon that finds the scope of a message, for `ironctl scope test`.
//!
//! Plain data. `host/src/api/scope.rs` makes it.

use super::judgement::Class;
use serde::{Deserialize, Serialize};

/// Bytes of labelled requests for one measure.
pub const SCOPE_CASES_BYTES_MAX: usize = 256 * 1024;

/// `POST /v1/scope/test`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TestScope {
    /// Labelled requests as TOML text: `[[case]]` with `lang`, `text` and `wants`. Default: those of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<String>,
}

/// The counts of one class in one language.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ScopeMeasure {
    /// The code of the language.
    pub lang: String,
    /// `read`, `write` or `send`.
    pub class: Class,
    /// Requests that want the class and get it.
    pub right: usize,
    /// Requests that get the class and do not want it.
    pub claimed: usize,
    /// Requests that want the class and do not get it.
    pub missed: usize,
    /// The share of right ones among those that get the class; 1 if none gets it.
    pub precision: f64,
    /// The share of right ones among those that want the class; 1 if none wants it.
    pub recall: f64,
}

/// A request with other classes than its label has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WrongScope {
    /// The code of its language.
    pub lang: String,
    /// The text.
    pub text: String,
    /// The classes of its label.
    pub wants: Vec<Class>,
    /// The classes that the lexicon gives.
    pub got: Vec<Class>,
    /// The words that gave them.
    pub words: Vec<String>,
}

/// The measure of a set of requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TestedScope {
    /// The number of requests.
    pub cases: usize,
    /// One entry for each language and class.
    pub measures: Vec<ScopeMeasure>,
    /// The wrong ones.
    pub wrong: Vec<WrongScope>,
}
