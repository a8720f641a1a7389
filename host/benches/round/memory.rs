//! The cost of a session: its private memory while idle, and the processor time of a round.
//!
//! Asks the kernel (`smaps_rollup`, `schedstat`), never the processes. See `main`.

use crate::figures::Report;

/// Finds the processes below the host's launcher and adds up their private dirty memory.
pub(crate) fn measure(report: &mut Report, host: i32) {
    let title = "private dirty memory of an idle session";
    let mut total = 0;
    let mut found = 0;
    for launcher in children(host) {
        for init in children(launcher) {
            for program in children(init) {
                let command = std::fs::read_to_string(format!("/proc/{program}/cmdline")).unwrap_or_default();
                let name = if command.starts_with("ironclaw-sandbox") { "sandbox" } else { "reader" };
                let (Some(own), Some(first)) = (private_dirty(program), private_dirty(init)) else {
                    return report.missing("memory_kib", title, "not readable by this user");
                };
                report.kibibytes(&format!("{name}_kib"), &format!("{title}: {name}"), own);
                report.kibibytes(&format!("{name}_init_kib"), &format!("{title}: process 1 of the {name}"), first);
                total += own + first;
                found += 1;
            }
        }
    }
    assert_eq!(found, 2, "a sandbox and a reader");
    report.kibibytes("memory_kib", &format!("{title}: all four (goal: at most 12)"), total);
}

/// Returns the seconds of processor time of the host and all its descendants. Unlike the time of a wall clock, other load on the machine
/// hardly affects them.
pub(crate) fn processor(host: i32) -> f64 {
    let mut used = 0;
    for task in std::fs::read_dir(format!("/proc/{host}/task")).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        used += text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse::<u64>().ok()).unwrap_or(0);
    }
    used as f64 / 1e9 + children(host).into_iter().map(processor).sum::<f64>()
}

fn children(pid: i32) -> Vec<i32> {
    let mut all = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        all.extend(text.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    all
}

fn private_dirty(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Private_Dirty:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
