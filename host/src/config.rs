//! Gathers the settings of every module out of `config.toml`.
//!
//! Owns no setting itself beyond the file: each table is its module's `Config`. An unknown key is refused with the nearest known one. Next: `daemon`.

use crate::settings::{self, Error};
use ironclaw_state::home::Home;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Every setting, with its default.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `[log]`
    pub log: crate::observe::Config,
    /// `[session]`
    pub session: crate::session::Config,
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
    pub webhook: crate::inbound::channel::webhook::Config,
    /// `[mounts]`
    pub mounts: crate::gateway::MountsConfig,
    /// `[keys]`
    pub keys: ironclaw_state::keys::Config,
    /// `[ledger]`
    pub ledger: ironclaw_ledger::Config,
    /// `[packages]`
    pub packages: crate::packages::Config,
    /// `[quota]`
    pub quota: crate::quota::Config,
}

/// `[jail]`: who an agent runs as when the host was started as root.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JailConfig {
    /// First host uid of the range.
    pub uid_base: u32,
    /// How many uids the range has; one a session.
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

/// What a new home's `config.toml` says.
pub const TEMPLATE: &str = "\
# IronClaw's settings. Every line shows its default; remove the # to change it.
# `ironctl config check` reads this file and says what is wrong with it.

[log]
# level = \"info\"            # error warn info debug
# format = \"text\"           # text json

[session]
# idle_seconds = 300        # an idle agent's process ends after this long
# awake_max = 0             # agents' processes at once; 0: as many as this machine can bear
# awake_per_agent_max = 0   # the same for one agent; 0: half of them
# launch_attempts_max = 5   # failed launches in a row before a session is parked
# backoff_ms = 200          # wait after the first failed launch; twice as long after each further one

[turn]
# seconds_max = 300         # a turn that takes longer is ended with a notice
# model_calls_max = 16      # requests to the model in one turn
# tool_calls_max = 24       # tool calls in one turn
# result_bytes_max = 4194304      # bytes of all results in one turn
# context_bytes_max = 524288      # bytes of what one request to the model may name

[items]
# session_items_max = 20000       # messages, outputs and results of one session; the oldest go first
# session_bytes_max = 268435456   # bytes of all of them
# keep_days = 0             # those older than this are dropped; 0 keeps them

[budget]
# tokens_per_day = 0        # tokens that all agents may use on one day (UTC); 0: no ceiling
# cost_per_day_micros = 0   # what they may cost on one day, in millionths of the currency of the prices
# tokens_per_agent_day = 0  # tokens of one agent on one day; `ironctl agent set` gives one its own
# cost_per_agent_day_micros = 0
# tokens_per_session = 0    # tokens of one conversation in its whole life

[jail]
# uid_base = 1879048192     # started as root: each session gets a uid of its own from here on
# uid_count = 65536

[quota]
# conversations_per_person = 512        # conversations of one person; a message that would begin another is refused
# conversations_per_channel = 4096      # the same for one webhook channel
# waiting_per_person = 1000             # messages of one person that wait for an answer
# waiting_per_channel = 4000            # the same for one webhook channel
# waiting_bytes_per_person = 67108864   # bytes of them
# waiting_bytes_per_channel = 268435456
# kept_bytes_per_person = 8589934592    # bytes of everything in the conversations of one person
# workspace_bytes = 8589934592          # bytes that the files of one session may take on the disk
# workspace_files = 200000              # how many these may be

[model]
# script = \"/path/to/rules.toml\"   # rules of the scripted model instead of the built-in ones
# connect_ms = 10000          # how long connecting to an endpoint may take
# first_byte_ms = 120000      # how long a stream may take to begin
# idle_ms = 60000             # how long it may pause
# whole_ms = 240000           # how long an answer that is not streamed may take
# stream_ms = 600000          # how long a stream may take as a whole; with a fallback left, half of what is left of the turn
# output_tokens_max = 8192    # tokens that an answer may have
# tries_max = 4               # tries of an endpoint that has no fallback left; others are tried twice
# backoff_ms = 500            # the pause before a second try; twice as long before each further one
# retry_after_ms_max = 60000  # the longest wait that an endpoint may ask for
# failures_max = 5            # failures in a row after which an endpoint rests, and its fallbacks are asked first
# rest_ms = 30000             # how long it rests

[api]
# socket = \"/run/user/1000/ironclaw/api.sock\"   # default: a private runtime directory

[webhook]
# listen = \"\"               # where webhooks come in, a loopback address such as 127.0.0.1:8788; empty: nowhere
# requests_per_minute = 1200      # signed requests of one channel
# attempts_max = 10         # attempts of one delivery, then it is dead
# backoff_ms = 1000         # wait before the second attempt; four times as long before each further one, up to six hours

[mounts]
# allow = []                # directories of the host that may be put into an agent's jail, with what is below them

[ledger]
# rotate_entries = 10000    # a chain of so many entries is put into a file of ledger/, and the next one begins
# rotate_days = 30          # so is one that is so old
# head_every_entries = 1000 # so often a signed head is kept outside of the home, and at each stop
# head_every_seconds = 60 # so is one after so many seconds with changes, until the next one takes its place
# heads = \"/path/dir\"      # where; default: below ironclaw/heads in the XDG data directory

[packages]
# apt = \"/usr/path/to/apt-get\"       # default: /usr/bin/apt-get; whatever is named here lies below /usr
# npm = \"/usr/path/to/npm\"           # default: /usr/bin/npm
# apt_sources = \"/path/to/own.sources\"   # a .list or .sources file that apt reads instead of the machine's
# npm_registry = \"https://registry.npmjs.org/path/\"   # default: npm's own
# proxy = \"http://proxy.example:3128/path/\"   # default: none; no variable of the environment is inherited
# ports = [53, 80, 443]     # TCP ports that the clients may use, beside those of the proxy and the registry
# fetch_seconds_max = 600   # fetching for one change, all runs of clients together
# layer_bytes_max = 1073741824    # bytes of all files of an agent's packages
# layer_files_max = 200000        # how many these are

[keys]
# master_key_file = \"/path/to/master.key\"       # default: master.key in the home, or the systemd credential ironclaw-master-key
";

/// Reads the settings of a home; without a file, every default.
///
/// The file is `config.toml` in the home, or else `ironclaw/config.toml` in the XDG config directory.
pub fn load(home: &Home) -> Result<(Config, Option<PathBuf>), Error> {
    let in_home = home.config();
    let in_xdg = directories::ProjectDirs::from("", "", "ironclaw").map(|dirs| dirs.config_dir().join("config.toml"));
    let found = [Some(in_home), in_xdg].into_iter().flatten().find(|path| path.exists());
    let Some(path) = found else { return Ok((Config::default(), None)) };
    let text = settings::read(&path)?;
    let config = parse(&text, &path)?;
    // Where heads are kept can be judged only beside the home.
    ironclaw_ledger::sink::Sink::choose(&config.ledger, home).map_err(|what| settings::refused(&path, what))?;
    Ok((config, Some(path)))
}

/// Reads settings from a text; `path` is for messages.
pub fn parse(text: &str, path: &Path) -> Result<Config, Error> {
    let config: Config = settings::parse(text, path)?;
    check(&config).map_err(|what| settings::refused(path, what))?;
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
    if let Some(relative) = config.mounts.allow.iter().find(|path| !path.is_absolute()) {
        return Err(format!("mounts.allow: {} is not absolute", relative.display()));
    }
    config.packages.check()?;
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
    fn a_range_of_uids_without_one_for_sessions_is_refused() {
        for (count, fits) in [(0, false), (1, false), (2, true)] {
            let parsed = parse(&format!("[jail]\nuid_count = {count}\n"), Path::new("c.toml"));
            assert_eq!(parsed.is_ok(), fits, "{count}: {parsed:?}");
        }
    }

    #[test]
    fn the_template_is_the_defaults_with_and_without_its_comments() {
        assert_eq!(parse(TEMPLATE, Path::new("c.toml")).expect("reads"), Config::default());
        let open: String = TEMPLATE
            .lines()
            .filter(|line| !line.contains("/path/") && !line.contains("/run/"))
            .map(|line| line.strip_prefix("# ").filter(|rest| rest.contains(" = ")).unwrap_or(line).to_owned() + "\n")
            .collect();
        assert_eq!(parse(&open, Path::new("c.toml")).expect("reads"), Config::default());
    }
}
