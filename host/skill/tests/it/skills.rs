//! Skills of different shapes, from the directory of an author to a verified package, and shapes that mean harm.
//!
//! `tests/skills` and `tests/skills-hostile` have them in the public format. `docs/operate/skills.md` lists the second.

use ironclaw_skill::author::{self, Level, SecretKey};
use ironclaw_skill::signature::{self, PublicKey};
use ironclaw_skill::{Error, Package};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn directories(name: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    let entries = fs::read_dir(root).expect("a directory of skills");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    found.sort();
    found
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("a plain name")
}

/// Adds the parts that a repository cannot hold.
fn complete(copy: &Path, name: &str) {
    let references = copy.join("references");
    match name {
        "empty-references" => fs::create_dir(references).expect("made"),
        "many-files" => {
            fs::create_dir(&references).expect("made");
            for number in 0..200 {
                fs::write(references.join(format!("{number}.md")), format!("# {number}\n")).expect("written");
            }
        }
        _ => {}
    }
}

#[test]
fn skills_of_every_shape_are_linted_packed_and_verified() {
    let pair = author::generate_key(None).expect("a key");
    let secret = SecretKey::parse(&pair.secret, None).expect("a secret key");
    let public = PublicKey::parse(&pair.public).expect("a key");
    let work = tempfile::tempdir().expect("a directory");
    let skills = directories("skills");
    assert!(skills.len() >= 15);
    let mut warned = BTreeSet::new();
    for directory in &skills {
        let name = name_of(directory);
        let copy = work.path().join(name);
        author::import(directory, &copy).unwrap_or_else(|error| panic!("{name}: {error}"));
        complete(&copy, name);
        let findings = author::lint(&copy).expect(name);
        assert!(findings.iter().all(|finding| finding.level == Level::Warning), "{name}: {findings:?}");
        warned.extend(findings.iter().map(|_| name));
        let packed = author::pack(&copy).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(author::pack(&copy).expect(name), packed, "{name}");
        let file = work.path().join(format!("{name}.skill"));
        fs::write(&file, &packed).expect("written");
        let package = Package::read(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        let comment = signature::comment_of(&package.manifest.name, &package.manifest.version);
        for is_legacy in [false, true] {
            let signature = author::sign(packed.as_slice(), &secret, &comment, is_legacy).expect("signed");
            assert_eq!(Package::read_signed(&file, &signature, &public).expect(name), package);
        }
        let unpacked = work.path().join(format!("{name}.unpacked"));
        assert_eq!(Package::unpack(&file, &unpacked).expect(name), package);
        package.manifest.verify_tree(&unpacked).expect(name);
        assert_eq!(author::pack(&unpacked).expect(name), packed, "{name} packs to itself");
    }
    assert_eq!(warned, BTreeSet::from(["empty-references"]), "the other skills have no finding");
}

/// The place where a hostile skill is noticed.
enum Noticed {
    /// Packing and reading refuse it, with these words.
    Refused(&'static str),
    /// Only lint finds it, with these words: the walls of the host are the protection.
    Found(Level, &'static str),
}

use Noticed::{Found, Refused};

const HOSTILE: [(&str, Noticed); 19] = [
    ("bidi-description", Refused("invisible, reorders text")),
    ("comment-orders", Found(Level::Warning, "an HTML comment")),
    ("grants-skill-install", Refused("no skill may grant skill_install")),
    ("ignore-policy", Found(Level::Warning, "an order about rules")),
    ("nested-archive", Found(Level::Warning, "a tar archive")),
    ("script-fork", Found(Level::Warning, "")),
    ("script-network", Found(Level::Warning, "the network: curl")),
    ("script-other-files", Found(Level::Warning, "a place outside of the workspace")),
    ("script-queue", Found(Level::Warning, "a place outside of the workspace: /in/")),
    ("script-runner", Found(Level::Warning, "the network: socket")),
    ("secret-grant", Refused("names no secret")),
    ("tunnel-grant", Refused("no tunnel")),
    ("two-names", Refused("name is meeting-notes")),
    ("voice-description", Refused("looks like one of the host")),
    ("voice-persona", Refused("looks like one of the host")),
    ("wrapper-in-text", Found(Level::Error, "a mark that looks like")),
    ("yaml-anchors", Refused("an anchor")),
    ("yaml-hidden-field", Refused("unknown field")),
    ("zero-width-orders", Found(Level::Error, "a hidden character")),
];

#[test]
fn hostile_skill_is_refused_or_found() {
    let skills = directories("skills-hostile");
    assert_eq!(skills.iter().map(|path| name_of(path)).collect::<Vec<_>>(), HOSTILE.map(|(name, _)| name));
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operate/skills.md");
    let page = fs::read_to_string(page).expect("the page of skills");
    for (directory, (name, noticed)) in skills.iter().zip(HOSTILE) {
        assert!(page.contains(&format!("`{name}`")), "docs/operate/skills.md does not list {name}");
        let packed = author::pack(directory);
        let findings = author::lint(directory).expect(name);
        match noticed {
            Refused(what) => {
                let error = packed.expect_err(name).to_string();
                assert!(error.contains(what), "{name}: {error}");
                assert!(findings.iter().any(|finding| finding.level == Level::Error), "{name}: {findings:?}");
            }
            Found(level, what) => {
                Package::read_from(packed.expect(name).as_slice()).expect(name);
                let is_found = findings.iter().any(|found| found.level == level && found.what.contains(what));
                assert!(is_found || what.is_empty(), "{name}: {findings:?}");
            }
        }
    }
}

#[test]
fn signature_of_another_version_or_skill_is_refused() {
    let pair = author::generate_key(None).expect("a key");
    let secret = SecretKey::parse(&pair.secret, None).expect("a secret key");
    let public = PublicKey::parse(&pair.public).expect("a key");
    let work = tempfile::tempdir().expect("a directory");
    let letter = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/skills/letter");
    let packed = author::pack(&letter).expect("packed");
    let file = work.path().join("letter.skill");
    fs::write(&file, &packed).expect("written");
    for comment in ["skill letter 1.0.1", "skill letters 1.0.0", "timestamp:1", "skill index 1", "skill letter 1.0.0 "]
    {
        let signature = author::sign(packed.as_slice(), &secret, comment, false).expect("signed");
        let refused = Package::read_signed(&file, &signature, &public);
        assert!(matches!(refused, Err(Error::Comment { .. })), "{comment}: {refused:?}");
    }
    let stranger = author::generate_key(None).expect("a key");
    let stranger = SecretKey::parse(&stranger.secret, None).expect("a secret key");
    let signature = author::sign(packed.as_slice(), &stranger, "skill letter 1.0.0", false).expect("signed");
    assert!(matches!(Package::read_signed(&file, &signature, &public), Err(Error::Signature(_))));
}

#[test]
fn page_of_imports_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/operate/skills.md")).expect("the page of skills");
    let (_, section) = page.split_once("### Take over skills of others").expect("the section");
    let section = section.split("\n## ").next().expect("its text");
    let files = [
        "host/skill/src/author/foreign/tests.rs",
        "host/skill/src/author/foreign/tests/sources.rs",
        "host/skill/src/author/foreign/rewrite/tests.rs",
        "host/skill/src/author/foreign/yaml/tests.rs",
        "host/tests/e2e/skills/foreign.rs",
        "ironctl/tests/it/skills.rs",
    ];
    let sources: String = files.iter().map(|file| fs::read_to_string(root.join(file)).expect(file)).collect();
    let rows = section
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| what") && !line.starts_with("| **"));
    let mut count = 0;
    for row in rows {
        let tests = row.rsplit(" | ").next().expect("a cell").trim_end_matches(" |");
        for test in tests.split(", ") {
            assert!(sources.contains(&format!("fn {}()", test.trim_matches('`'))), "{row}");
            count += 1;
        }
    }
    assert!(count >= 20, "{count}");
}
