//! The times of rounds with a call: a file that an agent writes in its jail, and a page that the host requests for an agent.
//!
//! The controls make the same file and the same request without IronClaw. See `main`.

use crate::bare;
use crate::client::Client;
use crate::figures::{Report, Samples};
use crate::host_fixture::TestHost;
use crate::site::{Site, grant};
use crate::{BLOCK, WARM_UP, home, jail_fixture, memory, say};
use ironclaw_net::fetch::{Fetcher, Limits, Request};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Blocks of each kind of round. Each conversation grows by this many messages.
const BLOCKS: usize = 5;
/// Bytes of the written file.
const FILE_BYTES: usize = 512;
const FILE: &str = "notes.txt";
const WAIT: Duration = Duration::from_secs(10);

pub(crate) fn bench(report: &mut Report) {
    let site = Site::start();
    let host = home();
    // The agent `a` has the grant.
    grant(&host, &site, &["GET"], &[]);
    host.agent("talks");
    host.agent("writes");
    let mut rounds = Rounds::start(&host, &site);
    for number in 0..WARM_UP {
        rounds.plain(number);
        rounds.write(number);
        rounds.direct_write(number);
        rounds.fetch();
        rounds.direct_fetch();
    }
    let host_pid = host.pid().expect("the host runs");
    let mut times = <[Samples; 6]>::default();
    let mut processor = <[Samples; 3]>::default();
    for block in 0..BLOCKS {
        let numbers = || block * BLOCK..(block + 1) * BLOCK;
        let of_host: [fn(&mut Rounds, usize) -> f64; 3] = [Rounds::plain, Rounds::write, |rounds, _| rounds.fetch()];
        for (kind, round) in of_host.into_iter().enumerate() {
            let before = memory::processor(host_pid);
            numbers().for_each(|number| times[kind].push(round(&mut rounds, number)));
            processor[kind].push((memory::processor(host_pid) - before) / BLOCK as f64);
        }
        numbers().for_each(|number| times[3].push(rounds.direct_write(number)));
        for _ in numbers() {
            let took = rounds.direct_fetch();
            times[4].push(took);
            times[5].push(took + rounds.bare.round());
        }
    }
    let each = BLOCK * BLOCKS + WARM_UP;
    assert_eq!(site.lines().len(), 2 * each, "each request arrived once");
    for what in ["call.reported", "call.ran"] {
        let ran = host.entries(what).iter().filter(|entry| entry["data"]["ok"] == true).count();
        assert_eq!(ran, each, "each call ran once");
    }
    print(report, &times, &processor);
}

fn print(report: &mut Report, times: &[Samples; 6], processor: &[Samples; 3]) {
    let [plain, write, fetch, direct_write, direct_fetch, durable_fetch] = times;
    let used = "  … processor time of all its processes";
    report.times("call_none", "message → receipt, no call", plain);
    report.times("call_none_processor", used, &processor[0]);
    report.times("call_write", "message → receipt, with a written file", write);
    report.times("call_write_processor", used, &processor[1]);
    report.times("direct_write", "  direct: the same file, two commits, two bells", direct_write);
    added(report, "call_write", [plain, write, direct_write]);
    report.times("call_fetch", "message → receipt, with an http_fetch", fetch);
    report.times("call_fetch_processor", used, &processor[2]);
    report.times("direct_fetch", "  direct: the same request by the same client", direct_fetch);
    added(report, "call_fetch", [plain, fetch, direct_fetch]);
    report.times("durable_fetch", "  direct: the same, two commits, two bells", durable_fetch);
    report.ratio(
        "call_fetch_durable_ratio",
        "  added / direct with commits",
        (fetch.p50() - plain.p50()) / durable_fetch.p50(),
    );
}

/// Adds the time that a call adds to a round, and its ratio to the control.
fn added(report: &mut Report, key: &str, [plain, with_call, direct]: [&Samples; 3]) {
    let added = with_call.p50() - plain.p50();
    report.milliseconds(&format!("{key}_added"), "  added to the round by the call", added);
    report.ratio(&format!("{key}_ratio"), "  whole round / direct", with_call.p50() / direct.p50());
    report.ratio(&format!("{key}_added_ratio"), "  added / direct", added / direct.p50());
}

/// The sides that make the rounds.
struct Rounds {
    client: Client,
    bare: bare::Pair,
    runtime: Runtime,
    fetcher: Fetcher,
    url: String,
    directory: tempfile::TempDir,
}

impl Rounds {
    fn start(host: &TestHost, site: &Site) -> Self {
        Self {
            client: Client::connect(host),
            bare: bare::Pair::start(),
            runtime: tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts"),
            fetcher: Fetcher::dangerous_with_loopback(),
            url: site.url("/page"),
            directory: jail_fixture::directory(),
        }
    }

    fn plain(&mut self, number: usize) -> f64 {
        say(&mut self.client, "talks", &format!("echo {}", content(number))).0
    }

    fn write(&mut self, number: usize) -> f64 {
        say(&mut self.client, "writes", &format!("write {FILE}: {}", content(number))).0
    }

    fn fetch(&mut self) -> f64 {
        say(&mut self.client, "a", &format!("fetch {}", self.url)).0
    }

    /// Writes the file as the sandbox does, then makes a bare round.
    fn direct_write(&mut self, number: usize) -> f64 {
        let begun = Instant::now();
        replace(self.directory.path(), &content(number));
        self.bare.round();
        begun.elapsed().as_secs_f64()
    }

    fn direct_fetch(&self) -> f64 {
        let (method, url) = (reqwest::Method::GET, self.url.as_str());
        let request = Request { method, url, headers: Vec::new(), body: None, credential: None };
        let limits = Limits { begin: WAIT, whole: WAIT, body_bytes_max: FILE_BYTES };
        let begun = Instant::now();
        let page = self.runtime.block_on(self.fetcher.fetch(request, limits)).expect("an answer");
        let took = begun.elapsed().as_secs_f64();
        assert_eq!(page.status, 200);
        took
    }
}

fn content(number: usize) -> String {
    format!("{number} ").repeat(FILE_BYTES).split_at(FILE_BYTES).0.to_owned()
}

fn replace(directory: &Path, content: &str) {
    let draft = directory.join("draft");
    fs::write(&draft, content).expect("written");
    fs::rename(&draft, directory.join(FILE)).expect("renamed");
}
