//! The cost of a hop: the time from the call of an agent until the model of the other one is asked, and the way back, in turns with a
//! message of a person to the same agent.
//!
//! A model server gives the times, so a hop has the judgement, the record and the queues of its way, and no time of a model.

use crate::figures::{Report, Samples};
use crate::kept_alive::Client;
use crate::model_server::{Act, Server};
use crate::{connect, home, settle};
use jiff::Timestamp;
use serde_json::json;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// Measured hops.
const HOPS: usize = 200;
/// The longest wait for a request to the model.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A request to the model: its last text of a user, and the time.
type Asked = (String, Timestamp);

pub(crate) fn measure(report: &mut Report) {
    let (asked, requests) = mpsc::channel::<Asked>();
    let server = Server::start(move |seen| {
        let text = seen.asked();
        let calls = text.contains("pass it on") && seen.results().is_empty();
        let act = match (calls, text.contains("from the other agent")) {
            (true, _) => {
                let arguments = json!({ "to": "b", "text": "from the other agent" });
                Act::Call(String::new(), vec![("send_message".to_owned(), arguments)])
            }
            (false, true) => Act::Say("here is the answer".to_owned()),
            (false, false) => Act::Say("noted".to_owned()),
        };
        if seen.results().is_empty() {
            let _ = asked.send((text, Timestamp::now()));
        }
        act
    });
    let host = home("");
    let base = format!("{}/v1", server.url());
    host.ctl(&["model", "add", "m", "--kind", "openai", "--base-url", &base, "--model", "small", "--no-test"]).ok();
    let agents = ["a", "b"].map(str::to_owned);
    agents.iter().for_each(|agent| drop(host.ctl(&["agent", "add", agent, "--model", "m"]).ok()));
    connect(&host, &agents);
    let mut client = Client::connect(&host);
    let (mut there, mut back, mut person) = (Samples::default(), Samples::default(), Samples::default());
    // The first one of each kind wakes its sessions and does not count.
    for number in 0..=HOPS {
        client.post("/v1/agents/a/messages", r#"{"text":"pass it on"}"#);
        let begun = at(&requests, "pass it on");
        let arrived = at(&requests, "from the other agent");
        let returned = at(&requests, "here is the answer");
        settle(&host.home);
        let said = Timestamp::now();
        client.post("/v1/agents/b/messages", r#"{"text":"hello"}"#);
        let heard = at(&requests, "hello");
        settle(&host.home);
        if number > 0 {
            there.push(arrived.duration_since(begun).as_secs_f64());
            back.push(returned.duration_since(arrived).as_secs_f64());
            person.push(heard.duration_since(said).as_secs_f64());
        }
    }
    report.times("hop_request", "call of an agent → the model of the other one is asked", &there);
    report.times("hop_answer", "  its answer → the model of the first one is asked", &back);
    report.times("hop_person", "  message of a person → the model is asked", &person);
    report.ratio("hop_request_ratio", "  request / message of a person", there.p50() / person.p50());
    report.ratio("hop_answer_ratio", "  answer / message of a person", back.p50() / person.p50());
    host.down();
}

/// Waits for the next request about this text. Returns its time.
fn at(requests: &Receiver<Asked>, text: &str) -> Timestamp {
    loop {
        let (asked, at) = requests.recv_timeout(WAIT_MAX).expect("the model is asked");
        if asked.contains(text) {
            return at;
        }
    }
}
