//! A lenient reader of the front matter that people write.
//!
//! Reads all of YAML but anchors, aliases, merge keys and complex keys, and what people write in place of YAML: colons in plain text,
//! open quotes, lines without indentation. Its result never reaches an installer: [`super::matter`] writes it anew in the strict form.

mod flow;
mod scalar;

/// Levels of lists and maps in each other.
const DEPTH_MAX: usize = 16;
/// Characters of the name of a field.
const KEY_CHARACTERS_MAX: usize = 64;
/// Columns of a tab.
const TAB_COLUMNS: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Empty,
    Text(String),
    List(Vec<Value>),
    Map(Vec<Field>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) key: String,
    pub(super) value: Value,
    /// The line, from 1 for the first one of the front matter.
    pub(super) line: usize,
}

/// A line that is refused, or read in another way than it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Odd {
    pub(super) line: usize,
    pub(super) what: String,
}

impl Odd {
    fn new(line: usize, what: &str) -> Self {
        Self { line, what: what.to_owned() }
    }
}

/// The fields of a front matter, with the lines that were read in another way than they are written.
#[derive(Debug)]
pub(super) struct Fields {
    pub(super) fields: Vec<Field>,
    pub(super) odd: Vec<Odd>,
}

/// Reads the lines between the fences.
///
/// # Errors
/// Refuses anchors, aliases, merge keys and complex keys, each by its name.
pub(super) fn read(yaml: &str) -> Result<Fields, Odd> {
    let lines = yaml.lines().enumerate().map(|(at, raw)| Line::new(at + 1, raw)).collect();
    let mut reader = Reader { lines, at: 0, depth: 0, odd: Vec::new() };
    let fields = reader.map(0)?;
    Ok(Fields { fields, odd: reader.odd })
}

#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    number: usize,
    indent: usize,
    /// Without indentation and blanks at the end.
    text: &'a str,
    raw: &'a str,
}

impl<'a> Line<'a> {
    fn new(number: usize, raw: &'a str) -> Self {
        let text = raw.trim_start_matches([' ', '\t']);
        let blank = &raw[..raw.len() - text.len()];
        let indent = blank.chars().map(|c| if c == '\t' { TAB_COLUMNS } else { 1 }).sum();
        Self { number, indent, text: text.trim_end(), raw }
    }

    fn is_skipped(&self) -> bool {
        self.text.is_empty() || self.text.starts_with('#')
    }
}

struct Reader<'a> {
    lines: Vec<Line<'a>>,
    at: usize,
    depth: usize,
    odd: Vec<Odd>,
}

impl<'a> Reader<'a> {
    /// Returns the next line that is neither blank nor a comment.
    fn peek(&mut self) -> Option<Line<'a>> {
        while self.lines.get(self.at).is_some_and(Line::is_skipped) {
            self.at += 1;
        }
        self.lines.get(self.at).copied()
    }

    fn note(&mut self, line: usize, what: &str) {
        self.odd.push(Odd::new(line, what));
    }

    fn deeper<T>(&mut self, line: usize, read: impl FnOnce(&mut Self) -> Result<T, Odd>) -> Result<T, Odd> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Odd::new(line, "lists and maps in too many levels"));
        }
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// Reads the fields with this indentation or more.
    fn map(&mut self, indent: usize) -> Result<Vec<Field>, Odd> {
        let mut fields: Vec<Field> = Vec::new();
        while let Some(line) = self.peek() {
            if line.indent < indent || line.text == "..." {
                break;
            }
            if line.text.starts_with("? ") {
                return Err(Odd::new(line.number, "a complex key; write KEY: VALUE"));
            }
            let Some(found) = key(line.text) else {
                self.at += 1;
                if !(line.text.starts_with('%') || line.text.starts_with("---")) {
                    self.note(line.number, "left out: it is no field");
                }
                continue;
            };
            if found.key == "<<" {
                return Err(Odd::new(line.number, "a merge key; write the fields out"));
            }
            self.at += 1;
            let value = self.value(found.rest, line)?;
            if let Some(same) = fields.iter().position(|field| field.key == found.key) {
                fields.remove(same);
                self.note(line.number, &format!("{} is there twice; the last one counts", found.key));
            }
            fields.push(Field { key: found.key, value, line: line.number });
        }
        Ok(fields)
    }

    /// Reads the value that begins with the rest of a line.
    fn value(&mut self, rest: &'a str, line: Line<'a>) -> Result<Value, Odd> {
        let rest = rest.trim();
        let mut characters = rest.chars();
        let (first, second) = (characters.next(), characters.next());
        match first {
            None | Some('#') => self.below(line),
            Some(style @ ('|' | '>')) => match scalar::Header::parse(&rest[1..]) {
                Some(header) => Ok(Value::Text(self.block(style, header, line))),
                None => Ok(Value::Text(self.plain(rest, line))),
            },
            Some(quote @ ('"' | '\'')) => Ok(Value::Text(match self.quoted(rest, quote, line) {
                Some(text) => text,
                None => self.plain(rest, line),
            })),
            Some('[' | '{') => self.flow(rest, line),
            Some('&') if second.is_some_and(is_of_name) => {
                Err(Odd::new(line.number, "an anchor; write the value where it is needed"))
            }
            Some('*') if rest.len() > 1 && rest[1..].chars().all(is_of_name) => {
                Err(Odd::new(line.number, "an alias; write the value out"))
            }
            Some('!') if is_tag(rest) => {
                self.note(line.number, "a tag is left out");
                let after = rest.split_once([' ', '\t']).map_or("", |(_, after)| after);
                self.value(after, line)
            }
            Some('~') if rest == "~" => Ok(Value::Empty),
            _ if rest == "null" => Ok(Value::Empty),
            _ => Ok(Value::Text(self.plain(rest, line))),
        }
    }

    /// Reads the value below a line: a map, a list or a text.
    fn below(&mut self, above: Line<'a>) -> Result<Value, Odd> {
        let Some(line) = self.peek() else { return Ok(Value::Empty) };
        if is_item(line.text) && line.indent >= above.indent {
            return self.deeper(line.number, |reader| reader.list(line.indent)).map(Value::List);
        }
        if line.indent <= above.indent || line.text == "..." {
            return Ok(Value::Empty);
        }
        if key(line.text).is_some() {
            return self.deeper(line.number, |reader| reader.map(line.indent)).map(Value::Map);
        }
        self.at += 1;
        self.deeper(line.number, |reader| reader.value(line.text, Line { indent: above.indent, ..line }))
    }

    fn list(&mut self, indent: usize) -> Result<Vec<Value>, Odd> {
        let mut items = Vec::new();
        while let Some(line) = self.peek().filter(|line| line.indent == indent && is_item(line.text)) {
            let rest = line.text[1..].trim_start();
            let own = line.indent + (line.text.len() - rest.len());
            let is_map = key(rest).is_some() && !rest.starts_with(['"', '\'']);
            if is_map || is_item(rest) {
                self.lines[self.at] = Line { indent: own, text: rest, ..line };
                items.push(self.deeper(line.number, |reader| match is_map {
                    true => reader.map(own).map(Value::Map),
                    false => reader.list(own).map(Value::List),
                })?);
            } else {
                self.at += 1;
                items.push(self.deeper(line.number, |reader| reader.value(rest, line))?);
            }
        }
        Ok(items)
    }
}

struct Key<'a> {
    key: String,
    rest: &'a str,
}

/// Splits a line into the name of a field and the rest; `None` if it is no field.
fn key(text: &str) -> Option<Key<'_>> {
    if let Some(quote @ ('"' | '\'')) = text.chars().next() {
        let (key, rest) = text[1..].split_once(quote)?;
        let rest = rest.trim_start().strip_prefix(':')?;
        let is_key = (rest.is_empty() || rest.starts_with([' ', '\t'])) && !key.is_empty();
        return (is_key && key.len() <= KEY_CHARACTERS_MAX).then(|| Key { key: key.to_owned(), rest });
    }
    let (key, rest) = text.split_once(':')?;
    let key = key.trim_end();
    let is_known = ["name", "description", "version", "license"].contains(&key.to_ascii_lowercase().as_str());
    let is_split = rest.is_empty() || rest.starts_with([' ', '\t']) || is_known && !rest.starts_with("//");
    let is_key = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '$' | '@' | '+' | '<');
    let is_named = (1..=KEY_CHARACTERS_MAX).contains(&key.len()) && key.chars().all(is_key) && key != "-";
    (is_split && is_named).then(|| Key { key: key.to_owned(), rest })
}

fn is_item(text: &str) -> bool {
    text == "-" || text.starts_with("- ") || text.starts_with("-\t")
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_')
}

/// Returns whether a text begins with a tag, such as `!!str`.
fn is_tag(text: &str) -> bool {
    let word = text.split([' ', '\t']).next().unwrap_or_default();
    let name = word.trim_start_matches('!');
    name.chars().all(|c| is_of_name(c) || matches!(c, ':' | '<' | '>' | '.' | ',' | '/')) && !name.is_empty()
}

#[cfg(test)]
mod tests;
