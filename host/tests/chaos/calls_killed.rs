//! Kills of the host, of the process of an MCP server and of the sandbox at each moment of a call: the server acts at most once, the
//! person sees the true outcome, and no call is sent twice.
//!
//! The host stops at a fail point while a process is killed. See `security::mcp` for kills of the host after an approval, and
//! `calls_random` for random moments.

use crate::e2e::mcp::call;
use crate::e2e::requests::answered;
use crate::security::mcp::ends::{add_program, kill_all};
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost, alive, kill, wait_for};
use crate::support::mcp_server::program;
use crate::support::processes::is_stopped;
use crate::support::record;
use nix::sys::signal::{Signal, kill as signal};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A process that is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Host,
    Server,
    Sandbox,
}

/// A moment of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// At a fail point of the host.
    At(&'static str),
    /// After the server acted, and before its answer.
    Acted,
}

/// Before the call is recorded as started.
const BEFORE_START: Moment = Moment::At("call_recorded");
/// After its start is recorded, and before it is sent.
const STARTED: Moment = Moment::At("call_started");
/// After its answer, and before its result is recorded.
const ANSWERED: Moment = Moment::At("call_sent");
/// After its result is recorded.
const SETTLED: Moment = Moment::At("output_sealed");

/// A kill, and its true consequences.
struct Case {
    victim: Victim,
    moment: Moment,
    /// The possible consequences: two where the host may notice the kill before or after it sends the call or reads its answer.
    outcomes: &'static [Outcome],
}

/// The number of acts of the server, the status of the call, and a part of the words that its person sees.
type Outcome = (usize, &'static str, &'static str);

const VOID: Outcome = (0, "void", "before it began, so it was not made.");
const NOT_SENT: Outcome = (0, "unknown", "It is unknown if it had its effect");
const UNKNOWN: Outcome = (1, "unknown", "It is unknown if it had its effect");
const NO_ANSWER_UNSENT: Outcome = (0, "unknown", "unknown if the server acted");
/// The host noticed the end of the server before it sent the call.
const NOT_REACHED: Outcome = (0, "failed", "nothing was sent");
const NO_ANSWER: Outcome = (1, "unknown", "unknown if the server acted");
const DONE: Outcome = (1, "done", "acted");

#[rustfmt::skip]
const CASES: [Case; 15] = [
    Case { victim: Victim::Host, moment: BEFORE_START, outcomes: &[VOID] },
    Case { victim: Victim::Host, moment: STARTED, outcomes: &[NOT_SENT] },
    Case { victim: Victim::Host, moment: Moment::Acted, outcomes: &[UNKNOWN] },
    Case { victim: Victim::Host, moment: ANSWERED, outcomes: &[UNKNOWN] },
    Case { victim: Victim::Host, moment: SETTLED, outcomes: &[DONE] },
    // The host may send the call before it reads the end of the killed process. It then says that the outcome is unknown.
    Case { victim: Victim::Server, moment: BEFORE_START, outcomes: &[DONE, NO_ANSWER_UNSENT, NOT_REACHED] },
    Case { victim: Victim::Server, moment: STARTED, outcomes: &[NO_ANSWER_UNSENT, NOT_REACHED] },
    Case { victim: Victim::Server, moment: Moment::Acted, outcomes: &[NO_ANSWER] },
    Case { victim: Victim::Server, moment: ANSWERED, outcomes: &[DONE] },
    Case { victim: Victim::Server, moment: SETTLED, outcomes: &[DONE] },
    Case { victim: Victim::Sandbox, moment: BEFORE_START, outcomes: &[VOID] },
    Case { victim: Victim::Sandbox, moment: STARTED, outcomes: &[NOT_SENT, UNKNOWN, DONE] },
    Case { victim: Victim::Sandbox, moment: Moment::Acted, outcomes: &[UNKNOWN] },
    Case { victim: Victim::Sandbox, moment: ANSWERED, outcomes: &[UNKNOWN, DONE] },
    Case { victim: Victim::Sandbox, moment: SETTLED, outcomes: &[DONE] },
];

#[test]
fn kill_at_each_moment_of_a_call_leaves_one_act() {
    let directory = program();
    let mut host = TestHost::own(Build::Failpoints);
    let stop = host.home.with_file_name("stop");
    host.set_env("IRONCLAW_STOP_FILE", stop.to_str());
    host.up();
    host.agent("a");
    add_program(&host, directory.path());
    let mut failed = Vec::new();
    for (number, case) in CASES.iter().enumerate() {
        let name = format!("{:?}-{:?}-{number}", case.victim, case.moment);
        // A process of the server runs before the call.
        let (said, _) = call(&host, &format!("{number}-before"), "/allow send -- use local__hung");
        assert_eq!(said["status"], "done", "{name}: {said}");
        let (acts, starts) = (acts(&host), host.entries("call.started").len());
        let tool = match case.moment {
            Moment::At(point) => {
                std::fs::write(&stop, point).expect("written");
                "act"
            }
            Moment::Acted => "hang",
        };
        let raw = Raw::of(&host);
        let text = format!("use local__{tool}");
        let body = json!({ "text": text, "thread": number.to_string(), "allow": ["send"] }).to_string();
        let (status, recorded) = raw.ask("POST", "/v1/agents/a/messages", &body);
        assert_eq!(status, 202, "{name}: {recorded}");
        let message = recorded["message_id"].as_str().expect("an id");
        kill_at(&host, case, acts);
        answered(&host, message);
        if case.moment == Moment::Acted {
            // It would answer no later call either.
            kill_all(&host, "perl");
        }
        let seen = Seen {
            acts: self::acts(&host) - acts,
            starts: host.entries("call.started").len() - starts,
            calls: calls_of(&host, message),
        };
        if !seen.is_of(case) {
            failed.push(format!("{name}: {seen:?}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    host.ctl(&["audit", "verify"]).ok();
}

/// Kills the victim at its moment, and starts the host again if it was the victim.
fn kill_at(host: &TestHost, case: &Case, acts_before: usize) {
    let pid = host.pid().expect("the host runs");
    match case.moment {
        Moment::At(point) => wait_for(&format!("the host to stop at {point}"), || is_stopped(pid)),
        Moment::Acted => wait_for("the act", || acts(host) > acts_before),
    }
    match case.victim {
        Victim::Host => {
            kill(pid);
            wait_for("the end of the host", || !alive(pid));
            return host.up();
        }
        Victim::Server => assert!(kill_all(host, "perl") > 0),
        Victim::Sandbox => assert!(kill_all(host, "ironclaw-sandbo") > 0),
    }
    signal(Pid::from_raw(pid), Signal::SIGCONT).expect("the host runs");
}

/// Returns the number of acts that the server counted in its own directory.
fn acts(host: &TestHost) -> usize {
    let files = record::files(&host.home.join("mcp"));
    files.iter().filter(|(path, _)| path.ends_with("hung")).map(|(_, text)| text.len()).sum()
}

/// The observed consequence of a kill.
#[derive(Debug)]
struct Seen {
    acts: usize,
    starts: usize,
    /// The explanation of each call of the message.
    calls: Vec<Value>,
}

impl Seen {
    fn is_of(&self, case: &Case) -> bool {
        let [call] = self.calls.as_slice() else { return false };
        let shown = format!("{} {}", call["summary"], call["result"]);
        let is_outcome =
            |(acts, status, words): &Outcome| self.acts == *acts && call["status"] == **status && shown.contains(words);
        self.starts <= 1 && case.outcomes.iter().any(is_outcome)
    }
}

/// Returns the explanations of the calls in the conversation of a message.
fn calls_of(host: &TestHost, message: &str) -> Vec<Value> {
    let session = host.ctl(&["--json", "why", message]).ok().json()["message"]["session_id"].clone();
    let recorded = [host.entries("call.recorded"), host.entries("call.refused")].concat();
    let own = recorded.iter().filter(|entry| entry["data"]["session"] == session);
    let ids: BTreeSet<&str> = own.filter_map(|entry| entry["data"]["call"].as_str()).collect();
    ids.iter().map(|id| host.ctl(&["--json", "why", id]).ok().json()).collect()
}
