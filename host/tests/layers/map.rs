//! Test of the code map in `docs/contributing.md`.

use super::source::{read, workspace};

#[test]
fn code_map_names_only_existing_files() {
    let document = read(&workspace().join("docs/contributing.md"));
    let files = files_of_the_map(&document).expect("docs/contributing.md");
    let missing: Vec<_> = files.into_iter().filter(|file| !workspace().join(file).exists()).collect();
    assert!(missing.is_empty(), "docs/contributing.md, \"{MAP}\", names missing files: {missing:?}");
}

/// The heading of the map in `docs/contributing.md`.
const MAP: &str = "Where a change goes";

/// Returns the file paths in the last column of the table.
fn files_of_the_map(document: &str) -> Result<Vec<String>, String> {
    let is_heading = |line: &&str| line.starts_with('#');
    let mut lines = document.lines().skip_while(|line| !(is_heading(line) && line.contains(MAP)));
    lines.next().ok_or_else(|| format!("no section \"{MAP}\""))?;
    let rows: Vec<&str> =
        lines.take_while(|line| !is_heading(line)).filter(|line| line.trim_start().starts_with('|')).skip(2).collect();
    let mut files = Vec::new();
    for row in rows {
        let last = row.trim().trim_matches('|').rsplit('|').next().expect("split gives at least one part");
        let named: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        if named.is_empty() {
            return Err(format!("a row of \"{MAP}\" names no file: {row}"));
        }
        files.extend(named.into_iter().map(str::to_owned));
    }
    if files.is_empty() { Err(format!("the section \"{MAP}\" has no table")) } else { Ok(files) }
}

#[test]
fn code_map_without_files_is_refused() {
    let document = "# A\n## Where a change goes\n\n| to | do | look |\n|--|--|--|\n| a | b | `x/y.rs`, `z.md` |\n## B\n| c | d | e |";
    assert_eq!(files_of_the_map(document), Ok(vec!["x/y.rs".to_owned(), "z.md".to_owned()]));
    assert!(files_of_the_map("# A").is_err());
    assert!(files_of_the_map("## Where a change goes\ntext\n## B\n| a | `b` |").is_err());
    assert!(files_of_the_map("## Where a change goes\n| a | b |\n|--|--|\n| a | b |").is_err());
}
