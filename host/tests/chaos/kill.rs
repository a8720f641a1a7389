//! Kills at random moments: two agents answer messages while the test kills host, launcher, reader or sandbox in turn.
//!
//! Each run prints its seed, and `IRONCLAW_SEED` repeats the run. `IRONCLAW_KILLS` sets its length. See `crash`.
#![allow(clippy::print_stdout)] // the printed seed repeats a failed run

use crate::support::client::Client;
use crate::support::host_fixture::{Build, TestHost, WAIT_MAX, alive, kill, wait_for};
use crate::support::processes::{Process, Watch, descendants, no_process_uses};
use crate::support::record;
use fastrand::Rng;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The seed without `IRONCLAW_SEED`. The fast tier repeats its steps, so that a change is not refused for an older defect; `.ci/long`
/// sets another seed for each commit.
const FAST_SEED: u64 = 20_261_124;

/// The number of kills without `IRONCLAW_KILLS`.
const KILLS: u64 = 30;

/// The limit of kills in a row without an answer to each sender. On a loaded machine, more kills in a row would end every attempt of
/// one turn, and the host would then correctly park the session.
const KILLS_IN_A_ROW_MAX: u64 = 4;

/// The longest pause between kills. A warm round takes a few milliseconds, a start takes some hundred.
const PAUSE_MS_MAX: u64 = 220;

pub(crate) fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text}")))
}

/// Returns the seed and the length of a run from the environment, or `FAST_SEED` and `default`. Prints both.
pub(crate) fn run_settings(length: &str, default: u64) -> (u64, u64) {
    let seed = setting("IRONCLAW_SEED").unwrap_or(FAST_SEED);
    let steps = setting(length).unwrap_or(default);
    println!("IRONCLAW_SEED={seed} {length}={steps}");
    (seed, steps)
}

/// Returns `count` randomly chosen cases in their original order.
pub(crate) fn choose_cases<T: Clone>(cases: &[T], count: u64, rng: &mut Rng) -> Vec<T> {
    let mut chosen = cases.to_vec();
    while chosen.len() as u64 > count {
        chosen.remove(rng.usize(..chosen.len()));
    }
    chosen
}

/// Sets the flag when it is dropped, so that a failure stops the senders.
pub(crate) struct SetOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) text: String,
    pub(crate) id: String,
}

#[test]
fn every_message_is_answered_once_despite_random_kills() {
    let (seed, kills) = run_settings("IRONCLAW_KILLS", KILLS);
    let host = TestHost::own(Build::Plain).started_with("one");
    host.agent("two");
    let (over, starts) = (AtomicBool::new(false), 1);
    let answers = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let (mut sent, starts) = std::thread::scope(|scope| {
        let one = scope.spawn(|| send_messages(&Client::of(&host), "one", 1, &over, &answers[0]));
        let two = scope.spawn(|| send_messages(&Client::of(&host), "two", 3, &over, &answers[1]));
        let until = SetOnDrop(&over);
        let starts = starts + kill_in_turn(&host, &mut Rng::with_seed(seed), kills, &answers);
        drop(until);
        let mut sent = one.join().expect("the sender got its answers");
        sent.extend(two.join().expect("the sender got its answers"));
        (sent, starts)
    });
    println!("{} messages, {starts} starts", sent.len());
    assert!(sent.len() as u64 >= kills / 4, "the host accepted too few messages: {}", sent.len());
    sent.sort_by(|a, b| a.id.cmp(&b.id));
    all_answered_once(&host, &sent, seed);
    check_every_start_recorded(&host, starts, seed);
    // Another start must not repeat finished work.
    let before = host.entries("delivery.received").len();
    host.restart();
    all_answered_once(&host, &sent, seed);
    check_every_start_recorded(&host, starts, seed);
    assert_eq!(host.entries("delivery.received").len(), before, "seed {seed}");
    host.down();
    no_process_uses(&host.home);
}

/// Sends `together` messages at a time and waits for their answers, until `over` is set. Returns the accepted messages.
pub(crate) fn send_messages(
    client: &Client,
    agent: &str,
    together: usize,
    over: &AtomicBool,
    answers: &AtomicUsize,
) -> Vec<Sent> {
    let mut sent: Vec<Sent> = Vec::new();
    while !over.load(Ordering::SeqCst) {
        let first = sent.len();
        for number in first..first + together {
            let text = match number % 4 {
                3 => format!("write file-{number}.txt: content {number}"),
                _ => format!("echo word-{number}-of-{agent}"),
            };
            // A request without an answer may have been accepted. The event id makes a retry idempotent.
            let taken = retry("take a message", || client.send(agent, &text, &format!("{agent}-{number}")));
            sent.push(Sent { text, id: taken["message_id"].as_str().expect("an id").to_owned() });
        }
        for message in &sent[first..] {
            retry("answer a message", || answered(client, &message.id));
            answers.fetch_add(1, Ordering::SeqCst);
        }
    }
    sent
}

pub(crate) fn answered(client: &Client, id: &str) -> std::io::Result<Value> {
    let view = client.message(id, Duration::from_secs(5))?;
    if view["status"] == "delivered" || view["receipt"] == "unknown" {
        return Ok(view);
    }
    Err(std::io::Error::new(std::io::ErrorKind::WouldBlock, view.to_string()))
}

/// Repeats a request until the host answers it, because the host may not be running at the moment.
#[track_caller]
pub(crate) fn retry<T>(what: &str, mut ask: impl FnMut() -> std::io::Result<T>) -> T {
    let until = Instant::now() + WAIT_MAX;
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(error) => assert!(Instant::now() < until, "no answer to {what} within {WAIT_MAX:?}: {error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kills processes at random moments and starts the host again if it ended. Returns the number of starts.
///
/// Waits for an answer to each sender after every [`KILLS_IN_A_ROW_MAX`] kills.
fn kill_in_turn(host: &TestHost, rng: &mut Rng, kills: u64, answers: &[AtomicUsize]) -> usize {
    let mut starts = 0;
    for moment in 0..kills {
        if moment % KILLS_IN_A_ROW_MAX == 0 {
            let before: Vec<usize> = answers.iter().map(|count| count.load(Ordering::SeqCst)).collect();
            let is_answered =
                || answers.iter().zip(&before).all(|(count, before)| count.load(Ordering::SeqCst) > *before);
            wait_for("an answer to each sender", is_answered);
        }
        std::thread::sleep(Duration::from_millis(rng.u64(..PAUSE_MS_MAX)));
        let host_process = Process::of(host.pid().expect("it runs")).expect("it runs");
        let victim = match moment % 4 {
            0 => Some(host_process),
            1 => Process::of(host.status()["host"]["launcher_pid"].as_i64().expect("a number") as i32),
            2 => awake_process(&host.status(), "/reader/pid", rng),
            _ => awake_process(&host.status(), "/pid", rng),
        };
        // No session may be awake at the moment.
        let Some(victim) = victim else { continue };
        let watch = (moment % 4 < 2).then(|| (Watch::over(host_process.pid), descendants(host_process.pid)));
        kill(victim.pid);
        wait_for("the end of the killed process", || !victim.is_alive());
        if let Some((watch, children)) = watch {
            wait_for("the end of the host", || !alive(host_process.pid));
            watch.check_all_ended();
            wait_for("the end of its children", || children.keys().all(|child| !child.is_alive()));
            no_process_uses(&host.home);
            host.up();
            starts += 1;
        }
    }
    starts
}

/// Returns a random process of an awake session. `what` is its place in the status of a session.
pub(crate) fn awake_process(status: &Value, what: &str, rng: &mut Rng) -> Option<Process> {
    let sessions = status["sessions"].as_array().expect("a list").iter();
    let found: Vec<i64> = sessions.filter_map(|session| session.pointer(what)?.as_i64()).collect();
    if found.is_empty() {
        return None;
    }
    Process::of(found[rng.usize(..found.len())] as i32)
}

/// Checks that record, ledger and deliveries contain each message exactly once, and that no work is open.
pub(crate) fn each_answered_once(host: &TestHost, ids: &[String], seed: u64) {
    each_settled_once(host, ids, &HashSet::new(), seed);
}

/// Checks the same as [`each_answered_once`], but the answers to `unknown` were sent and have no receipt.
pub(crate) fn each_settled_once(host: &TestHost, ids: &[String], unknown: &HashSet<String>, seed: u64) {
    let ledger = host.ledger();
    let of = |what: &'static str| ledger.iter().map(|entry| &entry["data"]).filter(move |data| data["what"] == what);
    let text = |data: &Value, key: &str| data[key].as_str().unwrap_or_default().to_owned();
    let recorded: HashSet<String> = of("message.recorded").map(|data| text(data, "message")).collect();
    assert_eq!(recorded, ids.iter().cloned().collect(), "seed {seed}");
    assert_eq!(of("message.recorded").count(), ids.len(), "seed {seed}");
    let mut turns: HashMap<String, HashSet<String>> = HashMap::new();
    for data in of("turn.opened") {
        turns.entry(text(data, "message")).or_default().insert(text(data, "turn"));
    }
    for what in ["delivery.intended", "delivery.received"] {
        // A notice about an undelivered answer belongs to no turn.
        let answered: Vec<String> = of(what).map(|data| text(data, "turn")).filter(|turn| !turn.is_empty()).collect();
        assert_eq!(answered.iter().collect::<HashSet<_>>().len(), answered.len(), "seed {seed}: {what} twice");
        for id in ids {
            let count = answered.iter().filter(|turn| turns[id].contains(*turn)).count();
            let expected = usize::from(what == "delivery.intended" || !unknown.contains(id));
            assert_eq!(count, expected, "seed {seed}: {what} of {id} in {:?}", turns[id]);
        }
    }
    let db = record::open(&host.home);
    let none = |sql| assert_eq!(record::count(&db, sql), 0, "seed {seed}: {sql}");
    none("SELECT count(*) FROM deliveries WHERE session_id IS NOT NULL AND state NOT IN ('received','unknown')");
    let open = "SELECT count(*) FROM messages WHERE trigger = 1 AND status <> 'delivered'";
    assert_eq!(record::count(&db, open), unknown.len() as i64, "seed {seed}: {open}");
    none("SELECT count(*) FROM turns WHERE state = 'open'");
    none("SELECT count(*) FROM sessions WHERE open_turn IS NOT NULL");
    none("SELECT count(*) FROM sessions WHERE state <> 'live'");
}

/// Checks [`each_answered_once`], and that each answer belongs to its message.
pub(crate) fn all_answered_once(host: &TestHost, sent: &[Sent], seed: u64) {
    let ids: Vec<String> = sent.iter().map(|message| message.id.clone()).collect();
    each_answered_once(host, &ids, seed);
    let opened = host.entries("turn.opened");
    let text = |entry: &Value, key: &str| entry["data"][key].as_str().unwrap_or_default().to_owned();
    let client = Client::of(host);
    for message in sent {
        let view = client.message(&message.id, Duration::ZERO).expect("the host answers");
        let reply = view["reply"].as_str().unwrap_or_default();
        assert!(view["status"] == "delivered" && view["receipt"] == "received", "seed {seed}: {message:?}: {view}");
        // In a turn with several messages, the scripted model answers only the last one.
        let of_turn = |turn: &str| opened.iter().filter(|entry| text(entry, "turn") == turn).count();
        let own = opened.iter().filter(|entry| text(entry, "message") == message.id);
        let alone = own.into_iter().all(|entry| of_turn(&text(entry, "turn")) == 1);
        if alone && view["notice"] == false {
            let said = message.text.split([' ', ':']).nth(1).unwrap_or_default();
            assert!(reply.contains(said), "seed {seed}: {message:?}: {view}");
        }
    }
}

/// Checks that the ledger records each start and is valid.
pub(crate) fn check_every_start_recorded(host: &TestHost, starts: usize, seed: u64) {
    let started = host.entries("host.started");
    let unclean = started.iter().filter(|entry| entry["data"]["unclean_end_of"].is_string()).count();
    assert_eq!(unclean + 1, starts, "seed {seed}: the ledger records each start after a crash");
    assert!(host.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "), "seed {seed}");
}
