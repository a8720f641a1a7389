//! The files of a browser's jail: copied and made before the pivot, and read-only afterwards except for its shared memory.
//!
//! See [`crate::browser`] for their contents.

use super::guards;
use super::system_mounts::write;
use crate::Walls;
use crate::browser::{CHROMIUM, CPUINFO, DIRECTORIES, FILES, LINKS, PROC, SHARED_MEMORY, SHARED_MEMORY_ROOM, cpuinfo};
use crate::launcher::wire::{Failure, Part, step};
use nix::fcntl::AtFlags;
use nix::mount::mount;
use nix::sys::stat::{Mode, fstatat, mkdirat};
use nix::unistd::symlinkat;
use std::os::fd::OwnedFd;

/// The description of the processors, while the host's `/proc` is reachable.
pub(super) struct BrowserMounts {
    cpuinfo: String,
}

impl BrowserMounts {
    pub(super) fn open() -> Result<Self, Failure> {
        let whole = step(Part::System, format!("read /{CPUINFO}"), std::fs::read_to_string(format!("/{CPUINFO}")))?;
        Ok(Self { cpuinfo: cpuinfo(&whole).to_owned() })
    }

    /// Makes them below `root`, which is mounted at `staging` and has the machine's programs. Returns the name that the root gets.
    pub(super) fn attach(self, root: &OwnedFd, staging: &str, walls: Walls) -> Result<&'static str, Failure> {
        let mode = Mode::from_bits_truncate(0o755);
        for directory in DIRECTORIES.into_iter().chain([SHARED_MEMORY]) {
            step(Part::System, format!("make /{directory}"), mkdirat(root, directory, mode))?;
        }
        for (name, content) in FILES.into_iter().chain([(CPUINFO, self.cpuinfo.as_str())]) {
            step(Part::System, format!("write /{name}"), write(root, name, content))?;
        }
        for (name, target) in LINKS {
            step(Part::System, format!("link /{name}"), symlinkat(target, root, name))?;
        }
        let (program, link) = CHROMIUM;
        if fstatat(root, program, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok() {
            let target = format!("/{program}");
            step(Part::System, format!("link /{link}"), symlinkat(target.as_str(), root, link))?;
        }
        let options =
            format!("mode=0700,uid=1000,gid=1000,size={},nr_inodes={}", SHARED_MEMORY_ROOM.0, SHARED_MEMORY_ROOM.1);
        let at = format!("{staging}/{SHARED_MEMORY}");
        let mounted = mount(Some("ironclaw"), at.as_str(), Some("tmpfs"), guards::flags(walls), Some(options.as_str()));
        step(Part::System, format!("mount /{SHARED_MEMORY}"), mounted)?;
        Ok(PROC)
    }
}
