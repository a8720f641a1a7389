//! The default bound on awake sessions, derived from this machine.
//!
//! Guarantees nothing: the real use of a session depends on its agent. See [`crate::runtime::admission`].

use nix::sys::resource::{Resource, getrlimit};
use std::path::PathBuf;

/// Memory that is reserved for an awake session: some 12 MiB for its processes, and its files in the page cache.
const SESSION_BYTES: u64 = 64 * 1024 * 1024;

/// Processes of an awake session: a program and process 1 of its jail, for the sandbox and for the reader, and one more that is
/// still exiting.
const SESSION_PROCESSES: u64 = 5;

/// Descriptors that the host holds for an awake session, with a margin.
const SESSION_FILES: u64 = 10;

/// Descriptors and processes that the host needs for itself.
const OWN: u64 = 64;

/// The bound on the largest machine.
const AWAKE_MAX: u64 = 256;

/// The bound on the smallest machine.
const AWAKE_MIN: u64 = 4;

/// The limits of the machine; `None` if there is no limit or it is unknown.
#[derive(Debug, Clone, Copy, Default)]
struct MachineLimits {
    memory_bytes: Option<u64>,
    processes: Option<u64>,
    files: Option<u64>,
}

/// Returns the number of sessions that may be awake at once on this machine.
pub fn awake_max() -> usize {
    derived(machine_limits()) as usize
}

fn derived(limits: MachineLimits) -> u64 {
    let room = |total: Option<u64>, each: u64| total.map_or(AWAKE_MAX, |total| total.saturating_sub(OWN) / each);
    room(limits.memory_bytes, SESSION_BYTES)
        .min(room(limits.processes, SESSION_PROCESSES))
        .min(room(limits.files, SESSION_FILES))
        .clamp(AWAKE_MIN, AWAKE_MAX)
}

fn machine_limits() -> MachineLimits {
    let limit = |resource| getrlimit(resource).ok().map(|(soft, _)| soft).filter(|soft| *soft != libc::RLIM_INFINITY);
    let least = |a: Option<u64>, b: Option<u64>| [a, b].into_iter().flatten().min();
    // The kernel does not count root's processes; those of each session have their own uid.
    let root = nix::unistd::geteuid().is_root();
    MachineLimits {
        memory_bytes: least(memory_of_machine(), control_group_limit("memory.max")),
        processes: least(limit(Resource::RLIMIT_NPROC).filter(|_| !root), control_group_limit("pids.max")),
        files: limit(Resource::RLIMIT_NOFILE),
    }
}

fn memory_of_machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

/// Returns the least limit of this kind from this process's control group up to the root.
fn control_group_limit(name: &str) -> Option<u64> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let group = PathBuf::from("/sys/fs/cgroup").join(path);
    let groups = group.ancestors().take_while(|group| group.starts_with("/sys/fs/cgroup"));
    groups.filter_map(|group| std::fs::read_to_string(group.join(name)).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcest_resource_decides_within_bounds() {
        const GIB: u64 = 1024 * 1024 * 1024;
        assert_eq!(derived(MachineLimits::default()), AWAKE_MAX);
        let limits = MachineLimits { memory_bytes: Some(4 * GIB), processes: Some(100_000), files: Some(1024) };
        assert_eq!(derived(limits), 63);
        assert_eq!(derived(MachineLimits { files: Some(OWN + 9 * SESSION_FILES), ..limits }), 9);
        assert_eq!(derived(MachineLimits { processes: Some(OWN + 7 * SESSION_PROCESSES), ..limits }), 7);
        assert_eq!(derived(MachineLimits { memory_bytes: Some(1), ..limits }), AWAKE_MIN);
        assert!((AWAKE_MIN..=AWAKE_MAX).contains(&derived(machine_limits())));
    }
}
