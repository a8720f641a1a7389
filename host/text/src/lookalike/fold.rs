//! The ASCII character for which a reader, or a model, may take a character.
//!
//! Never complete: it covers the letters of `FORBIDDEN` in the scripts with similar letters, and no others. See
//! [`crate::lookalike`].

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The appearance of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Glyph {
    /// Invisible, blank, or a joiner of words.
    Unseen,
    /// Like this ASCII character; letters are in lower case.
    Like(u8),
    /// Like none of the relevant characters.
    Other,
}

/// Returns the appearance of a character. It is like an ASCII character by the lists below, by its compatibility form without accents, or
/// by the table of confusable characters of Unicode.
pub(super) fn glyph(character: char) -> Glyph {
    match known(character) {
        Glyph::Other if !character.is_ascii() => like_by_unicode(character),
        known => known,
    }
}

fn like_by_unicode(character: char) -> Glyph {
    let mut bare = std::iter::once(character).nfkd();
    let mut alike = unicode_security::skeleton(character.encode_utf8(&mut [0; 4])).collect::<Vec<_>>().into_iter();
    let is_letter = |next: &char| next.is_ascii_alphabetic();
    let one = bare.next().filter(is_letter).filter(|_| bare.all(is_combining_mark));
    let other = alike.next().filter(is_letter).filter(|_| alike.all(is_combining_mark));
    one.or(other).map_or(Glyph::Other, |letter| Glyph::Like(letter.to_ascii_lowercase() as u8))
}

/// Returns the appearance of a character by the lists of this file.
pub(super) fn known(character: char) -> Glyph {
    if matches!(character, '_' | '-') || character.is_whitespace() || character.is_control() || is_invisible(character)
    {
        return Glyph::Unseen;
    }
    let lower = character.to_lowercase().next().unwrap_or(character);
    let code = u32::from(lower);
    let like = match lower {
        '’' | '‘' | 'ʼ' | '′' | '´' => b'\'',
        ascii if ascii.is_ascii() => letter_for(code as u8),
        // Brackets, bars and slashes.
        '【' | '〔' | '〖' | '〘' | '〚' | '﹝' | '⁅' | '❲' | '⟬' | '⦋' | '⦍' | '⦏' | '⎡' | '⎣' | '⌈' | '⌊' | '⸢'
        | '⸤' | '｢' => b'[',
        '】' | '〕' | '〗' | '〙' | '〛' | '﹞' | '⁆' | '❳' | '⟭' | '⦌' | '⦎' | '⦐' | '⎤' | '⎦' => {
            b']'
        }
        '﹤' | '‹' | '〈' | '《' | '\u{2329}' | '⟨' | '⟪' | '❬' | '❮' | '❰' | '˂' | 'ᐸ' | '≺' | '«' => {
            b'<'
        }
        '﹥' | '›' | '〉' | '》' | '\u{232a}' | '⟩' | '⟫' | '❭' | '❯' | '❱' | '˃' | 'ᐳ' | '≻' | '»' => {
            b'>'
        }
        '│' | '┃' | '∣' | 'ǀ' | '❘' | '❙' | '⏐' | '¦' | '￨' => b'|',
        '⁄' | '∕' | '⧸' | '╱' => b'/',
        // Dashes that join words like `_` and `-`.
        '‐'..='―' | '−' | '﹣' | '－' | '＿' | '﹍'..='﹏' | '‗' | 'ˍ' => return Glyph::Unseen,
        // Similar letters in Cyrillic, Greek, Armenian and small capitals.
        'а' | 'α' | 'ɑ' | 'ᴀ' => b'a',
        'с' | 'ϲ' | 'ᴄ' => b'c',
        'ԁ' | 'ᴅ' => b'd',
        'е' | 'ε' | 'є' | 'ᴇ' => b'e',
        'ꜰ' => b'f',
        'ɡ' | 'ԍ' | 'ɢ' => b'g',
        'һ' | 'н' | 'η' | 'ʜ' => b'h',
        'і' | 'ı' | 'ι' | 'ɪ' => b'i',
        'ӏ' | 'ʟ' => b'l',
        'м' | 'μ' | 'µ' | 'ᴍ' => b'm',
        'п' | 'ν' | 'ո' | 'ɴ' => b'n',
        'о' | 'ο' | 'օ' | 'ᴏ' => b'o',
        'р' | 'ρ' | 'ᴘ' => b'p',
        'г' | 'ʀ' => b'r',
        'ѕ' | 'ſ' | 'ꜱ' => b's',
        'т' | 'τ' | 'ᴛ' => b't',
        'υ' | 'ս' | 'ᴜ' => b'u',
        'у' | 'γ' | 'ʏ' => b'y',
        _ => match code {
            // The full-width forms of ASCII.
            0xff01..=0xff5e => (code - 0xff01 + 0x21) as u8,
            // Letters in circles, and the mathematical styles with 26 capital and 26 small letters each.
            0x24d0..=0x24e9 => b'a' + (code - 0x24d0) as u8,
            0x1d400..=0x1d6a3 => b'a' + ((code - 0x1d400) % 26) as u8,
            _ => return Glyph::Other,
        },
    };
    Glyph::Like(like)
}

/// Returns the letter that an ASCII digit or sign looks like, or the character itself.
const fn letter_for(ascii: u8) -> u8 {
    match ascii {
        b'0' => b'o',
        b'3' => b'e',
        b'5' | b'$' => b's',
        b'7' => b't',
        b'@' => b'a',
        other => other,
    }
}

/// Returns whether a character has no width of its own: joiners, direction marks, fillers, combining marks, tags.
fn is_invisible(character: char) -> bool {
    matches!(
        u32::from(character),
        0x00ad
            | 0x034f
            | 0x061c
            | 0x115f
            | 0x1160
            | 0x17b4
            | 0x17b5
            | 0x180b..=0x180f
            | 0x2800
            | 0x3164
            | 0xfeff
            | 0xffa0
            | 0x0300..=0x036f
            | 0x1ab0..=0x1aff
            | 0x1dc0..=0x1dff
            | 0x200b..=0x200f
            | 0x202a..=0x202e
            | 0x2060..=0x206f
            | 0x20d0..=0x20ff
            | 0xfe00..=0xfe0f
            | 0xfe20..=0xfe2f
            | 0xfff0..=0xfffb
            | 0x1bca0..=0x1bca3
            | 0xe0000..=0xe0fff
    )
}
