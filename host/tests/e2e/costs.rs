//! Tests of the cost of a warm round: the durable commits of the record, the pages that they write, and the wake-ups of the host's
//! threads. Nothing is timed.
//!
//! In a round, the scripted model answers a message to an awake session. The write-ahead log of the record shows commits and pages, the
//! kernel counts wake-ups. See `docs/performance.md`.

use super::mcp;
use crate::support::client::Client;
use crate::support::host_fixture::{Build, TestHost, WAIT_MAX};
use crate::support::mcp_server::{ECHO_READS, HttpServer};
use crate::support::processes::descendants;
use crate::support::record;
use crate::support::wal::Log;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde_json::Value;

use std::collections::HashMap;
use std::path::Path;

/// Rounds before the first counted round.
const WARM_UP: usize = 5;
/// Counted rounds.
const ROUNDS: usize = 60;
/// Rounds in which the counted ones must be.
const ROUNDS_MAX: usize = 4 * ROUNDS;
/// Durable commits of a round in one request: message recorded, turn opened and model asked; output sealed; row accepted and reply
/// received. The mark that the reply was read shares the commit of the next message.
const COMMITS: u64 = 3;
/// Further commits of a round in two requests, the second of which waits: the message, which the first one confirms.
const COMMITS_OF_CONFIRMATION: u64 = 1;
/// Further commits of a contained call: result reported, model asked again, its output sealed.
const COMMITS_OF_CALL: u64 = 3;
/// Further commits of a call of an MCP server beside a contained call: its start, because it is sent at most once.
const COMMITS_OF_SERVER: u64 = 1;
/// Costs of a warm round that this test bounds.
struct Bounds {
    commits: u64,
    /// Pages of a counted round on average. One more page in each round exceeds it.
    pages: f64,
    /// Wake-ups of all threads of the host in the counted round with the fewest. Busy processes beside it add some, so the bound leaves
    /// room.
    wake_ups: u64,
}
const IN_ONE_REQUEST: Bounds = Bounds { commits: COMMITS, pages: 28.0, wake_ups: 30 };
const IN_TWO_REQUESTS: Bounds = Bounds { commits: COMMITS + COMMITS_OF_CONFIRMATION, pages: 31.0, wake_ups: 37 };
/// Processors of the host in the test of its wake-ups, because the number of its threads depends on them.
const PROCESSORS: usize = 2;

const WHY: &str = "A change that adds a commit, a page or a wake-up to each message needs a reason in its commit and in docs/performance.md, \
                   and then a new number in this file";

#[test]
fn costs_of_a_warm_round_in_one_request_are_pinned() {
    check_warm_round(&IN_ONE_REQUEST, one_request);
}

#[test]
fn costs_of_a_warm_round_in_two_requests_are_pinned() {
    check_warm_round(&IN_TWO_REQUESTS, two_requests);
}

#[test]
fn host_and_sandbox_have_short_time_slices() {
    let slice = |status: &str| {
        let line = std::fs::read_to_string(status).ok()?.lines().find(|line| line.starts_with("se.slice"))?.to_owned();
        line.rsplit(' ').next()?.parse::<u64>().ok()
    };
    let release = nix::sys::utsname::uname().expect("the kernel");
    let release = release.release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version < (6, 12) || slice("/proc/self/sched").is_none() {
        return;
    }
    let host = TestHost::new().started_with("a");
    host.say("a", "hello");
    let pid = host.pid().expect("the host runs");
    let mut slices = Vec::new();
    for process in descendants(pid).into_keys().map(|process| process.pid).chain([pid]) {
        for task in std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
            slices.extend(slice(&task.path().join("sched").display().to_string()));
        }
    }
    assert!(slices.len() > 5 && slices.iter().all(|slice| *slice == 100_000), "{slices:?}");
}

#[track_caller]
fn check_warm_round(bounds: &Bounds, sending: Sending) {
    let host = TestHost::own(Build::Plain);
    use_two_processors();
    host.up();
    host.agent("a");
    let rounds = rounds_of(&host, "hello", sending, bounds.commits);
    let pages: usize = rounds.iter().map(|round| round.pages.len()).sum();
    let average = pages as f64 / ROUNDS as f64;
    let tables = tables_of(&host.home, &rounds[0].pages);
    assert!(
        average <= bounds.pages,
        "a warm round wrote {} pages, and now writes {average}: {tables:?}. {WHY}",
        bounds.pages
    );
    let woken: Vec<u64> = rounds.iter().map(|round| round.wake_ups).collect();
    let fewest = woken.iter().min().expect("a round");
    let most = bounds.wake_ups;
    assert!(*fewest <= most, "a warm round woke threads {most} times, and now {woken:?} times. {WHY}");
}

#[test]
fn commits_of_a_round_with_a_contained_call_are_pinned() {
    let host = TestHost::own(Build::Plain).started_with("a");
    rounds_of(&host, "write notes.txt: tulips", one_request, COMMITS + COMMITS_OF_CALL);
}

#[test]
fn call_of_an_mcp_server_adds_one_commit() {
    let server = HttpServer::start(&[]);
    let host = mcp::host();
    mcp::ready(&host, "tests", &["--url", &server.url], Some(ECHO_READS));
    let text = "use tests__echo {\"text\":\"tulips\"}";
    rounds_of(&host, text, one_request, COMMITS + COMMITS_OF_CALL + COMMITS_OF_SERVER);
}

/// Limits this thread, and the processes that it starts, to [`PROCESSORS`].
fn use_two_processors() {
    let own = Pid::from_raw(0);
    let permitted = sched_getaffinity(own).expect("the kernel names the processors");
    let mut chosen = CpuSet::new();
    for processor in (0..CpuSet::count()).filter(|at| permitted.is_set(*at).unwrap_or(false)).take(PROCESSORS) {
        chosen.set(processor).expect("a processor of the set");
    }
    sched_setaffinity(own, &chosen).expect("a thread can limit itself");
}

/// A counted round.
struct Round {
    /// Numbers of the pages that its commits wrote.
    pages: Vec<u32>,
    wake_ups: u64,
}

/// Sends the text until this many rounds have so many commits. On a busy machine a deferred change may be committed alone, and two
/// changes may share a commit; such a round is not counted.
fn rounds_of(host: &TestHost, text: &str, sending: Sending, expected: u64) -> Vec<Round> {
    let client = Client::of(host);
    let log = host.home.join("state.db-wal");
    let (mut rounds, mut others) = (Vec::new(), Vec::new());
    for number in 0..WARM_UP + ROUNDS_MAX {
        let (before, woken) = (Log::read(&log), wake_ups(host));
        let view = sending(&client, text, &format!("event-{number}"));
        assert_eq!(view["status"], "delivered", "{view}");
        let (after, woken) = (Log::read(&log), wake_ups(host) - woken);
        // After a restart the log does not contain the whole round.
        let Some(frames) = after.since(&before).filter(|_| number >= WARM_UP) else { continue };
        let commits = frames.iter().filter(|frame| frame.ends_commit).count() as u64;
        if commits == expected {
            rounds.push(Round { pages: frames.iter().map(|frame| frame.page).collect(), wake_ups: woken });
        } else {
            others.push(commits);
        }
        if rounds.len() == ROUNDS {
            return rounds;
        }
    }
    panic!("{text}: too few warm rounds have {expected} durable commits; the other rounds have {others:?}. {WHY}");
}

/// Returns the number of pages of each table and index among these.
fn tables_of(home: &Path, pages: &[u32]) -> Vec<(String, usize)> {
    let db = record::open(home);
    let mut statement = db.prepare("SELECT pageno, name FROM dbstat").expect("the record has statistics");
    let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?));
    let names: HashMap<u32, String> =
        statement.query_map([], row).expect("rows").collect::<rusqlite::Result<_>>().expect("rows");
    let mut counts: HashMap<String, usize> = HashMap::new();
    for page in pages {
        *counts.entry(names.get(page).cloned().unwrap_or_default()).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort();
    counts
}

/// Returns how often the threads of the host began to wait.
fn wake_ups(host: &TestHost) -> u64 {
    let pid = host.pid().expect("the host runs");
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the host has threads");
    tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok())
        .filter_map(|status| {
            let line =
                status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse::<u64>();
            line.ok()
        })
        .sum()
}

/// Sends a message under the id of an event, and returns the answered message.
type Sending = fn(&Client, &str, &str) -> Value;

fn one_request(client: &Client, text: &str, event: &str) -> Value {
    client.send_and_wait("a", text, event, WAIT_MAX).expect("the host answers")["message"].take()
}

fn two_requests(client: &Client, text: &str, event: &str) -> Value {
    let sent = client.send("a", text, event).expect("the host answers");
    let id = sent["message_id"].as_str().expect("an id");
    client.message(id, WAIT_MAX).expect("the host answers")
}
