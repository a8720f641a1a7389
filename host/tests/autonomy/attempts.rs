//! The attempts of a suite: an attacker chooses every text that the agent reads and each call that the model makes.
//!
//! Each attempt has a conversation of its own. It must be stopped by the stage that it names, with its code, and have no effect. See
//! `stage`.

use super::stage::{Logged, Stage, word};
use super::stand_ins::Model;
use super::suite::{Call, Suite};
use crate::support::host_fixture::TestHost;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    attempt: Vec<Attempt>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Attempt {
    name: String,
    /// The stage and the code; `runs` for a call that shows that the right values run.
    stopped: String,
    turns: Vec<Turn>,
}

/// A message, and the calls of the model in its turn.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Turn {
    typed: String,
    calls: Vec<Call>,
    /// The person approves the calls of this turn.
    #[serde(default)]
    yes: bool,
}

/// Returns the stage that stopped a call, with its code; nothing for a call that passed each stage.
pub(super) fn stopped_by(stage: &Stage<'_>, call: &Value) -> String {
    stops(&stage.host, call)
}

/// Returns the same for a call of this host.
pub(super) fn stops(host: &TestHost, call: &Value) -> String {
    let why = host.ctl(&["--json", "why", word(&call["id"])]).ok().json();
    let stops = why["stages"].as_array().expect("stages").iter().find(|stage| stage["answer"] != "pass");
    stops.map(|stage| format!("{} {}", word(&stage["stage"]), word(&stage["code"]))).unwrap_or_default()
}

/// Makes one attempt. Returns the differences from the expected end.
fn differences(stage: &Stage<'_>, attempt: &Attempt, thread: &str) -> Vec<String> {
    let mut last = Value::Null;
    let before = stage.logged();
    for turn in &attempt.turns {
        let approves = |_: &str, _: &Value| turn.yes;
        let ended = stage.say(thread, &turn.typed, Model::calling(turn.calls.clone()), &approves);
        last = ended.calls.last().cloned().unwrap_or_default();
    }
    let call = attempt.turns.iter().rev().find_map(|turn| turn.calls.last()).expect("a call");
    let mut found = Vec::new();
    if last["tool"] != call.tool.as_str() {
        found.push(format!("the last call is {last}"));
        return found;
    }
    let stopped = match stopped_by(stage, &last) {
        passed if passed.is_empty() && last["status"] == "done" => "runs".to_owned(),
        stopped => stopped,
    };
    if stopped != attempt.stopped {
        found.push(format!("{stopped:?}, and not {:?}; its status is {}", attempt.stopped, last["status"]));
    }
    let may_act = |call: &Logged| {
        let turns = attempt.turns.iter().filter(|turn| turn.yes || attempt.stopped == "runs");
        turns.flat_map(|turn| &turn.calls).any(|own| own.tool == call.tool)
    };
    let ran = stage.logged().into_iter().skip(before.len());
    let acted = ran.filter(|call| call.is_done && stage.suite.subject(&call.tool).is_some() && !may_act(call));
    found.extend(acted.map(|call| format!("it ran: {} {}", call.tool, call.arguments)));
    found
}

/// Makes attempts of a suite on one host: all, or a slice by the seed. Returns the number of attempts that the suite has.
pub(super) fn stopped_at_their_stages(suite: &Suite, most: usize) -> usize {
    let file: File = super::suite::toml_file(&suite.directory.join("attempts.toml"));
    let stage = Stage::serving(suite, "");
    let wanted = std::env::var("ATTEMPT").unwrap_or_default();
    let mut attempts: Vec<&Attempt> = file.attempt.iter().filter(|attempt| attempt.name.contains(&wanted)).collect();
    fastrand::Rng::with_seed(super::campaign::seed()).shuffle(&mut attempts);
    attempts.truncate(most);
    let mut found = Vec::new();
    for (at, attempt) in attempts.into_iter().enumerate() {
        let differences = differences(&stage, attempt, &format!("attempt-{at}"));
        found.extend(differences.into_iter().map(|difference| format!("{}: {difference}", attempt.name)));
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
    stage.host.ctl(&["audit", "verify"]).ok();
    file.attempt.iter().filter(|attempt| attempt.stopped != "runs").count()
}

/// The attempts of a slice.
const SLICE: usize = 36;

#[test]
fn attempts_of_desk_are_stopped_at_their_stages() {
    let most = if super::campaign::is_whole() { usize::MAX } else { SLICE };
    assert!(stopped_at_their_stages(&Suite::own("desk"), most) >= 80);
}
