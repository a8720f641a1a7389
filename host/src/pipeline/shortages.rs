//! Finds out whether the machine is short of something, and remembers what sessions wait for.
//!
//! Counts no failure and parks no session; `pipeline::actor` waits. Next: `shortage`.

use super::{Core, Error};
use crate::shortage::Shortage;
use crate::state;
use std::thread;

/// With fewer free bytes where the home lies, nothing is launched: queues and workspaces need some.
pub const ROOM_BYTES_MIN: u64 = 256 * 1024;

/// With fewer free inodes where the home lies, nothing is launched: a session's directories, queues and journals need some.
pub const ROOM_INODES_MIN: u64 = 32;

impl Core {
    /// What a launch would lack where the home lies, as the file system reports it.
    pub fn no_room(&self) -> Option<Shortage> {
        let room = self.home.room()?;
        if room.is_read_only {
            return Some(Shortage::ReadOnly);
        }
        if room.free_bytes < ROOM_BYTES_MIN {
            return Some(Shortage::Disk);
        }
        room.free_inodes.is_some_and(|free| free < ROOM_INODES_MIN).then_some(Shortage::Inodes)
    }

    /// What the host is short of now: room where the home lies, or what a session waits for.
    pub fn shortage(&self) -> Option<Shortage> {
        self.no_room().or_else(|| self.actors.shortage())
    }

    /// The shortage behind a failure. `reported` is what the failure itself says. A failure that says nothing (a process that
    /// ended, a file that SQLite could not open) is one of the machine if the machine is short of something at this moment.
    pub(super) fn behind(&self, reported: Option<Shortage>) -> Option<Shortage> {
        match reported.or_else(|| self.probe()) {
            // The kernel says the same of bytes and of inodes.
            Some(Shortage::Disk) => Some(self.no_room().unwrap_or(Shortage::Disk)),
            found => found,
        }
    }

    /// Does what a launch needs of the machine: makes a small file in the home, and a thread.
    fn probe(&self) -> Option<Shortage> {
        if let Some(shortage) = self.no_room() {
            return Some(shortage);
        }
        if let Err(error) = self.home.try_to_write() {
            return Shortage::of(&error);
        }
        match thread::Builder::new().spawn(|| ()) {
            Ok(_) => None,
            Err(error) => Shortage::of(&error),
        }
    }
}

impl Error {
    /// What a person does about a record that cannot be written.
    pub const UNWRITTEN_REMEDY: &str = "make room where the home lies (disk space, inodes, quota), or end what else holds the record \
         open; `ironctl logs` has the cause";

    /// Whether a change was undone because the record cannot be written now. It passes, and it is no session's failure.
    pub fn is_unwritten(&self) -> bool {
        use crate::inbox::Error as Record;
        use crate::items::BodyError;
        use state::Error::Unwritten;
        matches!(
            self,
            Self::State(Unwritten(_))
                | Self::Record(Record::State(Unwritten(_)))
                | Self::Body(BodyError::State(Unwritten(_)))
        )
    }
}
