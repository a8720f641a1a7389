//! The tools that read, list, search and write files: one code for the sandbox, which runs the calls of an agent, and for the host, which
//! runs those in directories of a person a second time.
//!
//! Opens nothing outside of the directories that it is given, and follows no link. See [`workspace`] for the rules of paths.

#![allow(missing_docs)]

pub mod files;
pub mod outcome;
pub mod search;
pub mod workspace;

use ironclaw_contract::canonical;
use ironclaw_contract::seam::limits::ARGUMENTS_BYTES_MAX;
use outcome::Outcome;
use serde::de::DeserializeOwned;
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
    /// The pattern is no regular expression, or too large a one.
    #[error("cannot search: {0}")]
    Pattern(String),
}

/// Runs one call with the arguments that the host recorded, as canonical JSON.
#[must_use]
pub fn run(workspace: &Workspace, tool: &str, arguments: &str) -> Outcome {
    let result = match tool {
        "read_file" => parse("read_file", arguments).and_then(|call| Ok(files::read(workspace, &call)?)),
        "write_file" => parse("write_file", arguments).and_then(|call| Ok(files::write(workspace, &call)?)),
        "list_dir" => parse("list_dir", arguments).and_then(|call| Ok(files::list(workspace, &call)?)),
        "search_files" => parse("search_files", arguments).and_then(|call| search::run(workspace, &call)),
        other => Err(Error::UnknownTool(other.to_owned())),
    };
    match result {
        Ok(body) => Outcome { ok: true, body },
        Err(error) => Outcome { ok: false, body: error.to_string() },
    }
}

/// Reads the arguments of a call.
///
/// # Errors
/// [`Error::Arguments`] if they are not those of the tool.
pub fn parse<T: DeserializeOwned>(tool: &'static str, arguments: &str) -> Result<T, Error> {
    let limits = canonical::Limits::bytes(ARGUMENTS_BYTES_MAX);
    canonical::from_slice(arguments.as_bytes(), limits).map_err(|source| Error::Arguments { tool, source })
}
