//! Attempts to read files of the host, and to write, link, execute or make files where the jail must not.
//!
//! They leave no file in the session's directories. See [`crate::self_test::privileges`].

use super::line::{ABSENT, Line, MISSING, Refusals, SECCOMP, Scene, allowed, bare, observation, refused};
use crate::sys::{self, bare};
use crate::{Facts, Mount, Spec, Wall};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, makedev, mknod};
use nix::sys::statvfs::{FsFlags, statvfs};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

/// Name of the files that the probe writes.
const FILE: &str = ".ironclaw-probe";
/// The Landlock domain forbids listing the directory.
pub(super) const UNLISTED: Refusals = &[(Errno::EACCES, Wall::Landlock)];
/// The root of the jail is read-only.
pub(super) const READ_ONLY_ROOT: Refusals = &[(Errno::EROFS, Wall::ReadOnlyRoot)];
/// The two directories are different mounts, although on one disk.
const OTHER_MOUNT: Refusals = &[(Errno::EXDEV, Wall::Root)];
/// The kernel executes no file of such a mount, and maps none as code.
const NOT_EXECUTED: Refusals = &[(Errno::EACCES, Wall::NoExecution)];
const NOT_MAPPED: Refusals = &[(Errno::EPERM, Wall::NoExecution)];

/// Paths that exist on most machines.
#[rustfmt::skip]
const EVERYWHERE: &[&str] = &[
    "/etc/passwd", "/etc/shadow", "/etc/machine-id", "/root", "/home", "/tmp", "/var", "/usr", "/bin/sh",
    "/proc", "/proc/self/environ", "/proc/self/maps", "/proc/self/fd", "/proc/self/mem", "/proc/1/environ", "/proc/1/root",
    "/proc/keys", "/proc/kcore", "/proc/kallsyms", "/proc/net/tcp", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
    "/sys", "/sys/fs/cgroup", "/sys/kernel/security", "/sys/class/net",
    "/dev", "/dev/null", "/dev/mem", "/dev/kvm", "/dev/shm", "/dev/pts", "/dev/tty",
];

/// Paths that are in a jail with the host's programs, and in no other.
const SHOWN_WITH_PROGRAMS: &[&str] = &["/etc/passwd", "/tmp", "/usr", "/bin/sh", "/dev", "/dev/null"];
/// The mounts of such a jail, each with the guard that it lacks on purpose. Not every machine has alternatives.
const MOUNTS_OF_PROGRAMS: &[(&str, Option<FsFlags>)] = &[
    ("/usr", Some(FsFlags::ST_NOEXEC)),
    ("/tmp", None),
    ("/dev/null", Some(FsFlags::ST_NODEV)),
    ("/dev/zero", Some(FsFlags::ST_NODEV)),
    ("/dev/urandom", Some(FsFlags::ST_NODEV)),
];

pub(super) fn lines(spec: &Spec, facts: &Facts) -> Vec<Line> {
    let far = far(spec);
    let mut lines = vec![
        refused("list the root of the jail", UNLISTED, |_| list("/")),
        refused("climb out over the parent directory", ABSENT, move |_| File::open(format!("../../../../../../{far}"))),
        refused("make a directory outside every mount", READ_ONLY_ROOT, |_| fs::create_dir("/x")),
        refused("make a symbolic link", links(spec), |_| std::os::unix::fs::symlink("/etc/passwd", format!("/{FILE}"))),
        refused("make a hard link", links(spec), |_| fs::hard_link("/etc/passwd", format!("/{FILE}"))),
        bare(bare::OPENAT2, MISSING),
        observation("see the host name", crate::HOSTNAME, Wall::UtsNamespace, |_| {
            Ok(nix::sys::utsname::uname()?.nodename().to_string_lossy().into_owned())
        }),
        observation("see the working directory", "/", Wall::Root, |_| Ok(nix::unistd::getcwd()?.display().to_string())),
        observation("see variables of the environment", "0", Wall::Environment, |_| {
            Ok(std::env::vars_os().count().to_string())
        }),
        // Descriptor 3 is the link, which every program has.
        observation("find an open descriptor", "0 1 2 3", Wall::Descriptors, open_descriptors).by_itself(),
        observation("see where the standard streams lead", "null null null", Wall::StandardStreams, |_| {
            standard_streams()
        }),
    ];
    let hidden = EVERYWHERE.iter().filter(|path| spec.system.is_none() || !SHOWN_WITH_PROGRAMS.contains(path));
    lines.extend(hidden.map(|path| refused(format!("open {path}"), ABSENT, move |_| File::open(path))));
    lines.extend(["environ", "mem", "root", "cwd", "ns/net"].map(|name| {
        refused(format!("open /proc/HOST/{name}"), ABSENT, move |scene| {
            File::open(format!("/proc/{}/{name}", scene.facts.host_pid))
        })
    }));
    lines.extend(facts.host_files.iter().map(|(what, path)| {
        let path = path.clone();
        refused(format!("open {what}"), ABSENT, move |_| File::open(&path))
    }));
    if spec.system.is_none() {
        lines.push(bare(bare::EXECUTE, SECCOMP));
    }
    lines.extend(bare::FILES.iter().map(|call| bare(*call, SECCOMP)));
    lines.extend(mount_flags(spec));
    lines.extend(spec.mounts.iter().flat_map(|mount| match mount.read_only {
        true => read_only(mount, far),
        false => writable(mount, far),
    }));
    lines.extend(across(spec));
    lines
}

/// Returns a file of the host that this jail does not have.
fn far(spec: &Spec) -> &'static str {
    if spec.system.is_some() { "etc/shadow" } else { "etc/passwd" }
}

/// Returns the refusals of links in the root. A jail with the host's programs allows the system calls.
fn links(spec: &Spec) -> Refusals {
    if spec.system.is_some() { READ_ONLY_ROOT } else { SECCOMP }
}

/// Returns the lines about the flags of every mount, the root included.
fn mount_flags(spec: &Spec) -> [Line; 3] {
    let programs = spec.system.as_ref().map_or(&[][..], |_| MOUNTS_OF_PROGRAMS);
    let all = spec.mounts.len() + programs.len() + 1;
    let look = |name: &str, wall, flag: FsFlags| {
        let held = all - programs.iter().filter(|(_, lacks)| *lacks == Some(flag)).count();
        observation(name, format!("{held} of {all} mounts"), wall, move |scene| {
            let points = scene.spec.mounts.iter().map(|mount| mount.target.as_str());
            let mut guarded = 0;
            for point in std::iter::once("/").chain(points).chain(programs.iter().map(|(point, _)| *point)) {
                guarded += usize::from(statvfs(point)?.flags().contains(flag));
            }
            Ok(format!("{guarded} of {all} mounts"))
        })
    };
    [
        look("mounts on which set-uid means nothing", Wall::NoSetUid, FsFlags::ST_NOSUID),
        look("mounts on which devices mean nothing", Wall::NoDevices, FsFlags::ST_NODEV),
        look("mounts on which nothing is executed", Wall::NoExecution, FsFlags::ST_NOEXEC),
    ]
}

/// Returns the attempts on a read-only directory. Their errors are those of the mount alone: the Landlock domain would cause
/// EACCES.
pub(super) fn read_only(mount: &Mount, far: &'static str) -> Vec<Line> {
    const READ_ONLY: Refusals = &[(Errno::EROFS, Wall::ReadOnlyMounts)];
    let at = mount.target.clone();
    let attempt = |name: String, act: fn(&str) -> io::Result<()>| {
        let at = at.clone();
        refused(name, READ_ONLY, move |_| act(&at))
    };
    let mut lines = vec![
        attempt(format!("write a file into {at}"), |at| File::create(format!("{at}/{FILE}")).map(drop)),
        attempt(format!("make a directory in {at}"), |at| fs::create_dir(format!("{at}/{FILE}"))),
        climb(mount, far),
    ];
    if at == ironclaw_contract::seam::link::path::IN {
        lines.push(allowed(format!("read the directory {at}"), move |_| list(&at)));
    }
    lines
}

/// Returns the attempts on a writable directory.
pub(super) fn writable(mount: &Mount, far: &'static str) -> Vec<Line> {
    let at = mount.target.clone();
    let file = format!("{at}/{FILE}");
    let with = |name: String, refusals, act: fn(&str) -> io::Result<()>| {
        let file = file.clone();
        refused(name, refusals, move |_| act(&file))
    };
    let target = file.clone();
    vec![
        allowed(format!("write, read and delete a file in {at}"), move |_| round_trip(&target)),
        with(format!("make a device in {at}"), SECCOMP, |file| {
            Ok(mknod(file, SFlag::S_IFCHR, Mode::S_IRUSR, makedev(1, 3))?)
        }),
        with(format!("make a set-uid file in {at}"), SECCOMP, |file| {
            let made = OpenOptions::new().write(true).create_new(true).mode(0o4755).open(file).map(drop);
            let _ = fs::remove_file(file);
            made
        }),
        with(format!("turn a file in {at} into a set-uid file"), SECCOMP, |file| {
            with_file(file, |_| fs::set_permissions(file, PermissionsExt::from_mode(0o4755)))
        }),
        with(format!("execute a file in {at} by its descriptor"), NOT_EXECUTED, |file| {
            with_file(file, |_| {
                fs::set_permissions(file, PermissionsExt::from_mode(0o755))?;
                Err(sys::execute(&OwnedFd::from(File::open(file)?), &[c"probe".into()]))
            })
        }),
        with(format!("map a file in {at} as code"), NOT_MAPPED, |file| with_file(file, bare::map_executable)),
        climb(mount, far),
    ]
}

/// Tries to leave a mount with an `O_PATH` descriptor and `..`.
fn climb(mount: &Mount, far: &'static str) -> Line {
    let at = mount.target.clone();
    refused(format!("climb out of {at} by a descriptor"), ABSENT, move |_| {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let directory = open(at.as_str(), flags, Mode::empty())?;
        Ok(openat(
            &directory,
            format!("../../../../{far}").as_str(),
            OFlag::O_RDONLY | OFlag::O_CLOEXEC,
            Mode::empty(),
        )?)
    })
}

/// Returns the attempts to move a file from a writable mount to another mount.
fn across(spec: &Spec) -> Vec<Line> {
    let Some(from) = spec.mounts.iter().rfind(|mount| !mount.read_only) else { return Vec::new() };
    let others = spec.mounts.iter().filter(|mount| mount.target != from.target);
    others
        .map(|to| {
            let (from, to) = (format!("{}/{FILE}", from.target), format!("{}/{FILE}", to.target));
            let directory = to.trim_end_matches(FILE).trim_end_matches('/').to_owned();
            refused(format!("move a file to {directory}"), OTHER_MOUNT, move |_| {
                with_file(&from, |_| fs::rename(&from, &to))
            })
        })
        .collect()
}

pub(super) fn list(path: &str) -> io::Result<()> {
    fs::read_dir(path)?.try_for_each(|entry| entry.map(drop))
}

fn round_trip(file: &str) -> io::Result<()> {
    fs::write(file, b"probe")?;
    let read = fs::read(file)?;
    fs::remove_file(file)?;
    if read == b"probe" { Ok(()) } else { Err(Errno::EIO.into()) }
}

/// Runs `act` with a new file of a few bytes, and removes the file.
fn with_file(file: &str, act: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>) -> io::Result<()> {
    fs::write(file, b"#!/in/x\n")?;
    let done = File::open(file).and_then(|open| act(open.as_fd()));
    let removed = fs::remove_file(file);
    done.and(removed)
}

fn open_descriptors(scene: &Scene<'_>) -> io::Result<String> {
    let most = i32::try_from(scene.spec.limits.open_files).unwrap_or(i32::MAX);
    let open: Vec<String> = bare::open_descriptors(most).iter().map(ToString::to_string).collect();
    Ok(open.join(" "))
}

/// Names the target of each standard stream: the null device or another file.
fn standard_streams() -> io::Result<String> {
    let null = |found: FileStat| found.st_mode & libc::S_IFMT == libc::S_IFCHR && found.st_rdev == makedev(1, 3);
    let name = |found: FileStat| if null(found) { "null" } else { "elsewhere" };
    let (input, output) = (fstat(io::stdin())?, fstat(io::stdout())?);
    Ok(format!("{} {} {}", name(input), name(output), name(fstat(io::stderr())?)))
}

/// Fills a file up to the limit of the jail, and writes one byte more.
pub(super) fn overfill(file: &str, limit: u64) -> io::Result<()> {
    let grow = || {
        let made = File::create(file)?;
        made.set_len(limit)?;
        let mut end = OpenOptions::new().append(true).open(file)?;
        end.write_all(b"x")
    };
    let grown = grow();
    fs::remove_file(file)?;
    grown
}
