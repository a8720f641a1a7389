//! Texts: blocks, quoted and plain ones, over one or several lines.

use super::{Line, Reader, is_item, key};

/// Lines of one quoted text or list in brackets.
pub(super) const LINES_MAX: usize = 200;

/// The indicators behind `|` and `>`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Header {
    /// Columns of indentation, if they are written.
    indent: Option<usize>,
}

impl Header {
    /// Reads the indicators; `None` if a text follows.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (words, comment) = text.split_once([' ', '\t']).unwrap_or((text, ""));
        let mut header = Self::default();
        for character in words.chars() {
            match character {
                '+' | '-' => {}
                '1'..='9' => header.indent = character.to_digit(10).map(|columns| columns as usize),
                _ => return None,
            }
        }
        let comment = comment.trim();
        (comment.is_empty() || comment.starts_with('#')).then_some(header)
    }
}

impl<'a> Reader<'a> {
    /// Reads the lines of a block below a line. A text has no line feed at its end, whatever the indicator.
    pub(super) fn block(&mut self, style: char, header: Header, above: Line<'a>) -> String {
        let mut lines: Vec<&str> = Vec::new();
        let mut indent = header.indent.map(|columns| above.indent + columns);
        while let Some(line) = self.lines.get(self.at).copied() {
            if line.text.is_empty() {
                lines.push("");
            } else if line.indent <= above.indent {
                break;
            } else {
                let indent = *indent.get_or_insert(line.indent);
                lines.push(without_indent(line.raw, indent).trim_end());
            }
            self.at += 1;
        }
        let used = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        lines.truncate(used);
        if style == '|' { lines.join("\n") } else { folded(&lines) }
    }

    /// Reads a quoted text; `None`, without a step, if it is none: it does not end, or a text follows.
    pub(super) fn quoted(&mut self, rest: &'a str, quote: char, above: Line<'a>) -> Option<String> {
        let mut text = rest[1..].to_owned();
        let mut used = 0;
        loop {
            if let Some(end) = end_of_quoted(&text, quote) {
                let after = text[end + 1..].trim();
                if !(after.is_empty() || after.starts_with('#')) {
                    return None;
                }
                self.at += used;
                if !after.is_empty() {
                    self.note(above.number, COMMENT);
                }
                return Some(unquoted(&text[..end], quote));
            }
            let next = self.lines.get(self.at + used)?;
            if used >= LINES_MAX || next.indent <= above.indent && key(next.text).is_some() {
                return None;
            }
            text.push('\n');
            text.push_str(next.text);
            used += 1;
        }
    }

    /// Reads a plain text, with the lines that continue it.
    pub(super) fn plain(&mut self, rest: &str, above: Line<'a>) -> String {
        let first = self.without_comment(rest, above.number);
        let mut text = first.trim_end().to_owned();
        loop {
            let blanks =
                self.lines[self.at.min(self.lines.len())..].iter().take_while(|line| line.text.is_empty()).count();
            let Some(line) = self.lines.get(self.at + blanks).copied() else { return text };
            // Some people break a line and do not indent the next one.
            let is_loose = blanks == 0 && line.indent == above.indent && key(line.text).is_none();
            let is_loose = is_loose && !is_item(line.text) && !line.text.starts_with('#') && line.text != "...";
            if line.indent <= above.indent && !is_loose {
                return text;
            }
            self.at += blanks + 1;
            if line.text.starts_with('#') {
                continue;
            }
            if is_loose {
                self.note(line.number, "it has no indentation, and is read as the rest of the text above");
            }
            text.push_str(if blanks == 0 { " " } else { "\n" });
            text.push_str(self.without_comment(line.text, line.number).trim_end());
        }
    }

    fn without_comment<'t>(&mut self, text: &'t str, line: usize) -> &'t str {
        match text.find(" #").or_else(|| text.find("\t#")) {
            Some(at) => {
                self.note(line, COMMENT);
                &text[..at]
            }
            None => text,
        }
    }
}

const COMMENT: &str = "a comment behind a value is left out";

fn without_indent(raw: &str, indent: usize) -> &str {
    let mut columns = 0;
    for (at, character) in raw.char_indices() {
        if columns >= indent || !matches!(character, ' ' | '\t') {
            return &raw[at..];
        }
        columns += if character == '\t' { super::TAB_COLUMNS } else { 1 };
    }
    ""
}

/// Joins the lines of a folded text: one break is a space, and lines that are indented more stay apart.
fn folded(lines: &[&str]) -> String {
    let mut text = String::new();
    let mut blanks = 0;
    let mut was_deeper = false;
    for (at, line) in lines.iter().enumerate() {
        if line.is_empty() {
            blanks += 1;
            continue;
        }
        let is_deeper = line.starts_with([' ', '\t']);
        if at > 0 {
            match (blanks, is_deeper || was_deeper) {
                (0, false) => text.push(' '),
                (blanks, false) => text.extend(std::iter::repeat_n('\n', blanks)),
                (blanks, true) => text.extend(std::iter::repeat_n('\n', blanks + 1)),
            }
        }
        text.push_str(line);
        (blanks, was_deeper) = (0, is_deeper);
    }
    text
}

/// Returns the place of the quote that ends a text.
pub(super) fn end_of_quoted(text: &str, quote: char) -> Option<usize> {
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if character == '\\' && quote == '"' {
            characters.next();
        } else if character == quote {
            match quote == '\'' && characters.peek().is_some_and(|(_, next)| *next == '\'') {
                true => drop(characters.next()),
                false => return Some(at),
            }
        }
    }
    None
}

/// Returns the text between quotes.
pub(super) fn unquoted(inner: &str, quote: char) -> String {
    let lines: Vec<&str> = inner.split('\n').collect();
    let mut joined = String::new();
    let mut blanks = 0;
    for (at, line) in lines.iter().enumerate() {
        let is_last = at + 1 == lines.len();
        let line = if at == 0 { line } else { line.trim_start() };
        let line = if is_last { line } else { line.trim_end() };
        if line.is_empty() && at > 0 && !is_last {
            blanks += 1;
            continue;
        }
        if at > 0 && !(quote == '"' && joined.ends_with('\\') && joined.pop().is_some()) {
            match blanks {
                0 => joined.push(' '),
                _ => joined.extend(std::iter::repeat_n('\n', blanks)),
            }
        }
        blanks = 0;
        joined.push_str(line);
    }
    if quote == '\'' { joined.replace("''", "'") } else { unescaped(&joined) }
}

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    // Halves of a character, as JSON writes it.
    let mut units: Vec<u16> = Vec::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            flush(&mut out, &mut units);
            out.push(character);
            continue;
        }
        let kind = characters.next();
        let digits = match kind {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => 0,
        };
        if digits > 0 {
            let hex: String = characters.clone().take(digits).collect();
            if let Ok(code) = u32::from_str_radix(&hex, 16) {
                characters.by_ref().take(digits).for_each(drop);
                match u16::try_from(code) {
                    Ok(unit) => units.push(unit),
                    Err(_) => {
                        flush(&mut out, &mut units);
                        out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                }
                continue;
            }
        }
        flush(&mut out, &mut units);
        match kind {
            Some('n' | 'N' | 'L' | 'P') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('_') => out.push(' '),
            Some('0' | 'a' | 'b' | 'e' | 'f' | 'v' | 'r') => {}
            // A path of Windows, for example.
            Some(other) if other.is_alphanumeric() => out.extend(['\\', other]),
            Some(other) => out.push(other),
            None => out.push('\\'),
        }
    }
    flush(&mut out, &mut units);
    out
}

fn flush(out: &mut String, units: &mut Vec<u16>) {
    out.push_str(&String::from_utf16_lossy(units));
    units.clear();
}
