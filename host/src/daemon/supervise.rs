//! The reasons for which a running host stops.

use super::error::{Error, io};
use super::startup::Opened;
use super::workers::Workers;
use ironclaw_jail::launcher::Launcher;
use tokio::signal::unix::{SignalKind, signal};

/// The reason that the host stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// A signal or an operator asked for it.
    Asked,
    /// The launcher died, and every jail with it.
    LauncherDied,
}

/// Runs the host, and stops at once on damage of the record.
pub(super) async fn until_damaged(
    opened: &Opened,
    serve: impl Future<Output = Result<(), Error>>,
) -> Result<(), Error> {
    // A worker that finds damage stops the host at once: no change builds on the damage, and no intact data is lost.
    tokio::select! {
        // Damage comes first: other failures follow from it and say less about the cause.
        biased;
        error = opened.state.damaged() => {
            tracing::error!(%error, "stopping");
            let _ = std::fs::remove_file(opened.home.run_file());
            Err(error.into())
        }
        ran = serve => ran,
    }
}

/// Waits for a reason to stop.
pub(super) async fn wait(workers: &mut Workers, launcher: &Launcher) -> Result<Reason, Error> {
    let Workers { shutdown, sending, .. } = workers;
    let mut terminate = signal(SignalKind::terminate()).map_err(io("listen for SIGTERM"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(io("listen for SIGINT"))?;
    Ok(tokio::select! {
        // A stop comes first, because it ends the delivery worker as well.
        biased;
        _ = terminate.recv() => Reason::Asked,
        _ = interrupt.recv() => Reason::Asked,
        () = shutdown.stopped() => Reason::Asked,
        () = launcher.died() => Reason::LauncherDied,
        // A stop at the same moment ends it too, and is no failure.
        _ = sending => {
            if !shutdown.is_stopped() {
                return Err(Error::DispatchEnded);
            }
            Reason::Asked
        }
    })
}
