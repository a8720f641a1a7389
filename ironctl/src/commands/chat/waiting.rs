//! The changes of an agent that wait for the person at the prompt, with a number for each.
//!
//! A number means the same change until another list is shown. See [`crate::commands::inbox`], which opens one.

use crate::client::Client;
use crate::commands::{change, inbox};
use crate::failure::Error;
use crate::output::Output;
use ironclaw_contract::ids::ChangeId;

/// Changes in a list at the prompt.
const SHOWN_MAX: usize = 9;

/// The numbered changes that were shown last.
#[derive(Debug, Default)]
pub struct Waiting {
    shown: Vec<ChangeId>,
}

impl Waiting {
    /// Prints a numbered list of the changes of an agent if it differs from the last one, and only their number otherwise.
    ///
    /// Ignores a failed request, because the answer did arrive.
    pub async fn remind(&mut self, out: Output, client: &Client, agent: &str) -> Result<(), Error> {
        let Ok(found) = client.changes(None, Some(agent), change::LIST_MAX).await else { return Ok(()) };
        let ids: Vec<ChangeId> = found.changes.iter().map(|change| change.id).collect();
        let count = inbox::count(ids.len() as u64);
        if ids.is_empty() || ids == self.shown {
            self.shown = ids;
            return if self.shown.is_empty() { Ok(()) } else { out.remark(format!("{count}: /inbox 1")) };
        }
        self.shown = ids;
        out.remark(format!("{count}; /inbox NUMBER opens one:"))?;
        for (index, change) in found.changes.iter().enumerate().take(SHOWN_MAX) {
            let by = change::requester(&change.requested_by);
            out.remark(format!("  {}  {}, requested by {by}", index + 1, change.kind))?;
        }
        match self.shown.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => out.remark(format!("  and {more} more: /inbox")),
        }
    }

    /// Returns the change with this number in the list.
    pub fn id(&self, number: usize) -> Result<ChangeId, Error> {
        let found = number.checked_sub(1).and_then(|index| self.shown.get(index)).copied();
        found.ok_or_else(|| {
            let message = format!("no change with number {number} waits here");
            Error::failed("number_unknown", message).hinting("/inbox shows every change that waits for you")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_means_the_shown_change() {
        let ids: Vec<ChangeId> =
            (1..=2).map(|n| format!("chg_0000000000000000000000000{n}").parse().expect("an id")).collect();
        let waiting = Waiting { shown: ids.clone() };
        assert_eq!((waiting.id(1).expect("shown"), waiting.id(2).expect("shown")), (ids[0], ids[1]));
        for number in [0, 3] {
            let refused = waiting.id(number).expect_err("not shown").report().expect("reported");
            assert_eq!(refused.error.code, "number_unknown");
        }
    }
}
