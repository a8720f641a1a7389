//! The process of one agent session; a library so that tests can drive its parts.
//!
//! It has no policy and no secret except the session key, and reaches only two queues, one socket and its workspace. See
//! [`crate::launch`] for the order of the steps, then [`crate::agent`].

// The host starts this process, and only its tests read this crate: what a name does not say is documented.
#![allow(missing_docs)]

pub mod agent;
pub mod command;
pub mod kernel;
pub mod launch;
pub mod link;
pub mod lockdown;
pub mod runner;
pub mod tools;

use ironclaw_contract::seam::link::path;
use nix::sys::statvfs::{FsFlags, statvfs};
use std::path::{Path, PathBuf};

/// Paths of files. In the jail they are fixed; a test has a directory of its own.
#[derive(Debug, Clone)]
pub struct Paths {
    /// Directory of the inbound queue.
    pub inbound: PathBuf,
    /// Directory of the outbound queue.
    pub outbound: PathBuf,
    pub workspace: PathBuf,
    /// Directory of the sockets.
    pub run: PathBuf,
    /// Further directories that a person granted.
    pub granted: Vec<Granted>,
    /// The machine's programs, where the agent may run them.
    pub programs: Option<Programs>,
}

/// A directory that a person granted.
#[derive(Debug, Clone)]
pub struct Granted {
    /// Its name in a path of a tool: `/` and one name.
    pub name: String,
    pub path: PathBuf,
    /// True if it is writable.
    pub is_writable: bool,
}

/// Paths of the machine's programs, and of the files that they expect.
#[derive(Debug, Clone)]
pub struct Programs {
    pub usr: PathBuf,
    /// Directory with the lists of users and groups.
    pub etc: PathBuf,
    /// Directory for temporary files.
    pub tmp: PathBuf,
    pub devices: Vec<PathBuf>,
}

impl Paths {
    /// Returns the paths in the jail; `granted` are the names of mounts in it.
    pub fn jail(granted: &[String]) -> Self {
        let is_writable = |name: &str| statvfs(name).is_ok_and(|found| !found.flags().contains(FsFlags::ST_RDONLY));
        let programs = Programs {
            usr: "/usr".into(),
            etc: "/etc".into(),
            tmp: "/tmp".into(),
            devices: ["/dev/null", "/dev/zero", "/dev/urandom"].map(PathBuf::from).into(),
        };
        Self {
            granted: granted
                .iter()
                .map(|name| Granted { name: name.clone(), path: name.into(), is_writable: is_writable(name) })
                .collect(),
            programs: programs.usr.is_dir().then_some(programs),
            inbound: path::IN.into(),
            outbound: path::OUT.into(),
            workspace: path::WORKSPACE.into(),
            run: path::RUN.into(),
        }
    }

    /// Returns the same paths below a directory.
    pub fn below(root: &Path) -> Self {
        let place = |path: &str| root.join(path.trim_start_matches('/'));
        Self {
            granted: Vec::new(),
            programs: None,
            inbound: place(path::IN),
            outbound: place(path::OUT),
            workspace: place(path::WORKSPACE),
            run: place(path::RUN),
        }
    }

    /// Returns the path of the inbound queue.
    pub fn inbound_db(&self) -> PathBuf {
        self.inbound.join(path::INBOUND_DB)
    }

    /// Returns the path of the outbound queue.
    pub fn outbound_db(&self) -> PathBuf {
        self.outbound.join(path::OUTBOUND_DB)
    }

    /// Returns the path of the model socket.
    pub fn model_socket(&self) -> PathBuf {
        self.run.join(path::MODEL_SOCK)
    }
}
