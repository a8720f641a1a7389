//! The commands of `ironctl`, one file a noun.
//!
//! Never prints past `output`, and never talks to a host past `client`. See the file of the command that you are looking for.

mod agent;
mod approve;
mod audit;
mod change;
mod channel;
mod chat;
mod completions;
mod config;
mod contract;
mod doctor;
mod down;
mod inbox;
mod init;
mod key;
mod logs;
mod mcp;
mod memory;
mod message;
mod model;
mod panic;
mod person;
mod propose;
mod quickstart;
mod reject;
mod resume;
mod review;
mod secret;
mod session;
mod status;
mod token;
mod up;
mod usage;
mod why;

use crate::access::Access;
use crate::client::Client;
use crate::failure::Error;
use crate::home::Home;
use crate::output::Output;
use clap::Subcommand;

/// Home, client and output of a command.
#[derive(Debug)]
pub struct At {
    /// The installation.
    pub home: Home,
    /// The operator's terminal, or a script.
    pub out: Output,
    /// By which way and with whose token, if not the owner's over the home's socket.
    pub access: Access,
}

impl At {
    /// Opens the host that the caller means; whether it answers shows at the first question.
    fn client(&self) -> Result<Client, Error> {
        Client::with(&self.home, &self.access)
    }
}

/// One command of the CLI.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Set everything up, talk to a first agent, and show what holds it
    Quickstart(quickstart::Args),
    /// Start the host
    Up(up::Args),
    /// Stop the host
    #[command(after_help = "Example:\n  ironctl down")]
    Down,
    /// Make a new home: settings, keys, and an empty ledger
    #[command(after_help = "Example:\n  ironctl --home /srv/ironclaw init")]
    Init,
    /// Show the host, its sessions, and what the kernel says about each
    #[command(after_help = "Example:\n  ironctl status\n  ironctl status --json")]
    Status,
    /// Look for what is wrong, and say what to do about it
    Doctor(doctor::Args),
    /// Add, list and remove agents
    #[command(subcommand, after_help = "Example:\n  ironctl agent add assistant")]
    Agent(agent::Action),
    /// Talk to an agent
    Chat(chat::Args),
    /// Decide about what agents ask for, one change at a time
    #[command(after_help = "Example:\n  ironctl inbox")]
    Inbox,
    /// List and show changes of agents, and ask for one
    #[command(subcommand, after_help = "Example:\n  ironctl change list")]
    Change(change::Action),
    /// Say yes to a change
    Approve(approve::Args),
    /// Say no to a change
    Reject(reject::Args),
    /// Make, list, try and remove channels beside this command line
    #[command(subcommand, after_help = "Example:\n  ironctl channel list")]
    Channel(channel::Action),
    /// List the MCP servers that agents may have tools of
    #[command(subcommand, after_help = "Example:\n  ironctl mcp list")]
    Mcp(mcp::Action),
    /// Add, list, test and remove model endpoints
    #[command(subcommand, after_help = "Example:\n  ironctl model add openai --default")]
    Model(model::Action),
    /// Store, list, replace and remove secrets, such as the keys of model endpoints
    #[command(subcommand, after_help = "Example:\n  ironctl secret set openai")]
    Secret(secret::Action),
    /// Look at what an agent keeps for later, add to it, erase from it
    #[command(subcommand, after_help = "Example:\n  ironctl memory list assistant")]
    Memory(memory::Action),
    /// Have a message answered after all
    #[command(subcommand, after_help = "Example:\n  ironctl message retry last")]
    Message(message::Action),
    /// List, send again or drop answers that did not arrive
    #[command(subcommand, after_help = "Example:\n  ironctl delivery list")]
    Delivery(message::Dead),
    /// List, show, export, cancel, stop, release and remove sessions
    #[command(subcommand, after_help = "Example:\n  ironctl session list")]
    Session(session::Action),
    /// Stop every agent at once; nothing begins until `resume`, not even after a restart
    #[command(after_help = "Example:\n  ironctl panic")]
    Panic,
    /// Let everything go on after `panic`
    #[command(after_help = "Example:\n  ironctl resume")]
    Resume,
    /// Add, list, link and unlink people
    #[command(subcommand, after_help = "Example:\n  ironctl person add Bob")]
    Person(person::Action),
    /// Add, list and remove tokens
    #[command(subcommand, after_help = "Example:\n  ironctl token add --person Bob --expires 30d")]
    Token(token::Action),
    /// Replace the master key or a token by a fresh one
    #[command(subcommand, after_help = "Example:\n  ironctl key rotate token")]
    Key(key::Action),
    /// Show what models took, and what is left below each ceiling
    Usage(usage::Args),
    /// Explain what became of a message
    Why(why::Args),
    /// Read, verify and rotate the ledger, with or without a running host
    #[command(subcommand, after_help = "Example:\n  ironctl audit verify")]
    Audit(audit::Action),
    /// Show what the host logged
    Logs(logs::Args),
    /// Show the frozen contract between host and sandbox
    #[command(subcommand, after_help = "Example:\n  ironctl contract fingerprint")]
    Contract(contract::Action),
    /// Look at the operator's settings
    #[command(subcommand, after_help = "Example:\n  ironctl config check")]
    Config(config::Action),
    /// Print a completion script for a shell
    Completions(completions::Args),
}

impl Command {
    /// Does it.
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
            Self::Inbox => inbox::run(at).await,
            Self::Change(action) => change::run(at, action).await,
            Self::Approve(args) => approve::run(at, args).await,
            Self::Reject(args) => reject::run(at, args).await,
            Self::Channel(action) => channel::run(at, action).await,
            Self::Mcp(action) => mcp::run(at, action).await,
            Self::Model(action) => model::run(at, action).await,
            Self::Secret(action) => secret::run(at, action).await,
            Self::Memory(action) => memory::run(at, action).await,
            Self::Message(action) => message::run(at, action).await,
            Self::Delivery(action) => message::run(at, message::Action::Dead(action)).await,
            Self::Session(action) => session::run(at, action).await,
            Self::Panic => panic::run(at).await,
            Self::Resume => resume::run(at).await,
            Self::Person(action) => person::run(at, action).await,
            Self::Token(action) => token::run(at, action).await,
            Self::Key(action) => key::run(at, action).await,
            Self::Usage(args) => usage::run(at, &args).await,
            Self::Why(args) => why::run(at, &args).await,
            Self::Audit(action) => audit::run(at, &action).await,
            Self::Logs(args) => logs::run(at, &args),
            Self::Contract(action) => contract::run(at, &action),
            Self::Config(action) => config::run(at, &action),
            Self::Completions(args) => completions::run(at, &args),
        }
    }
}
