//! Tests of the cost of one warm round: the durable commits of the record, and the pages that they write. Nothing is timed.
//!
//! In a round, the scripted model answers a message to an awake session. The write-ahead log of the record shows both counts.
//! The test does not count the wake-ups of threads, which depend on the load and the processors. See `docs/performance.md`.

use super::mcp;
use crate::support::client::{Client, current_user};
use crate::support::host_fixture::{Build, TestHost};
use crate::support::mcp_server::{ECHO_READS, HttpServer};
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

/// Rounds before the first counted round.
const WARM_UP: usize = 5;
/// Counted rounds.
const ROUNDS: usize = 20;
/// Durable commits of a round: message recorded, turn opened, model asked, output sealed, row accepted, reply received, reply read.
const COMMITS: u64 = 7;
/// Further commits of a contained call: result reported, model asked again, its output sealed.
const COMMITS_OF_CALL: u64 = 3;
/// Further commits of a call of an MCP server beside a contained call: its start, because it is sent at most once.
const COMMITS_OF_SERVER: u64 = 1;
/// Pages of all counted rounds together. One more page in each round exceeds the range.
const PAGES: RangeInclusive<u64> = 1_318..=1_343;

const WHY: &str = "A change that adds a commit or a page to each message needs a reason in its commit and in docs/performance.md, and \
                   then a new number in this file";

#[test]
fn commits_and_pages_of_a_warm_round_are_pinned() {
    let pages = pages_of_rounds("hello", COMMITS);
    let sum: u64 = pages.iter().sum();
    assert!(
        PAGES.contains(&sum),
        "{ROUNDS} warm rounds wrote {PAGES:?} pages, and now write {sum}. {WHY}. Pages of each round: {pages:?}"
    );
}

#[test]
fn commits_of_a_round_with_a_contained_call_are_pinned() {
    pages_of_rounds("write notes.txt: tulips", COMMITS + COMMITS_OF_CALL);
}

#[test]
fn call_of_an_mcp_server_adds_one_commit() {
    let server = HttpServer::start(&[]);
    let host = mcp::host();
    mcp::ready(&host, "tests", &["--url", &server.url], Some(ECHO_READS));
    let text = "use tests__echo {\"text\":\"tulips\"}";
    pages_of_rounds_with(&host, text, COMMITS + COMMITS_OF_CALL + COMMITS_OF_SERVER);
}

/// Sends the text until this number of rounds with so many commits is counted. Returns the pages that each of them wrote.
fn pages_of_rounds(text: &str, expected: u64) -> Vec<u64> {
    let host = TestHost::with(current_user(), Build::Plain, None);
    host.up();
    host.agent("a");
    pages_of_rounds_with(&host, text, expected)
}

fn pages_of_rounds_with(host: &TestHost, text: &str, expected: u64) -> Vec<u64> {
    let client = Client::of(host);
    let log = host.home.join("state.db-wal");
    let mut rounds = Vec::new();
    for number in 0..WARM_UP + 2 * ROUNDS {
        let before = Log::of(&log);
        round(&client, text, number);
        let after = Log::of(&log);
        // After a checkpoint SQLite restarts the log, so it does not contain the whole round.
        if number < WARM_UP || before.salt != after.salt {
            continue;
        }
        let (commits, pages) = (after.commits - before.commits, after.pages - before.pages);
        assert!(
            commits <= expected,
            "{text}: a warm round had {expected} durable commits, and now has {commits}. {WHY}"
        );
        // On a busy machine two writes may share a commit. Such a round is not counted.
        if commits == expected {
            rounds.push(pages);
        }
        if rounds.len() == ROUNDS {
            break;
        }
    }
    assert!(
        rounds.len() == ROUNDS,
        "{text}: a warm round has fewer than {expected} durable commits now: change the number in this file"
    );
    rounds
}

fn round(client: &Client, text: &str, number: usize) {
    let sent = client.send("a", text, &format!("event-{number}")).expect("the host answers");
    let id = sent["message_id"].as_str().expect("an id");
    let view = client.message(id, Duration::from_secs(60)).expect("the host answers");
    assert_eq!(view["status"], "delivered", "{view}");
}

/// The contents of the record's write-ahead log since its last restart.
struct Log {
    salt: [u8; 8],
    commits: u64,
    pages: u64,
}

impl Log {
    fn of(path: &Path) -> Self {
        let bytes = std::fs::read(path).expect("the record has a log");
        let (header, frames) = bytes.split_at(32);
        let salt: [u8; 8] = header[16..24].try_into().expect("8 bytes");
        let frames = frames.chunks_exact(24 + 4096).take_while(|frame| frame[8..16] == salt);
        let (mut pages, mut commits) = (0, 0);
        for frame in frames {
            pages += 1;
            commits += u64::from(frame[4..8] != [0; 4]);
        }
        Self { salt, commits, pages }
    }
}
