//! Tells the people who can decide on a call that it waits, or that its request expires soon.
//!
//! Decides nothing, and sends nothing itself. See [`crate::channels::notifications`].

use super::decide;
use crate::channels::notifications::{self, About, Notification};
use crate::registry;
use crate::registry::policy::Policy;
use ironclaw_state::{Error, WriteTx};
use ironclaw_store::tables::requests::{self, Row};

/// The bound on requests about which one pass tells people.
const AT_ONCE_MAX: usize = 64;

/// Tells everyone who can remove a reason of a request.
pub(super) fn notify(tx: &mut WriteTx<'_>, policy: &Policy, row: &Row, about: About) -> Result<(), Error> {
    let now = tx.wall();
    for person in registry::people(tx)? {
        if decide::may_decide(policy, &person, row)? {
            notifications::add(tx, person.id, Notification::new(about, row.id), now)?;
        }
    }
    Ok(())
}

/// Tells people about the requests that expire soon, once for each request.
pub fn expires_soon(tx: &mut WriteTx<'_>, policy: &Policy) -> Result<(), Error> {
    let due = requests::to_remind(tx, tx.wall(), AT_ONCE_MAX)?;
    for row in due {
        requests::mark_reminded(tx, row.id)?;
        notify(tx, policy, &row, About::RequestExpires)?;
    }
    Ok(())
}
