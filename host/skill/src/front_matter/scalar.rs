//! One pair of a front matter, and the texts that a value may be.

pub(crate) const KEY_CHARACTERS_MAX: usize = 64;

/// Splits a line with this many spaces at its beginning into key and value.
pub(super) fn pair(line: &str, indent: usize) -> Result<(&str, &str), String> {
    if line.contains('\t') {
        return Err("a tab; use spaces".to_owned());
    }
    let text = line.trim_start_matches(' ');
    let own = line.len() - text.len();
    if own != indent {
        return Err(match text.starts_with("- ") {
            true => "a list".to_owned(),
            false if indent == 0 => {
                "a text over several lines, or a nested field: quote the text on one line, or use >".to_owned()
            }
            false => "a second level of nested fields, or another indentation".to_owned(),
        });
    }
    let text = text.trim_end();
    if text == "..." || text.starts_with("--- ") || text.starts_with('%') {
        return Err("a directive or a second document".to_owned());
    }
    if text.starts_with("- ") || text == "-" {
        return Err("a list".to_owned());
    }
    if text.starts_with("? ") {
        return Err("a complex key".to_owned());
    }
    let (key, value) = text.split_once(':').ok_or("no colon after the name of the field")?;
    if key == "<<" {
        return Err("a merge key".to_owned());
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !(1..=KEY_CHARACTERS_MAX).contains(&key.len()) || !key.chars().all(is_plain) {
        return Err("the name of a field has 1 to 64 letters, digits, -, _ and .".to_owned());
    }
    match value.is_empty() || value.starts_with(' ') {
        true => Ok((key, value.trim())),
        false => Err("no space after the colon".to_owned()),
    }
}

/// Reads a value. `below` are the lines after it. Returns the text and the number of those lines that belong to it.
pub(super) fn read(value: &str, below: &[&str]) -> Result<(String, usize), String> {
    match value.chars().next() {
        Some('"') => Ok((double_quoted(value)?, 0)),
        Some('\'') => Ok((single_quoted(value)?, 0)),
        Some(style @ ('>' | '|')) => block(style, &value[1..], below),
        _ => Ok((plain(value)?.to_owned(), 0)),
    }
}

fn plain(value: &str) -> Result<&str, String> {
    let feature = match value.chars().next() {
        Some('&') => "an anchor",
        Some('*') => "an alias",
        Some('!') => "a tag",
        Some('[' | ']') => "a list in brackets",
        Some('{' | '}') => "a map in braces",
        Some('%' | '@' | '`') => "a reserved character at the beginning",
        Some('#') => "a comment as value",
        Some(',') => "a comma at the beginning",
        Some('-' | '?' | ':') if value.len() == 1 || value.as_bytes()[1] == b' ' => "a list or a complex key",
        _ if value.contains(": ") || value.ends_with(':') => "a colon in a text without quotes",
        _ if value.contains(" #") => "a comment after a value",
        _ => return Ok(value),
    };
    Err(format!("{feature}; quote the text"))
}

/// Returns a value as a plain text, or between double quotes if it is none.
#[cfg(feature = "author")]
pub(super) fn written(value: &str) -> String {
    let is_plain = !value.is_empty() && value.trim() == value && !value.starts_with(['"', '\'', '>', '|']);
    if is_plain && !value.contains(['\n', '\t', '\r']) && plain(value).is_ok() {
        return value.to_owned();
    }
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\t', " ").replace('\r', "");
    format!("\"{}\"", escaped.replace('\n', "\\n"))
}

fn single_quoted(value: &str) -> Result<String, String> {
    let inner = value[1..].strip_suffix('\'').ok_or("a quoted text that does not end on its line")?;
    let text = inner.replace("''", "\u{0}");
    match text.contains('\'') || inner.contains('\u{0}') {
        true => Err("a text after the closing quote".to_owned()),
        false => Ok(text.replace('\u{0}', "'")),
    }
}

fn double_quoted(value: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut characters = value[1..].chars();
    while let Some(character) = characters.next() {
        match character {
            '"' if characters.as_str().is_empty() => return Ok(text),
            '"' => return Err("a text after the closing quote".to_owned()),
            '\\' => text.push(match characters.next() {
                Some(escaped @ ('"' | '\\' | '/')) => escaped,
                Some('n') => '\n',
                Some('t') => ' ',
                _ => return Err("an escape other than \\\", \\\\, \\/, \\n and \\t".to_owned()),
            }),
            other => text.push(other),
        }
    }
    Err("a quoted text that does not end on its line".to_owned())
}

fn block(style: char, header: &str, below: &[&str]) -> Result<(String, usize), String> {
    if !matches!(header, "" | "-" | "+") {
        return Err("a block with an indentation of its own, or a text behind > or |".to_owned());
    }
    let mut lines: Vec<&str> = Vec::new();
    let mut indent = 0;
    let mut used = 0;
    for line in below {
        let own = line.len() - line.trim_start_matches(' ').len();
        if line.trim().is_empty() {
            lines.push("");
        } else if own == 0 {
            break;
        } else {
            indent = if indent == 0 { own } else { indent };
            if own < indent || style == '>' && own > indent {
                return Err("a block with lines of different indentation".to_owned());
            }
            if line.contains('\t') {
                return Err("a tab; use spaces".to_owned());
            }
            lines.push(line[indent..].trim_end());
        }
        used += 1;
    }
    let lines: Vec<&str> = lines.into_iter().rev().skip_while(|line| line.is_empty()).collect();
    let mut text = String::new();
    for line in lines.into_iter().rev() {
        let separator = if style == '|' || line.is_empty() { "\n" } else { " " };
        if !text.is_empty() {
            text.push_str(if text.ends_with('\n') && style == '>' && !line.is_empty() { "" } else { separator });
        }
        text.push_str(line);
    }
    Ok((text, used))
}
