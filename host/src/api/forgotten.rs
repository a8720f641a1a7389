//! The outcome of a message whose row was removed by retention, read from the ledger.
//!
//! Answers only the person on whose behalf the message was recorded. See `ironclaw_ledger::forgotten`.

use super::handler::{Answer, Api};
use crate::registry::Person;
use crate::sessions::store::{self, SessionState};
use ironclaw_contract::ids::{MessageId, PersonId};
use ironclaw_contract::seam::message::Status;
use ironclaw_ledger::forgotten;
use ironclaw_operator::{LedgerEvent, MessageView, Receipt, ShownReply, Why};
use ironclaw_store::error::Error;
use tokio::sync::Semaphore;

/// One search of the archives at a time: each reads whole files, and any person may ask for any id.
static SEARCH: Semaphore = Semaphore::const_new(1);

/// Returns the outcome that the ledger has for a message without a row; `None` if it is not this person's.
pub async fn why(api: &Api, person: &Person, message: &str) -> Result<Option<Why>, Answer> {
    let Ok(id) = message.parse::<MessageId>() else { return Ok(None) };
    let (live, now) = api.state().read(move |tx| Ok::<_, Error>((forgotten::find_live(tx, id)?, tx.now()))).await?;
    let found = match live {
        Some(found) => Some(found),
        None => {
            let _one = SEARCH.acquire().await.expect("never closed");
            let home = api.about.home.clone();
            tokio::task::spawn_blocking(move || forgotten::find_archived(&home, id, now)).await.expect("no panic")
        }
    };
    let is_theirs = |of: &str| of.parse::<PersonId>().is_ok_and(|of| of == person.id);
    let Some(mut found) = found.filter(|found| is_theirs(&found.person)) else { return Ok(None) };
    let complete = api.state().read(move |tx| {
        // A removed session has no outcome for its messages.
        let session = store::find(tx, found.session)?.filter(|session| session.standing != SessionState::Removed);
        found.add_live(tx, id)?;
        Ok::<_, Error>(session.map(|_| found))
    });
    let Some(found) = complete.await? else { return Ok(None) };
    let is_delivered = found.stages.iter().any(|stage| stage.stage == LedgerEvent::DeliveryReceived.name());
    let (status, receipt) =
        if is_delivered { (Status::Delivered, Receipt::Received) } else { (Status::Completed, Receipt::Dropped) };
    let message = MessageView {
        calls: Vec::new(),
        message_id: id,
        session_id: found.session,
        turn_id: None,
        status,
        reply: None,
        notice: false,
        receipt,
        reason: None,
        shown: ShownReply::default(),
        sources: None,
    };
    let summary = "The host no longer keeps its text. The ledger says what became of it.".to_owned();
    Ok(Some(Why {
        has_written_call: false,
        message,
        stages: found.stages,
        progress: Vec::new(),
        failure: None,
        words: Vec::new(),
        occurrence: None,
        chain: Vec::new(),
        summary,
    }))
}
