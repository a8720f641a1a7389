//! Takes in what must not be seen: a secret, typed without an echo or read from stdin.
//!
//! Never takes one from the command line, and never prints one. See `commands::secret` and `commands::model`.

use crate::failure::Error;
use ironclaw_contract::operator::SecretValue;
use std::io::{self, IsTerminal, Read};

/// A secret is not longer, its line break included; the host has the bound of its own.
const SECRET_BYTES_MAX: u64 = 8 * 1024 + 2;

/// Whether it has to be typed the same way twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typed {
    /// Once: a mistake shows at once.
    Once,
    /// Twice: a mistake would not show.
    Twice,
}

/// Asks for `what` on a terminal, without an echo; otherwise reads all of stdin, up to one line break at its end.
pub fn take(what: &str, typed: Typed) -> Result<SecretValue, Error> {
    let text = if io::stdin().is_terminal() { ask(what, typed)? } else { read(what, io::stdin().lock())? };
    if text.is_empty() {
        return Err(Error::failed("secret_empty", format!("{what} is empty"))
            .hinting("type it when asked, or hand it in on stdin: ironctl … < FILE"));
    }
    Ok(SecretValue::new(text))
}

fn ask(what: &str, typed: Typed) -> Result<String, Error> {
    let unasked = |cause| Error::failed("no_prompt", format!("cannot ask for {what}")).because(cause);
    let text = rpassword::prompt_password(format!("{what} (not shown): ")).map_err(unasked)?;
    if typed == Typed::Twice {
        let again = SecretValue::new(rpassword::prompt_password("once more: ").map_err(unasked)?);
        if again.take() != text {
            drop(SecretValue::new(text));
            return Err(Error::failed("secret_unlike", format!("{what} was typed in two ways; nothing was changed")));
        }
    }
    Ok(text)
}

fn read(what: &str, from: impl Read) -> Result<String, Error> {
    let unreadable = || Error::failed("stdin_unreadable", format!("cannot read {what} from stdin"));
    let mut text = String::new();
    from.take(SECRET_BYTES_MAX + 1).read_to_string(&mut text).map_err(|cause| unreadable().because(cause))?;
    if text.len() as u64 > SECRET_BYTES_MAX {
        drop(SecretValue::new(text));
        return Err(unreadable().because(format!("it is longer than {} KiB", SECRET_BYTES_MAX / 1024)));
    }
    let end = text.strip_suffix('\n').map_or(text.len(), |line| line.strip_suffix('\r').unwrap_or(line).len());
    text.truncate(end);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_break_at_the_end_is_no_part_of_a_secret() {
        for (given, taken) in [("a", "a"), ("a\n", "a"), ("a\r\n", "a"), ("a\n\n", "a\n"), (" a ", " a "), ("", "")] {
            assert_eq!(read("x", given.as_bytes()).expect("read"), taken);
        }
        assert!(read("x", vec![b'a'; SECRET_BYTES_MAX as usize + 1].as_slice()).is_err());
        assert!(read("x", [0xff_u8].as_slice()).is_err());
    }
}
