//! The base of the daemon: the home, the settings, the master key, the record, and the shared parts.
//!
//! Writes nothing to the ledger. See [`super::run_record`].

use super::error::{Error, io};
use super::reload::Reloader;
use super::sockets::Paths;
use super::{file_system, mount_policy, reload, socket_directory};
use crate::calls::executor::Executor;
use crate::calls::model_socket::ModelServers;
use crate::calls::model_socket::endpoints::Models;
use crate::calls::model_socket::versions::VersionKeeper;
use crate::channels::notifications;
use crate::channels::outbound::dispatch::Dispatch;
use crate::daemon::config::{self, Config, Values};
use crate::daemon::observe;
use crate::daemon::observe::LogLevel;
use crate::gateway::opening;
use crate::gateway::waiting::Gateway;
use crate::reach::jail_network::{Fetchers, Trust};
use crate::reach::mcp::oauth::Logins;
use crate::reach::mcp::{Resolving, Servers, Slots};
use crate::reach::mcp_jail::{DemoLayer, McpJails};
use crate::reach::network_command::CommandJails;
use crate::reach::packages;
use crate::reach::packages::VerifiedLayers;
use crate::reach::skills::{Shelf, Skills};
use crate::registry;
use crate::registry::latch::{self, Latch};
use crate::registry::live_settings::Live;
use crate::registry::policy;
use crate::runtime::admission::{Admission, Limits};
use crate::runtime::emergency_stop::EmergencyStop;
use crate::runtime::launch::{self, Jails};
use crate::runtime::pipeline::{Inbound, Outbound};
use crate::runtime::sessions::Sessions;
use crate::runtime::workspace::Workspaces;
use crate::runtime::{LAUNCHES_MAX, Runtime, recovery};
use crate::turns::context::item_caches::ItemCaches;
use crate::turns::open_turns::OpenTurns;
use crate::upkeep::backup;
use crate::upkeep::key_rotation;
use crate::upkeep::maintenance::HeadPublisher;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::BootId;
use ironclaw_contract::seam::crypt::SessionKey;
use ironclaw_jail::launcher::{Handle, Launcher};
use ironclaw_ledger::sink::Sink;
use ironclaw_state::State;
use ironclaw_state::home::{self, Held, Home};
use ironclaw_state::keys::{MasterKey, Source};
use ironclaw_state::seal::Sealer;
use ironclaw_store::record::Record;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// A locked home, with its settings, its master key and its record.
pub(super) struct Opened {
    pub state: State,
    pub master: MasterKey,
    pub config: Config,
    /// The values of the settings file.
    pub values: Values,
    pub log: Arc<LogLevel>,
    pub home: Home,
    _lock: Held,
}

/// Opens a home and its record.
pub(super) async fn open(path: &Path) -> Result<Opened, Error> {
    file_system::refuse_home(path)?;
    let home = Home::open(path)?;
    home.check_room()?;
    let lock = home.hold()?;
    // A killed host leaves its directory behind, with a socket path that is ours once we listen: no other process may pose as the host
    // there.
    socket_directory::remove_left(&home);
    home.prepare_start()?;
    let config::File { config, values, .. } = config::read(&home)?;
    mount_policy::refuse_shown(&config, &home)?;
    let log = Arc::new(observe::start(&config.log, &home)?);
    latch::keep_reserve(&home);
    backup::discard_left(&home)?;
    key_rotation::resume_or_undo(&home, &config.keys)?;
    let master = MasterKey::load(&home, &config.keys)?;
    let state = open_state(State::open, &home, &config, &master)?;
    settle_owner_token(&state, &home).await?;
    Ok(Opened { state, master, config, values, log, home, _lock: lock })
}

/// The shared parts of a host.
pub(super) struct Parts {
    pub record: Arc<Record>,
    pub gateway: Arc<Gateway>,
    pub executor: Arc<Executor>,
    pub jails: Arc<Jails>,
    pub models: Arc<Models>,
    pub dispatch: Arc<Dispatch>,
    pub sessions: Sessions,
    pub inbound: Inbound,
    pub stops: EmergencyStop,
    pub reloader: Arc<Reloader>,
    pub backups: Arc<backup::Maker>,
    pub item_caches: Arc<ItemCaches>,
}

impl Parts {
    /// Makes the parts. No sandbox runs yet.
    pub async fn make(opened: &Opened, boot: BootId, paths: &Paths, launcher: Handle) -> Result<Self, Error> {
        let Opened { home, config, master, state, .. } = opened;
        let record = Arc::new(Record {
            state: state.clone(),
            sealer: Sealer::new(boot)?,
            wrapping: master.wrapping_key(),
            retention: config.items.clone(),
        });
        let (policy, host_policy) = (
            policy::load(&home.policy())?,
            mount_policy::collect_host_policy(config, home, &paths.runtime, &paths.socket)?,
        );
        let settings = Arc::new(Live::new(reload::live(config, policy, host_policy)));
        let gateway = opening::open(Arc::clone(&record), Arc::clone(&settings), master.approval_root());
        let gateway = Arc::new(gateway);
        let specs = state.read(registry::models::specs).await?;
        let observed = state.read(registry::models::settings::observed).await?;
        let models = Arc::new(Models::open(config.model.clone(), specs, observed)?);
        let (jails, launcher) = jails_of(opened, paths, launcher)?;
        let runtime = runtime(opened, &gateway, &models, jails, launcher).await?;
        let executor = Arc::clone(&runtime.models.executor);
        let (jails, dispatch) = (Arc::clone(&runtime.jails), Arc::clone(&runtime.outbound.dispatch));
        let (latch, item_caches) = (Arc::clone(&runtime.latch), Arc::clone(&runtime.models.caches));
        let sessions = Sessions::new(runtime);
        let stops = EmergencyStop {
            record: Arc::clone(&record),
            jails: Arc::clone(&jails),
            latch,
            gateway: Arc::clone(&gateway),
            sessions: sessions.clone(),
        };
        let inbound = Inbound {
            record: Arc::clone(&record),
            settings,
            sessions_max: jails.config.sessions_max(),
            wake: Arc::new(sessions.clone()),
        };
        let (log, values) = (Arc::clone(&opened.log), opened.values.clone());
        let reloader = Reloader::new(home.clone(), paths, log, values, Arc::clone(&gateway), sessions.clone());
        let reloader = Arc::new(reloader);
        let backups = Arc::new(backup_maker(home, config, master));
        Ok(Self {
            record,
            gateway,
            executor,
            jails,
            models,
            dispatch,
            sessions,
            inbound,
            stops,
            reloader,
            backups,
            item_caches,
        })
    }

    /// Finishes the work that a crash interrupted, and wakes every session with work, unless the emergency stop is on.
    pub async fn resume(&self) -> Result<(), Error> {
        recovery::recover(&self.record, &self.jails.home).await?;
        self.executor.lose_interrupted().await?;
        if !self.stops.restore().await? {
            self.sessions.wake_all().await?;
        }
        Ok(())
    }
}

/// Returns the shared context of the session actors.
async fn runtime(
    opened: &Opened,
    gateway: &Arc<Gateway>,
    models: &Arc<Models>,
    jails: launch::Config,
    launcher: Launcher,
) -> Result<Runtime, Error> {
    let (Opened { home, config, .. }, record) = (opened, &gateway.record);
    let (latch, verified_layers) = (Arc::<Latch>::default(), Arc::<VerifiedLayers>::default());
    let turns = Arc::new(OpenTurns::start(Arc::clone(record), Arc::clone(&gateway.settings)).await?);
    let fetchers = Arc::new(Fetchers::new(Arc::clone(&gateway.settings)));
    let mcp_jails = McpJails { launcher: launcher.clone(), identity: jails.fetcher() };
    let servers = mcp_servers(home, gateway, mcp_jails, &latch, &fetchers, &verified_layers);
    let (sessions_max, shelf) = (jails.sessions_max(), Arc::new(Shelf::new(home.clone())));
    let session_jails = Arc::new(Jails {
        record: Arc::clone(record),
        home: home.clone(),
        launcher,
        settings: Arc::clone(&gateway.settings),
        trust: Trust::make(&jails.runtime)?,
        config: jails,
        at_once: Semaphore::new(LAUNCHES_MAX),
        verified_layers,
        shelf: Arc::clone(&shelf),
    });
    let skills = Skills::new(Arc::clone(record), Arc::clone(&gateway.settings), Arc::clone(&fetchers), shelf);
    let executor = Executor {
        record: Arc::clone(record),
        turns: Arc::clone(&turns),
        settings: Arc::clone(&gateway.settings),
        latch: Arc::clone(&latch),
        gateway: Arc::clone(gateway),
        fetchers,
        authority: Arc::clone(session_jails.trust.authority()),
        servers: Arc::new(servers),
        skills: Arc::new(skills),
        command_jails: Arc::clone(&session_jails) as Arc<dyn CommandJails>,
        sessions_max,
    };
    let model_servers = model_servers(home, gateway, &turns, models, &latch, executor);
    let outbound = Outbound {
        turns: Arc::clone(&turns),
        latch: Arc::clone(&latch),
        dispatch: Arc::new(Dispatch::new(Arc::clone(&gateway.record), sessions_max)),
        gateway: Arc::clone(gateway),
    };
    Ok(Runtime {
        settings: Arc::clone(&gateway.settings),
        turns,
        jails: session_jails,
        workspaces: Arc::new(Workspaces::new(home.clone(), Arc::clone(&gateway.settings))),
        models: Arc::new(model_servers),
        admission: Admission::new(Limits::from_config(&config.session)),
        latch,
        outbound: Arc::new(outbound),
    })
}

/// Returns the connections to MCP servers.
fn mcp_servers(
    home: &Home,
    gateway: &Gateway,
    jails: McpJails,
    latch: &Arc<Latch>,
    fetchers: &Arc<Fetchers>,
    verified_layers: &Arc<VerifiedLayers>,
) -> Servers {
    let record = &gateway.record;
    Servers {
        record: Arc::clone(record),
        home: home.clone(),
        latch: Arc::clone(latch),
        jails,
        settings: Arc::clone(&gateway.settings),
        demo: DemoLayer::default(),
        verified_layers: Arc::clone(verified_layers),
        fetchers: Arc::clone(fetchers),
        logins: Arc::new(Logins::new(Arc::clone(record), Arc::clone(latch), Arc::clone(fetchers))),
        slots: Slots::default(),
        resolving: Resolving::default(),
    }
}

/// Returns the servers of `model.sock`.
fn model_servers(
    home: &Home,
    gateway: &Gateway,
    turns: &Arc<OpenTurns>,
    models: &Arc<Models>,
    latch: &Arc<Latch>,
    executor: Executor,
) -> ModelServers {
    ModelServers {
        turns: Arc::clone(turns),
        caches: Arc::default(),
        models: Arc::clone(models),
        latch: Arc::clone(latch),
        home: home.clone(),
        settings: Arc::clone(&gateway.settings),
        executor: Arc::new(executor),
        versions: VersionKeeper::default(),
    }
}

/// Starts the maintenance of the ledger. Also returns the names of heads and archives of another history.
pub(super) async fn head_publisher(opened: &Opened) -> Result<(HeadPublisher, Vec<String>), Error> {
    let Opened { home, config, master, state, .. } = opened;
    let sink = Sink::choose(&config.ledger, home).unwrap_or(Sink::None("the settings were refused"));
    let tell = notifications::head_not_kept;
    Ok(HeadPublisher::start(state, home, &config.ledger, sink, master.wrapping_key(), tell).await?)
}

pub(super) fn backup_maker(home: &Home, config: &Config, master: &MasterKey) -> backup::Maker {
    let sink = Sink::choose(&config.ledger, home).unwrap_or(Sink::None("the settings were refused"));
    backup::Maker::new(home, master, sink)
}

/// Removes layers of software and skills without an agent.
pub(super) async fn sweep_packages(state: &State, home: &Home) -> Result<(), Error> {
    // Nothing is fetched yet, and no sandbox runs.
    let layers = state.read(registry::software::layers).await?;
    let swept = home.clone();
    let sweeping = tokio::task::spawn_blocking(move || packages::sweep(&swept, &layers));
    if let Err(error) = sweeping.await {
        tracing::error!(%error, "could not remove unused packages; the next start tries again");
    }
    let skills = state.read(registry::skills::kept).await?;
    let shelf = Shelf::new(home.clone());
    if let Err(error) = tokio::task::spawn_blocking(move || shelf.sweep(&skills)).await {
        tracing::error!(%error, "could not remove unused skills; the next start tries again");
    }
    Ok(())
}

/// Opens the record by `open`. A replaced key gets an explicit error.
pub(super) fn open_state(
    open: fn(&Path, &SessionKey) -> Result<State, ironclaw_state::Error>,
    home: &Home,
    config: &Config,
    master: &MasterKey,
) -> Result<State, Error> {
    let source = Source::choose(home, &config.keys);
    open(&home.state_db(), &master.state_key())
        .map_err(|error| key_rotation::explain(home, &source, master, error).into())
}

/// Returns the configuration of jails, and connects the launcher.
fn jails_of(opened: &Opened, paths: &Paths, launcher: Handle) -> Result<(launch::Config, Launcher), Error> {
    let me = std::env::current_exe().map_err(io("find this program"))?;
    let sandbox = me.with_file_name("ironclaw-sandbox");
    if !sandbox.is_file() {
        return Err(Error::NoSandbox(me));
    }
    let jail = &opened.config.jail;
    let uids = nix::unistd::geteuid().is_root().then_some((jail.uid_base, jail.uid_count));
    let launcher = Launcher::start(launcher).map_err(io("connect the launcher"))?;
    Ok((launch::Config { uids, sandbox, runtime: paths.runtime.clone() }, launcher))
}

/// Settles a token that was about to enter the owner's file when the host died: the file gets it if the record has it.
async fn settle_owner_token(state: &State, home: &Home) -> Result<(), Error> {
    let Ok(text) = home::read_small(&home.owner_token_next()) else { return Ok(()) };
    let digest = Digest::of(text.trim().as_bytes());
    if state.read(move |tx| registry::tokens::is_live(tx, &digest)).await? {
        return Ok(home.adopt_owner_token()?);
    }
    Ok(home::remove(&home.owner_token_next())?)
}
