//! The cost of many schedules: the time to add one, the time to find the due ones and to compute a next time, the time from a due
//! time to the request to the model, and the system calls of a minute in which none is due.
//!
//! Asserts no figure: a noisy machine fails no bench, and only the ratios of one run are meaningful. See `docs/performance.md`.
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

#[path = "../round/client.rs"]
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
#[path = "../../tests/support/many_schedules.rs"]
mod many_schedules;
#[path = "../../examples/model_server/server.rs"]
#[allow(dead_code)]
mod model_server;
#[path = "../../tests/support/record.rs"]
#[allow(dead_code)]
mod record;
#[path = "../idle/strace.rs"]
mod strace;

use client::Client;
use figures::{Report, Samples};
use host_fixture::TestHost;
use ironclaw_calendar::{Recurrence, Series, Zone};
use ironclaw_host::driven::schedules as table;
use ironclaw_state::{Error, State};
use jiff::Timestamp;
use model_server::{Act, Server};
use serde_json::json;
use std::sync::mpsc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Schedules in the record, for one measurement each.
const MANY: [usize; 2] = [0, 10_000];
/// Measured additions, and measured searches.
const TIMES: usize = 200;
/// Measured runs.
const RUNS: usize = 40;
/// The time from the proposal of a run to its due time.
const AHEAD: Duration = Duration::from_millis(500);
/// Schedules that one search finds at most, as in the worker of the host.
const FOUND_MAX: usize = 64;
/// The time in which a start finishes its remaining work.
const SETTLE: Duration = Duration::from_secs(75);
const MINUTE: Duration = Duration::from_secs(60);

fn main() {
    let mut report = Report::default();
    next_times(&mut report);
    let user =
        if nix::unistd::geteuid().is_root() { jail_fixture::HostUser::Root } else { jail_fixture::HostUser::Ordinary };
    for many in MANY {
        let host = TestHost::with(user, host_fixture::Build::Plain, None);
        host.up();
        host.agent("measured");
        host.down();
        many_schedules::make_schedules(&host, "measured", many, &daily());
        search(&mut report, &host, many);
        host.up();
        sleep(SETTLE);
        let pid = host.pid().expect("it runs");
        println!(
            "{many} schedules, none due in a minute: {} system calls",
            strace::system_calls(pid, || sleep(MINUTE))
        );
        add(&mut report, &host, many);
        run(&mut report, &host, many);
        host.down();
    }
    let ratio = |report: &Report, what: &str| {
        let [none, all] = MANY.map(|many| report.p50(&format!("{what}_{many}")).expect("measured"));
        all / none
    };
    for what in ["added", "searched", "run"] {
        let grown = ratio(&report, what);
        report.ratio(&format!("{what}_grown"), &format!("{what}: with {} schedules / with none", MANY[1]), grown);
    }
    report.print();
}

/// Returns a series whose first time is in a day.
fn daily() -> Series {
    let recurrence = Recurrence::every("1d").expect("an interval");
    Series { recurrence, zone: Zone::utc(), anchor: Timestamp::now().as_millisecond() }
}

fn next_times(report: &mut Report) {
    let now = Timestamp::now().as_millisecond();
    let zone = Zone::parse("Europe/Berlin").expect("a zone");
    for (key, text) in [("next_daily", "0 8 * * *"), ("next_leap", "0 8 29 2 *")] {
        let recurrence = Recurrence::cron(text).expect("an expression");
        let series = Series { recurrence, zone: zone.clone(), anchor: 0 };
        let samples: Samples = (0..TIMES)
            .map(|_| {
                let begun = Instant::now();
                std::hint::black_box(series.next_after(std::hint::black_box(now)));
                begun.elapsed().as_secs_f64()
            })
            .collect();
        report.microseconds(key, &format!("next time of {text}"), &samples);
    }
}

/// Measures the search for due schedules when none is due.
fn search(report: &mut Report, host: &TestHost, many: usize) {
    let master = record::master(&host.home);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let samples = runtime.block_on(async {
        let state = State::open(&host.home.join("state.db"), &master.state_key()).expect("the state opens");
        let mut samples = Samples::default();
        for _ in 0..TIMES {
            let begun = Instant::now();
            let look = state.read(|tx| {
                let due = table::due(tx, tx.wall(), FOUND_MAX)?;
                Ok::<_, Error>((due, table::open(tx)?.len(), table::next_due(tx, i64::MIN)?))
            });
            assert!(look.await.expect("read").0.is_empty(), "none is due");
            samples.push(begun.elapsed().as_secs_f64());
        }
        state.close().await;
        samples
    });
    report.times(&format!("searched_{many}"), &format!("{many} schedules: look for due ones"), &samples);
}

/// Proposes and approves a schedule, and waits until it is applied.
fn add_one(client: &mut Client, agent: &str, payload: &serde_json::Value) {
    let body = json!({ "kind": "schedule", "agent": agent, "payload": payload, "reason": "measured" });
    let id = client.post("/v1/changes", &body.to_string())["id"].as_str().expect("an id").to_owned();
    let shown = client.get(&format!("/v1/waiting/{id}"));
    let body = json!({ "approve": shown["shown_digest"] }).to_string();
    client.post(&format!("/v1/waiting/{id}/decision"), &body);
    let done = client.get(&format!("/v1/waiting/{id}?wait_ms=60000"));
    assert_eq!(done["status"], "done", "{done}");
}

/// Measures the addition of a schedule from its proposal until it is applied.
fn add(report: &mut Report, host: &TestHost, many: usize) {
    let mut client = Client::connect(host);
    let (mut added, mut bare) = (Samples::default(), Samples::default());
    for number in 0..TIMES {
        let payload = json!({ "prompt": format!("water {number}"), "every": "1d" });
        let begun = Instant::now();
        add_one(&mut client, "measured", &payload);
        added.push(begun.elapsed().as_secs_f64());
        // For comparison: a request that writes only one row and its entry.
        let begun = Instant::now();
        client.post("/v1/agents/measured/mode", r#"{"mode":"enforce"}"#);
        bare.push(begun.elapsed().as_secs_f64());
    }
    report.times(&format!("added_{many}"), &format!("{many} schedules: submit → applied"), &added);
    report.times(&format!("bare_{many}"), "  a request that writes one row", &bare);
}

/// Measures the time from a due time until the model server gets the request, in turns with a message to an awake session.
fn run(report: &mut Report, host: &TestHost, many: usize) {
    let (asked, requests) = mpsc::channel();
    let server = Server::start(move |_| {
        let _ = asked.send(Timestamp::now());
        Act::Say("word ".to_owned())
    });
    let base = format!("{}/v1", server.url());
    host.ctl(&["model", "add", "m", "--kind", "openai", "--base-url", &base, "--model", "small", "--no-test"]).ok();
    host.ctl(&["agent", "add", "runs", "--model", "m"]).ok();
    let mut client = Client::connect(host);
    let (mut runs, mut messages) = (Samples::default(), Samples::default());
    let passed = |since: Timestamp| {
        let at = requests.recv_timeout(Duration::from_secs(60)).expect("the model is asked");
        at.duration_since(since).as_secs_f64()
    };
    // The first one of each kind wakes its session and does not count.
    for number in 0..=RUNS {
        let due = Timestamp::now() + AHEAD;
        let due = Timestamp::from_millisecond(due.as_millisecond()).expect("in range");
        add_one(&mut client, "runs", &json!({ "prompt": format!("run {number}"), "at": due.to_string() }));
        let run = passed(due);
        // A message that arrives before the reply of the run would wait for it.
        sleep(AHEAD);
        let sent = Timestamp::now();
        let recorded = client.post("/v1/agents/runs/messages", r#"{"text":"hello"}"#);
        let message = passed(sent);
        let id = recorded["message_id"].as_str().expect("a message id");
        client.get(&format!("/v1/messages/{id}?wait_ms=60000"));
        if number > 0 {
            runs.push(run);
            messages.push(message);
        }
    }
    report.times(&format!("run_{many}"), &format!("{many} schedules: due → the model is asked"), &runs);
    report.times(&format!("message_{many}"), "  message → the model is asked", &messages);
    report.ratio(&format!("run_ratio_{many}"), "  due / message", runs.p50() / messages.p50());
}
