//! The processes of a home in `/proc`: its hosts, and the processes in its jails.
//!
//! Never asks a host, and never trusts a file of the home. See `commands::panic`, which kills all of them.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The program of the host.
const HOST: &[u8] = b"ironclaw-host";

/// The command of the host that runs agents.
const RUN: &[u8] = b"run";

/// Paths at which a jail mounts directories of a session.
const JAIL_MOUNTS: [&str; 3] = ["/in", "/out", "/workspace"];

/// A process. Its start time distinguishes it from a later process with the same id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    started: u64,
    pid: u32,
}

impl Process {
    /// Finds a process; `None` if there is none, or only a zombie.
    pub fn find(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may contain blanks and brackets, so fields are counted from the last bracket.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        let started = fields.nth(18)?.parse().ok()?; // field 22 of proc(5), 19 after the state
        // The first thread of a killed process is a zombie while the other threads still have its files open.
        let threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        (!matches!(state, "Z" | "X") || threads() > 1).then_some(Self { started, pid })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns whether the process still exists.
    pub fn is_alive(&self) -> bool {
        Self::find(self.pid).as_ref() == Some(self)
    }

    /// Kills the process; succeeds if it has already ended.
    pub fn kill(&self) -> Result<(), nix::Error> {
        match kill(Pid::from_raw(self.pid as i32), Signal::SIGKILL) {
            Err(nix::Error::ESRCH) => Ok(()),
            done => done,
        }
    }
}

/// Returns every host of this home, with its launcher and their jailed copies; the oldest first.
///
/// A host is identified by its command line, or by its lock on the home.
pub fn hosts(home: &Path) -> BTreeSet<Process> {
    let locks = Locks::read(home);
    let mut found = BTreeSet::new();
    for pid in pids() {
        let words = command_line(pid);
        let is_host = match runs_on(pid, &words) {
            Some(its_home) => is_same_directory(&its_home, home),
            None => !is_offline_command(&words) && locks.are_held_by(pid),
        };
        if is_host {
            found.extend(Process::find(pid));
        }
    }
    found
}

/// Returns every process in a jail of this home, also without a host.
pub fn jailed(home: &Path) -> BTreeSet<Process> {
    let Some(storage) = HomeStorage::find(home) else { return BTreeSet::new() };
    let own = fs::read_link("/proc/self/ns/mnt").ok();
    let is_jailed = |pid: &u32| {
        // A process in the caller's own mount namespace is not in a jail, whatever is mounted there.
        let namespace = fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
        let mounts = || fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
        namespace.is_some()
            && namespace != own
            && mounts().lines().filter_map(Mount::parse).any(|mount| storage.is_mounted_by(&mount))
    };
    pids().into_iter().filter(is_jailed).filter_map(Process::find).collect()
}

/// Returns every descendant of these processes.
pub fn descendants(parents: &BTreeSet<Process>) -> BTreeSet<Process> {
    let mut open: Vec<u32> = parents.iter().map(Process::pid).collect();
    let mut found = BTreeSet::new();
    while let Some(parent) = open.pop() {
        let Ok(tasks) = fs::read_dir(format!("/proc/{parent}/task")) else { continue };
        for task in tasks.flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
                if let Some(process) = Process::find(child)
                    && found.insert(process)
                {
                    open.push(child);
                }
            }
        }
    }
    found
}

fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn command_line(pid: u32) -> Vec<Vec<u8>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

/// Returns the home that a command line runs a host with; `None` for another command.
fn runs_on(pid: u32, words: &[Vec<u8>]) -> Option<PathBuf> {
    let home = home_of(words)?;
    let directory = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
    Some(directory.join(home))
}

fn home_of(words: &[Vec<u8>]) -> Option<PathBuf> {
    if !is_program(words) || words.get(1).map(Vec::as_slice) != Some(RUN) {
        return None;
    }
    let mut rest = words.iter().skip(2);
    while let Some(word) = rest.next() {
        let value = match word.strip_prefix(b"--home".as_slice()) {
            Some(b"") => rest.next()?.as_slice(),
            Some([b'=', value @ ..]) => value,
            _ => continue,
        };
        return Some(PathBuf::from(OsString::from_vec(value.to_vec())));
    }
    None
}

/// Returns whether a command line is an offline command of the host, which takes the lock briefly and runs no agent.
fn is_offline_command(words: &[Vec<u8>]) -> bool {
    is_program(words) && words.get(1).map(Vec::as_slice) != Some(RUN)
}

fn is_program(words: &[Vec<u8>]) -> bool {
    words.first().and_then(|program| program.rsplit(|byte| *byte == b'/').next()) == Some(HOST)
}

fn is_same_directory(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    // A removed home has only its path left.
    one == other || identity(one).is_some_and(|found| identity(other) == Some(found))
}

/// The files that a host locks: its lock file and the home directory.
struct Locks(Vec<(u64, u64)>);

impl Locks {
    fn read(home: &Path) -> Self {
        let paths = [home.join(ironclaw_operator::LOCK_FILE), home.to_owned()];
        Self(paths.iter().filter_map(|path| fs::metadata(path).ok()).map(|found| (found.dev(), found.ino())).collect())
    }

    /// Returns whether a process has an exclusive lock on one of them through a readable descriptor.
    fn are_held_by(&self, pid: u32) -> bool {
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        descriptors.flatten().any(|descriptor| {
            let number = descriptor.file_name();
            let is_ours =
                || fs::metadata(descriptor.path()).is_ok_and(|found| self.0.contains(&(found.dev(), found.ino())));
            is_ours()
                && fs::read_to_string(Path::new(&format!("/proc/{pid}/fdinfo")).join(number))
                    .is_ok_and(|info| info.lines().any(|line| line.starts_with("lock:") && line.contains(" WRITE ")))
        })
    }
}

/// A line of `/proc/PID/mountinfo`.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    device: String,
    root: PathBuf,
    point: PathBuf,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ').skip(2);
        let device = fields.next()?.to_owned();
        Some(Self { device, root: unescaped(fields.next()?), point: unescaped(fields.next()?) })
    }
}

/// Decodes a path of `/proc`, in which blanks and some other characters are three octal digits.
fn unescaped(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 4;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    PathBuf::from(OsString::from_vec(out))
}

/// The device of a home and its directory on it; the jails mount directories below that directory.
struct HomeStorage {
    device: String,
    root: PathBuf,
}

impl HomeStorage {
    /// Finds a home among the mounts of this process; `None` if they cannot be read.
    fn find(home: &Path) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        Self::among(&mounts, &home.canonicalize().unwrap_or_else(|_| home.to_owned()))
    }

    fn among(mounts: &str, home: &Path) -> Option<Self> {
        let above = mounts.lines().filter_map(Mount::parse).filter(|mount| home.starts_with(&mount.point));
        // Of two mounts at one point the later one hides the other.
        let mount = above.max_by_key(|mount| mount.point.components().count())?;
        let below = home.strip_prefix(&mount.point).ok()?;
        Some(Self { root: mount.root.join(below), device: mount.device })
    }

    /// Returns whether a mount is the mount of a directory of this home in a jail.
    fn is_mounted_by(&self, mount: &Mount) -> bool {
        mount.device == self.device
            && JAIL_MOUNTS.iter().any(|point| mount.point == Path::new(point))
            && mount.root.starts_with(&self.root)
            && mount.root.components().count() > self.root.components().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Duration;

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split('\0').map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn zombie_counts_as_ended() {
        assert!(Process::find(std::process::id()).is_some_and(|own| own.is_alive()));
        let mut child = Command::new("sleep").arg("100").spawn().expect("sleep starts");
        let process = Process::find(child.id()).expect("it runs");
        process.kill().expect("it is ours");
        while process.is_alive() {
            std::thread::sleep(Duration::from_millis(20));
        }
        child.wait().expect("reaped only now");
        process.kill().expect("an ended process needs no kill");
    }

    #[test]
    fn host_is_identified_by_its_command_line() {
        let home = |line: &str| home_of(&words(line));
        assert_eq!(home("/usr/bin/ironclaw-host\0run\0--home\0/srv/a\0"), Some("/srv/a".into()));
        assert_eq!(home("ironclaw-host\0run\0--json\0--home=a b\0"), Some("a b".into()));
        for other in
            ["/usr/bin/vi\0run\0--home\0/srv/a\0", "ironclaw-host\0init\0--home\0/srv/a\0", "ironclaw-host\0run\0", ""]
        {
            assert_eq!(home(other), None, "{other}");
        }
    }

    #[test]
    fn offline_command_with_the_lock_is_not_a_host() {
        assert!(is_offline_command(&words("ironclaw-host\0audit\0rotate\0--home\0/srv/a\0")));
        assert!(!is_offline_command(&words("ironclaw-host\0run\0--home\0/srv/a\0")));
        assert!(!is_offline_command(&words("flock\0/srv/a/host.lock\0sleep\0")));
    }

    #[test]
    fn jail_is_identified_by_its_mounts_of_the_home() {
        let own = "21 1 254:0 / / rw - ext4 /dev/vda rw\n30 21 0:40 / /srv rw - tmpfs tmpfs rw\n31 30 0:41 / /srv/a\\040b rw - tmpfs tmpfs rw\n";
        let storage = HomeStorage::among(own, Path::new("/srv/a b/h")).expect("it is below a mount");
        let jail = |line: &str| storage.is_mounted_by(&Mount::parse(line).expect("a mount"));
        assert!(jail("90 80 0:41 /h/sessions/ses_1/workspace /workspace rw - tmpfs tmpfs rw"));
        assert!(jail("90 80 0:41 /h/sessions/ses_1/out//deleted /out ro - tmpfs tmpfs rw"));
        // Another home, another file system, another mount point, and the home itself.
        assert!(!jail("90 80 0:41 /h2/sessions/ses_1/workspace /workspace rw - tmpfs tmpfs rw"));
        assert!(!jail("90 80 0:40 /h/sessions/ses_1/workspace /workspace rw - tmpfs tmpfs rw"));
        assert!(!jail("90 80 0:41 /h/sessions/ses_1/workspace /mnt rw - tmpfs tmpfs rw"));
        assert!(!jail("90 80 0:41 /h /workspace rw - tmpfs tmpfs rw"));
        // A home that is itself a mount.
        let storage = HomeStorage::among(own, Path::new("/srv/a b")).expect("it is a mount");
        assert!(
            storage
                .is_mounted_by(&Mount::parse("9 8 0:41 /sessions/ses_1/in /in ro - tmpfs tmpfs rw").expect("a mount"))
        );
        assert!(!storage.is_mounted_by(&Mount::parse("9 8 0:41 / /workspace rw - tmpfs tmpfs rw").expect("a mount")));
    }
}
