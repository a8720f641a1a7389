//! Messages a second between agents, each with a conversation that asks the next agent, in turns with messages that only its agent answers.
//!
//! A request and its answer count as two messages. The message of the person that causes them does not count.

use crate::figures::Report;
use crate::host_fixture::TestHost;
use crate::kept_alive::Client;
use crate::{connect, home, record, settle};
use std::time::Instant;

/// Agents that write to each other.
const AGENTS: [usize; 2] = [2, 20];
/// Messages of people in one block of each kind, and the blocks.
const MESSAGES: usize = 200;
const BLOCKS: usize = 3;
/// Messages of each conversation before the first counted one.
const WARM_UP: usize = 2;

pub(crate) fn measure(report: &mut Report) {
    for many in AGENTS {
        let host = home("");
        let agents: Vec<String> = (0..many).map(|number| format!("a{number}")).collect();
        agents.iter().for_each(|agent| host.agent(agent));
        connect(&host, &agents);
        of_agents(report, &host, &agents);
        host.ctl(&["audit", "verify"]).ok();
        host.down();
    }
}

fn of_agents(report: &mut Report, host: &TestHost, agents: &[String]) {
    let many = agents.len();
    let mut talks: Vec<Talk> = (0..many)
        .map(|number| Talk {
            client: Client::connect(host),
            path: format!("/v1/agents/{}/messages", agents[number]),
            to: agents[(number + 1) % many].clone(),
        })
        .collect();
    // Sequentially, so that no launch waits for another.
    for talk in &mut talks {
        (0..WARM_UP).for_each(|_| talk.ask());
    }
    settle(&host.home);
    let db = record::open(&host.home);
    let count = || record::count(&db, "SELECT count(*) FROM agent_messages");
    let (mut seconds, mut alone_seconds, mut sent) = (0.0, 0.0, 0);
    for _ in 0..BLOCKS {
        let before = count();
        seconds += at_once(host, &mut talks, Talk::ask);
        sent += count() - before;
        alone_seconds += at_once(host, &mut talks, Talk::say);
    }
    let said = (BLOCKS * (MESSAGES / many) * many) as f64;
    let (rate, alone) = (sent as f64 / seconds, said / alone_seconds);
    report.rate(&format!("agents_{many}"), &format!("{many} agents: messages between them"), rate);
    report.rate(&format!("people_{many}"), "  messages of a person, answered by one agent", alone);
    report.ratio(&format!("rate_ratio_{many}"), "  messages of a person / between agents", alone / rate);
}

/// Runs a block in all conversations at the same time. Returns the seconds until no message waits.
fn at_once(host: &TestHost, talks: &mut [Talk], round: impl Fn(&mut Talk) + Sync) -> f64 {
    let each = MESSAGES / talks.len();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for talk in talks {
            scope.spawn(|| (0..each).for_each(|_| round(talk)));
        }
    });
    settle(&host.home);
    begun.elapsed().as_secs_f64()
}

/// A conversation of the owner on its own kept-alive connection.
struct Talk {
    client: Client,
    path: String,
    to: String,
}

impl Talk {
    /// Lets the agent send a message to the next one, and waits for the reply of the agent.
    fn ask(&mut self) {
        self.round(&format!(r#"{{"text":"send hello to {}"}}"#, self.to));
    }

    fn say(&mut self) {
        self.round(r#"{"text":"hello"}"#);
    }

    fn round(&mut self, body: &str) {
        let recorded = self.client.post(&self.path, body);
        let id = recorded["message_id"].as_str().expect("a message id");
        let view = self.client.get(&format!("/v1/messages/{id}?wait_ms=60000"));
        assert_eq!(view["status"], "delivered", "{view}");
    }
}
