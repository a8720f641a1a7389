//! Rewrites the paths in the texts of a skill to the places that its files have in the package.
//!
//! Changes nothing but paths, and lines that let Python find moved modules. Never changes a program. See [`super::place`].

mod line;
mod python;

use super::reference::{Layout, Named};
use line::{Context, Word};

/// A line of a text before and after the import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The new path of the text.
    pub file: String,
    /// The new line, from 1.
    pub line: usize,
    /// Absent for a line that is new.
    pub before: Option<String>,
    pub after: String,
}

/// Names of files that every project has: a text that names one alone rarely means that of the skill.
const OF_EVERY_PROJECT: [&str; 13] = [
    "skill.md",
    "readme.md",
    "package.json",
    "requirements.txt",
    "tsconfig.json",
    "pyproject.toml",
    "makefile",
    "license",
    "changelog.md",
    "dockerfile",
    "claude.md",
    "agents.md",
    "package-lock.json",
];

/// A text with its path before and after the import.
pub(super) struct Text<'a> {
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    pub(super) text: &'a str,
}

/// Rewrites texts of one skill.
pub(super) struct Rewriter<'a> {
    pub(super) layout: &'a Layout,
    /// True for a skill of the public format: its commands run in its own directory, and here they run in the workspace.
    pub(super) is_foreign: bool,
}

impl Rewriter<'_> {
    /// Returns the new text, and adds each changed line.
    pub(super) fn rewrite(&self, text: &Text<'_>, edits: &mut Vec<Edit>) -> String {
        let mut out = String::new();
        let mut fence: Option<line::Fence> = None;
        let mut number = 0;
        for whole in text.text.split_inclusive('\n') {
            let (line, end) = whole.strip_suffix('\n').map_or((whole, ""), |line| (line, "\n"));
            if let Some(next) = line::Fence::after(&fence, line) {
                fence = next;
            } else if let Some(fence) = &mut fence
                && self.is_foreign
                && let Some(path) = python::path_of_import(line, fence, self.layout)
            {
                let indent = &line[..line.len() - line.trim_start().len()];
                let after = format!("{indent}import sys; sys.path.insert(0, \"{path}\")");
                number += 1;
                out.push_str(&format!("{after}\n"));
                edits.push(Edit { file: text.to.to_owned(), line: number, before: None, after });
            }
            number += 1;
            let after = self.line(text, line, fence.as_ref());
            if after != line {
                let before = Some(line.to_owned());
                edits.push(Edit { file: text.to.to_owned(), line: number, before, after: after.clone() });
            }
            out.push_str(&after);
            out.push_str(end);
        }
        out
    }

    fn line(&self, text: &Text<'_>, line: &str, fence: Option<&line::Fence>) -> String {
        let mut out = String::new();
        let mut done = 0;
        for word in line::words(line, fence) {
            let Some(new) = self.word(text, &word) else { continue };
            if word.from < done {
                continue;
            }
            out.push_str(&line[done..word.from]);
            out.push_str(&new);
            done = word.to;
        }
        out.push_str(&line[done..]);
        let out = self.spaced(text, out);
        match self.is_foreign && line::is_command(&out, fence) {
            true => python::with_path(&out, self.layout).unwrap_or(out),
            false => out,
        }
    }

    /// Returns the new form of a word; `None` if it stays.
    fn word(&self, text: &Text<'_>, word: &Word<'_>) -> Option<String> {
        let directory = parent(text.from);
        if let Some(rest) = word.in_the_skill(&self.layout.called) {
            let path = match rest.is_empty() {
                true => String::new(),
                false => self.layout.find("", rest).map(|named| self.layout.new_path(&named).to_owned())?,
            };
            let new = with_slash(self.layout.shown(&path), word.text);
            return (new != word.text).then_some(new);
        }
        let decoded = word.text.replace("%20", " ");
        let named = self.layout.find(directory, &decoded)?;
        if !is_reference(&named, word) {
            return None;
        }
        let target = self.layout.new_path(&named);
        let is_root = !text.to.contains('/');
        if word.context == Context::Command && self.is_foreign {
            let new = with_slash(self.layout.shown(target), word.text);
            return (new != word.text).then_some(new);
        }
        let base = if named.is_relative { parent(text.to) } else { "" };
        if super::tree::joined(base, &decoded).as_deref() == Some(target) {
            return None;
        }
        let new = if is_root { target.to_owned() } else { self.layout.shown(target) };
        let new = if word.context == Context::Link { new.replace(' ', "%20") } else { new };
        Some(with_slash(new, word.text))
    }

    /// Rewrites the paths with spaces, which are no words.
    fn spaced(&self, text: &Text<'_>, mut line: String) -> String {
        for (from, to) in self.layout.files().filter(|(from, to)| from.contains(' ') && from != to) {
            let new = if text.to.contains('/') { self.layout.shown(to) } else { to.clone() };
            if line.contains(from.as_str()) && !line.contains(to.as_str()) {
                line = line.replace(from.as_str(), &new);
            }
        }
        line
    }
}

/// A command in a block of code.
pub(super) struct Command<'t> {
    pub(super) line: usize,
    pub(super) text: &'t str,
}

/// Returns the commands in the blocks of a text.
pub(super) fn commands(text: &str) -> Vec<Command<'_>> {
    let mut commands = Vec::new();
    let mut fence: Option<line::Fence> = None;
    for (number, text) in text.lines().enumerate() {
        if let Some(next) = line::Fence::after(&fence, text) {
            fence = next;
        } else if fence.is_some() && !text.trim().is_empty() && line::is_command(text, fence.as_ref()) {
            let is_comment = text.trim_start().starts_with('#');
            commands.extend((!is_comment).then(|| Command { line: number + 1, text: text.trim() }));
        }
    }
    commands
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn with_slash(path: String, old: &str) -> String {
    match old.ends_with('/') && !path.ends_with('/') {
        true => format!("{path}/"),
        false => path,
    }
}

/// Returns whether a name alone is that of a file of every project.
pub(super) fn is_common(name: &str) -> bool {
    OF_EVERY_PROJECT.contains(&name.to_lowercase().as_str())
}

/// Returns whether a word that could be a path is meant as one.
fn is_reference(named: &Named, word: &Word<'_>) -> bool {
    if word.text.contains('/') {
        return !named.is_directory
            || word.context != Context::Prose
            || word.text.ends_with('/')
            || word.text.matches('/').count() > 1;
    }
    if named.is_directory {
        return word.context == Context::Link || word.context == Context::Command && word.before == "cd";
    }
    let is_common = is_common(word.text);
    match word.context {
        Context::Link => true,
        Context::Command if is_common => line::is_runner(word.before) || ["cat", "-r"].contains(&word.before),
        Context::Command => word.text.contains('.') || line::is_runner(word.before),
        Context::Mark => !is_common,
        Context::Prose => !is_common && word.text.contains('.'),
    }
}

#[cfg(test)]
mod tests;
