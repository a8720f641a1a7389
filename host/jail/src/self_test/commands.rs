//! Attempts in a jail that has the host's programs: those that must work, and those that must fail although the file exists.
//!
//! Other jails have none of these lines. See [`crate::system`], which describes the files of such a jail.

use super::files::{READ_ONLY_ROOT, UNLISTED, list, read_only, writable};
use super::limits::room;
use super::line::{Line, Refusals, Scene, allowed, observation, refused};
use crate::sys::{self, Side};
use crate::system::{PASSWD, TMP_ROOM};
use crate::{Mount, Spec, Wall};
use nix::errno::Errno;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;

/// A file of the host's configuration, which no jail has.
const FAR: &str = "etc/shadow";
const READ_ONLY: Refusals = &[(Errno::EROFS, Wall::ReadOnlyMounts)];

pub(super) fn lines(spec: &Spec) -> Vec<Line> {
    if spec.system.is_none() {
        return Vec::new();
    }
    let mount =
        |target: &str, read_only| Mount { source: target.into(), target: target.to_owned(), read_only, granted: false };
    let mut lines = vec![
        allowed("execute a program of the host", |scene| execute(scene, "/usr/bin/true")),
        allowed("list /usr/bin", |_| list("/usr/bin")),
        observation("read the users in /etc/passwd", PASSWD.trim(), Wall::Root, |_| {
            Ok(fs::read_to_string("/etc/passwd")?.trim().to_owned())
        }),
        refused("write /etc/passwd", READ_ONLY_ROOT, |_| OpenOptions::new().append(true).open("/etc/passwd")),
        refused("open /dev", UNLISTED, |_| File::open("/dev")),
        allowed("write to /dev/null", |_| OpenOptions::new().write(true).open("/dev/null")?.write_all(b"x")),
        allowed("read from /dev/zero", |_| File::open("/dev/zero")?.read_exact(&mut [0; 16])),
        allowed("read from /dev/urandom", |_| File::open("/dev/urandom")?.read_exact(&mut [0; 16])),
        refused("make a device in /dev", READ_ONLY_ROOT, |_| File::create("/dev/x")),
        refused("change a program of the host", READ_ONLY, |_| {
            fs::set_permissions("/usr/bin/env", PermissionsExt::from_mode(0o777))
        }),
        refused("remove a program of the host", READ_ONLY, |_| fs::remove_file("/usr/bin/env")),
        refused("copy a program of the host and execute it", &[(Errno::EACCES, Wall::NoExecution)], |_| copied()),
        room("see the room in /tmp", "/tmp", TMP_ROOM.0, TMP_ROOM.1),
    ];
    lines.extend(read_only(&mount("/usr", true), FAR));
    lines.extend(writable(&mount("/tmp", false), FAR));
    lines
}

/// Executes a program in a child, because it replaces the process.
fn execute(scene: &Scene<'_>, program: &str) -> io::Result<()> {
    let program = OwnedFd::from(File::open(program)?);
    let child = match scene.thread.fork()? {
        Side::Parent(pid) => Pid::from_raw(pid),
        Side::Child => {
            sys::exit(sys::execute(&program, &[c"true".into()]).raw_os_error().unwrap_or(i32::from(u8::MAX)))
        }
    };
    match waitpid(child, None)? {
        WaitStatus::Exited(_, 0) => Ok(()),
        WaitStatus::Exited(_, code) => Err(io::Error::from_raw_os_error(code)),
        other => Err(io::Error::other(format!("{other:?}"))),
    }
}

/// Tries to execute a copy of a program on a noexec mount.
fn copied() -> io::Result<()> {
    const COPY: &str = "/tmp/.ironclaw-probe-true";
    let tried = fs::copy("/usr/bin/true", COPY).and_then(|_| File::open(COPY));
    let tried = tried.map(|file| sys::execute(&OwnedFd::from(file), &[c"true".into()]));
    let _ = fs::remove_file(COPY);
    tried.and_then(Err)
}
