//! The processor time that the judgement of a call with a control field adds to a round, and that it adds to a call without one.
//!
//! The same call of the same server is made with and without a control field, in turns, so the difference is what the host does for the
//! field alone: values of the message, their ids in the prompt, the binding before the judgement and before the run, and its row. See `main`.

use crate::client::Client;
use crate::figures::{Report, Samples};
use crate::mcp_server::{ECHO_READS, HttpServer};
use crate::{add, home, memory, say_with};
use serde_json::json;

/// Rounds of each kind in a row, so that a slow minute of the machine affects all kinds.
const BLOCK: usize = 20;
const BLOCKS: usize = 15;
const WARM_UP: usize = 20;
const TEXT: &str = "tulips";

/// A manifest by which the text is a control field, and its value a title that a person typed.
const ECHO_SENDS: &str = "[[tool]]\nname = \"echo\"\nclass = \"send\"\nreach = \"outside\"\n\
    effect = \"gives {text} back\"\narguments.text = { rule = \"floor\", type = \"title\", outward = true }\n";

/// The kinds of rounds: the agent, and the text of its message.
const KINDS: [(&str, &str); 4] = [
    ("free", "write notes.txt: tulips"),
    ("floored", "write notes.txt: tulips"),
    ("free", "use free__echo "),
    ("floored", "use typed__echo "),
];

pub(crate) fn bench(report: &mut Report) {
    let server = HttpServer::start(&[]);
    let host = home("");
    add(&host, "free", &["--url", &server.url], ECHO_READS);
    add(&host, "typed", &["--url", &server.url], ECHO_SENDS);
    for (agent, granted) in [("free", "free"), ("floored", "typed")] {
        host.agent(agent);
        host.ctl(&["mcp", "grant", agent, granted, "--yes"]).ok();
    }
    let mut client = Client::connect(&host);
    let mut round = |kind: usize| {
        let (agent, text) = KINDS[kind];
        let call = json!({ "text": TEXT }).to_string();
        let text = if text.ends_with(' ') { format!("{text}{call}") } else { text.to_owned() };
        // A thread for each kind: the conversations have one length.
        let body = json!({ "text": text, "thread": kind.to_string(), "allow": ["read", "write", "send"] });
        say_with(&mut client, agent, &body)
    };
    for kind in (0..KINDS.len()).cycle().take(WARM_UP * KINDS.len()) {
        round(kind);
    }
    let pid = host.pid().expect("the host runs");
    let mut used = <[Samples; 4]>::default();
    for _ in 0..BLOCKS {
        for (kind, used) in used.iter_mut().enumerate() {
            let before = memory::processor(pid);
            for _ in 0..BLOCK {
                round(kind);
            }
            used.push((memory::processor(pid) - before) / BLOCK as f64);
        }
    }
    let ran = host.entries("call.ran").iter().filter(|entry| entry["data"]["ok"] == true).count();
    let others = ["call.asked", "call.refused"].map(|event| host.entries(event).pop());
    assert_eq!(ran, 2 * (BLOCK * BLOCKS + WARM_UP), "each call ran once, and none asked: {others:?}");
    let [plain, beside, free, floored] = &used;
    report.times("judged_contained", "processor time, a written file beside a tool without a control field", plain);
    report.times("judged_beside", "processor time, a written file beside a tool with a control field", beside);
    report.ratio(
        "judged_beside_share",
        "  added for the control field / round (goal: nothing)",
        1.0 - plain.p50() / beside.p50(),
    );
    report.times("judged_free", "processor time, a call without a control field", free);
    report.times("judged_floored", "processor time, a call with a control field", floored);
    report.ratio(
        "judged_share",
        "  added for the control field / round (goal: at most 0.05)",
        1.0 - free.p50() / floored.p50(),
    );
}
