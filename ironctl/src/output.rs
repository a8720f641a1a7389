//! The only module that writes to the terminal: tables for people, JSON for scripts, failures for both.
//!
//! Never prints a character that could control a terminal or reorder the text. See [`crate::commands`] for the callers.

pub mod flow;
pub mod table;

use crate::failure::Error;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Display;
use std::fmt::Write as _;
use std::io::{self, BufRead, IsTerminal, Write};
use table::{Columns, Laid};
use unicode_width::UnicodeWidthChar;

/// Returns words of a closed list with `between` between them.
pub fn joined(words: impl IntoIterator<Item = impl Display>, between: &str) -> String {
    let words: Vec<String> = words.into_iter().map(|word| word.to_string()).collect();
    words.join(between)
}

/// Returns words of a closed list for a sentence: `a, b or c`.
pub fn alternatives(words: impl IntoIterator<Item = impl Display>) -> String {
    let mut words: Vec<String> = words.into_iter().map(|word| word.to_string()).collect();
    let last = words.pop().unwrap_or_default();
    if words.is_empty() { last } else { format!("{} or {last}", words.join(", ")) }
}

/// The output for people or, with `--json`, for scripts.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    json: bool,
    /// True if the brackets of [`MARKS`] are escaped in ordinary text.
    reserves_marks: bool,
}

impl Output {
    /// Creates an output for scripts (`json`) or for people.
    pub fn new(json: bool) -> Self {
        Self { json, reserves_marks: false }
    }

    /// Returns this output with the brackets of the host's marks reserved: only [`Output::exact`] and [`Output::marked`] print them.
    ///
    /// The text of a model passes through such an output, so it cannot look like a question of the host.
    pub fn reserving_marks(self) -> Self {
        Self { reserves_marks: true, ..self }
    }

    /// Returns a text for a terminal, with unsafe characters and reserved marks escaped.
    fn shown(self, text: &str) -> Cow<'_, str> {
        if self.reserves_marks { without_marks(text) } else { safe(text) }
    }

    /// Returns whether the output is for a script.
    pub fn is_json(self) -> bool {
        self.json
    }

    /// Prints a line for people to stdout, wrapped between words on a terminal, with unsafe characters escaped. A command to copy stays
    /// on one line.
    pub fn line(self, text: impl AsRef<str>) -> Result<(), Error> {
        if self.json {
            return Ok(());
        }
        write_out(&format!("{}\n", fitted(&self.shown(text.as_ref()), self.width())))
    }

    /// Prints a line as [`Output::line`] does, behind a mark of the host. The text may have no marks of its own.
    pub fn marked_line(self, mark: &str, text: &str) -> Result<(), Error> {
        if self.json {
            return Ok(());
        }
        let line = format!("{} {}", safe(mark), self.shown(text));
        write_out(&format!("{}\n", fitted(&line, self.width())))
    }

    /// Returns the width of the terminal at stdout; `None` for anything else.
    pub fn width(self) -> Option<usize> {
        self.columns().filter(|columns| *columns > 0)
    }

    /// Refuses a text with unsafe characters, and a text with lines that are wider than the terminal.
    pub fn check_exact(self, text: &str) -> Result<(), Error> {
        if text.chars().any(|character| character == '\t' || is_unsafe(character)) {
            let message =
                "the text of the host contains terminal control characters; it was not shown, and nothing was decided";
            return Err(Error::failed("text_unsafe", message));
        }
        if self.json {
            return Ok(());
        }
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        if let Some(columns) = self.columns().filter(|columns| *columns < widest) {
            let message = format!("the terminal has {columns} columns, and a line of this page has {widest}");
            return Err(Error::failed("terminal_narrow", message).hinting(NARROW));
        }
        Ok(())
    }

    /// Prints the exact text of the host for people to stdout; refuses a text with unsafe characters.
    pub fn exact(self, text: &str) -> Result<(), Error> {
        self.check_exact(text)?;
        if self.json {
            return Ok(());
        }
        write_out(text)
    }

    /// Returns the height of the terminal, if known.
    pub fn rows(self) -> Option<usize> {
        let rows = terminal_size::terminal_size_of(io::stdout()).map(|(_, rows)| usize::from(rows.0));
        rows.filter(|rows| *rows > 0)
    }

    /// Returns the width of the terminal, if known.
    pub fn columns(self) -> Option<usize> {
        terminal_size::terminal_size_of(io::stdout()).map(|(columns, _)| usize::from(columns.0))
    }

    /// Prints a part of a line for people to stdout, with unsafe characters escaped.
    pub fn part(self, text: &str) -> Result<(), Error> {
        if self.json {
            return Ok(());
        }
        write_out(&self.shown(text))
    }

    /// Prints a part with safe characters only to stdout.
    fn safe_part(self, text: &str) -> Result<(), Error> {
        if self.json { Ok(()) } else { write_out(text) }
    }

    /// Prints a part of a line in the words of the host, which may have marks, to stdout; escapes unsafe characters.
    pub fn marked(self, text: &str) -> Result<(), Error> {
        if self.json {
            return Ok(());
        }
        write_out(&safe(text))
    }

    /// Prints a remark for people to stderr, wrapped between words on a terminal, with unsafe characters escaped.
    pub fn remark(self, text: impl AsRef<str>) -> Result<(), Error> {
        if self.json {
            return Ok(());
        }
        writeln!(io::stderr().lock(), "{}", fitted(&self.shown(text.as_ref()), stderr_width()))?;
        Ok(())
    }

    /// Prints a JSON document for scripts to stdout, on one line.
    pub fn json(self, value: &impl Serialize) -> Result<(), Error> {
        if !self.json {
            return Ok(());
        }
        write_out(&format!("{}\n", to_json(value)?))
    }

    /// Prints a JSON document for scripts, or a line for people.
    pub fn result(self, value: &impl Serialize, line: impl AsRef<str>) -> Result<(), Error> {
        self.json(value)?;
        self.line(line)
    }

    /// Prints a table for people: on a terminal one that fits its width, elsewhere one line a row. Unsafe characters are escaped.
    pub fn table<'a, const N: usize>(
        self,
        columns: impl Into<Columns<'a, N>>,
        rows: impl IntoIterator<Item = [String; N]>,
    ) -> Result<(), Error> {
        if self.json {
            return Ok(());
        }
        let width =
            io::stdout().is_terminal().then(|| self.columns().filter(|columns| *columns > 0).unwrap_or(COLUMNS));
        let rows: Vec<[String; N]> = rows.into_iter().map(|row| row.map(|cell| cell_text(&cell, width))).collect();
        let count = rows.len();
        let laid = table::lay_out(columns.into(), rows, width);
        write_out(&format!("{}\n", laid.text))?;
        // A page of names and values is no list.
        let screen = self.rows().filter(|_| width.is_some() && N > 2);
        remark_on_more(count, &laid, screen).map_or(Ok(()), |remark| self.remark(remark))
    }

    /// Prints a list as JSON for scripts and as a table for people, who get the line `none` in place of an empty table.
    pub fn list<'a, T: Serialize, const N: usize>(
        self,
        all: Vec<T>,
        none: &str,
        columns: impl Into<Columns<'a, N>>,
        row: impl FnMut(T) -> [String; N],
    ) -> Result<(), Error> {
        if all.is_empty() {
            return self.result(&all, none);
        }
        self.json(&all)?;
        self.table(columns, all.into_iter().map(row))
    }

    /// Writes bytes unchanged to stdout, such as a completion script.
    pub fn raw(self, bytes: &[u8]) -> Result<(), Error> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()?;
        Ok(())
    }

    /// Prints a failure to stderr, as `error:` and `hint:` or as one JSON document.
    ///
    /// Ignores a closed stderr, because there is no other place for the message.
    pub fn failure(self, error: &Error) {
        let Some(failure) = error.report() else { return };
        let mut text = String::new();
        if self.json {
            text = to_json(&failure).unwrap_or_default();
        } else {
            let _ = write!(text, "error: {}", self.shown(&failure.error.message));
            if !failure.error.hint.is_empty() {
                let _ = write!(text, "\nhint: {}", self.shown(&failure.error.hint));
            }
            text = fitted(&text, stderr_width()).into_owned();
        }
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Prints the failure of one step, so that the next one can follow; a lost host stays a failure.
    pub fn report(self, result: Result<(), Error>) -> Result<(), Error> {
        match result {
            Err(error @ (Error::Refused(_) | Error::Failed { .. } | Error::Usage { .. })) => {
                self.failure(&error);
                Ok(())
            }
            other => other,
        }
    }

    /// Prints a line to stderr that the next one replaces; only on a terminal.
    pub fn progress(self, text: &str) -> Result<(), Error> {
        let mut stderr = io::stderr().lock();
        if self.json || !stderr.is_terminal() {
            return Ok(());
        }
        // A wrapped line cannot be erased, so the text is cut to one line.
        let columns = self.columns().map_or(PROGRESS_COLUMNS_MAX, |columns| columns.saturating_sub(1));
        let one_line = one_line(&self.shown(text), columns.min(PROGRESS_COLUMNS_MAX));
        write!(stderr, "\r\x1b[K{one_line}")?;
        stderr.flush()?;
        Ok(())
    }

    /// Asks for a confirmation on a terminal; elsewhere requires `--yes`.
    ///
    /// `question` has no question mark, e.g. `remove agent x`. Fails unless the answer is yes.
    pub fn confirm(self, question: &str, yes: bool) -> Result<(), Error> {
        if yes {
            return Ok(());
        }
        if self.json || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(Error::usage(format!("cannot {question} without a confirmation"), "confirm it with --yes"));
        }
        let question = format!("{}? [y/N]", safe(question));
        write!(io::stderr().lock(), "{} ", fitted(&question, stderr_width()))?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
        Err(Error::failed("not_confirmed", format!("did not {question}: the answer was no")))
    }
}

/// Columns of the progress line.
const PROGRESS_COLUMNS_MAX: usize = 72;

/// The hint for a terminal that is too narrow.
pub const NARROW: &str =
    "a wrapped line could look like a line of the host: make the terminal at least 80 columns wide";

/// Escapes each character that controls a terminal, or that reorders or hides text, e.g. as `\u{202e}`.
///
/// Keeps newlines and tabs. Keeps zero-width joiners and variation selectors, because Persian and emoji need them.
pub fn safe(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_unsafe(character) {
            out.extend(character.escape_unicode());
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// The brackets of the host's marks, and the brackets that look like them.
const MARKS: [char; 4] = ['⟦', '⟧', '〚', '〛'];

/// Escapes the brackets of the host's marks, besides the characters of [`safe`].
fn without_marks(text: &str) -> Cow<'_, str> {
    let shown = safe(text);
    if !shown.contains(MARKS) {
        return shown;
    }
    let mut out = String::with_capacity(shown.len() + 16);
    for character in shown.chars() {
        if MARKS.contains(&character) {
            out.extend(character.escape_unicode());
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// Returns whether a character controls a terminal, or reorders or hides text.
pub fn is_unsafe(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' => true, // direction marks
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true, // bidirectional overrides, isolates
        '\u{200b}' | '\u{180e}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' => true, // invisible
        '\u{2028}' | '\u{2029}' => true,             // line ends of some programs
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' => true, // byte order mark, annotations
        '\u{e0000}'..='\u{e007f}' => true,           // tags: a hidden alphabet
        other => other.is_control(),
    }
}

/// Returns the start of a text that fits into this number of columns, on one line.
fn one_line(text: &str, columns: usize) -> String {
    let mut left = columns;
    let fits = |character: &char| {
        let width = character.width().unwrap_or(0);
        left.checked_sub(width).inspect(|rest| left = *rest).is_some()
    };
    text.chars().map(spaced).take_while(fits).collect()
}

fn spaced(character: char) -> char {
    if character == '\n' || character == '\t' { ' ' } else { character }
}

/// Returns compact JSON on one line with every unsafe character escaped as `\uXXXX`. A parser reads the same document.
pub fn to_json(value: &impl Serialize) -> Result<String, Error> {
    let plain = serde_json::to_string(value)
        .map_err(|cause| Error::failed("output", "cannot write the answer as JSON").because(cause))?;
    let mut out = String::with_capacity(plain.len());
    for character in plain.chars() {
        // Unsafe characters can only be inside strings here: compact JSON has no white space of its own.
        if is_unsafe(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(character);
        }
    }
    Ok(out)
}

/// Columns of a terminal of unknown width.
const COLUMNS: usize = 80;

/// Returns the text of a cell. Plain rows are for `grep` and `awk`: one line each.
fn cell_text(cell: &str, width: Option<usize>) -> String {
    let cell = safe(cell).replace('\t', " ");
    if width.is_some() { cell } else { cell.replace('\n', " ") }
}

/// Returns the remark on a table of which a terminal shows a part only, because it has more lines than the screen or lacks columns.
fn remark_on_more(rows: usize, laid: &Laid, screen: Option<usize>) -> Option<String> {
    let is_long = rows > 1 && screen.is_some_and(|screen| laid.text.lines().count() >= screen);
    let long = format!("{rows} rows are more than the screen");
    let narrow = format!("left out for the width: {}", laid.left_out.join(", "));
    let what = match (is_long, laid.left_out.is_empty()) {
        (false, true) => return None,
        (true, true) => long,
        (false, false) => narrow,
        (true, false) => format!("{long}; {narrow}"),
    };
    Some(format!("{what}; `| less -S` shows all"))
}

/// Returns the lines of a text on a terminal of this width, broken between words; without a width the text.
fn fitted(text: &str, width: Option<usize>) -> Cow<'_, str> {
    match width {
        Some(width) => Cow::Owned(table::wrapped_sentences(text, width).join("\n")),
        None => Cow::Borrowed(text),
    }
}

fn stderr_width() -> Option<usize> {
    let columns = terminal_size::terminal_size_of(io::stderr()).map(|(columns, _)| usize::from(columns.0));
    columns.filter(|columns| *columns > 0)
}

fn write_out(text: &str) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_that_a_screen_cannot_show_is_remarked() {
        let laid = |lines: usize, left_out: &[&str]| Laid {
            text: vec!["x"; lines].join("\n"),
            left_out: left_out.iter().map(|name| (*name).to_owned()).collect(),
        };
        assert_eq!(remark_on_more(9, &laid(10, &[]), Some(24)), None);
        assert_eq!(remark_on_more(30, &laid(31, &[]), None), None, "no terminal");
        assert_eq!(remark_on_more(1, &laid(31, &[]), Some(24)), None, "a page is no list");
        for (lines, left_out, said) in [(31, &[][..], "30 rows"), (9, &["PID"], "PID"), (31, &["PID"], "screen; left")]
        {
            let remark = remark_on_more(30, &laid(lines, left_out), Some(24));
            assert!(remark.as_ref().is_some_and(|remark| remark.contains(said)), "{remark:?}");
        }
    }

    #[test]
    fn control_reordering_and_hiding_characters_become_visible() {
        for (text, shown) in [
            ("a\x1b[31mred\x07\r", "a\\u{1b}[31mred\\u{7}\\u{d}"),
            ("\u{9b}2J\u{7f}\0", "\\u{9b}2J\\u{7f}\\u{0}"),
            ("a\u{202e}b\u{2066}c", "a\\u{202e}b\\u{2066}c"),
            ("\u{200b}\u{2028}\u{feff}\u{e0041}", "\\u{200b}\\u{2028}\\u{feff}\\u{e0041}"),
        ] {
            assert_eq!(safe(text), shown);
        }
    }

    #[test]
    fn one_line_is_cut_by_its_columns() {
        assert_eq!(one_line("a\nb\tc", 4), "a b ");
        assert_eq!(one_line("你好吗", 5), "你好");
        assert_eq!(one_line("short", 72), "short");
    }

    #[test]
    fn marks_of_the_host_are_escaped_in_other_text() {
        assert_eq!(without_marks("⟦a⟧ 〚b〛\u{1b}"), "\\u{27e6}a\\u{27e7} \\u{301a}b\\u{301b}\\u{1b}");
        assert!(matches!(without_marks("[a] 【b】"), Cow::Borrowed(_)));
        let (plain, reserving) = (Output::new(false), Output::new(false).reserving_marks());
        assert_eq!((plain.shown("⟦").as_ref(), reserving.shown("⟦").as_ref()), ("⟦", "\\u{27e6}"));
    }

    #[test]
    fn newlines_tabs_and_foreign_letters_stay() {
        let text = "eins\n\tzwei – 你好 مرحبا می‌روم 👩‍💻 ❤️";
        assert!(matches!(safe(text), Cow::Borrowed(same) if same == text));
    }

    #[test]
    fn json_is_safe_for_a_terminal_and_parses_to_the_same() {
        let text = "\u{1b}]0;x\u{9b}\u{202e}\u{e0041}\u{7f}\n";
        let json = to_json(&text).expect("a string is JSON");
        assert!(json.is_ascii(), "{json}");
        assert!(!json.bytes().any(|byte| byte.is_ascii_control()), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).expect("still JSON"), text);
    }

    #[test]
    fn cell_of_a_plain_table_is_one_safe_line() {
        assert_eq!((cell_text("a\nb\tc", None), cell_text("a\nb", Some(80))), ("a b c".to_owned(), "a\nb".to_owned()));
        assert_eq!(cell_text("\x1b[2J", None), "\\u{1b}[2J");
    }
}
