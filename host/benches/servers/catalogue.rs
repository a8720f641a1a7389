//! The time of a round with a thousand granted tools, beside one without a granted tool.
//!
//! See `main`.

use crate::client::Client;
use crate::figures::{Report, Samples};
use crate::mcp_server::HttpServer;
use crate::{add, home, say};

/// Servers, and tools of each, because a grant has at most 64 tools of a server.
const SERVERS: usize = 16;
const TOOLS: usize = 60;
const BLOCK: usize = 20;
const BLOCKS: usize = 5;

pub(crate) fn bench(report: &mut Report) {
    let servers: Vec<HttpServer> =
        (0..SERVERS).map(|_| HttpServer::start(&["--reports", &TOOLS.to_string()])).collect();
    let host = home("");
    host.agent("few");
    host.agent("many");
    for (number, server) in servers.iter().enumerate() {
        let name = format!("s{number}");
        add(&host, &name, &["--url", &server.url], "");
        host.ctl(&["mcp", "grant", "many", &name, "--yes"]).ok();
    }
    let mut client = Client::connect(&host);
    let (mut few, mut many) = (Samples::default(), Samples::default());
    for agent in ["few", "many"].repeat(BLOCK) {
        say(&mut client, agent, "echo x");
    }
    for _ in 0..BLOCKS {
        (0..BLOCK).for_each(|_| few.push(say(&mut client, "few", "echo x")));
        (0..BLOCK).for_each(|_| many.push(say(&mut client, "many", "echo x")));
    }
    report.times("catalogue_none", "message → receipt, no granted server", &few);
    report.times("catalogue_1000", "message → receipt, 1,000 granted tools", &many);
    report.milliseconds("catalogue_added", "  added to the round", many.p50() - few.p50());
}
