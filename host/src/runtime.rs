//! The shared parts that every actor uses, made once at the start.
//!
//! Decides nothing. See `runtime::life` and `runtime::work` for the decisions about sessions, and [`actor`] for their execution.

pub mod accept;
pub mod actor;
pub mod actors;
pub mod admission;
pub mod cancel;
pub mod changes;
pub mod command;
pub mod containment_check;
pub mod emergency_stop;
pub mod launch;
mod life;
pub mod link;
pub mod pipeline;
pub mod prepared;
pub mod projection;
pub mod recovery;
#[cfg(feature = "relay")]
pub mod relay;
pub mod rows;
pub mod schedules;
pub mod session_state;
pub mod sessions;
pub mod shortages;
mod sleep_reason;
pub mod turn_loop;
mod work;
pub mod workspace;
pub mod workspace_files;

use crate::calls::model_socket::ModelServers;
use crate::registry::latch::Latch;
use crate::registry::live_settings::Live;
use crate::runtime::admission::Admission;
use crate::runtime::launch::Jails;
use crate::runtime::pipeline::Outbound;
use crate::runtime::workspace::Workspaces;
use crate::turns::open_turns::OpenTurns;
use std::sync::Arc;

/// Launches in flight, for all sessions: more would only wait for each other.
pub const LAUNCHES_MAX: usize = 8;

/// The shared parts that every actor uses.
pub struct Runtime {
    /// Have `[session]`.
    pub settings: Arc<Live>,
    /// The turns that actors open and close, with the record.
    pub turns: Arc<OpenTurns>,
    /// Accepts the rows of the sandboxes, and delivers their answers.
    pub outbound: Arc<Outbound>,
    pub jails: Arc<Jails>,
    pub workspaces: Arc<Workspaces>,
    /// Serves the model sockets.
    pub models: Arc<ModelServers>,
    /// Bounds the sessions that are awake at once.
    pub admission: Arc<Admission>,
    /// Stops actors from starting work during an emergency stop.
    pub latch: Arc<Latch>,
}
