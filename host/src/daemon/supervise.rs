//! The reasons for which a running host stops.

use super::error::{Error, io};
use super::startup::Opened;
use super::workers::Workers;
use ironclaw_jail::launcher::Launcher;
use nix::fcntl::OFlag;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
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
    let Workers { shutdown, sending, reloader, .. } = workers;
    let has_terminal = has_terminal();
    let mut hangup = signal(SignalKind::hangup()).map_err(io("listen for SIGHUP"))?;
    let mut terminate = signal(SignalKind::terminate()).map_err(io("listen for SIGTERM"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(io("listen for SIGINT"))?;
    loop {
        return Ok(tokio::select! {
            // A stop comes first, because it ends the delivery worker as well.
            biased;
            _ = terminate.recv() => Reason::Asked,
            _ = interrupt.recv() => Reason::Asked,
            () = shutdown.stopped() => Reason::Asked,
            () = launcher.died() => Reason::LauncherDied,
            // A stop at the same moment ends it too, and is no failure.
            _ = &mut *sending => {
                if !shutdown.is_stopped() {
                    return Err(Error::DispatchEnded);
                }
                Reason::Asked
            }
            _ = hangup.recv() => {
                // A terminal that closes sends the same signal.
                if has_terminal && !self::has_terminal() {
                    return Ok(Reason::Asked);
                }
                tokio::spawn(Arc::clone(reloader).reload_by_signal());
                continue;
            }
        });
    }
}

/// Returns whether this process has a terminal that controls it.
fn has_terminal() -> bool {
    OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open("/dev/tty").is_ok()
}
