//! The time of `git clone` of 100 MB through the gateway of a command, beside the same clone without IronClaw.
//!
//! See `main`.

use crate::figures::{Report, Samples};
use crate::git_site::{GitSite, git};
use crate::{home, jail_fixture};
use serde_json::json;
use std::process::Command;

/// Bytes of the file in the repository. They are random, so no compression makes them fewer.
const FILE_BYTES: usize = 100_000_000;
const TIMES: usize = 5;
/// Hosts of this machine may be granted.
const LOOPBACK: &str = "[egress]\nloopback = true\n";

pub(crate) fn bench(report: &mut Report) {
    let site = GitSite::start();
    let mut file = vec![0; FILE_BYTES];
    fastrand::Rng::with_seed(7).fill(&mut file);
    let bare = site.repository("ada/large.git", "large", "");
    let work = bare.with_file_name("large.git.work");
    std::fs::write(work.join("large"), file).expect("written");
    git(&work, &["commit", "--quiet", "--all", "--message", "second"]);
    git(&work, &["push", "--quiet", bare.to_str().expect("text"), "HEAD:refs/heads/main"]);

    let host = home(LOOPBACK);
    host.agent("a");
    host.change("a", "enabled_tools", &json!({ "add": ["run_command"] }));
    let port = site.port.to_string();
    let grant = ["egress", "grant", "a", "127.0.0.1", "--port", &port, "--commands", "git", "--yes"];
    host.ctl(&[&grant[..], &["--path", "/ada/{repository}"]].concat()).ok();

    let address = format!("http://127.0.0.1:{port}/ada/large.git");
    let command = format!(
        "from=$(date +%s%N); git clone --quiet {address} large; code=$?; to=$(date +%s%N); \
         rm -rf large; echo \"took $((to - from)) code $code\""
    );
    let elsewhere = jail_fixture::directory();
    let (mut through, mut direct) = (Samples::default(), Samples::default());
    for number in 0..TIMES {
        let thread = format!("t{number}");
        let words = format!("/allow exec send\nrun online {command}");
        host.ctl(&["--json", "chat", "a", "--thread", &thread, &words]).ok();
        let call = host.entries("call.ran").last().expect("a call")["data"]["call"].clone();
        let why: serde_json::Value = host.ctl(&["--json", "why", call.as_str().expect("an id")]).ok().json();
        through.push(seconds(why["result"].as_str().expect("a result")));
        let ran = Command::new("sh").args(["-c", &command]).current_dir(elsewhere.path()).output().expect("sh runs");
        direct.push(seconds(&String::from_utf8_lossy(&ran.stdout)));
    }
    report.times("clone_gateway", "git clone of 100 MB through the gateway", &through);
    report.times("clone_direct", "  direct: the same clone", &direct);
    report.ratio("clone_ratio", "  throughput through the gateway / direct (goal: 0.8)", direct.p50() / through.p50());
}

/// Reads the time that the command printed.
fn seconds(said: &str) -> f64 {
    let line = said.lines().find(|line| line.starts_with("took ")).unwrap_or_else(|| panic!("no time: {said}"));
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!(words[3], "0", "{said}");
    words[1].parse::<f64>().expect("nanoseconds") / 1e9
}
