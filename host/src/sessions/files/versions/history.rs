//! The versions of a workspace that it no longer has, for people.
//!
//! Changes nothing. See [`super::restore`].

use super::index::{Stamp, Version, Why};
use super::limits::COPY_TIME_MAX;
use super::store::{self, Report};
use super::walk::{self, Walked};
use crate::sessions::files::{FilePath, Files};
use ironclaw_contract::ids::TurnId;
use ironclaw_state::home::SessionDirectories;
use std::io;
use std::time::Instant;

/// Versions of one list.
pub const HISTORY_MAX: usize = 1000;

/// A kept version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The path below the workspace.
    pub path: String,
    pub version: Version,
    /// The reason that the workspace no longer has it.
    pub why: Why,
    /// The last turn with a contained call that may change files, before the host saw the change.
    pub turn: Option<TurnId>,
}

/// The kept versions of a workspace, the newest first.
#[derive(Debug, Default)]
pub struct History {
    pub versions: Vec<Kept>,
    /// True if there are more than [`HISTORY_MAX`].
    pub more: bool,
    /// The report of the last run.
    pub report: Report,
}

/// Returns the versions of a file, of the files below a directory, or of all files.
///
/// # Errors
/// Fails if the host cannot read the workspace. A damaged list is reported as a failure.
pub fn history(place: &SessionDirectories, at: &FilePath) -> io::Result<History> {
    let (index, report) = match store::read(place) {
        Ok(read) => read,
        Err(error) => {
            let report = Report { failure: Some(error.to_string()), ..Report::default() };
            return Ok(History { report, ..History::default() });
        }
    };
    let at = at.text();
    let below = format!("{at}/");
    let is_wanted = |path: &str| at.is_empty() || path == at || path.starts_with(&below);
    let found = match Files::open(place, None)? {
        Some(files) => walk::walk(&files, Instant::now() + COPY_TIME_MAX, &mut Report::default())?,
        None => Walked::default(),
    };
    let lost = index.all_current().filter(|(path, _)| is_wanted(path)).filter_map(|(path, version)| {
        let why = match found.files.get(path) {
            Some(stamp) => differs(version, stamp)?,
            None if found.lacks(path) => Why::Deleted,
            None => return None,
        };
        Some(Kept { path: path.clone(), version: *version, why, turn: report.turn })
    });
    let past = index.past().filter(|past| is_wanted(&past.path)).map(|past| Kept {
        path: past.path.clone(),
        version: past.version,
        why: past.why,
        turn: past.turn,
    });
    let mut versions: Vec<Kept> = lost.chain(past).take(HISTORY_MAX + 1).collect();
    let more = versions.len() > HISTORY_MAX;
    versions.truncate(HISTORY_MAX);
    Ok(History { versions, more, report })
}

fn differs(version: &Version, now: &Stamp) -> Option<Why> {
    (version.stamp != *now).then(|| version.stamp.why(now))
}
