//! The text of a template: its parts, and the reasons why a text is none.
//!
//! Never repairs a text. See [`super::Template`].

use super::{Parameter, Segment, Template, Value};
use crate::egress::percent;
use std::collections::BTreeSet;
use std::str::FromStr;

/// Bytes of a template.
const TEMPLATE_BYTES_MAX: usize = 1024;
/// Slots of a template.
const SLOTS_MAX: usize = 16;
/// Characters of the name of a slot.
const SLOT_CHARACTERS_MAX: usize = 32;

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let template = Self::for_registry(text)?;
        let has_name = |segment: &Segment| matches!(segment, Segment::Fixed(fixed) if !fixed.is_empty());
        let is_root = template.segments == [Segment::Fixed(String::new())];
        match is_root || template.segments.iter().any(has_name) {
            true => Ok(template),
            false => Err(TemplateError::MatchesEverything(text.to_owned())),
        }
    }
}

impl Template {
    /// Parses a template of a package registry: names of packages are the first part of a path there, so it may have slots alone.
    ///
    /// # Errors
    /// As for any other template.
    pub fn for_registry(text: &str) -> Result<Self, TemplateError> {
        if text.len() > TEMPLATE_BYTES_MAX {
            return Err(TemplateError::TooLong(text.len()));
        }
        let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
        let path = path.strip_prefix('/').ok_or_else(|| TemplateError::NoSlash(text.to_owned()))?;
        if text.contains('#') {
            return Err(TemplateError::Fragment);
        }
        let pieces: Vec<_> = path.split('/').collect();
        if pieces[..pieces.len() - 1].iter().any(|piece| piece.is_empty()) {
            return Err(TemplateError::EmptySegment);
        }
        let segments = pieces.into_iter().map(Segment::parse).collect::<Result<Vec<_>, _>>()?;
        let parameters = match query {
            Some(query) => query.split('&').map(Parameter::parse).collect::<Result<Vec<_>, _>>()?,
            None => Vec::new(),
        };
        let template = Self { segments, parameters };
        template.check()?;
        Ok(template)
    }

    fn check(&self) -> Result<(), TemplateError> {
        let mut names = BTreeSet::new();
        if let Some(twice) = self.slots().find(|name| !names.insert(*name)) {
            return Err(TemplateError::SlotTwice(twice.to_owned()));
        }
        if names.len() > SLOTS_MAX {
            return Err(TemplateError::Slots(names.len()));
        }
        let mut names = BTreeSet::new();
        match self.parameters.iter().find(|parameter| !names.insert(&parameter.name)) {
            Some(twice) => Err(TemplateError::ParameterTwice(twice.name.clone())),
            None => Ok(()),
        }
    }
}

impl Segment {
    fn parse(text: &str) -> Result<Self, TemplateError> {
        if let Some(name) = slot(text)? {
            return Ok(Self::Slot(slot_name(name)?));
        }
        let fixed = fixed(text, percent::is_path)?;
        let plain = percent::decoded(&fixed).unwrap_or_default();
        if plain.contains(['/', '\\']) {
            return Err(TemplateError::EncodedSlash(text.to_owned()));
        }
        match plain.as_str() {
            "." | ".." => Err(TemplateError::DotSegment),
            _ => Ok(Self::Fixed(fixed)),
        }
    }
}

impl Parameter {
    fn parse(text: &str) -> Result<Self, TemplateError> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let name = fixed(name, percent::is_query)?;
        if name.is_empty() {
            return Err(TemplateError::NoParameter);
        }
        let value = match (value, value.map(slot).transpose()?.flatten()) {
            (_, Some(name)) => {
                let without = name.strip_suffix('?');
                Value::Slot { name: slot_name(without.unwrap_or(name))?, is_optional: without.is_some() }
            }
            (value, None) => Value::Fixed(value.map(|value| fixed(value, percent::is_query)).transpose()?),
        };
        Ok(Self { name, value })
    }
}

/// Returns the text between braces, if the whole text is a slot.
fn slot(text: &str) -> Result<Option<&str>, TemplateError> {
    let inside = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    if inside.unwrap_or(text).contains(['{', '}']) {
        return Err(TemplateError::PartOfSegment(text.to_owned()));
    }
    Ok(inside)
}

fn slot_name(name: &str) -> Result<String, TemplateError> {
    let is_usual = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_bounded = name.len() <= SLOT_CHARACTERS_MAX && name.starts_with(|c: char| c.is_ascii_lowercase());
    match is_bounded && name.chars().all(is_usual) {
        true => Ok(name.to_owned()),
        false => Err(TemplateError::SlotName(name.to_owned())),
    }
}

/// Returns the canonical form of a fixed part.
fn fixed(text: &str, plain: fn(u8) -> bool) -> Result<String, TemplateError> {
    if text.contains('*') {
        return Err(TemplateError::Wildcard(text.to_owned()));
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err(TemplateError::Character(text.to_owned()));
    }
    percent::normal(text, plain).ok_or_else(|| TemplateError::Percent(text.to_owned()))
}

/// The reason why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("a template of {0} bytes is over the limit of {TEMPLATE_BYTES_MAX}: split it")]
    TooLong(usize),
    /// No slash at the start.
    #[error("the template {0:?} is no path: begin it with a slash, without scheme and host")]
    NoSlash(String),
    #[error("a template has no `#`: a fragment never reaches a server")]
    Fragment,
    /// Two slashes in a row.
    #[error("a template has no empty segment: write one slash between two segments")]
    EmptySegment,
    #[error("a template has no `.` and no `..`: write the path that they lead to")]
    DotSegment,
    /// A slash or a backslash inside of a segment.
    #[error("the segment {0:?} has an encoded slash: write two segments")]
    EncodedSlash(String),
    #[error("{0:?} has a wildcard: write a slot such as {{name}} for one segment, and one template for each depth")]
    Wildcard(String),
    #[error(
        "the template {0:?} matches everything of its depth: write at least one fixed segment, such as /repos/{{owner}}"
    )]
    MatchesEverything(String),
    /// A slot that is only a part of a segment.
    #[error(
        "{0:?} has a slot in a part of a segment: a slot is a whole segment such as {{name}}, or a whole value of the query"
    )]
    PartOfSegment(String),
    /// The name of a slot.
    #[error(
        "{0:?} is no name of a slot: write a-z, 0-9 and _, starting with a letter; a `?` behind it is for parameters only"
    )]
    SlotName(String),
    /// Two slots with one name.
    #[error("the slot {{{0}}} is there twice: give each slot its own name")]
    SlotTwice(String),
    #[error("{0} slots are over the limit of {SLOTS_MAX}: fix some of the values")]
    Slots(usize),
    /// A parameter without a name.
    #[error("a parameter of the query has no name: write ?name={{name}}")]
    NoParameter,
    /// Two parameters with one name.
    #[error("the parameter `{0}` is there twice: list it once")]
    ParameterTwice(String),
    /// White space, a control character or a backslash.
    #[error("{0:?} has a space, a control character or a backslash: write it percent-encoded")]
    Character(String),
    /// A percent sign without two digits.
    #[error("{0:?} has a percent sign without two hex digits: write %25 for the sign itself")]
    Percent(String),
}
