//! The names in paths and queries: ids and statuses.
//!
//! Looks nothing up. See [`super::routes`].

use super::handler::Answer;
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;
use ironclaw_text::excerpt::quoted;
use std::fmt::Display;
use std::str::FromStr;

/// The word for every status.
pub(super) const EVERY: &str = "all";

/// Parses an id of a path, or refuses it as unknown.
pub(super) fn id<T: FromStr>(text: &str, code: DenialCode, what: &str) -> Result<T, Answer> {
    text.parse().map_err(|_| Refusal::new(code, format!("there is no {what} {}", quoted(text))).into())
}

/// Parses statuses with commas between, or `all`; without any, returns the usual ones.
///
/// # Errors
/// Refuses a name that is none of `all`.
pub(super) fn statuses<S: Copy + Display + FromStr>(
    named: Option<&str>,
    usual: &[S],
    all: &[S],
) -> Result<Vec<S>, Answer> {
    let read = |name: &str| {
        name.parse::<S>().map_err(|_| {
            let known: Vec<String> = all.iter().map(S::to_string).collect();
            let message = format!("there is no status {}: use {}, or {EVERY}", quoted(name), known.join(", "));
            Refusal::new(DenialCode::StatusMalformed, message)
        })
    };
    match named {
        None => Ok(usual.to_vec()),
        Some(EVERY) => Ok(all.to_vec()),
        Some(names) => Ok(names.split(',').map(read).collect::<Result<_, _>>()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_operator::WaitingStatus as Status;

    fn read(named: Option<&str>) -> Option<Vec<Status>> {
        statuses(named, &[Status::Pending, Status::Unknown], &Status::ALL).ok()
    }

    #[test]
    fn default_status_is_waiting_and_unknown_status_is_refused() {
        assert_eq!(read(None), Some(vec![Status::Pending, Status::Unknown]));
        assert_eq!(read(Some("failed,unknown")), Some(vec![Status::Failed, Status::Unknown]));
        assert_eq!(read(Some(EVERY)).map(|all| all.len()), Some(11));
        for named in ["", "Pending", "pending, done", "pending,", "all,pending"] {
            assert_eq!(read(Some(named)), None, "{named:?}");
        }
    }
}
