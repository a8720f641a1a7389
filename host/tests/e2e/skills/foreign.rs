//! Skills of the public format, from the import to an agent that follows them in its jail, with the real daemon.
//!
//! `docs/operate/skills.md` has a table of the forms.

use super::SkillFixture;
use crate::support::host_fixture::Build;
use crate::support::needs::needs;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The instructions: a front matter that is no YAML, and each way in which a text names a file.
const INSTRUCTIONS: &str = "\u{feff}---\n\
    # Taken from elsewhere\n\
    name: NAME\n\
    description: Makes decks. Use it when: a person asks\n  for one\n\
    allowed-tools:\n  - Read\n  - Bash(python:*)\n\
    tags: [deck, \"slides\"]\n\
    version: 1.2\n\
    ---\n\
    Read [the forms](forms.md) and `editing.md`, then run:\n\n\
    ```bash\npython3 tools/pack.py now\n```\n\n\
    Or write it yourself:\n\n\
    ```python\nfrom core.build import build\nprint(build())\n```\n";

/// A program that finds its module by its own place.
const PROGRAM: &str = "#!/usr/bin/env python3\n\
    import os, sys\n\
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))\n\
    from core.build import build\n\
    print(build(), 'with', sys.argv[1])\n";

/// Writes a skill of the public format.
fn write(root: &Path, name: &str) {
    for (path, text) in [
        ("SKILL.md", INSTRUCTIONS.replace("NAME", name).as_str()),
        ("forms.md", "The word is heron. See [editing](editing.md).\n"),
        ("editing.md", "The word is crane.\n"),
        ("core/__init__.py", ""),
        ("core/build.py", "def build():\n    return 'built'\n"),
        ("tools/pack.py", PROGRAM),
        ("LICENSE.txt", "MIT\n"),
    ] {
        let full = root.join(path);
        fs::create_dir_all(full.parent().expect("a parent")).expect("made");
        fs::write(full, text).expect("written");
    }
}

fn run(program: &str, words: &[&str], directory: &Path) {
    let output = Command::new(program).args(words).current_dir(directory).output().expect(program);
    assert!(output.status.success(), "{program}: {output:?}");
}

/// Writes the skill in each form that people publish. Returns the name of the agent's skill and the path to import.
fn forms(root: &Path) -> Vec<(&'static str, PathBuf)> {
    let made = |name: &str, directory: &str| {
        let path = root.join(directory);
        write(&path, name);
        path
    };
    made("Deck ZIP", "zip/deck");
    run("python3", &["-m", "zipfile", "-c", "../deck.zip", "deck"], &root.join("zip"));
    made("deck_skill", "skill");
    run(
        "python3",
        &["-m", "zipfile", "-c", "../deck.skill", "SKILL.md", "forms.md", "editing.md", "core", "tools"],
        &root.join("skill"),
    );
    made("deck-tar", "tar/deck");
    run("tar", &["czf", "../deck.tar.gz", "deck"], &root.join("tar"));
    let clone = made("deck-clone", "clone/skills/deck").join("../..");
    fs::create_dir(clone.join(".git")).expect("made");
    fs::write(clone.join(".git/config"), "[core]\n").expect("written");
    fs::write(clone.join("README.md"), "A repository of skills.\n").expect("written");
    let plain = made("Deck:Plain", "plain");
    let text = fs::read_to_string(plain.join("SKILL.md")).expect("read");
    let request = "```bash\ncurl https://api.weather.gov/alerts?area=KS\n```\n";
    fs::write(plain.join("SKILL.md"), format!("{text}{request}")).expect("written");
    vec![
        ("deck-plain", plain),
        ("deck-zip", root.join("deck.zip")),
        ("deck-skill", root.join("deck.skill")),
        ("deck-tar", root.join("deck.tar.gz")),
        ("deck-clone", clone),
    ]
}

#[test]
fn foreign_skill_of_each_form_is_followed_by_an_agent() {
    needs("python3");
    needs("tar");
    let fixture = SkillFixture::new(Build::Plain);
    let host = &fixture.host;
    let root = fixture.directory.path();
    let (key, source) = (root.join("foreign.key"), fixture.source());
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    host.ctl(&["skill", "keygen", "--no-password", "--out", &text(&key)]).ok();
    host.ctl(&["skill", "key", "add", "foreign", &text(&key.with_extension("pub"))]).ok();
    for (number, (name, from)) in forms(root).into_iter().enumerate() {
        let import = ["--json", "skill", "import", &text(&from), "--key", &text(&key), "--out", &text(&source)];
        let imported = host.ctl(&import).ok().json();
        assert_eq!((&imported["dead"], &imported["absent"]), (&json!([]), &json!([])), "{name}");
        assert_eq!(imported["grants"]["tools"], json!(["run_command"]), "{name}");
        fixture.add(name).ok();
        let said = host.say("a", &format!("use skill {name}"));
        let command = said.lines().find(|line| line.starts_with("python3 ")).expect("a command");
        assert!(host.say("a", &format!("run {command}")).contains("built with now"), "{name}: {command}");
        if number > 0 {
            continue;
        }
        let hosts = host.ctl(&["--json", "egress", "list", "a"]).ok().json();
        assert_eq!(
            (hosts.as_array().map(Vec::len), &hosts[0]["host"]),
            (Some(1), &json!("api.weather.gov")),
            "{hosts}"
        );
        // The texts and the module, once: each form has the same files.
        for (file, word) in [("references/forms.md", "heron"), ("references/editing.md", "crane")] {
            assert!(said.contains(file), "{name}: {file} is not in\n{said}");
            assert!(host.say("a", &format!("use skill {name} {file}")).contains(word), "{name}: {file}");
        }
        let program: Vec<&str> = said.lines().skip_while(|line| !line.starts_with("import sys")).take(3).collect();
        let own = format!("run python3 -c '{}'", program.join("; "));
        assert!(host.say("a", &own).contains("built"), "{name}: {own}");
    }
    assert_eq!(fixture.skills().len(), 5);
    assert!(fixture.skills().iter().all(|skill| skill["version"] == "1.2.0"), "{:?}", fixture.skills());
}
