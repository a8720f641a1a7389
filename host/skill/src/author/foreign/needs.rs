//! The needs of a foreign skill: the tool that runs its programs, their interpreters, and the hosts that its commands address.
//!
//! Asks for no more than the texts show; a person decides on each need when the skill is installed.

mod address;

use super::notes::Notes;
use super::program::{interpreter, is_document, is_program};
use super::rewrite::commands;
use super::tree::Files;
use crate::manifest::ENTRIES_MAX;
use crate::{Grants, Needs};
use ironclaw_contract::seam::change::Egress;
use std::collections::BTreeSet;

/// The tool that runs programs.
pub(super) const RUN_COMMAND: &str = "run_command";
/// Words of a line that sends requests.
const REQUESTS: [&str; 14] = [
    "curl ",
    "wget ",
    "requests.",
    "httpx",
    "urlopen",
    "urllib",
    "aiohttp",
    "fetch(",
    "axios",
    "http.get",
    "https.get",
    "Invoke-WebRequest",
    "Invoke-RestMethod",
    "got(",
];
/// Commands of a shell and of every machine, which are no need.
const OF_EVERY_SHELL: [&str; 40] = [
    "cd", "echo", "export", "set", "if", "then", "else", "fi", "for", "do", "done", "while", "case", "esac", "source",
    "cat", "ls", "cp", "mv", "rm", "mkdir", "touch", "chmod", "head", "tail", "grep", "sed", "awk", "sort", "uniq",
    "wc", "find", "test", "true", "false", "exit", "sudo", "env", "read", "printf",
];
/// Programs that install others.
const INSTALLERS: [&str; 8] = [
    "pip install",
    "pip3 install",
    "npm install",
    "npm i ",
    "apt install",
    "apt-get install",
    "brew install",
    "uv add",
];

/// The grants that a skill asks for, and its further needs.
pub(super) struct Asked {
    pub(super) grants: Grants,
    pub(super) needs: Needs,
}

/// Returns what the files of a skill ask for.
pub(super) fn needs(files: &Files, notes: &mut Notes) -> Asked {
    let mut programs: BTreeSet<String> = BTreeSet::new();
    let mut egress: Vec<Egress> = Vec::new();
    let mut runs = false;
    for (path, file) in files {
        let Some(text) = file.text() else {
            runs |= is_program(path, file);
            continue;
        };
        if is_program(path, file) {
            runs = true;
            programs.extend(interpreter(path, file));
            let lines = text.lines().enumerate().filter(|(_, line)| REQUESTS.iter().any(|word| line.contains(word)));
            lines.for_each(|(number, line)| address::add(&mut egress, line, path, number + 1, notes));
        } else if is_document(path) {
            let mut installs = false;
            for command in commands(text) {
                if !runs {
                    notes.add(path, Some(command.line), "its commands need the tool run_command");
                }
                runs = true;
                programs.extend(program(command.text));
                if !installs && INSTALLERS.iter().any(|installer| command.text.contains(installer)) {
                    installs = true;
                    let what = "a command installs software: give the agent its packages with `ironctl agent install`";
                    notes.add(path, Some(command.line), what);
                }
                if REQUESTS.iter().any(|word| command.text.contains(word)) {
                    address::add(&mut egress, command.text, path, command.line, notes);
                }
            }
        }
    }
    let tools = if runs { vec![RUN_COMMAND.to_owned()] } else { Vec::new() };
    let programs = programs.into_iter().take(ENTRIES_MAX).collect();
    Asked { grants: Grants { tools, egress, ..Grants::default() }, needs: Needs { programs } }
}

/// Returns the program that a command runs, if it is one of the machine.
fn program(command: &str) -> Option<String> {
    let mut words = command.trim_start_matches(['$', '>', '%', ' ']).split_whitespace();
    let word = words.find(|word| !word.contains('='))?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '.');
    let is_program =
        word.len() <= 32 && word.chars().all(is_plain) && word.starts_with(|c: char| c.is_ascii_lowercase());
    (is_program && !OF_EVERY_SHELL.contains(&word)).then(|| word.to_owned())
}
