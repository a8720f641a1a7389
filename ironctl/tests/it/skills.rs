//! Tests of the commands for authors of skills. They need no host.

use crate::fake_host::{code_of, ended, ironctl, json_of};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A directory in which `ironctl` runs, with a key for signatures.
struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        let desk = Self(tempfile::tempdir().expect("a temporary directory"));
        desk.done(&["keygen", "--no-password"]);
        desk
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, words: &[&str]) -> (i32, String, String) {
        let mut command = ironctl(self.path());
        command.current_dir(self.path()).env("HOME", self.path()).env_remove("XDG_CONFIG_HOME");
        ended(command.arg("skill").args(words).output().expect("ironctl runs"))
    }

    /// Returns the document of a command that succeeds.
    fn done(&self, words: &[&str]) -> Value {
        let (code, out, err) = self.run(&[words, &["--json"]].concat());
        assert_eq!(code, 0, "{words:?}: {err}");
        json_of(&out)
    }

    /// Returns the code of a failure.
    fn failed(&self, words: &[&str]) -> (i32, String) {
        let (code, _, err) = self.run(&[words, &["--json"]].concat());
        (code, code_of(&err))
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }
}

const PUBLIC: &str = ".config/ironclaw/skill.pub";

#[test]
fn new_skill_is_packed_signed_and_verified() {
    let desk = Desk::new();
    desk.done(&["new", "notes"]);
    assert_eq!(desk.failed(&["new", "notes"]), (1, "skill_file".to_owned()));
    assert_eq!(desk.failed(&["new", "No"]), (2, "usage".to_owned()));
    assert_eq!(desk.done(&["lint", "notes"])["findings"], Value::Array(Vec::new()));
    let packed = desk.done(&["pack", "notes", "--out", "notes.skill"]);
    assert_eq!((&packed["name"], &packed["version"], &packed["files"]), (&"notes".into(), &"0.1.0".into(), &1.into()));
    assert_eq!(desk.failed(&["pack", "notes", "--out", "notes.skill"]), (1, "file_exists".to_owned()));
    assert_eq!(desk.done(&["pack", "notes", "--out", "notes.skill", "--force"])["digest"], packed["digest"]);
    assert_eq!(desk.done(&["verify", "notes.skill"])["signer"], Value::Null);
    assert_eq!(desk.failed(&["verify", "notes.skill", "--key", PUBLIC]), (1, "skill_unsigned".to_owned()));
    for form in [&["sign", "notes.skill"][..], &["sign", "notes.skill", "--legacy"]] {
        let signer = desk.done(form)["signer"].clone();
        let found = desk.done(&["verify", "notes.skill", "--key", PUBLIC]);
        assert_eq!((&found["signer"], &found["verified"], &found["grants"]), (&signer, &true.into(), &json!({})));
        let line = fs::read_to_string(desk.path().join(PUBLIC)).expect("the key");
        desk.done(&["verify", "notes.skill", "--key", line.lines().nth(1).expect("its line")]);
    }
    desk.done(&["keygen", "--no-password", "--out", "other.key"]);
    assert_eq!(desk.failed(&["verify", "notes.skill", "--key", "other.pub"]), (1, "skill_signature".to_owned()));
    assert_eq!(desk.failed(&["keygen", "--no-password", "--out", "other.key"]), (1, "file_exists".to_owned()));
    let mut bytes = fs::read(desk.path().join("notes.skill")).expect("read");
    bytes[1600] ^= 1;
    fs::write(desk.path().join("notes.skill"), bytes).expect("written");
    assert_eq!(desk.failed(&["verify", "notes.skill", "--key", PUBLIC]), (1, "skill_signature".to_owned()));
    assert_eq!(desk.failed(&["verify", "notes.skill"]).0, 1);
}

#[test]
fn skill_with_an_error_is_not_packed() {
    let desk = Desk::new();
    desk.done(&["new", "notes"]);
    desk.write("notes/references/a.md", "zero\u{200b}width, see https://example.com\n");
    let (code, out, _) = desk.run(&["lint", "notes"]);
    assert_eq!(code, 1);
    assert!(out.contains("error: references/a.md:1: ") && out.contains("warning: references/a.md:1: "), "{out}");
    assert_eq!(desk.failed(&["pack", "notes", "--out", "notes.skill"]), (1, "skill_findings".to_owned()));
    assert!(!desk.path().join("notes.skill").exists());
    assert_eq!(desk.failed(&["lint", "missing"]), (1, "skill_file".to_owned()));
    assert_eq!(desk.failed(&["sign", "missing"]), (1, "skill_file".to_owned()));
}

#[test]
fn foreign_skill_is_shown_and_signed_as_the_operators_own() {
    let desk = Desk::new();
    desk.write("foreign/SKILL.md", "---\nname: foreign\ndescription: d\n---\nSee https://example.com/a.\n");
    desk.write("foreign/scripts/run", "#!/bin/sh\necho \u{1b}[2J\n");
    desk.write("foreign/forms.md", "text\n");
    let (code, out, _) = desk.run(&["import", "foreign", "--out", "shown.skill"]);
    assert_eq!(code, 1, "its script has a hidden character");
    assert!(out.contains("script: scripts/run") && out.contains("echo \\u{1b}[2J"), "{out}");
    assert!(!desk.path().join("shown.skill").exists());
    desk.write("foreign/scripts/run", "#!/bin/sh\necho hello\n");
    let imported = desk.done(&["import", "foreign"]);
    assert_eq!(imported["grants"], json!({ "tools": ["run_command"] }));
    assert_eq!(imported["scripts"][0]["text"], "#!/bin/sh\necho hello\n");
    assert_eq!(imported["references"][0]["target"], "https://example.com/a");
    assert_eq!(imported["moved"][0][1], "references/forms.md");
    assert_eq!(imported["file"], "foreign-0.1.0.skill");
    let found = desk.done(&["verify", "foreign-0.1.0.skill", "--key", PUBLIC]);
    assert_eq!(found["signer"], imported["signer"]);
    let bundled = desk.done(&["import", "--bundled"]);
    desk.done(&["verify", bundled["file"].as_str().expect("a file"), "--key", PUBLIC]);
    assert_eq!(desk.failed(&["import", "foreign", "--key", "none.key"]), (1, "skill_key_missing".to_owned()));
    assert_eq!(desk.run(&["import"]).0, 2);
    fs::write(desk.path().join("foreign.tar.xz"), b"\xfd7zXZ\0\0\0").expect("written");
    let (code, _, err) = desk.run(&["import", "foreign.tar.xz"]);
    assert!(code == 1 && err.contains("unpack it first"), "{err}");
    assert_eq!(desk.failed(&["import", "foreign", "--out", "foreign-0.2.0.skill"]), (2, "usage".to_owned()));
    assert_eq!(desk.failed(&["import", "foreign", "--out", "other-0.1.0.skill"]), (2, "usage".to_owned()));
    assert!(!desk.path().join("foreign-0.2.0.skill").exists());
}

#[test]
fn many_skills_are_checked_and_imported_and_faults_are_named() {
    let desk = Desk::new();
    desk.write(
        "src/skills/One/SKILL.md",
        "---\nname: One\ndescription: use it: always\nversion: 1.2\n---\nSee [f](forms.md).\n",
    );
    desk.write("src/skills/One/forms.md", "text\n");
    desk.write("src/skills/two/SKILL.md", "---\nname: two\ndescription: d\n---\nSee [gone](gone.md).\n");
    let checked = desk.done(&["import", "--check", "src"]);
    let counts = ["imported", "refused", "moved", "edits", "dead", "absent"].map(|count| checked[count].as_u64());
    assert_eq!(counts, [2, 0, 1, 1, 0, 1].map(Some));
    assert_eq!(checked["skills"][0]["edits"][0]["after"], "See [f](references/forms.md).");
    assert_eq!(desk.failed(&["import", "src", "--out", "one.skill"]), (2, "usage".to_owned()));
    let imported = desk.done(&["import", "src"]);
    assert_eq!(imported["skills"][0]["file"], "one-1.2.0.skill");
    desk.done(&["verify", "two-0.1.0.skill", "--key", PUBLIC]);
    fs::create_dir(desk.path().join("out")).expect("made");
    let one = desk.done(&["import", "src", "--skill", "One", "--out", "out"]);
    assert_eq!(one["file"], "out/one-1.2.0.skill");
    assert_eq!(desk.failed(&["import", "src", "--skill", "three"]), (1, "skill_unknown".to_owned()));
    // One fault is the fault of one skill.
    desk.write("src/skills/bad/SKILL.md", "---\nname: &a bad\ndescription: d\n---\n");
    let (code, out, _) = desk.run(&["import", "--check", "src"]);
    assert!(code == 1 && out.contains("refused: src/skills/bad: ") && out.contains("an anchor"), "{out}");
    fs::remove_dir_all(desk.path().join("out")).expect("removed");
    fs::create_dir(desk.path().join("out")).expect("made");
    assert_eq!(desk.failed(&["import", "src", "--out", "out"]), (1, "skill_import".to_owned()));
    assert_eq!(fs::read_dir(desk.path().join("out")).expect("a directory").count(), 4, "two packages, two signatures");
}

#[test]
fn import_into_a_closed_pipe_writes_its_package() {
    let desk = Desk::new();
    desk.write("foreign/SKILL.md", "---\nname: foreign\ndescription: d\n---\n");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = ironctl(desk.path());
    command.current_dir(desk.path()).env("HOME", desk.path()).env_remove("XDG_CONFIG_HOME").stdout(writer);
    command.args(["skill", "import", "foreign"]).output().expect("ironctl runs");
    desk.done(&["verify", "foreign-0.1.0.skill", "--key", PUBLIC]);
}

#[test]
fn index_of_packages_is_signed_and_its_number_rises() {
    let desk = Desk::new();
    fs::create_dir(desk.path().join("public")).expect("made");
    for name in ["one", "two"] {
        desk.done(&["new", name]);
        let file = format!("public/{name}-0.1.0.skill");
        desk.done(&["pack", name, "--out", &file]);
        assert_eq!(desk.failed(&["index", "public"]), (1, "skill_unsigned".to_owned()));
        desk.done(&["sign", &file]);
    }
    let index = || -> Value { json_of(&fs::read_to_string(desk.path().join("public/index.json")).expect("written")) };
    let made = desk.done(&["index", "public"]);
    assert_eq!((&made["serial"], &made["skills"]), (&1.into(), &2.into()));
    assert_eq!(index()["skills"][1]["file"], "two-0.1.0.skill");
    desk.done(&["index", "public", "--revoke", "one@0.1.0", "--revoke-key", "2736d8de5b918a39"]);
    assert_eq!(desk.done(&["index", "public", "--serial", "9"])["serial"], 9);
    assert_eq!(index()["skills"].as_array().expect("a list").len(), 1);
    let revoked = json!({ "keys": ["2736D8DE5B918A39"], "skills": [{ "name": "one", "version": "0.1.0" }] });
    assert_eq!(index()["revoked"], revoked);
    let signature = fs::read_to_string(desk.path().join("public/index.json.minisig")).expect("written");
    assert!(signature.contains("\ntrusted comment: skill index 9\n"), "{signature}");
    assert_eq!(desk.failed(&["index", "public", "--serial", "9"]), (2, "usage".to_owned()));
    assert_eq!(desk.failed(&["index", "public", "--revoke", "one"]), (2, "usage".to_owned()));
}

#[test]
fn password_of_a_key_comes_from_stdin_in_a_script() {
    let desk = Desk::new();
    let with = |words: &[&str], password: &str| {
        desk.write("password", password);
        let mut command = ironctl(desk.path());
        command.current_dir(desk.path()).stdin(fs::File::open(desk.path().join("password")).expect("opened"));
        ended(command.arg("skill").args(words).output().expect("ironctl runs"))
    };
    desk.done(&["new", "notes"]);
    desk.done(&["pack", "notes", "--out", "notes.skill"]);
    assert_eq!(with(&["keygen", "--out", "a.key"], "correct horse\n").0, 0);
    assert_eq!(with(&["sign", "notes.skill", "--key", "a.key"], "wrong\n").0, 1);
    assert_eq!(with(&["sign", "notes.skill", "--key", "a.key"], "correct horse\n").0, 0);
    desk.done(&["verify", "notes.skill", "--key", "a.pub"]);
    assert_eq!(with(&["keygen", "--out", "b.key"], "\n").0, 1);
}
