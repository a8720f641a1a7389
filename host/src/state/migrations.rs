//! The schema of `state.db`, in versions that only ever go forward.
//!
//! Never changes a version that was released; a newer file than this program knows is refused. Next: `state`.

use super::Error;
use rusqlite::Connection;
use std::path::Path;

/// One script a version; the file's `user_version` says how many have run.
const VERSIONS: &[&str] = &[
    include_str!("v1.sql"),
    include_str!("v2.sql"),
    include_str!("v3.sql"),
    include_str!("v4.sql"),
    include_str!("v5.sql"),
    include_str!("v6.sql"),
    include_str!("v7.sql"),
    include_str!("v8.sql"),
];

/// Runs what is missing, each version in a transaction of its own.
pub fn run(db: &Connection, path: &Path) -> Result<(), Error> {
    let found = check(db, path)?;
    for (index, script) in VERSIONS.iter().enumerate().skip(found as usize) {
        db.execute_batch(&format!("BEGIN IMMEDIATE; {script} PRAGMA user_version = {}; COMMIT;", index + 1))?;
    }
    Ok(())
}

/// The file's version, if this program knows it.
///
/// # Errors
/// [`Error::Newer`] for one that it does not know.
pub fn check(db: &Connection, path: &Path) -> Result<i64, Error> {
    let found: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = VERSIONS.len() as i64;
    if found > known {
        return Err(Error::Newer { path: path.display().to_string(), found, known });
    }
    Ok(found)
}
