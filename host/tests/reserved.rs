//! Test of the reserved words in `docs/contract.md`: the list has exactly the words of the seam that no code reads.
//!
//! A word is a column of a queue, a field of a struct, or a variant of an enum in `contract/src/seam`. The test reads the sources of
//! host and sandbox as text, without their tests, by these rules:
//!
//! * A use of `Type::Variant` reads the variant, also in the code that opens the queues. A glob import or a renaming import of the type
//!   reads all its variants.
//! * In the side that receives a field, `receiver.field` reads it, and so does its name in braces after `Type` or `Variant`. In the
//!   host only files that name the type count. The sandbox is small, so all its files count.
//! * A column is read like the field of its row, if the receiving side queries such rows. A column in a condition of the SELECT for
//!   the rows is read too.
//!
//! Each access to a field of the same name counts, unless `OWNERS` gives the receiver another type. So the test finds every reader of a
//! reserved word in the files that these rules cover. It may miss that a word has no reader if another type has a field of that name.

use crate::layers::source::{HOST_CRATES, Source, read, sources, workspace};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The tables of the queues: name, type of a row, method that returns the rows, and receiving crate.
const TABLES: &[(&str, &str, &str, &str)] = &[
    ("messages_in", "MessageIn", "messages", "sandbox"),
    ("turns", "Turn", "open_turn", "sandbox"),
    ("messages_out", "RawRow", "look", "host"),
    ("processing_ack", "Progress", "look", "host"),
];

/// Columns whose field in the row has another name.
const FIELDS: &[(&str, &str)] = &[("processing_ack.message_id", "message"), ("processing_ack.status_changed", "at")];

/// Types that the sandbox receives. The host receives all others.
const TO_SANDBOX: &[&str] = &["Welcome", "TurnLimits", "Response", "Item", "Call", "Verdict"];

/// Types that do not cross the seam: errors, and values that one side passes to the code of the seam.
const NO_WORDS: &[&str] = &["Error", "UnknownWord", "NewRow", "Note", "Tuple", "Found"];

/// Variables with a known type: crate, variable, type. An access through such a variable counts for this type only.
const OWNERS: &[(&str, &str, &str)] = &[
    ("sandbox", "reference", "Ref"),
    ("sandbox", "item", "Ref"),
    ("sandbox", "item", "Item"),
    ("sandbox", "entry", "an entry of a directory"),
];

/// Files that write a type although their side receives it otherwise.
const WRITERS: &[(&str, &str)] = &[("host/jail/src/self_test/life.rs", "Hello")];

#[test]
fn words_without_a_reader_match_the_reserved_list() {
    let words = words();
    let listed = listed(&read(&workspace().join("docs/contract.md")));
    let complaints = complaints(&words, &listed, &CODE);
    assert!(complaints.is_empty(), "\n  {}\n", complaints.join("\n  "));
}

#[test]
fn reader_of_each_reserved_word_is_found() {
    let (words, listed) = (words(), listed(&read(&workspace().join("docs/contract.md"))));
    let mut code = Code { sides: BTreeMap::new(), queries: CODE.queries.clone(), plain: CODE.plain.clone() };
    for word in words.iter().filter(|word| listed.iter().any(|(name, _)| *name == word.name())) {
        let Word { owner, name, .. } = word;
        let texts = match &word.kind {
            Kind::Variant { .. } => vec![
                format!("fn f(x: {owner}) {{ g(x == {owner}::{name}) }}"),
                format!("fn f(x: m::{owner}) {{ match x {{ m::{owner}::{name} => 1, _ => 2 }} }}"),
                format!("use m::{owner}::*;"),
                format!("use m::{{{owner} as Other}};"),
            ],
            Kind::Field { variant: Some(variant) } => vec![
                format!("fn f(x: {owner}) {{ if let {owner}::{variant} {{ {name}, .. }} = x {{ g({name}) }} }}"),
                format!(
                    "use m::{owner}::{variant}; fn f(x: m::{owner}) {{ match x {{ {variant} {{ {name}: y, .. }} => g(y) }} }}"
                ),
            ],
            Kind::Field { variant: None } => vec![
                format!("fn f(x: &{owner}) {{ g(x.{name}) }}"),
                format!("fn f(x: &m::{owner}) {{ let m::{owner} {{ {name}, .. }} = x; }}"),
            ],
            Kind::Column => {
                let (_, row, asked, _) = row_of(owner);
                let field = field_of(owner, name);
                vec![
                    format!("fn f(queue: &Q) {{ for row in queue.{asked}(1) {{ let _: {row}; g(row.{field}) }} }}"),
                    format!("fn f(queue: &Q) {{ let {row} {{ {field}, .. }} = queue.{asked}(1); }}"),
                ]
            }
        };
        for text in texts {
            let side = match word.kind {
                Kind::Column => row_of(owner).3,
                _ => side_of(owner),
            };
            let file = format!("{side}/src/added.rs");
            code.sides = BTreeMap::from(["host", "sandbox"].map(|side| (side, Vec::new())));
            code.sides.insert(side, vec![Source::of(&file, &text)]);
            assert_eq!(code.reader(word), Some(file), "{}: {text}", word.name());
        }
    }
}

#[test]
fn reserved_list_that_differs_from_the_code_is_refused() {
    let mut listed = listed(&read(&workspace().join("docs/contract.md")));
    let (gone, _) = listed.remove(0);
    let twice = listed[0].clone();
    listed.extend([
        twice,
        ("turns.deadline".to_owned(), "column".to_owned()),
        ("turns.x".to_owned(), "column".to_owned()),
    ]);
    let complaints = complaints(&words(), &listed, &CODE).join("\n");
    for complaint in [
        format!("nothing reads the field `{gone}`"),
        format!("`{}` twice", listed[0].0),
        "reserves the column `turns.x`, which does not exist".to_owned(),
        "reserves the column `turns.deadline`, and sandbox/src/".to_owned(),
    ] {
        assert!(complaints.contains(&complaint), "{complaint}: {complaints}");
    }
}

/// Returns a complaint for each difference between the list in the document and the code.
fn complaints(words: &[Word], listed: &[(String, String)], code: &Code) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, kind) in listed {
        if !words.iter().any(|word| word.name() == *name && word.kind.name() == kind) {
            complaints
                .push(format!("docs/contract.md reserves the {kind} `{name}`, which does not exist: delete the row"));
        }
        if listed.iter().filter(|(other, _)| other == name).count() > 1 {
            complaints.push(format!("docs/contract.md reserves `{name}` twice"));
        }
    }
    for word in words {
        let (name, kind) = (word.name(), word.kind.name());
        match (listed.iter().any(|(other, _)| *other == name), code.reader(word)) {
            (true, Some(place)) => complaints.push(format!(
                "docs/contract.md reserves the {kind} `{name}`, and {place} reads it: delete the row, and name the reader where the \
                 document describes the word"
            )),
            (false, None) => complaints.push(format!(
                "nothing reads the {kind} `{name}`: reserve it in docs/contract.md with its purpose, or remove it"
            )),
            _ => {}
        }
    }
    complaints
}

enum Kind {
    /// A column of a table.
    Column,
    Variant {
        is_tuple: bool,
    },
    /// A field of a struct, or of this variant.
    Field {
        variant: Option<String>,
    },
}

impl Kind {
    const fn name(&self) -> &'static str {
        match self {
            Self::Column => "column",
            Self::Variant { .. } => "variant",
            Self::Field { .. } => "field",
        }
    }
}

struct Word {
    kind: Kind,
    /// The table or the type.
    owner: String,
    name: String,
}

impl Word {
    /// Returns the notation of the word in the document.
    fn name(&self) -> String {
        match &self.kind {
            Kind::Column | Kind::Field { variant: None } => format!("{}.{}", self.owner, self.name),
            Kind::Variant { .. } => format!("{}::{}", self.owner, self.name),
            Kind::Field { variant: Some(variant) } => format!("{}::{variant}.{}", self.owner, self.name),
        }
    }
}

/// Returns all words of the seam. rustfmt formats the sources, so a line and its indentation identify a declaration.
fn words() -> Vec<Word> {
    let mut words = columns();
    let is_row = |name: &str| TABLES.iter().any(|(_, row, ..)| *row == name);
    for (file, text) in sources("contract").into_iter().filter(|(file, _)| file.starts_with("contract/src/seam/")) {
        let text = text.split("#[cfg(test)]").next().expect("split gives at least one part");
        let (mut owner, mut variant) = (None, None);
        for line in text.lines() {
            let code = line.trim_start();
            let name: String =
                code.trim_start_matches("pub ").chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let rest = code.trim_start_matches("pub ").strip_prefix(name.as_str()).unwrap_or_default();
            let declared = ["pub struct ", "pub enum ", ""].iter().find_map(|start| line.strip_prefix(start));
            match (line.len() - code.len(), &owner) {
                (0, _) if line.ends_with(" {") => {
                    let declared = declared.unwrap_or_default().trim_end_matches(" {");
                    let declared = declared.split('<').next().unwrap_or_default();
                    let is_type = declared.starts_with(char::is_uppercase)
                        && !declared.contains(' ')
                        && !NO_WORDS.contains(&declared)
                        && !is_row(declared);
                    owner = is_type.then(|| declared.to_owned());
                }
                (0, _) if line.starts_with('}') => owner = None,
                (4, Some(owner)) if name.starts_with(char::is_uppercase) => {
                    assert!(rest.starts_with([',', '(', ' ']), "{file}: cannot read `{line}`");
                    variant = Some(name.clone());
                    let kind = Kind::Variant { is_tuple: rest.starts_with('(') };
                    words.push(Word { kind, owner: owner.clone(), name });
                }
                (4, Some(owner)) if code.starts_with("pub ") => {
                    words.push(Word { kind: Kind::Field { variant: None }, owner: owner.clone(), name });
                }
                (8, Some(owner)) if rest.starts_with(": ") => {
                    let kind = Kind::Field { variant: variant.clone() };
                    words.push(Word { kind, owner: owner.clone(), name });
                }
                _ => {}
            }
        }
    }
    words
}

fn columns() -> Vec<Word> {
    let schema = [ironclaw_contract::seam::schema::INBOUND, ironclaw_contract::seam::schema::OUTBOUND].concat();
    let mut words = Vec::new();
    for table in schema.split("CREATE TABLE ").skip(1) {
        let (owner, columns) = table.split_once(" (\n").expect("a table has columns");
        let (columns, _) = columns.split_once("\n)").expect("a table ends");
        row_of(owner);
        words.extend(columns.lines().map(|line| {
            let name = line.split_whitespace().next().expect("a column has a name").to_owned();
            Word { kind: Kind::Column, owner: owner.to_owned(), name }
        }));
    }
    words
}

fn row_of(table: &str) -> (&'static str, &'static str, &'static str, &'static str) {
    *TABLES.iter().find(|(name, ..)| *name == table).unwrap_or_else(|| panic!("TABLES has no {table}"))
}

/// Returns the field of the row for a column.
fn field_of<'a>(table: &str, column: &'a str) -> &'a str {
    let name = format!("{table}.{column}");
    FIELDS.iter().find(|(other, _)| *other == name).map_or(column, |(_, field)| field)
}

/// Returns the crate that receives a type.
fn side_of(owner: &str) -> &'static str {
    if TO_SANDBOX.contains(&owner) { "sandbox" } else { "host" }
}

/// Returns word and kind of each row of the table in the document.
fn listed(document: &str) -> Vec<(String, String)> {
    let (_, section) = document.split_once("\n## Reserved words\n").expect("docs/contract.md has the section");
    let section = section.split("\n#").next().expect("split gives at least one part");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() == 3 && !cells[2].is_empty(), "a row has word, kind and purpose: {row}");
        (cells[0].trim_matches('`').to_owned(), cells[1].to_owned())
    })
    .collect()
}

/// The sources of this repository, parsed once.
static CODE: LazyLock<Code> = LazyLock::new(Code::read);

/// The sources that may read a word, and the queries of the seam.
struct Code {
    /// The sources of host and sandbox, and the code that opens the queues.
    sides: BTreeMap<&'static str, Vec<Source>>,
    queries: String,
    /// The variants that do not contain a type of the same name.
    plain: Vec<(String, String)>,
}

impl Code {
    fn read() -> Self {
        let parsed =
            |side| -> Vec<Source> { sources(side).iter().map(|(file, text)| Source::of(file, text)).collect() };
        let mut sides = BTreeMap::from([
            ("host", HOST_CRATES.into_iter().flat_map(parsed).collect()),
            ("sandbox", parsed("sandbox")),
        ]);
        let openers = |source: &Source| {
            ["contract/src/seam/inbound.rs", "contract/src/seam/outbound.rs"].contains(&source.file.as_str())
        };
        sides.insert("openers", parsed("contract").into_iter().filter(openers).collect());
        let seam = |name: &str| read(&workspace().join(format!("contract/src/seam/{name}.rs")));
        let plain = words().into_iter().filter(|word| matches!(word.kind, Kind::Variant { is_tuple: false }));
        Self {
            sides,
            queries: seam("inbound") + &seam("outbound"),
            plain: plain.map(|word| (word.owner, word.name)).collect(),
        }
    }

    /// Returns a file that reads the word.
    fn reader(&self, word: &Word) -> Option<String> {
        let all = || self.sides.values().flatten();
        match &word.kind {
            Kind::Variant { .. } => {
                all().find(|source| names_variant(source, &word.owner, &word.name)).map(|source| source.file.clone())
            }
            Kind::Field { variant } => {
                let side = side_of(&word.owner);
                let holds = variant.as_deref().unwrap_or(&word.owner);
                self.reads_field(side, &word.owner, holds, &word.name, variant.is_none())
            }
            Kind::Column => self.reads_column(&word.owner, &word.name),
        }
    }

    fn reads_column(&self, table: &str, column: &str) -> Option<String> {
        let (_, row, asked, side) = row_of(table);
        let asks = |source: &&Source| {
            source.tokens.windows(3).any(|three| three[0] == "." && three[1] == asked && three[2] == "(")
        };
        let asking = self.sides[side].iter().find(asks)?;
        let conditions = self.queries.lines().filter_map(|line| line.split_once(&format!("FROM {table} ")));
        if conditions.into_iter().any(|(_, condition)| has_word(condition, column)) {
            return Some(asking.file.clone());
        }
        self.reads_field(side, row, row, field_of(table, column), true)
    }

    /// Returns a file of the side that names the field in braces after `holds`, or after a dot if `has_dot`.
    fn reads_field(&self, side: &str, owner: &str, holds: &str, field: &str, has_dot: bool) -> Option<String> {
        let reads = |source: &&Source| {
            let is_writer = WRITERS.contains(&(source.file.as_str(), owner));
            let counts = side == "sandbox" || self.names_type(source, owner);
            let behind_dot = || has_dot && counts && accesses(&source.tokens, side, owner, field);
            !is_writer && (names_in_braces(&source.tokens, holds, field) || behind_dot())
        };
        self.sides[side].iter().find(reads).map(|source| source.file.clone())
    }

    /// Returns whether a file names the type itself, and not a variant of the same name.
    fn names_type(&self, source: &Source, owner: &str) -> bool {
        let tokens = &source.tokens;
        (0..tokens.len()).filter(|at| tokens[*at] == owner).any(|at| {
            let is_variant = at > 1
                && tokens[at - 1] == "::"
                && self.plain.iter().any(|(of, name)| *of == tokens[at - 2] && name == owner);
            !is_variant
        })
    }
}

fn names_variant(source: &Source, owner: &str, variant: &str) -> bool {
    let follows = |pair: &[String]| pair[0] == owner && (pair[1] == variant || pair[1] == "*");
    let is_renamed = source.tokens.windows(2).any(|pair| pair[0] == owner && pair[1] == "as");
    is_renamed || source.paths.iter().any(|path| path.windows(2).any(follows))
}

/// Returns whether the tokens contain `receiver.field`, unless it is a method call or the receiver has another type.
fn accesses(tokens: &[String], side: &str, owner: &str, field: &str) -> bool {
    tokens.windows(4).any(|four| {
        let is_access = four[1] == "." && four[2] == field && four[3] != "(" && four[0] != ".";
        let mut known = OWNERS.iter().filter(|(of, receiver, _)| *of == side && four[0] == *receiver).peekable();
        is_access && (known.peek().is_none() || known.any(|(_, _, of)| *of == owner))
    })
}

/// Returns whether the tokens contain `Type { …, field, … }`, at any depth.
fn names_in_braces(tokens: &[String], holds: &str, field: &str) -> bool {
    let begins = |at: &usize| tokens[*at] == holds && tokens.get(at + 1).is_some_and(|next| next == "{");
    (0..tokens.len()).filter(begins).any(|at| {
        let is_declared = at > 0 && ["struct", "enum", "impl", "for"].contains(&tokens[at - 1].as_str());
        let mut depth = 0_usize;
        let inside = tokens[at + 1..].iter().take_while(|token| {
            depth = match token.as_str() {
                "{" => depth + 1,
                "}" => depth - 1,
                _ => depth,
            };
            depth > 0
        });
        !is_declared && inside.into_iter().any(|token| token == field)
    })
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word)
}
