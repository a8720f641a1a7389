//! The pieces of a text in JSON, each as its own text, so that one piece that cannot be read hides no other.
//!
//! Makes no tree, and checks no piece: each one is read by itself afterwards. See [`super::read`].

/// Pieces of one object or list.
const PIECES_MAX: usize = 4096;

/// Returns the members of an object: the key between its quotation marks as it is written, and the text of the value. `None` if the text
/// is no object, has too many members, or ends too early.
pub fn members(text: &[u8]) -> Option<Vec<Member<'_>>> {
    let mut scanner = Scanner { text, at: 0 };
    let mut all = Vec::new();
    scanner.take(b'{')?;
    while !scanner.ends(b'}', all.is_empty())? {
        let key = scanner.string()?;
        scanner.take(b':')?;
        all.push(Member { key: key.get(1..key.len() - 1)?, value: scanner.value()? });
        if all.len() > PIECES_MAX {
            return None;
        }
    }
    Some(all)
}

/// Returns the texts of the elements of a list. `None` if the text is no list, has too many elements, or ends too early.
pub fn elements(text: &[u8]) -> Option<Vec<&[u8]>> {
    let mut scanner = Scanner { text, at: 0 };
    let mut all = Vec::new();
    scanner.take(b'[')?;
    while !scanner.ends(b']', all.is_empty())? {
        all.push(scanner.value()?);
        if all.len() > PIECES_MAX {
            return None;
        }
    }
    Some(all)
}

/// A member of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    /// Returns the next byte after white space.
    fn next(&mut self) -> Option<u8> {
        while self.text.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then(|| self.at += 1)
    }

    /// Returns whether the object or list ends here. Otherwise takes the comma before its next piece, if it has one already.
    fn ends(&mut self, end: u8, is_first: bool) -> Option<bool> {
        match self.next()? {
            byte if byte == end => Some(true),
            b',' if !is_first => self.take(b',').map(|()| false),
            _ if is_first => Some(false),
            _ => None,
        }
    }

    /// Returns a text with its quotation marks.
    fn string(&mut self) -> Option<&'a [u8]> {
        let from = {
            self.next()?;
            self.at
        };
        self.take(b'"')?;
        loop {
            match self.text.get(self.at)? {
                b'\\' => self.at += 2,
                b'"' => {
                    self.at += 1;
                    return self.text.get(from..self.at);
                }
                _ => self.at += 1,
            }
        }
    }

    /// Returns the text of a value.
    fn value(&mut self) -> Option<&'a [u8]> {
        let first = self.next()?;
        let from = self.at;
        match first {
            b'"' => return self.string(),
            b'{' | b'[' => self.nested()?,
            _ => {
                let is_end = |byte: &u8| matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace();
                self.at += self.text[from..].iter().position(is_end)?;
            }
        }
        self.text.get(from..self.at).filter(|value| !value.is_empty())
    }

    /// Passes an object or a list, however deep it is.
    fn nested(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.text.get(self.at)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_is_there_whatever_another_one_is() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for odd in ["\"\\ud800\"", "NaN", "{\"a\":\"]}\\\"\\\\\"}", "\"\u{e4}]\"", "-1.5e3", &deep] {
            let text = format!("{{\"a\" : 1,\n\"b\":{odd}, \"c\":\"end\"}}");
            let found = members(text.as_bytes()).expect("members");
            let found: Vec<(&[u8], &[u8])> = found.into_iter().map(|member| (member.key, member.value)).collect();
            assert_eq!(found[1], (&b"b"[..], odd.as_bytes()), "{}", &odd[..odd.len().min(20)]);
            assert_eq!(found[2], (&b"c"[..], &b"\"end\""[..]));
            let text = format!(" [ 1 ,{odd}, {{}} ] ");
            assert_eq!(elements(text.as_bytes()), Some(vec![&b"1"[..], odd.as_bytes(), b"{}"]));
        }
        assert_eq!((members(b"{}"), elements(b" [ ] ")), (Some(vec![]), Some(vec![])));
    }

    #[test]
    fn text_that_is_no_object_or_list_has_no_pieces() {
        for text in ["", "[", "[1", "[1,", "[,1]", "[1 2]", "[\"a]", "[[1]", "{}", "3"] {
            assert_eq!(elements(text.as_bytes()), None, "{text}");
        }
        for text in ["", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1", "{a:1}", "{\"a\\", "[]"] {
            assert_eq!(members(text.as_bytes()), None, "{text}");
        }
        assert_eq!(elements(format!("[{}0]", "0,".repeat(PIECES_MAX)).as_bytes()), None);
    }
}
