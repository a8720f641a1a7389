//! Ends one turn because its person, or whoever runs the host, does not want it any more.
//!
//! Asks nothing of the sandbox, which may be busy or hostile: the turn is over in the record first. Next: `turn::Close`.

use super::actor::Actor;
use super::command::Cancelled;
use super::{Error, accept};
use crate::ledger::Entry;
use crate::refusal::Refusal;
use crate::registry::{Person, Role};
use crate::session::store;
use crate::turn::{self, Close};
use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use std::sync::Arc;

/// What the person reads in place of an answer.
const NOTICE: &str = "This was cancelled before there was an answer. What was done so far stays done.";

impl Actor {
    /// Closes the open turn, or else the one that would be next, with a notice. Sends nothing yet.
    ///
    /// # Errors
    /// The inner error refuses who is neither its person nor an operator, and when there is nothing to cancel.
    pub(super) async fn cancel(&self, by: Person) -> Result<Result<Cancelled, Refusal>, Error> {
        let (core, id) = (Arc::clone(&self.core), self.id);
        self.core
            .state
            .write(move |tx| {
                let Some(session) = store::find(tx, id)? else { return Ok::<_, Error>(Err(nothing(&id.to_string()))) };
                let open = turn::open_of(tx, id)?;
                let running = open.is_some();
                let principal = match &open {
                    Some(open) => Some(open.principal.clone()),
                    None => turn::choose(&turn::waiting(tx, id)?).first().map(|first| first.principal.clone()),
                };
                let Some(principal) = principal else { return Ok(Err(nothing(&id.to_string()))) };
                if !may(&by, &principal) {
                    let words =
                        format!("the turn of {id} is somebody else's: its person, an admin or the owner cancels it");
                    return Ok(Err(Refusal::new(DenialCode::Forbidden, words)));
                }
                let open = match open {
                    Some(open) => open,
                    None => {
                        turn::open_next(tx, id, &core.config.turn)?;
                        let opened = turn::open_of(tx, id)?;
                        opened
                            .ok_or_else(|| crate::state::Error::Stored(format!("{id}: its next turn did not open")))?
                    }
                };
                let messages = turn::messages_of(tx, open.id)?;
                let key = session.content_key(&core.wrapping).map_err(crate::items::BodyError::from)?;
                accept::close_as(tx, &core, &session, &key, &open, NOTICE, Close::Cancelled, "cancelled")?;
                let entry = Entry::new(LedgerEvent::TurnCancelled).session(id).turn(open.id);
                entry.with("by", by.id).append(tx)?;
                Ok(Ok(Cancelled { turn: open.id, messages, running }))
            })
            .await
    }
}

fn nothing(session: &str) -> Refusal {
    Refusal::new(
        DenialCode::TurnNone,
        format!("there is nothing to cancel in {session}: no turn is open and no message waits"),
    )
}

/// Its own person, and whoever runs agents.
fn may(by: &Person, principal: &str) -> bool {
    match by.role {
        Role::Owner | Role::Admin => true,
        Role::Member => by.id.to_string() == principal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::ids::PersonId;

    #[test]
    fn a_member_cancels_their_own_turn_and_no_other() {
        let person = |role| Person { id: PersonId::new(), name: "p".into(), role, created_at: 0 };
        let member = person(Role::Member);
        assert!(may(&member, &member.id.to_string()));
        assert!(!may(&member, &PersonId::new().to_string()));
        assert!(may(&person(Role::Admin), "anybody") && may(&person(Role::Owner), "anybody"));
    }
}
