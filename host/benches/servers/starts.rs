//! The time until a server has started and listed its tools, for as many servers as a catalogue has.
//!
//! The control starts the same program without a jail. See `main`.

use crate::bare;
use crate::client::Client;
use crate::figures::{Report, Samples};
use crate::{add, home};
use std::time::Instant;
use tokio::runtime::Runtime;

const SERVERS: usize = 64;

pub(crate) fn bench(report: &mut Report) {
    let host = home("");
    let program = host.programs.join("ironclaw-mcp-demo");
    let command = ["--", "ironclaw-mcp-demo", "/usr/share/ironclaw-mcp-demo"];
    let names: Vec<String> = (0..SERVERS).map(|number| format!("s{number}")).collect();
    for name in &names {
        add(&host, name, &command, "");
    }
    let runtime = Runtime::new().expect("a runtime");
    let mut client = Client::connect(&host);
    let (mut jailed, mut bare) = (Samples::default(), Samples::default());
    for name in &names {
        let begun = Instant::now();
        let tested = client.post(&format!("/v1/mcp/{name}/look"), "{}");
        jailed.push(begun.elapsed().as_secs_f64());
        assert_eq!(tested["state"], "confirmed", "{tested}");
        let begun = Instant::now();
        drop(runtime.block_on(bare::Program::start(&program)));
        bare.push(begun.elapsed().as_secs_f64());
    }
    report.times("start_jailed", "start of a server in its jail, its listing, its end", &jailed);
    report.times("start_bare", "  bare: the same program, a client of rmcp", &bare);
    report.ratio("start_ratio", "  jailed / bare", jailed.p50() / bare.p50());
}
