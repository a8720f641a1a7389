//! Attempts to use up resources of the machine: processes, addresses, descriptors, file sizes, the room of the root.
//!
//! Each attempt exceeds its bound by one step and releases the resource. See [`crate::self_test::outside`].

use super::files::overfill;
use super::line::{Line, Refusals, observation, refused};
use crate::native::rootfs::ROOT_ROOM;
use crate::sys::{self, OneThread, Side, bare};
use crate::{Spec, Wall};
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::statvfs::statvfs;
use nix::sys::wait::waitpid;
use std::io;

/// Amount by which an attempt exceeds the bound before it reports that there is none.
const BEYOND: u64 = 16;

pub(super) fn lines(spec: &Spec) -> Vec<Line> {
    let limits = spec.limits;
    let look = |name: &str, wall, resource, value: u64| {
        observation(name, format!("{value} {value}"), wall, move |_| {
            let (soft, hard) = getrlimit(resource)?;
            Ok(format!("{soft} {hard}"))
        })
    };
    let mut lines = vec![
        look("see the limit of core dumps", Wall::CoreLimit, Resource::RLIMIT_CORE, 0),
        look("see the limit of addresses", Wall::AddressLimit, Resource::RLIMIT_AS, limits.address_space_bytes),
        look("see the limit of open files", Wall::OpenFilesLimit, Resource::RLIMIT_NOFILE, limits.open_files),
        look("see the limit of processes", Wall::ProcessLimit, Resource::RLIMIT_NPROC, limits.processes),
        look("see the limit of file size", Wall::FileSizeLimit, Resource::RLIMIT_FSIZE, limits.file_bytes),
        refused("raise a limit", &[(Errno::EPERM, Wall::Capabilities)], move |_| {
            Ok(setrlimit(Resource::RLIMIT_NOFILE, limits.open_files * 2, limits.open_files * 2)?)
        }),
        refused("use up the addresses", &[(Errno::ENOMEM, Wall::AddressLimit)], move |_| {
            bare::map_addresses(limits.address_space_bytes)
        }),
        refused("use up the descriptors", &[(Errno::EMFILE, Wall::OpenFilesLimit)], move |_| {
            let mut taken = Vec::new();
            for _ in 0..limits.open_files + BEYOND {
                taken.push(sys::duplicate(&io::stdin())?);
            }
            Ok(())
        }),
        refused("start processes without end", &[(Errno::EAGAIN, Wall::ProcessLimit)], move |scene| {
            multiply(scene.thread, limits.processes + BEYOND)
        }),
        room("see the room in the root", "/", ROOT_ROOM.0, ROOT_ROOM.1),
    ];
    const TOO_LARGE: Refusals = &[(Errno::EFBIG, Wall::FileSizeLimit)];
    if let Some(mount) = spec.mounts.iter().find(|mount| !mount.read_only) {
        let file = format!("{}/.ironclaw-probe", mount.target);
        lines.push(refused("write a file without end", TOO_LARGE, move |_| {
            // The signal that accompanies the error would end the attempt before its report.
            sys::ignore(Signal::SIGXFSZ, true)?;
            overfill(&file, limits.file_bytes)
        }));
    }
    lines
}

/// Forks children that wait for the end of this process, until the kernel refuses a fork.
fn multiply(thread: &OneThread, count: u64) -> io::Result<()> {
    let (wait, hold) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    let mut hold = Some(hold);
    let mut forked = Ok(());
    for _ in 0..count {
        match thread.fork() {
            Ok(Side::Parent(_)) => {}
            Ok(Side::Child) => {
                drop(hold.take());
                // The end of the forking process closes the last writing end.
                let _ = nix::unistd::read(&wait, &mut [0]);
                sys::exit(0);
            }
            Err(error) => {
                forked = Err(error);
                break;
            }
        }
    }
    drop(hold);
    // The next attempt needs the process ids of all these children.
    while waitpid(None, None).is_ok() {}
    forked
}

/// Returns the line about the size of the file system at `path`.
pub(super) fn room(name: &str, path: &'static str, bytes: u64, files: u64) -> Line {
    let shown = |bytes: u64, files: u64| format!("{bytes} bytes, {files} files");
    observation(name, shown(bytes, files), Wall::RootSize, move |_| {
        let found = statvfs(path)?;
        Ok(shown(found.blocks() * found.fragment_size(), found.files()))
    })
}
