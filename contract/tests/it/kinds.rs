//! Lists of the kinds of change in sources and documents, which no compiler compares: each list names all kinds.
//!
//! Reads frozen files and never changes one. See [`crate::golden`] for the shapes.

use crate::frozen::{document, section, workspace};
use ironclaw_contract::seam::change::ChangeKind;

/// The heading above the table of payloads.
const PAYLOADS: &str = "## Payloads of changes";

/// Numbers in the words of the head of the frozen file.
const NUMBERS: [&str; 21] = [
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
];

fn source(path: &str) -> String {
    std::fs::read_to_string(workspace().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn document_has_a_row_for_the_payload_of_each_kind() {
    let document = document();
    let rows = section(&document, PAYLOADS).split_once("\n| kind | payload |").expect("the table of payloads").1;
    let rows: Vec<&str> = rows.lines().skip(2).take_while(|row| row.starts_with("| `")).collect();
    let named: Vec<&str> = rows.iter().filter_map(|row| row.split('`').nth(1)).collect();
    let kinds: Vec<&str> = ChangeKind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(named, kinds, "rows of the table of payloads in docs/contract.md");
    for (row, kind) in rows.into_iter().zip(ChangeKind::ALL) {
        assert_eq!(!row.contains("which no agent may ask for"), kind.is_for_agents(), "{row}");
    }
}

#[test]
fn document_shows_the_golden_payload_of_each_kind_of_an_agent() {
    let document = document();
    for kind in ChangeKind::for_agents() {
        let golden = source(&format!("contract/tests/it/golden/change.{kind}.json"));
        assert!(document.contains(&format!("```json\n{golden}```\n")), "docs/contract.md: no example of {kind}");
    }
}

#[test]
fn head_of_the_frozen_file_counts_the_kinds() {
    let source = source("contract/src/seam/change.rs");
    let people: Vec<String> =
        ChangeKind::ALL.iter().filter(|kind| !kind.is_for_agents()).map(|kind| format!("`{kind}`")).collect();
    let (last, others) = people.split_last().expect("kinds of people");
    let head = format!(
        "//! The kinds of change: {} that an agent may propose by name, and {} and {last}, which it may not.",
        NUMBERS[ChangeKind::for_agents().count()],
        others.join(", ")
    );
    assert!(source.starts_with(&head), "contract/src/seam/change.rs does not begin with {head:?}");
}

#[test]
fn samples_of_the_frozen_file_have_each_kind() {
    let source = source("contract/src/seam/change.rs");
    let samples = source.split_once("fn samples()").expect("samples").1.split_once("#[test]").expect("a test").0;
    for kind in ChangeKind::ALL {
        assert!(samples.contains(&format!("ChangeKind::{kind:?},")), "no sample of {kind:?}");
    }
}
