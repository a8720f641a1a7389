//! The place of a mistake in a data file of this crate: its line and its field.
//!
//! Never changes the reason that the parser gives.

use std::fmt;

/// A mistake in a TOML text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The number of its line, from 1.
    pub line: usize,
    /// The field, if the mistake is about one.
    pub field: Option<String>,
    /// The reason, with what to write instead.
    pub reason: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "line {}, field {field}: {}", self.line, self.reason),
            None => write!(f, "line {}: {}", self.line, self.reason),
        }
    }
}

impl std::error::Error for Mistake {}

impl Mistake {
    /// Returns the mistake that a parser found in a text.
    pub fn new(text: &str, error: &toml::de::Error) -> Self {
        let reason = error.message().trim_end().to_owned();
        let start = error.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or(text);
        let field = named(&reason).or_else(|| key_before(text, before));
        Self { line: before.matches('\n').count() + 1, field, reason }
    }
}

/// Returns the field that the reason names: "missing field `x`" or "unknown field `x`".
fn named(reason: &str) -> Option<String> {
    let (_, rest) = reason.split_once(" field `")?;
    rest.split_once('`').map(|(name, _)| name.to_owned())
}

/// Returns the key whose value has the end of `before`: that of the line, or of the nearest line above it that has one.
fn key_before(text: &str, before: &str) -> Option<String> {
    let until = before.len() + text[before.len()..].find('\n').unwrap_or(text.len() - before.len());
    let line = text[..until].lines().rev().take_while(|line| !line.starts_with('[')).find(|line| line.contains('='))?;
    let key = line.split('=').next()?.trim();
    Some(key.to_owned()).filter(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its reader is of interest")]
    struct Row {
        lang: String,
        wants: Vec<crate::class::Class>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only its reader is of interest")]
    struct Rows {
        row: Vec<Row>,
    }

    fn mistake(text: &str) -> (usize, Option<String>) {
        let error = toml::from_str::<Rows>(text).expect_err(text);
        let found = Mistake::new(text, &error);
        (found.line, found.field)
    }

    #[test]
    fn mistake_names_its_line_and_field() {
        let head = "# head\n[[row]]\nlang = 'en'\n";
        let place = |line, field: &str| (line, Some(field.to_owned()));
        assert_eq!(mistake(&format!("{head}wants = ['send', 'delete']\n")), place(4, "wants"));
        assert_eq!(mistake(&format!("{head}wants = [\n  'send',\n  'delete',\n]\n")), place(6, "wants"));
        assert_eq!(mistake(&format!("{head}wants = 'send'\n")), place(4, "wants"));
        assert_eq!(mistake(&format!("{head}wants = []\nwant = []\n")), place(5, "want"));
        assert_eq!(mistake(head).1, Some("wants".to_owned()));
        assert_eq!(mistake(&format!("{head}wants = [\n")).0, 4);
        assert_eq!(mistake("[[row]]\nlang\n"), (2, None));
    }
}
