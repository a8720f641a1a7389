//! How many sessions this machine can bear awake, where the settings do not say.
//!
//! Never a promise: what a session really uses depends on its agent. Next: `runtime::admission`.

use nix::sys::resource::{Resource, getrlimit};
use std::path::PathBuf;

/// Memory that an awake session is given room for: some 12 MiB for its processes, and its files in the page cache.
const SESSION_BYTES: u64 = 64 * 1024 * 1024;

/// Processes of an awake session: a program and process 1 of its jail, for the sandbox and for the reader; with room for one
/// that is on its way out.
const SESSION_PROCESSES: u64 = 5;

/// Descriptors that the host holds for an awake session, with room.
const SESSION_FILES: u64 = 10;

/// Descriptors and processes that the host needs for itself.
const OWN: u64 = 64;

/// However large the machine is.
const AWAKE_MAX: u64 = 256;

/// However small it is.
const AWAKE_MIN: u64 = 4;

/// What the machine offers; `None` where it sets no limit or does not tell.
#[derive(Debug, Clone, Copy, Default)]
struct Offer {
    memory_bytes: Option<u64>,
    processes: Option<u64>,
    files: Option<u64>,
}

/// Sessions that may be awake at once on this machine.
pub fn awake_max() -> usize {
    derived(look()) as usize
}

fn derived(offer: Offer) -> u64 {
    let room = |total: Option<u64>, each: u64| total.map_or(AWAKE_MAX, |total| total.saturating_sub(OWN) / each);
    room(offer.memory_bytes, SESSION_BYTES)
        .min(room(offer.processes, SESSION_PROCESSES))
        .min(room(offer.files, SESSION_FILES))
        .clamp(AWAKE_MIN, AWAKE_MAX)
}

fn look() -> Offer {
    let limit = |resource| getrlimit(resource).ok().map(|(soft, _)| soft).filter(|soft| *soft != libc::RLIM_INFINITY);
    let least = |a: Option<u64>, b: Option<u64>| [a, b].into_iter().flatten().min();
    // Root's processes are not counted by the kernel; those of its sessions have a uid of their own each.
    let root = nix::unistd::geteuid().is_root();
    Offer {
        memory_bytes: least(memory_of_machine(), of_control_group("memory.max")),
        processes: least(limit(Resource::RLIMIT_NPROC).filter(|_| !root), of_control_group("pids.max")),
        files: limit(Resource::RLIMIT_NOFILE),
    }
}

fn memory_of_machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

/// The least limit of this kind on the way from this process's control group to the root.
fn of_control_group(name: &str) -> Option<u64> {
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
    fn the_scarcest_thing_decides_within_bounds() {
        const GIB: u64 = 1024 * 1024 * 1024;
        assert_eq!(derived(Offer::default()), AWAKE_MAX);
        let offer = Offer { memory_bytes: Some(4 * GIB), processes: Some(100_000), files: Some(1024) };
        assert_eq!(derived(offer), 63);
        assert_eq!(derived(Offer { files: Some(OWN + 9 * SESSION_FILES), ..offer }), 9);
        assert_eq!(derived(Offer { processes: Some(OWN + 7 * SESSION_PROCESSES), ..offer }), 7);
        assert_eq!(derived(Offer { memory_bytes: Some(1), ..offer }), AWAKE_MIN);
        assert!((AWAKE_MIN..=AWAKE_MAX).contains(&derived(look())));
    }
}
