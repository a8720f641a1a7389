//! The write-ahead log of a record: its commits, and the pages that they wrote.
//!
//! Reads the headers of the frames, which are not encrypted. See `e2e::costs`.

use std::path::Path;

/// The write-ahead log of a record since its last restart.
pub(crate) struct Log {
    pub(crate) salt: [u8; 8],
    pub(crate) frames: Vec<Frame>,
}

/// A page that a commit wrote.
pub(crate) struct Frame {
    pub(crate) page: u32,
    pub(crate) ends_commit: bool,
}

impl Log {
    pub(crate) fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).expect("the record has a log");
        let (header, frames) = bytes.split_at(32);
        let salt: [u8; 8] = header[16..24].try_into().expect("8 bytes");
        let frames = frames.chunks_exact(24 + 4096).take_while(|frame| frame[8..16] == salt);
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("4 bytes"));
        let frames = frames.map(|frame| Frame { page: number(&frame[..4]), ends_commit: number(&frame[4..8]) != 0 });
        Self { salt, frames: frames.collect() }
    }

    /// Returns the frames since an earlier reading, or `None` if SQLite restarted the log after a checkpoint.
    pub(crate) fn since(&self, before: &Self) -> Option<&[Frame]> {
        (self.salt == before.salt).then(|| &self.frames[before.frames.len()..])
    }
}
