//! The walks of `docs/operate/first-day.md` and `recipes.md`, typed on a terminal as each document shows it, against the real programs.
//!
//! A model server and a source of packages on loopback replace those of the network. See `model_cli` for the commands of the README.

use crate::e2e::packages::{Registry, archive};
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::jail_fixture::{HostUser, ORDINARY_UID};
use crate::support::model_server::{Act, Seen, Server};
use crate::support::terminal;
use serde_json::json;
use std::collections::VecDeque;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of the documents, from that of this crate. A document is read when a test runs, so that a change of it needs no build.
const DOCUMENTS: &str = "../docs/operate";

/// In the document this replaces ids, times, numbers that differ and, on a line of its own, omitted lines.
const OMITTED: &str = "…";

/// The prompts at which a person types a line. The document shows the line behind them.
const QUESTIONS: [&str; 2] = ["quit? ", "Type the path of the home to remove it: "];

/// The prompts of a long page, which Enter answers.
const PAGES: [&str; 1] = [" -- "];

/// The directory of the user in the document.
const USER: &str = "/home/you";

/// The address of the model server in the document.
const ADDRESS: &str = "127.0.0.1:11434";

/// The document marks a step that does not succeed, and steps of the model server, with a comment.
const FAILS: &str = "<!-- fails -->";
const SERVER_STOPS: &str = "<!-- the model server stops -->";
const SERVER_STARTS: &str = "<!-- the model server starts -->";

/// A PDF of one page, without compression.
const PDF: &str = "%PDF-1.4\n1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj\n2 0 obj <</Type /Pages /Kids [3 0 R] /Count 1>> endobj\n\
    3 0 obj <</Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R>> endobj\n4 0 obj <</Length 64>> stream\n\
    BT /F1 12 Tf 20 150 Td (Invoice 4711, total: 148.50 EUR) Tj ET\nendstream endobj\ntrailer <</Root 1 0 R>>\n%%EOF\n";

/// The substitute for `pdftotext FILE -`.
const PDFTOTEXT: &str = "#!/bin/sh\nexec sed -n 's/.*(\\(.*\\)) Tj.*/\\1/p' \"$1\"\n";

/// The substitute for `jq -r .total FILE`.
const JQ: &str = "#!/usr/bin/perl -w\nuse strict; use JSON::PP; local (@ARGV, $/) = $ARGV[-1];\nprint decode_json(<>)->{total}, \"\\n\";\n";

/// A command of the document, and the lines below it.
#[derive(Debug)]
struct Step {
    command: String,
    shown: Vec<String>,
    fails: bool,
    /// True if the model server starts before it, false if the model server stops.
    server: Option<bool>,
}
#[derive(Debug, Default)]
struct Document {
    /// The commands that a person types, in their order.
    steps: Vec<Step>,
    /// The commands of `ironctl` that its sentences name.
    named: Vec<String>,
}

impl Document {
    fn text(name: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(DOCUMENTS).join(name);
        std::fs::read_to_string(path).expect("the document")
    }

    fn read(name: &str) -> Self {
        let text = Self::text(name);
        let mut document = Self::default();
        let (mut is_in, mut fails, mut server) = (false, false, None);
        for line in text.lines() {
            match line {
                "```console" => is_in = true,
                "```" => (is_in, fails) = (false, false),
                FAILS => fails = true,
                SERVER_STOPS => server = Some(false),
                SERVER_STARTS => server = Some(true),
                line if !is_in => {
                    let quoted = line.split('`').skip(1).step_by(2).filter(|quoted| quoted.starts_with("ironctl "));
                    document.named.extend(quoted.map(str::to_owned));
                }
                line => match line.strip_prefix("$ ") {
                    Some(command) => {
                        let command = command.to_owned();
                        document.steps.push(Step { command, shown: Vec::new(), fails, server: server.take() });
                    }
                    None => document.steps.last_mut().expect("a command first").shown.push(line.trim_end().to_owned()),
                },
            }
        }
        document
    }
}

/// Returns the answers that the document shows behind the questions of a command.
fn answers(shown: &[String]) -> VecDeque<String> {
    let typed = |line: &String| {
        QUESTIONS.iter().find_map(|question| Some(line.split_once(question.trim_start())?.1.to_owned()))
    };
    shown.iter().filter_map(typed).collect()
}

/// Returns whether a line has this form, with [`OMITTED`] in place of any text.
fn has_form(line: &str, form: &str) -> bool {
    let parts: Vec<&str> = form.split(OMITTED).collect();
    let [first, middle @ .., last] = parts.as_slice() else { return line == form };
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    for part in middle {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

/// Lines of the terminal that one line of the document may be.
const WRAPPED_MAX: usize = 6;

/// Returns whether lines have these forms; the form [`OMITTED`] alone fits any number of lines. The terminal ends a long line between two
/// words.
fn have_forms(lines: &[String], forms: &[String]) -> bool {
    match (lines, forms) {
        ([], []) => true,
        (_, [form, forms @ ..]) if form == OMITTED => (0..=lines.len()).any(|from| have_forms(&lines[from..], forms)),
        ([_, ..], [form, forms @ ..]) => (1..=lines.len().min(WRAPPED_MAX)).any(|count| {
            let (first, rest) = lines[..count].split_first().expect("at least one");
            let line = rest.iter().fold(first.clone(), |line, next| format!("{line} {}", next.trim_start()));
            has_form(&line, form) && have_forms(&lines[count..], forms)
        }),
        _ => false,
    }
}

/// Answers like a model that reads files with programs and asks for what it needs.
fn assistant(seen: &Seen) -> Act {
    let (asked, results) = (seen.asked(), seen.results());
    let call = |tool: &str, arguments| Act::Call(String::new(), vec![(tool.to_owned(), arguments)]);
    let run = |command: &str| call("run_command", json!({ "command": command }));
    let packages = json!({ "apt": ["jq", "poppler-utils", "ripgrep"] });
    let wish = json!({ "kind": "packages", "payload": packages, "reason": "to search long files" });
    let system = seen.conversation().into_iter().next().map(|(_, text)| text).unwrap_or_default();
    match results.last() {
        None if asked.contains("invoice.pdf") => run("pdftotext /papers/invoice.pdf -"),
        None if asked.contains("orders.json") => run("jq -r .total /papers/orders.json"),
        None if asked.contains("ripgrep") => call("request_capability_change", wish),
        None if asked.starts_with("Reply with") => Act::Say("ready".to_owned()),
        None if system.contains("You are Ada") => Act::Say("I am Ada, and I answer in one sentence.".to_owned()),
        None => Act::Say("Hello! How can I help you?".to_owned()),
        Some(_) if asked.contains("ripgrep") => Act::Say("I asked for ripgrep. Please decide in the inbox.".to_owned()),
        Some(result) => {
            let total = result.split(|c: char| !c.is_ascii_digit() && c != '.').find(|part| part.contains('.'));
            Act::Say(format!("The total is {} EUR.", total.unwrap_or("unknown")))
        }
    }
}

/// The machine of a new user.
struct Walk {
    host: TestHost,
    user: PathBuf,
    server: Option<Server>,
    port: u16,
    archives: tempfile::TempDir,
}

impl Walk {
    fn new() -> Self {
        let mut host = TestHost::new();
        let user = host.home.with_file_name("you");
        for path in ["", ".local", ".local/state", "papers"] {
            own_directory(&host, &user.join(path));
        }
        for (name, text) in [("invoice.pdf", PDF), ("orders.json", "{\"orders\": 2, \"total\": 97.25}\n")] {
            std::fs::write(user.join("papers").join(name), text).expect("written");
        }
        host.home = user.join(".local/state/ironclaw");
        host.set_env("HOME", user.to_str());
        let server = Server::start(assistant);
        let port = server.url().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        Self { host, user, server: Some(server), port, archives: tempfile::tempdir().expect("a directory") }
    }

    /// Has the host fetch packages from a source on loopback.
    fn offer_packages(&self) {
        let directory = self.archives.path();
        for (path, mode) in [(directory.to_owned(), 0o755), (directory.join("traces"), 0o777)] {
            std::fs::create_dir_all(&path).expect("a directory");
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("permissions");
        }
        let package = |name: &str, program: &'static str, text: &'static str| {
            archive(directory, name, move |tree| {
                let path = tree.join("usr/bin").join(program);
                std::fs::write(&path, text).expect("written");
                std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("permissions");
                // Newer than a package of this name that this machine has, which apt would not fetch.
                let control = tree.join("DEBIAN/control");
                let fields = std::fs::read_to_string(&control).expect("the fields of a package");
                std::fs::write(control, fields.replace("Version: 1.0-1", "Version: 99:1.0-1")).expect("written");
            })
        };
        let registry = Registry::new();
        registry.offer(&[
            package("poppler-utils", "pdftotext", PDFTOTEXT),
            package("jq", "jq", JQ),
            package("ripgrep", "rg", "#!/bin/sh\n"),
        ]);
        let (sources, port) = (directory.join("own.list"), registry.port);
        std::fs::write(&sources, format!("deb [trusted=yes] http://127.0.0.1:{port}/apt ./\n")).expect("written");
        let path = self.host.home.join("config.toml");
        let settings = std::fs::read_to_string(&path).expect("the settings");
        let own = format!("[packages]\napt_sources = {:?}\nports = [{port}]\n", sources.display().to_string());
        std::fs::write(&path, settings.replace("[packages]\n", &own)).expect("written");
        self.host.ctl(&["config", "reload"]).ok();
    }
    /// Types every command of a document. The commands that its sentences name have a help.
    fn through(mut self, document: &str) {
        let Document { steps, named } = Document::read(document);
        assert!(steps.len() >= 20, "the document has the commands of ten tasks: {}", steps.len());
        for (number, step) in steps.iter().enumerate() {
            self.take(step);
            if number == 0 {
                self.offer_packages();
            }
        }
        for command in named {
            let words = command.split(' ').skip(1).filter(|word| !word.chars().all(|c| c.is_ascii_uppercase()));
            let words: Vec<&str> = words.chain(["--help"]).collect();
            self.host.ctl(&words).ok();
        }
    }

    fn serve(&mut self, starts: bool) {
        self.server = None;
        let port = self.port;
        if starts {
            wait_for("the port of the model server", || {
                self.server = Server::listen(port, assistant).ok();
                self.server.is_some()
            });
        }
    }

    /// Types a command, and checks its exit code and its output.
    fn take(&mut self, step: &Step) {
        if let Some(starts) = step.server {
            self.serve(starts);
        }
        let here = format!("127.0.0.1:{}", self.port);
        let typed = match step.command.strip_prefix("ironctl model add ollama") {
            Some(rest) => format!("ironctl model add ollama --preset ollama --base-url http://{here}/v1{rest}"),
            None => step.command.clone(),
        };
        let mut answers = answers(&step.shown);
        let prompts = [&QUESTIONS[..], &PAGES].concat();
        let seen = terminal::run(self.shell(&typed), &prompts, |prompt| match QUESTIONS.contains(&prompt) {
            true => self.here(&answers.pop_front().unwrap_or_else(|| "quit".to_owned())),
            false => String::new(),
        });
        let user = self.user.display().to_string();
        let lines: Vec<String> =
            seen.lines.iter().map(|line| line.replace(&here, ADDRESS).replace(&user, USER)).collect();
        let what = format!("$ {}\n{}", step.command, lines.join("\n"));
        assert_eq!(seen.code != 0, step.fails, "exit code {}: {what}", seen.code);
        assert!(have_forms(&lines, &step.shown), "{what}\n\nthe document has:\n{}", step.shown.join("\n"));
    }

    /// Returns a shell that runs a command as the user, with the programs on its path.
    fn shell(&self, typed: &str) -> Command {
        let mut command = self.host.command_at(Path::new("/usr/bin/env"));
        command.args(["bash", "-c", typed]).current_dir(&self.user);
        command.env("PATH", format!("{}:/usr/bin:/bin", self.host.programs.display()));
        command.env("TERM", "xterm").env("LANG", "C.UTF-8");
        command
    }

    /// Returns a text of the document with the directory of this user.
    fn here(&self, text: &str) -> String {
        text.replace(USER, &self.user.display().to_string())
    }
}

fn own_directory(host: &TestHost, path: &Path) {
    std::fs::create_dir_all(path).expect("a directory");
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("permissions");
    if host.user == HostUser::Ordinary && nix::unistd::geteuid().is_root() {
        chown(path, Some(ORDINARY_UID), Some(ORDINARY_UID)).expect("root can give files away");
    }
}

#[test]
fn first_day_works_as_the_document_shows_it() {
    Walk::new().through("first-day.md");
}

#[test]
fn recipes_work_as_the_document_shows_them() {
    let recipes = Document::text("recipes.md");
    let recipes: Vec<&str> = recipes.split("\n## ").skip(1).collect();
    assert_eq!(recipes.len(), 10);
    for recipe in recipes {
        let shown = recipe.trim_end().lines().filter(|line| !line.starts_with("```") && *line != OMITTED);
        assert!(shown.count() <= 24, "one screen: {recipe}");
    }
    let walk = Walk::new();
    own_directory(&walk.host, &walk.user.join("site"));
    walk.through("recipes.md");
}

#[test]
fn other_output_does_not_have_the_form_of_the_document() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let form = lines("made chg_… in … ms\n…\nEFFECT\n…");
    for same in ["made chg_1 in 5 ms\nEFFECT", "made chg_1 in 5 ms\na\n\nEFFECT\nb"] {
        assert!(have_forms(&lines(same), &form), "{same}");
    }
    for other in
        ["made chg_1 in 5 s\nEFFECT", "made chg_1 in 5 ms", "a\nmade chg_1 in 5 ms\nEFFECT", "made chg_1\nEFFECT"]
    {
        assert!(!have_forms(&lines(other), &form), "{other}");
    }
}
