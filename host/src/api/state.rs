//! The state of every handler.
//!
//! Decides nothing. See [`super::handler`] for the other parts of a handler.

use super::callers::Callers;
use super::chat::read_replies::ReadReplies;
use super::console_state::Console;
use crate::calls::model_socket::endpoints::Models;
use crate::channels::outbound::dispatch::Dispatch;
use crate::gateway::waiting::Gateway;
use crate::reach::network_command::CommandJails;
use crate::runtime::emergency_stop::EmergencyStop;
use crate::runtime::pipeline::Inbound;
use crate::runtime::sessions::Sessions;
use ironclaw_contract::ids::PersonId;
use ironclaw_operator::Reloaded;
use ironclaw_state::State;
use ironclaw_state::home::Home;
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::refusal::Denied;
use ironclaw_store::shutdown::Shutdown;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

/// The state of every handler.
#[derive(Clone)]
pub struct Api {
    pub record: Arc<Record>,
    pub inbound: Inbound,
    /// Asks and watches sessions.
    pub sessions: Sessions,
    /// Has what waits for people, and takes their decisions.
    pub gateway: Arc<Gateway>,
    pub skills: Arc<crate::reach::skills::Skills>,
    /// Make the jails in which git reads the diff of a push.
    pub command_jails: Arc<dyn CommandJails>,
    /// Replies that people got.
    pub read_replies: ReadReplies,
    /// The connections to MCP servers.
    pub servers: Arc<crate::reach::mcp::Servers>,
    pub models: Arc<Models>,
    /// Sends deliveries over a network.
    pub dispatch: Arc<Dispatch>,
    /// Stops and resumes everything.
    pub stops: EmergencyStop,
    /// The callers and their tokens.
    pub callers: Arc<Callers>,
    /// The console: where it answers, and its codes.
    pub console: Arc<Console>,
    /// Facts about the daemon.
    pub about: Arc<About>,
}

/// Facts about the daemon.
pub struct About {
    pub home: Home,
    /// The process that makes jails.
    pub launcher_pid: u32,
    /// The time of the start, in milliseconds since the epoch.
    pub started_at: i64,
    /// The address of the port for webhooks, if it is open.
    pub hooks: Option<SocketAddr>,
    /// The refused requests to the port for webhooks.
    pub refused_hooks: super::hooks::RefusedHooks,
    pub head_publisher: crate::upkeep::maintenance::HeadPublisher,
    pub backups: Arc<crate::upkeep::backup::Maker>,
    /// Warnings about lowered guards and other conditions.
    pub warnings: Vec<String>,
    /// Stops the daemon when an operator asks for it, and says if it is stopping.
    pub shutdown: Shutdown,
    /// Reads the settings again.
    pub reload: Arc<dyn Reload>,
}

impl Api {
    /// The state in the record.
    pub(super) fn state(&self) -> &State {
        &self.record.state
    }

    /// Forgets the cached tokens and has the worker of ended tokens look. Call it after each committed change of people or tokens, so that the next request sees the change.
    pub(super) fn people_changed(&self) {
        self.callers.tokens.invalidate();
        self.callers.token_changes.notify_one();
    }
}

/// The result of a reload, later.
pub type Reloading = Pin<Box<dyn Future<Output = Result<Reloaded, Denied<Error>>> + Send>>;

/// The part of the daemon that reads the settings again.
pub trait Reload: Send + Sync {
    /// Reads `config.toml` and `policy.toml`, and applies the settings that need no restart.
    ///
    /// # Errors
    /// Refuses a file that is not valid; the running settings do not change then.
    fn reload(self: Arc<Self>, by: PersonId) -> Reloading;

    /// Adds a directory to `[mounts] allow` of `config.toml`, and reads both files as [`Self::reload`] does.
    ///
    /// # Errors
    /// Refuses a file that is not valid, or that has no place for the directory; nothing changes then.
    fn allow(self: Arc<Self>, by: PersonId, directory: PathBuf) -> Reloading;
}
