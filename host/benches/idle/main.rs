//! The cost of sleeping sessions for the daemon: its memory, its wake-ups, and its system calls as counted by `strace`.
//!
//! Asserts no figure. Asks the kernel and never the daemon. `IRONCLAW_IDLE_SECONDS` sets the length of each measurement. See
//! `docs/performance.md`.
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

#[path = "../../tests/support/host_fixture.rs"]
#[allow(dead_code)]
mod host_fixture;
#[path = "../../tests/support/jail_fixture.rs"]
#[allow(dead_code)]
mod jail_fixture;
#[path = "../../tests/support/many_sessions.rs"]
mod many_sessions;
#[path = "../../tests/support/processes.rs"]
#[allow(dead_code)]
mod processes;
#[path = "../../tests/support/record.rs"]
#[allow(dead_code)]
mod record;
mod strace;

use host_fixture::TestHost;
use processes::wake_ups;
use std::thread::sleep;
use std::time::Duration;
use strace::system_calls;

/// Agents that own the sessions.
const AGENTS: usize = 10;
/// Sleeping sessions.
const SESSIONS: [usize; 3] = [0, 100, 1000];
/// The length of one measurement without `IRONCLAW_IDLE_SECONDS`.
const SECONDS: u64 = 30;
/// The time in which a start finishes its remaining work: its timers of the first minute, and the end of idle threads.
const SETTLE: Duration = Duration::from_secs(75);

fn main() {
    let seconds = std::env::var("IRONCLAW_IDLE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS);
    let look = Duration::from_secs(seconds);
    println!(
        "sleeping sessions | resident | threads | switches a second | system calls in {seconds} s | in one status"
    );
    let mut first = None;
    for sessions in SESSIONS {
        let user = if nix::unistd::geteuid().is_root() {
            jail_fixture::HostUser::Root
        } else {
            jail_fixture::HostUser::Ordinary
        };
        let host = TestHost::with(user, host_fixture::Build::Plain, None);
        host.up();
        (0..AGENTS).for_each(|agent| host.agent(&many_sessions::name(agent)));
        host.down();
        many_sessions::make_sessions(&host, AGENTS, sessions / AGENTS);
        host.up();
        sleep(SETTLE);
        let host_pid = host.pid().expect("it runs");
        let resident = resident_kibibytes(host_pid);
        let before = wake_ups(host_pid);
        sleep(look);
        let after = wake_ups(host_pid);
        // A thread that ended in between is not counted.
        let switched: u64 = before.iter().filter_map(|(thread, count)| after.get(thread).map(|now| now - count)).sum();
        let threads = after.len();
        let calls = system_calls(host_pid, || sleep(look));
        // A control: the count of a request that makes system calls.
        let control = system_calls(host_pid, || drop(host.status()));
        println!(
            "{sessions:>17} | {:>4.1} MiB | {threads:>7} | {:>17.2} | {calls:>20} | {control:>13}",
            resident as f64 / 1024.0,
            switched as f64 / look.as_secs_f64(),
        );
        let first = *first.get_or_insert(resident);
        if sessions > 0 {
            println!("{:>17} | {:>+4.1} MiB more than without any", "", (resident as f64 - first as f64) / 1024.0);
        }
        host.down();
    }
}

fn resident_kibibytes(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its own process");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the kernel reports it");
    line.trim().trim_end_matches("kB").trim().parse().expect("a number")
}
