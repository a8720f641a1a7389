//! A number for each call, question and change that waits for the person at the prompt and concerns the agent.
//!
//! A number means the same one until another list is shown. See [`crate::commands::inbox`], which opens one.

use crate::client::Client;
use crate::commands::inbox;
use crate::commands::waiting::words::{count_yours, in_a_line};
use crate::failure::Error;
use crate::output::Output;
use ironclaw_operator::WaitingId;

/// Entries of a list at the prompt.
const SHOWN_MAX: usize = 9;

/// The numbered ids that were shown last.
#[derive(Debug, Default)]
pub struct Numbers {
    shown: Vec<WaitingId>,
}

impl Numbers {
    /// Prints a numbered list of what waits if it differs from the last one, and only their number otherwise.
    ///
    /// Ignores a failed request, because the answer did arrive.
    pub async fn remind(&mut self, out: Output, client: &Client, agent: &str) -> Result<(), Error> {
        let Ok(found) = inbox::list_for_agent(client, agent).await else { return Ok(()) };
        let count = count_yours(&found);
        let found = inbox::folded(found);
        let ids: Vec<WaitingId> = found.iter().map(|entry| entry.id).collect();
        let is_known = ids == self.shown;
        self.shown = ids;
        let Some(count) = count else { return Ok(()) };
        if is_known {
            return out.remark(format!("{count}: /inbox 1"));
        }
        out.remark(format!("{count}; /inbox NUMBER opens one:"))?;
        for (index, entry) in found.iter().enumerate().take(SHOWN_MAX) {
            out.remark(format!("  {}  {}", index + 1, in_a_line(entry)))?;
        }
        match self.shown.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => out.remark(format!("  and {more} more: /inbox")),
        }
    }

    /// Returns the id with this number in the list.
    pub fn id(&self, number: usize) -> Result<WaitingId, Error> {
        let found = number.checked_sub(1).and_then(|index| self.shown.get(index));
        found.copied().ok_or_else(|| {
            let message = format!("nothing with number {number} waits here");
            Error::failed("number_unknown", message).hinting("/inbox shows everything that waits for you")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_means_the_shown_entry() {
        let [first, second] =
            ["req_00000000000000000000000001", "chg_00000000000000000000000002"].map(|id| id.parse().expect("an id"));
        let waiting = Numbers { shown: vec![first, second] };
        assert_eq!((waiting.id(1).expect("shown"), waiting.id(2).expect("shown")), (first, second));
        for number in [0, 3] {
            let refused = waiting.id(number).expect_err("not shown").report().expect("reported");
            assert_eq!(refused.error.code, "number_unknown");
        }
    }
}
