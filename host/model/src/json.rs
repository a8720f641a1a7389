//! The bounds on JSON of model servers.
//!
//! Reads a long text in a blocking thread. See [`ironclaw_text::json`] and [`crate::remote`].

use super::fault::Fault;
use ironclaw_text::json::{self, Unread};
use serde_json::Value;

/// Values in one answer or event; an output with all its calls has some hundreds.
pub const ANSWER_VALUES_MAX: usize = 8192;

/// Values in a listing of models.
pub const LISTING_VALUES_MAX: usize = 65_536;

/// Longest text that is parsed on the async threads; a longer one is parsed in a blocking thread.
const INLINE_BYTES_MAX: usize = 64 * 1024;

/// The fault of a refused text, with a detail.
pub type Refused = (Fault, String);

/// An answer or an event.
#[derive(Debug)]
pub struct Parsed {
    pub value: Value,
    /// True if a key came twice in one object; the last one is kept.
    pub has_doubled_key: bool,
}

/// Parses an answer; a long one in a blocking thread.
///
/// # Errors
/// As [`read_long`].
pub async fn read_answer(text: Vec<u8>) -> Result<Parsed, Refused> {
    if text.len() <= INLINE_BYTES_MAX {
        return read_event(&text);
    }
    let reading = tokio::task::spawn_blocking(move || read_event(&text));
    reading.await.unwrap_or_else(|_| Err((Fault::Malformed, "reading the answer failed".to_owned())))
}

/// Returns a number of a list, which some servers write as a text or with a fraction.
pub fn number(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_u64().or_else(|| {
            let number = value
                .as_f64()
                .filter(|number| number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(number))?;
            // It is in the range of the type.
            Some(number as u64)
        }),
    }
}

/// Parses an event, or a whole answer.
///
/// # Errors
/// As [`read_long`].
pub fn read_event(text: &[u8]) -> Result<Parsed, Refused> {
    let (value, has_doubled_key) = json::read_noting_doubled_keys(text, ANSWER_VALUES_MAX).map_err(refused)?;
    Ok(Parsed { value, has_doubled_key })
}

/// Parses a text; a long one in a blocking thread.
///
/// # Errors
/// [`Fault::TooLarge`] for more values than `values_max`, [`Fault::Malformed`] for a text that is not JSON.
pub async fn read_long(text: Vec<u8>, values_max: usize) -> Result<Value, Refused> {
    if text.len() <= INLINE_BYTES_MAX {
        return read(&text, values_max);
    }
    let reading = tokio::task::spawn_blocking(move || read(&text, values_max));
    reading.await.unwrap_or_else(|_| Err((Fault::Malformed, "reading the answer failed".to_owned())))
}

/// Parses a text.
///
/// # Errors
/// As [`read_long`].
pub fn read(text: &[u8], values_max: usize) -> Result<Value, Refused> {
    json::read(text, values_max).map_err(refused)
}

fn refused(unread: Unread) -> Refused {
    match unread {
        Unread::TooMany { values_max } => (Fault::TooLarge, format!("the answer has more than {values_max} values")),
        Unread::Malformed { column } => (Fault::Malformed, format!("the answer is not JSON (column {column})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_over_the_bound_has_a_fault_of_its_own() {
        for (text, fault) in [("[0,1,2]", Fault::TooLarge), ("<html>", Fault::Malformed)] {
            assert_eq!(read(text.as_bytes(), 3).map_err(|(fault, _)| fault), Err(fault), "{text}");
        }
    }
}
