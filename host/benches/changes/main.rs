//! The time of a change, from its proposal until it is pending and from its approval until it is applied, with few and with many
//! decided changes in the record.
//!
//! Asserts no time: a noisy machine fails no bench, and only the ratios of one run are meaningful. See `docs/performance.md`.
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

use client::Client;
use figures::{Report, Samples};
use host_fixture::TestHost;
use serde_json::json;
use std::time::Instant;

/// Pending changes during the measurement.
const PENDING: usize = 100;
/// Decided changes in the record, for one measurement each.
const DECIDED: [usize; 2] = [0, 10_000];
/// Measured changes for each number of decided changes.
const TIMES: usize = 300;

fn main() {
    let mut report = Report::default();
    let user =
        if nix::unistd::geteuid().is_root() { jail_fixture::HostUser::Root } else { jail_fixture::HostUser::Ordinary };
    let host = TestHost::with(user, host_fixture::Build::Plain, None);
    host.up();
    host.agent("waiting");
    host.agent("measured");
    let mut proposer = Proposer { client: Client::connect(&host), submitted: 0 };
    for _ in 0..PENDING {
        proposer.submit("waiting");
    }
    let mut decided = 0;
    for many in DECIDED {
        while decided < many {
            let id = proposer.submit("measured");
            proposer.client.post(&format!("/v1/waiting/{id}/decision"), r#"{"reject":""}"#);
            decided += 1;
        }
        let (mut held, mut bare, mut applied) = (Samples::default(), Samples::default(), Samples::default());
        for _ in 0..TIMES {
            let begun = Instant::now();
            let id = proposer.submit("measured");
            held.push(begun.elapsed().as_secs_f64());
            // For comparison: a request that writes only one row and its entry.
            let begun = Instant::now();
            proposer.client.post("/v1/agents/measured/mode", r#"{"mode":"enforce"}"#);
            bare.push(begun.elapsed().as_secs_f64());
            let shown = proposer.client.get(&format!("/v1/waiting/{id}"));
            let body = json!({ "approve": shown["shown_digest"] }).to_string();
            let begun = Instant::now();
            proposer.client.post(&format!("/v1/waiting/{id}/decision"), &body);
            let done = proposer.client.get(&format!("/v1/waiting/{id}?wait_ms=60000"));
            applied.push(begun.elapsed().as_secs_f64());
            assert_eq!(done["status"], "done", "{done}");
            decided += 1;
        }
        let name = format!("{many} decided, {PENDING} pending");
        report.times(&format!("held_{many}"), &format!("{name}: submit → held"), &held);
        report.times(&format!("applied_{many}"), "  approve → applied (persona)", &applied);
        report.times(&format!("bare_{many}"), "  a request that writes one row", &bare);
        report.ratio(&format!("held_ratio_{many}"), "  held / one row", held.p50() / bare.p50());
        report.ratio(&format!("applied_ratio_{many}"), "  applied / one row", applied.p50() / bare.p50());
    }
    let of = |report: &Report, what: &str, many: usize| {
        let [time, bare] = [what, "bare"].map(|key| report.p50(&format!("{key}_{many}")).expect("measured"));
        time / bare
    };
    for what in ["held", "applied"] {
        let grown = of(&report, what, DECIDED[1]) / of(&report, what, DECIDED[0]);
        report.ratio(&format!("{what}_grown"), &format!("{what}: with {} decided / with none", DECIDED[1]), grown);
    }
    report.print();
    host.down();
    host.ctl(&["audit", "verify"]).ok();
}

/// Proposes one change after the other.
struct Proposer {
    client: Client,
    submitted: usize,
}

impl Proposer {
    fn submit(&mut self, agent: &str) -> String {
        self.submitted += 1;
        let payload = json!({ "instructions": format!("text {}", self.submitted) });
        let body = json!({ "kind": "persona", "agent": agent, "payload": payload, "reason": "measured" }).to_string();
        let submitted = self.client.post("/v1/changes", &body);
        submitted["id"].as_str().expect("an id").to_owned()
    }
}
