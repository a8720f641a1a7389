//! Several calls of one output on one page, which one decision of the person is about.
//!
//! Never decides on a call that the page does not show. The person can always decide on each call by itself.

use super::{OUTCOME_TIMEOUT, outcome, read};
use crate::client::Client;
use crate::commands::review::{self, Choice, Subject, Words};
use crate::failure::Error;
use crate::output::Output;
use ironclaw_operator::{DenialCode, Waiting, WaitingId, WaitingTogether, routes};

/// Reads the page of the calls that wait together with this one; `None` if it waits alone.
pub async fn page(client: &Client, id: WaitingId) -> Result<Option<WaitingTogether>, Error> {
    match client.call(routes::WAITING_TOGETHER, [&id]).await {
        Ok(page) => Ok(Some(page)),
        Err(Error::Refused(refused)) if refused.error.code == DenialCode::RequestAlone.name() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Asks about the calls of a page. So many lines stay `above` it.
pub async fn ask(out: Output, page: &WaitingTogether, words: Words, above: usize) -> Result<Choice, Error> {
    review::ask(out, &Subject::from(page), words, above).await
}

/// Waits for the outcome of each call of a page.
pub async fn settled(client: &Client, page: &WaitingTogether) -> Result<Vec<Waiting>, Error> {
    let mut ended = Vec::new();
    for call in &page.calls {
        ended.push(super::settled(client, read(client, (*call).into()).await?, OUTCOME_TIMEOUT).await?);
    }
    Ok(ended)
}

/// Prints the outcome of each call; a call without its effect is a failure, which comes last.
pub fn outcomes(out: Output, ended: &[Waiting]) -> Result<(), Error> {
    let mut failed = Ok(());
    for call in ended {
        let printed = outcome(out, call);
        failed = failed.and(printed);
    }
    failed
}
