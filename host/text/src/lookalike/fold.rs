//! How a character looks: which ASCII character a reader, or a model, takes it for.
//!
//! Never complete: the letters that `FORBIDDEN` needs are covered in the scripts where they have twins, no others.
//! Next: `lookalike`.

/// What a character is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Glyph {
    /// Nothing: it takes no room, is blank, or only joins words.
    Unseen,
    /// This ASCII character, letters in lower case.
    Like(u8),
    /// None that matters here.
    Other,
}

/// What this character is read as.
pub(super) fn glyph(character: char) -> Glyph {
    if matches!(character, '_' | '-') || character.is_whitespace() || character.is_control() || is_invisible(character)
    {
        return Glyph::Unseen;
    }
    let lower = character.to_lowercase().next().unwrap_or(character);
    let code = u32::from(lower);
    let like = match lower {
        ascii if ascii.is_ascii() => code as u8,
        // Brackets, bars and slashes.
        '【' | '〔' | '〖' | '〘' | '〚' | '﹝' | '⁅' | '❲' | '⟬' | '⦋' | '⦍' | '⦏' | '⎡' | '⎣' => {
            b'['
        }
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
        // Strokes that join words as `_` and `-` do.
        '‐'..='―' | '−' | '﹣' | '－' | '＿' | '﹍'..='﹏' | '‗' | 'ˍ' => return Glyph::Unseen,
        // Twins of letters in Cyrillic, Greek, Armenian and small capitals.
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
            // The full-width forms of all of ASCII.
            0xff01..=0xff5e => (code - 0xff01 + 0x21) as u8,
            // Letters in circles, and in the mathematical styles: 26 capitals and 26 small ones, again and again.
            0x24d0..=0x24e9 => b'a' + (code - 0x24d0) as u8,
            0x1d400..=0x1d6a3 => b'a' + ((code - 0x1d400) % 26) as u8,
            _ => return Glyph::Other,
        },
    };
    Glyph::Like(like)
}

/// Characters without a width of their own: joiners, marks of direction, fillers, marks that sit on the letter before, tags.
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
