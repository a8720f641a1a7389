//! The lines of a typed text that are not typed: fenced and indented ones, lines with `>`, and what follows the head of another message.
//!
//! Knows no quotation marks. See [`super::quotes`].

use std::ops::Range;

/// Columns of white space that make an indented block, as in Markdown.
const INDENT_COLUMNS: usize = 4;
/// Letters before the `>` of a quoting line that name its author, as in `JD> hello`.
const INITIALS_MAX: usize = 3;
/// Dashes that begin a line between messages.
const DASHES_MIN: usize = 5;

/// Beginnings of the line above a forwarded message, in lower case.
const FORWARDED: [&str; 18] = [
    "begin forwarded message",
    "forwarded message",
    "original message",
    "fwd:",
    "fw:",
    "wg:",
    "tr:",
    "rv:",
    "anfang der weitergeleiteten",
    "weitergeleitete nachricht",
    "ursprüngliche nachricht",
    "inicio del mensaje reenviado",
    "mensaje reenviado",
    "mensaje original",
    "debut du message",
    "début du message",
    "message transféré",
    "转发的邮件",
];
/// Names of the fields that a mail has and a request for one has not, in lower case.
const OF_SENDER: [&str; 16] = [
    "from",
    "date",
    "sent",
    "message-id",
    "von",
    "datum",
    "gesendet",
    "de",
    "fecha",
    "enviado",
    "envoyé",
    "发件人",
    "寄件人",
    "日期",
    "发送时间",
    "时间",
];
/// Names of the other fields at the head of a mail, in lower case. Lines of fields, with one of the sender's, begin a forwarded mail.
const FIELDS: [&str; 20] = [
    "to",
    "cc",
    "bcc",
    "subject",
    "reply-to",
    "an",
    "kopie",
    "betreff",
    "antwort an",
    "para",
    "asunto",
    "à",
    "a",
    "objet",
    "répondre à",
    "收件人",
    "抄送",
    "主题",
    "发送",
    "主旨",
];
/// Words at the end of the line that names the author of the text below it.
const WROTE: [&str; 12] = [
    "wrote",
    "writes",
    "said",
    "schrieb",
    "schreibt",
    "escribió",
    "escribio",
    "a écrit",
    "a ecrit",
    "写道",
    "寫道",
    "说道",
];
/// Pairs of markers of a block, in lower case. The block ends with the second one, or with the text.
const BLOCKS: [(&str, &str); 11] = [
    ("[quote]", "[/quote]"),
    ("[quote=", "[/quote]"),
    ("[code]", "[/code]"),
    ("<blockquote", "</blockquote>"),
    ("<pre>", "</pre>"),
    ("<code>", "</code>"),
    ("<q>", "</q>"),
    ("#+begin_quote", "#+end_quote"),
    ("#+begin_src", "#+end_src"),
    ("\\begin{quote}", "\\end{quote}"),
    ("<!--", "-->"),
];

/// Returns whether a character ends a line.
pub fn is_line_end(next: char) -> bool {
    matches!(next, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns the ranges of bytes of lines and blocks that are not typed, in order and apart from each other.
pub fn quoted(text: &str) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = blocks(text);
    let lines: Vec<(Range<usize>, &str)> = split(text);
    let mut fence = None;
    for (at, (range, line)) in lines.iter().enumerate() {
        let start = item_text(seen_start(line));
        let is_fence = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, is_fence) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) if is_quoting(start) || is_indented(line) => {}
            (None, None) if begins_message(&lines[at..]) => {
                ranges.push(range.start..text.len());
                break;
            }
            (None, None) if names_author(start) => {}
            (None, None) => continue,
            (Some(_), _) => {}
        }
        ranges.push(range.clone());
    }
    ranges.sort_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let is_same = next.start <= last.end;
        last.end = if is_same { last.end.max(next.end) } else { last.end };
        is_same
    });
    ranges
}

/// Returns the lines with their ranges, each with its end.
fn split(text: &str) -> Vec<(Range<usize>, &str)> {
    let begin = |line: &str| line.as_ptr() as usize - text.as_ptr() as usize;
    text.split_inclusive(is_line_end).map(|line| (begin(line)..begin(line) + line.len(), line)).collect()
}

/// Returns a line without the white space and the invisible characters at its start.
fn seen_start(line: &str) -> &str {
    line.trim_start_matches(|next: char| next.is_whitespace() || is_unseen(next))
}

fn is_unseen(next: char) -> bool {
    matches!(next, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// Returns the text of an item of a list, or the line itself: a quotation may be the whole of an item.
fn item_text(start: &str) -> &str {
    let marker = start
        .trim_start_matches(|next: char| next.is_ascii_digit() || matches!(next, '-' | '*' | '+' | '•' | '.' | ')'));
    let is_item = marker.len() < start.len() && marker.starts_with([' ', '\t']);
    let text = seen_start(marker);
    if is_item && (text.starts_with("```") || text.starts_with("~~~") || text.starts_with(['>', '＞'])) {
        text
    } else {
        start
    }
}

/// Returns whether a line with words begins with four columns of white space, or with a tab.
fn is_indented(line: &str) -> bool {
    let mut columns = 0;
    for next in line.chars() {
        match next {
            '\t' => columns = INDENT_COLUMNS,
            _ if is_line_end(next) => return false,
            _ if is_unseen(next) => {}
            _ if next.is_whitespace() => columns += 1,
            _ => return columns >= INDENT_COLUMNS,
        }
    }
    false
}

/// Returns whether a line begins with a mark of quoting: `>`, `|`, or initials and `>`.
fn is_quoting(start: &str) -> bool {
    let letters: usize = start.chars().take_while(|next| next.is_alphabetic()).map(char::len_utf8).sum();
    let after = &start[letters..];
    let is_short = start[..letters].chars().count() <= INITIALS_MAX;
    start.starts_with(['>', '＞', '﹥', '❯', '›', '|', '｜', '¦'])
        || start.starts_with("&gt;")
        || letters > 0 && is_short && after.starts_with('>')
}

/// Returns whether the first of these lines begins another message: a line of dashes with words, a known head, or two fields of a mail.
fn begins_message(lines: &[(Range<usize>, &str)]) -> bool {
    let start = seen_start(lines[0].1);
    let dashes: usize =
        start.chars().take_while(|next| matches!(next, '-' | '_' | '=' | '*' | '—' | '–')).map(char::len_utf8).sum();
    let has_dashes = start[..dashes].chars().count() >= DASHES_MIN;
    if has_dashes && start[dashes..].chars().any(char::is_alphanumeric) {
        return true;
    }
    let line = start.to_lowercase();
    if FORWARDED.iter().any(|head| line.starts_with(head)) {
        return true;
    }
    let fields = || lines.iter().map_while(|(_, line)| field(seen_start(line)));
    if fields().count() >= 2 && fields().any(|name| OF_SENDER.contains(&name.as_str())) {
        return true;
    }
    let mut others = lines.iter().skip(1).map(|(_, line)| seen_start(line));
    names_author(start) && others.find(|line| !line.is_empty()).is_some_and(|next| !is_quoting(next))
}

/// Returns the name of the field of a mail that a line has.
fn field(line: &str) -> Option<String> {
    let (name, _) = line.split_once([':', '：'])?;
    let name = name.trim_matches(|next: char| next == '*' || next == '_' || next.is_whitespace()).to_lowercase();
    (FIELDS.contains(&name.as_str()) || OF_SENDER.contains(&name.as_str())).then_some(name)
}

/// Returns whether a line names the author of the text below it, with a time or an address: "On 3 May, Eve <eve@x.org> wrote:".
fn names_author(start: &str) -> bool {
    let line = start.trim_end().to_lowercase();
    let Some(line) = line.strip_suffix([':', '：']) else { return false };
    let is_dated = line.contains(|next: char| next.is_ascii_digit() || next == '@');
    let tail: String = line.chars().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect();
    is_dated && WROTE.iter().any(|wrote| tail.contains(wrote))
}

/// Returns the blocks between markers of forums and web pages.
fn blocks(text: &str) -> Vec<Range<usize>> {
    let lower = text.to_ascii_lowercase();
    let mut ranges = Vec::new();
    for (open, close) in BLOCKS {
        let mut at = 0;
        while let Some(begin) = lower[at..].find(open).map(|found| at + found) {
            let inner = begin + open.len();
            let end = lower[inner..].find(close).map_or(text.len(), |found| inner + found + close.len());
            ranges.push(begin..end);
            at = end;
        }
    }
    ranges
}
