//! Sustained messages per second: many conversations with one message in flight each, through the released programs.
//!
//! Asserts no time: a noisy machine fails no bench, and only the ratios of one run are meaningful. See `docs/performance.md`.
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

#[path = "../round/bare.rs"]
#[allow(dead_code)]
mod bare;
#[path = "../round/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "../round/figures.rs"]
#[allow(dead_code)]
mod figures;
#[path = "../../tests/support/host_fixture.rs"]
#[allow(dead_code)]
mod host_fixture;
#[path = "../../tests/support/jail_fixture.rs"]
#[allow(dead_code)]
mod jail_fixture;
#[path = "../round/memory.rs"]
#[allow(dead_code)]
mod memory;

use client::Client;
use figures::{Report, Samples};
use host_fixture::TestHost;
use std::path::Path;
use std::sync::Barrier;
use std::time::Instant;

/// Concurrent conversations.
const SESSIONS: [usize; 3] = [1, 8, 64];
/// Messages of one measurement in all its conversations, and their blocks. Bare rounds run between the blocks, so that a slow minute of
/// the machine affects both.
const MESSAGES: usize = 3840;
const BLOCKS: usize = 3;
/// Messages with one conversation, which is slower and needs fewer samples.
const MESSAGES_OF_ONE: usize = 600;
/// Messages of each conversation before the first counted one.
const WARM_UP: usize = 4;
/// The goal with the most conversations.
const GOAL_A_SECOND: f64 = 500.0;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["peer", directory] => bare::peer(Path::new(directory)),
        arguments => bench(arguments.iter().find_map(|argument| argument.parse().ok())),
    }
}

/// Runs all numbers of conversations, or only this one.
fn bench(only: Option<usize>) {
    let mut report = Report::default();
    let host = home();
    for sessions in SESSIONS.into_iter().filter(|sessions| only.is_none_or(|only| only == *sessions)) {
        host.up();
        measure(&mut report, &host, sessions);
        host.down();
    }
    report.print();
    host.ctl(&["audit", "verify"]).ok();
}

/// Makes a home of the current user, because the host serves no client of another user.
fn home() -> TestHost {
    let user =
        if nix::unistd::geteuid().is_root() { jail_fixture::HostUser::Root } else { jail_fixture::HostUser::Ordinary };
    let host = TestHost::with(user, host_fixture::Build::Plain, None);
    let most = SESSIONS.iter().max().expect("some");
    host.configure(&format!("[session]\nawake_max = {most}\nawake_per_agent_max = {most}\n"));
    host
}

fn measure(report: &mut Report, host: &TestHost, sessions: usize) {
    let agent = format!("with-{sessions}");
    host.agent(&agent);
    let mut talks: Vec<Talk> = (0..sessions).map(|number| Talk::begin(host, &agent, number)).collect();
    // Sequentially, so that no launch waits for another.
    for talk in &mut talks {
        (0..WARM_UP).for_each(|_| {
            talk.round();
        });
    }
    let host_pid = host.pid().expect("the host runs");
    let messages = if sessions == 1 { MESSAGES_OF_ONE } else { MESSAGES };
    let each = messages / sessions / BLOCKS;
    let mut pairs: Vec<bare::Pair> = (0..sessions).map(|_| bare::Pair::start()).collect();
    let (mut times, mut bare_times) = (Samples::default(), Samples::default());
    let (mut seconds, mut bare_seconds, mut processor) = (0.0, 0.0, 0.0);
    for _ in 0..BLOCKS {
        let before = memory::processor(host_pid);
        let (took, of_each) = at_once(&mut talks, |talk| (0..each).map(|_| talk.round()).collect());
        processor += memory::processor(host_pid) - before;
        seconds += took;
        of_each.into_iter().flatten().for_each(|took| times.push(took));
        let (took, of_each) = at_once(&mut pairs, |pair| (0..each).map(|_| pair.round()).collect());
        bare_seconds += took;
        of_each.into_iter().flatten().for_each(|took| bare_times.push(took));
    }
    let count = times.len() as f64;
    let (rate, bare_rate) = (count / seconds, count / bare_seconds);
    let many = if sessions == 1 { "1 session".to_owned() } else { format!("{sessions} sessions") };
    report.rate(&format!("rate_{sessions}"), &format!("{many}: messages, sent and answered"), rate);
    report.times(&format!("time_{sessions}"), "  … message → receipt", &times);
    report.milliseconds(
        &format!("processor_{sessions}"),
        "  … processor time of all its processes, each",
        processor / count,
    );
    report.rate(&format!("bare_rate_{sessions}"), "  bare rounds: two commits, two bells", bare_rate);
    report.times(&format!("bare_time_{sessions}"), "  … each", &bare_times);
    report.ratio(&format!("ratio_{sessions}"), "  bare rounds / messages", bare_rate / rate);
    if Some(&sessions) == SESSIONS.iter().max() {
        report.ratio("goal", &format!("  messages / goal of {GOAL_A_SECOND:.0} a second"), rate / GOAL_A_SECOND);
    }
}

/// Starts all of them at the same time. Returns the seconds until the last one finished, and the results of each.
fn at_once<T: Send>(all: &mut [T], work: impl Fn(&mut T) -> Vec<f64> + Sync) -> (f64, Vec<Vec<f64>>) {
    let ready = Barrier::new(all.len() + 1);
    std::thread::scope(|scope| {
        let (ready, work) = (&ready, &work);
        let start = |one| {
            scope.spawn(move || {
                ready.wait();
                work(one)
            })
        };
        let working: Vec<_> = all.iter_mut().map(start).collect();
        ready.wait();
        let begun = Instant::now();
        let found = working.into_iter().map(|one| one.join().expect("it was served")).collect();
        (begun.elapsed().as_secs_f64(), found)
    })
}

/// One conversation on its own kept-alive connection.
struct Talk {
    client: Client,
    path: String,
    thread: String,
    said: usize,
}

impl Talk {
    fn begin(host: &TestHost, agent: &str, number: usize) -> Self {
        let path = format!("/v1/agents/{agent}/messages?wait_ms=60000");
        Self { client: Client::connect(host), path, thread: format!("t{number}"), said: 0 }
    }

    /// Sends one message in a request that waits for its receipt. Returns the seconds.
    fn round(&mut self) -> f64 {
        let begun = Instant::now();
        let (thread, said) = (&self.thread, self.said);
        let body = format!(r#"{{"text":"hello {said}","thread":"{thread}","event_id":"{thread}-{said}"}}"#);
        let recorded = self.client.post(&self.path, &body);
        let took = begun.elapsed().as_secs_f64();
        assert_eq!(recorded["message"]["status"], "delivered", "{recorded}");
        self.said += 1;
        took
    }
}
