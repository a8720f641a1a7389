//! The composition root: opens each module in order, runs until a stop, and closes them in the opposite order.
//!
//! Has no behaviour of its own. See [`crate::runtime::pipeline`].

pub mod audit;
pub mod command;
pub mod config;
mod error;
mod file_system;
mod history;
mod lost_versions;
mod mount_policy;
pub mod observe;
mod offline;
pub mod preflight;
mod reload;
mod run_record;
mod socket_directory;
mod sockets;
mod startup;
mod supervise;
mod warm_up;
mod workers;
mod zone_sources;

pub use error::Error;
pub use file_system::refuse_home as refuse_file_system;
pub use mount_policy::{Exposed, refuse_key_file};
pub use offline::{Made, back_up, init, removal, rotate, zone};

use crate::runtime::sessions::Sessions;
use crate::upkeep::maintenance::HeadPublisher;
use ironclaw_contract::ids::BootId;
use ironclaw_jail::launcher::Handle;
use sockets::{Paths, Sockets};
use startup::{Opened, Parts};
use std::path::Path;
use supervise::Reason;
use workers::Workers;

/// Runs the host on a home until it stops. `launcher` was forked before any thread.
pub async fn run(path: &Path, launcher: Handle) -> Result<(), Error> {
    let opened = startup::open(path).await?;
    let ran = supervise::until_damaged(&opened, serve(&opened, launcher)).await;
    opened.state.close().await;
    ran
}

/// Runs startup, sockets, workers, supervision, and the stop.
async fn serve(opened: &Opened, launcher: Handle) -> Result<(), Error> {
    let Opened { home, config, state, .. } = opened;
    let boot = BootId::new();
    let paths = Paths::choose(home, config)?;
    let parts = Parts::make(opened, boot, &paths, launcher).await?;
    let sockets = Sockets::open(config, &paths).await?;

    // A failure before this line leaves no entry in the ledger.
    let mut warnings = run_record::begin(&parts.gateway, home, boot).await?;
    let (head_publisher, other_history) = startup::head_publisher(opened).await?;
    warnings.extend(history::begin_another(&parts.gateway, other_history).await?);
    startup::sweep_packages(state, home).await?;
    parts.resume().await?;

    let listens = sockets.listens();
    let mut workers = Workers::start(&parts, config, sockets, &head_publisher, warnings);
    sockets::announce(home, &paths, listens)?;
    parts.stops.apply_panic_file().await?;
    tokio::spawn(parts.stops.clone().watch_for_panic_file());
    tracing::info!(version = env!("CARGO_PKG_VERSION"), %boot, home = %home.path().display(), "listening");
    warm_up::begin(parts.sessions.clone());
    let reason = supervise::wait(&mut workers, &parts.jails.launcher).await?;
    workers.begin_end();
    // New clients are not accepted; open requests end; then the record is closed.
    let _ = std::fs::remove_file(home.run_file());
    tracing::info!("stopping");
    if reason == Reason::LauncherDied {
        let launcher = parts.jails.launcher.pid();
        tracing::error!(launcher, "the launcher died, and every jail with it");
        return Err(Error::LauncherDied(launcher));
    }
    stop(opened, boot, &parts.sessions, workers, &paths, head_publisher).await
}

/// Ends the sessions, then the workers, then the record.
async fn stop(
    opened: &Opened,
    boot: BootId,
    sessions: &Sessions,
    workers: Workers,
    paths: &Paths,
    head_publisher: HeadPublisher,
) -> Result<(), Error> {
    sessions.stop().await;
    workers.end().await;
    paths.remove();
    run_record::end(&opened.state, boot).await?;
    head_publisher.stop().await;
    opened.state.checkpoint().await?;
    tracing::info!("stopped");
    Ok(())
}
