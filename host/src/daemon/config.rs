//! The settings of all modules, from `config.toml`.
//!
//! Has no setting of its own: each table is the `Config` of its module, and [`SETTINGS`] describes each setting. An unknown key is refused
//! with the nearest known one. See [`crate::daemon`].

mod setting;
mod values;

pub use setting::{Applies, Bounds, DefaultValue, SETTINGS, Setting, template};
pub use values::Values;

use crate::store::toml_file::{self, Error};
use ironclaw_contract::canonical::Digest;
use ironclaw_state::home::Home;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Every setting, with its default.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `[log]`
    pub log: crate::daemon::observe::Config,
    /// `[session]`
    pub session: crate::sessions::Config,
    /// `[turn]`
    pub turn: crate::turns::turn::Config,
    /// `[items]`
    pub items: crate::turns::items::Config,
    /// `[budget]`
    pub budget: crate::turns::budget::Config,
    /// `[jail]`
    pub jail: JailConfig,
    /// `[model]`
    pub model: ironclaw_model::Config,
    /// `[api]`
    pub api: crate::api::Config,
    /// `[webhook]`
    pub webhook: crate::channels::inbound::channel::webhook::Config,
    /// `[mounts]`
    pub mounts: crate::registry::live_settings::MountsConfig,
    /// `[keys]`
    pub keys: ironclaw_state::keys::Config,
    /// `[ledger]`
    pub ledger: ironclaw_ledger::Config,
    /// `[packages]`
    pub packages: crate::reach::packages::Config,
    /// `[egress]`
    pub egress: crate::registry::egress::Config,
    /// `[approval]`
    pub approval: crate::registry::live_settings::ApprovalConfig,
    /// `[quota]`
    pub quota: crate::registry::quota::Config,
    /// `[agents]`
    pub agents: crate::channels::agent_messages::Config,
}

/// `[jail]`: the uids of jails, if root started the host.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JailConfig {
    /// First host uid of the range.
    pub uid_base: u32,
    /// Number of uids in the range; one for each session.
    pub uid_count: u32,
}

impl Default for JailConfig {
    fn default() -> Self {
        Self { uid_base: ironclaw_jail::FIRST_HOST_ID, uid_count: 65_536 }
    }
}

impl JailConfig {
    /// Refuses a range that is out of bounds.
    fn check(&self) -> Result<(), String> {
        // One of them is for fetching packages.
        if self.uid_count < 2 || self.uid_base < 65_536 || self.uid_base.checked_add(self.uid_count).is_none() {
            return Err(
                "jail.uid_base must be at least 65536, jail.uid_count at least 2, and the range must lie below 2^32"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

/// Reads the settings of a home. Without a file, every default applies.
///
/// The file is `config.toml` in the home, or else `ironclaw/config.toml` in the XDG config directory.
pub fn load(home: &Home) -> Result<(Config, Option<PathBuf>), Error> {
    read(home).map(|File { config, path, .. }| (config, path))
}

/// The settings file of a home.
#[derive(Debug, Clone, Default)]
pub struct File {
    /// The settings.
    pub config: Config,
    /// The values by the names of the settings.
    pub values: Values,
    /// The path; `None` without a file.
    pub path: Option<PathBuf>,
    /// The digest of the bytes of the file.
    pub digest: Option<Digest>,
}

/// Reads the settings file of a home, as [`load`] does.
pub fn read(home: &Home) -> Result<File, Error> {
    let in_home = home.config();
    let in_xdg = directories::ProjectDirs::from("", "", "ironclaw").map(|dirs| dirs.config_dir().join("config.toml"));
    let found = [Some(in_home), in_xdg].into_iter().flatten().find(|path| path.exists());
    let Some(path) = found else { return Ok(File::default()) };
    let text = toml_file::read(&path)?;
    let config = parse(&text, &path)?;
    let values = Values::parse(&text, &path)?;
    // The check of this directory needs the home.
    ironclaw_ledger::sink::Sink::choose(&config.ledger, home)
        .map_err(|what| toml_file::refused(&path, values.locate(&text, &what)))?;
    Ok(File { config, values, digest: Some(Digest::of(text.as_bytes())), path: Some(path) })
}

/// Reads settings from a text; `path` is for messages.
pub fn parse(text: &str, path: &Path) -> Result<Config, Error> {
    let config: Config = toml_file::parse(text, path)?;
    if let Err(what) = check(&config) {
        return Err(toml_file::refused(path, Values::parse(text, path)?.locate(text, &what)));
    }
    Ok(config)
}

/// Refuses settings that are out of bounds.
fn check(config: &Config) -> Result<(), String> {
    config.jail.check()?;
    config.model.check()?;
    config.turn.check()?;
    config.session.check()?;
    config.ledger.check()?;
    for (name, setting) in [("api.listen", &config.api.listen), ("webhook.listen", &config.webhook.listen)] {
        crate::api::port::parse(name, setting)?;
    }
    config.webhook.check()?;
    config.agents.check()?;
    if let Some(relative) = config.mounts.allow.iter().find(|path| !path.is_absolute()) {
        return Err(format!("mounts.allow: {} is not absolute", relative.display()));
    }
    config.packages.check()?;
    config.approval.check()?;
    config.quota.check()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_known_one() {
        let error = parse("[session]\nidle_secnods = 3\n", Path::new("c.toml")).expect_err("refused").to_string();
        assert!(error.contains("did you mean `idle_seconds`?"), "{error}");
        let error = parse("[sesion]\n", Path::new("c.toml")).expect_err("refused").to_string();
        assert!(error.contains("did you mean `session`?"), "{error}");
        assert!(parse("[jail]\nuid_base = 0\n", Path::new("c.toml")).is_err());
    }

    #[test]
    fn value_out_of_bounds_is_refused_with_key_and_line() {
        let error = parse("[log]\n\n[quota]\nworkspace_files = 0\n", Path::new("c.toml")).expect_err("refused");
        assert!(error.to_string().starts_with("c.toml: line 4: quota.workspace_files"), "{error}");
    }

    #[test]
    fn second_table_is_refused_with_the_remedy() {
        let text = format!("{}\n[webhook]\nlisten = \"127.0.0.1:8788\"\n", template());
        let error = parse(&text, Path::new("c.toml")).expect_err("refused").to_string();
        assert!(error.contains("duplicate key") && error.contains("edit it there"), "{error}");
    }

    #[test]
    fn manual_line_of_webhooks_fits_the_template() {
        let page = include_str!("../../../docs/operate/webhooks.md");
        let snippet = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a snippet");
        let template = template();
        let (before, table) = template.split_once("[webhook]\n").expect("the table");
        assert!(table.contains("# listen = \"\"\n"), "the manual names this line");
        let text = format!("{before}[webhook]\n{}", table.replacen("# listen = \"\"\n", snippet, 1));
        assert_eq!(parse(&text, Path::new("c.toml")).expect("reads").webhook.listen, "127.0.0.1:8788");
    }

    #[test]
    fn a_range_of_uids_without_one_for_sessions_is_refused() {
        for (count, fits) in [(0, false), (1, false), (2, true)] {
            let parsed = parse(&format!("[jail]\nuid_count = {count}\n"), Path::new("c.toml"));
            assert_eq!(parsed.is_ok(), fits, "{count}: {parsed:?}");
        }
    }
}
