//! Detection of shortages of the machine.
//!
//! Counts no failure and parks no session; `runtime::life` decides to wait. See [`ironclaw_jail::shortage`].

use ironclaw_jail::shortage::Shortage;
use ironclaw_state::home::Home;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::time::Instant;

/// With fewer free bytes in the file system of the home, no session is launched: queues and workspaces need some.
pub const ROOM_BYTES_MIN: u64 = 256 * 1024;

/// With fewer free inodes there, no session is launched: a session's directories, queues and journals need some.
pub const ROOM_INODES_MIN: u64 = 32;

/// Returns the shortage that a launch in this home would meet, from the figures of the file system.
pub fn storage_shortage(home: &Home) -> Option<Shortage> {
    let room = home.free_space()?;
    if room.is_read_only {
        return Some(Shortage::ReadOnly);
    }
    if room.free_bytes < ROOM_BYTES_MIN {
        return Some(Shortage::Disk);
    }
    room.free_inodes.is_some_and(|free| free < ROOM_INODES_MIN).then_some(Shortage::Inodes)
}

/// Returns the shortage that caused a failure. `reported` is the shortage that the failure itself names. A failure without one (a process
/// that ended, a file that SQLite could not open) counts as a shortage if the machine is short of something at this moment.
pub(crate) fn find(home: &Home, reported: Option<Shortage>) -> Option<Shortage> {
    match reported.or_else(|| probe(home)) {
        // The kernel reports the same error for bytes and for inodes.
        Some(Shortage::Disk) => Some(storage_shortage(home).unwrap_or(Shortage::Disk)),
        found => found,
    }
}

/// Tries the operations of a launch: makes a small file in the home, and a thread.
fn probe(home: &Home) -> Option<Shortage> {
    if let Some(shortage) = storage_shortage(home) {
        return Some(shortage);
    }
    if let Err(error) = home.probe_write() {
        return Shortage::find_in(&error);
    }
    match thread::Builder::new().spawn(|| ()) {
        Ok(_) => None,
        Err(error) => Shortage::find_in(&error),
    }
}

/// The pause between two looks at a storage that is short.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The looks at the storage of the home, one in [`LOOK_EVERY`] for all sessions that wait for it.
#[derive(Debug, Default)]
pub struct Looks(Mutex<Option<Look>>);

#[derive(Debug, Clone, Copy)]
struct Look {
    at: Instant,
    is_short: bool,
}

impl Looks {
    /// Returns whether the shortage of the home is over.
    pub(crate) fn is_over(&self, home: &Home) -> bool {
        self.is_over_at(Instant::now(), || storage_shortage(home).is_some() || home.probe_write().is_err())
    }

    fn is_over_at(&self, now: Instant, look: impl FnOnce() -> bool) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = match *last {
            Some(newest) if now.saturating_duration_since(newest.at) < LOOK_EVERY => newest,
            _ => Look { at: now, is_short: look() },
        };
        *last = Some(newest);
        !newest.is_short
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reach::packages;
    use crate::runtime::launch::Error as Launch;
    use crate::runtime::link;
    use ironclaw_contract::ids::SessionId;
    use ironclaw_contract::seam::crypt;
    use ironclaw_jail::{launcher, reader};
    use ironclaw_state::home;
    use ironclaw_store::error::Error;
    use nix::libc;
    use std::io;
    use std::path::PathBuf;

    /// Makes each error of a launch that can carry an error of the kernel.
    fn wrapped(errno: i32) -> Vec<Launch> {
        let source = || io::Error::from_raw_os_error(errno);
        let (session, path) = (SessionId::new(), PathBuf::from("/h"));
        let failure = launcher::Failure { part: launcher::Part::Launch, step: "make a pair".to_owned(), errno };
        let refused = || launcher::Error::Refused { name: "ses".to_owned(), failure: failure.clone() };
        vec![
            Launch::Home(home::Error::Io { path: path.clone(), source: source() }),
            Launch::Socket { session, source: source() },
            Launch::Launch(refused()),
            Launch::Launch(launcher::Error::Request { name: "ses".to_owned(), source: source() }),
            Launch::Link(link::Error::Cut { session, source: source() }),
            Launch::Reader(reader::Error::Dead(source())),
            Launch::Layer(packages::Error::Launch(refused())),
            Launch::Layer(packages::Error::Home(home::Error::Io { path: path.clone(), source: source() })),
            Launch::Layer(packages::Error::Io { path, source: source() }),
        ]
    }

    #[test]
    fn every_error_of_a_launch_gives_the_shortage_in_it() {
        use libc::{EAGAIN, EDQUOT, EMFILE, ENFILE, ENOMEM, ENOSPC, EROFS};
        for errno in [EMFILE, ENFILE, ENOMEM, EAGAIN, ENOSPC, EDQUOT, EROFS] {
            for error in wrapped(errno) {
                assert_eq!(error.shortage(), Shortage::from_errno(errno), "{errno}: {error}");
                assert!(error.shortage().is_some() && !error.is_violation(), "{errno}: {error}");
            }
        }
        for error in wrapped(libc::ENOENT) {
            assert_eq!(error.shortage(), None, "{error}");
        }
    }

    #[test]
    fn storage_is_looked_at_once_a_second_for_all_sessions() {
        let (looks, start, mut made) = (Looks::default(), Instant::now(), 0);
        for tenth in 0..100_u32 {
            let is_over = looks.is_over_at(start + LOOK_EVERY / 10 * tenth, || {
                made += 1;
                tenth < 50
            });
            assert_eq!(is_over, tenth >= 50, "{tenth}");
        }
        assert_eq!(made, 10);
    }

    #[test]
    fn a_queue_or_a_record_that_is_full_is_a_shortage() {
        let sqlite = |code| rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        for (code, expected) in
            [(rusqlite::ffi::SQLITE_FULL, Shortage::Disk), (rusqlite::ffi::SQLITE_NOMEM, Shortage::Memory)]
        {
            let path = PathBuf::from("/h");
            let queue = crypt::Error::Sqlite { queue: "inbound queue", path, source: sqlite(code) };
            assert_eq!(Launch::Inbound(queue).shortage(), Some(expected));
            let record = Error::State(ironclaw_state::Error::Sqlite(sqlite(code)));
            assert_eq!(Shortage::find_in(&record), Some(expected));
            assert_eq!(Launch::Pipeline(Box::new(record)).shortage(), Some(expected));
        }
        assert!(Error::State(ironclaw_state::Error::Unwritten(String::new())).is_unwritten());
        assert!(!Error::Stopping.is_unwritten());
    }
}
