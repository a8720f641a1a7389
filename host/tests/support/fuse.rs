//! A FUSE mount with an empty directory, served by a thread of the test. Only root can make one.
//!
//! Answers the few requests that a look at the mount needs, and refuses all others. See `ops::file_systems`.

use super::needs::needs_root;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The device of the kernel.
const DEVICE: &str = "/dev/fuse";

/// Bytes of the largest request.
const REQUEST_BYTES_MAX: usize = 256 * 1024;

/// Bytes of the header of a request.
const HEADER_BYTES: usize = 40;

/// Operations, linux/fuse.h.
const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const STATFS: u32 = 17;
const INIT: u32 = 26;
const INTERRUPT: u32 = 36;
const BATCH_FORGET: u32 = 42;

pub(crate) struct Fuse {
    pub(crate) point: PathBuf,
}

impl Fuse {
    /// Mounts an empty directory with this subtype.
    pub(crate) fn mount(point: &Path, subtype: &str) -> Self {
        needs_root();
        let device = OpenOptions::new().read(true).write(true).open(DEVICE).expect("a kernel with FUSE");
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", device.as_raw_fd());
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        let mounted =
            mount(Some("test"), point, Some(format!("fuse.{subtype}").as_str()), flags, Some(options.as_str()));
        mounted.expect("root mounts it");
        // It ends with the mount.
        std::thread::spawn(move || serve(device));
        Self { point: point.to_owned() }
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        let _ = umount2(&self.point, MntFlags::MNT_DETACH);
    }
}

fn serve(mut device: File) {
    let mut request = vec![0; REQUEST_BYTES_MAX];
    while let Ok(read) = device.read(&mut request) {
        if read < HEADER_BYTES {
            return;
        }
        let operation = u32::from_ne_bytes(request[4..8].try_into().expect("four bytes"));
        let unique: [u8; 8] = request[8..16].try_into().expect("eight bytes");
        let (error, body) = match operation {
            FORGET | BATCH_FORGET | INTERRUPT => continue,
            INIT => (0, init()),
            GETATTR => (0, attributes()),
            STATFS => (0, vec![0; 80]),
            LOOKUP => (nix::errno::Errno::ENOENT as i32, Vec::new()),
            _ => (nix::errno::Errno::ENOSYS as i32, Vec::new()),
        };
        let length = (16 + body.len()) as u32;
        let mut answer = length.to_ne_bytes().to_vec();
        answer.extend((-error).to_ne_bytes());
        answer.extend(unique);
        answer.extend(body);
        if device.write_all(&answer).is_err() {
            return;
        }
    }
}

/// Returns the answer to the first request: version 7.31, and writes of a page.
fn init() -> Vec<u8> {
    let mut body: Vec<u8> = [7_u32, 31, 0, 0, 0, 4096].iter().flat_map(|word| word.to_ne_bytes()).collect();
    body.resize(64, 0);
    body
}

/// Returns the attributes of the root: a directory of root with mode 0755.
fn attributes() -> Vec<u8> {
    let mut body = vec![0; 16];
    body.extend([1_u64, 0, 0, 0, 0, 0].iter().flat_map(|word| word.to_ne_bytes()));
    body.extend([0_u32, 0, 0, 0o40_755, 2, 0, 0, 0, 4096, 0].iter().flat_map(|word| word.to_ne_bytes()));
    body
}
