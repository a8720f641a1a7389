//! The local tools: four that work on the agent's files in this process, and commands, which the runner executes.
//!
//! They reach no other data. Their results have no authority: the host seals them as untrusted text. See
//! [`ironclaw_files::workspace`] for the rules of paths.

use crate::Paths;
use crate::link::Link;
use crate::runner::{Over, Runner};
use ironclaw_files::outcome::Outcome;
use ironclaw_files::workspace::Workspace;
use std::io;

/// The local tools, and the directories that they work in.
#[derive(Debug)]
pub struct Tools {
    workspace: Workspace,
    runner: Option<Runner>,
}

impl Tools {
    /// Opens the agent's directories. Later all files are opened relative to these descriptors, not by the paths of the directories.
    ///
    /// # Errors
    /// Those of opening a directory.
    pub fn open(paths: &Paths, runner: Option<Runner>) -> io::Result<Self> {
        let granted = paths.granted.iter().map(|granted| (granted.name.as_str(), granted.path.as_path()));
        Ok(Self { workspace: Workspace::open(&paths.workspace, granted)?, runner })
    }

    /// Runs a command, with the arguments that the host recorded.
    ///
    /// # Errors
    /// [`Over`] if the host closed the link, or the runner has ended.
    pub fn command(&self, arguments: &str, link: &Link) -> Result<Outcome, Over> {
        let failed = |body: String| Ok(Outcome { ok: false, body });
        match (ironclaw_files::parse("run_command", arguments), &self.runner) {
            (Err(error), _) => failed(error.to_string()),
            (Ok(_), None) => failed("cannot run a command: there are no programs in this jail".to_owned()),
            (Ok(call), Some(runner)) => runner.run(call, link),
        }
    }

    /// Sleeps until the host rings, or the runner ends.
    ///
    /// # Errors
    /// [`Over`] if the host closed the link, or the runner has ended.
    pub fn wait(&self, link: &Link) -> Result<(), Over> {
        match &self.runner {
            None => Ok(link.wait()?),
            Some(runner) => match link.wait_beside(runner.end())? {
                true => Ok(()),
                false => Err(Over::Lost),
            },
        }
    }

    /// Runs one call with the arguments that the host recorded, as canonical JSON.
    pub fn run(&self, tool: &str, arguments: &str) -> Outcome {
        ironclaw_files::run(&self.workspace, tool, arguments)
    }
}

#[cfg(test)]
mod tests;
