//! Changes from the asking to the telling: what a sandbox or a person asks for is checked and written down, people decide, what is
//! approved is applied, the sessions that it concerns begin anew, and whoever asked hears of it.
//!
//! Holds no rule of its own; a restart finds everything in the record. Next: `gateway`, `apply`.

use super::actor::{Command, LAUNCHER_END_TIME};
use super::actors::Unsent;
use super::at_once::after_erasing;
use super::{Core, Error, Pipeline, launch};
use crate::apply::{self, Applied, Prepared};
use crate::failpoint;
use crate::gateway::decide::{self, Bench, Said};
use crate::gateway::store::{self, Row, Status, Submitted};
use crate::gateway::{Judged, Proposed, Requester, checks, settings};
use crate::inbox;
use crate::integrity::lookalike;
use crate::ledger::Entry;
use crate::packages;
use crate::refusal::Refusal;
use crate::registry::{self, Person};
use crate::session::store as sessions;
use crate::state::{self, Tx};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, ChangeId};
use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use ironclaw_contract::seam::change::{Change, ChangeKind, Payload};
use serde_json::Value;
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
        Self { agent: row.agent, fetches: row.kind == ChangeKind::Packages }
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

/// A change as a person is shown it.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The change.
    pub row: Row,
    /// The exact text.
    pub text: String,
    /// Its digest.
    pub digest: Digest,
}

impl Core {
    pub(super) fn bench(&self) -> Bench<'_> {
        Bench { policy: &self.policy, grounds: &self.grounds, root: &self.approvals }
    }
}

/// Checks a proposal and writes it down; what is refused stands in the ledger.
pub(super) fn submit(tx: &mut Tx<'_>, core: &Core, proposed: Proposed) -> Result<Judged<Submitted>, Error> {
    let (kind, requester) = (proposed.change.kind(), proposed.requester.clone());
    let judged = match checks::check(tx, &core.grounds, proposed)? {
        Ok(checked) => store::propose(tx, &core.policy, checked)?,
        Err(refusal) => Err(refusal),
    };
    if let Ok(Submitted { superseded: Some(row), .. }) = &judged {
        tell(tx, core, row)?;
    }
    if let Err(refusal) = &judged {
        let entry = Entry::new(LedgerEvent::ChangeRefused).with("kind", kind.name()).with("code", refusal.code);
        match requester {
            Requester::Agent { origin, .. } => entry.session(origin.session).turn(origin.turn).append(tx)?,
            Requester::Person(person) => entry.with("by", person).append(tx)?,
        };
    }
    Ok(judged)
}

/// Tells the conversation that asked what came of it: as the host's word, which opens no turn.
pub(super) fn tell(tx: &mut Tx<'_>, core: &Core, row: &Row) -> Result<(), Error> {
    let Some(session) = row.session() else { return Ok(()) };
    let Some(session) = sessions::find(tx, session)?.filter(|session| session.wrapped.is_some()) else { return Ok(()) };
    let by = match row.decided_by {
        Some(person) => {
            registry::person_by_id(tx, person)?.map_or_else(String::new, |person| format!(" by {}", person.name))
        }
        None => String::new(),
    };
    let said = row.outcome.as_deref().unwrap_or_default();
    let what = match row.status {
        Status::Applied => format!("was approved{by} and is applied: {said}"),
        Status::Rejected if said.is_empty() => format!("was rejected{by}; nothing was changed"),
        Status::Rejected => format!("was rejected{by}; nothing was changed. The reason that was given: {said:?}"),
        Status::Expired => "has expired: nobody decided in time; nothing was changed".to_owned(),
        Status::Withdrawn => format!("is withdrawn: {said}; nothing was changed"),
        // Why may be a stranger's words, or name places of the host: that is for whoever is shown the change.
        Status::Failed => {
            let show = format!("ironctl change show {}", row.id);
            format!("was approved{by}, and could not be done; nothing was changed. Why is shown to people: `{show}`")
        }
        Status::Unknown => format!("is unknown: {said}"),
        Status::Pending | Status::Approved => return Ok(()),
    };
    let text = format!("The change {} ({}) that you asked for {what}.", row.id, row.kind);
    let text = lookalike::neutralise(&text);
    match inbox::tell(tx, &session, &text, &core.wrapping, &core.sealer) {
        Ok(_) => Ok(()),
        Err(inbox::Error::State(error)) => Err(error.into()),
        // A conversation whose key does not open hears nothing, and holds up nobody else's change.
        Err(inbox::Error::Key(error)) => {
            tracing::error!(session = %session.id, change = %row.id, %error, "what came of a change was not told");
            Entry::new(LedgerEvent::ChangeUntold).session(session.id).with("change", row.id).append(tx)?;
            Ok(())
        }
        Err(inbox::Error::Full) => Err(crate::state::Error::Stored("a message took a uid".to_owned()).into()),
    }
}

impl Pipeline {
    /// So many people have to say yes to this change.
    pub fn approvals_needed(&self, row: &Row) -> u32 {
        settings::rule_of(&self.core.policy, row).approvals
    }

    /// A person asks for a change.
    ///
    /// # Errors
    /// The inner error refuses who has no role for it, a payload that is not of its kind, and whatever a check does not pass.
    pub async fn submit(
        &self,
        by: &Person,
        kind: ChangeKind,
        agent: Option<String>,
        payload: Payload,
        reason: String,
    ) -> Result<Judged<Submitted>, Error> {
        use ironclaw_contract::seam::limits::REASON_BYTES_MAX;
        if reason.len() > REASON_BYTES_MAX {
            let message = format!("a reason has at most {REASON_BYTES_MAX} bytes");
            return Ok(Err(Refusal::new(DenialCode::ReasonTooLong, message)));
        }
        let change = match Change::parse(kind, &payload) {
            Ok(change) => change,
            Err(error) => return Ok(Err(Refusal::new(DenialCode::PayloadMalformed, error.to_string()))),
        };
        let (core, by) = (Arc::clone(&self.core), by.clone());
        self.core
            .state
            .write(move |tx| {
                let agent = match agent.map(|name| registry::named_agent(tx, &name)).transpose()?.transpose() {
                    Ok(agent) => agent,
                    Err(refusal) => return Ok::<_, Error>(Err(refusal)),
                };
                // As it stands now: a role may have been taken while the request was on its way.
                let Some(by) = registry::person_by_id(tx, by.id)? else {
                    return Ok(Err(Refusal::new(DenialCode::PersonUnknown, "whoever asks is nobody here any more")));
                };
                let agent = agent.map(|agent| agent.id);
                let role = decide::standing(tx, &by, kind, agent)?;
                if !role.covers(registry::Role::Admin) {
                    let message = format!("a change of kind {kind} is not {}'s to ask for", by.name);
                    let refusal = Refusal::new(DenialCode::RoleTooLow, message);
                    return Ok(Err(refusal.hint("ask the agent for it, or an admin")));
                }
                let requester = Requester::Person(by.id);
                submit(tx, &core, Proposed { change, agent, requester, reason, labels: Vec::new() })
            })
            .await
    }

    /// A change as this person is shown it.
    ///
    /// # Errors
    /// The inner error: there is none, or it is not theirs to see.
    pub async fn show(&self, by: &Person, id: ChangeId) -> Result<Judged<Shown>, Error> {
        let (core, by) = (Arc::clone(&self.core), by.clone());
        self.core
            .state
            .read(move |tx| {
                let row = match store::known(tx, id)? {
                    Ok(row) => row,
                    Err(refusal) => return Ok::<_, Error>(Err(refusal)),
                };
                let whole = by.role.covers(registry::Role::Admin) || decide::may_decide(tx, &core.policy, &by, &row)?;
                if !whole && row.principal() != by.id {
                    let message = format!("{id} is not {}'s to see", by.name);
                    return Ok(Err(Refusal::new(DenialCode::NotYoursToDecide, message)));
                }
                if whole {
                    let (text, digest) = decide::show(tx, &core.policy, &row)?;
                    return Ok(Ok(Shown { row, text, digest }));
                }
                // On whose behalf it was asked for hears how it stands; what its names mean is for whoever decides.
                let text = format!(
                    "{} ({}) is {}. Somebody else decides about it, and is shown what it would do.\n",
                    row.id,
                    row.kind,
                    row.status.name()
                );
                let digest = Digest::of(text.as_bytes());
                Ok(Ok(Shown { row: Row { before: Value::Null, facts: Value::Null, ..row }, text, digest }))
            })
            .await
    }

    /// A person says yes to the text of this digest. `proof` names the token that they came with.
    ///
    /// # Errors
    /// The inner error, see [`decide::approve`].
    pub async fn approve(&self, by: &Person, proof: String, id: ChangeId, shown: Digest) -> Result<Judged<()>, Error> {
        let (core, by) = (Arc::clone(&self.core), by.clone());
        let approved = self
            .core
            .state
            .write(move |tx| {
                let (said, ended) = decide::approve(tx, &core.bench(), &by, &proof, id, &shown)?;
                if let Some(row) = ended {
                    tell(tx, &core, &row)?;
                }
                Ok::<_, Error>(said)
            })
            .await?;
        if approved == Ok(Said::Approved) {
            failpoint::reach("change_approved");
            self.core.changes.ring();
        }
        Ok(approved.map(drop))
    }

    /// A person says no.
    ///
    /// # Errors
    /// The inner error, see [`decide::reject`].
    pub async fn reject(&self, by: &Person, id: ChangeId, reason: String) -> Result<Judged<()>, Error> {
        let (core, by) = (Arc::clone(&self.core), by.clone());
        let rejected = self
            .core
            .state
            .write(move |tx| {
                let (rejected, ended) = decide::reject(tx, &core.bench(), &by, id, &reason)?;
                if let Some(row) = ended {
                    tell(tx, &core, &row)?;
                }
                Ok::<_, Error>(rejected)
            })
            .await?;
        failpoint::reach("change_rejected");
        Ok(rejected)
    }

    /// Applies what is approved and ends what is overdue, until the daemon ends.
    pub async fn apply_changes(self) {
        // The policy may be another one since, and is none while the host runs.
        let core = Arc::clone(&self.core);
        let recount = self.core.state.write(move |tx| Ok::<_, Error>(decide::recount(tx, &core.bench())?));
        if let Err(error) = recount.await {
            tracing::error!(%error, "approvals from before the start were not looked at; they are when they are used");
        }
        loop {
            let wait = match self.look_at_changes().await {
                Ok(wait) => wait,
                Err(Error::State(state::Error::Closed)) => return,
                Err(error) => {
                    tracing::error!(%error, "approved changes wait a moment after an error of the host");
                    RETRY_AFTER
                }
            };
            // A bell that rang meanwhile is heard at once.
            let _ = tokio::time::timeout(wait, self.core.changes.bell.notified()).await;
        }
    }

    async fn look_at_changes(&self) -> Result<Duration, Error> {
        let look = |tx: &mut Tx<'_>| {
            let next = store::next_end(tx)?.map(|at| at - tx.wall());
            Ok::<_, Error>((store::overdue(tx)?, store::approved(tx)?, next))
        };
        let (overdue, approved, next) = self.core.state.read(look).await?;
        let ended = overdue.len();
        for row in overdue {
            let core = Arc::clone(&self.core);
            let end = self.core.state.write(move |tx| {
                if let Some(row) = store::unended(tx, row.id)? {
                    let row = store::end(tx, &row, Status::Expired, None, decide::OVERDUE)?;
                    tell(tx, &core, &row)?;
                }
                Ok::<_, Error>(())
            });
            end.await?;
        }
        if !self.core.latch.is_shut() {
            for row in approved {
                if self.core.changes.take(Place::of(&row)) {
                    let pipeline = self.clone();
                    tokio::spawn(async move { pipeline.carry_out(row).await });
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
    async fn carry_out(&self, row: Row) {
        let id = row.id;
        let busy = Busy { core: &self.core, place: Place::of(&row) };
        if let Err(error) = self.apply_change(row).await
            && !matches!(error, Error::State(state::Error::Closed))
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
            prepared = self.prepare(&row) => match prepared? {
                Ok(prepared) => prepared,
                Err(refusal) => {
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
        let (core, of) = (Arc::clone(&self.core), row.clone());
        let is_erased = prepared == Prepared::ConversationsErased;
        let applied = self
            .core
            .state
            .write(move |tx| {
                let approved = match decide::approved(tx, &core.bench(), &of)? {
                    Ok(approved) => approved,
                    // What was found out about its approvals stands in the ledger.
                    Err(refusal) => return Ok::<_, Attempt>(Err(refusal)),
                };
                let Applied { outcome } = match apply::apply(tx, &approved, &prepared)? {
                    Ok(applied) => applied,
                    // Nothing of it stays, and its approvals are not used.
                    Err(refusal) => return Err(Attempt::Refused(refusal)),
                };
                let row = store::end(tx, &of, Status::Applied, None, &outcome)?;
                tell(tx, &core, &row)?;
                for overtaken in decide::overtaken(tx, &core.bench(), &row)? {
                    tell(tx, &core, &overtaken)?;
                }
                Ok(Ok(()))
            })
            .await;
        match applied {
            Ok(Ok(())) => {}
            Ok(Err(refusal)) | Err(Attempt::Refused(refusal)) => {
                let refusal = if is_erased { after_erasing(refusal) } else { refusal };
                return self.fail(&row, &refusal).await;
            }
            Err(Attempt::Broken(error)) => return Err(error),
        }
        failpoint::reach("change_applied");
        tracing::info!(change = %row.id, kind = %row.kind, "applied");
        // They see what was set only when they begin anew; settings are looked up at each request.
        if row.kind != ChangeKind::Settings
            && let Some(agent) = row.concerned()
            && let Err(error) = self.respawn(agent).await
        {
            tracing::error!(%agent, %error, "applied, and its sessions did not begin anew; `ironctl session stop` ends them");
        }
        Ok(())
    }

    /// What has to be done before the transaction: software is fetched, which takes a network and time and changes nothing yet; the
    /// conversations of an agent that is removed are erased, if the change is still approved.
    async fn prepare(&self, row: &Row) -> Result<Judged<Prepared>, Error> {
        if let (Change::Settings(wanted), Some(agent)) = (&row.change, row.agent)
            && wanted.remove
        {
            let erased = self.remove_sessions_approved(row, agent).await?;
            return Ok(erased.map(|()| Prepared::ConversationsErased));
        }
        let (Change::Packages(wanted), Some(agent)) = (&row.change, row.agent) else {
            return Ok(Ok(Prepared::Nothing));
        };
        if wanted.apt.is_empty() && wanted.npm.is_empty() {
            return Ok(Ok(Prepared::Nothing));
        }
        let core = &self.core;
        let means = packages::Means {
            launcher: core.launcher.clone(),
            home: core.home.clone(),
            config: core.grounds.packages.clone(),
            identity: launch::fetcher(core),
        };
        tracing::info!(change = %row.id, "software is fetched");
        Ok(packages::make(&means, agent, row.id, wanted).await.map(Prepared::Layer).map_err(packages::Error::refusal))
    }

    async fn fail(&self, row: &Row, refusal: &Refusal) -> Result<(), Error> {
        tracing::warn!(change = %row.id, code = %refusal.code, "an approved change was not applied");
        let (core, id, outcome) = (Arc::clone(&self.core), row.id, refusal.message.clone());
        let fail = self.core.state.write(move |tx| {
            if let Some(row) = store::unended(tx, id)? {
                let row = store::end(tx, &row, Status::Failed, None, &outcome)?;
                tell(tx, &core, &row)?;
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

/// Why an attempt to apply came to nothing.
enum Attempt {
    /// It cannot be done; what was begun is taken back with the transaction.
    Refused(Refusal),
    /// Something broke on our side.
    Broken(Error),
}

impl<E: Into<Error>> From<E> for Attempt {
    fn from(error: E) -> Self {
        Self::Broken(error.into())
    }
}

impl From<decide::Error> for Error {
    fn from(error: decide::Error) -> Self {
        match error {
            decide::Error::State(error) => Self::State(error),
            decide::Error::Key(error) => Self::Record(inbox::Error::Key(error)),
        }
    }
}
