//! The times of a round: warm and cold, compared with the minimal round, with a relay, with bare processes, and with a call.
//!
//! Asserts no time: a noisy machine fails no bench, and only the ratios of one run are meaningful. See `docs/performance.md`.
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

mod bare;
mod calls;
mod client;
mod counts;
mod figures;
#[path = "../../tests/support/host_fixture.rs"]
#[allow(dead_code)]
mod host_fixture;
#[path = "../../tests/support/jail_fixture.rs"]
#[allow(dead_code)]
mod jail_fixture;
mod jails;
mod memory;
#[path = "../../tests/support/processes.rs"]
#[allow(dead_code)]
mod processes;
#[path = "../../tests/support/site.rs"]
#[allow(dead_code)]
mod site;
#[path = "../../tests/support/wal.rs"]
#[allow(dead_code)]
mod wal;

use client::Client;
use figures::{Report, Samples};
use host_fixture::TestHost;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Messages or bare rounds in a row, so that a slow minute of the machine affects both.
const BLOCK: usize = 20;
/// Messages before the first counted one.
const WARM_UP: usize = 20;
/// Blocks of the warm round.
const BLOCKS: usize = 15;
/// Timed launches.
const COLD: usize = 30;
/// Messages through a relay with this tick, in milliseconds.
const RELAYED: [(u64, usize); 2] = [(10, 60), (500, 20)];
/// Messages of a conversation so long that every request to the model has the maximum size.
const LONG: usize = 600;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["peer", directory] => bare::peer(Path::new(directory)),
        ["jails", home] => jails::measure(Path::new(home)),
        arguments => bench(arguments.iter().copied().find(|argument| !argument.starts_with('-'))),
    }
}

/// Runs all parts, or only the part of this name. A ratio between two runs is meaningless.
fn bench(part: Option<&str>) {
    let mut report = Report::default();
    let wanted = |name| part.is_none_or(|part| part == name);
    if wanted("round") {
        warm_and_cold(&mut report);
    }
    if wanted("relay") {
        for (tick_ms, messages) in RELAYED {
            relayed(&mut report, tick_ms, messages);
        }
    }
    if wanted("calls") {
        calls::bench(&mut report);
    }
    if wanted("counts") {
        counts::bench(&mut report);
    }
    if wanted("jail") {
        jails::bench(&mut report);
    }
    report.print();
}

/// Makes a home of the current user, because the host serves no client of another user.
fn home() -> TestHost {
    let user =
        if nix::unistd::geteuid().is_root() { jail_fixture::HostUser::Root } else { jail_fixture::HostUser::Ordinary };
    TestHost::with(user, host_fixture::Build::Plain, None)
}

/// Sends one message and waits for its receipt. Returns the seconds.
fn round(client: &mut Client, agent: &str, number: usize) -> (f64, String) {
    say(client, agent, &format!("hello {number}"))
}

/// Sends this text in a request that waits for its receipt. Returns the seconds and the id of the message.
fn say(client: &mut Client, agent: &str, text: &str) -> (f64, String) {
    let body = serde_json::json!({ "text": text }).to_string();
    let begun = Instant::now();
    let recorded = client.post(&format!("/v1/agents/{agent}/messages?wait_ms=60000"), &body);
    let took = begun.elapsed().as_secs_f64();
    assert_eq!(recorded["message"]["status"], "delivered", "{recorded}");
    (took, recorded["message_id"].as_str().expect("a message id").to_owned())
}

/// Sends one message, and waits for its receipt in a second request. Returns the seconds.
fn polled_round(client: &mut Client, agent: &str, number: usize) -> f64 {
    let body = format!(r#"{{"text":"hello {number}"}}"#);
    let begun = Instant::now();
    let recorded = client.post(&format!("/v1/agents/{agent}/messages"), &body);
    let id = recorded["message_id"].as_str().expect("a message id");
    let view = client.get(&format!("/v1/messages/{id}?wait_ms=60000"));
    let took = begun.elapsed().as_secs_f64();
    assert_eq!(view["status"], "delivered", "{view}");
    took
}

fn warm_and_cold(report: &mut Report) {
    let host = home();
    host.up();
    for agent in ["warm", "polled", "long", "cold"] {
        host.agent(agent);
    }
    let mut client = Client::connect(&host);
    let mut bare = bare::Pair::start();

    for number in 0..WARM_UP {
        round(&mut client, "warm", number);
        bare.round();
    }
    memory::measure(report, host.pid().expect("the host runs"));
    for number in 0..WARM_UP {
        polled_round(&mut client, "polled", number);
    }
    let (mut warm, mut least, mut read) = (Samples::default(), Samples::default(), Samples::default());
    let mut ids = Vec::new();
    let host_pid = host.pid().expect("the host runs");
    let (mut processor, mut polled) = (Samples::default(), Samples::default());
    for block in 0..BLOCKS {
        let before = memory::processor(host_pid);
        for number in 0..BLOCK {
            let (took, id) = round(&mut client, "warm", block * BLOCK + number);
            warm.push(took);
            ids.push(id);
        }
        processor.push((memory::processor(host_pid) - before) / BLOCK as f64);
        for number in 0..BLOCK {
            polled.push(polled_round(&mut client, "polled", block * BLOCK + number));
        }
        for _ in 0..BLOCK {
            least.push(bare.round());
            read.push(bare.round_with_reading());
        }
    }
    report.times("warm", "message → receipt, warm", &warm);
    report.times("warm_first", "  … its first 60", &warm.part(0..60));
    report.times("warm_last", "  … its last 60", &warm.part(warm.len() - 60..warm.len()));
    report.times("processor", "  … processor time of all its processes", &processor);
    report.times("polled", "message → receipt, warm, in two requests", &polled);
    report.times("bare", "bare round: two commits, two bells", &least);
    report.times("bare_read", "  … and each side reads the other's row", &read);
    report.ratio("warm_to_bare", "warm / bare round (goal: at most 2.5)", warm.p50() / least.p50());
    report.ratio("polled_to_bare", "warm in two requests / bare round", polled.p50() / least.p50());

    long(report, &mut client, host_pid);
    report.times("cold", "message → receipt, asleep before", &cold(&mut client, host_pid));
    report.times("warm_by_ledger", "message → receipt, by the ledger's clock (1 ms)", &by_ledger(&host, &ids));
}

fn long(report: &mut Report, client: &mut Client, host_pid: i32) {
    for number in 0..LONG {
        round(client, "long", number);
    }
    let mut long = Samples::default();
    let before = memory::processor(host_pid);
    for number in 0..3 * BLOCK {
        long.push(round(client, "long", number).0);
    }
    let used = Samples::from_iter([(memory::processor(host_pid) - before) / long.len() as f64]);
    report.times("long", "message → receipt, with the longest history", &long);
    report.times("long_processor", "  … processor time of all its processes", &used);
}

/// Each wake finds jails in stock, as that of a session that slept longer than a moment.
fn cold(client: &mut Client, host_pid: i32) -> Samples {
    round(client, "cold", 0);
    let mut cold = Samples::default();
    for number in 0..COLD {
        let session = session_of(client, "cold");
        client.post(&format!("/v1/sessions/{session}/stop"), "{}");
        assert!(processes::is_stocked(host_pid), "a mount on this machine changed");
        cold.push(round(client, "cold", number).0);
    }
    cold
}

fn session_of(client: &mut Client, agent: &str) -> String {
    let sessions = client.get("/v1/sessions");
    let named = |session: &&Value| session["agent"] == agent;
    let session = sessions.as_array().expect("a list").iter().find(named).expect("its session");
    session["id"].as_str().expect("an id").to_owned()
}

/// Returns the times of the same messages according to the record.
fn by_ledger(host: &TestHost, ids: &[String]) -> Samples {
    let (mut recorded, mut turns, mut received) = (HashMap::new(), HashMap::new(), HashMap::new());
    for line in host.ledger() {
        let data = &line["data"];
        let text = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
        let at = data["at"].as_f64().unwrap_or_default();
        match data["what"].as_str() {
            Some("message.recorded") => drop(recorded.insert(text("message"), at)),
            Some("turn.opened") => drop(turns.insert(text("message"), text("turn"))),
            Some("delivery.received") => drop(received.insert(text("turn"), at)),
            _ => {}
        }
    }
    let mut samples = Samples::default();
    for id in ids {
        samples.push((received[&turns[id]] - recorded[id]) / 1000.0);
    }
    samples
}

/// Measures the same programs with a relay in the link. The relay passes bells only on its ticks.
fn relayed(report: &mut Report, tick_ms: u64, messages: usize) {
    let mut host = home();
    let programs = jail_fixture::directory();
    std::fs::set_permissions(programs.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    let relay = relay_host();
    for (from, name) in [
        (relay.as_path(), "ironclaw-host"),
        (&host.programs.join("ironclaw-sandbox"), "ironclaw-sandbox"),
        (&host.programs.join("ironctl"), "ironctl"),
    ] {
        let copied = Command::new("cp").arg(from).arg(programs.path().join(name)).status();
        assert!(copied.is_ok_and(|status| status.success()), "cp {}", from.display());
    }
    host.programs = programs.path().to_owned();
    host.set_env("IRONCLAW_RELAY_MS", Some(&tick_ms.to_string()));
    host.up();
    host.agent("slow");
    let mut client = Client::connect(&host);
    round(&mut client, "slow", 0);
    let mut samples = Samples::default();
    for number in 0..messages {
        samples.push(round(&mut client, "slow", number).0);
    }
    report.times(&format!("relay_{tick_ms}"), &format!("message → receipt, bells on ticks of {tick_ms} ms"), &samples);
    if let Some(warm) = report.p50("warm") {
        let goal = if tick_ms == 500 { " (goal: at least 100)" } else { "" };
        let what = format!("{tick_ms} ms relay / warm{goal}");
        report.ratio(&format!("relay_{tick_ms}_to_warm"), &what, samples.p50() / warm);
    }
}

/// Builds a host with the relay into the directory of the measured host.
fn relay_host() -> std::path::PathBuf {
    let host = Path::new(env!("CARGO_BIN_EXE_ironclaw-host"));
    host_fixture::cargo(&["build", "-p", "ironclaw-host", "--features", "relay", "--bin", "ironclaw-host-relay"], host);
    host.with_file_name("ironclaw-host-relay")
}
