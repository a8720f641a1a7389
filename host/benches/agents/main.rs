//! The cost of messages between agents and of chats with several people: messages a second between agents, webhook messages in many
//! groups, and a hop beside a message of a person.
//!
//! Asserts no figure: a noisy machine fails no bench, and only the ratios of one run are meaningful. See `docs/performance.md`.
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

#[path = "../../tests/support/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "../round/figures.rs"]
#[allow(dead_code)]
mod figures;
mod groups;
#[path = "../../tests/support/hooks.rs"]
#[allow(dead_code)]
mod hooks;
mod hop;
#[path = "../../tests/support/host_fixture.rs"]
#[allow(dead_code)]
mod host_fixture;
#[path = "../../tests/support/jail_fixture.rs"]
#[allow(dead_code)]
mod jail_fixture;
#[path = "../round/client.rs"]
mod kept_alive;
#[path = "../../examples/model_server/server.rs"]
#[allow(dead_code)]
mod model_server;
mod rate;
#[path = "../../tests/support/record.rs"]
#[allow(dead_code)]
mod record;

use figures::Report;
use host_fixture::TestHost;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// The pause between two looks at the record.
const LOOK: Duration = Duration::from_millis(10);

/// Runs all parts, or only the named ones.
fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let mut report = Report::default();
    for (name, part) in [("rate", rate::measure as fn(&mut Report)), ("groups", groups::measure), ("hop", hop::measure)]
    {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            part(&mut report);
        }
    }
    report.print();
}

/// Makes a home of the current user, with slots and quotas that limit no measurement.
fn home(more: &str) -> TestHost {
    let host = TestHost::own(host_fixture::Build::Plain);
    host.configure(&format!(
        "[agents]\nsends_per_minute = 10000\n[session]\nawake_max = 100\nawake_per_agent_max = 100\n\
         [quota]\nwaiting_per_person = 100000\nwaiting_per_channel = 100000\n{more}"
    ));
    host.up();
    host
}

/// Lets each agent send to the next one.
fn connect(host: &TestHost, agents: &[String]) {
    let names: Vec<&str> = agents.iter().map(String::as_str).collect();
    host.ctl(&[&["group", "add", "team"], &names[..], &["--yes"]].concat()).ok();
    for (number, from) in names.iter().enumerate() {
        let to = names[(number + 1) % names.len()];
        host.ctl(&["destination", "add", from, to, "--agent", to, "--yes"]).ok();
    }
}

/// Waits until no message and no delivery waits.
fn settle(home: &Path) {
    let db = record::open(home);
    let waiting = "SELECT (SELECT count(*) FROM messages WHERE trigger = 1 AND waits = 1) \
                   + (SELECT count(*) FROM deliveries WHERE state IN ('intent','sending'))";
    while record::count(&db, waiting) > 0 {
        sleep(LOOK);
    }
}
