//! Tests of the commands that run `ironclaw-host` without a running host.
//!
//! They run `fake_binary.sh` in place of it. See [`crate::fake_host::Programs`].

use crate::fake_host::{Programs, ended, ironctl};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn offline_commands_pass_on_arguments_output_and_exit_code() {
    let programs = Programs::new();
    programs.write("audit.out", "bad seq 3: hash\n");
    programs.write("audit.exit", "1");
    let run = |words: &[&str]| programs.run(Path::new("/h"), words);
    let (code, out, err) = run(&["audit", "verify"]);
    assert_eq!((code, out.as_str(), err.as_str()), (1, "bad seq 3: hash\n", ""));
    for words in
        [&["audit", "tail", "-n", "5", "--json"][..], &["audit", "export"], &["config", "check"], &["init", "--json"]]
    {
        run(words);
    }
    let asked = programs.asked();
    assert_eq!(
        asked.lines().collect::<Vec<_>>(),
        [
            "ironclaw-host audit verify --home /h",
            "ironclaw-host audit tail -n 5 --home /h --json",
            "ironclaw-host audit export --home /h",
            "ironclaw-host config check --home /h",
            "ironclaw-host init --home /h --json",
        ]
    );
}

#[test]
fn fingerprint_is_the_one_of_the_host() {
    let programs = Programs::new();
    programs.write("fingerprint.out", "abcd\n");
    let run = |words: &[&str]| programs.run(Path::new("/h"), words).1;
    assert_eq!(run(&["contract", "fingerprint"]), "abcd\n");
    assert_eq!(run(&["contract", "fingerprint", "--json"]), "{\"fingerprint\":\"abcd\"}\n");
}

#[test]
fn missing_binary_is_named() {
    let programs = Programs::new();
    fs::remove_file(programs.directory.path().join("ironclaw-host")).expect("removed");
    let mut command = programs.command(Path::new("/h"));
    let output = command.env("PATH", "/nonexistent").args(["audit", "verify"]).output();
    let (code, _, err) = ended(output.expect("ironctl runs"));
    assert_eq!(code, 1);
    assert!(err.contains("cannot find ironclaw-host beside ironctl or on PATH"), "{err}");
}

#[test]
fn logs_are_shown_from_the_end_and_made_safe() {
    let programs = Programs::new();
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(home.path().join("logs")).expect("made");
    fs::write(home.path().join("logs/host.log"), "one\ntwo\nthree \u{1b}[2J\n").expect("written");
    let output = Command::new(&programs.ironctl).env("IRONCLAW_HOME", home.path()).args(["logs", "-n", "2"]).output();
    let (code, out, _) = ended(output.expect("ironctl runs"));
    assert_eq!((code, out.as_str()), (0, "two\nthree \\u{1b}[2J\n"));
}

#[test]
fn followed_log_continues_after_a_rotation() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let log = home.path().join("logs/host.log");
    fs::create_dir(home.path().join("logs")).expect("made");
    fs::write(&log, "one\n").expect("written");
    let mut command = ironctl(home.path());
    let mut child = command.args(["logs", "-f"]).stdout(Stdio::piped()).spawn().expect("runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut next = || lines.next().expect("one more").expect("UTF-8");
    assert_eq!(next(), "one");
    let mut open = File::options().append(true).open(&log).expect("opened");
    open.write_all(b"two\n").expect("written");
    assert_eq!(next(), "two");
    fs::rename(&log, log.with_extension("1")).expect("renamed");
    fs::write(&log, "three\n").expect("written");
    assert_eq!(next(), "three");
    child.kill().expect("it follows for ever");
    child.wait().expect("it ended");
}
