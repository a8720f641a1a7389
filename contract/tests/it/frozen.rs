//! Comparison of the frozen files with the hash and the fingerprint in `docs/contract.md`.
//!
//! Never judges a change: both owners do. See [`crate::golden`].

use ironclaw_contract::canonical::Digest;
use ironclaw_contract::seam;
use std::path::{Path, PathBuf};

pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the workspace").to_owned()
}

/// Returns every source file of the contract and of the API for operators: its path from the workspace, and its text.
pub(crate) fn sources() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for directory in ["contract/src", "contract/operator/src", "contract/src/seam"] {
        for entry in std::fs::read_dir(workspace().join(directory)).expect(directory) {
            let name = entry.expect(directory).file_name().into_string().expect("UTF-8");
            if name.ends_with(".rs") {
                let path = format!("{directory}/{name}");
                let text = std::fs::read_to_string(workspace().join(&path)).expect("a source file is text");
                files.push((path, text));
            }
        }
    }
    files.sort();
    files
}

/// Returns whether a source is frozen: `lib.rs` only lists modules, and no sandbox links the API for operators.
fn is_frozen(path: &str) -> bool {
    path.starts_with("contract/src/seam/")
        || ["ids", "canonical", "ledger_entry", "seam"].iter().any(|name| path == format!("contract/src/{name}.rs"))
}

/// Computes the SHA-256 over path and text of each file in the order of paths. The length of each, 8 bytes big-endian, comes
/// before it, so that a byte that moves from one file into the next changes the hash.
fn hash(files: &[(String, String)]) -> Digest {
    let mut bytes = Vec::new();
    for part in files.iter().flat_map(|(path, text)| [path, text]) {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    Digest::of(&bytes)
}

/// Returns the text after `name: ` in `docs/contract.md`.
fn recorded(name: &str) -> String {
    let path = workspace().join("docs/contract.md");
    let document = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let prefix = format!("{name}: ");
    let lines: Vec<&str> = document.lines().filter_map(|line| line.strip_prefix(&prefix)).collect();
    match lines[..] {
        [line] => line.trim().to_owned(),
        _ => panic!("docs/contract.md must have exactly one line `{prefix}<sha256>`, and has {}", lines.len()),
    }
}

#[test]
fn the_frozen_files_are_those_that_the_document_records() {
    let frozen: Vec<_> = sources().into_iter().filter(|(path, _)| is_frozen(path)).collect();
    let now = hash(&frozen).to_string();
    assert!(
        recorded("frozen-files") == now,
        "a frozen file changed. An entry in the RFC log of docs/contract.md comes first, both owners in CODEOWNERS approve,\n\
         and host and sandbox change in the same commit. Then record the new value in docs/contract.md:\n\n\
         frozen-files: {now}\n"
    );
}

#[test]
fn the_fingerprint_is_the_one_that_the_document_records() {
    let now = seam::fingerprint();
    assert!(
        recorded("fingerprint") == now,
        "schema, cipher parameters or wire version changed: a host and a sandbox of different builds refuse each other.\n\
         An entry in the RFC log of docs/contract.md comes first. Then record the new value there:\n\n\
         fingerprint: {now}\n"
    );
}

#[test]
fn a_byte_that_moves_into_the_next_file_changes_the_hash() {
    let files =
        |texts: [&str; 2]| vec![("a.rs".to_owned(), texts[0].to_owned()), ("b.rs".to_owned(), texts[1].to_owned())];
    assert_ne!(hash(&files(["one", "two"])), hash(&files(["onet", "wo"])));
    assert_ne!(hash(&files(["one", "two"])), hash(&files(["two", "one"])));
    assert!(!is_frozen("contract/operator/src/lib.rs") && !is_frozen("contract/src/lib.rs"));
    assert!(is_frozen("contract/src/seam/link.rs") && is_frozen("contract/src/seam.rs"));
}

/// Returns the part of the document under one heading.
pub(crate) fn section<'a>(document: &'a str, heading: &str) -> &'a str {
    let start = format!("\n{heading}\n");
    let from =
        document.find(&start).unwrap_or_else(|| panic!("docs/contract.md has no heading `{heading}`")) + start.len();
    let rest = &document[from..];
    rest.find("\n#").map_or(rest, |end| &rest[..end])
}

pub(crate) fn document() -> String {
    std::fs::read_to_string(workspace().join("docs/contract.md")).expect("docs/contract.md")
}

#[test]
fn every_column_is_documented_with_its_writer_and_reader() {
    let document = document();
    let tables = [seam::schema::INBOUND, seam::schema::OUTBOUND].concat();
    for table in tables.split("CREATE TABLE ").skip(1) {
        let (name, columns) = table.split_once(" (").expect("a table has columns");
        let (columns, _) = columns.split_once("\n)").expect("a table ends");
        let columns = columns.lines().filter_map(|line| line.split_whitespace().next());
        let rows = section(&document, &format!("### `{name}`"));
        let listed = rows.lines().filter(|line| line.starts_with("| `"));
        let listed = listed.map(|row| row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
        let listed: Vec<&str> = listed
            .inspect(|row| assert!(row.len() == 4 && row.iter().all(|cell| !cell.is_empty()), "{name}: {row:?}"))
            .map(|row| row[0].trim_matches('`'))
            .collect();
        assert_eq!(listed, columns.collect::<Vec<_>>(), "columns of {name} in docs/contract.md");
    }
}

#[test]
fn every_departure_has_a_reason() {
    let document = document();
    let (_, departures) = document.split_once("\n## Deliberate departures").expect("the section");
    let (_, tables) = departures.split_once("| there | here | reason |").expect("a table");
    let rows = tables.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| there |"));
    let mut count = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        assert!(cells.len() == 3 && cells.iter().all(|cell| !cell.is_empty()), "docs/contract.md: {row}");
        count += 1;
    }
    assert!(count > 40, "the tables are found");
}

#[test]
fn every_limit_is_documented_with_its_value() {
    let limits = std::fs::read_to_string(workspace().join("contract/src/seam/limits.rs")).expect("limits.rs");
    let document = document();
    let listed = section(&document, "## Limits");
    let mut constants = 0;
    for constant in limits.lines().filter_map(|line| line.strip_prefix("pub const ")) {
        let (name, rest) = constant.split_once(": ").expect("a type");
        let value = rest.split_once(" = ").expect("a value").1.trim_end_matches(';');
        assert!(listed.contains(&format!("\n| `{name}` | `{value}` |")), "docs/contract.md: `{name}` is `{value}`");
        constants += 1;
    }
    assert_eq!(listed.lines().filter(|line| line.starts_with("| `")).count(), constants, "a limit that is gone");
}

#[test]
fn every_example_in_the_document_is_a_golden_file() {
    let golden = workspace().join("contract/tests/it/golden");
    let files =
        std::fs::read_dir(golden).expect("the golden files are there").map(|file| file.expect("readable").path());
    let files: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| std::fs::read_to_string(path).expect("text"))
        .collect();
    let document = document();
    let examples: Vec<&str> = document.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(examples.len() > 20, "an example for each frame");
    for example in examples {
        assert!(
            files.iter().any(|file| file == example),
            "docs/contract.md shows an example that is in no golden file: {example}"
        );
    }
}
