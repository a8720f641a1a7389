//! The list of every setting with its default, unit, bounds and one sentence.
//!
//! The template of `config.toml` and the tables of the manual are generated from it, and tests compare it with [`super::Config`]. The
//! `check` of each table enforces the bounds. See [`crate::daemon::config`].

use std::fmt;

/// One setting of `config.toml`.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The table, e.g. `session`.
    pub table: &'static str,
    /// The name in its table, e.g. `idle_seconds`.
    pub name: &'static str,
    /// The value of a host whose file does not have the setting.
    pub default: DefaultValue,
    /// The unit of a number; empty for other values.
    pub unit: &'static str,
    /// The values that are accepted.
    pub bounds: Bounds,
    /// The moment at which a change of the file takes effect.
    pub applies: Applies,
    /// The meaning in one sentence.
    pub meaning: &'static str,
}

/// The moment at which a changed setting takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// At a reload.
    Live,
    /// At the next start of the host.
    Restart,
}

impl Applies {
    /// Returns the word for it in the template and in the manual.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Restart => "restart",
        }
    }
}

/// The value of a setting that is not in the file.
#[derive(Debug, Clone, Copy)]
pub enum DefaultValue {
    /// A value, as TOML.
    Is(&'static str),
    /// No value: the host uses something else.
    Unset {
        /// The substitute, in words.
        instead: &'static str,
        /// A value that is accepted, as TOML.
        example: &'static str,
    },
}

/// The values that a setting accepts.
#[derive(Debug, Clone, Copy)]
pub enum Bounds {
    /// Numbers from the first to the second.
    Range(u64, u64),
    /// Numbers from this one on.
    AtLeast(u64),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A rule in words.
    Rule(&'static str),
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range(least, most) => write!(f, "{least} to {most}"),
            Self::AtLeast(least) => write!(f, "{least} or more"),
            Self::OneOf(words) => f.write_str(&words.join(", ")),
            Self::Rule(rule) => f.write_str(rule),
        }
    }
}

impl Setting {
    /// Returns the comment above the setting in the template.
    fn comment(&self) -> String {
        let mut bounds = self.bounds.to_string();
        if !self.unit.is_empty() {
            bounds = format!("{bounds} ({})", self.unit);
        }
        let default = match self.default {
            DefaultValue::Is(_) => String::new(),
            DefaultValue::Unset { instead, .. } => format!(" Default: {instead}."),
        };
        format!("{} Accepts: {bounds}.{default} ({})", self.meaning, self.applies.word())
    }

    /// Returns its name with that of its table, e.g. `session.idle_seconds`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }

    /// Returns its line in the template without the `#`.
    fn line(&self) -> String {
        let (DefaultValue::Is(value) | DefaultValue::Unset { example: value, .. }) = self.default;
        format!("{} = {value}", self.name)
    }
}

const HEAD: &str = "\
# Settings of IronClaw. Remove the # before a setting to change it.
# Each line shows the default, or an example where the comment above it names another default.
# A change of a setting with (live) takes effect with `ironctl config reload`; one with (restart) needs a start of the host.
# `ironctl config check` reads this file and names what is wrong with it.
";

/// Returns the `config.toml` of a new home: every setting as a comment.
pub fn template() -> String {
    let (mut text, mut table) = (HEAD.to_owned(), "");
    for setting in SETTINGS {
        if setting.table != table {
            table = setting.table;
            text += &format!("\n[{table}]\n");
        }
        text += &format!("# {}\n# {}\n", setting.comment(), setting.line());
    }
    text
}

/// The longest wait of a model client.
const MODEL_WAIT_MS_MAX: u64 = 3_600_000;

macro_rules! settings {
    ($([$table:ident] $($name:ident: $default:expr, $unit:literal, $bounds:expr, $applies:expr, $meaning:literal;)+)+) => {
        &[$($(
            Setting {
                table: stringify!($table),
                name: stringify!($name),
                default: $default,
                unit: $unit,
                bounds: $bounds,
                applies: $applies,
                meaning: $meaning,
            },
        )+)+]
    };
}

use Applies::{Live, Restart};
use Bounds::{AtLeast, OneOf, Range, Rule};
use DefaultValue::{Is, Unset};

/// Every setting, in the order of the template and of the manual.
pub const SETTINGS: &[Setting] = settings! {
    [log]
    level: Is("\"info\""), "", OneOf(&["error", "warn", "info", "debug"]), Live, "The least severe level that the log records.";
    format: Is("\"text\""), "", OneOf(&["text", "json"]), Restart, "The format of the log, for people or for programs.";

    [session]
    idle_seconds: Is("300"), "seconds", Range(1, 2_592_000), Live, "An awake session without work goes to sleep after this time.";
    awake_max: Is("0"), "sessions", Range(0, 4096), Restart, "The most sessions that are awake at once; 0 derives 4 to 256 from the memory, processes and descriptors of the machine.";
    awake_per_agent_max: Is("0"), "sessions", Range(0, 4096), Restart, "The most sessions of one agent that are awake at once, at most `awake_max`; 0 means half of the sessions that may be awake.";
    launch_attempts_max: Is("5"), "failures", AtLeast(1), Live, "A session is parked after this number of failures in a row.";
    backoff_ms: Is("200"), "milliseconds", Range(0, 60_000), Live, "The pause after the first failed launch; it doubles with each further failure, up to 30 seconds.";

    [turn]
    seconds_max: Is("300"), "seconds", Range(1, 86_400), Restart, "A turn that takes longer ends with a notice.";
    model_calls_max: Is("16"), "requests", AtLeast(1), Restart, "The most requests to the model in one turn.";
    tool_calls_max: Is("24"), "calls", AtLeast(1), Restart, "The most tool calls in one turn.";
    result_bytes_max: Is("4194304"), "bytes", AtLeast(0), Restart, "The most bytes of all results in one turn.";
    context_bytes_max: Is("524288"), "bytes", AtLeast(0), Restart, "The most bytes that one request to the model may name; the rest of the conversation is summarised.";

    [items]
    session_items_max: Is("20000"), "items", AtLeast(0), Restart, "The most messages, outputs and results of one session; the oldest are dropped first.";
    session_bytes_max: Is("268435456"), "bytes", AtLeast(0), Restart, "The most bytes of the items of one session; the oldest items are dropped first.";
    keep_days: Is("0"), "days", AtLeast(0), Restart, "Older items are dropped, with the rows of their messages, turns and deliveries; 0 keeps them.";

    [budget]
    tokens_per_day: Is("0"), "tokens", AtLeast(0), Live, "The ceiling of all agents for one day (UTC); 0 means none.";
    cost_per_day_micros: Is("0"), "millionths of the currency of the prices", AtLeast(0), Live, "The ceiling of cost of all agents for one day (UTC); 0 means none.";
    tokens_per_agent_day: Is("0"), "tokens", AtLeast(0), Live, "The ceiling of one agent for one day (UTC), unless the agent has its own; 0 means none.";
    cost_per_agent_day_micros: Is("0"), "millionths of the currency of the prices", AtLeast(0), Live, "The ceiling of cost of one agent for one day (UTC), unless the agent has its own; 0 means none.";
    tokens_per_session: Is("0"), "tokens", AtLeast(0), Live, "The ceiling of one session for its whole life; 0 means none.";
    tokens_per_chain: Is("1000000"), "tokens", AtLeast(0), Live, "The ceiling of all turns that the messages of agents open in one chain; 0 means none.";

    [jail]
    uid_base: Is("1879048192"), "", AtLeast(65_536), Restart, "The first host uid of sessions if root starts the host; the range must end below 4294967296.";
    uid_count: Is("65536"), "uids", AtLeast(2), Restart, "The number of host uids: one for each session, and the last one for fetching packages.";

    [egress]
    loopback: Is("false"), "", Rule("true or false"), Live, "Let a change grant a host of this machine to an agent, with its port; for tests and local services.";

    [approval]
    wait_seconds: Is("120"), "seconds", Rule("0 to 600"), Live, "The longest time that the calls of one turn wait for people who are present; after it the model goes on without them.";
    question_hours: Is("168"), "hours", Range(1, 8760), Live, "The time in which a person can answer a question of an agent; a reminder comes after half of it.";

    [quota]
    conversations_per_person: Is("512"), "conversations", AtLeast(1), Live, "The most conversations of one person that are not removed.";
    conversations_per_channel: Is("4096"), "conversations", AtLeast(1), Live, "The most conversations of one webhook channel that are not removed.";
    waiting_per_person: Is("1000"), "messages", AtLeast(1), Live, "The most messages of one person that wait for an answer.";
    waiting_per_channel: Is("4000"), "messages", AtLeast(1), Live, "The most messages of one webhook channel that wait for an answer.";
    waiting_bytes_per_person: Is("67108864"), "bytes", AtLeast(1), Live, "The most bytes of the messages of one person that wait for an answer.";
    waiting_bytes_per_channel: Is("268435456"), "bytes", AtLeast(1), Live, "The most bytes of the messages of one webhook channel that wait for an answer.";
    kept_bytes_per_person: Is("8589934592"), "bytes", AtLeast(1), Live, "The most bytes of all items in the conversations of one person.";
    workspace_bytes: Is("8589934592"), "bytes", AtLeast(1), Live, "The most bytes that the files of one session may take on the disk.";
    workspace_files: Is("200000"), "files", AtLeast(1), Live, "The most files and directories of one session.";

    [agents]
    hops_max: Is("5"), "agents", Range(1, 20), Live, "The most agents that a message passes through.";
    sends_per_minute: Is("120"), "messages", Range(1, 10_000), Live, "The most messages that one agent sends in a minute, to agents and to people.";

    [model]
    script: Unset { instead: "the built-in rules alone", example: "\"/path/to/rules.toml\"" }, "", Rule("the path of a TOML file"), Restart, "Rules of the scripted model, tried before the built-in ones.";
    connect_ms: Is("10000"), "milliseconds", Range(1, MODEL_WAIT_MS_MAX), Restart, "The longest time to connect to an endpoint.";
    first_byte_ms: Is("120000"), "milliseconds", Range(1, MODEL_WAIT_MS_MAX), Restart, "The longest time until a stream begins.";
    idle_ms: Is("60000"), "milliseconds", Range(1, MODEL_WAIT_MS_MAX), Restart, "The longest pause of a stream.";
    whole_ms: Is("240000"), "milliseconds", Range(1, MODEL_WAIT_MS_MAX), Restart, "The longest time of an answer that is not streamed.";
    stream_ms: Is("600000"), "milliseconds", Range(1, MODEL_WAIT_MS_MAX), Restart, "The longest time of a whole stream.";
    output_tokens_max: Is("8192"), "tokens", Range(1, 1_000_000), Restart, "The most tokens of one output.";
    tries_max: Is("4"), "attempts", Range(1, 8), Restart, "The most attempts at an endpoint without a fallback left; other endpoints get at most 2.";
    backoff_ms: Is("500"), "milliseconds", Range(1, MODEL_WAIT_MS_MAX), Restart, "The pause before the second attempt; it doubles before each further one.";
    retry_after_ms_max: Is("60000"), "milliseconds", Range(1, MODEL_WAIT_MS_MAX), Restart, "The longest wait that an endpoint may ask for.";
    failures_max: Is("5"), "failures", Range(1, 1000), Restart, "After this number of failures in a row the host asks the fallbacks of an endpoint first.";
    rest_ms: Is("30000"), "milliseconds", Range(1, MODEL_WAIT_MS_MAX), Restart, "The time after which the host asks such an endpoint first again.";

    [api]
    socket: Unset { instead: "`api.sock` in the private runtime directory", example: "\"/run/user/1000/ironclaw/api.sock\"" }, "", Rule("a path"), Restart, "The unix socket of the API.";
    listen: Is("\"\""), "", Rule("a loopback address with a port, or empty"), Restart, "The API also listens on this address, e.g. 127.0.0.1:8787; empty opens no port, and port 0 takes a free one.";

    [webhook]
    listen: Is("\"\""), "", Rule("a loopback address with a port, or empty"), Restart, "The host accepts webhooks on this address, e.g. 127.0.0.1:8788; empty opens no port.";
    requests_per_minute: Is("1200"), "requests", Range(1, 1_000_000), Restart, "The most signed requests that one channel may make in a minute.";
    attempts_max: Is("10"), "attempts", Range(1, 100), Live, "A delivery is a dead letter after this number of attempts.";
    backoff_ms: Is("1000"), "milliseconds", Range(1, 3_600_000), Live, "The pause before the second attempt; each further one is four times as long, up to six hours.";

    [mounts]
    allow: Is("[]"), "", Rule("absolute paths"), Live, "Agents may be granted these directories of the machine, and directories below them.";

    [ledger]
    rotate_entries: Is("10000"), "entries", Range(16, 10_000_000), Restart, "A chain with this number of entries is archived.";
    rotate_days: Is("30"), "days", Range(1, 3650), Restart, "A chain of this age is archived.";
    head_every_entries: Is("1000"), "entries", Range(1, 1_000_000), Restart, "A signed head is kept outside of the home after this number of entries, and at each stop.";
    head_every_seconds: Is("60"), "seconds", Range(1, 86_400), Restart, "A signed head is also kept after this time with changes; the next head replaces it.";
    heads: Unset { instead: "`ironclaw/heads` in the XDG data directory", example: "\"/path/dir\"" }, "", Rule("an absolute path outside of the home"), Restart, "The directory of the heads; a named one has to exist.";

    [packages]
    apt: Unset { instead: "`/usr/bin/apt-get`", example: "\"/usr/path/to/apt-get\"" }, "", Rule("a path below `/usr`"), Live, "The client that fetches packages of apt.";
    npm: Unset { instead: "`/usr/bin/npm`", example: "\"/usr/path/to/npm\"" }, "", Rule("a path below `/usr`"), Live, "The client that fetches packages of npm.";
    pip: Unset { instead: "`/usr/bin/pip3`", example: "\"/usr/path/to/npm\"" }, "", Rule("a path below `/usr`"), Live, "The client that fetches packages of PyPI.";
    apt_sources: Unset { instead: "the sources of the machine", example: "\"/path/to/own.sources\"" }, "", Rule("an absolute path that ends in `.list` or `.sources`"), Live, "The file that apt reads instead of the sources of the machine.";
    npm_registry: Unset { instead: "the registry of npm", example: "\"https://registry.example/npm/\"" }, "", Rule("an address with http or https"), Live, "The registry that npm asks.";
    pypi_index: Unset { instead: "the index of PyPI", example: "\"https://index.example/simple/\"" }, "", Rule("an address with http or https"), Live, "The index that pip asks.";
    proxy: Unset { instead: "no proxy", example: "\"http://proxy.example:3128/\"" }, "", Rule("an address with http or https, without a password"), Live, "The proxy of the clients; they inherit no variable of the environment.";
    ports: Is("[53, 80, 443]"), "", Rule("at most 8 ports, none of them 0"), Live, "TCP ports that the clients may connect to, beside those of the proxy, the registry and the index.";
    fetch_seconds_max: Is("600"), "seconds", Range(1, 86_400), Live, "The longest time of fetching for one change, all runs of clients together.";
    layer_bytes_max: Is("1073741824"), "bytes", Range(1 << 20, 1 << 40), Live, "The most bytes of the packages of one agent or MCP server.";
    layer_files_max: Is("200000"), "files", Range(16, 10_000_000), Live, "The most files, directories and links of the packages of one agent or MCP server.";

    [keys]
    master_key_file: Unset { instead: "the systemd credential `ironclaw-master-key`, or else `master.key` in the home", example: "\"/path/to/master.key\"" }, "", Rule("the path of a file of 32 bytes that only its owner can read"), Restart, "The file with the master key.";
};

#[cfg(test)]
mod tests {
    use super::super::{Config, parse};
    use super::*;
    use std::collections::BTreeMap;
    use std::fmt::Write;
    use std::path::Path;

    fn read(setting: &Setting, value: &str) -> Result<Config, String> {
        let text = format!("[{}]\n{} = {value}\n", setting.table, setting.name);
        parse(&text, Path::new("c.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn default_of_each_setting_is_the_one_of_the_code() {
        for setting in SETTINGS {
            match setting.default {
                DefaultValue::Is(value) => assert_eq!(read(setting, value), Ok(Config::default()), "{setting:?}"),
                DefaultValue::Unset { example, .. } => {
                    assert_ne!(read(setting, example), Ok(Config::default()), "{setting:?}")
                }
            }
        }
    }

    /// Returns the words that serde expects instead of an unknown one.
    fn expected(error: &str) -> Vec<&str> {
        let words = error.split("expected ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or_default();
        words.split('`').skip(1).step_by(2).collect()
    }

    #[test]
    fn bounds_of_each_setting_are_those_of_the_code() {
        for setting in SETTINGS {
            let accepts = |value: u64| read(setting, &value.to_string()).is_ok();
            let (least, most) = match setting.bounds {
                Bounds::Range(least, most) => (least, Some(most)),
                Bounds::AtLeast(least) => (least, None),
                Bounds::OneOf(words) => {
                    let error = read(setting, "\"other\"").expect_err("refused");
                    assert_eq!(expected(&error), words, "{setting:?}");
                    continue;
                }
                Bounds::Rule(_) => continue,
            };
            assert!(accepts(least), "{setting:?}");
            assert!(least == 0 || !accepts(least - 1), "{setting:?}");
            assert!(most.is_none_or(|most| accepts(most) && !accepts(most + 1)), "{setting:?}");
        }
    }

    #[test]
    fn list_has_every_setting_of_the_code() {
        let refused = |text: &str| parse(text, Path::new("c.toml")).expect_err("refused").to_string();
        let mut listed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for setting in SETTINGS {
            listed.entry(setting.table).or_default().push(setting.name);
        }
        let error = refused("[unknown_table]\n");
        let mut tables = expected(&error);
        tables.sort_unstable();
        assert_eq!(tables, listed.keys().copied().collect::<Vec<_>>());
        for (table, mut listed) in listed {
            let error = refused(&format!("[{table}]\nunknown_field = 1\n"));
            let mut fields = expected(&error);
            fields.sort_unstable();
            listed.sort_unstable();
            assert_eq!(fields, listed, "[{table}]");
        }
    }

    #[test]
    fn template_holds_every_default_as_a_comment() {
        let text = template();
        assert_eq!(parse(&text, Path::new("c.toml")).expect("reads"), Config::default());
        let open: Vec<&str> = text.lines().map(|line| line.strip_prefix("# ").unwrap_or(line)).collect();
        for setting in SETTINGS {
            assert!(open.contains(&setting.line().as_str()), "{setting:?}");
        }
    }

    const BEGIN: &str =
        "<!-- settings: begin; made from the code by `IRONCLAW_GOLDEN=write cargo test manual_lists` -->\n";
    const END: &str = "<!-- settings: end -->\n";

    #[test]
    fn manual_lists_every_setting() {
        let (mut now, mut table) = (String::new(), "");
        for setting in SETTINGS {
            if setting.table != table {
                table = setting.table;
                let head = "| setting | default | unit | accepts | change | meaning |\n|---|---|---|---|---|---|\n";
                write!(now, "\n### `[{table}]`\n\n{head}").expect("text grows");
            }
            let default = match setting.default {
                DefaultValue::Is(value) => format!("`{value}`"),
                DefaultValue::Unset { instead, .. } => instead.to_owned(),
            };
            let Setting { name, unit, bounds, meaning, .. } = setting;
            let applies = setting.applies.word();
            writeln!(now, "| `{table}.{name}` | {default} | {unit} | {bounds} | {applies} | {meaning} |")
                .expect("text grows");
        }
        now.push('\n');
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operate/settings.md");
        let page = std::fs::read_to_string(&path).expect("the page of settings");
        let (before, rest) = page.split_once(BEGIN).expect("the page has the mark at which the tables begin");
        let (committed, after) = rest.split_once(END).expect("the page has the mark at which the tables end");
        if std::env::var("IRONCLAW_GOLDEN").is_ok_and(|value| value == "write") {
            std::fs::write(&path, format!("{before}{BEGIN}{now}{END}{after}")).expect("written");
            return;
        }
        assert!(committed == now, "docs/operate/settings.md is out of date; IRONCLAW_GOLDEN=write rewrites it");
    }
}
