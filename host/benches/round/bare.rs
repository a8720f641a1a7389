//! The minimal round: two processes, with a durable encrypted commit in each and a bell in each direction.
//!
//! Uses the contract's own queue with `synchronous = FULL` on both sides, and no code of the host or the sandbox. See `main`.

use crate::jail_fixture;
use ironclaw_contract::ids::TurnId;
use ironclaw_contract::seam::crypt::SessionKey;
use ironclaw_contract::seam::outbound::{NewRow, OutboundReader, OutboundWriter};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// The bell for a commit of the peer, and the bell for a read and a commit.
const COMMIT: u8 = 1;
const READ_AND_COMMIT: u8 = 2;

/// One side: the queue that it appends to, and the peer's queue, which it reads.
struct Side {
    own: OutboundWriter,
    others: OutboundReader,
    seq: u64,
    others_seq: u64,
}

impl Side {
    fn open(own: &Path, others: &Path) -> Self {
        let key = SessionKey::new([7; 32]);
        // The first side creates both queues, so that a reader finds its queue.
        drop(OutboundWriter::open(others, &key).expect("a queue"));
        Self {
            own: OutboundWriter::open(own, &key).expect("a queue"),
            others: OutboundReader::open(others, &key).expect("a queue"),
            seq: 0,
            others_seq: 0,
        }
    }

    fn commit(&mut self) {
        let content = r#"{"reply":"itm_00000000000000000000000000"}"#.to_owned();
        let row = NewRow { turn: TurnId::new(), content, note: None };
        self.seq = self.own.append(&row, self.seq).expect("appended");
    }

    fn read(&mut self) {
        let found = self.others.look(self.others_seq).expect("a look");
        assert_eq!(found.rows.len(), 1, "the row of this round");
        self.others_seq += 2;
    }
}

/// Both processes; this one is the first.
pub(crate) struct Pair {
    side: Side,
    link: UnixStream,
    peer: Child,
    rounds: u64,
    _directory: tempfile::TempDir,
}

impl Pair {
    pub(crate) fn start() -> Self {
        let directory = jail_fixture::directory();
        let side = Side::open(&directory.path().join("a.db"), &directory.path().join("b.db"));
        let (link, theirs) = UnixStream::pair().expect("a pair of sockets");
        let mut peer = Command::new(std::env::current_exe().expect("a bench knows where it is"));
        peer.arg("peer").arg(directory.path()).stdin(Stdio::from(OwnedFd::from(theirs)));
        Self { side, link, peer: peer.spawn().expect("it starts"), rounds: 0, _directory: directory }
    }

    /// Runs one round: commit and bell here, then commit and bell of the peer. Returns the seconds.
    pub(crate) fn round(&mut self) -> f64 {
        self.exchange(COMMIT)
    }

    /// Runs one round in which each side also reads the peer's row. Returns the seconds.
    pub(crate) fn round_with_reading(&mut self) -> f64 {
        self.exchange(READ_AND_COMMIT)
    }

    fn exchange(&mut self, bell: u8) -> f64 {
        let begun = Instant::now();
        self.side.commit();
        self.link.write_all(&[bell]).expect("the peer listens");
        self.link.read_exact(&mut [0]).expect("the peer rings back");
        self.rounds += 1;
        if bell == READ_AND_COMMIT {
            self.side.others_seq = 2 * self.rounds - 2;
            self.side.read();
        }
        begun.elapsed().as_secs_f64()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // The peer ends with the link.
        let _ = self.link.shutdown(std::net::Shutdown::Both);
        let _ = self.peer.wait();
    }
}

/// Runs the second process, which answers each bell on standard input until the other end closes.
pub(crate) fn peer(directory: &Path) {
    use std::os::fd::AsFd;
    let link = std::io::stdin().as_fd().try_clone_to_owned().expect("standard input is the link");
    let mut link = UnixStream::from(link);
    let mut side = Side::open(&directory.join("b.db"), &directory.join("a.db"));
    let mut rounds = 0;
    let mut bell = [0];
    while link.read_exact(&mut bell).is_ok() {
        rounds += 1;
        if bell == [READ_AND_COMMIT] {
            side.others_seq = 2 * rounds - 2;
            side.read();
        }
        side.commit();
        link.write_all(&[1]).expect("the first process listens");
    }
}
