//! A load campaign: two members and a webhook sender exhaust every quota at once, and the owner is still answered in turn.
//!
//! A run takes seconds by default, and four minutes with `IRONCLAW_LONG=1`. It counts turns and codes and measures no times. See
//! `quota`.
#![allow(clippy::print_stdout)] // the printed seed repeats a failed run

use crate::chaos::kill::{SetOnDrop, run_settings};
use crate::security::quota::{get_at, idle_connection, message};
use crate::support::client::{Raw, code};
use crate::support::hooks::{self, Hook, Receiver};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use fastrand::Rng;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SETTINGS: &str = "requests_per_minute = 100000\n[api]\nlisten = \"127.0.0.1:0\"\n\
    [session]\nawake_max = 2\nawake_per_agent_max = 1\n\
    [quota]\nconversations_per_person = 12\nconversations_per_channel = 12\nwaiting_per_person = 60\n\
    waiting_bytes_per_person = 2000000\nwaiting_per_channel = 30\n";

/// The duration of the attacks in seconds.
const SECONDS: u64 = 15;

/// The duration in the long tier.
const LONG_SECONDS: u64 = 240;

/// The limit of the host's memory at any time, in a build for tests.
const HOST_BYTES_MAX: u64 = 256 << 20;

/// The limit of turns of one other person between a message of the owner and its turn.
const TURNS_OF_ONE_MAX: usize = 1;

/// The answers to the attackers, by status and code.
type Answers = Mutex<BTreeMap<String, u64>>;

struct Campaign<'a> {
    host: &'a TestHost,
    seed: u64,
    over: AtomicBool,
    answers: Answers,
}

impl Campaign<'_> {
    fn is_running(&self) -> bool {
        !self.over.load(Ordering::SeqCst)
    }

    fn rng(&self, of: u64) -> Rng {
        Rng::with_seed(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(of))
    }

    fn count_answer(&self, user: &str, answer: &(u16, Value)) {
        let (status, code) = code(answer);
        assert!(status < 500 || code == "port_full", "{user}: {answer:?}");
        *self.answers.lock().expect("no holder panics").entry(format!("{user} {status} {code}")).or_default() += 1;
    }

    /// Opens conversations of a member, and fills them with messages.
    fn flood(&self, user: &str, raw: &Raw, agent: &str, of: u64) {
        let mut rng = self.rng(of);
        while self.is_running() {
            let thread = format!("t{}", rng.u64(..40));
            let text = match rng.u64(..4) {
                0 => format!("echo {}", "x".repeat(40_000)),
                1 => "recall alpha beta gamma delta epsilon zeta eta theta".to_owned(),
                _ => "hello".to_owned(),
            };
            self.count_answer(user, &message(raw, agent, &thread, &text));
        }
    }

    /// Keeps idle connections of a member to the port open.
    fn hold_connections(&self, raw: &Raw) {
        let port = raw.port();
        let mut held: Vec<TcpStream> = Vec::new();
        while self.is_running() {
            held.extend(idle_connection(&port, &raw.token));
            if held.len() > 80 {
                held.drain(..40);
            }
        }
    }

    /// Sends bodies with a very large number of values as a member.
    fn send_large_bodies(&self, user: &str, raw: &Raw) {
        let body = format!("{{\"text\":\"x\",\"y\":[{}0]}}", "{\"a\":0},".repeat(60_000));
        while self.is_running() {
            self.count_answer(user, &raw.ask("POST", "/v1/agents/a/messages", &body));
        }
    }

    /// Sends messages and large bodies on the channel.
    fn send_events(&self, hook: &Hook) {
        let mut rng = self.rng(9);
        for n in 0.. {
            if !self.is_running() {
                return;
            }
            let thread = format!("t{}", rng.u64(..40));
            let files = if n % 8 == 0 { vec![json!({ "a": 0 }); 60_000] } else { Vec::new() };
            let body = json!({ "sender": "dan", "thread": thread, "text": "hello", "files": files }).to_string();
            self.count_answer("Dan", &hook.send(&format!("e{n}"), &body));
        }
    }

    /// Sends messages of the owner one after another and returns their ids.
    fn send_owner_messages(&self, raw: &Raw, until: Instant) -> Vec<String> {
        let mut said = Vec::new();
        while Instant::now() < until || said.is_empty() {
            let answer = message(raw, "a", "own", "hello");
            assert_eq!(answer.0, 202, "{answer:?}");
            let id = answer.1["message_id"].as_str().expect("an id").to_owned();
            wait_for("the owner's answer", || {
                let (status, view) = raw.get(&format!("/v1/messages/{id}?wait_ms=5000"));
                assert_eq!((status, view["notice"].as_bool().unwrap_or_default()), (200, false), "{view}");
                view["reply"].is_string()
            });
            said.push(id);
            assert_eq!(get_at(&raw.port(), "/healthz", None), 200);
            assert_eq!(get_at(&raw.port(), "/readyz", None), 200);
            assert_eq!(get_at(&raw.port(), "/v1/agents", Some(&raw.token)), 200, "the owner can connect to the port");
        }
        said
    }
}

/// Returns the maximum number of turns of one other person at agent `a` between a message of the owner and its turn.
fn turns_before(host: &TestHost, said: &[String]) -> usize {
    let sessions = host.status()["sessions"].as_array().expect("a list").clone();
    let at_a: BTreeSet<String> = sessions
        .iter()
        .filter(|session| session["agent"] == "a")
        .filter_map(|session| session["id"].as_str().map(str::to_owned))
        .collect();
    let text = |entry: &Value, key: &str| entry["data"][key].as_str().unwrap_or_default().to_owned();
    // For each waiting message of the owner, the turns of other people since its record, by person.
    let mut waiting: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    let mut most = 0;
    for entry in host.ledger() {
        let message = text(&entry, "message");
        match entry["data"]["what"].as_str() {
            Some("message.recorded") if said.contains(&message) => {
                waiting.insert(message, BTreeMap::new());
            }
            Some("turn.opened") if said.contains(&message) => {
                let before = waiting.remove(&message).expect("it was recorded before");
                most = before.values().map(BTreeSet::len).max().unwrap_or(0).max(most);
            }
            Some("turn.opened") if at_a.contains(&text(&entry, "session")) => {
                for others in waiting.values_mut() {
                    others.entry(text(&entry, "principal")).or_default().insert(text(&entry, "turn"));
                }
            }
            _ => {}
        }
    }
    assert!(waiting.is_empty(), "messages without a turn: {waiting:?}");
    most
}

/// Returns the peak memory of a process.
fn peak_memory_bytes(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel reports it");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024
}

#[test]
fn attackers_reach_their_quotas_and_delay_no_other_person() {
    let long = std::env::var_os("IRONCLAW_LONG").is_some();
    let (seed, seconds) = run_settings("IRONCLAW_QUOTA_SECONDS", if long { LONG_SECONDS } else { SECONDS });
    let host = hooks::new_host(Build::Plain, SETTINGS);
    host.agent("b");
    for name in ["Bob", "Cem", "Dan"] {
        host.ctl(&["person", "add", name]).ok();
    }
    host.ctl(&["memory", "add", "b", "alpha beta gamma delta epsilon zeta eta theta"]).ok();
    let receiver = Receiver::accepting();
    let hook = Hook::add(&host, "desk", &receiver, &[]);
    host.ctl(&["person", "link", "Dan", "desk:dan", "--yes"]).ok();
    let owner = Raw::of(&host);
    let (bob, cem) = (Raw::of_person(&host, "Bob"), Raw::of_person(&host, "Cem"));
    let campaign = Campaign { host: &host, seed, over: AtomicBool::new(false), answers: Answers::default() };
    let said = std::thread::scope(|scope| {
        let all = &campaign;
        scope.spawn(|| all.flood("Bob", &bob, "a", 1));
        scope.spawn(|| all.flood("Cem", &cem, "a", 2));
        scope.spawn(|| all.flood("Cem", &cem, "b", 3));
        scope.spawn(|| all.hold_connections(&bob));
        scope.spawn(|| all.send_large_bodies("Bob", &bob));
        scope.spawn(|| all.send_large_bodies("Cem", &cem));
        scope.spawn(|| all.send_events(&hook));
        // The guard also ends the attacks after a panic.
        let ended = SetOnDrop(&all.over);
        let said = all.send_owner_messages(&owner, Instant::now() + Duration::from_secs(seconds));
        drop(ended);
        said
    });
    let answers = campaign.answers.lock().expect("no holder panics").clone();
    println!("{} messages of the owner; {answers:?}", said.len());
    for seen in ["Bob 429 too_many_conversations", "Cem 429 too_many_conversations", "Dan 429 too_many_conversations"] {
        assert!(answers.contains_key(seen), "no attacker got {seen}: {answers:?}");
    }
    for seen in ["Bob 400 request_malformed", "Cem 400 request_malformed", "Dan 400 request_malformed"] {
        assert!(answers.contains_key(seen), "no attacker got {seen}: {answers:?}");
    }
    let most = turns_before(campaign.host, &said);
    assert!(most <= TURNS_OF_ONE_MAX, "seed {seed}: the owner waited for {most} turns of one person");
    assert_eq!(host.entries("session.parked").len() + host.entries("session.quarantined").len(), 0, "seed {seed}");
    let bytes = peak_memory_bytes(host.pid().expect("it runs"));
    println!("at most {} MiB in the host", bytes >> 20);
    assert!(bytes <= HOST_BYTES_MAX, "seed {seed}: {bytes} bytes");
}
