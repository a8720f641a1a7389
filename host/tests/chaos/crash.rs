//! Kills at each fail point of a round: every message is answered exactly once, and no process outlives its host.
//!
//! The tests use the real programs in a build with fail points. The fast tier divides the points among samples and users;
//! `IRONCLAW_LONG=1` takes all. See `kill` for random moments.

use crate::layers::source::HOST_CRATES;
use crate::support::client::Client;
use crate::support::host_fixture::{Build, TestHost, WAIT_MAX, alive, kill, wait_for};
use crate::support::jail_fixture::{HostUser, host_users};
use crate::support::processes::{Watch, descendants, no_process_uses, used};
use crate::support::record;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Stdio};

/// The fail points of the host, in the order of a round.
const OF_THE_HOST: [&str; 12] = [
    "record",
    "turn_open",
    "project",
    "call_recorded",
    "versions_kept",
    "call_reported",
    "output_sealed",
    "accept",
    "intent",
    "send",
    "receipt",
    "erase",
];

/// The points of a round at which its message may not be on disk yet, and counts as not received.
const NOT_ON_DISK: [&str; 3] = ["record", "turn_open", "project"];

/// The fail points of a ledger rotation, which `ops::rotation` uses.
const OF_THE_LEDGER: [&str; 3] = ["chain_archived", "chain_begun", "chain_rotated"];

/// The fail point of an emergency stop, which `ops::stops` uses.
const OF_A_PANIC: [&str; 1] = ["panic"];

/// The fail points of a delivery over a network, which `e2e::deliveries` uses.
const OF_A_DELIVERY: [&str; 2] = ["delivery_taken", "delivery_sent"];

/// The fail points of questions and schedules, which their tests in `e2e` use.
const OF_PEOPLE_AWAY: [&str; 2] = ["question_answered", "schedule_run"];

/// The fail points of a backup and a restore, which `ops::backup` uses.
const OF_A_BACKUP: [&str; 4] = ["backup_copied", "restore_named", "restore_placed", "restore_staged"];

/// The fail points of a sandbox.
const OF_THE_SANDBOX: [&str; 1] = ["outbound_commit"];

/// A message, a part of its answer, and the file that the turn writes.
struct Sample {
    text: &'static str,
    answer: &'static str,
    file: Option<(&'static str, &'static str)>,
}

const HELLO: Sample = Sample { text: "hello", answer: "Hello.", file: None };
const WRITE: Sample = Sample { text: "write a.txt: x", answer: "a.txt", file: Some(("a.txt", "x")) };

#[test]
fn every_fail_point_in_the_code_is_tested() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
    let named = |directory: &str, call: &str, end: &str| -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for (path, text) in record::files(&crates.join(directory)) {
            let text = String::from_utf8(text).unwrap_or_else(|_| panic!("{} is no text", path.display()));
            for rest in text.split(call).skip(1) {
                let argument = rest.split(end).next().expect("split gives one");
                found.extend(argument.split('"').skip(1).step_by(2).map(str::to_owned));
            }
        }
        found
    };
    let listed = |points: &[&str]| points.iter().map(|&point| point.to_owned()).collect::<BTreeSet<_>>();
    let of_keys: Vec<&str> = crate::ops::keys::points().collect();
    let of_changes = &crate::chaos::changes_random::POINTS;
    let of_packages = &crate::e2e::packages::POINTS;
    let of_skills = &crate::e2e::skills::POINTS;
    let elsewhere = [
        OF_THE_LEDGER.as_slice(),
        &OF_A_PANIC,
        &OF_A_DELIVERY,
        &OF_PEOPLE_AWAY,
        &OF_A_BACKUP,
        &crate::security::requests::POINTS,
        of_changes,
        of_packages,
        of_skills,
        &of_keys,
    ]
    .concat();
    let of_the_host = &listed(&OF_THE_HOST) | &listed(&elsewhere);
    let in_the_host =
        HOST_CRATES.iter().flat_map(|crate_of_host| named(&format!("{crate_of_host}/src"), "failpoint::reach(", ");"));
    assert_eq!(in_the_host.collect::<BTreeSet<_>>(), of_the_host);
    assert_eq!(named("sandbox/src", "failpoint.as_deref() == ", "{"), listed(&OF_THE_SANDBOX));
}

#[test]
fn message_is_answered_once_if_the_host_dies_at_any_point() {
    for user in host_users() {
        let half = usize::from(user == HostUser::Ordinary);
        check_kill_at_points(user, &HELLO, &["call_recorded", "versions_kept", "call_reported", "erase"], half);
    }
}

#[test]
fn call_is_answered_once_if_the_host_dies_at_any_point() {
    for user in host_users() {
        check_kill_at_points(user, &WRITE, &["erase"], usize::from(user == HostUser::Root));
    }
}

#[test]
fn waiting_request_is_answered_once_after_it_is_sent_again() {
    let mut host = TestHost::own(Build::Failpoints).started_with("a");
    host.down();
    let on_the_way =
        OF_THE_HOST.iter().filter(|point| !point.starts_with("call") && !["versions_kept", "erase"].contains(point));
    for (number, point) in on_the_way.enumerate() {
        host.up_failing_at(point);
        let host_pid = host.pid().expect("it runs");
        let (client, event) = (Client::of(&host), format!("event-{number}"));
        let answered = client.send_and_wait("a", HELLO.text, &event, WAIT_MAX);
        // At `receipt` the client may already have the answer.
        assert!(answered.is_err() || *point == "receipt", "{point}: the host dies before it answers");
        wait_for(&format!("the host to die at {point}"), || !alive(host_pid));
        no_process_uses(&host.home);
        host.up();
        let again = client.send_and_wait("a", HELLO.text, &event, WAIT_MAX).expect("the host answers");
        assert_eq!(again["message"]["status"], "delivered", "{point}: {again}");
        let messages = recorded(&host);
        assert_eq!(messages.len(), number + 1, "{point}");
        check_answered_once(&host, point, &messages, &HELLO);
        host.down();
    }
}

/// Kills the host at each second point, beginning with the point of the number `half`; at each point if `IRONCLAW_LONG` is set. The two
/// samples and the two users take different halves.
fn check_kill_at_points(user: HostUser, sample: &Sample, not_on_the_way: &[&str], half: usize) {
    let is_long = std::env::var_os("IRONCLAW_LONG").is_some();
    let halves = OF_THE_HOST.iter().enumerate().filter(|(number, _)| is_long || number % 2 == half);
    let points: Vec<_> = halves.map(|(_, point)| point).filter(|point| !not_on_the_way.contains(point)).collect();
    let mut host = TestHost::with(user, Build::Failpoints, None).started_with("a");
    host.down();
    // On a busy machine the watch may miss a process that lives for a few milliseconds. Every observed process must have ended.
    let mut most = 0;
    for point in &points {
        host.up_failing_at(point);
        let host_pid = host.pid().expect("it runs");
        let watch = Watch::over(host_pid);
        let before = recorded(&host).len();
        let chat = chat(&host, sample.text);
        wait_for(&format!("the host to die at {point}"), || !alive(host_pid));
        let seen = watch.check_all_ended();
        assert!(!seen.is_empty(), "{user:?} {point}: the watch saw no process");
        most = most.max(seen.len());
        no_process_uses(&host.home);
        // At `receipt` a person may already see the answer. At earlier points no person may see it.
        let saw_answer = wait_for_exit(chat) == 0;
        assert!(!saw_answer || **point == "receipt", "{user:?} {point}: an answer was visible before its receipt");
        host.up();
        // A message that is confirmed with its answer may share the commit of its turn, so an early kill can leave nothing of it.
        if NOT_ON_DISK.contains(point) && recorded(&host).len() == before {
            host.say("a", sample.text);
        }
        let messages = recorded(&host);
        assert_eq!(messages.len(), before + 1, "{user:?} {point}");
        check_answered_once(&host, point, &messages, sample);
        host.down();
        no_process_uses(&host.home);
    }
    assert!(most >= 5, "{user:?}: at some point the watch sees the launcher and two processes of each jail");
    let unclean = host.entries("host.started").iter().filter(|e| e["data"]["unclean_end_of"].is_string()).count();
    assert_eq!(unclean, points.len(), "{user:?}");
}

#[test]
fn message_is_answered_once_if_a_sandbox_dies_before_its_bell() {
    for user in host_users() {
        for sample in [&HELLO, &WRITE] {
            let mut host = TestHost::with(user, Build::Failpoints, None).started_with("a");
            host.down();
            // The host survives and reads the rows in the queue of the dead sandbox.
            host.up_failing_at("outbound_commit");
            host.say("a", sample.text);
            check_answered_once(&host, "outbound_commit", &recorded(&host), sample);
            host.down();
            // The host dies too. The next launch recovers the queue, and the host reads the rows.
            host.up_failing_at("outbound_commit");
            let host_pid = host.pid().expect("it runs");
            let watch = Watch::over(host_pid);
            let chat = chat(&host, sample.text);
            let mut sandbox = None;
            wait_for("the sandbox", || {
                sandbox = descendants(host_pid).into_iter().find(|(_, name)| name.starts_with("ironclaw-sand"));
                sandbox.is_some()
            });
            let (sandbox, _) = sandbox.expect("found");
            wait_for("the sandbox to die", || !sandbox.is_alive());
            kill(host_pid);
            watch.check_all_ended();
            wait_for_exit(chat);
            no_process_uses(&host.home);
            host.up();
            let messages = recorded(&host);
            assert_eq!(messages.len(), 2);
            check_answered_once(&host, "outbound_commit and the host", &messages, sample);
        }
    }
}

#[test]
fn launcher_death_ends_the_host_and_is_recorded() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None).started_with("a");
        host.say("a", "my name is Ada");
        let (host_pid, boots) = (host.pid().expect("it runs"), host.entries("host.started"));
        let watch = Watch::over(host_pid);
        let used = used(host_pid);
        assert_eq!(used.len(), 5, "{user:?}: {used:?}");
        let launcher = host.status()["host"]["launcher_pid"].as_i64().expect("a number");
        kill(launcher as i32);
        wait_for("the host to end without its launcher", || !alive(host_pid));
        watch.check_all_ended();
        no_process_uses(&host.home);
        host.up();
        let again = host.entries("host.started");
        assert_eq!(again.len(), boots.len() + 1, "{user:?}");
        let last = &again[again.len() - 1]["data"];
        assert_eq!(last["unclean_end_of"], boots[boots.len() - 1]["data"]["boot"], "{user:?}");
        let session = host.session()["id"].as_str().expect("an id").to_owned();
        let shown = host.ctl(&["--json", "session", "show", &session]).ok().json();
        assert_eq!(shown["failures"], 0, "{user:?}: the crash counts as no failure of the session");
        // A start wakes the conversations in use.
        assert!(
            ["asleep", "starting", "awake"].contains(&shown["state"].as_str().expect("a state")),
            "{user:?}: {shown}"
        );
        assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.", "{user:?}");
        host.ctl(&["audit", "verify"]).ok();
        host.restart();
        let orderly = host.entries("host.started");
        assert_eq!(orderly[orderly.len() - 1]["data"]["unclean_end_of"], Value::Null, "{user:?}");
    }
}

/// Sends a message without waiting for the answer.
fn chat(host: &TestHost, text: &str) -> Child {
    let mut command = host.command("ironctl");
    command.arg("--home").arg(&host.home).args(["--json", "chat", "a", text]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("ironctl starts")
}

fn wait_for_exit(mut child: Child) -> i32 {
    child.wait().expect("it ends").code().unwrap_or(-1)
}

/// Returns the ids of all recorded messages, oldest first.
fn recorded(host: &TestHost) -> Vec<String> {
    let text = |entry: &Value| entry["data"]["message"].as_str().expect("an id").to_owned();
    host.entries("message.recorded").iter().map(text).collect()
}

/// Waits until every message is answered, and checks the counts in the ledger, in the record and in the history of the person.
#[track_caller]
fn check_answered_once(host: &TestHost, point: &str, messages: &[String], sample: &Sample) {
    let user = host.user;
    for message in messages {
        let mut why = Value::Null;
        wait_for(&format!("an answer to {message} after {point}"), || {
            why = host.ctl(&["--json", "why", message]).ok().json();
            why["message"]["status"] == "delivered"
        });
        let view = &why["message"];
        assert!(view["reply"].as_str().is_some_and(|reply| reply.contains(sample.answer)), "{user:?} {point}: {why}");
        assert_eq!((&view["receipt"], &view["notice"]), (&"received".into(), &false.into()), "{user:?} {point}: {why}");
        let received = |stage: &Value| stage["stage"] == "delivery.received";
        let stages = why["stages"].as_array().expect("a list");
        assert_eq!(stages.iter().filter(|stage| received(stage)).count(), 1, "{user:?} {point}: {why}");
    }
    for what in ["delivery.intended", "delivery.received"] {
        assert_eq!(host.entries(what).len(), messages.len(), "{user:?} {point}: {what}");
    }
    let db = record::open(&host.home);
    let total = |sql| usize::try_from(record::count(&db, sql)).expect("a count");
    assert_eq!(
        total("SELECT count(*) FROM deliveries WHERE state = 'received' AND session_id IS NOT NULL"),
        messages.len(),
        "{user:?} {point}"
    );
    assert_eq!(
        total("SELECT count(*) FROM deliveries WHERE session_id IS NOT NULL"),
        messages.len(),
        "{user:?} {point}"
    );
    assert_eq!(total("SELECT count(*) FROM messages"), messages.len(), "{user:?} {point}");
    assert_eq!(total("SELECT count(*) FROM turns WHERE state = 'open'"), 0, "{user:?} {point}");
    assert_eq!(total("SELECT count(*) FROM calls WHERE state = 'permitted'"), 0, "{user:?} {point}");
    if user == HostUser::current() {
        let history = Client::of(host).history("a");
        let authors: Vec<&str> = history.iter().filter_map(|line| line["author"].as_str()).collect();
        assert_eq!(authors, ["person", "agent"].repeat(messages.len()), "{user:?} {point}: {history:?}");
    }
    if let Some((name, content)) = sample.file {
        let file = host.session_directory().join("workspace").join(name);
        assert_eq!(std::fs::read_to_string(&file).expect("written").trim_end(), content, "{user:?} {point}");
    }
    assert!(host.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "), "{user:?} {point}");
}
