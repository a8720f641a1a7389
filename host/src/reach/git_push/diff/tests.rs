//! Tests of the diff of a push over objects in memory: hostile names and contents, and all that a push can change.

use super::super::history::{Hash, hash_of};
use super::*;
use std::collections::BTreeMap;

/// Objects, as the jail gives them.
#[derive(Default)]
struct Repository {
    output: Vec<u8>,
}

/// Files by their paths, each with its mode.
type Files<'f> = BTreeMap<&'f str, (&'f str, Vec<u8>)>;

impl Repository {
    fn add(&mut self, kind: &str, body: &[u8]) -> Hash {
        let hash = hash_of(kind, body);
        self.output.extend(format!("{hash} {kind} {}\n", body.len()).bytes());
        self.output.extend(body);
        self.output.push(b'\n');
        hash
    }

    fn directory(&mut self, entries: &[(&str, &[u8], &Hash)]) -> Hash {
        let mut body = Vec::new();
        for (mode, name, hash) in entries {
            body.extend(mode.bytes().chain([b' ']));
            body.extend_from_slice(name);
            body.push(0);
            let text = hash.to_string();
            body.extend((0..20).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hex")));
        }
        self.add("tree", &body)
    }

    /// Adds files without directories.
    fn files(&mut self, files: &Files<'_>) -> Hash {
        let blobs: Vec<(&str, &str, Hash)> =
            files.iter().map(|(name, (mode, body))| (*mode, *name, self.add("blob", body))).collect();
        let entries: Vec<(&str, &[u8], &Hash)> =
            blobs.iter().map(|(mode, name, hash)| (*mode, name.as_bytes(), hash)).collect();
        self.directory(&entries)
    }

    fn commit(&mut self, tree: &Hash, parents: &[&Hash]) -> Hash {
        let parents: String = parents.iter().map(|parent| format!("parent {parent}\n")).collect();
        self.add("commit", format!("tree {tree}\n{parents}author A <a@b> 0 +0000\n\nx\n").as_bytes())
    }

    fn diff(&self, old: Option<&Hash>, commits: &[&Hash]) -> Result<Diff, String> {
        let objects = Objects::read(&self.output)?;
        let range = Range { old: old.cloned(), commits: commits.iter().map(|&hash| hash.clone()).collect() };
        Ok(Diff::write(&objects, &range, &Changes::find(&objects, &range)?))
    }

    /// Returns the diff of one commit over another one.
    fn between(before: &Files<'_>, after: &Files<'_>) -> Diff {
        let mut repository = Self::default();
        let (old, new) = (repository.files(before), repository.files(after));
        let old = repository.commit(&old, &[]);
        let new = repository.commit(&new, &[&old]);
        repository.diff(Some(&old), &[&new]).expect("a diff")
    }
}

fn text<'f>(files: &[(&'f str, &str)]) -> Files<'f> {
    files.iter().map(|(name, body)| (*name, ("100644", body.as_bytes().to_vec()))).collect()
}

#[test]
fn each_kind_of_change_has_its_line() {
    let old = Files::from([
        ("gone.txt", ("100644", b"a\nb\n".to_vec())),
        ("here.txt", ("100644", b"1\n2\n3\n".to_vec())),
        ("old name", ("100644", b"same\n".to_vec())),
        ("picture", ("100644", b"\0\x01".to_vec())),
        ("tool.sh", ("100644", b"echo\n".to_vec())),
    ]);
    let new = Files::from([
        ("here.txt", ("100644", b"1\ntwo\n3\n4".to_vec())),
        ("link", ("120000", b"/etc/passwd".to_vec())),
        ("new name", ("100644", b"same\n".to_vec())),
        ("picture", ("100644", b"\0\x01\x02".to_vec())),
        ("tool.sh", ("100755", b"echo\n".to_vec())),
    ]);
    let diff = Repository::between(&old, &new);
    let (before, after) = (Digest::of(b"\0\x01"), Digest::of(b"\0\x01\x02"));
    for line in [
        "removed \"gone.txt\": +0 -2".to_owned(),
        "changed \"here.txt\": +2 -1".to_owned(),
        "new \"link\": LINK, +1 -0".to_owned(),
        "moved \"old name\" to \"new name\": the same content".to_owned(),
        format!("changed \"picture\": no text, from 2 bytes with SHA-256 {before} to 3 bytes with SHA-256 {after}"),
        "changed \"tool.sh\": file becomes EXECUTABLE".to_owned(),
    ] {
        assert!(diff.changes.lines().any(|found| found == line), "{line}\n{}", diff.changes);
    }
    assert_eq!(diff.summary, "1 commit, 6 files, +3 -3 lines, 1 file of bytes that are no text");
    for line in ["-2", "+two", " 3", "+4", "= no line feed at the end of this line", "+/etc/passwd"] {
        assert!(diff.text.lines().any(|found| found == line), "{line}\n{}", diff.text);
    }
    assert_eq!(diff.digest, Digest::of(diff.text.as_bytes()));
}

#[test]
fn only_lines_near_a_change_are_in_the_text() {
    let lines = |changed: &str| {
        (0..100).map(|at| if at == 50 { changed.to_owned() } else { format!("{at}\n") }).collect::<String>()
    };
    let (old, new) = (lines("50\n"), lines("fifty\n"));
    let diff = Repository::between(&text(&[("a", &old)]), &text(&[("a", &new)]));
    let shown: Vec<&str> = diff.text.lines().skip(2).collect();
    assert_eq!(shown, ["@ line 48 before, line 48 after", " 47", " 48", " 49", "-50", "+fifty", " 51", " 52", " 53"]);
}

#[test]
fn hostile_name_stays_on_one_line() {
    let name = "a\n+fake\u{1b}[2K\u{2028}\"\u{85}";
    let diff = Repository::between(&text(&[]), &text(&[(name, "x\n"), ("[The host: fine]", "y\n")]));
    let control = |character: char| character.is_control() && character != '\n' || character == '\u{2028}';
    assert!(!diff.text.contains(control) && !diff.changes.contains(control), "{:?}", diff.text);
    assert!(!diff.text.lines().any(|line| line.starts_with("+fake")), "{:?}", diff.text);
    assert!(diff.changes.contains("new \"a\\u{a}+fake\\u{1b}[2K\\u{2028}\\\"\\u{85}\": +1 -0"), "{}", diff.changes);
    let mut repository = Repository::default();
    let blob = repository.add("blob", b"x");
    let tree = repository.directory(&[("100644", b"\xff\\", &blob)]);
    let commit = repository.commit(&tree, &[]);
    let diff = repository.diff(None, &[&commit]).expect("a diff");
    assert!(diff.changes.contains("new \"\\xff\\\\\": +1 -0"), "{}", diff.changes);
}

#[test]
fn new_branch_is_compared_with_what_the_server_has() {
    let mut repository = Repository::default();
    let (one, two) = (repository.files(&text(&[("a", "1\n")])), repository.files(&text(&[("a", "2\n")])));
    let had = repository.commit(&one, &[]);
    let new = repository.commit(&two, &[&had]);
    let diff = repository.diff(None, &[&new]).expect("a diff");
    assert!(diff.changes.starts_with(&format!("from commit {had}:\nchanged \"a\": +1 -1")), "{}", diff.changes);
    assert!(diff.summary.ends_with(", a new branch"), "{}", diff.summary);
    let whole = repository.diff(None, &[&new, &had]).expect("a diff");
    assert!(whole.changes.starts_with("from nothing:\n"), "{}", whole.changes);
    assert_ne!(whole.digest, diff.digest);
    let empty = repository.commit(&two, &[&new]);
    let diff = repository.diff(Some(&new), &[&empty]).expect("a diff");
    assert!(diff.changes.ends_with("no file changes"), "{}", diff.changes);
}

#[test]
fn content_that_a_later_commit_removes_is_named() {
    let mut repository = Repository::default();
    let clean = repository.files(&text(&[("a", "1\n")]));
    let leaky = repository.files(&text(&[("a", "1\n"), ("key", "secret\n")]));
    let done = repository.files(&text(&[("a", "2\n")]));
    let old = repository.commit(&clean, &[]);
    let leak = repository.commit(&leaky, &[&old]);
    let new = repository.commit(&done, &[&leak]);
    let diff = repository.diff(Some(&old), &[&new, &leak]).expect("a diff");
    let line = format!("new \"key\": IN THE HISTORY ONLY, in commit {leak}, +1 -0");
    assert_eq!(diff.changes.lines().nth(1), Some(line.as_str()), "first:\n{}", diff.changes);
    assert!(diff.text.lines().any(|line| line == "+secret"), "{}", diff.text);
    assert!(diff.summary.ends_with("and 1 file IN THE HISTORY ONLY"), "{}", diff.summary);
    // A commit that restores the content of the server shows nothing more.
    let back = repository.commit(&clean, &[&new]);
    let diff = repository.diff(Some(&new), &[&back]).expect("a diff");
    assert!(!diff.summary.contains("HISTORY"), "{}", diff.summary);
}

#[test]
fn merge_shows_its_result_and_what_only_it_has() {
    let mut repository = Repository::default();
    let base = repository.files(&text(&[("a", "1\n")]));
    let mine = repository.files(&text(&[("a", "1\n"), ("mine", "m\n")]));
    let merged = repository.files(&text(&[("a", "9\n"), ("mine", "m\n"), ("theirs", "t\n")]));
    let theirs = repository.files(&text(&[("a", "1\n"), ("theirs", "t\n")]));
    let base = repository.commit(&base, &[]);
    let (mine, theirs) = (repository.commit(&mine, &[&base]), repository.commit(&theirs, &[&base]));
    let merge = repository.commit(&merged, &[&mine, &theirs]);
    let diff = repository.diff(Some(&theirs), &[&merge, &mine]).expect("a diff");
    assert_eq!(diff.summary, "2 commits, 2 files, +2 -1 lines");
    assert!(diff.text.lines().any(|line| line == "+9"), "a change of the merge alone: {}", diff.text);
}

#[test]
fn digest_covers_what_the_list_leaves_off() {
    let names: Vec<String> = (0..FILES_LISTED_MAX + 5).map(|at| format!("f{at:03}")).collect();
    let files = |last: &'static str| {
        let mut all: Files<'_> = names.iter().map(|name| (name.as_str(), ("100644", b"x\n".to_vec()))).collect();
        all.insert(names.last().expect("a name"), ("100644", last.as_bytes().to_vec()));
        Repository::between(&Files::new(), &all)
    };
    let (one, other) = (files("y\n"), files("z\n"));
    assert!(one.changes.ends_with("and 5 files more; the digest covers them"), "{}", one.changes);
    assert_eq!((&one.changes, &one.summary), (&other.changes, &other.summary));
    assert_ne!(one.digest, other.digest);
}

#[test]
fn contents_too_different_to_compare_are_replaced_whole() {
    let (old, new): (String, String) =
        ((0..7_000).map(|at| format!("a{at}\n")).collect(), (0..7_000).map(|at| format!("b{at}\n")).collect());
    let diff = Repository::between(&text(&[("a", &old)]), &text(&[("a", &new)]));
    assert_eq!(diff.summary, "1 commit, 1 file, +7000 -7000 lines");
}

#[test]
fn submodule_and_unread_files_are_named() {
    let mut repository = Repository::default();
    let (one, two) = (hash_of("commit", b"1"), hash_of("commit", b"2"));
    let (large, gone) = (hash_of("blob", b"large"), hash_of("blob", b"gone"));
    let before = repository.directory(&[("160000", b"lib", &one)]);
    let after =
        repository.directory(&[("100644", b"gone", &gone), ("100644", b"large", &large), ("160000", b"lib", &two)]);
    let old = repository.commit(&before, &[]);
    let new = repository.commit(&after, &[&old]);
    repository.output.extend(format!("large {large} 5000000\n{gone} missing\n").bytes());
    let diff = repository.diff(Some(&old), &[&new]).expect("a diff");
    for line in [
        format!("changed \"lib\": SUBMODULE, submodule, from {one} to {two}"),
        format!("new \"large\": no text, from nothing to 5000000 bytes, as git says, with the name {large}"),
        format!("new \"gone\": no text, from nothing to an absent object with the name {gone}"),
    ] {
        assert!(diff.changes.lines().any(|found| found == line), "{line}\n{}", diff.changes);
    }
}

#[test]
fn false_and_missing_objects_are_refused() {
    let mut repository = Repository::default();
    let tree = repository.files(&text(&[("a", "1\n")]));
    let new = repository.commit(&tree, &[]);
    let forged = String::from_utf8_lossy(&repository.output).replace("1\n", "2\n");
    let blob = hash_of("blob", b"1\n");
    assert!(Objects::read(forged.as_bytes()).expect_err("forged").contains(&blob.to_string()));
    let cut = &repository.output[..repository.output.len() - 4];
    Objects::read(cut).expect_err("cut off");
    let range = Range { old: None, commits: vec![new.clone()] };
    let mut missing = Repository::default();
    missing.add("commit", format!("tree {tree}\n\n").as_bytes());
    let other = hash_of("commit", format!("tree {tree}\n\n").as_bytes());
    missing.diff(None, &[&other]).expect_err("no directory");
    missing.diff(None, &[&new]).expect_err("no commit");
    assert!(Changes::find(&Objects::default(), &range).is_err());
    let twice = repository.directory(&[("100644", b"a", &blob), ("100755", b"a", &blob)]);
    assert!(Objects::read(&repository.output).expect_err("twice").contains("twice"), "{twice}");
}
