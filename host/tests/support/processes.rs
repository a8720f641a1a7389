//! The processes of a host in `/proc`: its descendants, their ends, their use of its home, and the wake-ups of its threads.
//!
//! Uses no report of the host, and distinguishes processes that had the same number. See `chaos::crash`.

use super::host_fixture::{WAIT_MAX, alive, wait_for};
use ironclaw_jail::launcher::STOCK;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::DirEntry;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A process, identified by its number and its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    started: u64,
}

impl Process {
    /// Returns the process of this number, unless it is gone or a zombie.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        let started = fields.nth(18)?.parse().ok()?; // field 22 of proc(5), 19 after the state
        (!matches!(state, "Z" | "X") || alive(pid)).then_some(Self { pid, started })
    }
    pub(crate) fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }
}
pub(crate) fn is_stopped(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, state)| state.trim_start().starts_with('T'))
}

fn children(pid: i32) -> Vec<i32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of_task = |task: DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let pids: Vec<_> = tasks.flatten().map(of_task).collect();
    pids.iter().flat_map(|pids| pids.split_whitespace()).filter_map(|child| child.parse().ok()).collect()
}

/// Returns all descendants of `pid` with their names.
pub(crate) fn descendants(pid: i32) -> HashMap<Process, String> {
    let mut found = HashMap::new();
    let mut open = vec![pid];
    while let Some(parent) = open.pop() {
        for child in children(parent) {
            open.push(child);
            if let Some(process) = Process::of(child) {
                let name = std::fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
                found.insert(process, name.trim_end().to_owned());
            }
        }
    }
    found
}

/// Returns the descendants of `pid` except for the jails in stock, which belong to no session. A jail that the launcher has just made has
/// the name of the launcher until it takes its own.
pub(crate) fn used(pid: i32) -> HashMap<Process, String> {
    let own = children(pid);
    let mut found = descendants(pid);
    found.retain(|process, name| match name.as_str() {
        "ic-stock" => false,
        "ic-launcher" => own.contains(&process.pid),
        _ => true,
    });
    found
}

/// Returns whether a host gets a full stock of jails within two seconds. Another test that mounts something empties it until the next
/// launch.
pub(crate) fn is_stocked(host_pid: i32) -> bool {
    let full = || descendants(host_pid).values().filter(|name| *name == "ic-stock").count() == STOCK;
    let until = Instant::now() + Duration::from_secs(2);
    while !full() {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Returns the context switches of each thread so far, by thread id. A thread that sleeps has none, and makes no system call.
pub(crate) fn wake_ups(pid: i32) -> BTreeMap<OsString, u64> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
    let count = |task: DirEntry| {
        let text = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let counts = text.lines().filter_map(|line| line.split_once("ctxt_switches:"));
        (task.file_name(), counts.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum())
    };
    tasks.map(count).collect()
}

/// Records every descendant of a host until the host is gone.
pub(crate) struct Watch(JoinHandle<HashMap<Process, String>>);

impl Watch {
    /// Starts to record.
    pub(crate) fn over(host: i32) -> Self {
        Self(std::thread::spawn(move || {
            let mut seen = HashMap::new();
            while alive(host) {
                seen.extend(descendants(host));
                // Without a pause, this loop would take processor time from the watched processes.
                std::thread::sleep(Duration::from_millis(1));
            }
            seen
        }))
    }

    /// Waits for the end of the host and of its descendants. Returns the recorded processes.
    #[track_caller]
    pub(crate) fn check_all_ended(self) -> HashMap<Process, String> {
        let seen = self.0.join().expect("the recording thread does not panic");
        for (process, name) in &seen {
            wait_for(&format!("the end of {name} ({}) after its host", process.pid), || !process.is_alive());
        }
        seen
    }
}

/// Waits until no process uses `home`, because a dying process may use it for a moment.
#[track_caller]
pub(crate) fn no_process_uses(home: &Path) {
    let until = Instant::now() + WAIT_MAX;
    loop {
        let left = processes_using(home);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "processes outlive their host: {left:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the processes that have a mount, an open file or a working directory in `home`.
fn processes_using(home: &Path) -> Vec<String> {
    // A bind mount shows the path of its source, in which the name of the temporary directory is unique.
    let name = home.parent().and_then(Path::file_name).and_then(|name| name.to_str()).expect("a temporary directory");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        if Process::of(pid).is_none() || pid == std::process::id() as i32 {
            continue;
        }
        let mounts = std::fs::read_to_string(entry.path().join("mountinfo")).unwrap_or_default();
        let mut links = vec![entry.path().join("cwd")];
        links.extend(std::fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten().map(|fd| fd.path()));
        let linked = links.iter().filter_map(|link| std::fs::read_link(link).ok());
        if mounts.contains(name) || linked.into_iter().any(|path| path.to_string_lossy().contains(name)) {
            let what = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            found.push(format!("{} ({pid})", what.trim_end()));
        }
    }
    found
}
