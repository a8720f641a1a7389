//! The front matter of `SKILL.md`: the part of YAML that the Agent Skills format needs.
//!
//! Reads `key: value` with plain, quoted and block texts, and one level below `metadata:`. Refuses every other feature of YAML by its
//! name, so that two readers cannot understand one text differently.

use crate::{DESCRIPTION_CHARACTERS_MAX, Error, INSTRUCTIONS, Name, plain};
use std::collections::BTreeMap;

mod scalar;

/// Characters of `license`, `compatibility`, `allowed-tools` and of a value of `metadata`.
pub(crate) const VALUE_CHARACTERS_MAX: usize = 1_024;
/// Entries of `metadata`.
pub(crate) const METADATA_MAX: usize = 16;
/// The line before and after the front matter.
const FENCE: &str = "---";

/// The front matter of `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontMatter {
    /// The name of the skill.
    pub name: Name,
    /// Its purpose and its occasions: one line.
    pub description: String,
    pub license: Option<String>,
    /// Its needs, as text.
    pub compatibility: Option<String>,
    /// Names of tools, as text. The host does not use it.
    pub allowed_tools: Option<String>,
    /// Further texts by name.
    pub metadata: BTreeMap<String, String>,
}

impl FrontMatter {
    /// Reads the front matter of a text. Returns it with the text after it.
    ///
    /// # Errors
    /// [`Error::Manifest`] with the number of the line.
    pub fn parse(text: &str) -> Result<(Self, &str), Error> {
        let (yaml, body) = split(text).map_err(|what| Error::manifest(INSTRUCTIONS, what))?;
        let mut fields = Fields::default();
        fields.read(yaml).map_err(|(line, what)| Error::manifest(INSTRUCTIONS, format!("line {line}: {what}")))?;
        let matter = fields.finish().map_err(|what| Error::manifest(INSTRUCTIONS, what))?;
        Ok((matter, body))
    }

    /// Returns its text with the fences, in a form that [`FrontMatter::parse`] reads back.
    #[cfg(feature = "author")]
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!("{FENCE}\n");
        let mut add = |indent: &str, key: &str, value: &str| {
            text.push_str(&format!("{indent}{key}: {}\n", scalar::written(value)));
        };
        add("", "name", self.name.as_ref());
        add("", "description", &self.description);
        for (key, value) in
            [("license", &self.license), ("compatibility", &self.compatibility), ("allowed-tools", &self.allowed_tools)]
        {
            value.iter().for_each(|value| add("", key, value));
        }
        if !self.metadata.is_empty() {
            text.push_str("metadata:\n");
        }
        for (key, value) in &self.metadata {
            text.push_str(&format!("  {key}: {}\n", scalar::written(value)));
        }
        text.push_str(&format!("{FENCE}\n"));
        text
    }
}

/// Returns the lines between the fences and the text after them.
fn split(text: &str) -> Result<(&str, &str), String> {
    let missing = || "the first line is not ---: a front matter with name and description is missing".to_owned();
    let rest = text.strip_prefix(FENCE).ok_or_else(missing)?;
    let rest = rest.strip_prefix('\n').or_else(|| rest.strip_prefix("\r\n")).ok_or_else(missing)?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end_matches(['\n', '\r']) == FENCE {
            return Ok((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    Err("the front matter has no end: a line --- is missing".to_owned())
}

#[derive(Default)]
struct Fields {
    values: BTreeMap<&'static str, String>,
    metadata: BTreeMap<String, String>,
    has_metadata: bool,
}

const KEYS: [&str; 5] = ["name", "description", "license", "compatibility", "allowed-tools"];
const METADATA: &str = "metadata";

/// A refusal with its line.
type Refused = (usize, String);

impl Fields {
    fn read(&mut self, yaml: &str) -> Result<(), Refused> {
        let lines: Vec<&str> = yaml.lines().collect();
        let mut at = 0;
        while at < lines.len() {
            // The first line of the file is the fence.
            let number = at + 2;
            let line = lines[at];
            at += 1;
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = scalar::pair(line, 0).map_err(|what| (number, what))?;
            if key == METADATA {
                at += self.read_metadata(value, &lines[at..], number)?;
                continue;
            }
            let Some(known) = KEYS.iter().find(|known| **known == key) else {
                return Err((number, format!("unknown field {key:?}: move it below metadata")));
            };
            let (text, used) = scalar::read(value, &lines[at..]).map_err(|what| (number, format!("{key}: {what}")))?;
            at += used;
            if self.values.insert(known, text).is_some() {
                return Err((number, format!("{key} is there twice")));
            }
        }
        Ok(())
    }

    /// Returns the number of lines that belong to it.
    fn read_metadata(&mut self, value: &str, below: &[&str], number: usize) -> Result<usize, Refused> {
        if !value.is_empty() {
            return Err((
                number,
                "metadata: a value on its line; write its entries below, each with two spaces".to_owned(),
            ));
        }
        if std::mem::replace(&mut self.has_metadata, true) {
            return Err((number, "metadata is there twice".to_owned()));
        }
        let mut indent = 0;
        for (at, line) in below.iter().enumerate() {
            let number = number + 1 + at;
            let own = line.len() - line.trim_start_matches(' ').len();
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            if own == 0 {
                return Ok(at);
            }
            indent = if indent == 0 { own } else { indent };
            let (key, value) = scalar::pair(line, indent).map_err(|what| (number, what))?;
            let (text, _) = scalar::read(value, &[]).map_err(|what| (number, format!("{key}: {what}")))?;
            if self.metadata.insert(key.to_owned(), text).is_some() {
                return Err((number, format!("{key} is there twice")));
            }
            if self.metadata.len() > METADATA_MAX {
                return Err((number, format!("metadata has more than {METADATA_MAX} entries")));
            }
        }
        Ok(below.len())
    }

    fn finish(mut self) -> Result<FrontMatter, String> {
        for (key, text) in self
            .values
            .iter()
            .map(|(key, text)| (*key, text))
            .chain(self.metadata.iter().map(|(key, text)| (key.as_str(), text)))
        {
            plain::check_lines(text).map_err(|what| format!("{key}: {what}"))?;
            if text.chars().count() > VALUE_CHARACTERS_MAX {
                return Err(format!("{key} has more than {VALUE_CHARACTERS_MAX} characters"));
            }
        }
        let name = self.values.remove("name").ok_or("name is missing")?;
        let description = self.values.remove("description").ok_or("description is missing")?;
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        if !(1..=DESCRIPTION_CHARACTERS_MAX).contains(&description.chars().count()) {
            return Err(format!("description must have 1 to {DESCRIPTION_CHARACTERS_MAX} characters"));
        }
        plain::check_line(&description).map_err(|what| format!("description: {what}"))?;
        Ok(FrontMatter {
            name: name.parse().map_err(|what| format!("name: {what}"))?,
            description,
            license: self.values.remove("license"),
            compatibility: self.values.remove("compatibility"),
            allowed_tools: self.values.remove("allowed-tools"),
            metadata: self.metadata,
        })
    }
}

#[cfg(test)]
mod tests;
