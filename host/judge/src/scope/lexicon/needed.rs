//! The search for the texts of which each match of a pattern has one. The pattern is not compiled for a text without them.
//!
//! Knows no pattern: the build finds the texts. See [`super::tables`].

/// Bytes of the shortest text that is worth a look.
pub(super) const BYTES_MIN: usize = 3;

/// The marks around a searched text, for the patterns that bind to its begin or its end.
pub(super) const BEGIN: u8 = 2;
pub(super) const END: u8 = 3;

/// Words of 64 bits in a set of beginnings.
pub(super) const SET_WORDS: usize = 16;

/// Texts of which each match of a pattern has one; a match of a pattern without them may have any text.
#[derive(Debug)]
pub(super) struct Needed {
    /// The beginnings of the texts, each a bit at its [`place`].
    pub(super) beginnings: [u64; SET_WORDS],
    /// Each text after its number of bytes, by beginning.
    pub(super) texts: &'static [u8],
}

impl Needed {
    /// Returns whether a text may have a match.
    pub(super) fn may_be_in(&self, text: &[u8]) -> bool {
        if self.texts.is_empty() {
            return true;
        }
        let text = [&[BEGIN], text, &[END]].concat();
        (0..text.len()).any(|at| self.begins(&text[at..]))
    }

    fn begins(&self, text: &[u8]) -> bool {
        let Some((beginning, _)) = text.split_first_chunk() else { return false };
        let place = place(*beginning);
        if self.beginnings[place / 64] & (1 << (place % 64)) == 0 {
            return false;
        }
        let mut rest = self.texts;
        while let Some((bytes, more)) = rest.split_first() {
            let (needed, others) = more.split_at(usize::from(*bytes));
            if text.starts_with(needed) {
                return true;
            }
            rest = others;
        }
        false
    }
}

/// Returns the place of a beginning in a set.
pub(super) const fn place(beginning: [u8; BYTES_MIN]) -> usize {
    let [first, second, third] = beginning;
    let number = u32::from_be_bytes([0, first, second, third]);
    number.wrapping_mul(0x9e37_79b1) as usize >> 16 & (64 * SET_WORDS - 1)
}

#[cfg(test)]
mod tests {
    use super::super::required::packed;
    use super::*;

    #[test]
    fn text_with_none_of_them_has_no_match() {
        let texts = [" send ", " mail to ", "ana", "\u{2}go", "stop\u{3}"].map(|text| text.as_bytes().to_vec());
        let (beginnings, texts) = packed(&texts);
        let needed = Needed { beginnings, texts: texts.leak() };
        for (text, expected) in [
            (" please send it ", true),
            (" mail to ben ", true),
            ("ana", true),
            ("banana", true),
            ("go on", true),
            (" go on", false),
            ("please stop", true),
            ("stop it", false),
            (" sends it ", false),
            (" mail ", false),
            (" mail t", false),
            ("an", false),
            ("", false),
        ] {
            assert_eq!(needed.may_be_in(text.as_bytes()), expected, "{text}");
        }
        assert!(Needed { beginnings: [0; 16], texts: &[] }.may_be_in(b""), "nothing is needed");
        let (beginnings, texts) = packed(&[vec![b'x'; 300]]);
        let long = Needed { beginnings, texts: texts.leak() };
        assert!(long.may_be_in(&[b'x'; 300]) && !long.may_be_in(&[b'x'; 200]));
    }
}
