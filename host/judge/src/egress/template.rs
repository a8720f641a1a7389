//! The template of a path in a grant, such as `/repos/{owner}/issues/{number}?state={state}&page={page?}`.
//!
//! A slot matches one segment or one value of the query, in one spelling, and never a dot segment or a slash. A template never
//! matches every path, except one of a package registry. See [`written`] and [`super::canonical`].

mod written;

pub use written::TemplateError;

use super::canonical::CanonicalUrl;
use super::percent;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use unicode_normalization::UnicodeNormalization;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    segments: Vec<Segment>,
    parameters: Vec<Parameter>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Fixed(String),
    Slot(String),
}

/// A parameter of the query. Its name is percent-encoded as in a canonical URL.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Parameter {
    name: String,
    value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    /// Without an equals sign, or with this text behind it.
    Fixed(Option<String>),
    Slot {
        name: String,
        is_optional: bool,
    },
}

/// The value that a request has in a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Slot {
    pub name: String,
    /// The value, without percent-encoding.
    pub value: String,
    /// Its bytes in the canonical URL.
    pub range: Range<usize>,
}

/// The reason why a URL does not fill a template; the closest last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unfilled {
    /// Other fixed segments, or another number of segments.
    Path,
    /// A segment that no slot takes.
    Segment(String),
    /// A parameter that the template does not list, by name.
    Unlisted(String),
    /// A parameter that the request does not have.
    Absent(String),
    /// A parameter that the request has twice.
    Twice(String),
    /// A value that the template does not take.
    Value(String),
}

impl fmt::Display for Unfilled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path => f.write_str("no template has this path"),
            Self::Segment(slot) => {
                write!(
                    f,
                    "the slot {{{slot}}} takes one segment, without a slash, a percent sign or dots alone, and encoded only where it must be"
                )
            }
            Self::Unlisted(name) => write!(f, "the template does not list the parameter `{name}`"),
            Self::Absent(name) => write!(f, "the parameter `{name}` is missing"),
            Self::Twice(name) => write!(f, "the parameter `{name}` is there twice"),
            Self::Value(name) => {
                write!(
                    f,
                    "the value of the parameter `{name}` is not that of the template, is empty, or has a plain `;` or `=`"
                )
            }
        }
    }
}

impl Template {
    /// Returns the values of a URL in the slots, in their order in the URL.
    ///
    /// # Errors
    /// The first part that does not fit.
    pub fn fill(&self, url: &CanonicalUrl) -> Result<Vec<Slot>, Unfilled> {
        let mut slots = self.fill_path(url)?;
        self.fill_query(url, &mut slots)?;
        slots.sort_by_key(|slot| slot.range.start);
        Ok(slots)
    }

    /// Returns the template that this URL alone fills, if there is one.
    pub fn exact(url: &CanonicalUrl) -> Option<Self> {
        let template: Self = url.path_and_query().parse().ok()?;
        template.fill(url).is_ok().then_some(template)
    }

    /// Returns the names of the slots.
    pub fn slots(&self) -> impl Iterator<Item = &str> {
        let of_path = self.segments.iter().filter_map(|segment| match segment {
            Segment::Slot(name) => Some(name.as_str()),
            Segment::Fixed(_) => None,
        });
        let of_query = self.parameters.iter().filter_map(|parameter| match &parameter.value {
            Value::Slot { name, .. } => Some(name.as_str()),
            Value::Fixed(_) => None,
        });
        of_path.chain(of_query)
    }

    fn fill_path(&self, url: &CanonicalUrl) -> Result<Vec<Slot>, Unfilled> {
        let (mut slots, mut unusable) = (Vec::new(), None);
        let mut begin = url.path_begin() + 1;
        let mut expected = self.segments.iter();
        for text in url.path()[1..].split('/') {
            let range = begin..begin + text.len();
            begin = range.end + 1;
            match expected.next().ok_or(Unfilled::Path)? {
                Segment::Fixed(fixed) if fixed == text => {}
                Segment::Fixed(_) => return Err(Unfilled::Path),
                Segment::Slot(name) => match segment_value(text) {
                    Some(value) => slots.push(Slot { name: name.clone(), value, range }),
                    None => unusable = Some(name.clone()),
                },
            }
        }
        match (expected.next(), unusable) {
            (Some(_), _) => Err(Unfilled::Path),
            (None, Some(name)) => Err(Unfilled::Segment(name)),
            (None, None) => Ok(slots),
        }
    }

    fn fill_query(&self, url: &CanonicalUrl, slots: &mut Vec<Slot>) -> Result<(), Unfilled> {
        let mut seen = BTreeSet::new();
        let mut begin = url.query_begin();
        for piece in url.query().into_iter().flat_map(|query| query.split('&')) {
            let (name, text) = piece.split_once('=').map_or((piece, None), |(name, text)| (name, Some(text)));
            let end = begin + piece.len();
            let unlisted = || Unfilled::Unlisted(name.to_owned());
            let parameter = self.parameters.iter().find(|parameter| parameter.name == name).ok_or_else(unlisted)?;
            if !seen.insert(name) {
                return Err(Unfilled::Twice(name.to_owned()));
            }
            match &parameter.value {
                Value::Fixed(fixed) if fixed.as_deref() == text => {}
                Value::Fixed(_) => return Err(Unfilled::Value(name.to_owned())),
                Value::Slot { name: slot, .. } => {
                    let value = text.and_then(query_value).ok_or_else(|| Unfilled::Value(name.to_owned()))?;
                    let range = end - text.map_or(0, str::len)..end;
                    slots.push(Slot { name: slot.clone(), value, range });
                }
            }
            begin = end + 1;
        }
        let is_absent = |parameter: &&Parameter| !parameter.is_optional() && !seen.contains(parameter.name.as_str());
        self.parameters.iter().find(is_absent).map_or(Ok(()), |absent| Err(Unfilled::Absent(absent.name.clone())))
    }
}

impl Parameter {
    const fn is_optional(&self) -> bool {
        matches!(self.value, Value::Slot { is_optional: true, .. })
    }
}

/// Returns the value of a segment that a slot may take.
fn segment_value(text: &str) -> Option<String> {
    let value = percent::decoded(text)?;
    // One value has one spelling, or two requests would show as one.
    let is_one_spelling = percent::encoded(&value, percent::is_segment) == text;
    let alike: String = value.nfkc().collect();
    // Some servers cut a segment at `;`, and some read letters that look like a slash as one.
    let head = alike.split(';').next().unwrap_or_default().trim();
    let is_plain = !value.chars().any(char::is_control) && !alike.contains(['/', '\\', '%']);
    (is_one_spelling && is_plain && !matches!(head, "" | "." | "..")).then_some(value)
}

/// Returns the value of a parameter, as a form is read: `+` is a space.
fn query_value(text: &str) -> Option<String> {
    if text.contains([';', '=']) {
        return None;
    }
    let value = percent::decoded(&text.replace('+', " "))?;
    (!value.is_empty() && !value.chars().any(char::is_control)).then_some(value)
}

impl Segment {
    fn text(&self) -> String {
        match self {
            Self::Fixed(text) => text.clone(),
            Self::Slot(name) => format!("{{{name}}}"),
        }
    }
}

impl Parameter {
    fn text(&self) -> String {
        let name = &self.name;
        match &self.value {
            Value::Fixed(None) => name.clone(),
            Value::Fixed(Some(value)) => format!("{name}={value}"),
            Value::Slot { name: slot, is_optional } => {
                format!("{name}={{{slot}{}}}", if *is_optional { "?" } else { "" })
            }
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let segments: Vec<_> = self.segments.iter().map(Segment::text).collect();
        let parameters: Vec<_> = self.parameters.iter().map(Parameter::text).collect();
        write!(f, "/{}", segments.join("/"))?;
        if parameters.is_empty() { Ok(()) } else { write!(f, "?{}", parameters.join("&")) }
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
