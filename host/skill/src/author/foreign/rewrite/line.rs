//! One line of a text: its words that may be paths, and the context of each.

/// Programs that run a file.
const RUNNERS: [&str; 24] = [
    "python", "python3", "python2", "py", "node", "deno", "bun", "tsx", "ts-node", "npx", "sh", "bash", "zsh",
    "source", ".", "ruby", "perl", "php", "Rscript", "lua", "uv", "run", "exec", "chmod",
];
/// Programs that begin a line with a command, besides those that run a file.
const COMMANDS: [&str; 14] =
    ["cd", "cat", "cp", "mv", "ls", "grep", "less", "head", "tail", "pip", "pip3", "npm", "make", "sudo"];

/// The use of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    Prose,
    /// Alone in a code mark, or in a block that is no command.
    Mark,
    Link,
    /// A part of a command, or a text in the quotes of a program.
    Command,
}

/// The language of a block of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Shell,
    Python,
    None,
    Other,
}

/// A block of code that is open.
#[derive(Debug)]
pub(super) struct Fence {
    mark: char,
    length: usize,
    pub(super) language: Language,
    /// The paths that its Python got.
    pub(super) paths: Vec<String>,
}

impl Fence {
    /// Returns the state after a line that opens or ends a block; `None` for any other line.
    pub(super) fn after(open: &Option<Self>, line: &str) -> Option<Option<Self>> {
        let text = line.trim_start().trim_start_matches("> ");
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = text.chars().take_while(|c| *c == mark).count();
        if length < 3 {
            return None;
        }
        let info = text[length..].trim();
        if let Some(fence) = open {
            return (fence.mark == mark && length >= fence.length && info.is_empty()).then_some(None);
        }
        if mark == '`' && info.contains('`') {
            return None;
        }
        let word =
            info.split(|c: char| c.is_whitespace() || matches!(c, '{' | '}' | ',')).find(|word| !word.is_empty());
        let language = match word.map(str::to_lowercase).as_deref() {
            Some("bash" | "sh" | "shell" | "zsh" | "console" | "shell-session" | "terminal" | "cmd") => Language::Shell,
            Some("python" | "py" | "python3") => Language::Python,
            None | Some("text" | "txt" | "plaintext") => Language::None,
            Some(_) => Language::Other,
        };
        Some(Some(Self { mark, length, language, paths: Vec::new() }))
    }
}

pub(super) fn is_runner(word: &str) -> bool {
    RUNNERS.contains(&word)
}

/// A word that may be a path, with its place in the line.
#[derive(Debug)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    /// The place of the word, with a variable before it.
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) context: Context,
    /// The word before it.
    pub(super) before: &'a str,
    /// True behind the name of a variable for the directory of the skill.
    has_variable: bool,
}

impl<'a> Word<'a> {
    /// Returns the path within the skill, if the word is a path from outside to it: behind a variable, or with `skills/` and its name.
    pub(super) fn in_the_skill(&self, called: &[String]) -> Option<&'a str> {
        let path = self.text.trim_end_matches('/');
        let mut after_skills = false;
        for (at, part) in parts(path) {
            if after_skills && called.iter().any(|name| name == part) {
                return Some(path[at + part.len()..].trim_start_matches('/'));
            }
            after_skills |= part == "skills";
        }
        self.has_variable.then(|| path.trim_start_matches('/'))
    }
}

/// Returns the parts of a path with the place of each.
fn parts(path: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    path.split('/').map(move |part| {
        let from = at;
        at += part.len() + 1;
        (from, part)
    })
}

/// Returns the words of a line that may be paths.
pub(super) fn words<'a>(line: &'a str, fence: Option<&Fence>) -> Vec<Word<'a>> {
    let mut words = Vec::new();
    let mut before = "";
    for (from, text) in runs(line) {
        if text.contains("://") || text.contains('@') || text.starts_with("www.") {
            before = text;
            continue;
        }
        let mut at = from;
        for piece in text.split(':') {
            let trimmed = piece.trim_end_matches(['.', ',']);
            if !trimmed.is_empty() && trimmed.chars().any(char::is_alphanumeric) {
                words.push(word(line, at, trimmed, before, fence));
            }
            at += piece.len() + 1;
        }
        before = text;
    }
    words
}

fn word<'a>(line: &'a str, from: usize, text: &'a str, before: &'a str, fence: Option<&Fence>) -> Word<'a> {
    let context = context(line, from, text, before, fence);
    let to = from + text.len();
    let variable = variable(&line[..from], text);
    match variable {
        Some(start) => {
            // The name of a variable without braces is the first part of the word.
            let cut = if line[..from].ends_with('$') { text.find('/').unwrap_or(text.len()) } else { 0 };
            Word { text: &text[cut..], from: start, to, context, before, has_variable: true }
        }
        None => Word { text, from, to, context, before, has_variable: false },
    }
}

/// Returns the runs of characters of paths, with their places.
fn runs(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_other = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '~' | '@' | '+' | ':' | '%'));
    let mut at = 0;
    line.split(is_other).filter_map(move |run| {
        // The character that ended the run before.
        let from = at;
        let next = from + run.len();
        at = next + line[next..].chars().next().map_or(0, char::len_utf8);
        (!run.is_empty()).then_some((from, run))
    })
}

/// Returns the begin of a variable for the directory of a skill, directly before a path: `$NAME`, `${NAME}`, `{name}` or `<name>`.
fn variable(before: &str, text: &str) -> Option<usize> {
    let is_directory = |name: &str| {
        let name = name.to_lowercase();
        ["skill", "plugin", "basedir", "base_dir", "base-dir"].iter().any(|word| name.contains(word))
    };
    if before.ends_with('$') {
        let name = text.split('/').next().unwrap_or_default();
        return (is_directory(name) && text.contains('/')).then(|| before.len() - 1);
    }
    let close = before.chars().next_back()?;
    let open = match close {
        '}' => '{',
        '>' => '<',
        ']' => '[',
        _ => return None,
    };
    let start = before.rfind(open)?;
    let name = &before[start + 1..before.len() - 1];
    let start = if before[..start].ends_with('$') { start - 1 } else { start };
    (text.starts_with('/') && is_directory(name)).then_some(start)
}

fn context(line: &str, from: usize, text: &str, before: &str, fence: Option<&Fence>) -> Context {
    let (left, right) = (&line[..from], &line[from + text.len()..]);
    let is_quoted = left.ends_with(['"', '\'']) && right.starts_with(['"', '\'']);
    match fence.map(|fence| fence.language) {
        Some(Language::Shell) if line.trim_start().starts_with('#') => return Context::Mark,
        Some(Language::Shell) => return Context::Command,
        Some(_) if is_quoted || is_command_line(line) => return Context::Command,
        Some(_) => return Context::Mark,
        None => {}
    }
    if left.matches('`').count() % 2 == 1 {
        let inner_from = left.rfind('`').map_or(0, |at| at + 1);
        let inner_to = right.find('`').map_or(line.len(), |at| from + text.len() + at);
        let inner = line[inner_from..inner_to].trim();
        return if inner.contains(' ') { Context::Command } else { Context::Mark };
    }
    if left.ends_with("](") || left.ends_with("](<") || left.ends_with("]: ") || left.ends_with("=\"") {
        return Context::Link;
    }
    if is_runner(before) && before != "run" && before != "." { Context::Command } else { Context::Prose }
}

/// Returns whether a line outside of prose is a command.
fn is_command_line(line: &str) -> bool {
    let text = line.trim_start().trim_start_matches(['$', '>', '%']).trim_start();
    let first = text.split_whitespace().next().unwrap_or_default();
    is_runner(first) || COMMANDS.contains(&first) || first.starts_with("./")
}

/// Returns whether a line is a command or has one in a code mark.
pub(super) fn is_command(line: &str, fence: Option<&Fence>) -> bool {
    match fence {
        Some(fence) => fence.language == Language::Shell || is_command_line(line),
        None => line.contains('`'),
    }
}
