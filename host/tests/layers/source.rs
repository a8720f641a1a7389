//! Reader of Rust sources as text, for the import rules.
//!
//! It is not a full parser: it removes comments, string literals and tests, and splits the rest into tokens. See `layers`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The code of one file, without tests.
pub(crate) struct Source {
    pub(crate) file: String,
    /// Path of the module from the root of its crate; empty for the root.
    pub(crate) module: Vec<String>,
    /// All paths. Groups of `use` are expanded, and a glob is `*`.
    pub(crate) paths: Vec<Vec<String>>,
    /// The number of inline modules around each path.
    depths: Vec<usize>,
    /// All tokens, without repetition.
    pub(crate) words: BTreeSet<String>,
    pub(crate) tokens: Vec<String>,
}

impl Source {
    pub(crate) fn of(file: &str, text: &str) -> Self {
        let inner = file.split_once("/src/").map_or(file, |(_, inner)| inner).trim_end_matches(".rs");
        // Every program is its own crate root and imports the library.
        let module: Vec<String> = match inner {
            "lib" => Vec::new(),
            program if program == "main" || program.starts_with("bin/") => vec!["main".to_owned()],
            module => module.split('/').map(str::to_owned).collect(),
        };
        let is_test_file = module.iter().any(|part| part == "tests");
        let tokens = if is_test_file { Vec::new() } else { without_tests(tokens(text)) };
        let (paths, depths) = paths(&tokens).into_iter().unzip();
        let words = tokens.iter().cloned().collect();
        Self { file: file.to_owned(), module, paths, depths, words, tokens }
    }

    /// Returns the imported paths from the root of the crate. The first segment is a module.
    pub(crate) fn crate_imports(&self) -> BTreeSet<Vec<String>> {
        let depth_of_file = if self.module == ["main"] { 0 } else { self.module.len() };
        let mut found = BTreeSet::new();
        for (path, inline) in self.paths.iter().zip(&self.depths) {
            let supers = path.iter().take_while(|segment| *segment == "super").count();
            let at = match path.first().map(String::as_str) {
                Some("crate") => 1,
                Some("super") if supers == depth_of_file + inline => supers,
                Some("ironclaw_host") => 1,
                // A crate root may import its own modules without `crate`.
                _ => continue,
            };
            // `use crate as x` and `use super::*` at the root may import any module.
            found.insert(if at < path.len() { path[at..].to_vec() } else { vec!["*".to_owned()] });
        }
        found
    }
}

/// Returns words, `::` and single characters, without comments, string and character literals, and numbers.
fn tokens(text: &str) -> Vec<String> {
    let text: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    let starts = |at: usize, with: &str| with.chars().enumerate().all(|(i, c)| text.get(at + i) == Some(&c));
    while at < text.len() {
        let c = text[at];
        if starts(at, "//") {
            while at < text.len() && text[at] != '\n' {
                at += 1;
            }
        } else if starts(at, "/*") {
            let mut depth = 0;
            while at < text.len() {
                if starts(at, "/*") {
                    depth += 1;
                    at += 2;
                } else if starts(at, "*/") {
                    depth -= 1;
                    at += 2;
                    if depth == 0 {
                        break;
                    }
                } else {
                    at += 1;
                }
            }
        } else if let Some(end) = end_of_raw_string(&text, at) {
            at = end;
        } else if c == '"' {
            at += 1;
            while at < text.len() && text[at] != '"' {
                at += if text[at] == '\\' { 2 } else { 1 };
            }
            at += 1;
        } else if c == '\'' {
            // A character literal or a lifetime, which has no closing quote after one character.
            if text.get(at + 1) == Some(&'\\') {
                at += 3;
                while at < text.len() && text[at] != '\'' {
                    at += 1;
                }
                at += 1;
            } else if text.get(at + 2) == Some(&'\'') {
                at += 3;
            } else {
                at += 1;
            }
        } else if c == '_' || c.is_alphanumeric() {
            let start = at;
            while at < text.len() && (text[at] == '_' || text[at].is_alphanumeric()) {
                at += 1;
            }
            tokens.push(text[start..at].iter().collect());
        } else if starts(at, "::") {
            tokens.push("::".to_owned());
            at += 2;
        } else {
            if !c.is_whitespace() {
                tokens.push(c.to_string());
            }
            at += 1;
        }
    }
    tokens
}

/// Returns the end of a raw string literal (`r"…"`, `r#"…"#`, `br"…"`) that begins at `at`.
fn end_of_raw_string(text: &[char], at: usize) -> Option<usize> {
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    if at > 0 && is_word(text[at - 1]) {
        return None;
    }
    let mut start = at + usize::from(matches!(text[at], 'b' | 'c'));
    if text.get(start) != Some(&'r') {
        return None;
    }
    start += 1;
    let hashes = text[start.min(text.len())..].iter().take_while(|c| **c == '#').count();
    if text.get(start + hashes) != Some(&'"') {
        return None;
    }
    let mut at = start + hashes + 1;
    while at < text.len() {
        if text[at] == '"' && (1..=hashes).all(|i| text.get(at + i) == Some(&'#')) {
            return Some(at + 1 + hashes);
        }
        at += 1;
    }
    Some(text.len())
}

/// Removes every item under `#[cfg(test)]` or `#[test]`.
fn without_tests(tokens: Vec<String>) -> Vec<String> {
    const MARKS: [&[&str]; 2] = [&["#", "[", "cfg", "(", "test", ")", "]"], &["#", "[", "test", "]"]];
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let mark = MARKS
            .iter()
            .find(|mark| tokens[at..].len() >= mark.len() && tokens[at..].iter().zip(**mark).all(|(a, b)| a == b));
        let Some(mark) = mark else {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        };
        at += mark.len();
        // Skips to the end of the item: a semicolon, or the brace that closes its body.
        let mut open = 0usize;
        while at < tokens.len() {
            match tokens[at].as_str() {
                "{" | "(" | "[" => open += 1,
                "}" | ")" | "]" => open = open.saturating_sub(1),
                _ => {}
            }
            at += 1;
            if open == 0 && matches!(tokens[at - 1].as_str(), ";" | "}") {
                break;
            }
        }
    }
    kept
}

/// Returns every path of two or more segments, and single names in `use`, with the number of inline modules around them.
fn paths(tokens: &[String]) -> Vec<(Vec<String>, usize)> {
    let mut found = Vec::new();
    let mut braces: Vec<bool> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = tokens[at].as_str();
        match token {
            "{" => braces.push(at >= 2 && tokens[at - 2] == "mod"),
            "}" => drop(braces.pop()),
            _ => {}
        }
        let inline = braces.iter().filter(|is_module| **is_module).count();
        // `pub(in crate::x)` sets the visibility of an item and is not an import.
        let visibility = at >= 2 && tokens[at - 1] == "in" && tokens[at - 2] == "(";
        // A path begins at its first name, also after `use ::`.
        let continues = at > 1 && tokens[at - 1] == "::" && is_name(&tokens[at - 2]) && !is_keyword(&tokens[at - 2]);
        let begins = is_name(token) && !is_keyword(token) && !continues;
        if begins && !visibility && tokens.get(at + 1).is_some_and(|next| next == "::") {
            let mut expanded = Vec::new();
            let end = expand(tokens, at, &mut Vec::new(), &mut expanded);
            found.extend(expanded.into_iter().map(|path| (path, inline)));
            at = end.max(at + 1);
            continue;
        }
        if visibility {
            while tokens.get(at + 1).is_some_and(|next| next == "::") {
                at += 2;
            }
        }
        let renamed = tokens.get(at + 1).is_some_and(|next| next == "as") && at > 0 && tokens[at - 1] == "use";
        let alone = at > 0 && tokens[at - 1] == "use" && tokens.get(at + 1).is_some_and(|next| next == ";");
        if is_name(token) && (renamed || alone) {
            found.push((vec![token.to_owned()], inline));
        }
        at += 1;
    }
    found
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c == '_' || c.is_alphabetic())
}

/// Returns whether a path with a leading `::` can follow this keyword.
fn is_keyword(token: &str) -> bool {
    matches!(
        token,
        "use" | "as" | "dyn" | "impl" | "in" | "mut" | "ref" | "return" | "const" | "move" | "else" | "match" | "if"
    )
}

/// Reads one path from `at`, with a group in braces at its end. Returns the position after it.
fn expand(tokens: &[String], mut at: usize, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    let own = before.len();
    loop {
        match tokens.get(at).map(String::as_str) {
            Some("{") => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token != "}") {
                    at = if tokens[at] == "," { at + 1 } else { expand(tokens, at, before, found).max(at + 1) };
                }
                before.truncate(own);
                return at + 1;
            }
            Some(segment) if segment == "*" || is_name(segment) => {
                before.push(segment.to_owned());
                at += 1;
            }
            _ => break,
        }
        if tokens.get(at).is_some_and(|token| token == "::") {
            at += 1;
            // `::<` begins generic arguments, which are separate paths.
            if tokens.get(at).is_some_and(|token| token == "<") {
                break;
            }
        } else {
            break;
        }
    }
    found.push(before.clone());
    before.truncate(own);
    // In a group, the new name of `x as y` is not a path.
    if own > 0 && tokens.get(at).is_some_and(|token| token == "as") {
        return at + 2;
    }
    at
}

pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the workspace").to_owned()
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The directories of the crates of the host.
pub(crate) const HOST_CRATES: [&str; 8] =
    ["host", "host/jail", "host/judge", "host/ledger", "host/model", "host/state", "host/store", "host/text"];

/// Returns the source files of a crate by their paths in the workspace.
pub(crate) fn sources(directory: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut directories = vec![workspace().join(directory).join("src")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name =
                    path.strip_prefix(workspace()).expect("a path in the workspace").to_string_lossy().into_owned();
                found.insert(name, read(&path));
            }
        }
    }
    found
}
