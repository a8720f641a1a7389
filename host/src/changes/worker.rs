//! Applies what is approved and ends what is overdue, until the host stops.
//!
//! Holds no rule of its own; a restart finds everything in the record. Next: `gateway::apply`; [`crate::worker`] for the loop.

use crate::changes::Changes;
use crate::changes::at_once::after_erasing;
use crate::error::Error;
use crate::gateway::apply::{self, Applied};
use crate::gateway::decide;
use crate::gateway::kinds::{self, FETCHING, Preparation, Prepared};
use crate::gateway::proposals::notify;
use crate::gateway::store::{self, Row, Status};
use crate::latch::Latch;
use crate::packages;
use crate::refusal::{Denied, Refusal};
use crate::runtime::launch::{Jails, LAUNCHER_END_TIME};
use crate::runtime::sessions::Sessions;
use crate::shutdown::Shutdown;
use crate::worker::{self, Due, Wait};
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::Packages;
use ironclaw_state::failpoint;
use ironclaw_state::{ReadTx, State};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The wait where more is overdue than one look ends, and the least wait for the next end of a change.
const SOON: Duration = Duration::from_millis(50);

/// The wait before what is approved is tried again after an error of the host.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// The worker that applies what is approved.
pub struct ChangeWorker {
    changes: Arc<Changes>,
    sessions: Sessions,
    jails: Arc<Jails>,
    latch: Arc<Latch>,
    /// Changes that are being applied. An agent has one change of packages at a time, because two would make its layer at once, and one
    /// of all other kinds, which never waits for a fetch.
    busy: Mutex<HashSet<Place>>,
}

/// The line in which a change waits for those before it: its agent, and whether it fetches.
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

/// The mark of a change that is being applied. Its drop frees the place, so the next look finds the change behind it.
struct Busy<'a> {
    worker: &'a ChangeWorker,
    place: Place,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.worker.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.place);
        // A change that panicked would do so again at once; it waits for the next bell.
        if !std::thread::panicking() {
            self.worker.changes.ring();
        }
    }
}

impl ChangeWorker {
    /// Makes a worker that has applied nothing.
    pub fn new(changes: Arc<Changes>, sessions: Sessions, jails: Arc<Jails>, latch: Arc<Latch>) -> Self {
        Self { changes, sessions, jails, latch, busy: Mutex::default() }
    }

    /// Applies what is approved and ends what is overdue, until the record is closed: an operator's stop ends the servers at once, and
    /// a change that is approved while the sessions end is applied all the same.
    pub async fn run(self) {
        // The policy may have changed since the last start; while the host runs it does not.
        let changes = Arc::clone(&self.changes);
        let recount = self.state().write(move |tx| Ok::<_, Error>(decide::recount(tx, &changes.bench())?));
        if let Err(error) = recount.await {
            tracing::error!(%error, "approvals from before the start were not looked at; they are when they are used");
        }
        let changes = Arc::clone(&self.changes);
        worker::run(Arc::new(self), &changes.bell, &Shutdown::default()).await;
    }
}

impl Due for Arc<ChangeWorker> {
    const FAILED: &'static str = "approved changes wait a moment after an error of the host";
    const RETRY_AFTER: Duration = RETRY_AFTER;
    const LOOK_AGAIN: Duration = Duration::from_secs(3600);

    async fn process_due(&mut self) -> Result<Wait, Error> {
        let look = |tx: &ReadTx<'_>| {
            let next = store::next_end(tx)?.map(|at| at - tx.wall());
            Ok::<_, Error>((store::expired(tx)?, store::approved(tx)?, next))
        };
        let (expired, approved, next) = self.state().read(look).await?;
        let ended = expired.len();
        for row in expired {
            let changes = Arc::clone(&self.changes);
            let end = self.state().write(move |tx| {
                if let Some(row) = store::active(tx, row.id)? {
                    let row = store::end(tx, &row, Status::Expired, None, decide::OVERDUE)?;
                    notify(tx, changes.record(), &row)?;
                }
                Ok::<_, Error>(())
            });
            end.await?;
        }
        if !self.latch.is_shut() {
            for row in approved {
                if self.take(Place::of(&row)) {
                    let worker = Arc::clone(self);
                    tokio::spawn(async move { worker.run_approved(row).await });
                }
            }
        }
        // The end of each application rings, and the record is looked at again.
        Ok(Wait::AtMost(match next.map(|ms| u64::try_from(ms).unwrap_or(0)) {
            None => Self::LOOK_AGAIN,
            Some(0) if ended > 0 => SOON,
            // This version cannot read a change that is overdue and was not ended.
            Some(0) => RETRY_AFTER,
            Some(ms) => Duration::from_millis(ms + 1).max(SOON),
        }))
    }
}

impl ChangeWorker {
    /// Applies one approved change. After an error of the host it waits, and the next look tries again.
    async fn run_approved(&self, row: Row) {
        let id = row.id;
        let busy = Busy { worker: self, place: Place::of(&row) };
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
            // The change stays approved, and begins anew after the emergency stop. Its client ends with this future.
            () = self.latch.shut() => return Ok(()),
            prepared = self.prepare(&row) => match prepared {
                Ok(prepared) => prepared,
                Err(Denied::Failed(error)) => return Err(error),
                Err(Denied::Refused(refusal)) => {
                    // A client whose launcher died looks like one that failed. The host ends, and its next start begins anew.
                    if tokio::time::timeout(LAUNCHER_END_TIME, self.jails.launcher.died()).await.is_ok() {
                        std::future::pending::<()>().await;
                    }
                    return self.fail(&row, &refusal).await;
                }
            },
        };
        if self.latch.is_shut() {
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
        // Sessions see the new setting only when they begin anew.
        if kinds::begins_anew(row.kind)
            && let Some(agent) = row.concerned()
            && let Err(error) = self.sessions.respawn(agent).await
        {
            tracing::error!(%agent, %error, "applied, and its sessions did not begin anew; `ironctl session stop` ends them");
        }
        Ok(())
    }

    /// Applies a change in one transaction. Returns why it could not be done.
    async fn commit(&self, row: &Row, prepared: Prepared) -> Result<Option<Refusal>, Error> {
        let (changes, of) = (Arc::clone(&self.changes), row.clone());
        // A refusal to apply is rolled back with all that the change wrote, so its approvals are not used.
        let applied = self
            .state()
            .write(move |tx| {
                let approved = match decide::approved(tx, &changes.bench(), &of) {
                    Ok(approved) => approved,
                    // This refusal commits, because the ledger keeps the finding about its approvals.
                    Err(Denied::Refused(refusal)) => return Ok(Some(refusal)),
                    Err(Denied::Failed(error)) => return Err(Error::from(error).into()),
                };
                let Applied { outcome } = apply::apply(tx, &approved, &prepared)?;
                let row = store::end(tx, &of, Status::Applied, None, &outcome)?;
                notify(tx, changes.record(), &row)?;
                for superseded in decide::supersede(tx, &changes.bench(), &row).map_err(Error::from)? {
                    notify(tx, changes.record(), &superseded)?;
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

    /// Does what a change needs before its transaction. Software is fetched, which takes time and a network and changes no setting. The
    /// conversations of an agent that is removed are erased, if the change is still approved.
    async fn prepare(&self, row: &Row) -> Result<Prepared, Denied<Error>> {
        let Some(agent) = row.agent else { return Ok(Prepared::Nothing) };
        match kinds::preparation(&row.change) {
            Preparation::Nothing => Ok(Prepared::Nothing),
            Preparation::Layer(wanted) => self.fetch(row, agent, wanted).await,
            Preparation::ConversationsErased => {
                self.changes.still_approved(row).await?;
                self.sessions.remove_of(agent, row.decided_by.unwrap_or_else(|| row.principal())).await?;
                Ok(Prepared::ConversationsErased)
            }
        }
    }

    async fn fetch(&self, row: &Row, agent: AgentId, wanted: &Packages) -> Result<Prepared, Denied<Error>> {
        let means = packages::FetchContext {
            launcher: self.jails.launcher.clone(),
            home: self.jails.home.clone(),
            config: self.changes.proposals.grounds.packages.clone(),
            identity: self.jails.fetcher(),
        };
        tracing::info!(change = %row.id, "software is fetched");
        let made = packages::make(&means, agent, row.id, wanted).await;
        Ok(Prepared::Layer(made.map_err(packages::Error::refusal)?))
    }

    async fn fail(&self, row: &Row, refusal: &Refusal) -> Result<(), Error> {
        tracing::warn!(change = %row.id, code = %refusal.code, "an approved change was not applied");
        let (changes, id, outcome) = (Arc::clone(&self.changes), row.id, refusal.message.clone());
        let fail = self.state().write(move |tx| {
            if let Some(row) = store::active(tx, id)? {
                let row = store::end(tx, &row, Status::Failed, None, &outcome)?;
                notify(tx, changes.record(), &row)?;
            }
            Ok::<_, Error>(())
        });
        fail.await?;
        failpoint::reach("change_failed");
        Ok(())
    }

    fn take(&self, place: Place) -> bool {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner).insert(place)
    }

    fn state(&self) -> &State {
        &self.changes.record().state
    }
}
