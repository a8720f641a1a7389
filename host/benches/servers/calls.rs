//! The times of rounds with a call of an MCP server: the bundled one in its jail, and one at a URL.
//!
//! The controls call the same servers without IronClaw. See `main`.

use crate::bare;
use crate::client::Client;
use crate::figures::{Report, Samples};
use crate::mcp_server::{ECHO_READS, HttpServer};
use crate::{add, home, say};
use tokio::runtime::Runtime;

/// Rounds of each kind in a row, so that a slow minute of the machine affects all kinds.
const BLOCK: usize = 20;
const BLOCKS: usize = 5;
const WARM_UP: usize = 10;
const TEXT: &str = "tulips";

/// A manifest that makes the counter of the bundled server a tool that only reads.
const COUNT_READS: &str =
    "[[tool]]\nname = \"count\"\nclass = \"read\"\nreach = \"outside\"\neffect = \"counts\"\narguments = {}\n";

pub(crate) fn bench(report: &mut Report) {
    let server = HttpServer::start(&[]);
    let host = home("");
    add(&host, "demo", &[], COUNT_READS);
    add(&host, "web", &["--url", &server.url], ECHO_READS);
    for (agent, granted) in [("plain", None), ("jailed", Some("demo")), ("remote", Some("web"))] {
        host.agent(agent);
        if let Some(granted) = granted {
            host.ctl(&["mcp", "grant", agent, granted, "--yes"]).ok();
        }
    }
    let runtime = Runtime::new().expect("a runtime");
    let (program, url) = runtime.block_on(async {
        (bare::Program::start(&host.programs.join("ironclaw-mcp-demo")).await, bare::Url::start(&server.url).await)
    });
    let mut client = Client::connect(&host);
    let mut round = |kind: usize| match kind {
        0 => say(&mut client, "plain", &format!("echo {TEXT}")),
        1 => say(&mut client, "jailed", "use demo__count"),
        2 => say(&mut client, "remote", &format!("use web__echo {{\"text\":\"{TEXT}\"}}")),
        3 => say(&mut client, "plain", &format!("write notes.txt: {TEXT}")),
        4 => runtime.block_on(program.count()),
        _ => runtime.block_on(url.echo(TEXT)),
    };
    let mut times = <[Samples; 6]>::default();
    for kind in (0..times.len()).cycle().take(WARM_UP * times.len()) {
        round(kind);
    }
    for _ in 0..BLOCKS {
        for (kind, times) in times.iter_mut().enumerate() {
            (0..BLOCK).for_each(|_| times.push(round(kind)));
        }
    }
    let ran = host.entries("call.ran").iter().filter(|entry| entry["data"]["ok"] == true).count();
    assert_eq!(ran, 2 * (BLOCK * BLOCKS + WARM_UP), "each call ran once");
    let [plain, jailed, remote, contained, bare_program, bare_url] = &times;
    report.times("mcp_none", "message → receipt, no call", plain);
    report.times("mcp_contained", "message → receipt, with a file that is written", contained);
    report.times("mcp_stdio", "message → receipt, with a call of the jailed server", jailed);
    report.times("mcp_stdio_bare", "  bare: the same program, a client of rmcp", bare_program);
    report.milliseconds("mcp_stdio_added", "  added to the round", jailed.p50() - plain.p50());
    report.milliseconds(
        "mcp_stdio_more",
        "  … more than the file and the bare call (goal: 1)",
        jailed.p50() - contained.p50() - bare_program.p50(),
    );
    report.times("mcp_http", "message → receipt, with a call of the server at a URL", remote);
    report.times("mcp_http_bare", "  bare: the same request", bare_url);
    report.milliseconds("mcp_http_added", "  added to the round", remote.p50() - plain.p50());
    report.milliseconds(
        "mcp_http_more",
        "  … more than the file and the bare call (goal: 1)",
        remote.p50() - contained.p50() - bare_url.p50(),
    );
}
