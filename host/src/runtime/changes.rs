//! The worker that applies approved changes, until the record is closed.
//!
//! Holds no rule of its own, and a restart finds all state in the record. See [`crate::gateway::apply`], and [`ironclaw_store::worker`] for the
//! loop.

use crate::gateway::changes::at_once::{finish, mention_erased_conversations};
use crate::gateway::decide;
use crate::gateway::kinds::{self, Preparation, Prepared};
use crate::gateway::waiting::{self, Ending, Gateway, Status};
use crate::reach::mcp::Servers;
use crate::reach::mcp_jail;
use crate::reach::packages::{self, Layer};
use crate::registry::latch::Latch;
use crate::runtime::launch::{Jails, LAUNCHER_END_TIME};
use crate::runtime::sessions::Sessions;
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::{Change, ChangeKind, Packages, Skill};
use ironclaw_operator::DenialCode;
use ironclaw_state::State;
use ironclaw_state::failpoint;
use ironclaw_state::home::LayerOwner;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use ironclaw_store::shutdown::Shutdown;
use ironclaw_store::tables::waiting::changes::{self as table, Row};
use ironclaw_store::worker::{self, Due, Wait};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The bound on changes that one pass reads.
const AT_ONCE_MAX: usize = 64;

/// The wait before a retry of an approved change after an error of the host.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// The worker that applies approved changes.
#[derive(Clone)]
pub struct ChangeWorker {
    gateway: Arc<Gateway>,
    sessions: Sessions,
    jails: Arc<Jails>,
    servers: Arc<Servers>,
    latch: Arc<Latch>,
    /// The lanes of the changes in progress. An agent has one lane for changes of packages, because two of them would make its layer at
    /// the same time. It has one lane for all other kinds, which never waits for a fetch.
    busy: Arc<Mutex<HashSet<Lane>>>,
}

/// A lane in which changes are applied one after the other: the agent, and whether the change fetches software.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Lane {
    agent: Option<AgentId>,
    fetches: bool,
}

impl Lane {
    fn from_row(row: &Row) -> Self {
        Self { agent: row.agent, fetches: kinds::fetches(&row.change) }
    }
}

/// The claim of a lane by a change in progress. Its drop frees the lane, so that the next pass finds the next change of the lane.
struct Busy<'a> {
    worker: &'a ChangeWorker,
    lane: Lane,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.worker.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.lane);
        // A change that panicked would panic again at once. It waits for the next bell.
        if !std::thread::panicking() {
            self.worker.gateway.bells.changes.notify_one();
        }
    }
}

impl ChangeWorker {
    /// Makes a worker that has applied nothing.
    pub fn new(
        gateway: Arc<Gateway>,
        sessions: Sessions,
        jails: Arc<Jails>,
        servers: Arc<Servers>,
        latch: Arc<Latch>,
    ) -> Self {
        Self { gateway, sessions, jails, servers, latch, busy: Arc::default() }
    }

    /// Applies approved changes, until the record is closed. An operator's stop ends the servers at once, but a
    /// change that is approved while the sessions end is still applied.
    pub async fn run(self) {
        // The policy may have changed since the last start. A reload recounts by itself.
        let gateway = Arc::clone(&self.gateway);
        let recount = self.state().write(move |tx| waiting::decide::recount(tx, &gateway));
        if let Err(error) = recount.await {
            tracing::error!(%error, "approvals from before the start were not checked; each is checked when it is used");
        }
        let gateway = Arc::clone(&self.gateway);
        worker::run(self, &gateway.bells.changes, &Shutdown::default()).await;
    }
}

impl Due for ChangeWorker {
    const FAILED: &'static str = "approved changes wait for a retry after an error of the host";
    const RETRY_AFTER: Duration = RETRY_AFTER;
    const PAUSE_MAX: Duration = Duration::from_secs(3600);

    async fn process_due(&mut self) -> Result<Wait, Error> {
        if !self.latch.is_shut() {
            for row in self.state().read(|tx| Ok::<_, Error>(table::approved(tx, AT_ONCE_MAX)?)).await? {
                if self.claim(Lane::from_row(&row)) {
                    let worker = self.clone();
                    tokio::spawn(async move { worker.run_approved(row).await });
                }
            }
        }
        // The end of each application rings the bell, and the next pass reads the record again.
        Ok(Wait::Bell)
    }
}

impl ChangeWorker {
    /// Applies one approved change. After an error of the host it waits, and the next pass retries.
    async fn run_approved(&self, row: Row) {
        let id = row.id;
        let busy = Busy { worker: self, lane: Lane::from_row(&row) };
        if let Err(error) = self.apply_change(row).await
            && !matches!(error, Error::State(ironclaw_state::Error::Closed))
        {
            tracing::error!(change = %id, %error, "could not apply an approved change; the host retries");
            tokio::time::sleep(RETRY_AFTER).await;
        }
        drop(busy);
    }

    async fn apply_change(&self, row: Row) -> Result<(), Error> {
        let prepared = tokio::select! {
            biased;
            // The change stays approved, and starts again after the emergency stop. Its client ends with this future.
            () = self.latch.shut() => return Ok(()),
            prepared = self.prepare(&row) => match prepared {
                Ok(prepared) => prepared,
                Err(Denied::Failed(error)) => return Err(error),
                Err(Denied::Refused(refusal)) => {
                    // A client whose launcher died looks like a failed one. The host then ends, and its next start retries the change.
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
            let refusal = if is_erased { mention_erased_conversations(refusal) } else { refusal };
            return self.fail(&row, &refusal).await;
        }
        failpoint::reach("change_applied");
        tracing::info!(change = %row.id, kind = %row.kind, "applied");
        if matches!(
            row.kind,
            ChangeKind::McpRegister | ChangeKind::McpAccess | ChangeKind::Settings | ChangeKind::Skills
        ) && let Err(error) = self.servers.close_unused().await
        {
            tracing::error!(%error, "applied, but connections to MCP servers stay open until the host stops");
        }
        // Sessions see the new setting only after a new start.
        if kinds::restarts_sessions(row.kind)
            && let Some(agent) = decide::concerned(&row)
            && let Err(error) = self.sessions.respawn(agent).await
        {
            tracing::error!(%agent, %error, "applied, but its sessions did not restart; `ironctl session stop` ends them");
        }
        Ok(())
    }

    /// Applies a change in one transaction. Returns the refusal if it could not be applied.
    async fn commit(&self, row: &Row, prepared: Prepared) -> Result<Option<Refusal>, Error> {
        let (gateway, id) = (Arc::clone(&self.gateway), row.id);
        // A refusal to apply rolls back all writes of the change, so its approvals stay unused.
        let apply = self.state().write(move |tx| {
            let approved = match decide::use_approvals(tx, &gateway, id) {
                Ok(approved) => approved,
                // This refusal commits, because the ledger must keep the reason that its approvals are not valid.
                Err(Denied::Refused(refusal)) => return Ok(Some(refusal)),
                Err(Denied::Failed(error)) => return Err(error.into()),
            };
            finish(tx, &gateway, &approved, &prepared)?;
            Ok::<_, Denied<Error>>(None)
        });
        match apply.await {
            Ok(refusal) => Ok(refusal),
            Err(Denied::Refused(refusal)) => Ok(Some(refusal)),
            Err(Denied::Failed(error)) => Err(error),
        }
    }

    /// Does the work that a change needs before its transaction. It fetches software, which takes time and a network and changes no
    /// setting. It erases the conversations of an agent that is to be removed, if the change is still approved.
    async fn prepare(&self, row: &Row) -> Result<Prepared, Denied<Error>> {
        if let Change::Skills(Skill { digest: Some(digest), name, version: Some(version), .. }) = &row.change
            && !self.jails.shelf.has(digest)
        {
            let message = format!("the files of skill {name} {version} are not on this host");
            let refusal = Refusal::new(DenialCode::SkillFile, message);
            return Err(refusal
                .hint(format!("fetch it again: `ironctl skill show {name} --version {version}`"))
                .into());
        }
        match (kinds::preparation(&row.change), row.agent) {
            (Preparation::ServerLayer(server), _) => {
                let layer = self.fetch(row, &LayerOwner::Server(server.name.clone()), &server.packages).await?;
                let place = self.jails.home.layer(&LayerOwner::Server(server.name.clone()), &layer.digest);
                // The layer is complete only now, and a server without its program would fail at each call.
                let refused = mcp_jail::hidden_in(&server.command, &layer.behind);
                let refused = refused.or_else(|| mcp_jail::missing_in(&server.command, place));
                refused.map_or(Ok(Prepared::Layer(layer)), |no| Err(no.into()))
            }
            (Preparation::Nothing, _) | (_, None) => Ok(Prepared::Nothing),
            (Preparation::Layer(wanted), Some(agent)) => {
                Ok(Prepared::Layer(self.fetch(row, &LayerOwner::Agent(agent), wanted).await?))
            }
            (Preparation::ConversationsErased, Some(agent)) => {
                let (gateway, id) = (Arc::clone(&self.gateway), row.id);
                self.state().decide(move |tx| decide::recheck_approvals(tx, &gateway, id).map(drop)).await?;
                let by = row.decided_by.unwrap_or_else(|| row.requester.principal());
                self.sessions.remove_of(agent, by).await?;
                Ok(Prepared::ConversationsErased)
            }
        }
    }

    async fn fetch(&self, row: &Row, owner: &LayerOwner, wanted: &Packages) -> Result<Layer, Denied<Error>> {
        let context = packages::FetchContext {
            launcher: self.jails.launcher.clone(),
            home: self.jails.home.clone(),
            config: self.gateway.now().host_policy.packages.clone(),
            identity: self.jails.fetcher(),
        };
        tracing::info!(change = %row.id, "fetching software");
        let made = packages::make(&context, owner, row.id, wanted).await;
        Ok(made.map_err(packages::Error::refusal)?)
    }

    async fn fail(&self, row: &Row, refusal: &Refusal) -> Result<(), Error> {
        tracing::warn!(change = %row.id, code = %refusal.code, "an approved change was not applied");
        let (gateway, id) = (Arc::clone(&self.gateway), row.id);
        let outcome = format!("{}: {}", refusal.code, refusal.message);
        let fail = self.state().write(move |tx| {
            let ending = Ending { status: Status::Failed, by: None, outcome: &outcome };
            waiting::end_active(tx, &gateway, id.into(), &ending).map(drop)
        });
        fail.await?;
        failpoint::reach("change_failed");
        Ok(())
    }

    fn claim(&self, lane: Lane) -> bool {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner).insert(lane)
    }

    fn state(&self) -> &State {
        &self.gateway.record.state
    }
}
