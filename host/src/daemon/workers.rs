//! The background tasks of a running host, and their orderly end.

use super::reload::Reloader;
use super::sockets::Sockets;
use super::startup::Parts;
use crate::api::hooks::{Hooks, RefusedHooks};
use crate::api::port::Port;
use crate::api::{About, Api, Callers, Console, LargeBodies, ReadReplies, Reload};
use crate::calls::executor::late::LateCalls;
use crate::channels::outbound::dispatch::Dispatcher;
use crate::daemon::config::Config;
use crate::gateway::waiting::{EndWorker, Presence};
use crate::reach::mcp::oauth::Logins;
use crate::reach::mcp::oauth::renewal::LoginRenewal;
use crate::reach::skills::Changed;
use crate::runtime::changes::ChangeWorker;
use crate::runtime::schedules::worker::ScheduleWorker;
use crate::runtime::sessions::Sessions;
use crate::upkeep::maintenance::HeadPublisher;
use crate::upkeep::memory_worker::MemoryWorker;
use crate::upkeep::retention_worker::Retention;
use ironclaw_operator::ChannelKind;
use ironclaw_store::shutdown::Shutdown;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

/// Longest time of open requests while the host stops.
const REQUESTS_TIME_MAX: Duration = Duration::from_secs(5);

/// Tasks that run until the host stops.
pub(super) struct Workers {
    /// Ends the tasks; an operator triggers it over the API.
    pub shutdown: Shutdown,
    /// Reads the settings again, at SIGHUP.
    pub reloader: Arc<Reloader>,
    pub sending: JoinHandle<()>,
    logins: Arc<Logins>,
    serving: JoinHandle<std::io::Result<()>>,
    receiving: Vec<JoinHandle<std::io::Result<()>>>,
    presence: Presence,
}

impl Workers {
    /// Starts the workers for changes, retention and deliveries, and the servers on the sockets.
    pub fn start(
        parts: &Parts,
        config: &Config,
        sockets: Sockets,
        head_publisher: &HeadPublisher,
        warnings: Vec<String>,
    ) -> Self {
        let Parts { record, gateway, executor, jails, models, dispatch, .. } = parts;
        let Parts { sessions, inbound, stops, reloader, backups, .. } = parts;
        let (latch, logins, shutdown) = (&stops.latch, Arc::clone(&executor.servers.logins), Shutdown::default());
        start_changes(parts);
        tokio::spawn(Retention { record: Arc::clone(record) }.run(shutdown.clone()));
        start_due(parts, &shutdown);
        let dispatcher = Dispatcher {
            dispatch: Arc::clone(dispatch),
            latch: Arc::clone(latch),
            wake: Arc::new(sessions.clone()),
            settings: Arc::clone(&gateway.settings),
        };
        let sending = tokio::spawn(dispatcher.run(shutdown.clone()));
        let Sockets { listener, port, hooks, console } = sockets;
        let refused_hooks = RefusedHooks::default();
        let about = About {
            home: jails.home.clone(),
            launcher_pid: jails.launcher.pid(),
            hooks: hooks.as_ref().and_then(Port::address),
            refused_hooks: refused_hooks.clone(),
            head_publisher: head_publisher.clone(),
            started_at: ironclaw_state::wall_clock(),
            warnings,
            backups: Arc::clone(backups),
            shutdown: shutdown.clone(),
            reload: Arc::clone(reloader) as Arc<dyn Reload>,
        };
        let large = Arc::default();
        let receiving = start_receivers(parts, config, hooks, &large, &refused_hooks, &shutdown);
        let api = Api {
            record: Arc::clone(record),
            inbound: inbound.clone(),
            sessions: sessions.clone(),
            gateway: Arc::clone(gateway),
            command_jails: Arc::clone(&executor.command_jails),
            read_replies: ReadReplies::new(&record.state),
            servers: Arc::clone(&executor.servers),
            skills: Arc::clone(&executor.skills),
            models: Arc::clone(models),
            dispatch: Arc::clone(dispatch),
            stops: stops.clone(),
            callers: Arc::new(Callers::new(&record.state, large)),
            console: Arc::new(Console::new(&config.console.origin, console)),
            about: Arc::new(about),
        };
        let serving = tokio::spawn(api.serve(listener, port, shutdown.clone()));
        let presence = gateway.presence.clone();
        Self { shutdown, reloader: Arc::clone(reloader), sending, logins, serving, receiving, presence }
    }

    /// Begins the shutdown. A turn that waits for a person closes, and its request waits for the next start.
    pub fn begin_end(&self) {
        self.shutdown.begin();
        self.presence.close();
    }

    /// Ends the servers, the renewals of tokens and the delivery worker.
    pub async fn end(self) {
        self.shutdown.end();
        let _ = tokio::time::timeout(REQUESTS_TIME_MAX, async {
            let _ = self.serving.await;
            for receiving in self.receiving {
                let _ = receiving.await;
            }
            // The issuer may no longer take the tokens before a renewal.
            self.logins.wait_for_renewals().await;
        })
        .await;
        // It bounds its own end.
        if !self.sending.is_finished() {
            let _ = self.sending.await;
        }
    }
}

/// Starts the worker that applies approved changes.
fn start_changes(parts: &Parts) {
    let Parts { gateway, executor, jails, sessions, stops, .. } = parts;
    let worker = ChangeWorker::new(
        Arc::clone(gateway),
        sessions.clone(),
        Arc::clone(jails),
        Arc::clone(&executor.servers),
        Arc::clone(&stops.latch),
    );
    tokio::spawn(worker.run());
}

/// Starts the workers of approved calls and of the ends of what waits for people, of logins, of revoked skills, of schedules and of unused memory.
fn start_due(parts: &Parts, shutdown: &Shutdown) {
    let logins = Arc::clone(&parts.executor.servers.logins);
    tokio::spawn(LoginRenewal { logins, shutdown: shutdown.clone() }.run());
    let late = LateCalls::new(Arc::clone(&parts.executor), Arc::new(parts.sessions.clone()));
    tokio::spawn(late.run(shutdown.clone()));
    let ends = EndWorker::new(Arc::clone(&parts.gateway), Arc::new(parts.sessions.clone()));
    tokio::spawn(ends.run(shutdown.clone()));
    if let Some(changed) = parts.executor.skills.take_changed() {
        tokio::spawn(follow_skills(changed, parts.sessions.clone()));
        let skills = Arc::clone(&parts.executor.skills);
        tokio::spawn(async move {
            if let Err(error) = skills.look_at_all().await {
                tracing::error!(%error, "could not verify the skills of the agents; each launch verifies its own");
            }
        });
    }
    let schedules = ScheduleWorker::new(parts.inbound.clone(), Arc::clone(&parts.stops.latch), shutdown.clone());
    tokio::spawn(schedules.run());
    tokio::spawn(MemoryWorker::new(Arc::clone(&parts.item_caches)).run(shutdown.clone()));
}

/// Restarts the sessions of agents without a revoked skill, and lets those continue that waited for a damaged one.
async fn follow_skills(mut changed: UnboundedReceiver<Changed>, sessions: Sessions) {
    while let Some(change) = changed.recv().await {
        let (agent, done) = match change {
            Changed::Revoked(agent) => (agent, sessions.respawn(agent).await),
            Changed::Mended(agent) => (agent, sessions.release_mended(agent).await),
        };
        if let Err(error) = done {
            tracing::error!(%agent, %error, ?change, "its sessions did not follow the change of a skill");
        }
    }
}

/// Starts a receiver for each kind of channel that has an entrance of its own in the settings. Kinds that use a route of the API need none.
fn start_receivers(
    parts: &Parts,
    config: &Config,
    hooks: Option<Port>,
    large: &Arc<LargeBodies>,
    refused: &RefusedHooks,
    shutdown: &Shutdown,
) -> Vec<JoinHandle<std::io::Result<()>>> {
    let mut hooks = hooks;
    let start = |kind: &ChannelKind| match kind {
        ChannelKind::Webhook => hooks.take().map(|port| {
            let per_minute = config.webhook.requests_per_minute;
            let (record, inbound, sessions) =
                (Arc::clone(&parts.record), parts.inbound.clone(), parts.sessions.clone());
            let hooks = Hooks::new(record, inbound, sessions, per_minute, Arc::clone(large)).counting(refused);
            tokio::spawn(hooks.serve(port, shutdown.clone()))
        }),
    };
    ChannelKind::ALL.iter().filter_map(start).collect()
}
