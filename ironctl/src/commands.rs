//! The commands of `ironctl`, one file a noun.
//!
//! Prints only through [`crate::output`], and asks a host only through [`crate::client`].

mod agent;
mod allowance;
mod answer;
mod approve;
mod audit;
mod backup;
mod change;
mod channel;
mod chat;
mod completions;
mod config;
mod console;
mod contract;
mod delivery;
mod destination;
mod doctor;
mod down;
mod egress;
mod explain;
mod file;
mod group;
mod inbox;
mod init;
mod key;
mod logs;
mod mcp;
mod memory;
mod message;
mod model;
mod named_agent;
mod panic;
mod person;
mod propose;
mod quickstart;
mod reject;
mod report;
mod resume;
mod review;
mod schedule;
mod scope;
mod secret;
mod service;
mod session;
mod skill;
mod sources;
mod status;
mod token;
mod tool;
mod uninstall;
mod up;
mod usage;
mod waiting;
mod whoami;
mod why;

use crate::at::At;
use crate::failure::Error;
use clap::Subcommand;

/// The heading of the options that every command takes.
pub const GLOBAL_OPTIONS: &str = "Global options";

/// The groups of `ironctl --help`, each with its commands.
pub const GROUPS: [(&str, &[&str]); 8] = [
    ("Start", &["quickstart", "init", "up", "down", "service", "uninstall", "config", "backup"]),
    ("Talk", &["chat", "session", "file", "message", "delivery", "memory"]),
    ("Decide", &["inbox", "approve", "reject", "answer", "allowance", "change", "report", "console"]),
    ("Agents", &["agent", "schedule"]),
    ("Reach", &["destination", "group", "mcp", "skill", "egress", "tool", "explain", "scope"]),
    ("Outside", &["model", "channel", "secret"]),
    ("People", &["whoami", "person", "token", "key"]),
    ("Look", &["status", "doctor", "logs", "why", "usage", "audit", "panic", "resume", "contract", "completions"]),
];

/// Returns the template of `ironctl --help`: the groups of commands, then the global options.
pub fn help_template() -> String {
    let groups = GROUPS.iter().map(|(group, commands)| format!("{group:<9}{}\n", commands.join(" ")));
    let groups: String = groups.collect();
    format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}`ironctl COMMAND --help` describes a command.\n\n\
         {GLOBAL_OPTIONS}:\n{{options}}{{after-help}}"
    )
}

/// A command of `ironctl`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a home, start the host, talk to a first agent and show its jail
    Quickstart(quickstart::Args),
    /// Start the host
    Up(up::Args),
    /// Stop the host
    #[command(after_help = "Example:\n  ironctl down")]
    Down,
    /// Create a home: settings, keys and an empty ledger [default: ~/.local/state/ironclaw]
    #[command(after_help = "Example:\n  ironctl --home /srv/ironclaw init")]
    Init,
    /// Show the host, its sessions and the jail of each
    #[command(after_help = "Example:\n  ironctl status\n  ironctl status --json")]
    Status,
    /// Check the machine, the installation and the host, and print remedies
    Doctor(doctor::Args),
    /// Add, list, show, set, connect and remove agents, with their directories and packages
    #[command(subcommand, after_help = "Example:\n  ironctl agent add assistant")]
    Agent(agent::Action),
    /// Talk to an agent
    Chat(chat::Args),
    /// Decide about the calls and changes that wait, and answer questions; list and show them
    Inbox(inbox::Args),
    /// Submit changes
    #[command(
        subcommand,
        after_help = "Example:\n  ironctl change submit --kind persona --agent assistant --payload @persona.json --reason unfriendly"
    )]
    Change(change::Action),
    /// Count the calls and the requests of a time, and propose what saves most requests
    Report(report::Args),
    /// Approve a call or a change
    Approve(approve::Args),
    /// Reject or withdraw a call, a question or a change
    Reject(reject::Args),
    /// Answer a question of an agent
    Answer(answer::Args),
    /// Add, change, list, run, pause, resume and remove schedules of agents
    #[command(subcommand, after_help = "Example:\n  ironctl schedule list")]
    Schedule(schedule::Action),
    /// Add, list, show and remove counted repetitions of calls that would need you
    #[command(subcommand, after_help = "Example:\n  ironctl allowance list")]
    Allowance(allowance::Action),
    /// Add, list, test and remove channels
    #[command(subcommand, after_help = "Example:\n  ironctl channel list")]
    Channel(channel::Action),
    /// Add, confirm, grant, list, show, test, revoke and remove MCP servers
    #[command(subcommand, after_help = "Example:\n  ironctl mcp list")]
    Mcp(mcp::Action),
    /// Give agents addresses to which they may send messages, and list them
    #[command(subcommand, after_help = "Example:\n  ironctl destination list")]
    Destination(destination::Action),
    /// Install skills for agents, and write and sign skills
    #[command(subcommand, after_help = "Example:\n  ironctl skill list --agent assistant")]
    Skill(skill::Action),
    /// Set, remove and list the trust groups of agents
    #[command(subcommand, after_help = "Example:\n  ironctl group list")]
    Group(group::Action),
    /// Grant, revoke, list and test the hosts of the network of agents
    #[command(subcommand, after_help = "Example:\n  ironctl egress list")]
    Egress(egress::Action),
    /// List and show tools, and judge a call without making it
    #[command(subcommand, after_help = "Example:\n  ironctl tool list")]
    Tool(tool::Action),
    /// Measure the lexicon that finds the scope of messages
    #[command(subcommand, after_help = "Example:\n  ironctl scope test")]
    Scope(scope::Action),
    /// Add, list, test and remove model endpoints, and set the default
    #[command(subcommand, after_help = "Example:\n  ironctl model add openai --default")]
    Model(model::Action),
    /// Set, list, rotate and remove secrets, such as keys of model endpoints
    #[command(subcommand, after_help = "Example:\n  ironctl secret set openai")]
    Secret(secret::Action),
    /// List, search, add and remove the notes of an agent
    #[command(subcommand, after_help = "Example:\n  ironctl memory list assistant")]
    Memory(memory::Action),
    /// Retry a message that got no answer
    #[command(subcommand, after_help = "Example:\n  ironctl message retry last")]
    Message(message::Action),
    /// List, retry or drop answers that did not arrive
    #[command(subcommand, after_help = "Example:\n  ironctl delivery list")]
    Delivery(delivery::Action),
    /// List, show, export, cancel, stop, release and remove sessions
    #[command(subcommand, after_help = "Example:\n  ironctl session list")]
    Session(session::Action),
    /// List, get, put, remove and restore files in the workspace of a session
    #[command(subcommand, after_help = "Example:\n  ironctl file list assistant")]
    File(file::Action),
    /// Stop every agent at once, until `resume`, also after a restart
    #[command(after_help = "Example:\n  ironctl panic")]
    Panic,
    /// End the emergency stop of `panic`
    #[command(after_help = "Example:\n  ironctl resume")]
    Resume,
    /// Open the console in a browser: decide, talk and stop there
    Console(console::Args),
    /// Show the person whose token is used, and the host
    #[command(after_help = "Example:\n  ironctl whoami\n  ironctl whoami --json")]
    Whoami,
    /// Add, list, show, set, link, unlink and remove people
    #[command(subcommand, after_help = "Example:\n  ironctl person add Bob")]
    Person(person::Action),
    /// Add, list, rotate and remove tokens
    #[command(subcommand, after_help = "Example:\n  ironctl token add --person Bob --expires 30d")]
    Token(token::Action),
    /// Rotate the master key or the token in use
    #[command(subcommand, after_help = "Example:\n  ironctl key rotate token")]
    Key(key::Action),
    /// Show the usage of models, and the rest below each ceiling
    Usage(usage::Args),
    /// Show each step of a message, a call or what waits for people, and the reason for its state
    Why(why::Args),
    /// Explain a call without making it: what decides on it, and what changes that
    Explain(explain::Args),
    /// Read, verify, export and rotate the ledger
    #[command(subcommand, after_help = "Example:\n  ironctl audit verify")]
    Audit(audit::Action),
    /// Show the log of the host
    Logs(logs::Args),
    /// Show the frozen contract between host and sandbox
    #[command(subcommand, after_help = "Example:\n  ironctl contract fingerprint")]
    Contract(contract::Action),
    /// Create, verify and restore backups of the home
    #[command(subcommand, after_help = "Example:\n  ironctl backup create /media/disk/monday.backup")]
    Backup(backup::Action),
    /// Check the settings of the host, and reload them
    #[command(subcommand, after_help = "Example:\n  ironctl config reload")]
    Config(config::Action),
    /// Run the host as a service of systemd
    #[command(subcommand, after_help = "Example:\n  ironctl service install")]
    Service(service::Action),
    /// Remove the home and everything beside it, after a confirmation
    Uninstall(uninstall::Args),
    /// Print or install a completion script for a shell
    Completions(completions::Args),
}

impl Command {
    /// Runs the command.
    pub async fn run(self, at: &At) -> Result<(), Error> {
        match self {
            Self::Quickstart(args) => quickstart::run(at, &args).await,
            Self::Up(args) => up::run(at, &args).await,
            Self::Down => down::run(at).await,
            Self::Init => init::run(at),
            Self::Status => status::run(at).await,
            Self::Doctor(args) => doctor::run(at, &args).await,
            Self::Agent(action) => agent::run(at, action).await,
            Self::Chat(args) => chat::run(at, args).await,
            Self::Inbox(args) => inbox::run(at, args).await,
            Self::Change(action) => change::run(at, action).await,
            Self::Approve(args) => approve::run(at, args).await,
            Self::Reject(args) => reject::run(at, args).await,
            Self::Answer(args) => answer::run(at, args).await,
            Self::Schedule(action) => schedule::run(at, action).await,
            Self::Allowance(action) => allowance::run(at, action).await,
            Self::Channel(action) => channel::run(at, action).await,
            Self::Mcp(action) => mcp::run(at, action).await,
            Self::Destination(action) => destination::run(at, action).await,
            Self::Group(action) => group::run(at, action).await,
            Self::Skill(action) => skill::run(at, action).await,
            Self::Egress(action) => egress::run(at, action).await,
            Self::Tool(action) => tool::run(at, action).await,
            Self::Scope(action) => scope::run(at, action).await,
            Self::Model(action) => model::run(at, action).await,
            Self::Secret(action) => secret::run(at, action).await,
            Self::Memory(action) => memory::run(at, action).await,
            Self::Message(action) => message::run(at, action).await,
            Self::Delivery(action) => delivery::run(at, action).await,
            Self::Session(action) => session::run(at, action).await,
            Self::File(action) => file::run(at, action).await,
            Self::Panic => panic::run(at).await,
            Self::Resume => resume::run(at).await,
            Self::Console(args) => console::run(at, &args).await,
            Self::Whoami => whoami::run(at).await,
            Self::Person(action) => person::run(at, action).await,
            Self::Token(action) => token::run(at, action).await,
            Self::Key(action) => key::run(at, action).await,
            Self::Report(args) => report::run(at, &args).await,
            Self::Usage(args) => usage::run(at, &args).await,
            Self::Why(args) => why::run(at, &args).await,
            Self::Explain(args) => explain::run(at, args).await,
            Self::Audit(action) => audit::run(at, &action).await,
            Self::Logs(args) => logs::run(at, &args),
            Self::Contract(action) => contract::run(at, &action),
            Self::Config(action) => config::run(at, &action).await,
            Self::Backup(action) => backup::run(at, action).await,
            Self::Service(action) => service::run(at, &action).await,
            Self::Uninstall(args) => uninstall::run(at, &args).await,
            Self::Completions(args) => completions::run(at, &args),
        }
    }
}
