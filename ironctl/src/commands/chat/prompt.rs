//! The prompt on a terminal, and the parts of a line that the person pasted.
//!
//! Never counts pasted text as typed: the terminal marks it (mode 2004), the editor inserts it at once, and so does each other command
//! that inserts more than one character. See [`super::slash`] for the commands.

use super::typed_ahead::{self, Ahead};
use crate::failure::Error;
use crate::output::Output;
use crate::terminal_line::{self, Kept};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{DefaultHistory, History};
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::time::Duration;

/// Mode 2004 of a terminal: it marks pasted text.
const MARK_PASTES: &[u8] = b"\x1b[?2004h";
const MARK_NO_PASTES: &[u8] = b"\x1b[?2004l";

/// Terminals without such marks, on which the editor edits nothing.
const PLAIN_TERMINALS: [&str; 3] = ["dumb", "cons25", "emacs"];

const PROMPT: &str = "you> ";

/// Looks for the end of a paste, and the pause between two: a terminal writes a paste without one.
const PASTE_LOOKS_MAX: usize = 20;
const PASTE_PAUSE: Duration = Duration::from_millis(50);

/// Lines that the arrow keys bring back.
const HISTORY_LINES_MAX: usize = 100;

/// A line with the origin of each character.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypedLine {
    text: String,
    /// For each character its paste, by number from 1; 0 for a typed one.
    pastes: Vec<usize>,
    /// The number of the last paste.
    last: usize,
}

/// The text of a message, in which `[quoted 1]` has the place of the first quoted text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    pub text: String,
    pub quoted: Vec<String>,
}

impl Parts {
    /// Returns whether the person typed a word beside the quoted texts.
    pub fn has_typed_words(&self) -> bool {
        let mut typed = self.text.clone();
        for number in 1..=self.quoted.len() {
            typed = typed.replace(&quotation(number), "");
        }
        typed.contains(char::is_alphanumeric)
    }
}

/// Returns the words that take the place of a quoted text.
fn quotation(number: usize) -> String {
    format!("[quoted {number}]")
}

impl TypedLine {
    /// Makes a line of texts, each with the number of its paste; 0 for a typed one.
    pub fn from_parts<T: AsRef<str>>(parts: impl IntoIterator<Item = (T, usize)>) -> Self {
        let mut line = Self::default();
        for (text, paste) in parts {
            line.text.push_str(text.as_ref());
            line.pastes.extend(std::iter::repeat_n(paste, text.as_ref().chars().count()));
            line.last = line.last.max(paste);
        }
        line
    }

    /// Returns the whole line.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Takes over the state of the editor after one command: its text, and the position of its cursor in bytes.
    fn follow(&mut self, text: &str, cursor: usize) {
        if text == self.text {
            return;
        }
        let (old, new): (Vec<char>, Vec<char>) = (self.text.chars().collect(), text.chars().collect());
        let inserted = new.len().saturating_sub(old.len());
        let end = text.get(..cursor).map_or(new.len(), |before| before.chars().count());
        let start = end.saturating_sub(inserted);
        let is_insertion = inserted > 0 && old[..start.min(old.len())] == new[..start] && old[start..] == new[end..];
        let (start, end, kept) = if is_insertion { (start, end, start) } else { replaced(&old, &new) };
        // One key inserts one character. A paste, or text of an earlier line, comes at once.
        let paste = if is_insertion && inserted == 1 {
            0
        } else {
            self.last += 1;
            self.last
        };
        let pastes = self.pastes[..start].iter().copied();
        let pastes = pastes.chain(std::iter::repeat_n(paste, end - start)).chain(self.pastes[kept..].iter().copied());
        (self.pastes, self.text) = (pastes.collect(), text.to_owned());
    }

    /// Returns true if the first character that is no blank was typed.
    pub fn begins_typed(&self) -> bool {
        let mut marked = self.text.chars().zip(&self.pastes);
        marked.find(|(character, _)| !character.is_whitespace()).is_none_or(|(_, paste)| *paste == 0)
    }

    /// Returns the typed text and the pasted texts. Pasted blanks are a part of the typed text.
    pub fn parts(&self) -> Parts {
        let mut parts = Parts::default();
        let marked: Vec<(char, usize)> = self.text.chars().zip(self.pastes.iter().copied()).collect();
        for chunk in marked.chunk_by(|(_, one), (_, other)| one == other) {
            let text: String = chunk.iter().map(|(character, _)| character).collect();
            if chunk[0].1 == 0 || text.trim().is_empty() {
                if parts.text.ends_with(']') && text.starts_with(char::is_alphanumeric) {
                    parts.text.push(' ');
                }
                parts.text.push_str(&text);
                continue;
            }
            parts.quoted.push(text);
            if parts.text.ends_with(|last: char| !last.is_whitespace()) {
                parts.text.push(' ');
            }
            parts.text.push_str(&quotation(parts.quoted.len()));
        }
        parts
    }
}

/// Returns the place of the new characters of a changed line, and the first old character after it.
fn replaced(old: &[char], new: &[char]) -> (usize, usize, usize) {
    let shorter = old.len().min(new.len());
    let start = (0..shorter).take_while(|at| old[*at] == new[*at]).count();
    let after = (0..shorter - start).take_while(|at| old[old.len() - 1 - at] == new[new.len() - 1 - at]).count();
    (start, new.len() - after, old.len() - after)
}

/// The state that the editor and the prompt share.
#[derive(Debug, Default)]
struct Seen {
    line: TypedLine,
    /// The lines that the arrow keys bring back, in the order of the editor's history.
    earlier: Vec<TypedLine>,
    /// The place in the history; its length for the new line.
    index: usize,
    /// The new line, while an earlier one is shown.
    new: TypedLine,
}

impl Seen {
    /// Takes over the state of the editor after one command.
    fn follow(&mut self, text: &str, cursor: usize, index: usize) {
        if index == self.index {
            return self.line.follow(text, cursor);
        }
        // An earlier line comes back with its origin.
        if self.index == self.earlier.len() {
            self.new = self.line.clone();
        }
        self.index = index;
        let back = self.earlier.get(index).unwrap_or(&self.new);
        if back.text == text { self.line = back.clone() } else { self.line.follow(text, cursor) }
    }

    /// Keeps a line. `is_new` is false if it has the text of the line before, which the editor keeps once.
    fn keep(&mut self, line: TypedLine, is_new: bool) {
        if !is_new {
            self.earlier.pop();
        }
        self.earlier.push(line);
        if self.earlier.len() > HISTORY_LINES_MAX {
            self.earlier.remove(0);
        }
    }
}

/// Follows each state of the line. The editor asks for a hint after each change of the text.
struct Watcher(Rc<RefCell<Seen>>);

impl Hinter for Watcher {
    type Hint = String;

    fn hint(&self, line: &str, cursor: usize, editor: &Context<'_>) -> Option<String> {
        self.0.borrow_mut().follow(line, cursor, editor.history_index());
        None
    }
}

impl Completer for Watcher {
    type Candidate = String;
}
impl Highlighter for Watcher {}
impl Validator for Watcher {}
impl Helper for Watcher {}

/// The prompt on the terminal.
pub struct Prompt {
    editor: Editor<Watcher, DefaultHistory>,
    seen: Rc<RefCell<Seen>>,
    /// The lines that were typed before the prompt could read them.
    ahead: VecDeque<Ahead>,
}

impl Prompt {
    pub fn open() -> Result<Self, Error> {
        let seen = Rc::<RefCell<Seen>>::default();
        let config = Config::builder().max_history_size(HISTORY_LINES_MAX).map_err(no_prompt)?.build();
        let mut editor = Editor::with_config(config).map_err(no_prompt)?;
        editor.set_helper(Some(Watcher(Rc::clone(&seen))));
        Ok(Self { editor, seen, ahead: VecDeque::new() })
    }

    /// Returns the next line: one that was typed ahead, or the one that the person types now. Returns `None` if the person leaves.
    pub fn read(&mut self, out: Output) -> Result<Option<TypedLine>, Error> {
        self.look_ahead().map_err(|cause| no_prompt(cause.into()))?;
        match self.ahead.pop_front() {
            Some(Ahead { line, is_sent: true }) => {
                out.line(format!("{PROMPT}{}", line.text()))?;
                Ok(Some(line))
            }
            Some(Ahead { line, .. }) => self.edit(line),
            None => self.edit(TypedLine::default()),
        }
    }

    /// Takes over what was typed since the last prompt.
    fn look_ahead(&mut self) -> io::Result<()> {
        let mut kept = terminal_line::take()?;
        for _ in 0..PASTE_LOOKS_MAX {
            if !typed_ahead::is_pasting(&kept.bytes) {
                break;
            }
            std::thread::sleep(PASTE_PAUSE);
            let Kept { bytes, .. } = terminal_line::take()?;
            kept.bytes.extend(bytes);
        }
        if kept.was_held {
            self.ahead.iter_mut().for_each(|ahead| ahead.is_sent = false);
        }
        self.ahead.extend(typed_ahead::lines(&kept, marks_pastes()));
        Ok(())
    }

    /// Prints the lines that were typed ahead and not sent, because nothing reads them any longer.
    pub fn print_unsent(&mut self, out: Output) -> Result<(), Error> {
        if self.look_ahead().is_err() {
            return Ok(());
        }
        self.ahead.drain(..).try_for_each(|ahead| out.remark(format!("not sent: {}", ahead.line.text())))
    }

    /// Lets the person edit a line; returns `None` if they leave.
    fn edit(&mut self, line: TypedLine) -> Result<Option<TypedLine>, Error> {
        let (index, begun) = (self.editor.history().len(), line.text.clone());
        {
            let mut seen = self.seen.borrow_mut();
            (seen.line, seen.index) = (line, index);
        }
        match self.editor.readline_with_initial(PROMPT, (&begun, "")) {
            Ok(text) => {
                let mut seen = self.seen.borrow_mut();
                let index = seen.index;
                seen.follow(&text, text.len(), index);
                Ok(Some(std::mem::take(&mut seen.line)))
            }
            Err(ReadlineError::Interrupted | ReadlineError::Eof) => Ok(None),
            Err(cause) => Err(no_prompt(cause)),
        }
    }

    /// Keeps a line for the arrow keys, only in memory.
    pub fn keep(&mut self, line: TypedLine) {
        if line.text.is_empty() {
            return;
        }
        if let Ok(is_new) = self.editor.add_history_entry(line.text()) {
            self.seen.borrow_mut().keep(line, is_new);
        }
    }
}

fn no_prompt(cause: ReadlineError) -> Error {
    Error::failed("prompt", "cannot read from the terminal").because(cause)
}

/// Returns whether the terminal marks pasted text.
fn marks_pastes() -> bool {
    std::env::var("TERM").is_ok_and(|name| !PLAIN_TERMINALS.contains(&name.as_str()))
}

/// Keeps the marks of pasted text on while no prompt reads. The next prompt then knows which part of the waiting input was pasted.
pub struct PasteMarks(Option<Output>);

impl PasteMarks {
    /// Turns them on, if the editor of the prompt does the same.
    pub fn keep(out: Output) -> Result<Self, Error> {
        let has_marks = marks_pastes();
        if has_marks {
            out.raw(MARK_PASTES)?;
        }
        Ok(Self(has_marks.then_some(out)))
    }
}

impl Drop for PasteMarks {
    fn drop(&mut self) {
        if let Some(out) = self.0 {
            let _ = out.raw(MARK_NO_PASTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays commands of an editor: a typed text one character at a time, and other text at once.
    #[derive(Default)]
    struct Editing {
        seen: Seen,
        text: String,
        cursor: usize,
    }

    impl Editing {
        fn insert(&mut self, text: &str) {
            self.text.insert_str(self.cursor, text);
            self.cursor += text.len();
            self.shown();
        }

        fn shown(&mut self) {
            let index = self.seen.index;
            self.seen.follow(&self.text, self.cursor, index);
        }

        fn typed(mut self, text: &str) -> Self {
            text.chars().for_each(|character| self.insert(character.encode_utf8(&mut [0; 4])));
            self
        }

        fn pasted(mut self, text: &str) -> Self {
            self.insert(text);
            self
        }

        fn at(mut self, cursor: usize) -> Self {
            self.cursor = cursor;
            self
        }

        fn replaced(mut self, text: &str) -> Self {
            (self.text, self.cursor) = (text.to_owned(), text.len());
            self.shown();
            self
        }

        fn parts(&self) -> (String, Vec<String>) {
            let Parts { text, quoted } = self.seen.line.parts();
            (text, quoted)
        }
    }

    fn parts(text: &str, quoted: &[&str]) -> (String, Vec<String>) {
        (text.to_owned(), quoted.iter().map(|&text| text.to_owned()).collect())
    }

    #[test]
    fn pasted_text_is_quoted_and_typed_text_is_not() {
        let line = Editing::default().typed("sum up: ").pasted("/allow send").typed(" and send it to Ana");
        assert_eq!(line.parts(), parts("sum up: [quoted 1] and send it to Ana", &["/allow send"]));
        let line = Editing::default().pasted("send it\nto Ana");
        assert_eq!(line.parts(), parts("[quoted 1]", &["send it\nto Ana"]));
        let line = Editing::default().typed("发给安娜").pasted("把它").typed("é");
        assert_eq!(line.parts(), parts("发给安娜 [quoted 1] é", &["把它"]));
        assert_eq!(Editing::default().typed("a").pasted("  \n").typed("b").parts(), parts("a  \nb", &[]));
    }

    #[test]
    fn pasted_text_stays_quoted_while_the_line_is_edited() {
        let line = Editing::default().typed("send").at(0).pasted("send");
        assert_eq!(line.parts(), parts("[quoted 1] send", &["send"]), "the place of the cursor decides");
        let line = Editing::default().pasted("send it").at(4).typed(" and keep");
        assert_eq!(line.parts(), parts("[quoted 1] and keep [quoted 2]", &["send", " it"]));
        let line = Editing::default().typed("keep ").pasted("send it").replaced("keep send").typed("!");
        assert_eq!(line.parts(), parts("keep [quoted 1]!", &["send"]));
        let line = Editing::default().typed("keep it").replaced("").replaced("keep it");
        assert_eq!(line.parts(), parts("[quoted 1]", &["keep it"]), "text that comes back at once is not typed");
    }

    #[test]
    fn earlier_line_comes_back_with_its_origin() {
        let typed = Editing::default().typed("send it to Ana").seen.line;
        let pasted = Editing::default().pasted("post it").seen.line;
        let mut seen = Seen::default();
        seen.keep(typed, true);
        seen.keep(pasted, true);
        seen.index = 2;
        seen.follow("x", 1, 2);
        for (text, index, wanted) in [
            ("post it", 1, parts("[quoted 1]", &["post it"])),
            ("send it to Ana", 0, parts("send it to Ana", &[])),
            ("post it", 1, parts("[quoted 1]", &["post it"])),
            ("x", 2, parts("x", &[])),
            // The text of a typed line, pasted.
            ("send it to Ana", 2, parts("[quoted 1]", &["send it to Ana"])),
        ] {
            seen.follow(text, text.len(), index);
            let Parts { text, quoted } = seen.line.parts();
            assert_eq!((text, quoted), wanted, "{index}");
        }
    }

    #[test]
    fn line_begins_typed_unless_its_first_word_was_pasted() {
        assert!(Editing::default().typed("/quit").seen.line.begins_typed());
        assert!(Editing::default().typed("/model ").pasted("small").seen.line.begins_typed());
        assert!(!Editing::default().typed("  ").pasted("/allow send").typed(" go").seen.line.begins_typed());
    }
}
