//! The calls and changes of an agent that wait for the person at the prompt, with a number for each.
//!
//! A number means the same one until another list is shown. See [`crate::commands::inbox`], which opens one.

use crate::client::Client;
use crate::commands::inbox;
use crate::failure::Error;
use crate::output::Output;

/// Entries of a list at the prompt.
const SHOWN_MAX: usize = 9;

/// The ids of the numbered calls and changes that were shown last.
#[derive(Debug, Default)]
pub struct Waiting {
    shown: Vec<String>,
}

impl Waiting {
    /// Prints a numbered list of the calls and changes of an agent if it differs from the last one, and only their number otherwise.
    ///
    /// Ignores a failed request, because the answer did arrive.
    pub async fn remind(&mut self, out: Output, client: &Client, agent: &str) -> Result<(), Error> {
        let Ok(found) = inbox::list_for_agent(client, agent).await else { return Ok(()) };
        let ids: Vec<String> = found.iter().map(|entry| entry.id.to_string()).collect();
        let is_known = ids == self.shown;
        self.shown = ids;
        let Some(count) = inbox::count_of(&found) else { return Ok(()) };
        if is_known {
            return out.remark(format!("{count}: /inbox 1"));
        }
        out.remark(format!("{count}; /inbox NUMBER opens one:"))?;
        for (index, entry) in found.iter().enumerate().take(SHOWN_MAX) {
            out.remark(format!("  {}  {}", index + 1, inbox::in_a_line(entry)))?;
        }
        match self.shown.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => out.remark(format!("  and {more} more: /inbox")),
        }
    }

    /// Returns the id of the call or change with this number in the list.
    pub fn id(&self, number: usize) -> Result<&str, Error> {
        let found = number.checked_sub(1).and_then(|index| self.shown.get(index));
        found.map(String::as_str).ok_or_else(|| {
            let message = format!("no call or change with number {number} waits here");
            Error::failed("number_unknown", message).hinting("/inbox shows everything that waits for you")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_means_the_shown_entry() {
        let waiting = Waiting { shown: vec!["req_1".to_owned(), "chg_2".to_owned()] };
        assert_eq!((waiting.id(1).expect("shown"), waiting.id(2).expect("shown")), ("req_1", "chg_2"));
        for number in [0, 3] {
            let refused = waiting.id(number).expect_err("not shown").report().expect("reported");
            assert_eq!(refused.error.code, "number_unknown");
        }
    }
}
