//! `ironctl config`: checks the settings of the host, and makes a running host read them again.
//!
//! Never reads them itself: `ironclaw-host` does, with the code of its start. See `config.toml` in the home.

use crate::at::At;
use crate::failure::Error;
use crate::host_binary::Offline;
use clap::Subcommand;
use ironclaw_operator::{Reloaded, routes};

/// The verbs of `ironctl config`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Check that a host would start with the settings
    #[command(after_help = "Example:\n  ironctl config check")]
    Check,
    /// Apply changed settings to the running host, and name those that need a restart
    #[command(after_help = "Example:\n  ironctl config reload")]
    Reload,
}

/// Runs the check by the host's binary and passes on its exit code, or requests the reload from the running host.
pub async fn run(at: &At, action: &Action) -> Result<(), Error> {
    match action {
        Action::Check => Offline::host(&["config", "check"])?.at(&at.home).json(at.out.is_json()).pass(),
        Action::Reload => print(at, &at.client()?.call(routes::RELOAD_CONFIG, []).await?),
    }
}

fn print(at: &At, reloaded: &Reloaded) -> Result<(), Error> {
    at.out.json(reloaded)?;
    for warning in &reloaded.warnings {
        at.out.remark(format!("warning: {warning}"))?;
    }
    let Reloaded { file, applied, restart, policy_changed, .. } = reloaded;
    match file {
        Some(file) => at.out.line(format!("read {file}"))?,
        None => at.out.line("there is no config.toml: every default applies")?,
    }
    if *policy_changed {
        at.out.line("applied: policy.toml")?;
    }
    for name in applied {
        at.out.line(format!("applied: {name}"))?;
    }
    for name in restart {
        at.out.line(format!("needs a restart: {name}"))?;
    }
    if !*policy_changed && applied.is_empty() && restart.is_empty() {
        at.out.line("no setting changed")?;
    }
    Ok(())
}
