//! Applies what is approved and ends what is overdue, until the daemon ends.
//!
//! Holds no rule of its own; a restart finds everything in the record. Next: `gateway::apply`.

use super::submit::notify;
use crate::gateway::apply::{self, Applied};
use crate::gateway::decide;
use crate::gateway::kinds::{self, FETCHING, Preparation, Prepared};
use crate::gateway::store::{self, Row, Status};
use crate::packages;
use crate::pipeline::actors::Unsent;
use crate::pipeline::at_once::after_erasing;
use crate::pipeline::command::Command;
use crate::pipeline::launch::{self, LAUNCHER_END_TIME};
use crate::pipeline::{Core, Error, Pipeline};
use crate::refusal::Denied;
use crate::refusal::Refusal;
use crate::session::store as sessions;
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::Packages;
use ironclaw_state::Tx;
use ironclaw_state::failpoint;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Whoever waits for the next end of a change looks again after this long at the latest.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);

/// Where more waits than is looked at in one go, or is over in a moment, it is looked at again after this long.
const SOON: Duration = Duration::from_millis(50);

/// After an error of the host itself, what is approved is tried again after this long.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// Applies what is approved.
#[derive(Default)]
pub struct Changes {
    bell: Notify,
    /// What is being applied now. One change of packages of an agent at a time, because two would make its layer at once, and one of all
    /// other kinds, which never waits for a fetch.
    busy: Mutex<HashSet<Place>>,
}

impl Changes {
    /// Has the record looked at.
    pub fn ring(&self) {
        self.bell.notify_one();
    }

    fn take(&self, place: Place) -> bool {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner).insert(place)
    }
}

/// Where a change waits for those before it: its agent, and whether it fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    agent: Option<AgentId>,
    fetches: bool,
}

impl Place {
    fn of(row: &Row) -> Self {
        Self { agent: row.agent, fetches: row.kind == FETCHING }
    }
}

/// That a change of somebody is being applied. Whatever ends that, the next look finds the one behind it.
struct Busy<'a> {
    core: &'a Core,
    place: Place,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.core.changes.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.place);
        // What panicked would do so again at once; it is looked at with the next that rings.
        if !std::thread::panicking() {
            self.core.changes.ring();
        }
    }
}

impl Pipeline {
    /// Applies what is approved and ends what is overdue, until the daemon ends.
    pub async fn apply_changes(self) {
        // The policy may be another one since, and is none while the host runs.
        let core = Arc::clone(&self.core);
        let recount = self.core.state.write(move |tx| Ok::<_, Error>(decide::recount(tx, &core.bench())?));
        if let Err(error) = recount.await {
            tracing::error!(%error, "approvals from before the start were not looked at; they are when they are used");
        }
        loop {
            let wait = match self.process_due().await {
                Ok(wait) => wait,
                Err(Error::State(ironclaw_state::Error::Closed)) => return,
                Err(error) => {
                    tracing::error!(%error, "approved changes wait a moment after an error of the host");
                    RETRY_AFTER
                }
            };
            // A bell that rang meanwhile is heard at once.
            let _ = tokio::time::timeout(wait, self.core.changes.bell.notified()).await;
        }
    }

    async fn process_due(&self) -> Result<Duration, Error> {
        let look = |tx: &mut Tx<'_>| {
            let next = store::next_end(tx)?.map(|at| at - tx.wall());
            Ok::<_, Error>((store::expired(tx)?, store::approved(tx)?, next))
        };
        let (expired, approved, next) = self.core.state.read(look).await?;
        let ended = expired.len();
        for row in expired {
            let core = Arc::clone(&self.core);
            let end = self.core.state.write(move |tx| {
                if let Some(row) = store::active(tx, row.id)? {
                    let row = store::end(tx, &row, Status::Expired, None, decide::OVERDUE)?;
                    notify(tx, &core, &row)?;
                }
                Ok::<_, Error>(())
            });
            end.await?;
        }
        if !self.core.latch.is_shut() {
            for row in approved {
                if self.core.changes.take(Place::of(&row)) {
                    let pipeline = self.clone();
                    tokio::spawn(async move { pipeline.run_approved(row).await });
                }
            }
        }
        // Each change that was being applied has the record looked at again when it is done.
        Ok(match next.map(|ms| u64::try_from(ms).unwrap_or(0)) {
            None => LOOK_AGAIN,
            Some(0) if ended > 0 => SOON,
            // What is over and was not ended is nothing that this version reads.
            Some(0) => RETRY_AFTER,
            Some(ms) => Duration::from_millis(ms + 1).max(SOON).min(LOOK_AGAIN),
        })
    }

    /// Applies one approved change; what fails on our side is tried again later.
    async fn run_approved(&self, row: Row) {
        let id = row.id;
        let busy = Busy { core: &self.core, place: Place::of(&row) };
        if let Err(error) = self.apply_change(row).await
            && !matches!(error, Error::State(ironclaw_state::Error::Closed))
        {
            tracing::error!(change = %id, %error, "an approved change was not applied; it is tried again");
            tokio::time::sleep(RETRY_AFTER).await;
        }
        drop(busy);
    }

    async fn apply_change(&self, row: Row) -> Result<(), Error> {
        let prepared = tokio::select! {
            biased;
            // What was approved stays approved, and begins anew once everything goes on. A client is ended with its future.
            () = self.core.latch.shut() => return Ok(()),
            prepared = self.prepare(&row) => match prepared {
                Ok(prepared) => prepared,
                Err(Denied::Failed(error)) => return Err(error),
                Err(Denied::Refused(refusal)) => {
                    // A client whose launcher died looks like one that failed; the host ends, and the next one begins anew.
                    if tokio::time::timeout(LAUNCHER_END_TIME, self.core.launcher.died()).await.is_ok() {
                        std::future::pending::<()>().await;
                    }
                    return self.fail(&row, &refusal).await;
                }
            },
        };
        if self.core.latch.is_shut() {
            return Ok(());
        }
        failpoint::reach("change_prepared");
        let is_erased = prepared == Prepared::ConversationsErased;
        if let Some(refusal) = self.commit(&row, prepared).await? {
            let refusal = if is_erased { after_erasing(refusal) } else { refusal };
            return self.fail(&row, &refusal).await;
        }
        failpoint::reach("change_applied");
        tracing::info!(change = %row.id, kind = %row.kind, "applied");
        // They see what was set only when they begin anew.
        if kinds::begins_anew(row.kind)
            && let Some(agent) = row.concerned()
            && let Err(error) = self.respawn(agent).await
        {
            tracing::error!(%agent, %error, "applied, and its sessions did not begin anew; `ironctl session stop` ends them");
        }
        Ok(())
    }

    /// Applies a change in one transaction. Returns why it could not be done.
    async fn commit(&self, row: &Row, prepared: Prepared) -> Result<Option<Refusal>, Error> {
        let (core, of) = (Arc::clone(&self.core), row.clone());
        // A refusal to apply is rolled back, because a part may be written: nothing of it stays, and its approvals are not used.
        let applied = self
            .core
            .state
            .write(move |tx| {
                let approved = match decide::approved(tx, &core.bench(), &of) {
                    Ok(approved) => approved,
                    // This refusal commits: the ledger keeps what was found out about its approvals.
                    Err(Denied::Refused(refusal)) => return Ok(Some(refusal)),
                    Err(Denied::Failed(error)) => return Err(Error::from(error).into()),
                };
                let Applied { outcome } = apply::apply(tx, &approved, &prepared)?;
                let row = store::end(tx, &of, Status::Applied, None, &outcome)?;
                notify(tx, &core, &row)?;
                for superseded in decide::supersede(tx, &core.bench(), &row).map_err(Error::from)? {
                    notify(tx, &core, &superseded)?;
                }
                Ok::<_, Denied<Error>>(None)
            })
            .await;
        match applied {
            Ok(refusal) => Ok(refusal),
            Err(Denied::Refused(refusal)) => Ok(Some(refusal)),
            Err(Denied::Failed(error)) => Err(error),
        }
    }

    /// What has to be done before the transaction: software is fetched, which takes a network and time and changes nothing yet; the
    /// conversations of an agent that is removed are erased, if the change is still approved.
    async fn prepare(&self, row: &Row) -> Result<Prepared, Denied<Error>> {
        let Some(agent) = row.agent else { return Ok(Prepared::Nothing) };
        match kinds::preparation(&row.change) {
            Preparation::Nothing => Ok(Prepared::Nothing),
            Preparation::Layer(wanted) => self.fetch(row, agent, wanted).await,
            Preparation::ConversationsErased => {
                self.remove_sessions_approved(row, agent).await?;
                Ok(Prepared::ConversationsErased)
            }
        }
    }

    async fn fetch(&self, row: &Row, agent: AgentId, wanted: &Packages) -> Result<Prepared, Denied<Error>> {
        let core = &self.core;
        let means = packages::Means {
            launcher: core.launcher.clone(),
            home: core.home.clone(),
            config: core.grounds.packages.clone(),
            identity: launch::fetcher(core),
        };
        tracing::info!(change = %row.id, "software is fetched");
        let made = packages::make(&means, agent, row.id, wanted).await;
        Ok(Prepared::Layer(made.map_err(packages::Error::refusal)?))
    }

    async fn fail(&self, row: &Row, refusal: &Refusal) -> Result<(), Error> {
        tracing::warn!(change = %row.id, code = %refusal.code, "an approved change was not applied");
        let (core, id, outcome) = (Arc::clone(&self.core), row.id, refusal.message.clone());
        let fail = self.core.state.write(move |tx| {
            if let Some(row) = store::active(tx, id)? {
                let row = store::end(tx, &row, Status::Failed, None, &outcome)?;
                notify(tx, &core, &row)?;
            }
            Ok::<_, Error>(())
        });
        fail.await?;
        failpoint::reach("change_failed");
        Ok(())
    }

    /// Has the awake sessions of an agent begin anew, each once its open turn is over: only then do they see what they have.
    pub async fn respawn(&self, agent: AgentId) -> Result<(), Error> {
        for session in self.core.state.read(move |tx| sessions::of_agent(tx, agent)).await? {
            let session = session.id;
            while self.core.actors.shown(session).is_some() {
                match self.send(session, Command::Respawn) {
                    Ok(()) | Err(Unsent::Stopping) => break,
                    // Only waits for room, as whoever asks an actor for anything.
                    Err(Unsent::Full(_, commands)) => drop(commands.reserve().await),
                }
            }
        }
        Ok(())
    }
}
