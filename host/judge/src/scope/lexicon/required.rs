//! The words that each match of a pattern has one of: a text without them needs no search, and the pattern is not compiled for it.
//!
//! Errs toward too few: a pattern without such words is always searched. See `needed.rs`.

use super::needed::{BEGIN, BYTES_MIN, END, SET_WORDS, place};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};
use std::collections::BTreeSet;

/// Texts of one pattern; a pattern with more is always searched.
const WORDS_MAX: usize = 3000;

/// Texts of parts that follow each other; with more, each part is read alone.
const PRODUCT_MAX: usize = 256;

/// Bytes of a text that are compared.
const BYTES_MAX: usize = u8::MAX as usize;

/// Members of a set of characters that count as alternatives.
const MEMBERS_MAX: usize = 12;

/// A list of texts of which each match has one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Words {
    texts: BTreeSet<Vec<u8>>,
    /// True if a group with a name has them: the words that ask.
    is_named: bool,
}

impl Words {
    fn one(text: &[u8]) -> Self {
        Self { texts: BTreeSet::from([text.to_vec()]), is_named: false }
    }

    fn shortest(&self) -> usize {
        self.texts.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// Returns how well a text is told by these words: by the words that ask, by long words, by few words.
    fn rank(&self) -> (bool, bool, usize, std::cmp::Reverse<usize>) {
        let shortest = self.shortest();
        (shortest >= BYTES_MIN, self.is_named, shortest.min(BYTES_MIN + 1), std::cmp::Reverse(self.texts.len()))
    }

    /// Returns each of these texts followed by each of the others; `None` if they are too many.
    fn followed_by(&self, next: &Self) -> Option<Self> {
        if self.texts.len().saturating_mul(next.texts.len()) > PRODUCT_MAX {
            return None;
        }
        let joined = |first: &Vec<u8>| {
            let first = first.clone();
            next.texts.iter().map(move |second| joined(&first, second))
        };
        let texts = self.texts.iter().flat_map(joined).collect();
        Some(Self { texts, is_named: self.is_named || next.is_named })
    }

    fn or(mut self, other: Self) -> Option<Self> {
        self.texts.extend(other.texts);
        self.is_named |= other.is_named;
        (self.texts.len() <= WORDS_MAX).then_some(self)
    }
}

/// Returns the texts of which each match of a pattern has one, sorted, with [`BEGIN`] and [`END`] around the whole text; none if a match
/// may have no such text.
///
/// # Errors
/// The mistake of a pattern that is no regular expression.
pub(super) fn required(pattern: &str, is_unicode: bool) -> Result<Vec<Vec<u8>>, String> {
    let mut parser = ParserBuilder::new().unicode(is_unicode).utf8(false).build();
    let parsed = parser.parse(pattern).map_err(|error| error.to_string())?;
    let words = part(&parsed).filter(|words| words.shortest() >= BYTES_MIN);
    Ok(words.map(|words| shortest(words.texts)).unwrap_or_default())
}

/// Returns a text followed by another. Two marks of one place are one.
fn joined(first: &[u8], second: &[u8]) -> Vec<u8> {
    let is_twice = [BEGIN, END].iter().any(|mark| first.ends_with(&[*mark]) && second.starts_with(&[*mark]));
    [first, &second[usize::from(is_twice)..]].concat()
}

/// Returns the texts without those that have another one of them.
fn shortest(texts: BTreeSet<Vec<u8>>) -> Vec<Vec<u8>> {
    let has =
        |text: &[u8], other: &[u8]| text.len() > other.len() && text.windows(other.len()).any(|window| window == other);
    texts.iter().filter(|text| !texts.iter().any(|other| has(text, other))).cloned().collect()
}

/// Returns all texts that a part of a pattern matches; `None` if they are too many.
fn whole(part: &Hir) -> Option<Words> {
    match part.kind() {
        HirKind::Look(Look::Start) => Some(Words::one(&[BEGIN])),
        HirKind::Look(Look::End) => Some(Words::one(&[END])),
        HirKind::Empty | HirKind::Look(_) => Some(Words::one(b"")),
        HirKind::Literal(literal) => Some(Words::one(&literal.0)),
        HirKind::Class(class) => members(class),
        HirKind::Repetition(Repetition { min: 0, max: Some(1), sub, .. }) => whole(sub)?.or(Words::one(b"")),
        HirKind::Repetition(_) => None,
        HirKind::Capture(group) => {
            let words = whole(&group.sub)?;
            Some(Words { is_named: words.is_named || group.name.is_some(), ..words })
        }
        HirKind::Concat(parts) => parts.iter().try_fold(Words::one(b""), |all, part| all.followed_by(&whole(part)?)),
        HirKind::Alternation(parts) => {
            let empty = Words { texts: BTreeSet::new(), is_named: false };
            parts.iter().try_fold(empty, |all, part| all.or(whole(part)?))
        }
    }
}

fn members(class: &Class) -> Option<Words> {
    let texts: BTreeSet<Vec<u8>> = match class {
        Class::Unicode(set) if set.ranges().iter().map(|range| range.len()).sum::<usize>() <= MEMBERS_MAX => {
            let members = set.ranges().iter().flat_map(|range| range.start()..=range.end());
            members.map(|member| member.to_string().into_bytes()).collect()
        }
        Class::Bytes(set) if set.ranges().iter().map(|range| range.len()).sum::<usize>() <= MEMBERS_MAX => {
            set.ranges().iter().flat_map(|range| range.start()..=range.end()).map(|member| vec![member]).collect()
        }
        Class::Unicode(_) | Class::Bytes(_) => return None,
    };
    Some(Words { texts, is_named: false })
}

/// Returns the best texts of which each match of a part of a pattern has one.
fn part(part: &Hir) -> Option<Words> {
    match part.kind() {
        HirKind::Empty => None,
        HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_) => whole(part),
        HirKind::Repetition(Repetition { min: 0, .. }) => None,
        HirKind::Repetition(repetition) => self::part(&repetition.sub),
        HirKind::Capture(group) => {
            let words = self::part(&group.sub)?;
            Some(Words { is_named: words.is_named || group.name.is_some(), ..words })
        }
        HirKind::Concat(parts) => sequence(parts),
        HirKind::Alternation(parts) => {
            let empty = Words { texts: BTreeSet::new(), is_named: false };
            parts.iter().try_fold(empty, |all, part| all.or(self::part(part)?))
        }
    }
}

/// Returns the best texts of a sequence of parts. Parts that follow each other, and have few texts, are read as one.
fn sequence(parts: &[Hir]) -> Option<Words> {
    let (mut found, mut run) = (Vec::new(), None::<Words>);
    for part in parts {
        let all = whole(part);
        let joined = match (&run, &all) {
            (Some(run), Some(all)) => run.followed_by(all),
            (_, all) => all.clone(),
        };
        match joined {
            Some(_) if run.is_some() => run = joined,
            joined => {
                found.extend(run.take());
                found.extend(self::part(part));
                run = joined.or(all);
            }
        }
    }
    found.extend(run);
    found.into_iter().max_by_key(Words::rank)
}

/// Returns the beginnings and the bytes of these texts for a table.
pub(super) fn packed(texts: &[Vec<u8>]) -> ([u64; SET_WORDS], Vec<u8>) {
    let (mut beginnings, mut packed) = ([0_u64; SET_WORDS], Vec::new());
    for text in texts {
        let text = &text[..text.len().min(BYTES_MAX)];
        if let Some((beginning, _)) = text.split_first_chunk() {
            let place = place(*beginning);
            beginnings[place / 64] |= 1 << (place % 64);
        }
        packed.push(text.len() as u8);
        packed.extend_from_slice(text);
    }
    (beginnings, packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_that_each_match_has() {
        for (pattern, words) in [
            ("^(?: a)* (?<v>send|mail) [^ ]+ ", &[" mail ", " send "][..]),
            ("^(?: please)* (?<v>post|tell) [^ ]+ (?:to everybody|with everybody) ", &[" post ", " tell "]),
            ("x (?<v>apple) |y (?<w>donut) ", &["x apple ", "y donut "]),
            ("x (?<v>apple) |[a-z]* b ", &[" b ", "x apple "]),
            ("x (?<v>apple) |[a-z]* ", &[]),
            ("(?: (?<v>apple))?", &[]),
            ("[^ ]+ (?:if|when|in case) ", &[" if ", " in case ", " when "]),
            ("in[sz]e", &["inse", "inze"]),
            (" colou?r$", &[" colo"]),
            ("(?:^| )if(?: |$)", &[" if ", " if$", "^if ", "^if$"]),
            ("^^(?:^| )go(?:ing)?", &["^ go", "^go"]),
            (" no(?:body)* matter ", &[" matter "]),
            ("(?:no )+way there", &["way there"]),
            ("^ [^ ]+ $", &[]),
            ("ab|bcd", &[]),
            (r"\(send\)|\[mail\]", &["(send)", "[mail]"]),
        ] {
            let found = required(pattern, false).expect("a pattern");
            let shown = |word: &Vec<u8>| String::from_utf8_lossy(word).replace('\u{2}', "^").replace('\u{3}', "$");
            let mut found: Vec<_> = found.iter().map(shown).collect();
            found.sort_unstable();
            assert_eq!(found, words, "{pattern}");
        }
        assert_eq!(required("请?发(?:给|到)", true).expect("a pattern").len(), 2);
    }
}
