//! What the actors of sessions work with, made once at the start.
//!
//! Decides nothing. See `pipeline::runtime::actor`.

pub(in crate::pipeline) mod actor;
pub(in crate::pipeline) mod actors;
pub(in crate::pipeline) mod admission;
pub(in crate::pipeline) mod cancel;
pub(in crate::pipeline) mod command;
pub(in crate::pipeline) mod containment_check;
pub(in crate::pipeline) mod launch;
pub(in crate::pipeline) mod recovery;
pub(in crate::pipeline) mod session_state;
pub(in crate::pipeline) mod sessions;
pub(in crate::pipeline) mod shortages;
pub(in crate::pipeline) mod turn_loop;
pub(in crate::pipeline) mod workspace;

use crate::pipeline::{Dispatch, Jails, Latch, ModelServers, Places, Proposals, Turns, Workspaces};
use crate::session;
use std::sync::Arc;

/// Collaborators of every actor.
pub struct Runtime {
    /// `[session]`
    pub config: session::Config,
    /// The turns that actors open and close, with the record.
    pub turns: Arc<Turns>,
    /// Takes the changes that agents ask for.
    pub proposals: Arc<Proposals>,
    /// Makes the jails.
    pub jails: Arc<Jails>,
    /// Measures the workspaces.
    pub workspaces: Arc<Workspaces>,
    /// Serve the model sockets.
    pub models: Arc<ModelServers>,
    /// Bounds the sessions that are awake at once.
    pub places: Arc<Places>,
    /// Keeps actors from beginning anything.
    pub latch: Arc<Latch>,
    /// Sends what goes out by a network.
    pub dispatch: Arc<Dispatch>,
}
