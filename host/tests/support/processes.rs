//! The processes of a host as `/proc` shows them: who is below it, who is still there, who still looks into its home.
//!
//! Never trusts what the host says of itself, and never mistakes a later process for an earlier one with its number. Next: `crash`.

use super::host_fixture::{PATIENCE, alive, wait_for};
use std::collections::HashMap;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A process, told apart from a later one with the same number by when it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    started: u64,
}

impl Process {
    /// The process of this number, unless it is gone or a zombie.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        let started = fields.nth(18)?.parse().ok()?; // field 22 of proc(5), 19 after the state
        (!matches!(state, "Z" | "X") || alive(pid)).then_some(Self { pid, started })
    }

    /// Whether it is still there.
    pub(crate) fn lives(self) -> bool {
        Self::of(self.pid) == Some(self)
    }
}

/// Every process below `pid`, with its name.
pub(crate) fn below(pid: i32) -> HashMap<Process, String> {
    let mut found = HashMap::new();
    let mut open = vec![pid];
    while let Some(parent) = open.pop() {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{parent}/task")) else { continue };
        for task in tasks.flatten() {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
                open.push(child);
                if let Some(process) = Process::of(child) {
                    let name = std::fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
                    found.insert(process, name.trim_end().to_owned());
                }
            }
        }
    }
    found
}

/// Notes everything that is ever below a host, until the host is gone.
pub(crate) struct Watch(JoinHandle<HashMap<Process, String>>);

impl Watch {
    /// Watches from now on.
    pub(crate) fn over(host: i32) -> Self {
        Self(std::thread::spawn(move || {
            let mut seen = HashMap::new();
            while alive(host) {
                seen.extend(below(host));
                // Looking is what this thread is for; without a pause it would take the machine from what it looks at.
                std::thread::sleep(Duration::from_millis(1));
            }
            seen
        }))
    }

    /// What was seen, once the host is gone; all of it has to go too.
    #[track_caller]
    pub(crate) fn nothing_is_left(self) -> HashMap<Process, String> {
        let seen = self.0.join().expect("looking does not panic");
        for (process, name) in &seen {
            wait_for(&format!("{name} ({}) to die with its host", process.pid), || !process.lives());
        }
        seen
    }
}

/// Waits until no process has anything of `home` any more; a dying one has for a moment.
#[track_caller]
pub(crate) fn nobody_looks_into(home: &Path) {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = looking_into(home);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "these outlive their host: {left:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes that have a mount, an open file or a working directory in `home`.
fn looking_into(home: &Path) -> Vec<String> {
    // A bind mount shows the path of its source; the name of the temporary directory is unique in it.
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
