//! The text form of an entry in exports and archives: one line of JSON in one fixed layout.
//!
//! `data` is the canonical bytes themselves, which are never serialized again. A line in any other layout is refused. See
//! [`crate::check`].

use ironclaw_operator::SignedHead;
use std::fmt::Write as _;

/// A line of an export.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    Entry(Parts<'a>),
    /// The signed head that closes a chain.
    Head(Box<SignedHead>),
}

/// An entry as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts<'a> {
    /// Its number.
    pub seq: u64,
    /// Its type, as stored; the check of the entry refuses an unknown type.
    pub kind: &'a str,
    /// The bytes that were hashed.
    pub canonical: &'a str,
    /// Its hash, as stored.
    pub hash: &'a str,
}

/// Appends the line of an entry, with its line break.
pub fn write(line: &mut String, parts: Parts<'_>) {
    let Parts { seq, kind, canonical, hash } = parts;
    write!(line, r#"{{"seq":{seq},"type":"{kind}","data":{canonical},"hash":"{hash}","canonical":"#)
        .expect("a String takes any text");
    line.push_str(&serde_json::to_string(canonical).expect("text is JSON"));
    line.push_str("}\n");
}

/// Appends the line of a head, with its line break.
pub fn write_head(line: &mut String, head: &SignedHead) {
    line.push_str(&serde_json::to_string(head).expect("plain fields are JSON"));
    line.push('\n');
}

/// Parses a line without its line break; `None` for a line that no export has.
pub fn parse(line: &str) -> Option<Line<'_>> {
    parse_in_turns(line, || ())
}

/// Parses a line as [`parse`] does. Calls `step` about once for each 64 bytes of the line: it is for work that the processor does at the
/// same time, because that work waits for its own earlier results most of the time.
pub(super) fn parse_in_turns(line: &str, step: impl FnMut()) -> Option<Line<'_>> {
    match entry(line, step) {
        Some(parts) => Some(Line::Entry(parts)),
        None => serde_json::from_str(line).ok().map(|head| Line::Head(Box::new(head))),
    }
}

fn entry(line: &str, mut step: impl FnMut()) -> Option<Parts<'_>> {
    let rest = line.strip_prefix(r#"{"seq":"#)?;
    let (seq, rest) = rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count());
    // One spelling for each number: no sign, no leading zero.
    let seq = seq.parse().ok().filter(|_| seq == "0" || !seq.starts_with('0'))?;
    let rest = rest.strip_prefix(r#","type":""#)?;
    let (kind, rest) = rest.split_at(rest.bytes().position(|byte| byte == b'"')?);
    let rest = rest.strip_prefix(r#"","data":"#)?;
    let both = rest.strip_suffix(END)?;
    // The data occurs twice here, plain and escaped. Its length follows from the number of quotes and backslashes in both. Counting them
    // is faster than a search for the text between them. A wrong length fails below.
    let [quotes, backslashes] = count(both, [b'"', b'\\'], &mut step);
    let quotes = quotes.checked_sub(BETWEEN_QUOTES)? / 2;
    let backslashes = backslashes.checked_sub(quotes)? / 3;
    let length = both.len().checked_sub(BETWEEN_BYTES + quotes + backslashes)? / 2;
    let (canonical, rest) = rest.split_at_checked(length)?;
    let (hash, rest) = rest.strip_prefix(r#","hash":""#)?.split_at_checked(64)?;
    let written = rest.strip_prefix(r#"","canonical":""#)?;
    reads_as(written.as_bytes(), canonical.as_bytes(), step).then_some(Parts { seq, kind, canonical, hash })
}

/// Text after the escaped data.
const END: &str = r#""}"#;

/// Bytes between the data and its escaped form: `,"hash":"…","canonical":"`.
const BETWEEN_BYTES: usize = 9 + 64 + 15;
const BETWEEN_QUOTES: usize = 7;

/// Counts each of `wanted` in `text`, with a step for each piece. The compiler turns sums of one byte each, over pieces that cannot
/// overflow them, into instructions that compare many bytes at once.
fn count(text: &str, wanted: [u8; 2], step: &mut impl FnMut()) -> [usize; 2] {
    let sum = |piece: &[u8], wanted| usize::from(piece.iter().map(|byte| u8::from(*byte == wanted)).sum::<u8>());
    let (pieces, rest) = text.as_bytes().as_chunks::<128>();
    let mut counts = wanted.map(|wanted| sum(rest, wanted));
    for piece in pieces {
        step();
        counts[0] += sum(piece, wanted[0]);
        counts[1] += sum(piece, wanted[1]);
    }
    counts
}

/// Returns whether `written` is `plain`, escaped as in JSON, and then [`END`]. Canonical JSON has no control characters, so exactly the
/// quotes and backslashes are escaped.
///
/// Compares eight bytes of `plain` at a time, each word up to the next escaped byte. About every sixth byte is escaped, and a new
/// search for each of them would take longer than hashing the line.
fn reads_as(written: &[u8], plain: &[u8], mut step: impl FnMut()) -> bool {
    let (mut at, mut differing) = (0, 0);
    let mut take = |mut word: u64, mut bits: u32| {
        let mut escaped = bytes_equal(word, b'"') | bytes_equal(word, b'\\');
        while escaped != 0 {
            let before = escaped.trailing_zeros() & !7;
            let expected = word & low(before) | u64::from(b'\\') << before;
            differing |= (word_at(written, at) ^ expected) & low(before + 8);
            at += before as usize / 8 + 1;
            // The escaped byte comes next and is then compared like any other.
            word >>= before;
            bits -= before;
            escaped >>= before;
            escaped &= escaped - 1;
        }
        differing |= (word_at(written, at) ^ word) & low(bits);
        at += bits as usize / 8;
    };
    let (words, rest) = plain.as_chunks();
    for words in words.chunks(STEP_WORDS) {
        step();
        words.iter().for_each(|word| take(u64::from_le_bytes(*word), 64));
    }
    take(word_at(rest, 0), 8 * rest.len() as u32);
    differing == 0 && written.get(at..) == Some(END.as_bytes())
}

/// Words of the data between two steps of other work. The line has the data twice.
const STEP_WORDS: usize = 4;

/// Returns the eight bytes at `at`, the first in the lowest position; missing bytes are zero.
fn word_at(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..).unwrap_or_default();
    u64::from_le_bytes(bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        word
    }))
}

/// Returns a mask of the lowest `bits`, of at most 64.
fn low(bits: u32) -> u64 {
    u64::MAX.checked_shr(64 - bits).unwrap_or(0)
}

/// Returns a mask with the highest bit of each byte of `word` that equals `byte`.
fn bytes_equal(word: u64, byte: u8) -> u64 {
    const REST: u64 = u64::from_ne_bytes([0x7f; 8]);
    let differing = word ^ u64::from_ne_bytes([byte; 8]);
    !(((differing & REST) + REST) | differing | REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "9fff5bccc8fa2677ae9435a31eec9e09009b9e79001e2de21383eead7cb3f280";

    fn written(canonical: &str) -> String {
        let mut line = String::new();
        write(&mut line, Parts { seq: 7, kind: "CLAIM", canonical, hash: HASH });
        assert_eq!(line.pop(), Some('\n'));
        line
    }

    #[test]
    fn written_line_reads_back_for_all_data() {
        for canonical in [
            "{}",
            r#"{"a":"b"}"#,
            r#"{"a":"\"\\\n\u0000"}"#,
            "{\"é\":\"\u{1f600}\u{2028}\u{7f}\"}",
            r#"{"x":{"hash":"1","y":","},"z":",\"canonical\":\""}"#,
            r#"{"end":"\\"}"#,
            r#"{"at":1234567890123,"long":"0123456789abcdef0123456789abcdef","\\\"\\\"\\\"\\\"":""}"#,
        ] {
            let line = written(canonical);
            let Some(Line::Entry(parts)) = parse(&line) else { panic!("{line}") };
            assert_eq!((parts.seq, parts.kind, parts.canonical, parts.hash), (7, "CLAIM", canonical, HASH));
            let read: ironclaw_operator::LedgerLine = serde_json::from_str(&line).expect("JSON");
            assert_eq!(read.canonical, canonical);
        }
    }

    #[test]
    fn another_layout_or_two_versions_of_the_data_are_refused() {
        let good = written(r#"{"a":"b"}"#);
        for (from, to) in [
            (r#""data":{"a":"b"}"#, r#""data":{"a":"c"}"#),
            (r#"\"a\":\"b\""#, r#"\"a\":\"c\""#),
            (r#"\"a\""#, r#"\u0022a\u0022"#),
            (r#"{"seq":7"#, r#"{"seq":07"#),
            (r#"{"seq":7"#, r#"{"seq": 7"#),
            (r#"{"seq":7"#, r#"{"seq":+7"#),
            (HASH, "9fff"),
        ] {
            let bad = good.replace(from, to);
            assert_ne!(bad, good);
            assert_eq!(parse(&bad), None, "{bad}");
        }
        for cut in 0..good.len() {
            assert_eq!(parse(&good[..cut]), None, "{}", &good[..cut]);
        }
    }

    #[test]
    fn accepted_line_equals_the_encoding_of_its_parts() {
        let good = written(r#"{"a":"b\"c\\","long":"0123456789abcdef0123456789abcdef","n":17}"#);
        let mut lines = Vec::new();
        for at in 0..good.len() {
            let (before, rest) = good.split_at(at);
            lines.push(format!("{before}{}", &rest[1..]));
            for other in ['"', '\\', '0', '8', 'f', ' ', '{', '}', ','] {
                lines.push(format!("{before}{other}{rest}"));
                lines.push(format!("{before}{other}{}", &rest[1..]));
            }
        }
        for line in lines {
            let Some(Line::Entry(parts)) = parse(&line) else { continue };
            let mut again = String::new();
            write(&mut again, parts);
            assert_eq!(again.strip_suffix('\n'), Some(line.as_str()));
        }
    }
}
