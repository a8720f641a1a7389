//! Turns the front matter that people write into the strict one, with a remark for each change.
//!
//! Never lets a hidden character or an anchor through. See [`super::yaml`] for the reading.

use super::notes::Notes;
use super::yaml::{self, Field, Value};
use crate::front_matter::{METADATA_MAX, VALUE_CHARACTERS_MAX};
use crate::plain::{check_lines, is_hidden};
use crate::{DESCRIPTION_CHARACTERS_MAX, Error, FrontMatter, INSTRUCTIONS, Name, Version};
use ironclaw_text::lookalike::{CLOSE, OPEN, neutralise};
use std::borrow::Cow;
use std::collections::BTreeMap;

const FENCE: &str = "---";
const NAME_CHARACTERS_MAX: usize = 64;
const KEY_CHARACTERS_MAX: usize = 64;
/// The field for the texts of a list in place of metadata.
const ITEMS: &str = "items";
/// The field that sets the version of the package.
const VERSION: &str = "version";

/// The front matter of a foreign skill and the text after it.
pub(super) struct Read {
    pub(super) matter: FrontMatter,
    /// The whole text, with the strict front matter.
    pub(super) text: String,
    pub(super) version: Version,
}

/// Reads the text of `SKILL.md`. `fallback` is the name of its directory, or of the archive.
///
/// # Errors
/// Refuses the features of YAML that have two readings, and texts that hide or imitate.
pub(super) fn read(text: &str, fallback: &str, notes: &mut Notes) -> Result<Read, Error> {
    if let Ok((matter, _)) = FrontMatter::parse(text) {
        let version = version(matter.metadata.get(VERSION).map(String::as_str), notes);
        return Ok(Read { matter, text: text.to_owned(), version });
    }
    let split = split(text, notes);
    let read = yaml::read(split.yaml).map_err(|odd| {
        Error::manifest(INSTRUCTIONS, format!("line {}: {}", odd.line + split.lines_before, odd.what))
    })?;
    for odd in read.odd {
        notes.add(INSTRUCTIONS, Some(odd.line + split.lines_before), odd.what);
    }
    let mut gathered = Gathered { lines_before: split.lines_before, ..Gathered::default() };
    read.fields.into_iter().for_each(|field| gathered.take(field, notes));
    let (matter, version) = gathered.finish(split.body, fallback, notes)?;
    let written = format!("{}{}", matter.to_text(), split.body);
    // The strict reader has the last word.
    let (matter, _) = FrontMatter::parse(&written)?;
    Ok(Read { matter, text: written, version })
}

struct Split<'t> {
    yaml: &'t str,
    body: &'t str,
    /// Lines before the first one of the front matter.
    lines_before: usize,
}

/// Splits a text into front matter and body, also where a fence is missing.
fn split<'t>(text: &'t str, notes: &mut Notes) -> Split<'t> {
    let mut lines_before = 1;
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n').filter(|(line, _)| line.trim().is_empty()) {
        notes.add(INSTRUCTIONS, Some(lines_before), "an empty line before the front matter is left out");
        lines_before += 1;
        rest = &rest[line.len() + 1..];
        debug_assert_eq!(rest.len(), after.len());
    }
    let first = rest.split_inclusive('\n').next().unwrap_or_default();
    if first.trim_end() != FENCE {
        notes.add(INSTRUCTIONS, None, "it has no front matter: its name and its description are made from it");
        return Split { yaml: "", body: rest, lines_before: 0 };
    }
    let inner = &rest[first.len()..];
    let mut at = 0;
    let mut open_end = None;
    for line in inner.split_inclusive('\n') {
        let text = line.trim_end();
        if text == FENCE || text == "..." {
            return Split { yaml: &inner[..at], body: &inner[at + line.len()..], lines_before };
        }
        if open_end.is_none() && (text.is_empty() || text.starts_with('#')) {
            open_end = Some(at);
        }
        at += line.len();
    }
    notes.add(INSTRUCTIONS, None, "the front matter has no end: it ends before the first empty line or heading");
    let end = open_end.unwrap_or(inner.len());
    Split { yaml: &inner[..end], body: &inner[end..], lines_before }
}

#[derive(Default)]
struct Gathered {
    lines_before: usize,
    texts: BTreeMap<&'static str, String>,
    metadata: Vec<Metadata>,
}

struct Metadata {
    key: String,
    value: String,
    line: usize,
}

const KEYS: [&str; 5] = ["name", "description", "license", "compatibility", "allowed-tools"];

impl Gathered {
    fn take(&mut self, field: Field, notes: &mut Notes) {
        let line = field.line + self.lines_before;
        let key = field.key.to_lowercase().replace('_', "-");
        if let Some(known) = KEYS.iter().find(|known| **known == key) {
            if field.key != key {
                notes.add(INSTRUCTIONS, Some(line), format!("{} is read as {key}", field.key));
            }
            if !matches!(field.value, Value::Text(_)) {
                notes.add(INSTRUCTIONS, Some(line), format!("{key}: a list or a map is written as one text"));
            }
            let text = self.cleaned(known, &flat(&field.value), line, notes);
            if matches!(*known, "name" | "description") || check_lines(&text).is_ok() {
                self.texts.insert(known, text);
            } else {
                notes.add(INSTRUCTIONS, Some(line), format!("{key}: left out: it looks like a text of the host"));
            }
        } else if key == "metadata" {
            match field.value {
                Value::Map(fields) => fields.into_iter().for_each(|inner| self.nested("", inner, notes)),
                Value::List(items) => items.into_iter().for_each(|item| match item {
                    Value::Map(fields) => fields.into_iter().for_each(|inner| self.nested("", inner, notes)),
                    other => self.note_metadata(ITEMS, &other, line, notes),
                }),
                Value::Empty => {}
                other => self.note_metadata("text", &other, line, notes),
            }
        } else {
            notes.add(INSTRUCTIONS, Some(line), format!("{}: the field is moved below metadata", field.key));
            self.nested("", field, notes);
        }
    }

    /// Adds an entry of metadata; those of a map in it get its name and a dot.
    fn nested(&mut self, prefix: &str, field: Field, notes: &mut Notes) {
        let (key, line) = (format!("{prefix}{}", field.key), field.line + self.lines_before);
        match field.value {
            Value::Map(fields) => {
                notes.add(INSTRUCTIONS, Some(line), format!("{key}: the map is written as {key}.NAME"));
                fields.into_iter().for_each(|inner| self.nested(&format!("{key}."), inner, notes));
            }
            value => self.note_metadata(&key, &value, line, notes),
        }
    }

    fn note_metadata(&mut self, key: &str, value: &Value, line: usize, notes: &mut Notes) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let own: String = key.chars().map(|c| if is_plain(c) { c } else { '-' }).take(KEY_CHARACTERS_MAX).collect();
        if own != key {
            notes.add(INSTRUCTIONS, Some(line), format!("metadata: {key} is called {own}"));
        }
        if matches!(value, Value::List(_)) {
            notes.add(INSTRUCTIONS, Some(line), format!("{own}: the list is written as one text"));
        }
        let value = self.cleaned(&own, &flat(value), line, notes);
        if check_lines(&value).is_err() {
            notes.add(INSTRUCTIONS, Some(line), format!("{own}: left out: it looks like a text of the host"));
            return;
        }
        match self.metadata.iter_mut().find(|known| known.key == own) {
            Some(known) if own == ITEMS => known.value = format!("{}, {value}", known.value),
            Some(known) if known.value == value => {}
            Some(_) => notes.add(INSTRUCTIONS, Some(line), format!("{own} is there twice; the first one counts")),
            None => self.metadata.push(Metadata { key: own, value, line }),
        }
    }

    /// Returns a value without hidden characters, and not longer than a value may be.
    fn cleaned(&self, key: &str, text: &str, line: usize, notes: &mut Notes) -> String {
        let mut clean: String = text.chars().filter(|c| !is_hidden(*c)).collect();
        if clean != text {
            notes.add(INSTRUCTIONS, Some(line), format!("{key}: hidden characters are left out"));
        }
        if clean.contains([OPEN, CLOSE]) || matches!(neutralise(&clean), Cow::Owned(_)) {
            clean = clean.replace([OPEN, CLOSE], "").replace(['<', '['], "(").replace(['>', ']'], ")");
            notes.add(INSTRUCTIONS, Some(line), format!("{key}: brackets that look like a mark of the host are round"));
        }
        let is_long = clean.chars().count() > VALUE_CHARACTERS_MAX && key != "description";
        if is_long {
            clean = clean.chars().take(VALUE_CHARACTERS_MAX).collect();
            notes.add(INSTRUCTIONS, Some(line), format!("{key}: cut after {VALUE_CHARACTERS_MAX} characters"));
        }
        clean
    }

    fn finish(mut self, body: &str, fallback: &str, notes: &mut Notes) -> Result<(FrontMatter, Version), Error> {
        let given = self.texts.remove("name").filter(|name| !name.trim().is_empty());
        let name = name(given.as_deref(), fallback, notes)?;
        let description = self.texts.remove("description").unwrap_or_default();
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        let description = match description.is_empty() {
            true => {
                notes.add(INSTRUCTIONS, None, "it has no description: the first words of its text are the description");
                first_words(body, &name)
            }
            false => description,
        };
        let description = shortened(description, notes);
        let mut metadata = BTreeMap::new();
        let mut version_text = None;
        // The version first: the bound on entries must not drop it.
        self.metadata.sort_by_key(|entry| entry.key != VERSION);
        for Metadata { key, value, line } in self.metadata {
            if key == VERSION {
                version_text = Some(value.clone());
            }
            match metadata.len() < METADATA_MAX {
                true => drop(metadata.insert(key, value)),
                false => {
                    notes.add(INSTRUCTIONS, Some(line), format!("{key}: left out: metadata has {METADATA_MAX} entries"))
                }
            }
        }
        let matter = FrontMatter {
            name,
            description,
            license: self.texts.remove("license"),
            compatibility: self.texts.remove("compatibility"),
            allowed_tools: self.texts.remove("allowed-tools"),
            metadata,
        };
        Ok((matter, version(version_text.as_deref(), notes)))
    }
}

/// Returns a value as one text.
fn flat(value: &Value) -> String {
    match value {
        Value::Empty => String::new(),
        Value::Text(text) => text.clone(),
        Value::List(items) => items.iter().map(flat).collect::<Vec<_>>().join(", "),
        Value::Map(fields) => {
            let pairs = fields.iter().map(|field| match &field.value {
                Value::Empty => field.key.clone(),
                value => format!("{}: {}", field.key, flat(value)),
            });
            pairs.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Returns the name of a skill, from its own or from that of its directory.
fn name(given: Option<&str>, fallback: &str, notes: &mut Notes) -> Result<Name, Error> {
    for (text, what) in [(given.unwrap_or_default(), "its name"), (fallback, "the name of its directory")] {
        let own = plain_name(text);
        if let Ok(name) = own.parse::<Name>() {
            if given.is_none() {
                notes.add(INSTRUCTIONS, None, format!("it has no name: it is called {own}, after {what}"));
            } else if Some(own.as_str()) != given {
                notes.add(INSTRUCTIONS, None, format!("it is called {own}, after {what} {text:?}"));
            }
            return Ok(name);
        }
    }
    Err(Error::manifest(
        INSTRUCTIONS,
        "name is missing, and its directory has no name of letters a-z: write name: NAME",
    ))
}

/// Returns a text in the letters of names.
pub(super) fn plain_name(text: &str) -> String {
    let mut name = String::new();
    for character in text.trim().chars().flat_map(char::to_lowercase) {
        match character.is_ascii_lowercase() || character.is_ascii_digit() {
            true => name.push(character),
            false if !name.ends_with('-') && !name.is_empty() => name.push('-'),
            false => {}
        }
    }
    name.chars().take(NAME_CHARACTERS_MAX).collect::<String>().trim_end_matches('-').to_owned()
}

/// Returns the version of a package from the words of its author; 0.1.0 without any.
fn version(text: Option<&str>, notes: &mut Notes) -> Version {
    let none = Version::new(0, 1, 0);
    let Some(text) = text else { return none };
    let word = text.trim().trim_start_matches(['v', 'V']);
    let numbers = word.split(['-', '+']).next().unwrap_or_default();
    let missing = 2usize.saturating_sub(numbers.matches('.').count());
    let whole = format!("{numbers}{}{}", ".0".repeat(missing), &word[numbers.len()..]);
    let without_build = whole.split('+').next().unwrap_or_default();
    match without_build.parse::<Version>() {
        Ok(version) if without_build.len() <= NAME_CHARACTERS_MAX => {
            if version.to_string() != text {
                notes.add(INSTRUCTIONS, None, format!("the version {text:?} is read as {version}"));
            }
            version
        }
        _ => {
            notes.add(
                INSTRUCTIONS,
                None,
                format!("the version {text:?} is not MAJOR.MINOR.PATCH: the version is {none}"),
            );
            none
        }
    }
}

/// Returns the first sentence-like line of a text.
fn first_words(body: &str, name: &Name) -> String {
    let lines = body.lines().map(|line| line.trim().trim_start_matches(['#', '>', '*', '-', ' ']).trim());
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with("```") && check_lines(line).is_ok());
    let first = lines.next().map(str::to_owned);
    // A heading says less than the sentence below it.
    match body.trim_start().starts_with('#') {
        true => lines.next().map(str::to_owned).or(first),
        false => first,
    }
    .unwrap_or_else(|| format!("The skill {name}."))
}

/// Returns a description that is not longer than one may be, cut between sentences or words.
fn shortened(description: String, notes: &mut Notes) -> String {
    if description.chars().count() <= DESCRIPTION_CHARACTERS_MAX {
        return description;
    }
    notes.add(INSTRUCTIONS, None, format!("the description is cut to {DESCRIPTION_CHARACTERS_MAX} characters"));
    let start: String = description.chars().take(DESCRIPTION_CHARACTERS_MAX).collect();
    let sentence = start.rfind(". ").map(|at| at + 1).filter(|at| *at > start.len() / 2);
    let end = sentence.or_else(|| start.rfind(' ')).unwrap_or(start.len());
    start[..end].to_owned()
}
