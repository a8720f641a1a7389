//! Tests of the names of files and types in the documents.

use super::crates::CRATES;
use super::source::{read, sources, workspace};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Returns the Markdown files below a directory.
fn documents(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let paths = entries.map(|entry| entry.expect("readable").path());
    paths
        .flat_map(|path| if path.is_dir() { documents(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect()
}

/// Returns the texts between backticks.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

#[test]
fn every_path_in_a_document_exists() {
    let mut all = documents(&workspace().join("docs"));
    all.push(workspace().join("README.md"));
    let (mut found, mut missing) = (0, Vec::new());
    for document in all {
        let text = read(&document);
        let is_path = |named: &&str| {
            let first = named
                .split_once('/')
                .is_some_and(|(first, _)| ["contract", "host", "sandbox", "ironctl", "docs", ".ci"].contains(&first));
            first && named.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
        };
        for named in code(&text).filter(is_path) {
            found += 1;
            if !workspace().join(named).exists() {
                missing.push(format!("{}: {named}", document.display()));
            }
        }
    }
    assert!(found > 200, "the documents name files: {found}");
    assert!(missing.is_empty(), "documents name missing files:\n{}", missing.join("\n"));
}

/// Returns the Rust files below a directory, without those that a build makes.
fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let paths = entries.map(|entry| entry.expect("readable").path());
    paths
        .flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

#[test]
fn every_row_of_what_works_with_models_names_a_test() {
    let manual = read(&workspace().join("docs/operate/models.md"));
    let (_, table) = manual.split_once("<!-- works: begin -->").expect("the table begins");
    let (table, _) = table.split_once("<!-- works: end -->").expect("the table ends");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with('|')).skip(2).collect();
    let sources: String = ["host", "ironctl", "sandbox"]
        .iter()
        .flat_map(|name| rust_files(&workspace().join(name)))
        .map(|path| read(&path))
        .collect();
    assert!(rows.len() >= 7, "{rows:?}");
    for row in rows {
        let cell = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        let tests: Vec<&str> = code(cell).collect();
        assert!(!tests.is_empty(), "{row}: a row has its tests in the last column");
        for test in tests {
            assert!(sources.contains(&format!("fn {test}() {{")), "{row}: there is no test {test}");
        }
    }
}

#[test]
fn every_type_of_the_glossary_is_declared() {
    let mut declared = BTreeSet::new();
    for source in CRATES.iter().flat_map(|owner| sources(owner.directory).into_values()) {
        for line in source.lines() {
            // A list of words of the seam is declared by a macro, as `Name {`.
            declared.extend(
                line.strip_suffix(" {").filter(|name| name.chars().all(char::is_alphanumeric)).map(str::to_owned),
            );
            let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            let keywords = ["struct", "enum", "trait", "type", "const"];
            declared.extend(words.windows(2).filter(|pair| keywords.contains(&pair[0])).map(|pair| pair[1].to_owned()));
        }
    }
    let glossary = read(&workspace().join("docs/glossary.md"));
    let rows = glossary.lines().filter_map(|line| line.trim_end_matches('|').rsplit_once('|'));
    let named: Vec<&str> = rows.flat_map(|(_, types)| code(types)).filter(|named| named.contains("::")).collect();
    assert!(named.len() > 50, "the glossary names types in its last column: {named:?}");
    let is_type = |part: &&str| part.starts_with(|c: char| c.is_ascii_uppercase());
    let unknown: Vec<_> = named
        .iter()
        .filter(|path| path.split("::").find(is_type).is_some_and(|name| !declared.contains(name)))
        .collect();
    assert!(unknown.is_empty(), "the glossary names missing types: {unknown:?}");
}
