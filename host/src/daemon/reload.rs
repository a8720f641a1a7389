//! The reload of `config.toml` and `policy.toml` while the host runs.
//!
//! Checks both files as a start does, and changes nothing if one of them is wrong. It applies the settings that need no restart, and
//! names the others. See [`crate::registry::live_settings`] for the cell with the settings.

use super::mount_policy;
use super::sockets::Paths;
use crate::api::{Reload, Reloading};
use crate::channels::inbound::channel;
use crate::daemon::config::{self, Config, Values};
use crate::daemon::observe::{Level, LogLevel};
use crate::gateway::quorum;
use crate::gateway::waiting::{self, Gateway};
use crate::registry::live_settings::HostPolicy;
use crate::registry::live_settings::LiveSettings;
use crate::registry::policy::{self, Policy};
use crate::registry::{self, mounts};
use crate::runtime::sessions::Sessions;
use ironclaw_contract::ids::{AgentId, PersonId};
use ironclaw_ledger::Entry;
use ironclaw_operator::settings::{Applies, Setting};
use ironclaw_operator::{DenialCode, LedgerEvent, Reloaded};
use ironclaw_state::ReadTx;
use ironclaw_state::home::Home;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::toml_file;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Returns the live settings of a configuration.
pub(super) fn live(config: &Config, policy: Policy, host_policy: HostPolicy) -> LiveSettings {
    LiveSettings {
        host_policy: HostPolicy { receiver: *policy.receiver(), ..host_policy },
        policy,
        approval: config.approval.clone(),
        quota: config.quota.clone(),
        agents: config.agents.clone(),
        session: config.session.clone(),
        turn: config.turn.clone(),
        channels: channel::Config { webhook: config.webhook.clone() },
    }
}

/// The part of the daemon that reads the settings again.
pub(super) struct Reloader {
    files: Files,
    log: Arc<LogLevel>,
    gateway: Arc<Gateway>,
    sessions: Sessions,
    /// The values that are in effect. The lock makes one reload follow another.
    values: Mutex<Values>,
}

/// The home with the files, and the paths of the sockets, which no agent may get.
#[derive(Clone)]
struct Files {
    home: Home,
    runtime: PathBuf,
    socket: PathBuf,
}

struct Checked {
    file: config::File,
    /// The values that are in effect after the reload: the live ones of the file, and the others of the start.
    values: Values,
    level: Level,
    next: LiveSettings,
}

impl Reloader {
    /// Makes the reloader of a host with the settings of its start.
    pub fn new(
        home: Home,
        paths: &Paths,
        log: Arc<LogLevel>,
        values: Values,
        gateway: Arc<Gateway>,
        sessions: Sessions,
    ) -> Self {
        let files = Files { home, runtime: paths.runtime.clone(), socket: paths.socket.clone() };
        Self { files, log, gateway, sessions, values: Mutex::new(values) }
    }

    /// Reads the files again at a signal. The log has the result.
    pub async fn reload_by_signal(self: Arc<Self>) {
        match self.run(None).await {
            Ok(Reloaded { warnings, .. }) => warnings.iter().for_each(|warning| tracing::warn!("{warning}")),
            Err(Denied::Refused(refusal)) => {
                tracing::error!(%refusal, "the settings were not reloaded; nothing changed");
            }
            Err(Denied::Failed(error)) => tracing::error!(%error, "the settings were not reloaded"),
        }
    }

    async fn run(&self, by: Option<PersonId>) -> Result<Reloaded, Denied<Error>> {
        let mut values = self.values.lock().await;
        self.read_again(by, &mut values).await
    }

    /// Adds a directory to `[mounts] allow`, and reads the files again.
    async fn add_allowed(&self, by: PersonId, directory: PathBuf) -> Result<Reloaded, Denied<Error>> {
        let mut values = self.values.lock().await;
        let home = self.files.home.clone();
        let added = tokio::task::spawn_blocking(move || config::allow(&home, &directory)).await;
        added.map_err(|_| Error::Stopping)?.map_err(|error| refused(error.to_string()))?;
        self.read_again(Some(by), &mut values).await
    }

    async fn read_again(&self, by: Option<PersonId>, values: &mut Values) -> Result<Reloaded, Denied<Error>> {
        let (files, now) = (self.files.clone(), values.clone());
        // An allowed directory may be on a disk that hangs.
        let checked = tokio::task::spawn_blocking(move || files.check(&now)).await.map_err(|_| Error::Stopping)?;
        let Checked { file, values: next_values, level, next } = checked.map_err(refused)?;
        let people = self.gateway.record.state.read(quorum::read_people).await?;
        let unmet = quorum::unmet(&people, &next.policy);
        if let Some(unmet) = unmet.iter().find(|unmet| unmet.is_refused) {
            return Err(refused(toml_file::refused(&self.files.home.policy(), unmet.to_string()).to_string()).into());
        }
        let reloaded = Reloaded {
            file: file.path.as_ref().map(|path| path.display().to_string()),
            applied: changed(Applies::Live, values, &next_values),
            restart: changed(Applies::Restart, &next_values, &file.values),
            policy_changed: self.gateway.now().policy != next.policy,
            warnings: unmet.iter().map(ToString::to_string).collect(),
        };
        let former = self.replace(by, &file, &reloaded, Arc::new(next)).await?;
        self.log.set(level);
        *values = next_values;
        let Reloaded { applied, restart, policy_changed, .. } = &reloaded;
        tracing::info!(?applied, ?restart, policy_changed, "reloaded the settings");
        self.respawn_changed(&former).await?;
        Ok(reloaded)
    }

    /// Replaces the live settings and records it, in one transaction that also takes back approvals that are no longer valid. Returns the
    /// former settings.
    async fn replace(
        &self,
        by: Option<PersonId>,
        file: &config::File,
        reloaded: &Reloaded,
        next: Arc<LiveSettings>,
    ) -> Result<Arc<LiveSettings>, Denied<Error>> {
        let mut entry = Entry::new(LedgerEvent::ConfigReloaded)
            .with("policy", next.policy.digest().to_string())
            .with("applied", reloaded.applied.clone())
            .with("restart", reloaded.restart.clone());
        if let Some(by) = by {
            entry = entry.with("by", by);
        }
        if let Some(digest) = &file.digest {
            entry = entry.with("config", digest.to_string());
        }
        let former = self.gateway.now();
        let gateway = Arc::clone(&self.gateway);
        let replaced = self.gateway.record.state.write(move |tx| {
            // The count takes them from the cell, as every later transaction does.
            gateway.settings.replace(next);
            waiting::decide::recount(tx, &gateway)?;
            entry.append(tx)?;
            Ok::<_, Error>(())
        });
        if let Err(error) = replaced.await {
            self.gateway.settings.replace(former);
            return Err(error.into());
        }
        // The worker applies a change that the new policy approves of.
        self.gateway.announce();
        Ok(former)
    }

    /// Restarts the awake sessions of the agents with a mount that the settings no longer admit, and of all agents if a process has other
    /// limits of a turn.
    async fn respawn_changed(&self, former: &LiveSettings) -> Result<(), Denied<Error>> {
        let granted = |tx: &ReadTx<'_>| {
            let of = |agent: registry::Agent| Ok((agent.id, mounts::list_for_agent(tx, agent.id)?));
            let granted: Result<Vec<(AgentId, Vec<mounts::Mount>)>, ironclaw_state::Error> =
                registry::agents(tx)?.into_iter().map(of).collect();
            granted
        };
        let granted = self.gateway.record.state.read(granted).await?;
        let now = self.gateway.now();
        let is_lost = |mount: &mounts::Mount| {
            let admits = |policy: &HostPolicy| policy.admits(&mount.source).unwrap_or(false);
            admits(&former.host_policy) && !admits(&now.host_policy)
        };
        let has_other_limits = former.turn.limits() != now.turn.limits();
        for (agent, mounts) in granted {
            if has_other_limits || mounts.iter().any(is_lost) {
                self.sessions.respawn(agent).await?;
            }
        }
        Ok(())
    }
}

impl Reload for Reloader {
    fn reload(self: Arc<Self>, by: PersonId) -> Reloading {
        Box::pin(async move { self.run(Some(by)).await })
    }

    fn allow(self: Arc<Self>, by: PersonId, directory: PathBuf) -> Reloading {
        Box::pin(async move { self.add_allowed(by, directory).await })
    }
}

impl Files {
    /// Reads and checks both files. `now` has the values that are in effect.
    fn check(&self, now: &Values) -> Result<Checked, String> {
        let Self { home, runtime, socket } = self;
        let file = config::read(home).map_err(|error| error.to_string())?;
        let policy = policy::load(&home.policy()).map_err(|error| error.to_string())?;
        mount_policy::refuse_shown(&file.config, home).map_err(|error| error.to_string())?;
        let values = now.with_live_of(&file.values);
        let config = values.config().map_err(|what| {
            format!("the settings do not fit those that need a restart: {what}; restart the host instead")
        })?;
        let look = |config: &Config| {
            mount_policy::collect_host_policy(config, home, runtime, socket).map_err(|error| error.to_string())
        };
        let mut host_policy = look(&config)?;
        // No agent gets a path of the host that it uses now, or one that it uses after the next start.
        host_policy.private.extend(look(&file.config)?.private);
        Ok(Checked { level: config.log.level, next: live(&config, policy, host_policy), file, values })
    }
}

/// Returns the names of the settings of this kind whose values differ.
fn changed(of: Applies, before: &Values, after: &Values) -> Vec<String> {
    before.differences(after).filter(|setting| setting.applies == of).map(Setting::full_name).collect()
}

fn refused(what: impl Into<String>) -> Refusal {
    Refusal::new(DenialCode::ConfigRefused, what)
        .hint("nothing changed; correct the file, then `ironctl config reload`")
}
