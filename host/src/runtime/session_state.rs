//! Changes of a session's state: parking, quarantine, release, removal. A notice informs the person.
//!
//! Never repeats a stranger's text in the host's voice: the notice and the ledger have the host's own words. See
//! [`crate::sessions::store`].

use crate::channels::notifications::{self, About, Notification};
use crate::channels::outbound::delivery;
use crate::gateway::waiting::{self, Scope};
use crate::runtime::accept;
use crate::runtime::actor::Actor;
use crate::sessions::files::versions::Store;
use crate::sessions::store::{self, FailureReason, Session, SessionState};
use crate::turns::turn::TurnEnd;
use crate::turns::{memories, turn};
use ironclaw_contract::ids::PersonId;
use ironclaw_state::failpoint;
use ironclaw_state::home::remove_tree;
use ironclaw_store::error::Error;
use std::sync::Arc;

impl Actor {
    /// Quarantines a session that broke the contract.
    pub(crate) async fn quarantine(&mut self, why: &FailureReason) -> Result<(), Error> {
        tracing::error!(session = %self.id, why = why.words, "quarantined");
        let text = format!(
            "I was stopped: my process broke its contract with the host ({}). A person must check this: `ironctl session release {}`.",
            why.words, self.id
        );
        self.halt(SessionState::Quarantined, why, text).await
    }

    /// Parks a session that failed too often.
    pub(crate) async fn park(&mut self, failures: u32, why: &FailureReason) -> Result<(), Error> {
        tracing::error!(session = %self.id, failures, why = why.words, "parked");
        let text = format!(
            "I was parked: my process failed {failures} times in a row ({}). When the cause is fixed: `ironctl session release {}`.",
            why.words, self.id
        );
        self.halt(SessionState::Parked, why, text).await
    }

    async fn halt(&mut self, standing: SessionState, why: &FailureReason, text: String) -> Result<(), Error> {
        let (turns, id, why) = (Arc::clone(&self.runtime.turns), self.id, why.clone());
        let halt = self.state().write(move |tx| {
            store::set_session_state(tx, id, standing, Some(&why), None)?;
            let Some(session) = store::find(tx, id)? else { return Ok::<_, Error>(()) };
            let (incident, now) = (Notification::new(About::SessionIncident, id), tx.wall());
            notifications::add_for_operators_and(tx, session.person, &incident, now)?;
            // The wrapped keys may be damaged. Without the content key there is no notice, but the state and its reason are
            // still recorded.
            match (session.content_key(&turns.record.wrapping), turn::open_of(tx, id)?) {
                (Ok(key), Some(open)) => {
                    accept::close_with_notice(tx, &turns.record, &session, &key, &open, &text, TurnEnd::Halted)
                        .map(drop)
                }
                (Ok(key), None) => {
                    Ok(delivery::notify(tx, &session, None, &text, &key, &turns.record.sealer).map(drop)?)
                }
                (Err(_), Some(open)) => Ok(turn::close(tx, &open, turn::Close::Requeued, TurnEnd::Halted).map(drop)?),
                (Err(_), None) => Ok(()),
            }
        });
        halt.await?;
        self.deliver().await
    }

    /// Releases a parked or quarantined session. The outbound queue of a quarantined sandbox is moved aside and never opened again.
    pub(crate) async fn release(&mut self, session: &Session, by: PersonId) -> Result<(), String> {
        match session.standing {
            SessionState::Active | SessionState::Removed => {
                return Err(format!("{} is neither parked nor quarantined", session.id));
            }
            SessionState::Quarantined => {
                let out = self.runtime.jails.home.session(session.id).outbound();
                let aside = (0..u32::MAX).map(|n| out.with_file_name(format!("out.quarantined-{n}")));
                let aside = aside.into_iter().find(|path| path.symlink_metadata().is_err());
                if let Some(aside) = aside.filter(|_| out.symlink_metadata().is_ok()) {
                    std::fs::rename(&out, &aside)
                        .map_err(|error| format!("cannot move {} aside: {error}", out.display()))?;
                }
            }
            SessionState::Parked => {}
        }
        let id = self.id;
        let release = self.state().write(move |tx| {
            notifications::withdraw(tx, id)?;
            Ok::<_, Error>(store::set_session_state(tx, id, SessionState::Active, None, Some(by))?)
        });
        release.await.map_err(|error| error.to_string())
    }

    /// Erases a session: first its keys and rows, then the write-ahead log with their old content, then its files.
    pub(crate) async fn remove(&mut self, session: &Session, by: PersonId) -> Result<(), String> {
        let id = self.id;
        // A file that a person puts there at this moment would remain.
        let _writing = self.runtime.workspaces.writing.lock().await;
        let (dispatch, erased) = (Arc::clone(&self.runtime.outbound.dispatch), session.clone());
        let erase = self.state().write(move |tx| {
            dispatch.end_of_session(tx, &erased)?;
            memories::erase_of_session(tx, id)?;
            for object in waiting::erase(tx, Scope::Session(id), "the conversation was removed", None)? {
                notifications::withdraw(tx, object)?;
            }
            store::erase(tx, id, by)?;
            Ok::<_, Error>(notifications::withdraw(tx, id)?)
        });
        erase.await.map_err(|error| error.to_string())?;
        failpoint::reach("erase");
        self.state().checkpoint().await.map_err(|error| error.to_string())?;
        self.runtime.turns.record.forget_snapshots().await.map_err(|error| error.to_string())?;
        let place = self.runtime.jails.home.session(session.id).path().to_owned();
        let run = self.runtime.jails.run_directory(session);
        let shown = place.display().to_string();
        let versions = self.runtime.jails.home.session(session.id);
        let gone = tokio::task::spawn_blocking(move || {
            // Copies in flight end first; a later one finds no directory.
            let _none_in_flight = versions.versions().is_dir().then(|| Store::open(&versions)).transpose()?;
            remove_tree(&run).and_then(|()| remove_tree(&place))
        });
        let gone = gone.await;
        match gone {
            Ok(Ok(())) => {
                let give = self.state().write(move |tx| store::give_uid_back(tx, id));
                give.await.map_err(|error| error.to_string())
            }
            Ok(Err(error)) => Err(format!("{id} is erased, but {shown} remains: {error}")),
            Err(_) => Err(format!("{id} is erased, but {shown} remains")),
        }
    }
}
