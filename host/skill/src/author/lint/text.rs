//! Findings about the text of one file: hidden characters, comments, the voice of the host, references to the outside.

use super::{Error, Finding, TEXT_BYTES_MAX, error, pack, tree, warning};
use crate::plain::{has_voice_of_host, is_hidden};
use std::borrow::Cow;
use std::path::Path;

/// Findings of one kind in one file.
const REPEATS_MAX: usize = 10;
/// Characters of a reference that are shown.
const REFERENCE_CHARACTERS_MAX: usize = 200;
/// Beginnings of an address outside of the package.
const SCHEMES: [&str; 7] = ["http://", "https://", "ftp://", "ws://", "wss://", "ssh://", "git@"];
/// Words of a script that reaches the network.
const NETWORK: [&str; 14] = [
    "curl", "wget", "nc", "ncat", "telnet", "ssh", "scp", "rsync", "/dev/tcp", "socket", "urllib", "requests",
    "aiohttp", "fetch(",
];
/// Places outside of the workspace that no skill needs.
const PLACES: [&str; 9] = ["/proc/", "/agents", "/in/", "/out/", "/etc/", "/var/lib", "/home/", "/root", ".ssh"];
/// Phrases of a text that wants to be obeyed before the policy. In lower case.
const ORDERS: [&str; 8] = [
    "ignore the policy",
    "ignore all",
    "ignore previous",
    "ignore your",
    "do not tell",
    "without asking",
    "do not ask",
    "already approved",
];
/// Endings of texts that a model reads.
const DOCUMENTS: [&str; 4] = [".md", ".txt", ".markdown", ".rst"];
/// Variation selectors and joiners of emoji, which authors type without knowing.
const OF_EMOJI: [char; 3] = ['\u{fe0e}', '\u{fe0f}', '\u{200d}'];

/// A reference to the outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    pub target: String,
}

/// Returns every reference to the outside in the texts of a directory.
///
/// # Errors
/// [`Error::Io`] if a file cannot be read, and each refusal of a path.
pub fn outward_references(directory: &Path) -> Result<Vec<Reference>, Error> {
    let mut found = Vec::new();
    for file in tree::files(directory)? {
        let Ok(bytes) = pack::bounded(&directory.join(&file), TEXT_BYTES_MAX) else { continue };
        let Ok(text) = String::from_utf8(bytes) else { continue };
        for (number, line) in text.lines().enumerate() {
            found.extend(references(line).map(|target| Reference { file: file.clone(), line: number + 1, target }));
        }
    }
    Ok(found)
}

fn references(line: &str) -> impl Iterator<Item = String> {
    let mut places: Vec<usize> =
        SCHEMES.iter().flat_map(|scheme| line.match_indices(scheme)).map(|(at, _)| at).collect();
    places.sort_unstable();
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | ')' | ']' | '`');
    places.into_iter().map(move |at| {
        let target = line[at..].split(is_end).next().unwrap_or_default();
        target.trim_end_matches(['.', ',', ';', ':']).chars().take(REFERENCE_CHARACTERS_MAX).collect()
    })
}

/// Adds the findings about one text.
pub(super) fn look(file: &str, text: &str, is_script: bool, findings: &mut Vec<Finding>) {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        look_at_line(file, line, number + 1, is_script, &mut found);
    }
    let mut kinds: Vec<(String, usize)> = Vec::new();
    for finding in found {
        let kind = finding.what.split(':').next().unwrap_or_default().to_owned();
        let count = match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                kinds.push((kind, 1));
                1
            }
        };
        if count <= REPEATS_MAX {
            findings.push(finding);
        }
    }
}

fn look_at_line(file: &str, line: &str, number: usize, is_script: bool, found: &mut Vec<Finding>) {
    let at = Some(number);
    if let Some(hidden) = line.chars().find(|c| is_hidden(*c) && !OF_EMOJI.contains(c) && *c != '\r') {
        let what = format!("a hidden character: U+{:04X}; write it visibly or remove it", u32::from(hidden));
        found.push(error(file, at, &what));
    }
    if matches!(ironclaw_text::lookalike::neutralise(line), Cow::Owned(_)) {
        // Programs and data may need them, and the host writes the marks in the result of a call as text.
        let is_for_readers = DOCUMENTS.iter().any(|ending| file.ends_with(ending));
        let found_as = if is_for_readers { error } else { warning };
        found.push(found_as(file, at, "a mark that looks like one of the host or of a model"));
    }
    if has_voice_of_host(line) {
        found.push(warning(file, at, "a line that looks like one of the host"));
    }
    if line.contains("<!--") {
        found.push(warning(file, at, "an HTML comment, which a rendered page does not show: remove it"));
    }
    let lower = line.to_lowercase();
    for phrase in ORDERS.iter().filter(|phrase| lower.contains(**phrase)) {
        found.push(warning(
            file,
            at,
            &format!("an order about rules: {phrase:?}; the host ignores it, and people distrust it"),
        ));
    }
    for target in references(line) {
        found.push(warning(file, at, &format!("a reference to the outside: {target}")));
    }
    if is_script {
        let words = |c: char| !(c.is_alphanumeric() || matches!(c, '/' | '_' | '('));
        let is_named = |name: &&&str| match name.ends_with('(') || name.starts_with('/') {
            true => line.contains(**name),
            false => line.split(words).any(|word| word == **name),
        };
        if let Some(name) = NETWORK.iter().find(is_named) {
            found.push(warning(
                file,
                at,
                &format!("the network: {name}; a command has none without a grant of egress"),
            ));
        }
        if let Some(place) = PLACES.iter().find(|place| line.contains(**place)) {
            found.push(warning(
                file,
                at,
                &format!("a place outside of the workspace: {place}; the jail does not show it"),
            ));
        }
    }
}
