//! `ironctl resume`: lets everything go on after `ironctl panic`.
//!
//! Never starts a host. See [`crate::commands::panic`].

use super::At;
use crate::failure::Error;

/// Lets everything go on; nothing that was stopped is fine too.
pub async fn run(at: &At) -> Result<(), Error> {
    let resumed = at.client()?.resume().await?;
    at.out.json(&resumed)?;
    at.out.line(if resumed.resumed {
        "everything goes on; messages that waited are answered"
    } else {
        "nothing was stopped"
    })
}
