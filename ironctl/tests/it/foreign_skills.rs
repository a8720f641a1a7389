//! The campaign `skills`: `ironctl skill import --check` over made skills of every form, and over skills that packages ship.
//!
//! `IRONCLAW_SEED` repeats a run, `IRONCLAW_SKILLS` sets the number of made skills. The test with packages needs npm and pip.
#![allow(clippy::print_stdout)] // the printed seed repeats a failed run

use crate::fake_host::{ended, ironctl, json_of};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The seed of the fast tier, and its number of skills.
const FAST_SEED: u64 = 20_261_129;
const FAST_SKILLS: u64 = 40;

/// Packages that ship skills: the client that gets them, and the number of their skills.
const PUBLISHED: [(&str, &str, u64); 5] = [
    ("npm", "agent-browser@0.27.0", 7),
    ("npm", "agentv@4.42.4", 5),
    ("npm", "@optique/core@1.3.6", 1),
    ("pip3", "adclaw==1.0.33", 122),
    ("pip3", "agent-skills-bundle==0.1.0", 22),
];

/// Front matters as people write them; NAME is the name of the skill.
const FRONTS: [&str; 16] = [
    "---\nname: NAME\ndescription: Makes it.\n---\n",
    "\u{feff}---\nname: NAME\ndescription: Makes it. Use it when: asked\n---\n",
    "---\r\nname: NAME\r\ndescription: Makes it.\r\n---\r\n",
    "---\nname: \"NAME\"\ndescription: >-\n  Makes it,\n  and more.\n---\n",
    "---\nname: NAME\ndescription: |\n  Makes it.\n\n  And more.\nlicense: MIT # own\n---\n",
    "---\nname: NAME\ndescription: 'It''s\n  made.'\nversion: 1.2\ntags: [a, \"b, c\"]\n---\n",
    "---\nname: NAME\ndescription: Makes it\n  and more.\nallowed-tools:\n  - Read\n  - Bash(git:*)\n---\n",
    "---\nname: NAME\ndescription: Makes it.\nallowed-tools: [Read, Write]\nmetadata:\n  tags:\n    - a\n  deep:\n    er: x\n---\n",
    "---\n# A comment\nNAME: x\nName: NAME\nDescription: Makes it.\n---\n",
    "---\nname: NAME\ndescription: \"Makes\" it, and \"more\"\nhooks:\n  Stop:\n    - matcher: x\n      hooks:\n        - type: command\n---\n",
    "---\ndescription: Makes it.\n---\n",
    "---\nname: NAME\n---\n\nMakes it.\n",
    "# NAME\n\nMakes it.\n",
    "\n---\nname:NAME\ndescription:\tMakes it.\nmetadata: {a: b, c: [d, e]}\n---\n",
    "---\nname: NAME\ndescription: Makes it.\nlong text\nargument-hint: [file] [options]\n---\n",
    "---\nname: NAME\ndescription: Makes it.\n\n# No end\n",
];

/// Paths of files that a text names; OWN is a word of the skill.
const PATHS: [&str; 14] = [
    "OWN.md",
    "reference/OWN.md",
    "references/OWN.md",
    "docs/deep/er/OWN.md",
    "a/b/c/d/e/f/g/h/OWN.md",
    "scripts/OWN.py",
    "tools/OWN.py",
    "OWN.sh",
    "lib/OWN/run.js",
    "templates/OWN.html",
    "assets/OWN.json",
    "Examples/OWN.txt",
    "data/OWN.csv",
    ".hidden/OWN.md",
];

/// Ways in which a text names a path.
const WAYS: [&str; 10] = [
    "See [it](PATH).",
    "See `PATH` first.",
    "Read PATH, then go on.",
    "Use ./PATH and (PATH).",
    "Run `python PATH in.pdf`.",
    "```bash\nbash PATH --all\n```",
    "```\n$ cat PATH\n```",
    "| a | [PATH](PATH#top) |",
    "`${CLAUDE_SKILL_DIR}/PATH`",
    "{baseDir}/PATH",
];

/// A small generator of numbers, so that a seed repeats a run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn one<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Writes a skill. Returns the last parts of the paths that its text names.
fn make(root: &Path, name: &str, random: &mut Random) -> Vec<String> {
    let mut text = random.one(&FRONTS).replace("NAME", &format!("The {name}"));
    let mut named = Vec::new();
    for number in 0..=random.below(6) {
        let own = format!("{name}part{number}");
        let path = random.one(&PATHS).replace("OWN", &own);
        text.push_str(&format!("\n{}\n", random.one(&WAYS).replace("PATH", &path)));
        let full = root.join(&path);
        fs::create_dir_all(full.parent().expect("a parent")).expect("made");
        let others =
            ["text\n", "See `README.md`.\n", "#!/bin/sh\necho \"$1\"\n", "\u{feff}x;y\r\n", "open('../data/x')\n"];
        fs::write(&full, random.one(&others)).expect("written");
        named.push(path);
    }
    fs::create_dir_all(root).expect("made");
    fs::write(root.join("SKILL.md"), text).expect("written");
    named
}

fn check(directory: &Path, from: &Path) -> Value {
    let mut command = ironctl(directory);
    command.args(["--json", "skill", "import", "--check"]).arg(from);
    let (_, out, err) = ended(command.output().expect("ironctl runs"));
    assert!(!out.is_empty(), "{}: {err}", from.display());
    json_of(&out)
}

/// Fails with the reasons, if a skill is refused or has a dead path.
fn assert_whole(checked: &Value, what: &str) {
    let list = checked["skills"].as_array().expect("a list").iter();
    let bad: Vec<String> = list
        .filter(|skill| skill["refused"].is_string() || skill["dead"].as_array().is_some_and(|dead| !dead.is_empty()))
        .map(|skill| format!("{}: {} {}", skill["directory"], skill["refused"], skill["dead"]))
        .collect();
    assert!(bad.is_empty(), "{what}: {bad:#?}");
}

#[test]
fn made_skills_of_every_form_are_taken_over_whole() {
    let (seed, count) = (setting("IRONCLAW_SEED", FAST_SEED), setting("IRONCLAW_SKILLS", FAST_SKILLS));
    println!("IRONCLAW_SEED={seed} IRONCLAW_SKILLS={count}");
    let mut random = Random(seed);
    let desk = tempfile::tempdir().expect("a directory");
    let named: Vec<Vec<String>> = (0..count)
        .map(|number| make(&desk.path().join(format!("skills/made{number}")), &format!("made{number}x"), &mut random))
        .collect();
    let checked = check(desk.path(), &desk.path().join("skills"));
    assert_whole(&checked, "made skills");
    assert_eq!(checked["imported"], count);
    // The words of the texts lead to files, whatever the import says of itself.
    for (number, paths) in named.iter().enumerate() {
        let from = desk.path().join(format!("skills/made{number}"));
        let into = desk.path().join(format!("taken{number}"));
        let taken = ironclaw_skill::author::import(&from, &into).expect("taken over");
        let text = fs::read_to_string(into.join("SKILL.md")).expect("read");
        let shown = format!("/skills/{}/", taken.name);
        for path in paths {
            let last = path.rsplit('/').next().expect("a part");
            let is_edge = |c: char| c.is_whitespace() || "`()[]#".contains(c);
            let words: Vec<&str> = text.split(is_edge).map(|word| word.trim_end_matches(',')).collect();
            let words: Vec<&str> = words.into_iter().filter(|word| word.ends_with(last)).collect();
            assert!(!words.is_empty() || path.contains("/h/"), "{seed} made{number}: {path} is not in\n{text}");
            for word in words {
                let file = into.join(word.strip_prefix(&shown).unwrap_or(word));
                assert!(file.is_file(), "{seed} made{number}: {path} is {word} in\n{text}");
            }
        }
    }
}

/// Gets a package of npm or PyPI into a directory.
fn get(client: &str, package: &str, directory: &Path) {
    let words: &[&str] = match client {
        "npm" => &["pack", "--silent", package],
        _ => &["download", "--quiet", "--no-deps", "--only-binary", ":all:", package],
    };
    let output = Command::new(client).args(words).current_dir(directory).output().expect(client);
    assert!(output.status.success(), "{client} {package}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "it needs the registries of npm and PyPI; `.ci/long skills` runs it"]
fn published_skills_are_taken_over_whole() {
    for (client, package, count) in PUBLISHED {
        let desk = tempfile::tempdir().expect("a directory");
        get(client, package, desk.path());
        let archive = fs::read_dir(desk.path()).expect("a directory").next().expect("a package").expect("read").path();
        let checked = check(desk.path(), &archive);
        assert_whole(&checked, package);
        println!("{package}: {count} skills, remarks {}, lines {}", checked["remarks"], checked["edits"]);
        assert_eq!(checked["imported"], count, "{package}");
    }
}
