//! The local tools: four that work on the agent's files in this process, and commands, which the runner executes.
//!
//! They reach no other data. Their results have no authority: the host seals them as untrusted text. See
//! [`crate::tools::workspace`] for the rules of paths.

pub mod files;
pub mod outcome;
pub mod search;
pub mod workspace;

use crate::Paths;
use crate::link::Link;
use crate::runner::{Over, Runner};
use ironclaw_contract::canonical;
use ironclaw_contract::seam::limits::ARGUMENTS_BYTES_MAX;
use outcome::Outcome;
use serde::de::DeserializeOwned;
use std::io;
use workspace::Workspace;

/// The reason why a tool failed. Each is a sentence for the model.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The tool does not exist or is not local.
    #[error("there is no local tool {0:?}")]
    UnknownTool(String),
    /// The arguments are not those of the tool.
    #[error("cannot read the arguments of {tool}: {source}")]
    Arguments { tool: &'static str, source: canonical::Error },
    /// The path is refused, or the file cannot be used.
    #[error(transparent)]
    Workspace(#[from] workspace::Error),
    /// The jail has no programs.
    #[error("cannot run a command: there are no programs in this jail")]
    NoPrograms,
    /// The pattern is no regular expression, or too large a one.
    #[error("cannot search: {0}")]
    Pattern(String),
}

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
        Ok(Self { workspace: Workspace::open(paths)?, runner })
    }

    /// Runs a command, with the arguments that the host recorded.
    ///
    /// # Errors
    /// [`Over`] if the host closed the link, or the runner has ended.
    pub fn command(&self, arguments: &str, link: &Link) -> Result<Outcome, Over> {
        let failed = |error: Error| Ok(Outcome { ok: false, body: error.to_string() });
        match (parse("run_command", arguments), &self.runner) {
            (Err(error), _) => failed(error),
            (Ok(_), None) => failed(Error::NoPrograms),
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
        let result = match tool {
            "read_file" => parse("read_file", arguments).and_then(|call| Ok(files::read(&self.workspace, &call)?)),
            "write_file" => parse("write_file", arguments).and_then(|call| Ok(files::write(&self.workspace, &call)?)),
            "list_dir" => parse("list_dir", arguments).and_then(|call| Ok(files::list(&self.workspace, &call)?)),
            "search_files" => parse("search_files", arguments).and_then(|call| search::run(&self.workspace, &call)),
            other => Err(Error::UnknownTool(other.to_owned())),
        };
        match result {
            Ok(body) => Outcome { ok: true, body },
            Err(error) => Outcome { ok: false, body: error.to_string() },
        }
    }
}

fn parse<T: DeserializeOwned>(tool: &'static str, arguments: &str) -> Result<T, Error> {
    let limits = canonical::Limits::bytes(ARGUMENTS_BYTES_MAX);
    canonical::from_slice(arguments.as_bytes(), limits).map_err(|source| Error::Arguments { tool, source })
}

#[cfg(test)]
mod tests;
