//! Tests of the command line: its definition, examples, completions and help.
//!
//! The help of each command is a golden file in `tests/golden/help`. `IRONCLAW_GOLDEN=write cargo test -p ironctl` rewrites it.

use super::*;
use clap::CommandFactory;
use clap_complete::Shell;
use std::collections::BTreeSet;

#[path = "../tests/it/golden.rs"]
pub mod golden;

/// Returns the words of every visible command: none for `ironctl` itself, and e.g. `agent add`.
fn visible_commands() -> Vec<Vec<String>> {
    fn walk(command: &clap::Command, words: &[String], found: &mut Vec<Vec<String>>) {
        found.push(words.to_vec());
        for child in command.get_subcommands().filter(|child| !child.is_hide_set()) {
            walk(child, &[words, &[child.get_name().to_owned()]].concat(), found);
        }
    }
    let mut found = Vec::new();
    walk(&Cli::command(), &[], &mut found);
    found
}

/// Returns the help of a command on a terminal of 80 columns.
fn help(words: &[String]) -> String {
    let arguments = ["ironctl"].into_iter().chain(words.iter().map(String::as_str)).chain(["--help"]);
    let help =
        Cli::command().term_width(80).try_get_matches_from(arguments).expect_err("clap returns help as an error");
    assert_eq!(help.kind(), ErrorKind::DisplayHelp, "{words:?}");
    help.render().to_string()
}

#[test]
fn definition_of_the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_has_an_example_that_parses() {
    fn walk(command: &clap::Command, path: &str) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.starts_with("Example:\n"), "{path} has no example");
        for line in help.lines().skip(1) {
            let words: Vec<&str> = line.split(['|', '<', '>']).next().unwrap_or("").split_whitespace().collect();
            assert_eq!(words.first(), Some(&"ironctl"), "{path}: {line}");
            let read = Cli::try_parse_from(words.iter().map(|word| word.trim_matches('"')));
            assert!(read.is_ok(), "{path}: {line}: {}", read.expect_err("checked"));
        }
        assert!(command.get_about().is_some(), "{path} has no description");
        for child in command.get_subcommands() {
            walk(child, &format!("{path} {}", child.get_name()));
        }
    }
    walk(&Cli::command(), "ironctl");
}

#[test]
fn help_of_every_command_is_its_golden_file() {
    let mut names = BTreeSet::new();
    for words in visible_commands() {
        let name = if words.is_empty() { "ironctl".to_owned() } else { words.join("-") };
        let help = help(&words);
        let shown = help.lines().take_while(|line| *line != "Example:");
        assert_eq!(shown.filter(|line| line.chars().count() > 80).collect::<Vec<_>>(), Vec::<&str>::new(), "{name}");
        golden::check(&format!("help/{name}.txt"), &help);
        names.insert(format!("{name}.txt"));
    }
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/help");
    let entries = std::fs::read_dir(directory).expect("a directory of golden files");
    let files = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    assert_eq!(files.collect::<BTreeSet<_>>(), names, "each file belongs to a command");
}

#[test]
fn help_lists_every_command_in_one_group_on_one_screen() {
    let mut listed: Vec<&str> = commands::GROUPS.iter().flat_map(|(_, commands)| commands.iter().copied()).collect();
    listed.sort_unstable();
    let nouns: BTreeSet<String> = visible_commands().into_iter().filter_map(|words| words.into_iter().next()).collect();
    assert_eq!(listed, nouns.iter().map(String::as_str).collect::<Vec<_>>());
    let help = help(&[]);
    assert!(help.lines().count() <= 24 && help.lines().all(|line| line.chars().count() <= 80), "{help}");
}

#[test]
fn former_names_still_work_and_are_hidden() {
    for (noun, former, rest) in [
        ("agent", "create", &["a"][..]),
        ("token", "create", &["--person", "a"][..]),
        ("token", "revoke", &["tok_1"][..]),
        ("memory", "forget", &["a", "mem_1"][..]),
        ("message", "dead", &["list"][..]),
    ] {
        let read = Cli::try_parse_from([&["ironctl", noun, former][..], rest].concat());
        assert!(read.is_ok(), "{noun} {former}");
        let help = help(&[noun.to_owned()]);
        assert!(!help.lines().any(|line| line.trim_start().starts_with(former)), "{help}");
    }
}

#[test]
fn completion_scripts_have_every_command() {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "ironctl", &mut script);
        let script = String::from_utf8(script).expect("a script is text");
        for words in visible_commands() {
            assert!(words.iter().all(|word| script.contains(word.as_str())), "{shell}: {words:?}");
        }
    }
}
