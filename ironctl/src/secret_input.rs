//! The input of a secret, typed without an echo or read from stdin.
//!
//! Never takes a secret from the command line, and never prints one. See `commands::secret` and `commands::model`.

use crate::failure::Error;
use ironclaw_operator::SecretValue;
use std::io::{self, IsTerminal, Read};

/// Bytes of a secret with its line break; the host has its own bound.
const SECRET_BYTES_MAX: u64 = 8 * 1024 + 2;

/// The number of times that a person types the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typed {
    /// Once, because a test finds a mistake.
    Once,
    /// Twice, because no test would find a mistake.
    Twice,
}

/// Asks for `what` on a terminal, without an echo. Otherwise reads all of stdin and removes one line break at its end.
pub fn read(what: &str, typed: Typed) -> Result<SecretValue, Error> {
    let text = if io::stdin().is_terminal() { prompt(what, typed)? } else { read_from(what, io::stdin().lock())? };
    if text.is_empty() {
        return Err(Error::failed("secret_empty", format!("{what} is empty"))
            .hinting("type it at the prompt, or pass it on stdin: ironctl … < FILE"));
    }
    Ok(SecretValue::new(text))
}

/// Asks for `what` on a terminal, without an echo. Enter alone takes `known`, or nothing.
pub fn read_or(what: &str, known: Option<SecretValue>) -> Result<Option<SecretValue>, Error> {
    let what = match known {
        Some(_) => format!("{what}; Enter takes the one in the file"),
        None => what.to_owned(),
    };
    let text = prompt(&what, Typed::Once)?;
    Ok(if text.is_empty() { known } else { Some(SecretValue::new(text)) })
}

fn prompt(what: &str, typed: Typed) -> Result<String, Error> {
    let no_prompt = |cause| Error::failed("no_prompt", format!("cannot ask for {what}")).because(cause);
    let text = rpassword::prompt_password(format!("{what} (not shown): ")).map_err(no_prompt)?;
    if typed == Typed::Twice {
        let again = SecretValue::new(rpassword::prompt_password("repeat: ").map_err(no_prompt)?);
        if again.take() != text {
            drop(SecretValue::new(text));
            return Err(Error::failed(
                "secret_unlike",
                format!("{what} was not typed the same twice; nothing was changed"),
            ));
        }
    }
    Ok(text)
}

fn read_from(what: &str, from: impl Read) -> Result<String, Error> {
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
    fn one_line_break_at_the_end_is_not_part_of_the_secret() {
        for (given, secret) in [("a", "a"), ("a\n", "a"), ("a\r\n", "a"), ("a\n\n", "a\n"), (" a ", " a "), ("", "")] {
            assert_eq!(read_from("x", given.as_bytes()).expect("read"), secret);
        }
        assert!(read_from("x", vec![b'a'; SECRET_BYTES_MAX as usize + 1].as_slice()).is_err());
        assert!(read_from("x", [0xff_u8].as_slice()).is_err());
    }
}
