//! The settings of all modules, from `config.toml`.
//!
//! Declares no setting but those of jails: each other table is the `Config` of its module. An unknown key is refused with the nearest
//! known one. See [`ironclaw_operator::settings!`].

mod allow;
mod template;
mod values;

pub use template::template;
pub use values::Values;

use ironclaw_contract::canonical::Digest;
use ironclaw_operator::settings::Setting;
use ironclaw_state::home::{Home, write_private};
use ironclaw_store::toml_file::{self, Error};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

macro_rules! tables {
    ($($table:ident: $config:ty,)+) => {
        /// Every setting, with its default.
        #[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Config {
            $(#[doc = concat!("`[", stringify!($table), "]`")] pub $table: $config,)+
        }

        /// The settings of each table, in the order of the template and of the manual.
        const TABLES: &[&[Setting]] = &[$(<$config>::SETTINGS),+];
    };
}

tables! {
    log: crate::daemon::observe::Config,
    session: crate::sessions::Config,
    turn: crate::turns::turn::Config,
    items: crate::turns::items::Config,
    budget: crate::turns::budget::Config,
    jail: JailConfig,
    egress: crate::registry::egress::Config,
    approval: crate::registry::live_settings::ApprovalConfig,
    quota: crate::registry::quota::Config,
    agents: crate::channels::agent_messages::Config,
    model: ironclaw_model::Config,
    api: crate::api::Config,
    webhook: crate::channels::inbound::channel::webhook::Config,
    console: crate::api::console::Config,
    mounts: crate::registry::live_settings::MountsConfig,
    time: crate::registry::live_settings::time::Config,
    ledger: ironclaw_ledger::Config,
    packages: crate::reach::packages::Config,
    keys: ironclaw_state::keys::Config,
}

ironclaw_operator::settings! {
    /// `[jail]`: the uids of jails, if root started the host.
    pub struct JailConfig for jail {
        /// The first host uid of sessions if root starts the host; the range must end below 4294967296.
        uid_base: u32 = ironclaw_jail::FIRST_HOST_ID, AtLeast(65_536, ""), Restart;
        /// The number of host uids: one for each session, and the last one for fetching packages.
        uid_count: u32 = 65_536, AtLeast(2, "uids"), Restart;
    }
}

/// A setting of an earlier build.
struct Removed {
    name: &'static str,
    /// The value that holds now, in words.
    holds: &'static str,
}

const REMOVED: &[Removed] = &[
    Removed { name: "model.connect_ms", holds: "10 seconds" },
    Removed { name: "model.retry_after_ms_max", holds: "60 seconds" },
];

pub fn settings() -> impl Iterator<Item = &'static Setting> {
    TABLES.iter().copied().flatten()
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
    let Some(path) = file_of(home) else { return Ok(File::default()) };
    let text = toml_file::read(&path)?;
    let (config, values) = parse(&text, &path)?;
    // The check of this directory needs the home.
    ironclaw_ledger::sink::Sink::choose(&config.ledger, home)
        .map_err(|what| toml_file::refused(&path, values.locate(&text, &what)))?;
    Ok(File { config, values, digest: Some(Digest::of(text.as_bytes())), path: Some(path) })
}

/// Reads only the settings of the master key, so that a mistake in another table does not move the key.
///
/// # Errors
/// A file that is no TOML, or a mistake in this table.
pub fn keys(home: &Home) -> Result<ironclaw_state::keys::Config, Error> {
    let Some(path) = file_of(home) else { return Ok(Default::default()) };
    Values::parse(&toml_file::read(&path)?, &path)?.keys().map_err(|what| toml_file::refused(&path, what))
}

/// Returns whether there is no settings file, or only an empty one.
pub fn is_absent(home: &Home) -> bool {
    file_of(home).is_none_or(|path| toml_file::is_absent(&path))
}

/// Adds a directory to `[mounts] allow` in the settings file of a home; makes the file if there is none. Keeps its comments.
///
/// # Errors
/// A file that is not valid, cannot be written, or has no place for the directory. It does not change then.
pub fn allow(home: &Home, directory: &Path) -> Result<(), Error> {
    let File { path, .. } = read(home)?;
    // A link to the file stays one.
    let path = path.unwrap_or_else(|| home.config());
    let path = path.canonicalize().unwrap_or(path);
    let text = if path.exists() { toml_file::read(&path)? } else { String::new() };
    let changed = allow::with_allowed(&text, directory).map_err(|what| toml_file::refused(&path, what))?;
    parse(&changed, &path)?;
    let unwritten = |source: std::io::Error| toml_file::refused(&path, format!("cannot write it: {source}"));
    let permissions = std::fs::metadata(&path).map(|found| found.permissions()).ok();
    write_private(&path, changed.as_bytes()).map_err(|error| unwritten(std::io::Error::other(error)))?;
    match permissions {
        Some(permissions) => std::fs::set_permissions(&path, permissions).map_err(unwritten),
        None => Ok(()),
    }
}

fn file_of(home: &Home) -> Option<PathBuf> {
    let in_xdg = directories::ProjectDirs::from("", "", "ironclaw").map(|dirs| dirs.config_dir().join("config.toml"));
    [Some(home.config()), in_xdg].into_iter().flatten().find(|path| path.exists())
}

/// Reads settings from a text; `path` is for messages.
fn parse(text: &str, path: &Path) -> Result<(Config, Values), Error> {
    let values = Values::parse(text, path)?;
    if let Some(Removed { name, holds }) = REMOVED.iter().find(|removed| values.has(removed.name)) {
        let what = format!("{name} is no longer a setting; it is always {holds}: remove the line");
        return Err(toml_file::refused(path, toml_file::at_line(text, name, what)));
    }
    toml_file::parse::<Config>(text, path)?;
    match values.config() {
        Ok(config) => Ok((config, values)),
        Err(what) => Err(toml_file::refused(path, values.locate(text, &what))),
    }
}

/// Refuses settings that break a rule in words, or do not fit together.
fn check(config: &Config) -> Result<(), String> {
    if config.jail.uid_base.checked_add(config.jail.uid_count).is_none() {
        return Err("jail.uid_base and jail.uid_count must make a range below 2^32".to_owned());
    }
    config.session.check()?;
    config.time.check()?;
    check_listeners(config)?;
    if config.session.awake_max >= config.jail.uid_count {
        return Err("session.awake_max must be less than jail.uid_count: each session has a uid".to_owned());
    }
    if let Some(relative) = config.mounts.allow.iter().find(|path| !path.is_absolute()) {
        return Err(format!("mounts.allow: {} is not absolute", relative.display()));
    }
    config.packages.check()
}

/// Refuses an address that is none, and one of two listeners. Port 0 means another port for each.
fn check_listeners(config: &Config) -> Result<(), String> {
    let api = crate::api::port::parse("api.listen", &config.api.listen)?;
    let hooks = crate::api::port::parse("webhook.listen", &config.webhook.listen)?;
    let console = config.console.address()?;
    let named = [
        ("webhook.listen", hooks, "api.listen", api),
        ("console.listen", console, "api.listen", api),
        ("console.listen", console, "webhook.listen", hooks),
    ];
    for (one, address, other, of_other) in named {
        if let Some(address) = address.filter(|own| own.port() != 0 && of_other == Some(*own)) {
            return Err(format!("{one} and {other} are both {address}: give one of them another port"));
        }
    }
    config.console.check()
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
    fn each_number_out_of_bounds_is_refused_by_name() {
        for (table, row, name) in [
            ("model", "idle_ms = 0", "model.idle_ms"),
            ("model", "rest_ms = 4000000000", "model.rest_ms"),
            ("model", "stream_ms = 0", "model.stream_ms"),
            ("model", "output_tokens_max = 0", "model.output_tokens_max"),
            ("model", "tries_max = 100", "model.tries_max"),
            ("agents", "hops_max = 0", "agents.hops_max"),
            ("agents", "hops_max = 21", "agents.hops_max"),
            ("agents", "sends_per_minute = 0", "agents.sends_per_minute"),
            ("agents", "sends_per_minute = 10001", "agents.sends_per_minute"),
            ("packages", "fetch_seconds_max = 0", "packages.fetch_seconds_max"),
            ("packages", "layer_bytes_max = 0", "packages.layer_bytes_max"),
            ("packages", "layer_files_max = 1", "packages.layer_files_max"),
            ("jail", "uid_base = 4294967295", "jail.uid_base"),
        ] {
            let error = parse(&format!("[{table}]\n{row}\n"), Path::new("c.toml")).expect_err(row).to_string();
            assert!(error.starts_with(&format!("c.toml: line 2: {name} ")), "{error}");
        }
    }

    #[test]
    fn settings_that_exclude_each_other_are_refused_by_name() {
        for (text, names) in [
            (
                "[api]\nlisten = \"127.0.0.1:8787\"\n[webhook]\nlisten = \"127.0.0.1:8787\"\n",
                &["api.listen", "webhook.listen"],
            ),
            ("[api]\nlisten = \"[::1]:9\"\n[webhook]\nlisten = \"[0:0::1]:9\"\n", &["api.listen", "webhook.listen"]),
            ("[session]\nawake_max = 8\n[jail]\nuid_count = 8\n", &["session.awake_max", "jail.uid_count"]),
            (
                "[session]\nawake_max = 2\nawake_per_agent_max = 3\n",
                &["session.awake_max", "session.awake_per_agent_max"],
            ),
        ] {
            let error = parse(text, Path::new("c.toml")).expect_err(text).to_string();
            assert!(error.starts_with("c.toml: line ") && names.iter().all(|name| error.contains(name)), "{error}");
        }
        for text in [
            "[api]\nlisten = \"127.0.0.1:0\"\n[webhook]\nlisten = \"127.0.0.1:0\"\n",
            "[api]\nlisten = \"127.0.0.1:9\"\n[webhook]\nlisten = \"[::1]:9\"\n",
            "[session]\nawake_max = 7\n[jail]\nuid_count = 8\n",
        ] {
            parse(text, Path::new("c.toml")).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    }

    #[test]
    fn removed_key_is_refused_with_the_value_that_holds() {
        for Removed { name, holds } in REMOVED {
            let (table, key) = name.split_once('.').expect("a table and a key");
            for (text, line) in [
                (format!("[log]\n\n[{table}]\n{key} = 5\n"), "line 4: "),
                (format!("{table}.{key} = 5\n"), "line 1: "),
                (format!("{table} = {{ {key} = 5 }}\n"), ""),
            ] {
                let error = parse(&text, Path::new("c.toml")).expect_err(name).to_string();
                let expected = format!("c.toml: {line}{name} is no longer a setting; it is always {holds}");
                assert!(error.starts_with(&expected), "{error}");
            }
            assert!(settings().all(|setting| setting.full_name() != *name), "{name} is a setting");
        }
    }

    #[test]
    fn settings_of_the_key_are_read_beside_a_mistake() {
        let directory = tempfile::tempdir().expect("a directory");
        let home = Home::create(&directory.path().join("home")).expect("a home");
        for (text, file) in [
            ("[model]\nconnect_ms = 5\n[keys]\nmaster_key_file = \"/k\"\n", Some("/k")),
            ("[log]\nlevle = \"info\"\n", None),
        ] {
            std::fs::write(home.config(), text).expect("written");
            assert!(load(&home).is_err(), "{text}");
            assert_eq!(keys(&home).expect(text).master_key_file.as_deref(), file.map(Path::new), "{text}");
        }
        for text in ["[keys]\nmaster_key_flie = \"/k\"\n", "[keys\n"] {
            std::fs::write(home.config(), text).expect("written");
            keys(&home).expect_err(text);
        }
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
        assert_eq!(parse(&text, Path::new("c.toml")).expect("reads").0.webhook.listen, "127.0.0.1:8788");
    }

    #[test]
    fn a_range_of_uids_without_one_for_sessions_is_refused() {
        for (count, fits) in [(0, false), (1, false), (2, true)] {
            let parsed = parse(&format!("[jail]\nuid_count = {count}\n"), Path::new("c.toml"));
            assert_eq!(parsed.is_ok(), fits, "{count}: {parsed:?}");
        }
    }
}
