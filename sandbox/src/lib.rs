//! The parts of the process that one agent session runs in; a library so that tests can drive them.
//!
//! Holds no policy and no secret but the session key, and reaches nothing but two queues, one socket and its workspace.
//! Next: `launch` for the order of things, then `agent`.

pub mod agent;
pub mod command;
pub mod kernel;
pub mod launch;
pub mod link;
pub mod lockdown;
pub mod tools;

use ironclaw_contract::seam::link::path;
use std::path::{Path, PathBuf};

/// Where things lie. In the jail there is one answer; a test has a directory of its own.
#[derive(Debug, Clone)]
pub struct Places {
    /// Directory of the inbound queue.
    pub inbound: PathBuf,
    /// Directory of the outbound queue.
    pub outbound: PathBuf,
    /// The agent's files.
    pub workspace: PathBuf,
    /// Directory of the sockets.
    pub run: PathBuf,
}

impl Places {
    /// The places of the jail, below its root.
    pub fn jail() -> Self {
        Self {
            inbound: path::IN.into(),
            outbound: path::OUT.into(),
            workspace: path::WORKSPACE.into(),
            run: path::RUN.into(),
        }
    }

    /// The same places below a directory.
    pub fn below(root: &Path) -> Self {
        let place = |path: &str| root.join(path.trim_start_matches('/'));
        Self {
            inbound: place(path::IN),
            outbound: place(path::OUT),
            workspace: place(path::WORKSPACE),
            run: place(path::RUN),
        }
    }

    /// The inbound queue.
    pub fn inbound_db(&self) -> PathBuf {
        self.inbound.join(path::INBOUND_DB)
    }

    /// The outbound queue.
    pub fn outbound_db(&self) -> PathBuf {
        self.outbound.join(path::OUTBOUND_DB)
    }

    /// The model socket.
    pub fn model_socket(&self) -> PathBuf {
        self.run.join(path::MODEL_SOCK)
    }
}
