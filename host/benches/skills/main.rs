//! The cost of 100 skills of an agent: the time of a wake, the tokens of a prompt, and the time of an installation.
//!
//! Asserts no time. The control is an agent without skills, in turns with the other one. See `docs/performance.md`.
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

#[path = "../round/figures.rs"]
#[allow(dead_code)]
mod figures;
#[path = "../../tests/support/host_fixture.rs"]
#[allow(dead_code)]
mod host_fixture;
#[path = "../../tests/support/jail_fixture.rs"]
#[allow(dead_code)]
mod jail_fixture;
#[path = "../../examples/model_server/server.rs"]
#[allow(dead_code)]
mod model_server;

use figures::{Report, Samples};
use host_fixture::{Build, TestHost};
use ironclaw_skill::author::{self, SecretKey};
use model_server::{Act, Server};
use std::time::Instant;

/// Skills of the one agent.
const SKILLS: usize = 100;
/// Wakes of each agent.
const WAKES: usize = 20;

fn main() {
    let user = match nix::unistd::geteuid().is_root() {
        true => jail_fixture::HostUser::Root,
        false => jail_fixture::HostUser::Ordinary,
    };
    let host = TestHost::with(user, Build::Plain, None);
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("source");
    std::fs::create_dir(&source).expect("made");
    let pair = author::generate_key(None).expect("a key");
    let key = SecretKey::parse(&pair.secret, None).expect("a key");
    let public = directory.path().join("own.pub");
    std::fs::write(&public, &pair.public).expect("written");
    host.up();
    host.agent("plain");
    host.agent("many");
    host.ctl(&["skill", "source", "add", "own", source.to_str().expect("UTF-8")]).ok();
    host.ctl(&["skill", "key", "add", "own", public.to_str().expect("UTF-8")]).ok();
    let (mut report, mut installs) = (Report::default(), Samples::default());
    for number in 0..SKILLS {
        let name = format!("skill-{number}");
        publish(directory.path(), &name, &key);
        let begun = Instant::now();
        host.ctl(&["skill", "add", &name, "--agent", "many", "--yes"]).ok();
        installs.push(begun.elapsed().as_secs_f64());
    }
    let (mut plain, mut many) = (Samples::default(), Samples::default());
    for _ in 0..WAKES {
        for (agent, samples) in [("plain", &mut plain), ("many", &mut many)] {
            let session = host.chat(agent, "hello")["session_id"].as_str().expect("a session").to_owned();
            host.ctl(&["session", "stop", &session]).ok();
            let begun = Instant::now();
            host.say(agent, "hello");
            samples.push(begun.elapsed().as_secs_f64());
        }
    }
    report.times("skill_add", "one `ironctl skill add`: fetch, verify, decide, apply", &installs);
    report.times("wake_many", "first answer of an agent with 100 skills", &many);
    report.times("wake_plain", "  without skills", &plain);
    report.ratio("wake_ratio", "  with / without", many.p50() / plain.p50());
    report.print();
    tokens(&host);
    host.down();
}

/// Prints the estimated tokens of the system text and of the tools, which every request has.
fn tokens(host: &TestHost) {
    let server = Server::start(|_| Act::Say("noted".to_owned()));
    let base = format!("{}/v1", server.url());
    host.ctl(&["model", "add", "m", "--kind", "openai", "--base-url", &base, "--model", "small", "--no-test"]).ok();
    for agent in ["plain", "many"] {
        host.ctl(&["agent", "set", agent, "--model", "m", "--yes"]).ok();
        host.say(agent, "hello");
        let asked = server.seen().pop().expect("a request");
        let (system, tools) = (asked.system(), asked.body["tools"].to_string());
        let estimated = |text: &str| ironclaw_model::tokens_estimated(text.len());
        println!("{agent}: {} tokens of system text, {} of tools", estimated(&system), estimated(&tools));
    }
}

/// Packs and signs a small skill into the source.
fn publish(directory: &std::path::Path, name: &str, key: &SecretKey) {
    let own = directory.join(name);
    std::fs::create_dir(&own).expect("made");
    let manifest = format!("name = \"{name}\"\nversion = \"1.0.0\"\n");
    std::fs::write(own.join("skill.toml"), manifest).expect("written");
    let description = "Turns raw notes of a meeting into decisions, tasks and open questions with their owners.";
    let text = format!("---\nname: {name}\ndescription: {description}\n---\nRead the notes first.\n");
    std::fs::write(own.join("SKILL.md"), text).expect("written");
    let packed = author::pack(&own).expect("packed");
    let file = directory.join("source").join(format!("{name}-1.0.0.skill"));
    let signature = author::sign(&packed[..], key, &format!("skill {name} 1.0.0"), false).expect("signed");
    std::fs::write(file.with_extension("skill.minisig"), signature).expect("written");
    std::fs::write(file, packed).expect("written");
}
