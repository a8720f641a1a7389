//! More sessions than slots: no session starves, no limit is exceeded, no message is answered twice, and an idle session has no
//! process.
//!
//! Each run prints its seed, and `IRONCLAW_SEED` repeats the run. `IRONCLAW_SCALE_MESSAGES` sets its length. See
//! `ops::stops`.
#![allow(clippy::print_stdout)] // the printed seed repeats a failed run

use crate::chaos::kill;
use crate::support::client::Client;
use crate::support::host_fixture::{Build, TestHost, WAIT_MAX, wait_for};
use crate::support::many_sessions::{make_sessions, name};
use crate::support::processes::{descendants, used};
use crate::support::record;
use fastrand::Rng;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SESSIONS: usize = 1000;
const AGENTS: usize = 20;
const AWAKE_MAX: usize = 50;
const AWAKE_PER_AGENT_MAX: usize = 10;
/// The number of messages without `IRONCLAW_SCALE_MESSAGES`.
const MESSAGES: u64 = 300;

/// Makes a host of the own user with these settings. Its scripted model answers the message `slow` after ten minutes.
pub(crate) fn new_host(settings: &str) -> TestHost {
    let host = TestHost::own(Build::Plain);
    let script = host.home.join("script.toml");
    std::fs::write(&script, "[[rule]]\nwhen = '^slow'\nreply = 'slowly'\nwait_ms = 600000\n").expect("written");
    host.configure(&format!("{settings}\n[model]\nscript = {:?}\n", script.display().to_string()));
    host
}

#[test]
fn thousand_sessions_share_fifty_slots_without_starvation() {
    let (seed, count) = kill::run_settings("IRONCLAW_SCALE_MESSAGES", MESSAGES);
    let count = count as usize;
    // One person sends all messages, so the quota of waiting messages must be high.
    let host = new_host(&format!(
        "[session]\nawake_max = {AWAKE_MAX}\nawake_per_agent_max = {AWAKE_PER_AGENT_MAX}\n[quota]\nwaiting_per_person = 100000\n"
    ));
    host.up();
    (0..AGENTS).for_each(|agent| host.agent(&name(agent)));
    host.down();
    make_sessions(&host, AGENTS, SESSIONS / AGENTS);
    host.up();
    let client = Client::of(&host);
    let status = client.status().expect("the host answers");
    assert_eq!(status["sessions"].as_array().map(Vec::len), Some(SESSIONS), "seed {seed}");
    assert_eq!(descendants(host.pid().expect("it runs")).len(), 1, "only the launcher runs");
    let mut rng = Rng::with_seed(seed);
    let to: Vec<(usize, usize)> = (0..count).map(|_| (rng.usize(..AGENTS), rng.usize(..SESSIONS / AGENTS))).collect();
    let over = AtomicBool::new(false);
    let (ids, most_awake) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| most_awake(&client, &over));
        let sends: Vec<_> = to
            .chunks(count.div_ceil(4))
            .enumerate()
            .map(|(sender, part)| {
                let client = client.clone();
                scope.spawn(move || {
                    let send = |(number, (agent, thread)): (usize, &(usize, usize))| {
                        let (thread, event) = (format!("t{thread}"), format!("{sender}-{number}"));
                        let text = format!("echo {event}");
                        let sent =
                            client.send_in(&name(*agent), &thread, &text, &event).expect("the message is recorded");
                        sent["message_id"].as_str().expect("an id").to_owned()
                    };
                    part.iter().enumerate().map(send).collect::<Vec<String>>()
                })
            })
            .collect();
        let ids: Vec<String> =
            sends.into_iter().flat_map(|send| send.join().expect("the sender got its answers")).collect();
        ids.iter().for_each(|id| answered(&client, id, seed));
        over.store(true, Ordering::SeqCst);
        (ids, watch.join().expect("the watcher does not panic"))
    });
    assert_eq!(most_awake, AWAKE_MAX, "seed {seed}: the limit is reached");
    each_answered_once(&host, &ids, seed);
    let sessions = status["sessions"].as_array().expect("a list").iter();
    let named =
        |session: &Value| (session["id"].as_str().map(str::to_owned), session["agent"].as_str().map(str::to_owned));
    let agent_of = sessions.map(named).filter_map(|(id, agent)| Some((id?, agent?))).collect();
    let waits = waits(&host, &agent_of);
    assert_eq!(waits.len(), ids.len(), "seed {seed}");
    let most = |of: fn(&Wait) -> usize| waits.iter().map(of).max().unwrap_or(0);
    println!(
        "{count} messages to {SESSIONS} sessions of {AGENTS} agents, {AWAKE_MAX} slots: waited for p50 {}, p99 {}, at most {} \
         turns; overtaken by at most {} later messages to the same agent",
        percentile(&waits, 50),
        percentile(&waits, 99),
        most(|wait| wait.turns),
        most(|wait| wait.overtaken_by_own),
    );
    for wait in &waits {
        // Admission serves each agent once in a round, and picks its oldest waiting session. An awake session has up to four more turns while
        // others wait, and while the process of this session starts.
        let bound = (wait.own_before + 1) * AGENTS + 4 * AWAKE_MAX;
        assert!(wait.turns <= bound, "seed {seed}: {wait:?} of at most {bound}");
        assert!(wait.overtaken_by_own <= 2 * AWAKE_PER_AGENT_MAX, "seed {seed}: {wait:?}");
    }
    host.down();
}

/// The wait of one message, counted in turns and messages.
#[derive(Debug)]
struct Wait {
    /// Turns that ended after the message was recorded and before its own turn.
    turns: usize,
    /// Earlier messages to its agent that still waited when it was recorded.
    own_before: usize,
    /// Later messages to its agent with an earlier turn, from sessions that had no earlier message.
    overtaken_by_own: usize,
}

/// A message that still waits for its turn.
struct Unserved {
    message: String,
    /// Turns that had ended when it was recorded.
    ended: usize,
    /// Earlier messages to its agent that still wait.
    own_before: usize,
    /// Sessions of those messages. An awake session may also answer its later messages.
    sessions_before: HashSet<String>,
    overtaken_by_own: usize,
}

/// Returns the wait of each message from the ledger.
fn waits(host: &TestHost, agent_of: &HashMap<String, String>) -> Vec<Wait> {
    let (mut ended, mut waits) = (0usize, Vec::new());
    // For each agent, the waiting messages with their sessions, in the order of the ledger.
    let mut waiting: HashMap<&str, Vec<(String, Unserved)>> = HashMap::new();
    for entry in &host.ledger() {
        let data = &entry["data"];
        let text = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
        let agent = agent_of.get(&text("session")).map_or("", String::as_str);
        match data["what"].as_str() {
            Some("message.recorded") => {
                let own = waiting.entry(agent).or_default();
                let sessions_before = own.iter().map(|(session, _)| session.clone()).collect();
                let (message, own_before) = (text("message"), own.len());
                let unserved = Unserved { message, ended, own_before, sessions_before, overtaken_by_own: 0 };
                own.push((text("session"), unserved));
            }
            Some("turn.opened") => {
                let own = waiting.entry(agent).or_default();
                let message = text("message");
                let at = own.iter().position(|(_, unserved)| unserved.message == message).expect("it was recorded");
                let (session, served) = own.remove(at);
                let overtaken = own[..at].iter_mut().filter(|(_, other)| !other.sessions_before.contains(&session));
                overtaken.for_each(|(_, other)| other.overtaken_by_own += 1);
                let Unserved { own_before, overtaken_by_own, .. } = served;
                waits.push(Wait { turns: ended - served.ended, own_before, overtaken_by_own });
            }
            Some("turn.closed") => ended += 1,
            _ => {}
        }
    }
    waits
}

fn percentile(waits: &[Wait], percent: usize) -> usize {
    let mut turns: Vec<usize> = waits.iter().map(|wait| wait.turns).collect();
    turns.sort_unstable();
    turns[(turns.len() * percent / 100).min(turns.len() - 1)]
}

/// Polls the number of awake sessions until `over` is set. Checks the limits and returns the maximum.
fn most_awake(client: &Client, over: &AtomicBool) -> usize {
    let mut most = 0;
    while !over.load(Ordering::SeqCst) {
        let status = client.status().expect("the host answers");
        let places = &status["places"];
        let awake = places["awake"].as_u64().expect("a number") as usize;
        assert!(awake <= AWAKE_MAX, "{places}");
        let mut by_agent: HashMap<&str, usize> = HashMap::new();
        for session in status["sessions"].as_array().expect("a list") {
            if ["starting", "awake", "stopping"].contains(&session["state"].as_str().expect("a state")) {
                *by_agent.entry(session["agent"].as_str().expect("a name")).or_default() += 1;
            }
        }
        assert!(by_agent.values().all(|awake| *awake <= AWAKE_PER_AGENT_MAX), "{by_agent:?}");
        most = most.max(awake);
        // A poll costs the host more than a turn, so polls without a pause would be the main load.
        std::thread::sleep(Duration::from_millis(100));
    }
    most
}

/// Waits until the answer to a message is delivered.
#[track_caller]
pub(crate) fn answered(client: &Client, id: &str, seed: u64) {
    let until = Instant::now() + 4 * WAIT_MAX;
    loop {
        let view = client.message(id, Duration::from_secs(5)).expect("the host answers");
        if view["status"] == "delivered" {
            return;
        }
        assert!(Instant::now() < until, "seed {seed}: {view}");
    }
}

/// Checks that each message is answered exactly once, no session has failures, and the ledger is valid.
pub(crate) fn each_answered_once(host: &TestHost, ids: &[String], seed: u64) {
    kill::each_answered_once(host, ids, seed);
    let failed = record::count(&record::open(&host.home), "SELECT count(*) FROM sessions WHERE failures > 0");
    assert_eq!(failed, 0, "seed {seed}");
    assert!(host.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "), "seed {seed}");
}

#[test]
fn three_agents_share_one_slot_in_turns() {
    let host = new_host("[session]\nawake_max = 1\n");
    host.up();
    ["slow", "a", "b", "c"].iter().for_each(|agent| host.agent(agent));
    let client = Client::of(&host);
    let blocker = client.send_in("slow", "t", "slow", "0").expect("recorded");
    wait_for("the only slot to be in use", || !host.entries("model.asked").is_empty());
    let mut ids = Vec::new();
    for agent in ["a", "b", "c"] {
        for thread in ["1", "2", "3"] {
            let sent = client.send_in(agent, thread, &format!("echo {agent}{thread}"), &format!("{agent}{thread}"));
            ids.push(sent.expect("recorded")["message_id"].as_str().expect("an id").to_owned());
            let line = ids.len() as u64;
            wait_for("the session to wait for the slot", || {
                client.status().expect("answers")["places"]["waiting"] == line
            });
        }
    }
    let why = host.ctl(&["--json", "why", &ids[0]]).ok().json();
    assert_eq!(why["summary"], "Its session is waiting for a slot (1st; 1 of 1 are taken).");
    let why = host.ctl(&["--json", "why", &ids[1]]).ok().json();
    assert_eq!(
        why["summary"], "Its session is waiting for a slot (4th; 1 of 1 are taken).",
        "the first messages of b and c go first"
    );
    let list = host.ctl(&["session", "list"]).ok().stdout;
    assert!(list.contains("waiting: for a slot (9th; 1 of 1 are taken)"), "{list}");
    assert!(host.ctl(&["status"]).ok().stdout.contains("1 of at most 1, 9 waiting for a slot"));
    host.ctl(&["session", "cancel", blocker["session_id"].as_str().expect("an id")]).ok();
    ids.iter().for_each(|id| answered(&client, id, 0));
    let opened: Vec<String> = host.entries("turn.opened")[1..]
        .iter()
        .map(|entry| entry["data"]["message"].as_str().expect("an id").to_owned())
        .collect();
    let in_turns: Vec<String> = (0..3).flat_map(|n| [ids[n].clone(), ids[3 + n].clone(), ids[6 + n].clone()]).collect();
    assert_eq!(opened, in_turns);
    ids.push(blocker["message_id"].as_str().expect("an id").to_owned());
    each_answered_once(&host, &ids, 0);
}

#[test]
fn sessions_that_compete_for_one_slot_lose_no_message() {
    let host = new_host("[session]\nawake_max = 1\n");
    host.up();
    (0..3).for_each(|agent| host.agent(&name(agent)));
    let client = Client::of(&host);
    let ids: Vec<String> = std::thread::scope(|scope| {
        let talks: Vec<_> = (0..3)
            .map(|agent| {
                let client = client.clone();
                scope.spawn(move || {
                    let say = |n: usize| {
                        let sent = client.send_in(&name(agent), "t", &format!("echo {n}"), &format!("{agent}-{n}"));
                        let id = sent.expect("recorded")["message_id"].as_str().expect("an id").to_owned();
                        // Every second message arrives while its session goes to sleep.
                        if n.is_multiple_of(2) {
                            answered(&client, &id, 0);
                        }
                        id
                    };
                    (0..16).map(say).collect::<Vec<_>>()
                })
            })
            .collect();
        talks.into_iter().flat_map(|talk| talk.join().expect("the sender got its answers")).collect()
    });
    ids.iter().for_each(|id| answered(&client, id, 0));
    each_answered_once(&host, &ids, 0);
}

#[test]
fn idle_session_sleeps_without_a_process_and_wakes_again() {
    let host = new_host("[session]\nidle_seconds = 1\n");
    host.up();
    host.agent("a");
    let host_pid = host.pid().expect("it runs");
    let files = || std::fs::read_dir(format!("/proc/{host_pid}/fd")).map_or(0, Iterator::count);
    let before = files();
    assert!(host.say("a", "my name is Ada").contains("Hello, Ada."));
    for _ in 0..2 {
        wait_for("the session to sleep", || host.session()["state"] == "asleep");
        wait_for("the end of its processes", || used(host_pid).len() == 1);
        wait_for("the host to close its files", || files() <= before);
        assert_eq!(host.status()["places"]["awake"], 0);
        assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.");
    }
}

#[test]
fn named_conversations_have_separate_sessions() {
    let host = new_host("");
    host.up();
    host.agent("a");
    let client = Client::of(&host);
    for (thread, words, answer) in [
        ("one", "my name is Ada", "Hello, Ada."),
        ("two", "what is my name?", "You have not told me your name"),
        ("one", "what is my name?", "Your name is Ada."),
    ] {
        let reply = host.ctl(&["chat", "a", words, "--thread", thread]).ok().stdout;
        assert!(reply.contains(answer), "{thread}: {reply}");
    }
    assert_eq!(client.status().expect("answers")["sessions"].as_array().map(Vec::len), Some(2));
    for name in ["", "Work", "a/b", "a b", &"x".repeat(65)] {
        let refused = client.send_in("a", name, "hello", "e").expect_err("the name is invalid");
        assert!(refused.to_string().contains("thread_malformed"), "{name}: {refused}");
        host.ctl(&["chat", "a", "hello", "--thread", name]).refused("a thread's name has 1 to 64 characters");
    }
}

#[test]
fn inconsistent_session_limits_are_refused() {
    let host = TestHost::new();
    for (settings, words) in [
        ("awake_max = 5000", "session.awake_max must be 0 to 4096"),
        ("awake_max = 2\nawake_per_agent_max = 3", "no more than session.awake_max"),
        ("awake_max = -1", "awake_max"),
    ] {
        host.configure(&format!("[session]\n{settings}\n"));
        host.ctl(&["config", "check"]).refused(words);
    }
}

#[test]
fn start_finds_open_work_by_indexes_only() {
    let host = TestHost::new();
    let db = record::open(&host.home);
    for sql in [
        "SELECT DISTINCT session_id FROM messages WHERE waits = 1 AND trigger = 1",
        "SELECT turns.* FROM messages CROSS JOIN turns ON turns.id = turn_id \
         WHERE waits = 1 AND trigger = 1 AND status = 'processing' AND turns.state = 'open'",
        "SELECT DISTINCT session_id FROM deliveries WHERE state IN ('intent','sending') AND over_network = 0",
        "SELECT id FROM sessions WHERE state = 'removed'",
        "SELECT * FROM deliveries WHERE session_id = 's' AND state IN ('intent','sending') ORDER BY created_at, id LIMIT 64",
    ] {
        let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("it is SQL");
        let rows = statement.query_map([], |row| row.get::<_, String>(3)).expect("a plan");
        let plan: Vec<String> = rows.collect::<Result<_, _>>().expect("a plan");
        assert!(plan[0].contains("USING INDEX") || plan[0].contains("USING COVERING INDEX"), "{sql}: {plan:?}");
    }
}
