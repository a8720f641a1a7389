//! The end of one turn because its person or an operator cancels it, or because its workspace is over its bound.
//!
//! Needs nothing from the sandbox, which may be busy or hostile: the record closes the turn first. See
//! [`crate::turns::turn::Close`].

use crate::channels::agent_messages::answer;
use crate::gateway::questions;
use crate::gateway::requests;
use crate::registry::quota::workspace::Over;
use crate::registry::{Person, Role};
use crate::runtime::accept;
use crate::runtime::actor::Actor;
use crate::runtime::command::Cancelled;
use crate::sessions::store;
use crate::turns::turn::TurnEnd;
use crate::turns::turn::{self, Close};
use ironclaw_contract::ids::{PersonId, SessionId};
use ironclaw_ledger::Entry;
use ironclaw_operator::{DenialCode, LedgerEvent};
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The notice in place of an answer.
const NOTICE: &str = "This was cancelled before there was an answer. Completed work is kept.";

impl Actor {
    /// Cancels a turn and replies to the requester. Returns whether the turn was open.
    pub(crate) async fn cancel(
        &self,
        by: Person,
        done: oneshot::Sender<Result<Cancelled, Refusal>>,
    ) -> Result<bool, Error> {
        let cancelled = match self.close_cancelled(by).await {
            Ok(cancelled) => Ok(cancelled),
            Err(Denied::Refused(refusal)) => Err(refusal),
            Err(Denied::Failed(error)) => return Err(error),
        };
        let running = cancelled.as_ref().is_ok_and(|cancelled| cancelled.running);
        // The requester may have given up waiting.
        let _ = done.send(cancelled);
        Ok(running)
    }

    /// Closes the open turn, or else the next one, with a notice. Sends nothing yet.
    ///
    /// # Errors
    /// Refuses a person who is neither the principal of the turn nor an operator, and a session with nothing to cancel.
    async fn close_cancelled(&self, by: Person) -> Result<Cancelled, Denied<Error>> {
        let (turns, gateway, id) =
            (Arc::clone(&self.runtime.turns), Arc::clone(&self.runtime.outbound.gateway), self.id);
        self.state()
            .decide(move |tx| {
                let session = store::find(tx, id)?.ok_or_else(|| nothing(id))?;
                let open = turn::open_of(tx, id)?;
                let running = open.is_some();
                let principal = match &open {
                    Some(open) => Some(open.principal.clone()),
                    None => turn::choose(&turn::waiting(tx, id)?).first().map(|first| first.principal.clone()),
                };
                if !may_cancel(&by, &principal.ok_or_else(|| nothing(id))?) {
                    let words = format!(
                        "the turn of {id} belongs to another person: that person, an admin or the owner can cancel it"
                    );
                    return Err(Refusal::new(DenialCode::Forbidden, words).into());
                }
                let cancelled = match &open {
                    Some(open) => turn::newest_message(tx, open.id).map(Some)?,
                    None => turn::choose(&turn::waiting(tx, id)?).first().map(|first| first.id),
                };
                if let Some(message) = cancelled {
                    requests::end_of_task(tx, &gateway, id, message, "its turn was cancelled")?;
                }
                let open = match open {
                    Some(open) => open,
                    None => {
                        open_next(tx, id, &turns.config())?;
                        let opened = turn::open_of(tx, id)?;
                        opened
                            .ok_or_else(|| ironclaw_state::Error::Stored(format!("{id}: its next turn did not open")))?
                    }
                };
                let messages = turn::messages_of(tx, open.id)?;
                questions::end_of_turn(tx, &gateway, &open)?;
                let key = session.content_key(&turns.record.wrapping)?;
                accept::close_as(
                    tx,
                    &turns.record,
                    &session,
                    &key,
                    &open,
                    NOTICE,
                    Close::Cancelled,
                    TurnEnd::Cancelled,
                )?;
                let entry = Entry::new(LedgerEvent::TurnCancelled).session(id).turn(open.id);
                entry.with("by", by.id).append(tx)?;
                Ok(Cancelled { turn: open.id, messages, running })
            })
            .await
    }

    /// Closes the open turn, or else the next one, with a notice about the full workspace. Sends nothing yet.
    pub(crate) async fn end_over_bound(&self, over: Over) -> Result<(), Error> {
        let (turns, workspaces, id) = (Arc::clone(&self.runtime.turns), Arc::clone(&self.runtime.workspaces), self.id);
        let used = workspaces.count(id).await;
        self.state()
            .write(move |tx| {
                let Some(session) = store::find(tx, id)? else { return Ok::<_, Error>(()) };
                if turn::open_of(tx, id)?.is_none() {
                    open_next(tx, id, &turns.config())?;
                }
                let Some(open) = turn::open_of(tx, id)? else { return Ok(()) };
                let key = session.content_key(&turns.record.wrapping)?;
                let text = over.notice(&workspaces.settings.now().quota, used, id);
                accept::close_as(tx, &turns.record, &session, &key, &open, &text, Close::Cancelled, over.end())?;
                Entry::new(LedgerEvent::WorkspaceOver)
                    .session(id)
                    .turn(open.id)
                    .with("limit", over.code())
                    .append(tx)?;
                Ok(())
            })
            .await
    }
}

fn nothing(session: SessionId) -> Refusal {
    Refusal::new(
        DenialCode::TurnNone,
        format!("there is nothing to cancel in {session}: no turn is open and no message waits"),
    )
}

/// Returns whether a person may cancel a turn: its principal, admins and owners may.
fn may_cancel(by: &Person, principal: &str) -> bool {
    match by.role {
        Role::Owner | Role::Admin => true,
        Role::Member => principal.parse::<PersonId>().is_ok_and(|principal| principal == by.id),
    }
}

/// Opens the next turn, with the receipts of the answers of agents that it takes.
fn open_next(tx: &mut WriteTx<'_>, session: SessionId, config: &turn::Config) -> Result<(), ironclaw_state::Error> {
    if let Some(opened) = turn::open_next(tx, session, config)? {
        answer::receive(tx, &opened.messages)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_cancels_their_own_turn_and_no_other() {
        let person = |role| Person { id: PersonId::new(), name: "p".into(), role, created_at: 0 };
        let member = person(Role::Member);
        assert!(may_cancel(&member, &member.id.to_string()));
        assert!(!may_cancel(&member, &PersonId::new().to_string()));
        assert!(may_cancel(&person(Role::Admin), "another") && may_cancel(&person(Role::Owner), "another"));
    }
}
