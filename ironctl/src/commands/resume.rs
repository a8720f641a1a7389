//! `ironctl resume`: ends the emergency stop of `ironctl panic`.
//!
//! Never starts a host. See [`crate::commands::panic`].

use crate::at::At;
use crate::failure::Error;
use ironclaw_operator::routes;

/// Ends the emergency stop; succeeds if there is none.
pub async fn run(at: &At) -> Result<(), Error> {
    let resumed = at.client()?.call(routes::RESUME, []).await?;
    at.out.json(&resumed)?;
    at.out.line(if resumed.resumed {
        "the emergency stop has ended; waiting messages are answered"
    } else {
        "nothing was stopped"
    })
}
