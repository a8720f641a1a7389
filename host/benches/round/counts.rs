//! The counted cost of a round without a call, with a contained call, and with calls that go out as rows: commits, pages and wake-ups.
//!
//! Counts and never times: the record's log has its commits and pages, a journal that is removed is a commit of the sandbox, and the
//! kernel counts wake-ups. See `main`.

use crate::client::Client;
use crate::figures::{Report, Samples};
use crate::host_fixture::TestHost;
use crate::processes::{used, wake_ups};
use crate::wal::Log;
use crate::{WARM_UP, home, say};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

/// Counted rounds of each kind.
const ROUNDS: usize = 60;
/// Bytes of a long payload of a change.
const LONG_BYTES: usize = 8 * 1024;
/// The end of a turn is projected this long after its answer, at the latest.
const REST: Duration = Duration::from_millis(60);
/// Bytes of a page of a queue.
const PAGE_BYTES: usize = 4096;

pub(crate) fn bench(report: &mut Report) {
    let long = "Answer in the words of a gardener. ".repeat(LONG_BYTES / 35);
    for (key, what, text) in [
        ("counts_none", "no call", "echo tulips".to_owned()),
        ("counts_write", "with a written file", "write notes.txt: tulips".to_owned()),
        ("counts_row", "with a row for a change", "change persona to be brief".to_owned()),
        ("counts_long_row", "with a row for a change of 8 KiB", format!("change persona to {long}")),
    ] {
        let counts = Counts::measure(&text);
        eprintln!("round {what}");
        for (of, name, samples) in [
            ("commits", "durable commits of the record", &counts.commits),
            ("pages", "pages that they wrote", &counts.pages),
            ("out_commits", "durable commits of the sandbox", &counts.out_commits),
            ("out_pages", "changed pages of its queue", &counts.out_pages),
            ("in_pages", "changed pages of the inbound queue", &counts.in_pages),
            ("host", "wake-ups of the host's threads", &counts.host),
            ("sandbox", "wake-ups of the sandbox", &counts.sandbox),
            ("reader", "wake-ups of the reader", &counts.reader),
        ] {
            report.counts(&format!("{key}_{of}"), &format!("round {what}: {name}"), samples);
        }
    }
}

/// The counts of rounds of one kind.
#[derive(Default)]
struct Counts {
    commits: Samples,
    pages: Samples,
    out_commits: Samples,
    out_pages: Samples,
    in_pages: Samples,
    host: Samples,
    sandbox: Samples,
    reader: Samples,
}

impl Counts {
    /// Counts rounds of a new host, so that the kinds have histories of one length.
    fn measure(text: &str) -> Self {
        let host = home();
        host.up();
        host.agent("a");
        let mut client = Client::connect(&host);
        for _ in 0..WARM_UP {
            say(&mut client, "a", text);
        }
        let place = Place::new(&host);
        let mut counts = Self::default();
        while counts.commits.len() < ROUNDS {
            sleep(REST);
            let before = place.look();
            say(&mut client, "a", text);
            sleep(REST);
            let after = place.look();
            let Some(frames) = after.log.since(&before.log) else { continue };
            counts.commits.push(frames.iter().filter(|frame| frame.ends_commit).count() as f64);
            counts.pages.push(frames.len() as f64);
            counts.out_commits.push(place.removed_journals() as f64);
            counts.out_pages.push(changed(&before.outbound, &after.outbound) as f64);
            counts.in_pages.push(changed(&before.inbound, &after.inbound) as f64);
            for (samples, at) in [&mut counts.host, &mut counts.sandbox, &mut counts.reader].into_iter().zip(0..) {
                samples.push((after.woken[at] - before.woken[at]) as f64);
            }
        }
        counts
    }
}

/// The files and processes of a round.
struct Place {
    log: PathBuf,
    session: PathBuf,
    /// Host, sandbox and reader.
    processes: [i32; 3],
    journals: Inotify,
}

/// Their state between two rounds.
struct Look {
    log: Log,
    outbound: Vec<u8>,
    inbound: Vec<u8>,
    woken: [u64; 3],
}

impl Place {
    fn new(host: &TestHost) -> Self {
        let (pid, session) = (host.pid().expect("the host runs"), host.session_directory());
        let jailed = used(pid);
        let command = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        // Process 1 of a jail has the name of its program, and no command of its own.
        let of = |is_sandbox: bool| {
            let mut found: Vec<i32> = jailed.keys().map(|process| process.pid).collect();
            found.retain(|pid| {
                let is_last = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
                is_last.trim().is_empty() && command(*pid).starts_with("ironclaw-sandbox") == is_sandbox
            });
            *found.first().expect("a process of the session")
        };
        let journals = Inotify::init(InitFlags::IN_NONBLOCK).expect("the kernel watches files");
        // With both events, since the kernel joins equal ones that follow each other.
        journals
            .add_watch(&session.join("out"), AddWatchFlags::IN_CREATE | AddWatchFlags::IN_DELETE)
            .expect("a directory");
        Self { log: host.home.join("state.db-wal"), session, processes: [pid, of(true), of(false)], journals }
    }

    fn look(&self) -> Look {
        let read = |name: &str| std::fs::read(self.session.join(name)).expect("a queue");
        Look {
            log: Log::read(&self.log),
            outbound: read("out/outbound.db"),
            inbound: read("in/inbound.db"),
            woken: self.processes.map(|pid| wake_ups(pid).values().sum()),
        }
    }

    /// Returns the number of journals that the sandbox removed since the last call; each one is a commit.
    fn removed_journals(&self) -> usize {
        let events = self.journals.read_events().unwrap_or_default();
        events.iter().filter(|event| event.mask.contains(AddWatchFlags::IN_DELETE)).count()
    }
}

/// Returns the pages that differ. A page that is written again differs in each byte, because it has a new initialisation vector.
fn changed(before: &[u8], after: &[u8]) -> usize {
    let pages = after.chunks(PAGE_BYTES).zip(before.chunks(PAGE_BYTES).map(Some).chain(std::iter::repeat(None)));
    pages.filter(|(after, before)| before.is_none_or(|before| before != *after)).count()
}
