//! Lists in brackets and maps in braces, over one or several lines.

use super::scalar::{LINES_MAX, end_of_quoted, unquoted};
use super::{DEPTH_MAX, Field, Line, Odd, Reader, Value, is_of_name, key};

impl<'a> Reader<'a> {
    /// Reads a list or a map in brackets. A text that only begins with a bracket is a plain text.
    pub(super) fn flow(&mut self, rest: &'a str, above: Line<'a>) -> Result<Value, Odd> {
        let mut text = rest.to_owned();
        for used in 0..LINES_MAX {
            let mut flow = Flow { rest: &text, line: above.number, depth: 0 };
            match flow.value() {
                Ok(value) => {
                    let after = flow.rest.trim();
                    if after.is_empty() || after.starts_with('#') {
                        self.at += used;
                        return Ok(value);
                    }
                    break;
                }
                Err(Stop::Refused(odd)) => return Err(odd),
                Err(Stop::Ended) => {}
            }
            let Some(next) = self.lines.get(self.at + used) else { break };
            if next.indent <= above.indent && key(next.text).is_some() {
                break;
            }
            text.push('\n');
            text.push_str(if next.text.starts_with('#') { "" } else { next.text });
        }
        Ok(Value::Text(self.plain(rest, above)))
    }
}

enum Stop {
    /// The text ends within brackets or quotes.
    Ended,
    Refused(Odd),
}

struct Flow<'t> {
    rest: &'t str,
    line: usize,
    depth: usize,
}

impl Flow<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn takes(&mut self, character: char) -> bool {
        self.skip();
        let rest = self.rest.strip_prefix(character);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Passes the comma between two entries.
    fn separates(&mut self, end: char) -> Result<(), Stop> {
        match self.takes(',') || self.rest.starts_with(end) {
            true => Ok(()),
            false => Err(Stop::Ended),
        }
    }

    fn value(&mut self) -> Result<Value, Stop> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Stop::Refused(Odd::new(self.line, "lists and maps in too many levels")));
        }
        let value = if self.takes('[') {
            self.list()
        } else if self.takes('{') {
            self.map()
        } else {
            self.text().map(Value::Text)
        };
        self.depth -= 1;
        value
    }

    fn list(&mut self) -> Result<Value, Stop> {
        let mut items = Vec::new();
        while !self.takes(']') {
            if self.rest.is_empty() {
                return Err(Stop::Ended);
            }
            let item = self.value()?;
            let item = match (item, self.takes(':')) {
                (Value::Text(key), true) => {
                    let value = self.value()?;
                    Value::Map(vec![Field { key, value, line: self.line }])
                }
                (item, _) => item,
            };
            items.push(item);
            self.separates(']')?;
        }
        Ok(Value::List(items))
    }

    fn map(&mut self) -> Result<Value, Stop> {
        let mut fields = Vec::new();
        while !self.takes('}') {
            if self.rest.is_empty() {
                return Err(Stop::Ended);
            }
            let key = self.text()?;
            let value = if self.takes(':') { self.value()? } else { Value::Empty };
            fields.push(Field { key, value, line: self.line });
            self.separates('}')?;
        }
        Ok(Value::Map(fields))
    }

    fn text(&mut self) -> Result<String, Stop> {
        self.skip();
        if let Some(quote @ ('"' | '\'')) = self.rest.chars().next() {
            let inner = &self.rest[1..];
            let end = end_of_quoted(inner, quote).ok_or(Stop::Ended)?;
            self.rest = &inner[end + 1..];
            return Ok(unquoted(&inner[..end], quote));
        }
        let mut end = self.rest.len();
        for (at, character) in self.rest.char_indices() {
            let is_colon =
                character == ':' && self.rest[at + 1..].chars().next().is_none_or(|c| c.is_whitespace() || c == ',');
            if matches!(character, ',' | ']' | '}') || is_colon {
                end = at;
                break;
            }
        }
        if end == self.rest.len() {
            return Err(Stop::Ended);
        }
        let text = self.rest[..end].split_whitespace().collect::<Vec<_>>().join(" ");
        let name = text.strip_prefix(['&', '*']).filter(|name| !name.is_empty());
        if name.is_some_and(|name| name.split(' ').next().is_some_and(|word| word.chars().all(is_of_name))) {
            return Err(Stop::Refused(Odd::new(self.line, "an anchor or an alias; write the value out")));
        }
        self.rest = &self.rest[end..];
        Ok(text)
    }
}
