//! The composition root: opens each module in order, runs until told to stop, closes in the opposite order.
//!
//! Holds no behaviour of its own; what grows here belongs to a module. Next: `pipeline`.

mod grounds;
mod history;
mod runtime;

pub use grounds::{Exposed, refuse_key_file};

use crate::api::hooks::Hooks;
use crate::api::port::{self, Port};
use crate::api::{self, Api};
use crate::config::Config;
use crate::custody::{self, MasterKey, Source};
use crate::gateway::policy::{self, Policy};
use crate::gateway::quorum;
use crate::home::{self, Home};
use crate::integrity::seal::{self, Sealer};
use crate::launcher::{Handle, Launcher};
use crate::ledger::keeper::Keeper;
use crate::ledger::sink::Sink;
use crate::ledger::{Entry, archive, head};
use crate::pipeline::{self, Core, Limits, Pipeline, Places};
use crate::registry::{self, Fresh};
use crate::state::{self, State};
use crate::{config, model, observe, packages, rotation, settings, turn};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::BootId;
use ironclaw_contract::operator::{LedgerEvent, Rotated, Run};
use ironclaw_contract::seam::crypt::SessionKey;
use rusqlite::OptionalExtension;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use zeroize::Zeroizing;

/// Why the daemon does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The home.
    #[error(transparent)]
    Home(#[from] home::Error),
    /// The settings or the policy.
    #[error(transparent)]
    Settings(#[from] settings::Error),
    /// A key.
    #[error(transparent)]
    Key(#[from] custody::Error),
    /// The record.
    #[error(transparent)]
    State(#[from] state::Error),
    /// A model endpoint.
    #[error(transparent)]
    Model(#[from] model::Error),
    /// The secret of the seals.
    #[error(transparent)]
    Seal(#[from] seal::Error),
    /// The stages.
    #[error(transparent)]
    Pipeline(#[from] pipeline::Error),
    /// The signing key of the ledger.
    #[error(transparent)]
    Head(#[from] head::Error),
    /// A rotation beside no host.
    #[error(transparent)]
    Rotate(#[from] archive::Error),
    /// The master key does not open the record.
    #[error(transparent)]
    Rotation(#[from] rotation::Error),
    /// The home was not set up to its end.
    #[error("the record of {0} is empty: it has no genesis")]
    NoGenesis(PathBuf),
    /// The sandbox's program is missing.
    #[error("cannot find ironclaw-sandbox beside {0}: install both from one build")]
    NoSandbox(PathBuf),
    /// A directory for sockets.
    #[error("cannot use {path} for sockets: {why}")]
    Runtime {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// Something of the host's own that jails would show.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// The loopback port.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// What `api.listen` or `webhook.listen` says.
        address: String,
        /// The cause.
        source: std::io::Error,
    },
    /// What sends deliveries came to its end; nothing would go out any more.
    #[error("what sends deliveries came to its end by itself")]
    DispatchEnded,
    /// The launcher died; nothing can be launched any more.
    #[error("the launcher (process {0}) died")]
    LauncherDied(u32),
    /// The system.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The cause.
        source: std::io::Error,
    },
}

fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::Io { what, source }
}

/// Sets up a home: master key, state, genesis, owner and token, settings. A second time it changes nothing.
///
/// Returns what was made.
///
/// # Errors
/// [`home::Error::RecordMissing`] in a home that had a record: a new one would hide what is left of it.
pub fn init(path: &Path) -> Result<Made, Error> {
    grounds::refuse_home(path)?;
    let home = Home::create(path)?;
    let (config, _) = config::load(&home)?;
    home.check_for_lost_record()?;
    if !home.has_record() {
        home.begin_setup()?;
    }
    MasterKey::create(&home, &config.keys)?;
    // Held until the end: no host may start in between and share the write-ahead log.
    let held = match home.hold() {
        Ok(held) => Some(held),
        Err(home::Error::Running(_)) => None,
        Err(error) => return Err(error.into()),
    };
    // A host that runs has settled this itself.
    if held.is_some() && home.has_record() {
        rotation::settle(&home, &config.keys)?;
    }
    let master = MasterKey::load(&home, &config.keys)?;
    State::create(&home.state_db())?;
    let open = if held.is_some() { State::open } else { State::open_beside };
    block_on(async {
        let state = open_state(open, &home, &config, &master)?;
        let made = set_up(&state, &home, master.wrapping_key()).await;
        state.close().await;
        made
    })
}

/// Runs a command of this program that serves nothing.
fn block_on<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(io("start the runtime"))?.block_on(work)
}

/// What [`init`] made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// The home.
    Home,
    /// A token of the owner, in the place of one that was lost or that no live token fits.
    Token,
    /// Nothing: everything is in place.
    Nothing,
}

async fn set_up(state: &State, home: &Home, wrapping: custody::WrappingKey) -> Result<Made, Error> {
    let fresh = Fresh::new()?;
    let text = Zeroizing::new(fresh.text().to_owned());
    let (remains, place) = (home.remains(), home.path().to_owned());
    home.check_owner_token()?;
    let kept = home::read_small(&home.owner_token()).ok().map(Zeroizing::new);
    let kept = kept.map(|text| Digest::of(text.trim().as_bytes()));
    let made = state
        .write(move |tx| {
            if let Some(owner) = registry::owner(tx)? {
                if kept.map(|digest| registry::tokens::is_live(tx, &digest)).transpose()?.unwrap_or(false) {
                    return Ok::<_, Error>(Made::Nothing);
                }
                registry::tokens::issue_for_file(tx, owner, &fresh)?;
                return Ok(Made::Token);
            }
            if remains.is_some() {
                return Err(Error::NoGenesis(place));
            }
            let signer = head::Signer::make(tx, &wrapping)?;
            Entry::new(LedgerEvent::LedgerOpened)
                .with("ironclaw", env!("CARGO_PKG_VERSION"))
                .with("key", signer.public())
                .append(tx)?;
            let owner = registry::create_owner(tx, "owner")?;
            registry::tokens::issue_for_file(tx, owner, &fresh)?;
            Ok(Made::Home)
        })
        .await?;
    if made != Made::Nothing {
        home::write_private(&home.owner_token(), text.as_bytes())?;
    }
    if !home.config().exists() {
        home::write_private(&home.config(), config::TEMPLATE.as_bytes())?;
    }
    if !home.policy().exists() {
        home::write_private(&home.policy(), policy::TEMPLATE.as_bytes())?;
    }
    pipeline::keep_reserve(home);
    home.end_setup()?;
    Ok(made)
}

/// Rotates the ledger of a home on which no host runs.
pub fn rotate(path: &Path) -> Result<Rotated, Error> {
    let home = Home::open(path)?;
    let _lock = home.hold()?;
    let (config, _) = config::load(&home)?;
    let sink = Sink::choose(&config.ledger, &home).unwrap_or(Sink::Nowhere("the settings were refused"));
    rotation::settle(&home, &config.keys)?;
    let master = MasterKey::load(&home, &config.keys)?;
    block_on(async {
        let state = open_state(State::open, &home, &config, &master)?;
        let rotated = async {
            let (keeper, _) = Keeper::start(&state, &home, &config.ledger, sink, master.wrapping_key()).await?;
            let rotated = keeper.rotate(archive::Why::Asked(None)).await?;
            keeper.stop().await;
            Ok::<_, Error>(rotated)
        };
        let rotated = rotated.await;
        state.close().await;
        rotated
    })
}

/// Opens the record by `open`; a key that was replaced gets an error that says so.
fn open_state(
    open: fn(&Path, &SessionKey) -> Result<State, state::Error>,
    home: &Home,
    config: &Config,
    master: &MasterKey,
) -> Result<State, Error> {
    let source = Source::of(home, &config.keys);
    open(&home.state_db(), &master.state_key()).map_err(|error| rotation::explain(home, &source, master, error).into())
}

/// Runs the host on a home until it is told to stop. `launcher` was forked before any thread.
pub async fn run(path: &Path, launcher: Handle) -> Result<(), Error> {
    let home = Home::open(path)?;
    home.check_room()?;
    let _lock = home.hold()?;
    // One that was killed leaves its own behind, with a socket that is ours as soon as we listen: nobody may take us for it.
    runtime::remove_left(&home);
    home.prepare_start()?;
    let (config, _) = config::load(&home)?;
    grounds::refuse_shown(&config, &home)?;
    observe::start(&config.log, &home)?;
    pipeline::keep_reserve(&home);
    rotation::settle(&home, &config.keys)?;
    let master = MasterKey::load(&home, &config.keys)?;
    let state = open_state(State::open, &home, &config, &master)?;
    settle_owner_token(&state, &home).await?;
    // What comes upon damage stops at once: nothing is built on it, and nothing that is whole is lost.
    let run_file = home.run_file();
    let ran = tokio::select! {
        // Whoever works on the record ends with it, and says less of why.
        biased;
        error = state.damaged() => {
            tracing::error!(%error, "stopping");
            let _ = std::fs::remove_file(run_file);
            Err(error.into())
        }
        ran = serve(&state, home, &config, &master, launcher) => ran,
    };
    state.close().await;
    ran
}

async fn serve(state: &State, home: Home, config: &Config, master: &MasterKey, launcher: Handle) -> Result<(), Error> {
    let boot = BootId::new();
    let runtime = runtime::directory(&home)?;
    let socket = config.api.socket.clone().unwrap_or_else(|| runtime.join("api.sock"));
    let core = Core {
        state: state.clone(),
        config: pipeline_config(config, runtime.clone())?,
        sealer: Sealer::new(boot)?,
        cut_turns: state.read(|tx| turn::every_open(tx)).await?.iter().map(|turn| turn.id).collect(),
        wrapping: master.wrapping_key(),
        endpoints: RwLock::new(Arc::new(model::endpoint::open_stored(
            &config.model,
            state.read(|tx| registry::models::specs(tx)).await?,
        )?)),
        launcher: Launcher::start(launcher).map_err(io("connect the launcher"))?,
        launches: tokio::sync::Semaphore::new(pipeline::LAUNCHES_MAX),
        looks: tokio::sync::Semaphore::new(pipeline::LOOKS_MAX),
        places: Places::new(Limits::of(&config.session)),
        latch: pipeline::Latch::default(),
        actors: pipeline::Actors::default(),
        deadlines: pipeline::Deadlines::default(),
        drafts: pipeline::Drafts::default(),
        dispatch: pipeline::Dispatch::default(),
        policy: policy::load(&home.policy())?,
        grounds: grounds::look(config, &home, &runtime, &socket)?,
        approvals: master.approval_root(),
        changes: pipeline::Changes::default(),
        layers: Mutex::default(),
        home: home.clone(),
    };
    let listener = port::unix(listen(&socket)?);
    let port = open_port("api.listen", &config.api.listen, port::For::Api).await?;
    let hooks_port = open_port("webhook.listen", &config.webhook.listen, port::For::Hooks).await?;
    // From here on it runs: what fails before leaves no mark in the ledger.
    let warnings = begin(state, &home, boot, &core.policy).await?;
    let sink = Sink::choose(&config.ledger, &home).unwrap_or(Sink::Nowhere("the settings were refused"));
    let (keeper, other_history) = Keeper::start(state, &home, &config.ledger, sink, master.wrapping_key()).await?;
    let mut warnings = warnings;
    warnings.extend(history::begin_another(state, other_history).await?);
    let launcher = core.launcher.clone();
    let pipeline = Pipeline::new(core);
    // Nothing is fetched yet, and no sandbox runs.
    let layers = state.read(|tx| registry::software::layers(tx)).await?;
    let swept = home.clone();
    let sweeping = tokio::task::spawn_blocking(move || packages::sweep(&swept, &layers));
    if let Err(error) = sweeping.await {
        tracing::error!(%error, "packages that nobody has any more were not removed; the next start tries again");
    }
    pipeline.resume().await?;
    tokio::spawn(pipeline.clone().apply_changes());
    tokio::spawn(pipeline.clone().retain());
    let (stop, mut stopped) = watch::channel(false);
    let mut sending = tokio::spawn(pipeline.clone().dispatch(stop.subscribe()));
    let stopping = Arc::new(AtomicBool::new(false));
    let about = api::About {
        hooks: hooks_port.as_ref().and_then(Port::address),
        keeper: keeper.clone(),
        started_at: state::wall_clock(),
        warnings,
        stopping: Arc::clone(&stopping),
    };
    let listens = port.as_ref().and_then(Port::address).map(|address| address.to_string());
    let large = Arc::default();
    let api = Api::new(pipeline.clone(), about, stop.clone(), Arc::clone(&large));
    let hooking = hooks_port.map(|port| {
        let hooks = Hooks::new(pipeline.clone(), large);
        tokio::spawn(hooks.serve(port, stop.subscribe()))
    });
    let serving = tokio::spawn(api.serve(listener, port, stop.subscribe()));
    let run = Run {
        pid: std::process::id(),
        socket: socket.display().to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        listen: listens,
    };
    let run = serde_json::to_vec(&run).expect("plain fields");
    home::write_private(&home.run_file(), &run)?;
    pipeline.heed_the_file().await?;
    tokio::spawn(pipeline.clone().watch_for_the_file());
    tracing::info!(version = env!("CARGO_PKG_VERSION"), %boot, home = %home.path().display(), "listening");
    let mut terminate = signal(SignalKind::terminate()).map_err(io("listen for SIGTERM"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(io("listen for SIGINT"))?;
    let died = tokio::select! {
        // A stop ends whoever sends as well.
        biased;
        _ = terminate.recv() => false,
        _ = interrupt.recv() => false,
        _ = stopped.wait_for(|stop| *stop) => false,
        () = launcher.died() => true,
        // A stop that comes in this very moment ends it too, and is no failure.
        _ = &mut sending => {
            if !*stop.borrow() {
                return Err(Error::DispatchEnded);
            }
            false
        }
    };
    stopping.store(true, Ordering::SeqCst);
    // Nobody new is let in; what is open ends; then the record is closed.
    let _ = std::fs::remove_file(home.run_file());
    tracing::info!("stopping");
    if died {
        tracing::error!(launcher = launcher.pid(), "the launcher died: every jail is gone with it");
        return Err(Error::LauncherDied(launcher.pid()));
    }
    pipeline.stop().await;
    stop.send_replace(true);
    let _ = tokio::time::timeout(std::time::Duration::from_secs(5), async {
        let _ = serving.await;
        if let Some(hooking) = hooking {
            let _ = hooking.await;
        }
    })
    .await;
    // Bounded by itself.
    if !sending.is_finished() {
        let _ = sending.await;
    }
    let _ = std::fs::remove_file(&socket);
    let _ = std::fs::remove_dir(&runtime);
    state
        .write(move |tx| {
            tx.db().execute("DELETE FROM meta WHERE key = 'running'", [])?;
            Entry::new(LedgerEvent::HostStopped).with("boot", boot).append(tx)?;
            Ok::<_, state::Error>(())
        })
        .await?;
    keeper.stop().await;
    state.checkpoint().await?;
    tracing::info!("stopped");
    Ok(())
}

fn pipeline_config(config: &Config, runtime: PathBuf) -> Result<pipeline::Config, Error> {
    let me = std::env::current_exe().map_err(io("find this program"))?;
    let sandbox = me.with_file_name("ironclaw-sandbox");
    if !sandbox.is_file() {
        return Err(Error::NoSandbox(me));
    }
    let root = nix::unistd::geteuid().is_root();
    Ok(pipeline::Config {
        session: config.session.clone(),
        turn: config.turn.clone(),
        items: config.items.clone(),
        budget: config.budget.clone(),
        model: config.model.clone(),
        webhook: config.webhook.clone(),
        quota: config.quota.clone(),
        uids: root.then_some((config.jail.uid_base, config.jail.uid_count)),
        sandbox,
        runtime,
    })
}

/// Writes the BOOT entry; says so when the last run did not end in order.
async fn begin(state: &State, home: &Home, boot: BootId, policy: &Policy) -> Result<Vec<String>, Error> {
    let policy_digest = policy.digest().to_string();
    let begun: Option<(Option<String>, Vec<String>)> = state
        .write(move |tx| {
            if registry::owner(tx)?.is_none() {
                return Ok::<_, state::Error>(None);
            }
            let sql = "SELECT value FROM meta WHERE key = 'running'";
            let previous: Option<String> = tx.db().query_row(sql, [], |row| row.get(0)).optional()?;
            tx.db().execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('running', ?1)", [boot])?;
            let entry = Entry::new(LedgerEvent::HostStarted)
                .with("boot", boot)
                .with("version", env!("CARGO_PKG_VERSION"))
                .with("fingerprint", ironclaw_contract::seam::fingerprint())
                .with("policy", policy_digest);
            if let Some(migrated) = state::migrations::take_note(tx.db())? {
                Entry::new(LedgerEvent::StateMigrated)
                    .with("from", migrated.from)
                    .with("to", migrated.to)
                    .with("snapshot", migrated.snapshot)
                    .append(tx)?;
            }
            match &previous {
                Some(previous) => entry.with("unclean_end_of", previous.clone()).append(tx)?,
                None => entry.append(tx)?,
            };
            let lost = history::note_losses(tx, boot)?;
            Ok(Some((previous, lost)))
        })
        .await?;
    let (previous, mut warnings) = begun.ok_or_else(|| Error::NoGenesis(home.path().to_owned()))?;
    home.end_setup()?;
    if policy::is_absent(&home.policy()) {
        let warning = format!(
            "{} is missing or empty, so every default holds: one yes of an owner or admin is enough for any change; `ironctl init` writes one to edit",
            home.policy().display()
        );
        tracing::warn!("{warning}");
        warnings.push(warning);
    }
    for unmet in quorum::unmet(&state.read(|tx| quorum::look(tx)).await?, policy) {
        let warning = unmet.to_string();
        tracing::warn!("{warning}");
        warnings.push(warning);
    }
    if previous.is_some() {
        let warning = "the last run did not end in order; what was open was taken up again";
        tracing::warn!("{warning}");
        warnings.push(warning.to_owned());
    }
    Ok(warnings)
}

fn listen(socket: &Path) -> Result<UnixListener, Error> {
    use std::os::unix::fs::PermissionsExt;
    let refuse = |source: std::io::Error| Error::Runtime { path: socket.to_owned(), why: source.to_string() };
    use std::os::unix::fs::FileTypeExt;
    match socket.symlink_metadata() {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(socket).map_err(refuse)?,
        Ok(_) => return Err(refuse(std::io::Error::other("something that is no socket stands there"))),
        Err(_) => {}
    }
    let listener = UnixListener::bind(socket).map_err(refuse)?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600)).map_err(refuse)?;
    Ok(listener)
}

/// The loopback port of this setting, if it opens one.
async fn open_port(name: &str, listen: &str, what: port::For) -> Result<Option<Port>, Error> {
    // What is no loopback address was refused with the settings.
    let Ok(Some(address)) = port::parse(name, listen) else { return Ok(None) };
    let opened = port::open(address, what).await;
    opened.map(Some).map_err(|source| Error::Listen { address: address.to_string(), source })
}

/// A token of the owner that was about to take its file when the host died: it does, if the record has it.
async fn settle_owner_token(state: &State, home: &Home) -> Result<(), Error> {
    let Ok(text) = home::read_small(&home.owner_token_next()) else { return Ok(()) };
    let digest = Digest::of(text.trim().as_bytes());
    if state.read(move |tx| registry::tokens::is_live(tx, &digest)).await? {
        return Ok(home.adopt_owner_token()?);
    }
    Ok(home::remove(&home.owner_token_next())?)
}
